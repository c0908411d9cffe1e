"""The quantities that people read, from smoke as it is stored: a sum over checkpoints.

With a column mean c_k at each checkpoint k, Δ hours apart, the paper's smoke is g = Σ c_k up to the
hour h of a snapshot. Its size depends on Δ; what is read does not:

- the time-mean column concentration g Δ / h, in µg m⁻³;
- the dose g Δ, in µg m⁻³ h;
- the mean concentration between two snapshots, (g_k − g_{k−1}) Δ / (h_k − h_{k−1}), in µg m⁻³.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import (
    INTERVAL,
    equal_interval,
    recorded_interval,
    smoke_comment,
)
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT, shown_units


@dataclass(frozen=True, slots=True)
class Quantity:
    """A multiple of the stored smoke; `factor` is of the interval and the hours, both in h."""

    name: str
    long_name: str
    units: str
    factor: Callable[[float, np.ndarray], np.ndarray]
    needs_interval: bool = True

    @property
    def shown_units(self) -> str:
        """The units for people: "µg m⁻³ h"."""
        return shown_units(self.units)


QUANTITIES = {
    item.name: item
    for item in (
        Quantity(
            "mean",
            "time-mean column concentration of smoke since ignition",
            "ug m-3",
            lambda interval, hours: interval / np.maximum(hours, interval),
        ),
        Quantity(
            "dose",
            "time integral of the column concentration of smoke since ignition",
            "ug m-3 h",
            lambda interval, hours: np.full(hours.shape, interval),
        ),
        Quantity(
            "sum",
            "sum of column-mean smoke concentrations over checkpoints",
            "ug m-3",
            lambda interval, hours: np.ones(hours.shape),
            needs_interval=False,
        ),
    )
}
"""By name; "mean" is what commands use unless another one is asked for, "sum" is the paper's g."""

DEFAULT = "mean"

BETWEEN = Quantity(
    "between",
    "mean column concentration of smoke since the snapshot before",
    "ug m-3",
    lambda interval, hours: np.ones(hours.shape),
)
"""What `smoke_between` gives: no multiple of one snapshot, so that it is not in `QUANTITIES`."""


def find_quantity(name: str) -> Quantity:
    """The quantity of a name; raises for an unknown one."""
    if name not in QUANTITIES:
        raise PlumecastError(f"quantity={name!r} is unknown; choose from {', '.join(QUANTITIES)}")
    return QUANTITIES[name]


def checkpoint_hours(smoke: xr.DataArray | xr.Variable, interval: float | None = None) -> float:
    """The interval between checkpoints in hours: the stated one, or that which smoke records."""
    found = recorded_interval(smoke.attrs) if interval is None else interval
    if found is None:
        raise PlumecastError(
            f"'{getattr(smoke, 'name', SMOKE)}' does not record the interval between its "
            "checkpoints, so that its time mean is unknown; state it with checkpoint_interval=…, "
            "in hours, or use quantity='sum'"
        )
    if not 0.0 < found < np.inf:
        raise PlumecastError(f"checkpoint_interval={found:g} must be a positive number of hours")
    return float(found)


def refuse_other_interval(smoke: xr.DataArray | xr.Variable, stated: float | None) -> None:
    """Raise if smoke records another interval than the stated one."""
    recorded = recorded_interval(smoke.attrs)
    if stated is None or recorded is None or stated <= 0.0:
        return
    if equal_interval([recorded, stated]) is None:
        raise PlumecastError(
            f"checkpoint_interval={stated:g} contradicts the {recorded:g} h that "
            f"'{getattr(smoke, 'name', SMOKE)}' records; leave it out"
        )


def quantity_factors(
    snapshots: xr.Dataset | xr.DataArray,
    smoke: xr.DataArray | xr.Variable,
    quantity: str = DEFAULT,
    interval: float | None = None,
) -> np.ndarray:
    """(M,) factors that turn the smoke of snapshots into a quantity.

    `snapshots` has the coordinate `hours`; `smoke` the attribute with the interval, unless
    `interval` states it.
    """
    chosen = find_quantity(quantity)
    count = snapshots.sizes.get(SNAPSHOT, 1)
    if not chosen.needs_interval:
        return np.ones(count)
    spacing = checkpoint_hours(smoke, interval)
    if "hours" not in snapshots.coords:
        raise PlumecastError(
            f"quantity='{quantity}' needs the hours since ignition of every snapshot (coordinate "
            "'hours'); add them, or use quantity='sum'"
        )
    hours = np.broadcast_to(snapshots["hours"].values.astype(float), (count,))
    return chosen.factor(spacing, hours)


