"""Choose the length scale and the penalty of a kernel by leave-one-group-out errors.

The errors are computed in closed form, without refits. For up to SEARCH_ROWS snapshots, one
eigendecomposition per length scale gives the errors of all penalties. For more, that search is
made on a subset of the groups. Its result is the start of a descent on all snapshots (`Walk`),
which computes one inverse per pair of length scale and penalty. Arrays only, no labels.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field, replace

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, like, to_numpy
from plumecast.compute.linalg import inverse_positive
from plumecast.operators.coded.kernels import (
    KernelMap,
    TrainingKernel,
    has_length_scale,
    training_kernel,
)
from plumecast.operators.ridge import (
    PenaltyPath,
    PenaltyScan,
    dual_path,
    penalty_grid,
    plus_diagonal,
    scan_penalties,
    solve_blocks,
    stack_by_size,
)

LENGTH_STEP = 2.0
"""Ratio of neighbouring length scales; the best is refined once, by the square root of it."""

LENGTH_RANGE = (2.0**-5, 2.0**6)
"""Smallest and largest length scale that are tried."""

COARSE_PENALTIES = 12
"""Penalties tried with each length scale; with the best one a finer grid is tried."""

SKETCH = 64
"""Random combinations of the targets that replace them while choices are compared. They estimate
the norm of the residuals to about a percent, with nearly the same deviation for every choice. The
reported errors are those of all targets."""

SEARCH_ROWS = 1500
"""Largest number of snapshots in the search by eigendecompositions, whose cost grows with the cube
of it. Of more snapshots, every k-th group is used. A descent on all snapshots follows, because more
snapshots support a shorter length scale."""


@dataclass(frozen=True, slots=True)
class KernelScan:
    """The chosen length scale and penalty, and their leave-one-group-out residuals."""

    length_scale: float
    penalty: float
    error: float  # smallest leave-one-group-out error, relative to ‖B‖
    residuals: Array  # (M, q), of every group by a map that was fitted without it


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
    """The map whose length scale and penalty jointly minimise the leave-one-group-out error.

    The search starts at a length scale of 1 (the typical distance between snapshots), changes it by
    factors of 2 while the error decreases, then tries √2 to either side. A `length_scale` or
    `penalty` that is given is kept.
    """
    xp, training = array_namespace(codes), training_kernel(codes, kernel, anchored)
    if length_scale is not None:
        training.check(length_scale)
    sketch = _sketched(targets)
    if length_scale is None and has_length_scale(kernel):
        subset = _some_groups(training, sketch, groups)
        length_scale = _search(*subset, penalty)
        if subset[0] is not training:
            _, scan, _ = _scan(*subset, length_scale, penalty)
            walk = Walk(training, sketch, groups, length_scale, scan.penalties)
            best = walk(scan.best)
            alpha, residuals = best.left_out(targets, groups)
            error = math.sqrt(float(xp.sum(residuals**2)) / float(xp.sum(targets**2)))
            fitted = training.fitted(best.length_scale, best.weights, alpha)
            return fitted, KernelScan(best.length_scale, best.penalty, error, residuals)
    length_scale = length_scale or 1.0
    path, scan, weights = _scan(training, sketch, groups, length_scale, penalty)
    path = replace(path, projected=path.vectors.T @ targets)
    index = scan.penalties.index(scan.best)
    grid = scan.penalties[max(0, index - 1) : index + 2]  # the sketch may be off by a neighbour
    least = math.inf
    for number, left_out in zip(grid, path.leave_groups_out(grid, groups), strict=True):
        square = float(xp.sum(left_out**2))
        if square < least:
            least, chosen, residuals = square, number, left_out
    error = math.sqrt(least / float(xp.sum(path.projected**2)))
    fitted = training.fitted(length_scale, weights, path.dual_weights(chosen))
    return fitted, KernelScan(length_scale, chosen, error, residuals)


def _sketched(targets: Array) -> Array:
    """(M, q) targets → (M, ≤ SKETCH) random combinations of them, with a fixed seed."""
    columns = targets.shape[1]
    if columns <= SKETCH:
        return targets
    mix = np.random.default_rng(0).standard_normal((columns, SKETCH)) / np.sqrt(SKETCH)
    return targets @ like(mix, targets, targets.dtype)


def _scan(
    training: TrainingKernel,
    targets: Array,
    groups: list[Array],
    length_scale: float,
    penalty: float | None,
    count: int = 40,
) -> tuple[PenaltyPath, PenaltyScan, tuple[float, ...]]:
    """The path at one length scale, the errors of the given penalty or of `count`, and weights."""
    matrix, weights = training(length_scale)
    path = dual_path(matrix, targets)
    # Every term of the kernel has a mean diagonal of 1.
    grid = penalty_grid(float(len(weights)), count) if penalty is None else [penalty]
    return path, scan_penalties(path, grid, groups), weights


def _search(
    training: TrainingKernel, targets: Array, groups: list[Array], penalty: float | None
) -> float:
    """The length scale with the smallest error: downhill from 1, and around the minimum."""
    errors: dict[float, float] = {}

    def error(length: float) -> float:
        if length not in errors:
            _, scan, _ = _scan(training, targets, groups, length, penalty, COARSE_PENALTIES)
            errors[length] = scan.error
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
    return min(errors, key=errors.__getitem__)


def _some_groups(
    training: TrainingKernel, targets: Array, groups: list[Array]
) -> tuple[TrainingKernel, Array, list[Array]]:
    """The same problem on every k-th group: about SEARCH_ROWS snapshots, at least two groups."""
    xp = array_namespace(training.support)
    total = int(training.support.shape[0])
    if total <= SEARCH_ROWS:
        return training, targets, groups
    step = max(1, min(-(-total // SEARCH_ROWS), len(groups) // 2))
    kept = groups[::step]
    rows = like(np.concatenate([to_numpy(part) for part in kept]), training.support)
    ends = np.cumsum([part.shape[0] for part in kept])
    renumbered = list(np.split(np.arange(ends[-1]), ends[:-1]))
    squares = training.squares
    if squares is not None:
        squares = xp.take(xp.take(squares, rows, axis=0), rows, axis=1)
    some = replace(training, support=xp.take(training.support, rows, axis=0), squares=squares)
    return some, xp.take(targets, rows, axis=0), renumbered


@dataclass(frozen=True, slots=True)
class Solved:
    """The system of one length scale and penalty on all snapshots, solved by its inverse.

    With P = (K + λI)⁻¹ the dual weights are P B, and the residual of a group g that is left out is
    (P_gg)⁻¹ (P B)_g. An inverse costs a quarter of an eigendecomposition.
    """

    length_scale: float
    penalty: float
    weights: tuple[float, ...]  # of the terms of the kernel
    inverse: Array  # (M, M)

    def left_out(self, targets: Array, groups: list[Array]) -> tuple[Array, Array]:
        """(M, q) dual weights, and (M, q) residuals of every group by a map fitted without it."""
        xp = array_namespace(targets)
        alpha, stacks = self.inverse @ targets, stack_by_size(groups, targets)

        def block(rows: Array) -> Array:
            return xp.take(xp.take(self.inverse, rows, axis=0), rows, axis=1)

        blocks = [xp.stack([block(rows[i, :]) for i in range(rows.shape[0])]) for rows in stacks]
        return alpha, solve_blocks(stacks, blocks, alpha)


MOVES = ((0, 1), (0, -1), (-1, 0), (1, 0))
"""Steps of (length scale, penalty) that are tried in turn; penalties first, as they share a kernel
matrix."""


@dataclass(slots=True)
class Walk:
    """Descent of the leave-one-group-out error by single steps of length scale and penalty.

    A point is (steps, index): the number of steps from the first length scale, and the index of the
    penalty in `grid`.
    """

    training: TrainingKernel
    targets: Array
    groups: list[Array]
    start: float  # length scale
    grid: list[float]  # penalties, ascending
    errors: dict[tuple[int, int], float] = field(default_factory=dict)  # squared, by point
    _kernel: tuple[int, Array, tuple[float, ...]] | None = None
    _best: Solved | None = None

    def __call__(self, penalty: float) -> Solved:
        """The solution at a local minimum, none of whose four neighbours has a smaller error."""
        index = self.grid.index(penalty)
        while not math.isfinite(self._error((0, index))):  # raised while the system is singular
            index += 1
            if index == len(self.grid):
                raise PlumecastError(
                    f"the kernel of these snapshots is singular up to a penalty of "
                    f"{self.grid[-1]:g}; give a larger penalty or another length_scale"
                )
        point = (0, index)
        while (lower := self._lower(point)) is not None:
            point = lower
        assert self._best is not None
        return self._best

    def _length(self, steps: int) -> float:
        return float(self.start * (LENGTH_STEP**0.5) ** steps)

    def _lower(self, point: tuple[int, int]) -> tuple[int, int] | None:
        """The first neighbour with a smaller error; None at a local minimum."""
        for move in MOVES:
            steps, index = point[0] + move[0], point[1] + move[1]
            inside = LENGTH_RANGE[0] <= self._length(steps) <= LENGTH_RANGE[1]
            inside = inside and 0 <= index < len(self.grid)
            if inside and self._error((steps, index)) < self._error(point):
                return steps, index
        return None

    def _error(self, point: tuple[int, int]) -> float:
        """The squared leave-one-group-out error; infinite if the system is singular."""
        if point in self.errors:
            return self.errors[point]
        steps, index = point
        if self._kernel is None or self._kernel[0] != steps:
            self._kernel = None  # frees the large matrix before the next one is computed
            self._kernel = (steps, *self.training(self._length(steps)))
        _, matrix, weights = self._kernel
        error = math.inf
        with contextlib.suppress(PlumecastError):
            inverse = inverse_positive(plus_diagonal(matrix, self.grid[index]), overwrite=True)
            solved = Solved(self._length(steps), self.grid[index], weights, inverse)
            _, residuals = solved.left_out(self.targets, self.groups)
            error = float(array_namespace(residuals).sum(residuals**2))
            if error < min(self.errors.values(), default=math.inf):
                self._best = solved
        self.errors[point] = error
        return error
