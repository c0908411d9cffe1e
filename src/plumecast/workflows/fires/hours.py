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
from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.names import (
    DOSE_SCALE,
    FIRE,
    HEIGHT,
    HISTORY,
    HISTORY_HOURS,
    SMOKE,
    SNAPSHOT,
    TABLE,
)
from plumecast.compute.arrays import Array
from plumecast.compute.burned import Shares, shares_of
from plumecast.data.clock import Histories, with_history
from plumecast.data.conditions.covariates import WIND
from plumecast.data.conditions.weather import SURFACE, has_weather, with_mean_winds
from plumecast.data.schema import further_outputs
from plumecast.operators.physics.release import partial_release_of
from plumecast.surrogate.weather import complete_weather


class BeyondLastMap(PlumecastWarning):
    """Hours were asked for after the last map of a fire."""


class LeftOut(PlumecastWarning):
    """A fire has maps after the last of the hours that were asked for."""


def warn_of_ends(fires: xr.Dataset, hours: Sequence[float] | None) -> None:
    """Warn where the last of the hours asked for is after, or before, the end of fires."""
    if hours is None or len(hours) == 0 or not {"fire_id", "hours"} <= set(fires.variables):
        return
    asked = float(max(hours))
    ends = fires["hours"].values.astype(np.float64)
    if HISTORY_HOURS in fires.variables:
        held = fires[HISTORY_HOURS].transpose(SNAPSHOT, HISTORY).values
        ends = np.fmax(ends, np.max(held, axis=1, initial=0.0, where=np.isfinite(held)))
    names, fire = np.unique(fires["fire_id"].values.astype(str), return_inverse=True)
    last = np.zeros(names.size)
    np.maximum.at(last, fire, ends)
    early, late = (last > asked + 1e-6).sum(), (last < asked - 1e-6).sum()
    if early:
        warnings.warn(
            f"{early} of {last.size} fires have maps later than {asked:g} h, until "
            f"{last.max():.4g} h: what is after the last of the hours asked for is left out",
            LeftOut,
            stacklevel=3,
        )
    if late:
        warnings.warn(
            f"{late} of {last.size} fires have no map as late as {asked:g} h: after their last map "
            "nothing more burns",
            BeyondLastMap,
            stacklevel=3,
        )


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
    fires = complete_weather(fires)
    asked = None if hours is None else checked_hours(hours)
    missing = [name for name in (FIRE, "fire_id", "hours") if name not in fires.variables]
    if missing:
        raise PlumecastError(
            f"'{missing[0]}' is missing, which fires at other hours than stored need"
        )
    told = Histories.of(fires)
    labels, stored, fields = told.names, told.hours, told.ages
    order = np.lexsort((stored, labels))
    ages, rows, times = [], [], []
    past: list[Shares | None] = []
    for name in dict.fromkeys(labels.tolist()):
        own = order[labels[order] == name]
        if (np.diff(stored[own]) <= 0.0).any():
            raise PlumecastError(f"fire {name}: two snapshots at one hour; each may occur once")
        last = float(stored[own[-1]])
        wanted = np.array(hour_ladder([last] if asked is None else asked.tolist(), step))
        numbers = told.of_fire(own)
        alone = any(not np.array_equal(other, numbers[-1]) for other in numbers)
        history = told.read(numbers[-1][:0] if alone else numbers[-1])
        ages.append(ages_at(wanted, stored[own], fields[own], history))
        rows.append(own[np.minimum(np.searchsorted(stored[own], wanted - 1e-9), own.size - 1)])
        times.append(wanted)
        past += [history, *([None] * (wanted.size - 1))]  # its first snapshot holds it for all
    others = [SMOKE, DOSE_SCALE, *further_outputs(fires)]  # of the stored hours
    made = fires.drop_vars(others, errors="ignore").drop_dims(HISTORY, errors="ignore")
    made = made.isel({SNAPSHOT: np.concatenate(rows)})
    dims = (SNAPSHOT, *(dim for dim in fires[FIRE].dims if dim != SNAPSHOT))
    made = made.assign(
        {FIRE: (dims, np.concatenate(ages).astype(fires[FIRE].dtype), fires[FIRE].attrs)}
    )
    return with_history(_labelled(made, fires, times), past)


def checked_hours(hours: Sequence[float]) -> Array:
    """Ascending hours above 0, each once."""
    asked = np.unique(np.asarray(hours, dtype=np.float64))
    if asked.size == 0 or not np.isfinite(asked).all() or asked[0] <= 0.0:
        raise PlumecastError(f"hours={list(hours)!r}; give hours since ignition above 0")
    return asked


def ages_at(asked: Array, hours: Array, maps: Array, history: Shares | None = None) -> Array:
    """(n,) hours → (n, ny, nx) ages of a fire with the maps (k, ny, nx) at (k,) ascending hours.

    `history` is that of the fire; without nodes after ignition, the maps alone tell it.
    """
    maps = np.asarray(maps, dtype=np.float64)
    history = None if history is None or history.hours.size == 1 else history
    if history is None and hours.size == 1 and hours[0] > 0.0:
        front = partial_release_of(maps, np.full((1, 1, 1), hours[0]))
        own = np.asarray(front.ages(np.full((1, 1), hours[0]))[0, 0], dtype=np.float64)
        scale = np.where(own > 0.0, maps[0] / np.where(own > 0.0, own, 1.0), 0.0)
        early = scale * np.asarray(front.ages(np.minimum(asked, hours[0])[:, None])[:, 0])
        share = np.asarray(front.by(np.full((1, 1), hours[0]))[0, 0])
        late = np.maximum(asked - hours[0], 0.0)[:, None, None]
        return np.asarray(early + late * share)
    nodes = np.append(0.0, hours)
    values = np.concatenate([np.zeros_like(maps[:1]), maps])
    shares = history or shares_of(hours[None], maps[None])
    times = np.concatenate([asked, nodes])
    grown = np.asarray(shares.ages(times[:, None])[:, 0], dtype=np.float64)
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


ROUNDING = 1e-5
"""Hours: ages of single precision."""


def _labelled(made: xr.Dataset, fires: xr.Dataset, times: Sequence[Array]) -> xr.Dataset:
    """The snapshots with their hours, and the scalars of a fire at these."""
    hours = np.concatenate(times)
    final = np.concatenate([np.arange(own.size) == own.size - 1 for own in times])
    coords = {
        "hours": (SNAPSHOT, hours, TABLE["hours"].attrs),
        "is_final": (SNAPSHOT, final, TABLE["is_final"].attrs),
    }
    if "burned_area" in fires.coords:
        names, known = fires["fire_id"].values.astype(str), fires["hours"].values
        area = fires["burned_area"].values
        values = np.empty(hours.size)
        for row, name in enumerate(made["fire_id"].values.astype(str)):
            own = np.flatnonzero(names == name)
            own = own[np.argsort(known[own])]
            values[row] = np.interp(
                hours[row], np.append(0.0, known[own]), np.append(0.0, area[own])
            )
        coords["burned_area"] = (SNAPSHOT, values, fires["burned_area"].attrs)
    made = made.assign_coords(coords)
    if not has_weather(made) or made[HEIGHT].values[0] > SURFACE:
        return made  # winds of the nearest later map
    return with_mean_winds(made.drop_vars(list(WIND), errors="ignore"))
