"""Fires at any hour since ignition, from their stored maps.

The age f of a cell is the integral of its burned share, which a fire holds or which follows from
its maps (`compute.burned`); it is scaled between two maps so that it meets both. A single map gives
earlier hours by the front that `operators.physics.release` reads from it. After the last map, or
the end of the history, nothing more burns.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import hour_ladder
from plumecast.base.errors import ArgumentError, PlumecastError, PlumecastWarning
from plumecast.base.names import (
    DOSE_SCALE,
    FIRE,
    HEIGHT,
    HISTORY,
    HISTORY_HOURS,
    SMOKE,
    SNAPSHOT,
    TABLE,
    WEATHER_HOUR,
    WIND,
)
from plumecast.compute.arrays import Array
from plumecast.compute.burned import Shares, shares_of
from plumecast.data.clock import Histories, with_history
from plumecast.data.covariates import read_scalar, wind_vector
from plumecast.data.schema import further_outputs
from plumecast.operators.carried.release import Front, partial_release_of
from plumecast.surrogate.weather import LONGEST
from plumecast.weather.profile import SURFACE
from plumecast.weather.snapshots import (
    LATE_START,
    CompletedWeather,
    complete_weather,
    has_weather,
    hold_weather,
    with_mean_winds,
)


class BeyondLastMap(PlumecastWarning):
    """Hours were asked for after the last map of a fire."""


class LeftOut(PlumecastWarning):
    """A fire has maps after the last of the hours that were asked for."""


def warn_of_ends(fires: xr.Dataset, hours: Sequence[float] | None) -> None:
    """Warn where the last of the hours asked for is after, or before, the end of fires.

    And where it is after that of their weather.
    """
    if hours is None or not {"fire_id", "hours"} <= set(fires.variables):
        return
    asked = float(checked_hours(hours)[-1])
    ends = fires["hours"].values.astype(np.float64)
    if HISTORY_HOURS in fires.variables:
        held = fires[HISTORY_HOURS].transpose(SNAPSHOT, HISTORY).values
        ends = np.fmax(ends, np.max(held, axis=1, initial=0.0, where=np.isfinite(held)))
    names, fire = np.unique(fires["fire_id"].values.astype(str), return_inverse=True)
    last = np.zeros(names.size)
    np.maximum.at(last, fire, ends)
    said: list[tuple[str, type[Warning]]] = []
    if early := (last > asked + 1e-6).sum():
        text = (
            f"{early} of {last.size} fires have maps later than {asked:g} h, until "
            f"{last.max():.4g} h: what is after the last of the hours asked for is left out"
        )
        said.append((text, LeftOut))
    if late := (last < asked - 1e-6).sum():
        text = (
            f"{late} of {last.size} fires have no map as late as {asked:g} h: after their last map "
            "nothing more burns"
        )
        said.append((text, BeyondLastMap))
    if (end := _weather_end(fires)) < asked - LATE_START:
        text = (
            f"the weather of the fires ends at {end:g} h: until {asked:g} h its last winds and "
            "boundary layers are held"
        )
        said.append((text, CompletedWeather))
    for text, category in said:
        warnings.warn(text, category, stacklevel=3)


def _weather_end(fires: xr.Dataset) -> float:
    """The last hour of the weather; infinite without one."""
    return float(fires[WEATHER_HOUR].values[-1]) if has_weather(fires) else np.inf


def at_hours(
    fires: xr.Dataset, hours: Sequence[float] | None = None, *, step: float | None = None
) -> xr.Dataset:
    """The fires of stored snapshots at other hours since ignition; without any, as they are.

    Every fire gets every hour of `hours`, by default its own last one. With a `step` it also gets
    the multiples of the step before. What the stored maps tell is kept beside as its history.
    Warnings say how many fires have maps after the last hour, and how many have none as late.
    """
    warn_of_ends(fires, hours)
    return moved_to(fires, hours, step=step)


def moved_to(
    fires: xr.Dataset, hours: Sequence[float] | None = None, *, step: float | None = None
) -> xr.Dataset:
    """`at_hours` of a part of the fires, without warnings of their ends."""
    if hours is None and step is None:
        return fires
    if step is not None and not 0.0 < step < np.inf:
        raise ArgumentError("step", step, problem="must be a positive number of hours")
    asked = None if hours is None else checked_hours(hours)
    fires = complete_weather(fires)
    if asked is not None and _weather_end(fires) < asked[-1]:
        fires = hold_weather(fires, float(asked[-1]))
    missing = [name for name in (FIRE, "fire_id", "hours") if name not in fires.variables]
    if missing:
        raise PlumecastError(
            f"'{missing[0]}' is missing, which fires at other hours than stored need"
        )
    told = Histories.of(fires)
    labels, stored, fields = told.names, told.hours, told.ages
    order = np.lexsort((stored, labels))
    ages, rows, times, areas = [], [], [], []
    past: list[Shares] = []
    area = fires["burned_area"].values if "burned_area" in fires.coords else np.zeros(labels.size)
    for name in dict.fromkeys(labels.tolist()):
        fire = order[labels[order] == name]
        if (np.diff(stored[fire]) <= 0.0).any():
            raise PlumecastError(f"fire {name}: two snapshots at one hour; each may occur once")
        last = float(stored[fire[-1]])
        wanted = np.array(hour_ladder([last] if asked is None else asked.tolist(), step))
        numbers = told.of_fire(fire)
        alone = any(not np.array_equal(other, numbers[-1]) for other in numbers)
        history = told.read(numbers[-1][:0] if alone else numbers[-1])
        burning = burning_of(stored[fire], fields[fire], history)
        ages.append(_ages(wanted, stored[fire], fields[fire], burning))
        areas.append(_areas(wanted, stored[fire], area[fire], burning))
        rows.append(fire[np.minimum(np.searchsorted(stored[fire], wanted - 1e-9), fire.size - 1)])
        times.append(wanted)
        past += [history] * wanted.size
    others = [SMOKE, DOSE_SCALE, *further_outputs(fires)]  # of the stored hours
    made = fires.drop_vars(others, errors="ignore").drop_dims(HISTORY, errors="ignore")
    made = made.isel({SNAPSHOT: np.concatenate(rows)})
    dims = (SNAPSHOT, *(dim for dim in fires[FIRE].dims if dim != SNAPSHOT))
    field = np.concatenate(ages).astype(fires[FIRE].dtype)
    made = made.assign({FIRE: (dims, field, fires[FIRE].attrs)})
    final = np.concatenate([np.arange(fire.size) == fire.size - 1 for fire in times])
    made = made.assign_coords(
        hours=(SNAPSHOT, np.concatenate(times), TABLE["hours"].attrs),
        is_final=(SNAPSHOT, final, TABLE["is_final"].attrs),
    )
    if "burned_area" in fires.coords:
        made = made.assign_coords(burned_area=made["burned_area"].copy(data=np.concatenate(areas)))
    return with_history(_with_winds(made, fires), past)


def checked_hours(hours: Sequence[float]) -> Array:
    """Ascending hours above 0, each once."""
    asked = np.unique(np.atleast_1d(np.asarray(hours, dtype=np.float64)))
    if asked.size == 0 or not np.isfinite(asked).all() or asked[0] <= 0.0:
        raise ArgumentError(
            "hours", np.atleast_1d(hours).tolist(), "give hours since ignition above 0"
        )
    if asked[-1] > LONGEST:
        raise ArgumentError(
            "hours",
            asked[-1],
            "check the unit, or ask for fewer",
            problem=f"is more than the {LONGEST:g} h over which smoke is carried",
        )
    return asked


def burning_of(hours: Array, maps: Array, history: Shares | None = None) -> Shares | Front:
    """How a fire with the maps (k, ny, nx) at (k,) ascending hours burns.

    `history` is that of the fire; without nodes after ignition, the maps alone tell it.
    """
    maps = np.asarray(maps, dtype=np.float64)
    if history is not None and history.hours.size > 1:
        return history
    if hours.size == 1 and hours[0] > 0.0:
        return partial_release_of(maps, np.full((1, 1, 1), hours[0]))
    return shares_of(hours[None], maps[None])


def ages_at(asked: Array, hours: Array, maps: Array, history: Shares | None = None) -> Array:
    """(n,) hours → (n, ny, nx) ages of a fire, as `burning_of`."""
    return _ages(asked, hours, maps, burning_of(hours, maps, history))


def _ages(asked: Array, hours: Array, maps: Array, burning: Shares | Front) -> Array:
    """The ages at the hours asked for, scaled between two maps so that they meet both."""
    maps = np.asarray(maps, dtype=np.float64)
    nodes = np.append(0.0, hours)
    values = np.concatenate([np.zeros_like(maps[:1]), maps])
    times = np.concatenate([asked, nodes])
    ended = isinstance(burning, Front)  # nothing more burns after a single map
    until = np.minimum(times, hours[-1]) if ended else times
    grown = np.asarray(burning.ages(until[:, None])[:, 0], dtype=np.float64)
    if ended:
        grown += (times - until)[:, None, None] * np.asarray(burning.by(hours[-1:, None])[0])
    grown, at_nodes = grown[: asked.size], grown[asked.size :]
    made = np.empty((asked.size, *maps.shape[1:]))
    for out, time, age in zip(made, asked, grown, strict=True):
        if time >= hours[-1]:
            out[:] = maps[-1] + np.maximum(age - at_nodes[-1], 0.0)
            continue
        after = int(np.searchsorted(nodes, time, side="right"))
        whole, part = at_nodes[after] - at_nodes[after - 1], age - at_nodes[after - 1]
        evenly = (time - nodes[after - 1]) / (nodes[after] - nodes[after - 1])
        share = np.where(whole > ROUNDING, part / np.maximum(whole, ROUNDING), evenly)
        out[:] = values[after - 1] + np.clip(share, 0.0, 1.0) * (values[after] - values[after - 1])
    return made


def _areas(asked: Array, hours: Array, areas: Array, burning: Shares | Front) -> Array:
    """(n,) burned areas at the hours asked for; between two maps they follow the burned shares."""
    times = np.concatenate([asked, hours])
    shares = np.asarray(burning.by(np.minimum(times, hours[-1])[:, None])[:, 0], dtype=np.float64)
    burned = shares.sum(axis=(-2, -1))
    at_maps = np.maximum.accumulate(np.append(0.0, burned[asked.size :]))
    return np.asarray(np.interp(burned[: asked.size], at_maps, np.append(0.0, areas)))


ROUNDING = 1e-5
"""Hours: ages of single precision."""


def _along(made: xr.Dataset, fires: xr.Dataset, values: Array) -> Array:
    """(n, k) values of stored snapshots → (m, k) at the hours of others, linear within a fire."""
    names, stored = fires["fire_id"].values.astype(str), fires["hours"].values.astype(np.float64)
    asked, hours = made["fire_id"].values.astype(str), made["hours"].values
    out = np.empty((asked.size, values.shape[1]))
    for name in np.unique(asked):
        fire, rows = np.flatnonzero(names == name), asked == name
        fire = fire[np.argsort(stored[fire])]
        out[rows] = np.stack(
            [np.interp(hours[rows], stored[fire], v) for v in values[fire].T], axis=1
        )
    return out


def _with_winds(made: xr.Dataset, fires: xr.Dataset) -> xr.Dataset:
    """Snapshots with their mean winds since ignition: at stored hours the stored ones.

    In between they follow the hourly weather, if its lowest winds are those at 10 m. Their
    differences to the stored ones, or without it the stored ones themselves, are interpolated.
    """
    moved = made.drop_vars(list(WIND), errors="ignore")
    follows = has_weather(made) and made[HEIGHT].values[0] <= SURFACE
    if any(name not in fires.variables for name in WIND):
        return with_mean_winds(moved) if follows else made
    winds = _wind_vectors(fires)
    if not follows:
        winds = _along(made, fires, winds)
    else:
        difference = winds - _wind_vectors(with_mean_winds(fires.drop_vars(list(WIND))))
        moved = with_mean_winds(moved)
        winds = _wind_vectors(moved) + _along(made, fires, difference)
    east, north = winds.T
    speed, direction = np.hypot(east, north), np.rad2deg(np.arctan2(-east, -north)) % 360.0
    values = dict(zip(WIND, (speed, direction), strict=True))
    return made.assign_coords(
        {name: (SNAPSHOT, value, TABLE[name].attrs) for name, value in values.items()}
    )


def _wind_vectors(snapshots: xr.Dataset) -> Array:
    """(M, 2) mean winds towards east and north."""
    return wind_vector(*(read_scalar(snapshots, name) for name in WIND))
