"""The last steps of a search for length scale and penalty, on all snapshots. Arrays only.

An eigendecomposition gives every penalty of a length scale, but costs as much as four inverses, and
from where the search on some of the snapshots ended, most neighbours need one penalty only. With
P = (K + λI)⁻¹ the dual weights are P B, and the residual of a group left out is (P_gg)⁻¹ (P B)_g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace
from plumecast.compute.linalg import inverse_positive
from plumecast.operators.coded.kernel_map import TrainingKernel
from plumecast.operators.ridge import plus_diagonal, stack_by_size


@dataclass(frozen=True, slots=True)
class Solved:
    """One length scale and penalty on all snapshots."""

    length_scale: float
    penalty: float
    weights: tuple[float, ...]  # of the terms of the kernel
    inverse: Array  # (M, M)

    def left_out(self, targets: Array, groups: list[Array]) -> tuple[Array, Array]:
        """(M, q) dual weights, and (M, q) residuals of every group by the map without it."""
        xp = array_namespace(targets)
        alpha = self.inverse @ targets
        alike = stack_by_size(groups, targets)
        order = xp.argsort(xp.concat([xp.reshape(rows, (-1,)) for rows in alike]))
        parts = []
        for rows in alike:
            count, size = rows.shape
            blocks = xp.stack([self._block(rows[i, :]) for i in range(count)])
            right = xp.reshape(xp.take(alpha, xp.reshape(rows, (-1,)), axis=0), (count, size, -1))
            parts.append(xp.reshape(xp.linalg.solve(blocks, right), (count * size, -1)))
        return alpha, xp.take(xp.concat(parts), order, axis=0)

    def _block(self, rows: Array) -> Array:
        xp = array_namespace(self.inverse)
        return xp.take(xp.take(self.inverse, rows, axis=0), rows, axis=1)


MOVES = ((0, 1), (0, -1), (-1, 0), (1, 0))
"""Steps of the length scale and of the penalty: penalties first, which share a kernel."""


@dataclass(slots=True)
class Walk:
    """Downhill from the end of a search, by single steps of the penalty and of the length scale."""

    training: TrainingKernel
    targets: Array
    groups: list[Array]
    start: float  # length scale
    step: float  # ratio of neighbouring length scales
    reach: tuple[float, float]  # of the length scales
    grid: list[float]  # penalties, rising
    errors: dict[tuple[int, int], float] = field(default_factory=dict)  # squared
    _kernel: tuple[int, Array, tuple[float, ...]] | None = None
    _best: Solved | None = None

    def __call__(self, penalty: float) -> Solved:
        """The lowest point reached: none of its four neighbours is lower."""
        at = self._first(self.grid.index(penalty))
        while (lower := self._lower(at)) is not None:
            at = lower
        assert self._best is not None
        return self._best

    def by_length(self) -> dict[float, float]:
        """The smallest error of every length scale tried, relative to ‖B‖."""
        size = float(array_namespace(self.targets).sum(self.targets**2))
        lowest: dict[float, float] = {}
        for (steps, _), square in self.errors.items():
            length, error = self._length(steps), math.sqrt(square / size)
            lowest[length] = min(error, lowest.get(length, math.inf))
        return lowest

    def _length(self, steps: int) -> float:
        return self.start * self.step**steps

    def _first(self, index: int) -> tuple[int, int]:
        """The start, at a higher penalty where its system is singular."""
        while not math.isfinite(self._error((0, index))):
            index += 1
            if index == len(self.grid):
                raise PlumecastError(
                    f"the kernel of these snapshots is singular up to a penalty of "
                    f"{self.grid[-1]:g}; give a larger one, or another length scale"
                )
        return 0, index

    def _lower(self, at: tuple[int, int]) -> tuple[int, int] | None:
        for steps, places in MOVES:
            point = (at[0] + steps, at[1] + places)
            inside = self.reach[0] <= self._length(point[0]) <= self.reach[1]
            if inside and 0 <= point[1] < len(self.grid) and self._error(point) < self._error(at):
                return point
        return None

    def _error(self, point: tuple[int, int]) -> float:
        """The squared leave-one-group-out error; not finite where the system is singular."""
        if point not in self.errors:
            solved, error = self._solve(*point), math.inf
            if solved is not None:
                _, residuals = solved.left_out(self.targets, self.groups)
                error = float(array_namespace(residuals).sum(residuals**2))
                if error < min(self.errors.values(), default=math.inf):
                    self._best = solved
            self.errors[point] = error
        return self.errors[point]

    def _solve(self, steps: int, index: int) -> Solved | None:
        if self._kernel is None or self._kernel[0] != steps:
            self._kernel = None  # before the next is made: they are large
            self._kernel = (steps, *self.training(self._length(steps)))
        _, matrix, weights = self._kernel
        system = plus_diagonal(matrix, self.grid[index])
        try:
            inverse = inverse_positive(system, overwrite=True)
        except PlumecastError:
            return None
        return Solved(self._length(steps), self.grid[index], weights, inverse)
