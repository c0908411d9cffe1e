"""The ridge systems of a spectral operator: normal equations, penalties, weights. Arrays only.

Normal equations are sums over snapshots, so that those of the folds add up to those of the whole.
The error of a fold under any weights follows from its own sums. Leaving folds out therefore needs
no second pass over the snapshots; and those of new snapshots can be added to a fitted layer
(`LayerSums`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, like, to_numpy
from plumecast.operators.spectral.equations import Equations
from plumecast.operators.spectral.transform import Frequencies

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Penalties tried, relative to the mean diagonal of the Gram matrices of all snapshots."""

POINTWISE = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""Penalties tried for a pointwise combination of the channels, relative to its mean diagonal."""

RINGS = 6
"""Number of rings of frequencies; every ring has its own penalty."""

SCANNED = 80
"""Largest number of frequencies of a ring on which penalties are compared."""


Parts: TypeAlias = list[Equations | None]
"""The equations of every fold; None if a scenario has no snapshot in the fold."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen regularisation of one scenario, by ring and target."""

    index: np.ndarray  # (rings, T), into PENALTIES
    shared: np.ndarray  # (rings, T), regularised towards given weights, or to zero
    error: np.ndarray  # (rings, T), out-of-fold error


@dataclass(frozen=True, slots=True)
class Choices:
    """What the out-of-fold errors of a layer choose; its weights then follow from sums alone."""

    points: np.ndarray | None  # (T,), into POINTWISE; None without pointwise weights
    common: Choice  # of all scenarios together
    own: tuple[Choice, ...]  # of every scenario


