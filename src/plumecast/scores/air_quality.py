"""The US air quality index of PM2.5 at the ground, from 24 h means. Not for column means."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL, recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.names import COLUMN, LEVEL, LOWEST, SMOKE, SNAPSHOT, SURFACE_SMOKE
from plumecast.compute.arrays import Array
from plumecast.scores.quantities import doses

PM25 = (0.0, 9.0, 35.4, 55.4, 125.4, 225.4, 325.4)
INDEX = (0.0, 50.0, 100.0, 150.0, 200.0, 300.0, 500.0)
"""Breakpoints of the 24 h mean PM2.5, µg m⁻³, and of the index (US EPA, May 2024)."""

CATEGORIES = (
    "good",
    "moderate",
    "unhealthy for sensitive groups",
    "unhealthy",
    "very unhealthy",
    "hazardous",
    "beyond the index",
)
"""What the index up to each breakpoint is called; the last is for values above the table."""

DAY = 24.0  # h
_TOLERANCE = 0.1  # of the longest gap: how much longer one may be


def air_quality_index(pm25_24h: Any) -> Any:
    """US air quality index of the 24 h mean concentration of PM2.5 at the ground, µg m⁻³.

    It is linear between the breakpoints, with the concentration truncated to 0.1 µg m⁻³ and the
    index rounded, as the EPA does: 9.1 begins the next category, at 51. NaN stays NaN. Above 325.4
    it is infinite: beyond the index (500+). A DataArray gives a DataArray; one that is a column
    mean, another tracer or a sum over checkpoints is refused.

    >>> air_quality_index(np.array([9.0, 9.1, 35.4, 100.0, 400.0]))
    array([ 50.,  51., 100., 182.,  inf])
    """
    if isinstance(pm25_24h, xr.DataArray):
        _check_field(pm25_24h)
        index = pm25_24h.copy(data=_index(pm25_24h.values)).rename("air_quality_index")
        kept = {key: value for key, value in pm25_24h.attrs.items() if key == "grid_mapping"}
        return index.drop_attrs(deep=False).assign_attrs(
            units="1",
            long_name="US air quality index of PM2.5",
            comment="24 h mean, breakpoints of May 2024; infinite is beyond the index (500+)",
            **kept,
        )
    return _index(np.asarray(pm25_24h, dtype=np.float64))


def _index(values: Array) -> Array:
    values = np.asarray(values, dtype=np.float64)
    if (values < 0.0).any():
        raise PlumecastError(
            f"pm25_24h has a value of {np.nanmin(values):g} µg m⁻³; concentrations are not negative"
        )
    tenths = np.floor(np.round(values * 10.0, 6))
    index = np.where(np.isnan(values), np.nan, np.inf)
    for number in range(1, len(PM25)):
        # Segments begin one tenth and one unit after the breakpoint before, as in the EPA's table.
        low, high = (round(10.0 * edge) for edge in PM25[number - 1 : number + 1])
        base, top = INDEX[number - 1 : number + 1]
        if number > 1:
            low, base = low + 1, base + 1.0
        here = (tenths >= low) & (tenths <= high)
        index[here] = np.round(base + (top - base) * (tenths[here] - low) / (high - low))
    return index


def air_quality_category(index: float) -> str:
    """What a value of the index is called.

    >>> air_quality_category(42.0), air_quality_category(151.0), air_quality_category(np.inf)
    ('good', 'unhealthy', 'beyond the index')
    """
    if np.isnan(index):
        return "unknown"
    return CATEGORIES[int(np.searchsorted(INDEX[1:], index))]


def _check_field(field: xr.DataArray) -> None:
    """Raise unless a field may be a 24 h mean of PM2.5 at the ground."""
    name, level = str(field.name).removesuffix("_24h"), field.attrs.get(LEVEL)
    column = name == SMOKE or (name.startswith(f"{SMOKE}_") and level is None)
    if column or level == COLUMN:
        raise PlumecastError(
            f"'{name}' is a column mean, and the air quality index is for the air at the ground; "
            f"read the lowest layer ('{SURFACE_SMOKE}') by plumecast ingest wrf --surface"
        )
    tracer = name.removeprefix(f"{SURFACE_SMOKE}_") if name != SURFACE_SMOKE else ""
    if tracer not in ("", name) and not tracer.lower().startswith("pm2"):
        raise PlumecastError(f"'{name}' is {tracer}, and the index is that of PM2.5")
    if INTERVAL in field.attrs:
        raise PlumecastError(
            f"'{name}' is a sum over checkpoints, and the index is for the mean over 24 h; use "
            f"pc.scores.day_mean(snapshots, '{name}') first"
        )


def _dose_at(
    time: float, rows: np.ndarray, hours: np.ndarray, dose: np.ndarray, longest: float
) -> np.ndarray:
    """The dose of a fire, whose snapshots are `rows`, at a time; NaN in gaps that are too long."""
    rows = rows[np.argsort(hours[rows])]
    nearest = rows[int(np.argmin(np.abs(hours[rows] - time)))]
    if abs(hours[nearest] - time) <= _TOLERANCE * longest:
        return np.asarray(dose[nearest])
    after = int(np.searchsorted(hours[rows], time))
    upper = rows[after]  # the snapshot itself is later
    begin = 0.0 if after == 0 else hours[rows[after - 1]]
    lower = np.zeros_like(dose[upper]) if after == 0 else dose[rows[after - 1]]
    gap = hours[upper] - begin
    if gap > longest * (1.0 + _TOLERANCE):
        return np.full_like(lower, np.nan)
    share = (time - begin) / gap
    return np.asarray((1.0 - share) * lower + share * dose[upper])


def day_mean(snapshots: xr.Dataset, name: str = SURFACE_SMOKE) -> xr.DataArray:
    """Mean of a smoke variable over the 24 h before every snapshot, µg m⁻³.

    It is (D(t) − D(t − 24 h)) / 24 h with the dose D of the smoke, which is linear between
    snapshots and 0 before ignition. It is NaN where the snapshots around t − 24 h are further
    apart than the frames.
    """
    missing = [key for key in (name, "fire_id", "hours") if key not in snapshots.variables]
    if missing:
        raise PlumecastError(f"'{missing[0]}' is missing, which a mean over 24 h needs")
    field = snapshots[name].transpose(SNAPSHOT, ...)
    interval = recorded_interval(field.attrs)
    if interval is None:
        raise PlumecastError(
            f"'{name}' does not record the interval between its checkpoints; set its attribute "
            f"'{INTERVAL}' to the hours between them"
        )
    fires, hours = snapshots.fire_id.values.astype(str), snapshots.hours.values.astype(np.float64)
    labelled = field.assign_coords(hours=(SNAPSHOT, hours))
    dose = doses(labelled, fires).astype(np.float64)
    before = np.zeros_like(dose)
    for row in np.flatnonzero(hours > DAY):
        before[row] = _dose_at(hours[row] - DAY, np.flatnonzero(fires == fires[row]), hours, dose,
                               interval)  # fmt: skip
    mean = np.maximum(dose - before, 0.0) / DAY
    kept = {key: value for key, value in field.attrs.items() if key in ("grid_mapping", LEVEL)}
    level = f" in the {LOWEST}" if kept.get(LEVEL, LOWEST if name == SURFACE_SMOKE else "") else ""
    meaning = {"long_name": f"24 h mean of {name}{level}", "cell_methods": "time: mean"}
    plain = field.copy(data=mean).drop_attrs(deep=False).rename(f"{name}_24h")
    return plain.assign_attrs({"units": "ug m-3"} | meaning | kept)
