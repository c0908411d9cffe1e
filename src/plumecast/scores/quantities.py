"""The quantities that people read, as views of the dose D(t) = ∫₀ᵗ c dt of the column mean c.

The paper's smoke is a sum g = Σ c_k over frames that are Δ hours apart and end at the hour h of the
snapshot. Its size depends on Δ; what is read does not:

- the dose D(h), in µg m⁻³ h;
- the time-mean column concentration D(h) / h, in µg m⁻³;
- the mean concentration between two snapshots, (D₂ − D₁) / (h₂ − h₁), in µg m⁻³, and its peak, the
  highest one so far.

The dose of stored smoke is the trapezoid over the frames, from no smoke at ignition: Δ g without
half of the newest frame, which is g minus that of the frame before (`stored_dose`). Surrogates that
carry smoke predict the dose itself, from the integral of the carried smoke, and keep it beside the
sum (`predicted_dose`). That of others is Δ g ρ(h), with the factor ρ of the training fires by hour
(`dose_table`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import (
    DOSE_ERROR,
    INTERVAL,
    equal_interval,
    recorded_interval,
    smoke_comment,
)
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import DOSE_SCALE, SMOKE, SNAPSHOT, shown_units
from plumecast.compute.dose import (
    LEAST_HOURS,
    even_factor,
    growth_rates,
    largest_so_far,
    limited_by_later,
    stored_dose,
)
from plumecast.scores.predicted_dose import DOSE_ATTRIBUTES, predicted_dose, without_dose

DOSE_HOURS, DOSE_FACTORS = "dose_hours", "dose_factors"
"""Attributes of predicted smoke: hours since ignition, and there the mean factor ρ = D / (Δ g) of
training fires."""

INTEGRATED = "integrated"
"""Attribute of predicted values that are ∫ c dt / Δ instead of the sum over frames."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A multiple of the dose; `factor` is of the hours since ignition."""

    name: str
    long_name: str
    units: str
    factor: Callable[[np.ndarray], np.ndarray]
    needs_interval: bool = True

    @property
    def shown_units(self) -> str:
        """The units for people: "µg m⁻³ h"."""
        return shown_units(self.units)

    @property
    def attrs(self) -> dict[str, str]:
        """Name and units, as attributes."""
        return {"long_name": self.long_name, "units": self.units}


