"""How a person reads smoke: which quantity, above which values, at which hours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plumecast.base.values import check_number
from plumecast.scores.quantities import find_quantity


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read from smoke.

    `quantity` is "mean", the time-mean column concentration; "dose"; "sum", smoke as stored; or
    another of `pc.scores.quantities`; None: what the function reads by default. `thresholds` are
    values of it. `hours` since ignition replace the snapshots' own; empty: those. `interval` states
    the hours between the checkpoints of smoke that does not record them.
    """

    quantity: str | None = None
    thresholds: Iterable[float] = ()
    hours: Iterable[float] = ()
    interval: float | None = None

    def __post_init__(self) -> None:
        for name in ("thresholds", "hours"):
            values = tuple(dict.fromkeys(map(float, getattr(self, name))))
            for value in values:
                check_number(name, value, least=0.0)
            object.__setattr__(self, name, values)
        if self.quantity is not None:
            object.__setattr__(self, "quantity", find_quantity(self.quantity).name)
        if self.interval is not None:
            check_number("checkpoint_interval", self.interval, above=0.0)

    def quantity_or(self, default: str) -> str:
        """The quantity, or the default of a function."""
        return default if self.quantity is None else self.quantity


AS_STORED = Reading()
"""The quantity and the snapshots that a function reads by default."""
