"""Choose the ignitions that are worth an expensive run, before any of them is run.

The runs are written as CSV; weights and costs of ignitions are read from CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import FIRE
from plumecast.base.tables import NUMBER, Column, TableFormat, read_table, write_table
from plumecast.base.values import check_count
from plumecast.compute.arrays import Array
from plumecast.workflows.design.candidates import (
    Candidates,
    Values,
    check_alike,
    read_candidates,
    values_of,
)
from plumecast.workflows.design.kernel import (
    METHODS,
    NOISE,
    Choice,
    draw_groups,
    fit_kernel,
    mean_variances,
    surrogate_features,
)

DEFAULT_METHOD = "variance"

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


def design_runs(
    candidates: str | Path | xr.Dataset,
    n: int,
    *,
    given: str | Path | xr.Dataset | None = None,
    method: str = DEFAULT_METHOD,
    weights: Values = None,
    costs: Values = None,
    must_have: Sequence[str] = (),
    hold_out: int = 0,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> Design:
    """Choose whole ignitions, with their weather, from a pool of cheap fires.

    Parameters
    ----------
    candidates
        A store or a Dataset in the snapshot contract; smoke is not needed.
    n
        Number of ignitions to choose.
    given
        Runs that exist already, on the same grid.
    method
        "variance", the run that lowers the mean variance over the candidates most, or "random".
    weights, costs
        How probable the candidates are, and what their runs cost: by ignition, in the order of
        their sorted names, or the name of a coordinate; by default all are equal.
    must_have
        Ignitions that are among the `n`.
    hold_out
        Number of further ignitions that are drawn at random first, by their weights: chosen fires
        are not like those of the pool, so that error bars need others.
    seed
        Of the hold-out and of "random".
    progress
        Called with the name of each step.
    """
    if method not in METHODS:
        raise ArgumentError(
            "method", method, f"choose from {', '.join(METHODS)}", problem="is unknown"
        )
    if costs is not None and method == "random":
        raise PlumecastError(f"costs have no effect with method={method}; leave them out")
    check_count("n", n)
    check_count("hold_out", hold_out, least=0)
    check_count("seed", seed, least=0)
    progress("reading")
    pool = read_candidates(candidates)
    probable = values_of(pool, weights, "weights")
    if not probable.sum() > 0.0:
        raise PlumecastError("weights are all 0; give a positive one to some candidates")
    probable = probable / probable.sum()
    cost = values_of(pool, costs, "costs", positive=True)
    first = _must_have(pool, must_have, n)
    existing = None if given is None else read_candidates(given, "given")
    allowed = probable > 0.0
    if existing is not None:
        check_alike(pool, existing)
        allowed &= ~_already_run(pool, existing, first)
    _check_enough(allowed, n, hold_out, first)
    free = allowed.copy()
    free[first] = False
    held = draw_groups(probable, free, np.random.default_rng([seed, 1]))[:hold_out]
    allowed[held] = False
    progress("features")
    parts = [pool.snapshots] if existing is None else [pool.snapshots, existing.snapshots]
    features = surrogate_features(parts, pool.member)
    kernel, rows = fit_kernel(features[0], np.concatenate(features))
    choice = Choice(rows, pool.groups(), kernel, NOISE, probable, cost, allowed, seed)
    progress("choosing")
    order = METHODS[method](choice, n, first)
    variances = mean_variances(choice, order)
    errors = np.sqrt(variances / variances[0]) if variances[0] > 0.0 else 0.0 * variances
    return Design(
        _make_runs(pool, [*order, *held], first, cost, errors),
        method,
        _places_of(pool, [*order, *held]),
    )


def _already_run(pool: Candidates, existing: Candidates, first: Sequence[int]) -> Array:
    """(G,) whether an ignition of the pool is among the given runs.

    Runs that were made from written WRF-Fire inputs are named after their fire.
    """
    done = [*existing.names, *np.unique(existing.snapshots["fire_id"].values.astype(str))]
    fires = pool.snapshots["fire_id"].values.astype(str)
    run = np.isin(pool.names, existing.names)
    run |= np.array([np.isin(fires[rows], done).all() for rows in pool.groups()])
    for number in first:
        if run[number]:
            problem, advice = "is among the given runs already", "leave it out of must_have"
            raise ArgumentError("must_have", pool.names[number], advice, problem=problem)
    return run


def _must_have(pool: Candidates, names: Sequence[str], n: int) -> list[int]:
    numbers = [pool.number(str(name), "must_have") for name in names]
    if len(set(numbers)) < len(numbers):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ArgumentError("must_have", twice, "name it once", problem="is named twice")
    if len(numbers) > n:
        raise ArgumentError(
            "n", n, "raise n", problem=f"is less than the {len(numbers)} ignitions of must_have"
        )
    return numbers


def _check_enough(allowed: Array, n: int, hold_out: int, first: Sequence[int]) -> None:
    possible = np.union1d(np.flatnonzero(allowed), first).size
    if n + hold_out > possible:
        apart = f"with {hold_out} to hold out " if hold_out else ""
        whole = "" if possible == allowed.size else (
            f" that may be chosen (of {allowed.size}; not those given, nor those with weight 0)"
        )  # fmt: skip
        problem = f"{apart}is more than the {possible} candidate ignitions{whole}"
        raise ArgumentError("n", n, "lower it or add candidates", problem=problem)


def _make_runs(
    pool: Candidates, order: list[int], first: list[int], costs: Array, errors: Array
) -> tuple[Run, ...]:
    """The runs in order; those beyond the expected `errors`, which begin before any, are held."""
    runs = []
    for rank, number in enumerate(order, start=1):
        trained = rank < errors.size
        role = MUST_HAVE if number in first else CHOSEN
        runs.append(
            Run(
                rank,
                pool.names[number],
                role if trained else HOLD_OUT,
                *pool.ignition_point(number),
                *pool.mean_wind(number),
                float(costs[number]),
                float(errors[rank]) if trained else None,
            )
        )
    return tuple(runs)


def _places_of(pool: Candidates, numbers: list[int]) -> xr.Dataset:
    """Where all candidates begin, and the cells that the numbered ones burn."""
    points = np.array([pool.ignition_point(number) for number in range(len(pool.names))])
    fire = pool.snapshots[FIRE]
    burned = [(fire.values[pool.last_rows(number)] > 0.0).any(axis=0) for number in numbers]
    return xr.Dataset(
        {
            "ignition_x": ("ignition_id", points[:, 0]),
            "ignition_y": ("ignition_id", points[:, 1]),
            "burned": (("run", *fire.dims[1:]), np.stack(burned)),
        },
        coords={"ignition_id": list(pool.names), "x": fire["x"], "y": fire["y"]},
    )


def write_runs(design: Design, path: str | Path) -> None:
    """Write the runs in order, one row each; what is unknown is empty."""
    names = [item.name for item in fields(Run)]
    formats = {"x": ".0f", "y": ".0f", "wind_speed": ".2f", "wind_from_direction": ".0f",
               "expected_error": ".4f", "cost": "g"}  # fmt: skip
    write_table(path, names, [astuple(run) for run in design.runs], formats=formats)


def read_values(path: str | Path, what: str) -> dict[str, float]:
    """Numbers of ignitions from a CSV table with the columns ignition_id and `what`."""
    columns = (Column("ignition_id", "ignition"), Column(what, "value", NUMBER))
    form = TableFormat(
        columns=columns, row="ignition", row_name="ignition_id", unique=("ignition_id",)
    )
    table = read_table(path, form)
    return dict(zip(table.texts["ignition_id"], table.numbers[what].tolist(), strict=True))
