"""Choose groups of rows whose outputs are worth knowing. Arrays only, no labels.

The outputs are regarded as a Gaussian process with a kernel k of the rows. Its variance does not
depend on the outputs, so that a whole batch can be chosen before any output is known. After the
outputs of the rows S are known, each with noise of variance λ, the covariance of rows a and b is

    k(a, b | S) = k(a, b) − k(a, S) (k(S, S) + λ I)⁻¹ k(S, b) = k(a, b) − L_a L_bᵀ,

where the columns of L are those of a pivoted Cholesky factorisation, extended group by group. Only
the kernel's diagonal and the columns of known rows are computed: memory is (M, |S|).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks, sampled_rows
from plumecast.compute.linalg import cholesky, solve_lower

Kernel = Callable[[Array, Array], Array]
"""(Ma, D) and (Mb, D) rows → (Ma, Mb)."""

BLOCK = 256
"""Groups whose distances to all others are computed at a time."""

REFERENCES = 2000
"""Largest number of rows whose mean variance the method `variance` looks at."""

SWAPS = 20
"""Largest number of passes in which medoids are moved."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What there is to choose from. Every row of `rows` that is in no group is known already."""

    rows: Array  # (M, D)
    groups: Sequence[Array]  # row numbers of every candidate
    kernel: Kernel
    noise: float  # λ
    weights: Array  # (G,), probabilities of the candidates; their sum is 1
    costs: Array  # (G,)
    allowed: Array  # (G,) whether a candidate may be chosen; the others only count in the mean
    seed: int = 0

    def row_weights(self) -> Array:
        """(M,): the weight of a group is shared by its rows; known rows have none."""
        out = np.zeros(self.rows.shape[0])
        for group, weight in zip(self.groups, self.weights, strict=True):
            out[group] = weight / group.size
        return out

    def known_rows(self) -> Array:
        """The rows that are in no group."""
        return np.setdiff1d(np.arange(self.rows.shape[0]), np.concatenate(list(self.groups)))


@dataclass(frozen=True, slots=True)
class Posterior:
    """Covariances of all rows after the outputs of some are known."""

    rows: Array  # (M, D)
    kernel: Kernel
    noise: float
    factor: Array  # (M, |S|), L
    variances: Array  # (M,)

    def covariance(self, a: Array, b: Array) -> Array:
        """(|a|, |b|) covariance of rows a and b."""
        return self.kernel(self.rows[a], self.rows[b]) - self.factor[a] @ self.factor[b].T

    def columns(self, group: Array, rows: Array) -> Array:
        """(|rows|, m) values that a group B adds to L.

        They are k(:, B | S) C⁻ᵀ with C Cᵀ = k(B, B | S) + λ I.
        """
        return solve_lower(self._root(group), self.covariance(rows, group).T).T

    def log_determinant(self, group: Array) -> float:
        """ln det(I + k(B, B | S) / λ): the information that the outputs of B give, in nats × 2."""
        root = self._root(group)
        return float(2.0 * np.log(np.diag(root)).sum() - group.size * np.log(self.noise))

    def known(self, group: Array) -> Posterior:
        """The same after the outputs of a group are known too."""
        columns = self.columns(group, np.arange(self.rows.shape[0]))
        variances = np.maximum(self.variances - np.square(columns).sum(axis=1), 0.0)
        return replace(self, factor=np.hstack([self.factor, columns]), variances=variances)

    def _root(self, group: Array) -> Array:
        block = self.covariance(group, group)
        return cholesky(0.5 * (block + block.T) + self.noise * np.eye(group.size))


def prior(choice: Choice) -> Posterior:
    """Covariances after the known rows, those in no group."""
    rows = choice.rows
    variances = np.array([choice.kernel(rows[[i]], rows[[i]])[0, 0] for i in range(rows.shape[0])])
    start = Posterior(rows, choice.kernel, choice.noise, np.empty((rows.shape[0], 0)), variances)
    given = choice.known_rows()
    return start.known(given) if given.size else start


def mean_variances(choice: Choice, order: Sequence[int]) -> Array:
    """(1 + len(order),) weighted mean variance of the candidates, before and after each group."""
    weights = choice.row_weights()
    state = prior(choice)
    found = [float(weights @ state.variances)]
    for number in order:
        state = state.known(choice.groups[number])
        found.append(float(weights @ state.variances))
    return np.array(found)


def by_log_determinant(choice: Choice, count: int, first: Sequence[int]) -> list[int]:
    """Greedily the group with the largest weight · ln det(I + k(B, B | S) / λ) / cost."""

    def gain(state: Posterior, number: int) -> float:
        return float(choice.weights[number] * state.log_determinant(choice.groups[number]))

    return _greedy(choice, count, first, gain)


def by_variance(choice: Choice, count: int, first: Sequence[int]) -> list[int]:
    """Greedily the group with the largest fall of the weighted mean variance, per cost.

    The fall is Σ_i w_i Σ_j (k(i, B | S) C⁻ᵀ)²_j over rows i; of very many rows a random sample.
    """
    weights = choice.row_weights()
    rows = sampled_rows(weights.size, REFERENCES)

    def gain(state: Posterior, number: int) -> float:
        return float(
            weights[rows] @ np.square(state.columns(choice.groups[number], rows)).sum(axis=1)
        )

    return _greedy(choice, count, first, gain)


