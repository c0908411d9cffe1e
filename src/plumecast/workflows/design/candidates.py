"""Candidates of a design: a few snapshots of every ignition, and what identifies it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import FIRE, SNAPSHOT, WIND
from plumecast.compute.arrays import Array
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
            problem = f"is not among the {len(self.names)} candidate ignitions "
            problem += f"({', '.join(self.names[:3])}, …)"
            raise ArgumentError(argument, name, "name one of them", problem=problem)
        return self.names.index(name)

    def last_rows(self, number: int) -> Array:
        """Rows of the last snapshot of every fire of an ignition."""
        rows = np.flatnonzero(self.member == number)
        rows = rows[np.argsort(self.snapshots["hours"].values[rows], kind="stable")]
        fires = self.snapshots["fire_id"].values[rows[::-1]].astype(str)
        return np.asarray(rows[::-1][np.unique(fires, return_index=True)[1]])

    def ignition_point(self, number: int) -> tuple[float, float]:
        """x and y of the cell that has burned longest."""
        last = self.snapshots[FIRE].isel({SNAPSHOT: int(self.last_rows(number)[0])})
        row, column = np.unravel_index(int(np.argmax(last.values)), last.shape)
        return float(self.snapshots["x"].values[column]), float(self.snapshots["y"].values[row])

    def mean_wind(self, number: int) -> tuple[float | None, float | None]:
        """Mean speed, and the direction of the mean vector, over the fires; None if unknown."""
        if any(name not in self.snapshots.variables for name in WIND):
            return None, None
        last = self.snapshots.isel({SNAPSHOT: self.last_rows(number)})
        speed, direction = (last[name].values.astype(np.float64) for name in WIND)
        angle = np.deg2rad(direction)
        east, north = (speed * np.sin(angle)).mean(), (speed * np.cos(angle)).mean()
        return float(speed.mean()), float(np.rad2deg(np.arctan2(east, north)) % 360.0)


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
    labels, member = np.unique(few[IGNITION].values.astype(str), return_inverse=True)
    names = tuple(map(str, labels))
    burned = (few[FIRE] > 0.0).any([dim for dim in few[FIRE].dims if dim != SNAPSHOT]).values
    empty = [name for number, name in enumerate(names) if not burned[member == number].any()]
    if empty:
        raise PlumecastError(
            f"{what}: ignition '{empty[0]}'{_more(empty)} has no burned cell; leave it out"
        )
    return Candidates(few, names, member)


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
        apart = (np.abs(hours[rows] - share * hours[rows[-1]]) for share in SHARES)
        chosen |= {int(rows[np.argmin(distance)]) for distance in apart}
    return np.array(sorted(chosen), dtype=np.int64)


def check_alike(pool: Candidates, runs: Candidates) -> None:
    """Raise unless given runs are on the grid of the candidates, and both have weather or none."""
    field = fit_layout(pool.snapshots, [FIRE]).fields[0]
    try:
        checked_field(runs.snapshots[FIRE], field)
    except PlumecastError:
        raise PlumecastError(
            f"given: the runs are on another grid ({describe_grid(runs.snapshots)}) than the "
            f"candidates ({describe_grid(pool.snapshots)}); ingest them onto the same grid"
        ) from None
    kinds = ("", "mean wind", "hourly weather")
    weathers = []
    for part in (pool.snapshots, runs.snapshots):
        has_winds = all(name in part.variables for name in WIND)
        weathers.append(2 if has_weather(part) else int(has_winds))
    if weathers[0] != weathers[1]:
        who = ["candidates", "given runs"]
        less, more = who if weathers[0] < weathers[1] else who[::-1]
        raise PlumecastError(
            f"the {less} have no {kinds[max(weathers)]}, which the {more} have; {STATE_WEATHER}"
        )


Values = Mapping[str, float] | Sequence[float] | str | None
"""Numbers of ignitions: by name, a value each, the name of a coordinate, or 1 for all."""


def values_of(pool: Candidates, values: Values, argument: str, *, positive: bool = False) -> Array:
    """(G,) numbers of the ignitions, finite and not negative; of a coordinate the mean."""
    data, count = pool.snapshots, len(pool.names)
    if values is None:
        return np.ones(count)
    if isinstance(values, str):
        if values not in data.variables or data[values].dims != (SNAPSHOT,):
            present = ", ".join(str(n) for n in data.coords if data[n].dims == (SNAPSHOT,))
            problem = "is no coordinate of the snapshots"
            raise ArgumentError(argument, values, f"found {present}", problem=problem)
        if data[values].dtype.kind not in "fiub":
            problem = f"holds {data[values].dtype}, not numbers"
            raise ArgumentError(argument, values, problem=problem)
        each = data[values].values.astype(np.float64)
        numbers = np.array([each[rows].mean() for rows in pool.groups()])
    elif isinstance(values, Mapping):
        for name in values:
            pool.number(str(name), argument)
        missing = [name for name in pool.names if name not in values]
        if missing:
            raise PlumecastError(
                f"{argument}: ignition '{missing[0]}'{_more(missing)} has no value; give one for "
                "every candidate"
            )
        numbers = np.array([values[name] for name in pool.names], dtype=np.float64)
    elif len(values) == count:
        numbers = np.array(values, dtype=np.float64)
    else:
        raise PlumecastError(
            f"{argument} has {len(values)} values; give one for each of the {count} ignitions, in "
            "the order of their names, or a dictionary"
        )
    wrong = ~np.isfinite(numbers) | (numbers < 0.0)
    for bad, advice in (
        (wrong, "a finite number that is not negative"),
        (positive & (numbers == 0.0), "a cost above 0"),
    ):
        if bad.any():
            first = int(np.argmax(bad))
            raise PlumecastError(
                f"{argument} of ignition '{pool.names[first]}' is {numbers[first]:g}; give {advice}"
            )
    return numbers


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""
