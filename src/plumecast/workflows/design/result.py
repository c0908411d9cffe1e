"""A design: the ignitions to run, in order, and those that are held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.names import FIRE, SNAPSHOT, WIND
from plumecast.compute.arrays import Array
from plumecast.workflows.design.candidates import Candidates

CHOSEN, MUST_HAVE, HOLD_OUT = "chosen", "must-have", "hold-out"
"""Roles of the ignitions of a design."""

HOLD_OUT_REASON = (
    "drawn at random before the choice: error bars need fires that are like those of the pool, "
    "which chosen fires are not; do not train on them"
)


@dataclass(frozen=True, slots=True)
class Run:
    """One ignition of a design."""

    rank: int  # from 1, in the order in which to run them
    ignition_id: str
    role: str
    x: float  # m, of the cell that burned first
    y: float
    wind_speed: float | None  # m s⁻¹, mean over its fires; None if unknown
    wind_from_direction: float | None  # °
    cost: float
    expected_error: float | None  # after this run and those before it, see Design


@dataclass(frozen=True, slots=True)
class Design:
    """Ignitions to run, in order, and the hold-out.

    The expected error after k runs is √(v_k / v_0), where v_k is the mean, over the candidates with
    their probabilities, of the variance of a Gaussian process on what the surrogate sees, after the
    given runs and the first k of the design; v_0 is that after the given runs alone. It is the part
    of the error that more runs can reduce, for a surrogate that is as flexible as the process.
    """

    runs: tuple[Run, ...]
    method: str
    places: xr.Dataset  # x, y by `ignition_id` of all candidates; burned (run, y, x) of the runs

    @property
    def chosen(self) -> tuple[str, ...]:
        """The ignitions to run and train on, in order; must-have ones first."""
        return tuple(run.ignition_id for run in self.runs if run.role != HOLD_OUT)

    @property
    def held_out(self) -> tuple[str, ...]:
        """The ignitions to run and keep for error bars."""
        return tuple(run.ignition_id for run in self.runs if run.role == HOLD_OUT)


def make_runs(
    pool: Candidates,
    order: list[int],
    first: list[int],
    held: list[int],
    costs: Array,
    errors: Array,
) -> tuple[Run, ...]:
    """The runs of the ignitions `order`, then `held`; `errors` (1 + len(order),) are expected."""
    runs = []
    for rank, number in enumerate([*order, *held], start=1):
        trained = rank <= len(order)
        role = MUST_HAVE if number in first else CHOSEN
        x, y = _ignition_point(pool, number)
        speed, direction = _wind(pool, number)
        runs.append(
            Run(
                rank=rank,
                ignition_id=pool.names[number],
                role=role if trained else HOLD_OUT,
                x=x,
                y=y,
                wind_speed=speed,
                wind_from_direction=direction,
                cost=float(costs[number]),
                expected_error=float(errors[rank]) if trained else None,
            )
        )
    return tuple(runs)


def places_of(pool: Candidates, numbers: list[int]) -> xr.Dataset:
    """Where all candidates begin, and the cells that the numbered ones burn."""
    points = np.array([_ignition_point(pool, number) for number in range(len(pool.names))])
    fire = pool.snapshots[FIRE]
    burned = [
        (fire.isel({SNAPSHOT: _last_rows(pool, number)}) > 0.0).any(SNAPSHOT) for number in numbers
    ]
    return xr.Dataset(
        {
            "ignition_x": ("ignition_id", points[:, 0]),
            "ignition_y": ("ignition_id", points[:, 1]),
            "burned": (("run", *fire.dims[1:]), np.stack([one.values for one in burned])),
        },
        coords={"ignition_id": list(pool.names), "x": fire["x"], "y": fire["y"]},
    )


def _last_rows(pool: Candidates, number: int) -> Array:
    """Rows of the last snapshot of every fire of an ignition."""
    rows = np.flatnonzero(pool.member == number)
    hours = pool.snapshots["hours"].values[rows]
    fires = pool.snapshots["fire_id"].values[rows].astype(str)
    names = np.unique(fires)
    return np.array([rows[fires == name][np.argmax(hours[fires == name])] for name in names])


def _ignition_point(pool: Candidates, number: int) -> tuple[float, float]:
    """x and y of the cell that has burned longest."""
    last = pool.snapshots[FIRE].isel({SNAPSHOT: int(_last_rows(pool, number)[0])})
    row, column = np.unravel_index(int(np.argmax(last.values)), last.shape)
    return float(pool.snapshots["x"].values[column]), float(pool.snapshots["y"].values[row])


def _wind(pool: Candidates, number: int) -> tuple[float | None, float | None]:
    """Mean wind speed, and the direction of the mean vector, over the fires of an ignition."""
    if any(name not in pool.snapshots.variables for name in WIND):
        return None, None
    last = pool.snapshots.isel({SNAPSHOT: _last_rows(pool, number)})
    speed, direction = (last[name].values.astype(np.float64) for name in WIND)
    angle = np.deg2rad(direction)
    east, north = (speed * np.sin(angle)).mean(), (speed * np.cos(angle)).mean()
    return float(speed.mean()), float(np.rad2deg(np.arctan2(east, north)) % 360.0)
