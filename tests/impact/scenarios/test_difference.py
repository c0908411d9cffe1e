"""Differences of means and probabilities: their error, their coverage, their limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from plumecast.impact.difference import (
    holm,
    paired_difference,
    share_difference,
    unpaired_difference,
)

ROUNDING = 1e-10  # relative: sums in another order
REPETITIONS = 2000
EFFECT = -0.05
BINOMIAL = 0.015  # three standard errors of a coverage of 0.95 over 2000 repetitions


def fires(rng, count, effect=0.0, shared=0.9):
    """Pairs (count, places) of skewed samples that share most of their spread."""
    common = rng.gamma(2.0, 1.0, size=(count, REPETITIONS))
    own = rng.gamma(2.0, 1.0, size=(2, count, REPETITIONS))
    a, b = (shared * common + (1.0 - shared) * part for part in own)
    return a, b + effect


def test_pairs_of_single_fires_have_the_paired_t_test():
    rng = np.random.default_rng(1)
    a, b = (part[:, :3] for part in fires(rng, 15, effect=-0.1))
    found = paired_difference(a, b, np.arange(15))
    expected = stats.ttest_rel(b, a)
    np.testing.assert_allclose(found.change.mean / found.change.error, expected.statistic)
    low, high = expected.confidence_interval(0.9)
    np.testing.assert_allclose(found.interval(0.9), [low, high], rtol=ROUNDING)
    one_sided = stats.ttest_rel(b, a, alternative="less").pvalue
    np.testing.assert_allclose(found.chance(), 1.0 - one_sided, rtol=ROUNDING)
    np.testing.assert_allclose(found.better, (b < a).mean(axis=0))


def test_independent_fires_have_welchs_t_test():
    rng = np.random.default_rng(2)
    a, b = rng.gamma(2.0, size=(12, 3)), rng.gamma(3.0, size=(30, 3))
    found = unpaired_difference(a, np.arange(12), b, np.arange(30))
    low, high = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    np.testing.assert_allclose(found.interval(0.95), [low, high], rtol=ROUNDING)


def test_paired_intervals_cover_and_need_fewer_fires():
    """Over 2000 repetitions of 25 pairs; differences of two equal distributions are symmetric."""
    a, b = fires(np.random.default_rng(3), 25, effect=EFFECT)
    paired = paired_difference(a, b, np.arange(25))
    low, high = paired.interval(0.95)
    assert ((low <= EFFECT) & (high >= EFFECT)).mean() == pytest.approx(0.95, abs=BINOMIAL)
    unpaired = unpaired_difference(a, np.arange(25), b, np.arange(25))
    low, high = unpaired.interval(0.95)
    assert ((low <= EFFECT) & (high >= EFFECT)).mean() > 0.99, "shared spread is counted twice"
    ratio = (paired.change.error**2 / unpaired.change.error**2).mean()
    assert ratio < 0.25


def test_fires_of_one_ignition_are_one_sample():
    rng = np.random.default_rng(4)
    a, b = (part[:, :2] for part in fires(rng, 10))
    twice = paired_difference(np.repeat(a, 3, axis=0), np.repeat(b, 3, axis=0), np.arange(30) // 3)
    once = paired_difference(a, b, np.arange(10))
    np.testing.assert_allclose(twice.interval(0.95), once.interval(0.95), rtol=ROUNDING)


def test_more_ignitions_would_settle_it():
    """With the same difference and spread, n pairs exclude 0 and n − 1 do not."""
    rng = np.random.default_rng(5)
    a, b = (part[:, :200] for part in fires(rng, 12, effect=-0.08))
    found = paired_difference(a, b, np.arange(12))
    more = found.more_ignitions(0.95)
    settled = np.abs(found.change.mean) > stats.t.ppf(0.975, 11) * found.change.error
    np.testing.assert_array_equal(more == 0, settled)
    open_ = np.isfinite(more) & ~settled
    assert open_.any()
    for step, excludes in ((0, True), (-1, False)):
        n = 12 + more[open_] + step
        reach = stats.t.ppf(0.975, n - 1) * found.spread[open_] / np.sqrt(n)
        np.testing.assert_array_equal(reach <= np.abs(found.change.mean[open_]), excludes)


def test_rare_large_differences_are_called_rough():
    """Two fires of forty make the difference: skewness 4.1, so 25 skewness² is 420 pairs."""
    rng = np.random.default_rng(9)
    a = np.zeros((40, 2))
    b = np.stack([-np.where(np.arange(40) < 2, 1.0, 0.0), rng.normal(size=40)], axis=1)
    found = paired_difference(a, b, np.arange(40))
    np.testing.assert_allclose(found.skewness, np.abs(stats.skew(b)), rtol=ROUNDING)
    assert found.rough().tolist() == [True, False]


def test_one_ignition_or_equal_fires_tell_no_interval():
    equal = np.zeros((8, 1))
    found = paired_difference(equal, equal, np.arange(8))
    assert np.isnan([*found.interval(0.95), found.chance()]).all()
    assert np.isinf(found.more_ignitions(0.95)).all()
    a, b = (
        np.array([[1.0, 0.0, 1.0], [2.0, 0.0, 1.0]]),
        np.array([[0.5, 1.0, 0.0], [1.0, 2.0, 0.0]]),
    )
    for found in (
        paired_difference(a, b, np.array([0, 0])),
        unpaired_difference(a, np.array([0, 0]), b, np.array([0, 1])),
    ):
        assert np.isinf(found.interval(0.95)).all()
        assert np.isnan(found.chance()).all()


def test_relative_difference_is_not_bounded_by_a_reference_that_may_be_zero():
    rng = np.random.default_rng(6)
    sure, rare = rng.uniform(1.0, 2.0, 20), np.where(np.arange(20) == 0, 1.0, 0.0)
    a = np.stack([sure, rare], axis=1)
    found = paired_difference(a, 0.5 * a + 0.01 * rng.normal(size=a.shape), np.arange(20))
    low, high = found.relative_interval(0.95)
    assert low[0] < -0.5 < high[0]
    assert high[0] - low[0] < 0.05
    assert np.isnan([low[1], high[1]]).all()


ONE_FEWER = 0.002  # the clustered error has n − 1 degrees of freedom: one effective sample fewer


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        ((36, 12, 2, 0), 0.0569, 0.3404),
        ((54, 0, 0, 0), -0.0664, 0.0664),
        ((0, 30, 0, 0), 0.8395, 1.0),
    ],
)
def test_newcombes_published_intervals(counts, low, high):
    """Pairs (both, only second, only first, neither): method 10 of Newcombe (1998)."""
    b, a = (np.repeat(values, counts)[:, None] for values in ((1.0, 1.0, 0, 0), (1.0, 0, 1.0, 0)))
    n = np.arange(b.size)
    _, _, lower, upper = share_difference(a, n, b, n, paired=True, coverage=0.95)
    assert (lower[0], upper[0]) == pytest.approx((low, high), abs=ONE_FEWER)


def test_paired_shares_cover():
    """Exceedance of correlated fires, 40 pairs: neither too narrow nor far too wide."""
    rng = np.random.default_rng(7)
    a, b = fires(rng, 40, effect=-0.3)
    n = np.arange(40)
    large = fires(np.random.default_rng(8), 400, effect=-0.3)
    truth = (large[1] > 2.0).mean() - (large[0] > 2.0).mean()
    _, _, low, high = share_difference(a > 2.0, n, b > 2.0, n, paired=True, coverage=0.95)
    covered = ((low <= truth) & (truth <= high)).mean()
    assert 0.95 - BINOMIAL < covered < 0.99
    _, _, wide_low, wide_high = share_difference(
        a > 2.0, n, b > 2.0, n, paired=False, coverage=0.95
    )
    assert (high - low).mean() < 0.7 * (wide_high - wide_low).mean()


def test_traces_are_neither_better_nor_worse():
    """Pairs that differ by 1e-9 of the largest smoke count as equal."""
    rng = np.random.default_rng(0)
    a = np.stack([rng.uniform(1.0, 2.0, 30), rng.uniform(1.0, 2.0, 30)], axis=1)
    b = a + np.array([1e-9, 0.1])
    found = paired_difference(a, b, np.arange(30))
    assert found.worse.tolist() == [0.0, 1.0]
    assert found.better.tolist() == [0.0, 0.0]


def test_holm_agrees_with_its_definition():
    p = np.array([0.01, 0.04, 0.03, 0.005, np.nan])
    chances = 1.0 - p / 2.0
    assert holm(chances, 0.95).tolist() == [True, False, False, True, False]
