"""Choices of groups: exact algebra against brute force, and what every method promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumecast.workflows.design.kernel import (
    METHODS,
    Choice,
    by_variance,
    draw_groups,
    mean_variances,
)

ROUNDING = 1e-10  # of sums of a dozen numbers of order 1 in double precision
NOISE = 0.3


def gaussian(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    squares = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-0.5 * squares)


def make_choice(seed: int = 0, groups: int = 7, given: int = 2) -> Choice:
    """Groups of one to three random points, and some known points."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=groups)
    rows = rng.normal(size=(int(sizes.sum()) + given, 3))
    members = np.split(np.arange(given, rows.shape[0]), np.cumsum(sizes)[:-1])
    weights = rng.uniform(0.5, 1.5, size=groups)
    costs = rng.uniform(0.5, 2.0, size=groups)
    allowed = np.ones(groups, dtype=bool)
    return Choice(rows, members, gaussian, NOISE, weights / weights.sum(), costs, allowed)


def brute_variances(choice: Choice, rows: np.ndarray) -> np.ndarray:
    """diag(K − K_S (K_SS + λ I)⁻¹ K_Sᵀ), with a dense inverse."""
    kernel = gaussian(choice.rows, choice.rows)
    block = kernel[np.ix_(rows, rows)] + NOISE * np.eye(rows.size)
    return np.diag(kernel - kernel[:, rows] @ np.linalg.inv(block) @ kernel[rows])


def rows_of(choice: Choice, numbers) -> np.ndarray:
    return np.concatenate([choice.known_rows(), *(choice.groups[n] for n in numbers)])


@pytest.mark.parametrize("seed", range(3))
def test_variances_are_those_of_a_dense_inverse(seed):
    choice = make_choice(seed)
    order = [3, 0, 5]
    found = mean_variances(choice, order)
    weights = choice.row_weights()
    expected = [
        weights @ brute_variances(choice, rows_of(choice, order[:count])) for count in range(4)
    ]
    np.testing.assert_allclose(found, expected, atol=ROUNDING)
    assert (np.diff(found) < 0.0).all(), "every run lowers the variance"


@pytest.mark.parametrize("seed", range(3))
def test_the_variance_method_lowers_the_mean_variance_most(seed):
    choice = replace(make_choice(seed), costs=np.ones(7))
    first, second = by_variance(choice, 2, ())
    alone = [mean_variances(choice, [number])[-1] for number in range(7)]
    assert first == int(np.argmin(alone))
    after = {n: mean_variances(choice, [first, n])[-1] for n in range(7) if n != first}
    assert second == min(after, key=after.__getitem__)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_chooses_allowed_groups_once_and_must_haves_first(method):
    choice = make_choice(5, groups=9)
    choice.allowed[[2, 6]] = False
    chosen = METHODS[method](choice, 6, [6, 4])
    assert len(chosen) == len(set(chosen)) == 6
    assert chosen[:2] == [6, 4], "also one that is not allowed otherwise"
    assert 2 not in chosen
    assert METHODS[method](choice, 6, [6, 4]) == chosen, "repeatable"
    assert len(METHODS[method](replace(choice, rows=choice.rows), 7, [])) == 7, "all allowed ones"


def test_one_of_every_cluster_is_chosen():
    rng = np.random.default_rng(1)
    centres = 20.0 * np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    rows = np.concatenate([centre + 0.1 * rng.normal(size=(5, 3)) for centre in centres])
    groups = [np.array([number]) for number in range(15)]
    equal = np.full(15, 1.0 / 15.0)
    choice = Choice(rows, groups, gaussian, NOISE, equal, np.ones(15), np.ones(15, dtype=bool))
    chosen = by_variance(choice, 3, [])
    assert sorted(number // 5 for number in chosen) == [0, 1, 2]


def points(places: list[float], groups: int, costs: np.ndarray) -> Choice:
    """Groups of one point each on a line; the points beyond them are known."""
    members = [np.array([number]) for number in range(groups)]
    equal, allowed = np.full(groups, 1.0 / groups), np.ones(groups, dtype=bool)
    return Choice(np.array(places)[:, None], members, gaussian, NOISE, equal, costs, allowed)


def test_a_known_cluster_is_not_chosen_again_and_a_cheaper_equal_is_preferred():
    known = points([0.0, 0.1, 0.2, 9.0, 9.1, 0.15], 5, np.ones(5))
    assert by_variance(known, 1, [])[0] in (3, 4)
    assert by_variance(points([0.0, 5.0, 10.0], 3, np.array([2.0, 1.0, 2.0])), 1, [])[0] == 1


def test_random_groups_follow_their_weights():
    rng = np.random.default_rng(0)
    weights = np.array([0.7, 0.3, 0.0])
    first = [draw_groups(weights, np.ones(3, dtype=bool), rng)[0] for _ in range(2000)]
    shares = np.bincount(first, minlength=3) / 2000
    np.testing.assert_allclose(shares, weights, atol=0.05)  # five standard deviations
