"""How people read smoke: which quantity, above which values, at which hours, in which variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import DOSE_OF, INTERVAL, recorded_interval
from plumecast.base.errors import ArgumentError
from plumecast.base.names import SMOKE, SNAPSHOT, TABLE
from plumecast.base.values import check_number
from plumecast.scores.predicted_dose import without_dose
from plumecast.scores.quantities import (
    BETWEEN,
    DEFAULT,
    PEAK,
    QUANTITIES,
    Quantity,
    as_quantity,
    checkpoint_hours,
    described,
    find_quantity,
    quantity_factors,
    refuse_other_interval,
    smoke_between,
    smoke_peak,
)

OF_SEVERAL = {BETWEEN.name: BETWEEN, PEAK.name: PEAK}
"""Quantities of the snapshots of a fire together; they have no error bars."""

NAMES = (*QUANTITIES, *OF_SEVERAL)
"""The quantities of a prediction."""


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


def variable_name(smoke: str, quantity: str) -> str:
    """The variable with a quantity of a smoke variable: "smoke_mean"; the sum keeps its name."""
    return smoke if quantity == "sum" else f"{smoke}_{quantity}"


@dataclass(frozen=True, slots=True)
class WrittenQuantity:
    """The quantity as which predicted smoke is written, and the variables that are smoke."""

    quantity: Quantity
    names: tuple[str, ...]  # of smoke; the other predicted fields stay as they are
    interval: float | None = None  # hours, if stated
    bands: Mapping[str, str] = field(default_factory=dict)  # ends of error bars → their smoke

    def applied(self, blocks: Iterable[xr.Dataset], *, keep: bool) -> Iterator[xr.Dataset]:
        """The blocks with the quantity of each smoke variable first; with `keep` also the sums.

        A block holds all snapshots of its fires.
        Error bars of a sum are those of its multiples; of smoke between snapshots there are none.
        """
        if not self.names or not self.quantity.needs_interval:
            yield from blocks
            return
        for block in blocks:
            made = {name: self._of(block[name]) for name in self.names}
            for name in self._multiplied_bands:
                made[name] = self._of_band(block, name, made[self.bands[name]])
            rest = block
            if not keep:
                sums = (*self.names, *self.bands)
                beside = [block[name].attrs.get(DOSE_OF, name) for name in sums]
                rest = block.drop_vars(sums).drop_vars(beside, errors="ignore")
            elif self.interval is not None:
                stated = {INTERVAL: self.interval}
                rest = block.assign({n: block[n].assign_attrs(stated) for n in self.names})
            plain = {
                variable_name(name, self.quantity.name): own.reset_coords(drop=True)
                for name, own in made.items()
            }
            yield xr.Dataset(plain | dict(rest.data_vars), rest.coords, rest.attrs)

    def _of(self, smoke: xr.DataArray) -> xr.DataArray:
        if self.quantity.name not in OF_SEVERAL:
            return as_quantity(smoke, self.quantity.name, checkpoint_interval=self.interval)
        if not {"fire_id", "hours"} <= set(smoke.coords):
            raise ArgumentError(
                "quantity",
                self.quantity.name,
                "add them, or use the quantity 'mean'",
                problem="needs the coordinates fire_id and hours of every snapshot",
            )
        read = smoke_between if self.quantity is BETWEEN else smoke_peak
        return read(smoke, smoke.fire_id.values.astype(str), checkpoint_interval=self.interval)

    def _of_band(self, block: xr.Dataset, name: str, made: xr.DataArray) -> xr.DataArray:
        """An end of the error bars, as the quantity of the smoke that they belong to.

        It has a dose of its own, or the factor of its snapshot, and lies on its side of the
        quantity `made`, which may be that of an earlier hour.
        """
        smoke, field = block[self.bands[name]], block[name]
        if DOSE_OF in field.attrs:
            alone = as_quantity(field, self.quantity.name)
        else:
            factors = quantity_factors(block, smoke, self.quantity.name, self.interval)
            alone = field * xr.DataArray(factors.astype(smoke.dtype), dims=SNAPSHOT)
        side = np.minimum if name.startswith("lower") else np.maximum
        limited = alone.copy(data=side(alone.values, made.transpose(*alone.dims).values))
        made = described(limited.assign_attrs(field.attrs), self.quantity, self.interval)
        end = name.removesuffix(f"_{self.bands[name]}")
        meaning = f"{end} end of the error bar of the {self.quantity.long_name}"
        own = without_dose(field).attrs
        return made.assign_attrs(own | made.attrs | {"long_name": meaning})

    @property
    def _multiplied_bands(self) -> tuple[str, ...]:
        return () if self.quantity.name in OF_SEVERAL else tuple(self.bands)

    def written(self, fields: Sequence[str], *, keep: bool) -> list[str]:
        """The variables of a file, in order; `fields` are those of a prediction."""
        made = [
            variable_name(n, self.quantity.name) for n in (*self.names, *self._multiplied_bands)
        ]
        sums = (*self.names, *self.bands)
        return made + [name for name in fields if name not in made and (keep or name not in sums)]


def read_as(
    outputs: Mapping[str, Mapping[str, Any]],
    quantity: str | None = None,
    interval: float | None = None,
) -> WrittenQuantity:
    """How to read the predicted fields with these attributes, by name.

    Without a `quantity` it is the time mean of smoke that records its interval, or of all smoke if
    `interval` states it; if none does, it is the sum. A quantity that is asked for and cannot be
    computed raises.
    """
    chosen = find_quantity(quantity or DEFAULT, {**QUANTITIES, **OF_SEVERAL})
    smoke = {
        name: attrs
        for name, attrs in outputs.items()
        if name == SMOKE
        or (attrs.get("units") == TABLE[SMOKE].units and recorded_interval(attrs) is not None)
    }
    if quantity is not None and chosen.needs_interval and not smoke:
        raise ArgumentError(
            "quantity",
            quantity,
            "use the quantity 'sum'",
            problem=f"is one of smoke, but the surrogate predicts {', '.join(outputs)}",
        )
    unknown = any(recorded_interval(attrs) is None for attrs in smoke.values())
    if unknown and interval is None and quantity is None:
        chosen = QUANTITIES["sum"]
    for name, attrs in smoke.items() if chosen.needs_interval else ():
        field = xr.DataArray(0.0, name=name, attrs=dict(attrs))
        refuse_other_interval(field, interval)
        checkpoint_hours(field, interval)
    return WrittenQuantity(chosen, tuple(smoke), interval)
