"""Normal equations of a ridge regression per frequency: sums, weights, errors. Arrays only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, like
from plumecast.compute.blocks import map_slices

ROUNDING = 8.0
"""Smallest penalty, in units of the rounding error of the trace of its Gram matrix."""

FEWEST = 64
"""Smallest number of systems for which a further thread is used."""


@dataclass(frozen=True, slots=True)
class Equations:
    """Σ x̂ᴴx̂, Σ x̂ᴴŷ and Σ |ŷ|² over some snapshots, by frequency."""

    gram: Array  # (F, C, C) complex
    cross: Array  # (F, C, T) complex
    size: Array  # (F, T) real

    @staticmethod
    def of(x: Array, y: Array) -> Equations:
        """The equations of (F, M, C) inputs and (F, M, T) targets."""
        xp = array_namespace(x)
        adjoint = xp.conj(xp.matrix_transpose(x))
        size = xp.sum(xp.real(y) ** 2 + xp.imag(y) ** 2, axis=1)
        return Equations(adjoint @ x, adjoint @ y, size)

    def __add__(self, other: Equations) -> Equations:
        return Equations(self.gram + other.gram, self.cross + other.cross, self.size + other.size)

    def __sub__(self, other: Equations) -> Equations:
        return Equations(self.gram - other.gram, self.cross - other.cross, self.size - other.size)

    def summed(self, weight: np.ndarray) -> Equations:
        """The equations of real weights that are equal at all frequencies, as one frequency."""
        xp = array_namespace(self.gram)
        times = like(weight.astype(np.float32), self.size)

        def total(values: Array) -> Array:
            own = xp.sum(xp.real(values) * times[:, None, None], axis=0, keepdims=True)
            return xp.astype(own, values.dtype)

        size = xp.sum(self.size * times[:, None], axis=0, keepdims=True)
        return Equations(total(self.gram), total(self.cross), size)

    @staticmethod
    def stacked(parts: Sequence[Equations]) -> Equations:
        """The equations of several parts, (P F, …), so that one call solves them all."""
        concat = array_namespace(parts[0].gram).concat
        return Equations(
            concat([part.gram for part in parts], axis=0),
            concat([part.cross for part in parts], axis=0),
            concat([part.size for part in parts], axis=0),
        )

    def scale(self) -> float:
        """Mean diagonal of the Gram matrices."""
        xp = array_namespace(self.gram)
        return float(xp.mean(xp.real(xp.linalg.diagonal(self.gram))))

    def at(self, chosen: Array) -> Equations:
        """The equations of some frequencies."""
        take = array_namespace(self.gram).take
        arrays = (self.gram, self.cross, self.size)
        return Equations(*(take(each, chosen, axis=0) for each in arrays))

    def solve(self, penalty: float | np.ndarray, towards: Array | None = None) -> Array:
        """(F, C, T) weights that minimise the error plus penalty · |W − towards|².

        The penalty is a number, or one number per frequency.
        """
        return self.solve_each(penalty, [towards])[0]

    def solve_each(
        self, penalty: float | np.ndarray, towards: Sequence[Array | None]
    ) -> list[Array]:
        """`solve` with each of several `towards`, from one factorisation.

        A penalty below the rounding error of a Gram matrix is raised, because channels may be
        equal, for instance if all fires have the same age.
        """
        xp = array_namespace(self.gram)
        eye = like(np.eye(self.gram.shape[1]), self.gram, self.gram.dtype)
        diagonal = xp.real(xp.linalg.diagonal(self.gram))
        rounding = ROUNDING * float(xp.finfo(self.gram.dtype).eps)
        floor = rounding * xp.sum(diagonal, axis=1)
        wanted = np.broadcast_to(penalty, (int(floor.shape[0]),))
        raised = xp.maximum(floor, like(np.array(wanted), floor, floor.dtype))
        own = xp.astype(raised, self.gram.dtype)[:, None, None]
        right = [self.cross if one is None else self.cross + own * one for one in towards]
        sides = right[0] if len(right) == 1 else xp.concat(right, axis=2)

        def solve(part: slice) -> Array:
            system = self.gram[part, ...] + own[part, ...] * eye
            return xp.linalg.solve(system, sides[part, ...])

        solved = xp.concat(map_slices(solve, sides.shape[0], sides, FEWEST), axis=0)
        count = self.cross.shape[2]
        return [solved[:, :, i * count : (i + 1) * count] for i in range(len(right))]

    def error(self, weights: Array) -> Array:
        """Σ |ŷ − x̂ W|², (F, T), over the snapshots of these equations."""
        xp = array_namespace(weights)
        conjugate = xp.conj(weights)
        fitted = xp.sum(xp.real(conjugate * (self.gram @ weights)), axis=1)
        return self.size - 2.0 * xp.sum(xp.real(conjugate * self.cross), axis=1) + fitted
