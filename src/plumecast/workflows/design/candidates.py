"""Candidates of a design: a few snapshots of every ignition, and what identifies it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SNAPSHOT, WIND
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.data.clock import checkpoint_interval
from plumecast.data.covariates import FUEL_LOAD
from plumecast.data.layout import checked_field, fit_layout
from plumecast.data.schema import check_structure, check_values
from plumecast.data.store import open_snapshots
from plumecast.data.training import along_snapshots
from plumecast.data.writers import describe_grid
from plumecast.weather.snapshots import STATE_WEATHER, has_weather, with_mean_winds

SHARES = (0.5, 1.0)
"""Snapshots of every fire that count: those nearest to these shares of its last hour."""

IGNITION = "ignition_id"

_BLOCK = 256  # snapshots read at once


@dataclass(frozen=True, slots=True)
class Candidates:
    """A few snapshots of every ignition, in memory."""

    snapshots: xr.Dataset
    names: tuple[str, ...]  # ignitions, sorted
    member: Array  # (M,) number of every snapshot's ignition

    def groups(self) -> list[Array]:
        """Row numbers of every ignition."""
        return [np.flatnonzero(self.member == number) for number in range(len(self.names))]

    def number(self, name: str, argument: str) -> int:
        """Number of an ignition; raises if there is no such one."""
        if name not in self.names:
            raise PlumecastError(
                f"{argument}={name} is not among the {len(self.names)} candidate ignitions "
                f"({', '.join(self.names[:3])}, …); name one of them"
            )
        return self.names.index(name)


def read_candidates(data: str | Path | xr.Dataset, what: str = "candidates") -> Candidates:
    """The snapshots at half and at the end of every fire; smoke is not needed.

    `data` is a store or a Dataset in the snapshot contract. Raises for an ignition without any
    burned cell.
    """
    if not isinstance(data, xr.Dataset):
        data = open_snapshots(data, fields=[FIRE])
    else:
        data = with_mean_winds(check_structure(along_snapshots(data, SNAPSHOT), [FIRE]))
    for name in ("fire_id", "hours", IGNITION):
        if name not in data.variables:
            raise PlumecastError(
                f"{what}: coordinate '{name}' is missing; it tells which snapshots are one fire's"
            )
    rows = _few_rows(data["fire_id"].values.astype(str), data["hours"].values)
    kept = [name for name in data.variables if SNAPSHOT in data[name].dims and name != FIRE]
    fields = [name for name in kept if data[name].ndim == 3 and data[name].dims[1:] == ("y", "x")]
    interval = checkpoint_interval(data) or 1.0  # an attribute of the smoke, which is not read
    beside = [name for name in fields if name != FUEL_LOAD]
    few = data.drop_vars(beside).isel({SNAPSHOT: rows})
    few = check_values(few.load(), [FIRE]).assign_attrs({INTERVAL: interval})
    names, member = np.unique(few[IGNITION].values.astype(str), return_inverse=True)
    found = Candidates(few, tuple(map(str, names)), member)
    _refuse_empty(found, what)
    return found


def _few_rows(fires: Array, hours: Array) -> Array:
    """Rows of the snapshots nearest to SHARES of the last hour of every fire, in order."""
    order = np.lexsort((hours, fires))
    again = (fires[order][1:] == fires[order][:-1]) & (hours[order][1:] == hours[order][:-1])
    if again.any():
        row = order[1:][again][0]
        raise PlumecastError(
            f"fire '{fires[row]}' has two snapshots at {hours[row]:g} h; are two fires named "
            "alike? Give every fire an id of its own"
        )
    starts = np.flatnonzero(np.r_[True, fires[order][1:] != fires[order][:-1]])
    chosen: set[int] = set()
    for rows in np.split(order, starts[1:]):
        own = hours[rows]
        chosen |= {int(rows[np.argmin(np.abs(own - share * own[-1]))]) for share in SHARES}
    return np.array(sorted(chosen), dtype=np.int64)


def _refuse_empty(found: Candidates, what: str) -> None:
    burned = np.zeros(len(found.names), dtype=bool)
    fire = found.snapshots[FIRE]
    for rows in row_blocks(found.member.size, _BLOCK):
        block = fire.isel({SNAPSHOT: rows}).values
        burned[found.member[rows]] |= (block > 0.0).reshape(block.shape[0], -1).any(axis=1)
    empty = [name for name, any_burned in zip(found.names, burned, strict=True) if not any_burned]
    if empty:
        raise PlumecastError(
            f"{what}: ignition '{empty[0]}'{_more(empty)} has no burned cell; leave it out"
        )


def check_alike(pool: Candidates, given: Candidates) -> None:
    """Raise unless given runs are on the grid of the candidates, and both have weather or none."""
    field = fit_layout(pool.snapshots, [FIRE]).fields[0]
    try:
        checked_field(given.snapshots[FIRE], field)
    except PlumecastError:
        raise PlumecastError(
            f"given: the runs are on another grid ({describe_grid(given.snapshots)}) than the "
            f"candidates ({describe_grid(pool.snapshots)}); ingest them onto the same grid"
        ) from None
    known = [_weather_of(part.snapshots) for part in (pool, given)]
    if known[0] != known[1]:
        who, other = ("candidates", "given runs") if known[0] < known[1] else (
            "given runs", "candidates",
        )  # fmt: skip
        raise PlumecastError(
            f"the {who} have no {WEATHER_KINDS[max(known)]}, which the {other} have; "
            f"{STATE_WEATHER}"
        )


WEATHER_KINDS = ("", "mean wind", "hourly weather")


def _weather_of(data: xr.Dataset) -> int:
    """0 without weather, 1 with mean winds, 2 with hourly weather."""
    if has_weather(data):
        return 2
    return int(all(name in data.variables for name in WIND))


def values_of(
    pool: Candidates, given: Mapping[str, float] | Sequence[float] | str | None, argument: str
) -> Array:
    """(G,) numbers of the ignitions: from a mapping, a coordinate, or a value each; default 1."""
    count = len(pool.names)
    if given is None:
        return np.ones(count)
    if isinstance(given, str):
        return _coordinate(pool, given, argument)
    if isinstance(given, Mapping):
        for name in given:
            pool.number(str(name), argument)
        missing = [name for name in pool.names if name not in given]
        if missing:
            raise PlumecastError(
                f"{argument}: ignition '{missing[0]}'{_more(missing)} has no value; give one for "
                "every candidate"
            )
        return _numbers([given[name] for name in pool.names], pool, argument)
    if len(given) != count:
        raise PlumecastError(
            f"{argument} has {len(given)} values; give one for each of the {count} ignitions, in "
            "the order of their names, or a dictionary"
        )
    return _numbers(list(given), pool, argument)


def _coordinate(pool: Candidates, name: str, argument: str) -> Array:
    """The mean over the snapshots of every ignition of a coordinate."""
    data = pool.snapshots
    if name not in data.variables or data[name].dims != (SNAPSHOT,):
        known = [str(n) for n in data.coords if data[n].dims == (SNAPSHOT,)]
        raise PlumecastError(
            f"{argument}={name} is no coordinate of the snapshots; found {', '.join(known)}"
        )
    if data[name].dtype.kind not in "fiub":
        raise PlumecastError(f"{argument}={name} holds {data[name].dtype}, not numbers")
    values = data[name].values.astype(np.float64)
    return _numbers([values[rows].mean() for rows in pool.groups()], pool, argument)


def _numbers(values: Sequence[float], pool: Candidates, argument: str) -> Array:
    numbers = np.array(values, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers) | (numbers < 0.0))
    if wrong.size:
        name = pool.names[wrong[0]]
        raise PlumecastError(
            f"{argument} of ignition '{name}' is {numbers[wrong[0]]:g}; give a finite number that "
            "is not negative"
        )
    return numbers


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""