QUANTITIES = {
    item.name: item
    for item in (
        Quantity(
            "mean",
            "time-mean column concentration of smoke since ignition",
            "ug m-3",
            lambda hours: 1.0 / np.maximum(hours, LEAST_HOURS),
        ),
        Quantity("dose", DOSE_ATTRIBUTES["long_name"], DOSE_ATTRIBUTES["units"], np.ones_like),
        Quantity(
            "sum",
            "sum of column-mean smoke concentrations over checkpoints",
            "ug m-3",
            np.ones_like,
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
    np.ones_like,
)
"""What `smoke_between` gives: no multiple of one snapshot, so that it is not in `QUANTITIES`."""

PEAK = Quantity(
    "peak",
    "highest mean column concentration of smoke between snapshots since ignition",
    "ug m-3",
    np.ones_like,
)
"""What `smoke_peak` gives."""


def find_quantity(name: str, known: Mapping[str, Quantity] = QUANTITIES) -> Quantity:
    """The quantity of a name; raises for an unknown one."""
    if name not in known:
        advice = f"choose from {', '.join(known)}"
        raise ArgumentError("quantity", name, advice, problem="is unknown")
    return known[name]


def checkpoint_hours(smoke: xr.DataArray | xr.Variable, interval: float | None = None) -> float:
    """The interval between checkpoints in hours: the stated one, or that which smoke records."""
    hours = recorded_interval(smoke.attrs) if interval is None else interval
    if hours is None:
        raise ArgumentError(
            "checkpoint_interval",
            None,
            f"'{getattr(smoke, 'name', SMOKE)}' does not record the interval between its "
            "checkpoints, so that its time mean is unknown; give it in hours, or use the quantity "
            "'sum'",
        )
    if not 0.0 < hours < np.inf:
        problem = "must be a positive number of hours"
        raise ArgumentError("checkpoint_interval", hours, problem=problem)
    return float(hours)


def refuse_other_interval(smoke: xr.DataArray | xr.Variable, stated: float | None) -> None:
    """Raise if smoke records another interval than the stated one."""
    recorded = recorded_interval(smoke.attrs)
    if stated is None or recorded is None or stated <= 0.0:
        return
    if equal_interval([recorded, stated]) is None:
        problem = f"contradicts the {recorded:g} h that '{getattr(smoke, 'name', SMOKE)}' records"
        raise ArgumentError("checkpoint_interval", stated, "leave it out", problem=problem)


def quantity_factors(
    snapshots: xr.Dataset | xr.DataArray,
    smoke: xr.DataArray | xr.Variable,
    quantity: str = DEFAULT,
    interval: float | None = None,
) -> np.ndarray:
    """(M,) factors that turn the smoke of snapshots into a quantity.

    `snapshots` has the coordinate `hours`; `smoke` the attribute with the interval, unless
    `interval` states it, and that with the factors of the dose, if a surrogate predicted it.
    """
    chosen = find_quantity(quantity)
    count = snapshots.sizes.get(SNAPSHOT, 1)
    if not chosen.needs_interval:
        return np.ones(count)
    spacing = checkpoint_hours(smoke, interval)
    if "hours" not in snapshots.coords:
        raise ArgumentError(
            "quantity",
            quantity,
            "add them, or use the quantity 'sum'",
            problem="needs the hours since ignition of every snapshot (coordinate 'hours')",
        )
    hours = np.broadcast_to(snapshots["hours"].values.astype(float), (count,))
    return factors_at(hours, chosen, spacing, smoke.attrs)


def factors_at(
    hours: np.ndarray, quantity: Quantity, interval: float, attrs: Mapping[str, Any]
) -> np.ndarray:
    """(M,) factors that turn smoke with these attributes into a quantity, at hours since ignition.

    >>> factors_at(np.array([1.0, 2.0]), QUANTITIES["mean"], 1.0, {}).round(3).tolist()
    [0.5, 0.333]
    """
    if not quantity.needs_interval:
        return np.ones(hours.shape)
    return np.asarray(interval * dose_factor(attrs, hours, interval) * quantity.factor(hours))


def dose_factor(attrs: Mapping[str, Any], hours: np.ndarray, interval: float) -> np.ndarray:
    """(M,) factors ρ = D / (Δ g) at hours since ignition.

    They are those of a table in the attributes, linear in between, and of even growth before its
    first hour. Beyond its last hour the share of the newest frame, 2 (1 − ρ), falls with 1 / h.
    Without a table the column mean is taken to grow evenly: ρ = n / (n + 1) with n = h / Δ frames,
    and n / 2 before the first frame. Values that are integrated have no factor.

    >>> dose_factor({}, np.array([0.5, 1.0, 2.0]), 1.0).round(3).tolist()
    [0.25, 0.5, 0.667]
    """
    if attrs.get(INTEGRATED):
        return np.ones(hours.shape)
    if DOSE_HOURS not in attrs:
        return even_factor(hours, interval)
    known, factors = (np.atleast_1d(attrs[name]) for name in (DOSE_HOURS, DOSE_FACTORS))
    beyond = np.maximum(hours, known[-1])
    late = 1.0 - (1.0 - factors[-1]) * known[-1] / beyond
    inside = np.interp(hours, known, factors)
    first = even_factor(known[:1], interval)[0]
    early = even_factor(hours, interval) * (factors[0] / first)
    inside = np.where(hours < known[0], early, inside)
    return np.asarray(np.where(hours > known[-1], late, inside))


def dose_attributes(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the attributes of smoke that its dose depends on, for its error bars."""
    names = (INTERVAL, DOSE_HOURS, DOSE_FACTORS, INTEGRATED)
    return {name: attrs[name] for name in names if name in attrs}


def dose_table(
    fire: np.ndarray,
    hours: np.ndarray,
    totals: np.ndarray,
    interval: float,
    scale: np.ndarray | None = None,
) -> dict[str, list[float]]:
    """The attributes DOSE_HOURS and DOSE_FACTORS from (M,) total smoke of training snapshots.

    Snapshots within a quarter of an interval share an entry: the ratio of their total doses to
    their total sums. Empty if no snapshot has smoke.
    """
    doses = stored_dose(totals[:, np.newaxis], fire, hours, interval, scale)[:, 0] / interval
    bins = np.round(hours / (0.25 * interval)).astype(np.int64)
    table: dict[str, list[float]] = {DOSE_HOURS: [], DOSE_FACTORS: []}
    for number in np.unique(bins):
        own = (bins == number) & (hours > 0.0)
        if totals[own].sum() > 0.0:
            table[DOSE_HOURS].append(float(hours[own].mean()))
            table[DOSE_FACTORS].append(float(doses[own].sum() / totals[own].sum()))
    return table if table[DOSE_HOURS] else {}


def doses(
    smoke: xr.DataArray, fire: np.ndarray | None = None, interval: float | None = None
) -> np.ndarray:
    """(M, …) doses of stored or predicted smoke, snapshots first; they never fall within a fire.

    A predicted dose may, and is then limited by later ones (`limited_by_later`).

    `fire` (M,) names the fire of every snapshot, by default its coordinate `fire_id`.
    """
    made, fire = _each_dose(smoke, fire, interval)
    hours = np.broadcast_to(_hours_of(smoke), made.shape[:1])
    return made if fire is None else np.asarray(limited_by_later(made, fire, hours))


def _each_dose(
    smoke: xr.DataArray, fire: np.ndarray | None = None, interval: float | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """(M, …) doses that may fall within a fire, where they are predicted, and the (M,) fires."""
    values = smoke.transpose(SNAPSHOT, ...).values if SNAPSHOT in smoke.dims else smoke.values[None]
    hours = np.broadcast_to(_hours_of(smoke), values.shape[:1])
    if fire is None and "fire_id" in smoke.coords:
        names = np.array(smoke["fire_id"].values.tolist(), dtype=str)  # or strings of NumPy 2
        fire = np.broadcast_to(names, values.shape[:1])
    if (predicted := predicted_dose(smoke)) is not None:
        order = smoke.transpose(SNAPSHOT, ..., missing_dims="ignore").dims
        made = predicted.transpose(*order).values.reshape(values.shape)
    elif not {DOSE_HOURS, INTEGRATED} & set(smoke.attrs) and fire is not None:
        spacing = checkpoint_hours(smoke, interval)
        made = stored_dose(values, fire, hours, spacing, _scale(smoke, hours.size))
    else:
        spacing = checkpoint_hours(smoke, interval)
        shape = (-1,) + (1,) * (values.ndim - 1)
        made = values * (spacing * dose_factor(smoke.attrs, hours, spacing)).reshape(shape)
    return made.astype(smoke.dtype, copy=False), fire


def as_integrals(smoke: xr.DataArray, interval: float | None = None) -> xr.DataArray:
    """Stored or predicted smoke as values of ∫ c dt / Δ; as it is where this is unknown.

    All snapshots of a fire should be there, or at least the one before each.
    """
    known = recorded_interval(smoke.attrs) if interval is None else interval
    if known is None or "hours" not in smoke.coords or INTEGRATED in smoke.attrs:
        return smoke
    made = _each_dose(smoke, interval=known)[0] / known
    values = _like_smoke(made, smoke)
    return without_dose(smoke).copy(data=values).assign_attrs({INTERVAL: known, INTEGRATED: 1})


def _scale(smoke: xr.DataArray, count: int) -> np.ndarray | None:
    """(M,) coordinate `dose_scale` of smoke; other fields, such as error bars, have none."""
    if DOSE_SCALE not in smoke.coords or smoke.name not in (SMOKE, None):
        return None
    return np.broadcast_to(smoke[DOSE_SCALE].values.astype(float), (count,))


def _hours_of(smoke: xr.DataArray) -> np.ndarray:
    if "hours" not in smoke.coords:
        raise PlumecastError(
            f"'{smoke.name or SMOKE}' has no hours since ignition (coordinate 'hours'), which its "
            "dose needs; add them, or use the quantity 'sum'"
        )
    return smoke["hours"].values.astype(float)


def as_quantity(
    smoke: xr.DataArray, quantity: str = DEFAULT, *, checkpoint_interval: float | None = None
) -> xr.DataArray:
    """Smoke of the store, or predicted smoke, as a quantity that does not depend on the interval.

    `quantity` is "mean" (time mean since ignition, µg m⁻³), "dose" (µg m⁻³ h) or "sum". The
    interval between checkpoints is that which smoke records, or `checkpoint_interval`, in hours.

    >>> fields = xr.DataArray([[6.0], [8.0]], dims=["snapshot", "x"],
    ...     coords={"hours": ("snapshot", [6.0, 12.0]), "fire_id": ("snapshot", ["a", "a"])},
    ...     attrs={INTERVAL: 6.0})
    >>> as_quantity(fields, "dose").values.ravel().tolist()  # 6 · 6 / 2, + 6 · (6 + 2) / 2
    [18.0, 42.0]
    """
    if isinstance(smoke, xr.Dataset):
        names = ", ".join(map(str, smoke.data_vars))
        raise PlumecastError(f"give one variable, such as data['{SMOKE}'], of {names}")
    chosen = find_quantity(quantity)
    refuse_other_interval(smoke, checkpoint_interval)
    known = recorded_interval(smoke.attrs) if checkpoint_interval is None else checkpoint_interval
    if not chosen.needs_interval:
        return described(smoke, chosen, known)
    made = doses(smoke, interval=checkpoint_interval)
    per = chosen.factor(np.broadcast_to(_hours_of(smoke), made.shape[:1])).astype(made.dtype)
    made = made * per.reshape((-1,) + (1,) * (made.ndim - 1))
    return described(smoke.copy(data=_like_smoke(made, smoke)), chosen, known)


def _like_smoke(values: np.ndarray, smoke: xr.DataArray) -> np.ndarray:
    """(M, …) values in the order of the dimensions of smoke."""
    return (
        np.moveaxis(values, 0, smoke.dims.index(SNAPSHOT)) if SNAPSHOT in smoke.dims else values[0]
    )


def described(field: xr.DataArray, quantity: Quantity, interval: float | None) -> xr.DataArray:
    """The field with the meaning of a quantity: name, unit and comment.

    Of its attributes the grid mapping and the error of the dose stay: others, such as a floor, are
    values of the sum.
    """
    keys = ("grid_mapping", DOSE_ERROR) if quantity.needs_interval else ("grid_mapping",)
    kept = {key: value for key, value in field.attrs.items() if key in keys}
    attrs = kept | quantity.attrs
    if not quantity.needs_interval:
        attrs["comment"] = smoke_comment(interval)
        attrs |= {} if interval is None else {INTERVAL: interval}
    field = without_dose(field) if quantity.needs_interval else field
    return field.drop_attrs(deep=False).assign_attrs(attrs)


def smoke_between(
    smoke: xr.DataArray, fire: np.ndarray, *, checkpoint_interval: float | None = None
) -> xr.DataArray:
    """Mean column concentration between each snapshot and the one before it of the same fire.

    `fire` (M,) names the fire of every snapshot. The first snapshot of a fire is compared with its
    ignition, when there was no smoke.
    """
    refuse_other_interval(smoke, checkpoint_interval)
    spacing = checkpoint_hours(smoke, checkpoint_interval)
    rates = growth_rates(doses(smoke, fire, checkpoint_interval), fire, _hours_of(smoke))
    made = _like_smoke(rates.astype(smoke.dtype, copy=False), smoke)
    return described(smoke.copy(data=made), BETWEEN, spacing)


def smoke_peak(
    smoke: xr.DataArray, fire: np.ndarray, *, checkpoint_interval: float | None = None
) -> xr.DataArray:
    """The highest `smoke_between` of each fire so far: of hourly snapshots, of hourly means."""
    means = smoke_between(smoke, fire, checkpoint_interval=checkpoint_interval)
    rows = means.transpose(SNAPSHOT, ...)
    highest = rows.copy(data=np.asarray(largest_so_far(rows.values, fire, _hours_of(smoke))))
    spacing = checkpoint_hours(smoke, checkpoint_interval)
    return described(highest.transpose(*means.dims), PEAK, spacing)
