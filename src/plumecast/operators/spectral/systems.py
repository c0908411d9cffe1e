"""The ridge systems of a spectral operator: normal equations, penalties, weights. Arrays only.

Normal equations are sums over snapshots, so that those of the folds add up to those of the whole.
The error of a fold under any weights follows from its own sums. Leaving folds out therefore needs
no second pass over the snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, like, to_numpy
from plumecast.compute.threads import map_slices
from plumecast.operators.spectral.transform import Frequencies

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Penalties tried, relative to the mean diagonal of the Gram matrices of all snapshots."""

RINGS = 6
"""Number of rings of frequencies; every ring has its own penalty."""

ROUNDING = 8.0
"""Smallest penalty, in units of the rounding error of the trace of its Gram matrix."""

FEWEST = 64
"""Smallest number of systems for which a further thread is used."""

SCANNED = 80
"""Largest number of frequencies of a ring on which penalties are compared."""


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

    def at(self, chosen: Array) -> Equations:
        """The equations of some frequencies."""
        xp = array_namespace(self.gram)
        gram, cross, size = (
            xp.take(each, chosen, axis=0) for each in (self.gram, self.cross, self.size)
        )
        return Equations(gram, cross, size)

    def solve(self, penalty: float, towards: Array | None = None) -> Array:
        """(F, C, T) weights that minimise the error plus penalty · |W − towards|²."""
        return self.solve_each(penalty, [towards])[0]

    def solve_each(self, penalty: float, towards: Sequence[Array | None]) -> list[Array]:
        """`solve` with each of several `towards`, from one factorisation.

        A penalty below the rounding error of a Gram matrix is raised, because channels may be
        equal, for instance if all fires have the same age.
        """
        xp = array_namespace(self.gram)
        eye = like(np.eye(self.gram.shape[1]), self.gram, self.gram.dtype)
        diagonal = xp.real(xp.linalg.diagonal(self.gram))
        rounding = ROUNDING * float(xp.finfo(self.gram.dtype).eps)
        raised = xp.clip(rounding * xp.sum(diagonal, axis=1), penalty, None)
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


Parts: TypeAlias = list["Equations | None"]
"""The equations of every fold; None if a scenario has no snapshot in the fold."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen regularisation of one scenario, by ring and target."""

    index: np.ndarray  # (rings, T), into PENALTIES
    shared: np.ndarray  # (rings, T), regularised towards the weights of all scenarios, or to zero
    error: np.ndarray  # (rings, T), out-of-fold error


@dataclass(frozen=True, slots=True)
class Systems:
    """All ridge systems of a layer, by scenario and fold."""

    parts: list[Parts]
    frequencies: Frequencies

    def folds(self) -> list[Equations]:
        """The equations of every fold, summed over scenarios."""
        return [_total(list(own)) for own in zip(*self.parts, strict=True)]

    def scale(self) -> float:
        """Mean diagonal of the Gram matrices of all snapshots."""
        gram = _total([part for own in self.parts for part in own]).gram
        xp = array_namespace(gram)
        diagonal = xp.real(xp.linalg.diagonal(gram))
        return float(xp.mean(diagonal))

    def solve(self) -> tuple[list[Array], list[list[Array]]]:
        """(F, C, T) weights of every scenario, and of every scenario without each fold.

        The penalty, and whether weights are regularised towards those of all scenarios, are chosen
        by the out-of-fold error for every ring and target.
        """
        rings = _rings(self.frequencies)
        scale = self.scale()
        folds = self.folds()
        common, choices = self._choose(rings, scale, folds)
        solver = _RingSolver(rings, scale)
        needs_common = any(choice.shared.any() for choice in choices)
        whole: Array | None = None
        without: list[Array | None] = [None] * len(folds)
        if needs_common:
            everything = _total(list(folds))
            whole = solver(everything, common)
            without = [solver(everything - part, common) for part in folds]
        weights, left_out = [], []
        for own, choice in zip(self.parts, choices, strict=True):
            total = _total(own)
            weights.append(solver(total, choice, whole))
            left_out.append(
                [
                    weights[-1] if part is None else solver(total - part, choice, prior)
                    for part, prior in zip(own, without, strict=True)
                ]
            )
        return weights, left_out

    def _choose(
        self, rings: np.ndarray, scale: float, all_scenarios: list[Equations]
    ) -> tuple[Choice, list[Choice]]:
        """The choices for all scenarios together and for each, on a sample of the frequencies.

        `all_scenarios` are the equations of every fold, summed over scenarios.
        """
        chosen = _sample(rings)
        weight = self.frequencies.weight()[chosen, None]
        scan = _Scan(rings[chosen], weight, scale)
        some = like(chosen, all_scenarios[0].gram)
        folds: Parts = [part.at(some) for part in all_scenarios]
        (common,) = scan(folds)
        if len(self.parts) == 1:
            return common, [common]
        solver = _RingSolver(rings[chosen], scale)
        whole = _total(folds)
        prior = [solver(whole - part, common) for part in folds if part is not None]
        choices = []
        for own in self.parts:
            sampled: Parts = [None if part is None else part.at(some) for part in own]
            apart, shared = scan(sampled, prior)
            better = shared.error < apart.error
            choices.append(
                Choice(
                    np.where(better, shared.index, apart.index),
                    better,
                    np.minimum(shared.error, apart.error),
                )
            )
        return common, choices