def _greedy(
    choice: Choice,
    count: int,
    first: Sequence[int],
    gain: Callable[[Posterior, int], float],
) -> list[int]:
    """`first`, then the group with the largest gain / cost, until there are `count`."""
    state, order = prior(choice), list(first)
    for number in order:
        state = state.known(choice.groups[number])
    while len(order) < count:
        free = [int(i) for i in np.flatnonzero(choice.allowed) if i not in order]
        gains = [gain(state, number) / choice.costs[number] for number in free]
        best = free[int(np.argmax(gains))]
        state = state.known(choice.groups[best])
        order.append(best)
    return order


def by_largest_cluster(choice: Choice, count: int, first: Sequence[int]) -> list[int]:
    """LCMD: the farthest group of the cluster with the largest sum of squared distances.

    Every group belongs to the cluster of the nearest chosen or known one (Holzmüller et al. 2023).
    Distances are weighted by the probabilities of the groups and divided by their costs.
    """
    squares = _group_squares(choice)
    known, order = _known_groups(choice), list(first)
    free = np.array(choice.allowed, dtype=bool)
    if not known and not order:
        order.append(_medoid(squares, choice, free))
    size = len(choice.groups)
    while len(order) < count:
        free[order] = False
        centres = [*order, *known]
        nearest = np.argmin(squares[:, centres], axis=1)
        far = choice.weights * squares[np.arange(size), np.array(centres)[nearest]]
        sums = np.bincount(nearest, weights=far, minlength=len(centres))
        reachable = np.isin(np.arange(len(centres)), nearest[free])
        cluster = int(np.argmax(np.where(reachable, sums, -np.inf)))
        inside = free & (nearest == cluster)
        order.append(int(np.argmax(np.where(inside, far / choice.costs, -np.inf))))
    return order[:count]


def by_medoids(choice: Choice, count: int, first: Sequence[int]) -> list[int]:
    """k-medoids: groups to which the weighted mean squared distance of all groups is smallest.

    Medoids are added one by one and then exchanged while that lowers the mean; costs have no
    effect. The groups `first` and the known ones stay medoids.
    """
    squares = _group_squares(choice)
    size, known = len(choice.groups), _known_groups(choice)
    fixed, order = list(first), list(first)
    allowed = np.flatnonzero(choice.allowed)

    def best_with(others: list[int]) -> tuple[int, float]:
        near = np.min(squares[:, others], axis=1) if others else np.full(size, np.inf)
        free = np.setdiff1d(allowed, others)
        means = choice.weights @ np.minimum(near[:, None], squares[:, free])
        return int(free[np.argmin(means)]), float(np.min(means))

    while len(order) < count:
        order.append(best_with([*order, *known])[0])
    for _ in range(SWAPS):
        before = list(order)
        for place in range(len(fixed), len(order)):
            others = [*order[:place], *order[place + 1 :], *known]
            order[place] = best_with(others)[0]
        if order == before:
            break
    free, order = order[len(fixed) :], fixed
    while free:  # the most useful ones first
        nearest = [np.min(squares[:, [*order, *known, own]], axis=1) for own in free]
        order.append(free.pop(int(np.argmin([choice.weights @ near for near in nearest]))))
    return order


def by_chance(choice: Choice, count: int, first: Sequence[int]) -> list[int]:
    """At random, with the weights as probabilities; costs have no effect."""
    rng = np.random.default_rng(choice.seed)
    drawn = draw_groups(choice.weights, choice.allowed, rng)
    return [*first, *(number for number in drawn if number not in first)][:count]


def draw_groups(weights: Array, allowed: Array, rng: Any) -> list[int]:
    """The allowed groups in random order: each next one with a probability ∝ its weight."""
    keys = rng.exponential(size=weights.size) / np.maximum(weights, 1e-300)
    order = np.argsort(keys, kind="stable")
    return [int(number) for number in order if allowed[number]]


def _known_groups(choice: Choice) -> list[int]:
    """Numbers of the known rows in `_group_squares`: groups of their own, after the others."""
    size = len(choice.groups)
    return list(range(size, size + choice.known_rows().size))


def _group_squares(choice: Choice) -> Array:
    """(G, G + known) squared kernel distances ‖mean of φ over a − mean of φ over b‖².

    ⟨mean over a, mean over b⟩ is the mean of the kernel over all pairs of their rows. Columns are
    computed for some groups at a time, so that memory is that of the result and (M, BLOCK) values.
    """
    members = [*choice.groups, *(np.array([row]) for row in choice.known_rows())]
    sizes = np.array([member.size for member in members])
    ordered = choice.rows[np.concatenate(members)]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    inner = np.empty((len(members), len(members)))
    for part in row_blocks(len(members), BLOCK):
        last = part.stop if part.stop < len(members) else None
        first_row, end = starts[part.start], None if last is None else starts[last]
        columns = choice.kernel(ordered, ordered[first_row:end])
        by_row = np.add.reduceat(columns, starts, axis=0) / sizes[:, None]
        inner[:, part] = np.add.reduceat(by_row, starts[part] - first_row, axis=1) / sizes[part]
    own = np.diag(inner)
    squares = own[:, None] + own[None, :] - 2.0 * inner
    return np.maximum(squares[: len(choice.groups)], 0.0)


def _medoid(squares: Array, choice: Choice, free: Array) -> int:
    """The allowed group with the smallest weighted mean squared distance to all groups."""
    means = choice.weights @ squares[:, : len(choice.groups)]
    return int(np.argmin(np.where(free, means, np.inf)))


METHODS: dict[str, Callable[[Choice, int, Sequence[int]], list[int]]] = {
    "logdet": by_log_determinant,
    "variance": by_variance,
    "lcmd": by_largest_cluster,
    "kmedoids": by_medoids,
    "random": by_chance,
}
"""How groups are chosen: (choice, number of groups, those that must be chosen) → order."""
