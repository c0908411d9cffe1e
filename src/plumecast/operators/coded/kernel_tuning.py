"""Choose the length scale and the penalty of a kernel by leaving groups out, in closed form.

Arrays only, no labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, like, to_numpy
from plumecast.operators.coded.kernel_map import KernelMap, TrainingKernel, training_kernel
from plumecast.operators.coded.kernel_walk import Walk
from plumecast.operators.coded.kernels import has_length_scale
from plumecast.operators.ridge import (
    PenaltyPath,
    PenaltyScan,
    dual_path,
    penalty_grid,
    relative_scan,
    scan_penalties,
)

LENGTH_STEP = 2.0
"""Ratio of the length scales tried; the best is then refined by its square root, once."""

LENGTH_RANGE = (2.0**-5, 2.0**6)
"""Length scales the search stays within."""

COARSE_PENALTIES = 12
"""Penalties tried beside each length scale; those of the best are then scanned finely."""

SKETCH = 64
"""Random combinations of the targets that stand for all of them while choices are compared: errors
are norms over all snapshots, which so many combinations keep to about a percent, alike for every
choice. The errors reported are of all targets."""

SEARCH_ROWS = 1500
"""Snapshots the search for a length scale is made on; of more, whole groups at even steps, because
the cost of an eigendecomposition grows with the cube. All snapshots then walk on from its end, by
smaller steps (`kernel_walk`): the more there are, the shorter the length scale they support."""


@dataclass(frozen=True, slots=True)
class KernelScan:
    """The length scale and the penalty chosen, with what was tried on the way."""

    length_scale: float
    penalties: PenaltyScan  # of that length scale, the best and perhaps neighbours
    length_errors: dict[float, float]  # of the length scales tried on all snapshots, by the sketch
    residuals: Array  # (M, q), of every group by the map without it

    @property
    def penalty(self) -> float:
        """The penalty of the smallest error."""
        return self.penalties.best

    @property
    def error(self) -> float:
        """The smallest leave-one-group-out error, relative to ‖B‖."""
        return self.penalties.error


def tune_kernel_map(
    codes: Array,
    targets: Array,
    *,
    kernel: str,
    groups: list[Array],
    length_scale: float | None = None,
    penalty: float | None = None,
    anchored: bool,
) -> tuple[KernelMap, KernelScan]:
    """The map whose length scale and penalty minimise the leave-one-group-out error together.

    One eigendecomposition per length scale gives all its penalties. The search walks from 1 (the
    typical distance between snapshots) by factors of 2 while the error falls, then looks once
    halfway to either neighbour. A `length_scale` or `penalty` that is given is kept.
    """
    training = training_kernel(codes, kernel, anchored)
    if length_scale is not None:
        training.check(length_scale)
    some, tried = _sketched(targets), {}
    if length_scale is None and has_length_scale(kernel):
        part = _some_groups(training, some, groups)
        tried = _search(*part, penalty)
        length_scale = min(tried, key=tried.__getitem__)
        if part[0] is not training:
            start = _scan(*part, length_scale, penalty)
            return _walk_on(training, targets, groups, start)
    best = _scan(training, some, groups, length_scale or 1.0, penalty)
    path = replace(best.path, projected=best.path.vectors.T @ targets)
    penalties, residuals = _left_out(path, best.around(1), groups)
    fitted = training.fitted(best.length_scale, best.weights, path.dual_weights(penalties.best))
    return fitted, KernelScan(best.length_scale, penalties, tried, residuals)


def _left_out(
    path: PenaltyPath, grid: list[float], groups: list[Array]
) -> tuple[PenaltyScan, Array]:
    """The scan of a few penalties, and the residuals of the best of them."""
    xp = array_namespace(path.vectors)
    best, squares = None, []
    for residuals in path.leave_groups_out(grid, groups):
        squares.append(xp.sum(residuals**2))
        if best is None or float(squares[-1]) <= min(map(float, squares)):
            best = residuals
    return relative_scan(grid, xp.stack(squares), float(xp.sum(path.projected**2))), best


def _sketched(targets: Array) -> Array:
    """(M, q) targets → (M, ≤ SKETCH) combinations of them; always the same."""
    columns = targets.shape[1]
    if columns <= SKETCH:
        return targets
    mix = np.random.default_rng(0).standard_normal((columns, SKETCH)) / np.sqrt(SKETCH)
    return targets @ like(mix, targets, targets.dtype)


@dataclass(frozen=True, slots=True)
class _Scan:
    """All penalties of one length scale."""

    length_scale: float
    path: PenaltyPath
    penalties: PenaltyScan
    weights: tuple[float, ...]

    def around(self, steps: int) -> list[float]:
        """The best penalty and so many to either side of it."""
        grid = self.penalties.penalties
        index = grid.index(self.penalties.best)
        return grid[max(0, index - steps) : index + steps + 1]


def _scan(
    training: TrainingKernel,
    targets: Array,
    groups: list[Array],
    length_scale: float,
    penalty: float | None,
    tried: int = 40,
) -> _Scan:
    """With the penalty that is given, or so many `tried` of a grid."""
    matrix, weights = training(length_scale)
    path = dual_path(matrix, targets)
    # Every term has a mean diagonal of 1.
    grid = penalty_grid(float(len(weights)), tried) if penalty is None else [penalty]
    return _Scan(length_scale, path, scan_penalties(path, grid, groups), weights)


def _walk_on(
    training: TrainingKernel, targets: Array, groups: list[Array], start: _Scan
) -> tuple[KernelMap, KernelScan]:
    """From the end of a search on fewer snapshots, all snapshots walk on."""
    xp = array_namespace(targets)
    walk = Walk(
        training,
        _sketched(targets),
        groups,
        start=start.length_scale,
        step=LENGTH_STEP**0.5,
        reach=LENGTH_RANGE,
        grid=start.penalties.penalties,
    )
    best = walk(start.penalties.best)
    alpha, residuals = best.left_out(targets, groups)
    size = float(xp.sum(targets**2))
    scan = relative_scan([best.penalty], xp.stack([xp.sum(residuals**2)]), size)
    fitted = training.fitted(best.length_scale, best.weights, alpha)
    return fitted, KernelScan(best.length_scale, scan, walk.by_length(), residuals)


def _search(
    training: TrainingKernel, targets: Array, groups: list[Array], penalty: float | None
) -> dict[float, float]:
    """Smallest error of every length scale on the way downhill from 1, and around the lowest."""
    errors: dict[float, float] = {}

    def error(length: float) -> float:
        if length not in errors:
            errors[length] = _scan(
                training, targets, groups, length, penalty, COARSE_PENALTIES
            ).penalties.error
        return errors[length]

    def downhill(step: float) -> float:
        length = 1.0
        while LENGTH_RANGE[0] <= length * step <= LENGTH_RANGE[1]:
            if error(length * step) >= error(length):
                break
            length *= step
        return length

    best = downhill(LENGTH_STEP)
    if best == 1.0:
        best = downhill(1.0 / LENGTH_STEP)
    for ratio in (LENGTH_STEP**0.5, LENGTH_STEP**-0.5):
        if LENGTH_RANGE[0] <= best * ratio <= LENGTH_RANGE[1]:
            error(best * ratio)
    return errors


def _some_groups(
    training: TrainingKernel, targets: Array, groups: list[Array]
) -> tuple[TrainingKernel, Array, list[Array]]:
    """The same problem on whole groups of at most SEARCH_ROWS snapshots, at least two groups."""
    xp = array_namespace(training.support)
    total = int(training.support.shape[0])
    if total <= SEARCH_ROWS:
        return training, targets, groups
    step = max(1, min(-(-total // SEARCH_ROWS), len(groups) // 2))
    kept = groups[::step]
    rows = like(np.concatenate([to_numpy(part) for part in kept]), training.support)
    ends = np.cumsum([part.shape[0] for part in kept])
    alike = list(np.split(np.arange(ends[-1]), ends[:-1]))
    squares = training.squares
    if squares is not None:
        squares = xp.take(xp.take(squares, rows, axis=0), rows, axis=1)
    some = replace(training, support=xp.take(training.support, rows, axis=0), squares=squares)
    return some, xp.take(targets, rows, axis=0), alike