@dataclass(frozen=True, slots=True)
class _Scan:
    """Compare penalties by their out-of-fold errors."""

    rings: np.ndarray  # (F,)
    weight: np.ndarray  # (F, 1)
    scale: float  # multiplies PENALTIES

    def __call__(self, parts: Parts, towards: list[Array] | None = None) -> list[Choice]:
        """The best penalties for weights regularised to zero, and with `towards` also for weights
        regularised towards those, from the same factorisations."""
        whole = _total(parts)
        known = [(number, part, whole - part) for number, part in enumerate(parts) if part]
        kinds = 1 if towards is None else 2
        errors = np.zeros((kinds, len(PENALTIES), *whole.size.shape))
        for at, penalty in enumerate(PENALTIES):
            for number, part, others in known:
                priors = [None] if towards is None else [None, towards[number]]
                for kind, weights in enumerate(others.solve_each(penalty * self.scale, priors)):
                    errors[kind, at] += to_numpy(part.error(weights))
        return [self._best(own, kind == 1) for kind, own in enumerate(errors)]

    def _best(self, errors: np.ndarray, shared: bool) -> Choice:
        """The penalties with the smallest of the (penalties, F, T) errors, by ring and target."""
        weighted = errors * self.weight
        by_ring = np.stack(
            [np.sum(weighted[:, self.rings == ring], axis=1) for ring in range(RINGS)], axis=1
        )
        known = np.where(np.isfinite(by_ring), by_ring, np.inf)
        index = np.argmin(known, axis=0)
        return Choice(index, np.full(index.shape, shared), np.min(known, axis=0))


@dataclass(frozen=True, slots=True)
class _RingSolver:
    """Solve the systems with the chosen penalty of every ring and target."""

    rings: np.ndarray  # (F,)
    scale: float  # multiplies PENALTIES

    def __call__(self, equations: Equations, choice: Choice, prior: Array | None = None) -> Array:
        xp = array_namespace(equations.gram)
        order = np.argsort(self.rings, kind="stable")
        pieces = []
        for ring in np.unique(self.rings):
            own = like(np.flatnonzero(self.rings == ring), equations.gram)
            part = equations.at(own)
            towards = None
            if prior is not None and choice.shared[ring].any():
                shared = like(choice.shared[ring].astype(np.float32), equations.size)
                towards = xp.take(prior, own, axis=0) * shared
            solved: dict[int, Array] = {}
            columns = []
            for t, index in enumerate(choice.index[ring].tolist()):
                if index not in solved:
                    solved[index] = part.solve(PENALTIES[index] * self.scale, towards)
                columns.append(solved[index][:, :, t : t + 1])
            pieces.append(xp.concat(columns, axis=2))
        inverse_order = like(np.argsort(order, kind="stable"), equations.gram)
        return xp.take(xp.concat(pieces, axis=0), inverse_order, axis=0)


def _total(parts: Parts | list[Equations]) -> Equations:
    known = [part for part in parts if part is not None]
    total = known[0]
    for part in known[1:]:
        total = total + part
    return total


def _sample(rings: np.ndarray) -> np.ndarray:
    """Sorted indices of frequencies, evenly spaced within every ring."""
    members = [np.flatnonzero(rings == ring) for ring in range(RINGS)]
    return np.sort(np.concatenate([own[:: -(-own.size // SCANNED)] for own in members if own.size]))


def _rings(frequencies: Frequencies) -> np.ndarray:
    """(F,) ring of every frequency by its magnitude; inner rings have fewer frequencies."""
    radius = frequencies.radius()
    edges = np.quantile(radius, np.linspace(0.0, 1.0, RINGS + 1)[1:-1] ** 2)
    return np.searchsorted(edges, radius)