def as_quantity(
    smoke: xr.DataArray, quantity: str = DEFAULT, *, checkpoint_interval: float | None = None
) -> xr.DataArray:
    """Smoke of the store, or predicted smoke, as a quantity that does not depend on the interval.

    `quantity` is "mean" (time mean since ignition, µg m⁻³), "dose" (µg m⁻³ h) or "sum". The
    interval between checkpoints is that which smoke records, or `checkpoint_interval`, in hours.

    >>> fields = xr.DataArray([[6.0], [8.0]], dims=["snapshot", "x"],
    ...     coords={"hours": ("snapshot", [12.0, 24.0])}, attrs={INTERVAL: 6.0})
    >>> as_quantity(fields, "mean").values.ravel().tolist()
    [3.0, 2.0]
    """
    chosen = find_quantity(quantity)
    refuse_other_interval(smoke, checkpoint_interval)
    factors = quantity_factors(smoke, smoke, quantity, checkpoint_interval).astype(smoke.dtype)
    shaped = xr.DataArray(factors, dims=SNAPSHOT) if SNAPSHOT in smoke.dims else factors[0]
    made = (smoke * shaped).assign_attrs(smoke.attrs)
    known = recorded_interval(smoke.attrs) if checkpoint_interval is None else checkpoint_interval
    return described(made, chosen, known)


def described(field: xr.DataArray, quantity: Quantity, interval: float | None) -> xr.DataArray:
    """The field with the meaning of a quantity: name, unit and comment.

    Of its attributes only the grid mapping stays: others, such as a floor, are values of the sum.
    """
    kept = {key: value for key, value in field.attrs.items() if key == "grid_mapping"}
    attrs = kept | {"long_name": quantity.long_name, "units": quantity.units}
    if not quantity.needs_interval:
        attrs["comment"] = smoke_comment(interval)
        attrs |= {} if interval is None else {INTERVAL: interval}
    return field.drop_attrs(deep=False).assign_attrs(attrs)


def smoke_between(
    smoke: xr.DataArray, fire: np.ndarray, *, checkpoint_interval: float | None = None
) -> xr.DataArray:
    """Mean column concentration between each snapshot and the one before it of the same fire.

    `fire` (M,) names the fire of every snapshot. The first snapshot of a fire is compared with its
    ignition, when there was no smoke; as in the time mean, that is at least one interval before.
    Decreases, which predicted sums can have, count as 0.
    """
    refuse_other_interval(smoke, checkpoint_interval)
    spacing = checkpoint_hours(smoke, checkpoint_interval)
    hours = smoke["hours"].values.astype(float)
    before = previous_snapshot(fire, hours)
    first = before < 0
    gap = np.where(first, np.maximum(hours, spacing), hours - hours[before])
    if (gap <= 0.0).any():
        row = int(np.argmax(gap <= 0.0))
        raise PlumecastError(
            f"fire {fire[row]}: two snapshots at {hours[row]:g} h; every hour may occur once"
        )
    axis = smoke.dims.index(SNAPSHOT)
    values = np.moveaxis(smoke.values, axis, 0)
    shape = (-1,) + (1,) * (values.ndim - 1)
    rates = values - values[before]
    rates[first] = values[first]
    np.maximum(rates, 0.0, out=rates)
    rates *= (spacing / gap).reshape(shape).astype(rates.dtype)
    return described(smoke.copy(data=np.moveaxis(rates, 0, axis)), BETWEEN, spacing)


def previous_snapshot(fire: np.ndarray, hours: np.ndarray) -> np.ndarray:
    """(M,) row of the snapshot of the same fire before each one; −1 for the first of a fire.

    >>> previous_snapshot(np.array(["a", "b", "a"]), np.array([12.0, 6.0, 6.0]))
    array([ 2, -1, -1])
    """
    order = np.lexsort((hours, fire))
    before = np.full(fire.size, -1, dtype=np.int64)
    same = fire[order[1:]] == fire[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return before