@dataclass(frozen=True, slots=True)
class Systems:
    """All ridge systems of a layer, by scenario and fold."""

    parts: list[Parts]
    frequencies: Frequencies
    pointwise: bool = False  # weights may be regularised towards one combination of the channels

    def folds(self) -> list[Equations]:
        """The equations of every fold, summed over scenarios."""
        return [_total(list(own)) for own in zip(*self.parts, strict=True)]

    def scale(self) -> float:
        """Mean diagonal of the Gram matrices of all snapshots."""
        return _total([part for own in self.parts for part in own]).scale()

    def totals(self) -> list[Equations]:
        """The equations of every scenario."""
        return [_total(own) for own in self.parts]

    def solve(self) -> tuple[list[Array], list[list[Array]], Choices]:
        """(F, C, T) weights of every scenario, of every scenario without each fold, and choices.

        The penalty, and whether weights are regularised towards those of all scenarios, are chosen
        by the out-of-fold error for every ring and target. Weights of all scenarios, or of a single
        one, may be regularised towards a pointwise combination of the channels.
        """
        rings, folds = _Rings(_ring_numbers(self.frequencies), self.scale()), self.folds()
        best, whole, without = self._pointwise(folds)
        common, choices = self._choose(rings, folds, without)
        prior: Array | None = whole
        if len(self.parts) > 1:
            points, without, prior = without, [None] * len(folds), None
            if any(choice.shared.any() for choice in choices):
                everything = _total(list(folds))
                prior = rings.solve(everything, common, whole)
                without = [
                    rings.solve(everything - part, common, own)
                    for part, own in zip(folds, points, strict=True)
                ]
        weights, left_out = [], []
        for own, choice in zip(self.parts, choices, strict=True):
            total = _total(own)
            weights.append(rings.solve(total, choice, prior))
            left_out.append(
                [
                    weights[-1] if part is None else rings.solve(total - part, choice, towards)
                    for part, towards in zip(own, without, strict=True)
                ]
            )
        return weights, left_out, Choices(best, common, tuple(choices))

    def _pointwise(
        self, folds: list[Equations]
    ) -> tuple[np.ndarray | None, Array | None, list[Array | None]]:
        """The best of POINTWISE by target, and the weights of all folds and without each.

        The (F, C, T) weights are real and equal at all frequencies: they combine the channels cell
        by cell. None unless `pointwise`.
        """
        if not self.pointwise:
            return None, None, [None] * len(folds)
        weight = self.frequencies.weight()
        sums = [part.summed(weight) for part in folds]
        whole = _total(list(sums))
        scale = whole.scale()
        errors = np.zeros((len(POINTWISE), whole.size.shape[1]))
        for number, penalty in enumerate(POINTWISE):
            for part in sums:
                own = (whole - part).solve(penalty * scale)
                errors[number] += to_numpy(part.error(own))[0]
        best = np.argmin(errors, axis=0)
        without = [_pointwise_weights(whole - part, best, scale, weight.size) for part in sums]
        return best, _pointwise_weights(whole, best, scale, weight.size), without

    def _choose(
        self, rings: _Rings, all_scenarios: list[Equations], points: list[Array | None]
    ) -> tuple[Choice, list[Choice]]:
        """The choices for all scenarios together and for each, on a sample of the frequencies.

        `all_scenarios` are the equations of every fold, summed over scenarios; `points` are
        weights without each fold that they may be regularised towards.
        """
        members = [np.flatnonzero(rings.numbers == ring) for ring in range(RINGS)]
        spaced = [own[:: -(-own.size // SCANNED)] for own in members if own.size]
        chosen = np.sort(np.concatenate(spaced))
        sampled = _Rings(rings.numbers[chosen], rings.scale)
        weight = self.frequencies.weight()[chosen, None]
        some = like(chosen, all_scenarios[0].gram)
        folds: Parts = [part.at(some) for part in all_scenarios]
        xp = array_namespace(all_scenarios[0].gram)
        towards = [None if own is None else xp.take(own, some, axis=0) for own in points]
        common = sampled.choose(folds, weight, [own for own in towards if own is not None])
        if len(self.parts) == 1:
            return common, [common]
        whole = _total(folds)
        prior = [
            sampled.solve(whole - part, common, own)
            for part, own in zip(folds, towards, strict=True)
            if part is not None
        ]
        return common, [
            sampled.choose([None if part is None else part.at(some) for part in own], weight, prior)
            for own in self.parts
        ]


@dataclass(frozen=True, slots=True)
class _Rings:
    """Penalties by ring of frequencies and target: their choice, and solutions with them."""

    numbers: np.ndarray  # (F,), ring of every frequency
    scale: float  # multiplies PENALTIES

    def choose(self, parts: Parts, weight: np.ndarray, towards: list[Array]) -> Choice:
        """The penalties with the smallest out-of-fold errors, weighted (F, 1) over frequencies.

        They are those of weights regularised to zero or, if these are given, `towards` the weights
        of every fold, whichever has the smaller error, from the same factorisations.
        """
        whole = _total(parts)
        xp = array_namespace(whole.gram)
        there = {number: part for number, part in enumerate(parts) if part is not None}
        left_out = Equations.stacked(list(there.values()))
        others = Equations.stacked([whole - part for part in there.values()])
        priors: list[Array | None] = [None]
        if towards:
            priors.append(xp.concat([towards[number] for number in there], axis=0))
        sums = []
        for penalty in PENALTIES:  # all folds at once; nothing is copied to the host in between
            solved = others.solve_each(penalty * self.scale, priors)
            errors = xp.stack([left_out.error(weights) for weights in solved])
            errors = xp.reshape(errors, (len(priors), len(there), *whole.size.shape))
            sums.append(xp.sum(errors, axis=1, dtype=xp.float64))
        choices = []
        for shared, by_penalty in enumerate(to_numpy(xp.stack(sums, axis=1))):
            weighted = by_penalty * weight
            rings = [np.sum(weighted[:, self.numbers == ring], axis=1) for ring in range(RINGS)]
            by_ring = np.stack(rings, axis=1)
            known = np.where(np.isfinite(by_ring), by_ring, np.inf)
            index = np.argmin(known, axis=0)
            choices.append(Choice(index, np.full(index.shape, bool(shared)), np.min(known, axis=0)))
        apart, shared_choice = choices[0], choices[-1]
        better = shared_choice.error < apart.error
        return Choice(
            np.where(better, shared_choice.index, apart.index),
            better,
            np.minimum(shared_choice.error, apart.error),
        )

    def solve(self, equations: Equations, choice: Choice, prior: Array | None = None) -> Array:
        """(F, C, T) weights; each system is factorised once per distinct penalty of its targets.

        The first penalties of all rings are solved in one call, then the second ones, and so on.
        """
        xp = array_namespace(equations.gram)
        if prior is not None:
            shared = choice.shared[self.numbers][:, None, :].astype(np.float32)
            prior = prior * like(shared, equations.size) if shared.any() else None
        distinct = [np.unique(own) for own in choice.index]  # by ring
        row = np.zeros((self.numbers.size, choice.index.shape[1]), dtype=np.int64)  # of solutions
        pieces, before = [], 0
        for turn in range(max(own.size for own in distinct)):
            own = np.array([known[turn] if turn < known.size else -1 for known in distinct])
            own = own[self.numbers]  # (F,), −1 where all penalties of the ring were solved
            some = np.flatnonzero(own >= 0)
            here = like(some, equations.gram)
            towards = None if prior is None else xp.take(prior, here, axis=0)
            penalty = self.scale * np.array(PENALTIES)[own[some]]
            pieces.append(equations.at(here).solve(penalty, towards))
            number = np.zeros(own.size, dtype=np.int64)
            number[some] = before + np.arange(some.size)
            row = np.where(choice.index[self.numbers] == own[:, None], number[:, None], row)
            before += some.size
        solved = xp.concat(pieces, axis=0)
        columns = [
            xp.take(solved[:, :, t : t + 1], like(own, solved), axis=0)
            for t, own in enumerate(row.T)
        ]
        return xp.concat(columns, axis=2)


def solve_totals(
    totals: list[Equations], frequencies: Frequencies, choices: Choices
) -> list[Array]:
    """(F, C, T) weights of every scenario from its sums, with choices that are kept.

    The weights of `Systems.solve` for the same sums and choices, up to rounding. Penalties are
    relative to the mean diagonal of the sums, so they grow with the number of snapshots.
    """
    everything = _total(totals)
    rings = _Rings(_ring_numbers(frequencies), everything.scale())
    prior = None
    if choices.points is not None:
        weight = frequencies.weight()
        whole = everything.summed(weight)
        prior = _pointwise_weights(whole, choices.points, whole.scale(), weight.size)
    if len(totals) > 1:
        shared = any(choice.shared.any() for choice in choices.own)
        prior = rings.solve(everything, choices.common, prior) if shared else None
    pairs = zip(totals, choices.own, strict=True)
    return [rings.solve(total, choice, prior) for total, choice in pairs]


def _pointwise_weights(equations: Equations, best: np.ndarray, scale: float, count: int) -> Array:
    """(F, C, T) pointwise weights with the chosen penalty of every target, F = `count`."""
    xp = array_namespace(equations.gram)
    solved = {i: equations.solve(POINTWISE[i] * scale) for i in set(best.tolist())}
    columns = [solved[i][:, :, t : t + 1] for t, i in enumerate(best.tolist())]
    own = xp.concat(columns, axis=2)
    return xp.broadcast_to(own, (count, *own.shape[1:]))


def _total(parts: Parts | list[Equations]) -> Equations:
    first, *others = [part for part in parts if part is not None]
    return sum(others, start=first)


def _ring_numbers(frequencies: Frequencies) -> np.ndarray:
    """(F,) ring of every frequency by its magnitude; inner rings have fewer frequencies."""
    radius = frequencies.radius()
    edges = np.quantile(radius, np.linspace(0.0, 1.0, RINGS + 1)[1:-1] ** 2)
    return np.searchsorted(edges, radius)


@dataclass(frozen=True, slots=True)
class LayerSums:
    """The normal equations of a layer by scenario, on the host, and its chosen penalties.

    Complex numbers are pairs of real ones; of the Hermitian Gram matrices the upper triangle is
    stored, K = C (C + 1) / 2 values.
    """

    gram: Array  # (S, F, K, 2)
    cross: Array  # (S, F, C, T, 2)
    size: Array  # (S, F, T)
    choices: Choices

    def totals(self, example: Array) -> list[Equations]:
        """The equations of every scenario, on the device of `example`."""
        rows, columns = np.triu_indices(self.cross.shape[2])
        totals = []
        for packed, cross, size in zip(self.gram, self.cross, self.size, strict=True):
            upper = _as_complex(packed)
            gram = np.zeros((*upper.shape[:1], cross.shape[1], cross.shape[1]), upper.dtype)
            gram[:, columns, rows] = upper.conj()
            gram[:, rows, columns] = upper
            arrays = (gram, _as_complex(cross), size)
            totals.append(Equations(*(like(each, example) for each in arrays)))
        return totals


def layer_sums(totals: list[Equations], choices: Choices) -> LayerSums:
    """The equations of every scenario in their saved form."""
    rows, columns = np.triu_indices(totals[0].gram.shape[1])
    return LayerSums(
        np.stack([_as_pairs(to_numpy(own.gram)[:, rows, columns]) for own in totals]),
        np.stack([_as_pairs(to_numpy(own.cross)) for own in totals]),
        np.stack([to_numpy(own.size) for own in totals]),
        choices,
    )


def paired_weights(weights: list[Array]) -> Array:
    """(F, C, T) complex weights of every scenario → (S, F, C, T, 2) float32, on the host."""
    return _as_pairs(np.stack([to_numpy(own) for own in weights])).astype(np.float32)


def _as_pairs(values: np.ndarray) -> np.ndarray:
    return np.stack([values.real, values.imag], axis=-1)


def _as_complex(pairs: np.ndarray) -> np.ndarray:
    return pairs[..., 0] + 1j * pairs[..., 1]
