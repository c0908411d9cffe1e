"""What each fire brings to each place: when smoke arrives, its peak, daily means and dose.

Every fire is predicted at every hour until its last one, block by block; only the values at the
places are kept. All are views of the dose D(h) in µg m⁻³ h, which is linear between the hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import IGNITION_TIME, SNAPSHOT
from plumecast.base.version import __version__
from plumecast.compute.arrays import Array
from plumecast.compute.resources import LOCAL, Resources
from plumecast.scores.quantities import QUANTITIES
from plumecast.scores.reading import read_as, variable_name
from plumecast.sources.places import Places, read_places
from plumecast.sources.rasters import ArrivalTimes
from plumecast.surrogate.error_bars.interval import CERTAIN, LOWER, POSSIBLE, UPPER
from plumecast.surrogate.guards import EXTRAPOLATES
from plumecast.surrogate.surrogate import Surrogate
from plumecast.weather.read import WeatherLike, accepts_winds
from plumecast.workflows.export import FOOTPRINT
from plumecast.workflows.fires.sources import UNCHANGED, Overrides
from plumecast.workflows.held_out.record import model_record
from plumecast.workflows.predict import Notify, predict_store, warn_of
from plumecast.workflows.statistics.point_table import OUTSIDE

HOUR, DAY = 1.0, 24.0  # h

ENDS = ("", "_lower", "_upper")

NO, MAYBE, YES = range(3)
"""Whether a place lies in the footprint of a fire."""

_RELATIVE = (
    "its interval is the calibrated relative error bar of the dose at the hour of its end or, "
    "where no smoke is predicted, that of the dose divided by the hours"
)

ATTRIBUTES: Mapping[str, Mapping[str, Any]] = {
    "footprint": {
        "long_name": "whether smoke is present since ignition",
        "units": "1",
        "flag_values": np.array([NO, MAYBE, YES], dtype=np.int8),
        "flag_meanings": "no possible yes",
        "comment": "yes: the detection score is above the decision threshold; possible: it is not, "
        "but the place lies in the set of possible smoke (with an interval only)",
    },
    "arrival": {
        "long_name": "first hour since ignition with smoke present",
        "units": "h",
        "comment": "smoke arrives within the hour that ends then, and is present from then on; "
        "missing: it does not arrive; the interval is from the first hour of possible smoke to "
        "that of certain smoke",
    },
    "peak": {
        "long_name": "highest hourly mean of the column concentration of smoke",
        "units": "ug m-3",
        "comment": _RELATIVE,
    },
    "peak_hour": {
        "long_name": "hour since ignition at which the hour with the peak ends",
        "units": "h",
        "comment": "missing without smoke; it has no interval",
    },
    "dose": {**QUANTITIES["dose"].attrs, "comment": "at the last hour of the fire"},
    "daily_mean": {
        "long_name": "mean column concentration of smoke over a day since ignition",
        "units": "ug m-3",
        "comment": f"the last day ends with the fire, and its mean too; {_RELATIVE}",
    },
}
"""The variables of `smoke_at_places`; ends of intervals add "_lower" and "_upper"."""


@accepts_winds
def smoke_at_places(
    surrogate: Surrogate,
    fires: xr.Dataset | str | Path | ArrivalTimes,
    places: Places | str | Path,
    overrides: Overrides = UNCHANGED,
    *,
    interval: float | None = None,
    checkpoint_interval: float | None = None,
    weather: WeatherLike | None = None,
    resources: Resources = LOCAL,
    notify: Notify = warn_of,
) -> xr.Dataset:
    """When smoke of each fire arrives at each place, its peak, daily means and dose.

    Parameters
    ----------
    surrogate, fires, weather, resources, notify
        As for `predict_store`. Of several outputs the first one is read; `Surrogate.output`
        chooses another.
    places
        A table (`read_places`), or what was read from it. Places outside the grid have no values;
        the attribute `places_outside` names them.
    overrides
        As for `predict_store`. Fires are followed to the last of its hours, by default to their
        own last hour, in steps of an hour if no other `step` is given. Without hours, fires of
        more than 48 h are followed in 48 steps.
    interval
        Coverage of error bars, such as 0.9, which are added as `…_lower` and `…_upper`.
    checkpoint_interval
        Hours between the checkpoints of smoke that does not record them.

    Returns
    -------
    xr.Dataset
        The variables of `ATTRIBUTES` (fire, place), `daily_mean` also along `day`. Without a
        decision threshold the surrogate does not tell `footprint` and `arrival`.
    """
    where = places if isinstance(places, Places) else read_places(places, surrogate.grid, keep=True)
    field = surrogate.outputs.fields[0]
    reading = read_as({field.name: field.attrs}, "dose", checkpoint_interval)
    if interval is not None:
        reading = replace(reading, bands={LOWER: field.name, UPPER: field.name})
    if isinstance(fires, ArrivalTimes):
        read = fires.options
        fires = replace(fires, options=replace(read, **_every_hour(read.hours, read.step)))
    else:
        overrides = replace(overrides, **_every_hour(overrides.hours, overrides.step))
    limits = surrogate.record.thresholds
    blocks = predict_store(
        surrogate,
        fires,
        overrides,
        threshold=None if limits is None else limits.decision,
        interval=interval,
        weather=weather,
        resources=resources,
        notify=notify,
    )
    told = [
        fire
        for block in reading.applied(blocks, keep=False)
        for fire in _fires_of(block, where, field.name)
    ]
    if not told:
        raise PlumecastError("there are no fires; give at least one store or raster")
    return _labelled(surrogate, where, told, interval)


def _every_hour(hours: Sequence[float] | None, step: float | None) -> dict[str, Any]:
    """The hours since ignition with all full hours before the last one, and the step."""
    if step is not None or not hours:
        return {"hours": hours, "step": HOUR if step is None else step}
    full = np.arange(HOUR, max(hours), HOUR).tolist()
    return {"hours": sorted({*map(float, hours), *full}), "step": HOUR}


@dataclass(frozen=True, slots=True)
class _Fire:
    """What one fire brings to P places."""

    labels: Mapping[str, Any]  # its name, last hour and flags
    step: float  # longest time between two of its hours
    values: Mapping[str, Array]  # (P,), daily means (P, days)


def _fires_of(block: xr.Dataset, places: Places, smoke: str) -> Iterator[_Fire]:
    """The fires of a block, which has all their snapshots."""
    read = {
        "dose": variable_name(smoke, "dose"),
        "dose_lower": variable_name(LOWER, "dose"),
        "dose_upper": variable_name(UPPER, "dose"),
        "present": FOOTPRINT,
        "possible": POSSIBLE,
        "certain": CERTAIN,
    }
    at = {
        name: places.at(block[variable]).transpose(SNAPSHOT, "place").values.astype(np.float64)
        for name, variable in read.items()
        if variable in block
    }
    names, hours = block["fire_id"].values.astype(str), block["hours"].values.astype(np.float64)
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        rows = rows[np.argsort(hours[rows])]
        flags = int(np.bitwise_or.reduce(block[EXTRAPOLATES].values[rows]))
        labels: dict[str, Any] = {"fire": name, "hours": hours[rows[-1]], EXTRAPOLATES: flags}
        for label in ("ignition_id", IGNITION_TIME):
            if label in block.coords:
                values = np.broadcast_to(block[label].values.astype(str), names.shape)
                labels[label] = str(values[rows[0]])
        step = float(np.diff(hours[rows], prepend=0.0).max())
        yield _Fire(labels, step, summary(hours[rows], {key: own[rows] for key, own in at.items()}))


def summary(hours: Array, at: Mapping[str, Array]) -> dict[str, Array]:
    """Arrival, peak, dose and daily means (P,) of one fire, from its values (H, P) at (H,) hours.

    `at` has the dose, perhaps its ends `dose_lower` and `dose_upper`, and the flags `present`,
    `possible` and `certain`.
    """
    made: dict[str, Array] = {}
    dose = at["dose"]
    if "present" in at:
        made |= _presence(hours, at)
    window = np.maximum(np.diff(hours, prepend=0.0), HOUR)
    means = (dose - _at_times(hours - window, hours, dose)) / window[:, None]
    means = np.maximum(means, 0.0)
    every, peak = np.arange(dose.shape[1]), means.max(axis=0)
    best = np.where(peak > 0.0, np.argmax(means, axis=0), hours.size - 1)
    made["peak_hour"] = np.where(peak > 0.0, hours[best], np.nan)
    edges = np.unique(np.append(np.arange(0.0, hours[-1], DAY), hours[-1]))
    spans = np.diff(edges)[:, None]
    daily = np.maximum(np.diff(_at_times(edges, hours, dose), axis=0) / spans, 0.0)
    for end in ENDS:
        if f"dose{end}" not in at:
            continue
        own = at[f"dose{end}"]
        made[f"dose{end}"] = own[-1]
        made[f"peak{end}"] = _scaled(peak, own[best, every], dose[best, every], HOUR)
        ends, doses = (_at_times(edges[1:], hours, values) for values in (own, dose))
        made[f"daily_mean{end}"] = _scaled(daily, ends, doses, spans).T
    return made


def _presence(hours: Array, at: Mapping[str, Array]) -> dict[str, Array]:
    """Footprint and arrival; the first hours of possible and of certain smoke enclose it.

    Smoke since ignition does not vanish: as for doses, a later prediction limits those before.
    """

    def first(flags: Array) -> Array:
        lasting = np.minimum.accumulate(flags[::-1], axis=0)[::-1] > 0.0
        return np.where(lasting[-1], hours[np.argmax(lasting, axis=0)], np.nan)

    made = {"arrival": first(at["present"])}
    footprint = np.where(at["present"][-1] > 0.0, YES, NO)
    if "possible" in at:
        footprint = np.where((footprint == NO) & (at["possible"][-1] > 0.0), MAYBE, footprint)
        made["arrival_lower"] = np.fmin(made["arrival"], first(at["possible"]))
        made["arrival_upper"] = np.maximum(made["arrival"], first(at["certain"]))
    return {"footprint": footprint.astype(np.int8), **made}


def _scaled(values: Array, ends: Array, doses: Array, hours: Array | float) -> Array:
    """Mean values over some hours times the relative error bar of the dose at their end.

    Where there is no dose, all of its error bar may fall into these hours.
    """
    relative = np.divide(ends, doses, out=np.zeros(doses.shape), where=doses > 0.0)
    return np.where(doses > 0.0, values * relative, ends / hours)


def _at_times(times: Array, hours: Array, values: Array) -> Array:
    """(n,) times → (n, P) values, which are 0 at ignition and linear between the hours."""
    nodes = np.append(0.0, hours)
    columns = [np.interp(times, nodes, np.append(0.0, column)) for column in values.T]
    return np.stack(columns, axis=1)


def _labelled(
    surrogate: Surrogate, places: Places, told: list[_Fire], interval: float | None
) -> xr.Dataset:
    """The fires one below the other; days after the end of a fire are missing."""
    days = max(fire.values["daily_mean"].shape[1] for fire in told)
    variables = {}
    for name in told[0].values:
        base = name.removesuffix("_lower").removesuffix("_upper")
        parts = [fire.values[name] for fire in told]
        dims: tuple[str, ...] = ("fire", "place")
        if base == "daily_mean":
            dims = (*dims, "day")
            parts = [
                np.pad(part, ((0, 0), (0, days - part.shape[1])), constant_values=np.nan)
                for part in parts
            ]
        attrs = dict(ATTRIBUTES[base])
        if name != base:
            end = name.removeprefix(f"{base}_")
            attrs["long_name"] = f"{end} end of the interval of the {attrs['long_name']}"
        variables[name] = (dims, np.stack(parts), attrs)
    coords: dict[str, Any] = {
        name: ("fire", [fire.labels[name] for fire in told])
        for name in told[0].labels
        if all(name in fire.labels for fire in told)
    }
    coords["hours"] += ({"long_name": "last hour since ignition", "units": "h"},)
    coords |= {"place": list(places.names), "day": np.arange(1, days + 1)}
    coords |= {name: ("place", numbers) for name, numbers in places.numbers.items()}
    if places.counties:
        coords["county"] = "place", list(places.counties)
    for axis, index in {"x": places.columns, "y": places.rows}.items():
        described = {"long_name": f"{axis} of the cell", "units": "m"}
        coords[f"cell_{axis}"] = "place", surrogate.grid[axis].values[index], described
    attrs = {
        "title": "Smoke of fires at places",
        "history": f"plumecast {__version__}",
        "places": places.source,
        "smoke": surrogate.outputs.names[0],
        "longest_step_hours": max(fire.step for fire in told),
        **model_record(surrogate),
    }
    if places.outside:
        attrs[OUTSIDE] = list(places.outside)
    if interval is not None:
        bars = surrogate.record.error_bars
        assert bars is not None  # the prediction has used them
        attrs |= {
            "coverage": float(interval),
            "promised_coverage": round(bars.promised(interval), 4),
        }
    return xr.Dataset(variables, coords=coords, attrs=attrs)
