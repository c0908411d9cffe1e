"""The burned share: from arrival times and from maps, and the ages that follow from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumecast.compute.burned import Shares, shares_of, shares_of_arrival
from plumecast.operators.carried.release import FireHistory


@given(arrival=st.floats(0.2, 5.5), rate=st.floats(0.2, 3.0))
def test_the_share_that_has_burned_follows_from_the_maps(arrival, rate):
    """A cell that a front crosses evenly from `arrival` on, in `rate` hours; maps every half hour.

    The shares that come back are at most the share that burns in half an hour away.
    """
    hours = np.arange(0.5, 8.1, 0.5)
    since = np.maximum(hours - arrival, 0.0)
    crossed = np.minimum(since, rate)
    ages = crossed**2 / (2.0 * rate) + since - crossed
    shares = shares_of(hours[None], ages[None, :, None, None])
    times = np.linspace(0.0, 8.0, 60)
    found = shares.by(times[:, None])[:, 0, 0, 0]
    exact = np.clip((times - arrival) / rate, 0.0, 1.0)
    assert (np.diff(found) >= -1e-6).all()
    assert np.abs(found - exact).max() <= min(1.0, 0.5 / rate) + 1e-6
    total = np.trapezoid(found, times)
    assert total == pytest.approx(ages[-1], abs=0.13)


def fire(seed: int, bursts: int, length: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrivals of 4,000 parts of 40 cells; a front runs through the cells in bursts."""
    rng = np.random.default_rng(seed)
    place = np.sort(rng.uniform(0.0, 1.0, 4000))
    begins = np.sort(rng.uniform(0.0, length, bursts))
    arrival = begins[(place * bursts).astype(int)] + (place * bursts % 1.0) * length / 10.0
    arrival[0] = 0.0
    target = (40 * np.clip(place + rng.normal(0.0, 0.02, 4000), 0.0, 0.999)).astype(int)
    return arrival, target, np.full(4000, 5e-3)


def exact(arrival, target, part, times) -> np.ndarray:
    return np.stack([np.bincount(target, part * (arrival <= time), 40) for time in times])


def as_shares(hours: np.ndarray, shares: np.ndarray) -> Shares:
    whole = np.concatenate([np.zeros_like(shares[:1]), shares])
    return Shares(np.append(0.0, hours)[None], whole[None, :, None, :])


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**16),
    bursts=st.integers(1, 4),
    length=st.floats(0.5, 200.0),
    gaps=st.sampled_from([(1, 16), (4, 6), (12, 3)]),
)
def test_a_few_hours_tell_when_a_fire_burned(seed, bursts, length, gaps):
    """At most 2 % of all that burns is misplaced, in the mean over the fire or an hour."""
    parts = fire(seed, bursts, length)
    count, most = gaps
    ends = np.linspace(0.0, parts[0].max(), count + 1)[1:]
    hours, shares = shares_of_arrival(*parts, 40, ends=ends, most=most)
    assert hours.shape == shares.shape[:2] == gaps
    known = np.isfinite(hours)
    assert (np.nanmax(hours, axis=1) == ends).all()
    hours, shares = hours[known], shares[known]
    assert hours[0] > 0.0
    assert (np.diff(hours) > 0.0).all()
    assert (np.diff(shares, axis=0) >= 0.0).all()
    np.testing.assert_allclose(shares[-1], np.bincount(parts[1], parts[2], 40), rtol=1e-5)
    times = np.linspace(0.0, 1.2 * parts[0].max(), 97)[1:]
    found = as_shares(hours, shares).by(times[:, None])[:, 0, 0]
    wrong = np.abs(found - exact(*parts, times)).sum(axis=1)
    assert wrong.mean() <= 0.02 * shares[-1].sum() * max(1.0, 1.0 / times[-1])


def test_what_burns_after_the_last_end_is_left_out():
    arrival = np.linspace(0.0, 10.0, 101)
    where, part = np.zeros(101, dtype=int), np.full(101, 1.0 / 101.0)
    hours, shares = shares_of_arrival(arrival, where, part, 1, ends=np.array([2.0, 4.0]), most=3)
    assert np.nanmax(hours) == 4.0
    assert shares.max() == pytest.approx(41.0 / 101.0)
    begin = shares_of_arrival(arrival, where, part, 1, ends=np.array([2.0]), most=3)
    np.testing.assert_array_equal(begin[0], hours[:1])
    np.testing.assert_array_equal(begin[1], shares[:1])


def test_what_burns_at_ignition_is_released_soon():
    """A polygon that burns at once is not lost."""
    front = np.append(np.zeros(50), np.linspace(0.0, 4.0, 50))
    where, part = np.zeros(100, dtype=int), np.full(100, 0.01)
    hours, shares = shares_of_arrival(front, where, part, 1, ends=np.array([4.0]), most=8)
    known = np.isfinite(hours[0])
    assert shares[0, known][0, 0] >= 0.5
    assert hours[0, 0] < 0.1
    assert shares[0, known][-1, 0] == pytest.approx(1.0)


@given(
    gaps=st.lists(st.floats(0.05, 5.0), min_size=1, max_size=6),
    seed=st.integers(0, 2**16),
)
def test_ages_are_the_integral_of_the_share(gaps, seed):
    """By the trapezoid rule on a fine grid, also after the last node."""
    hours = np.append(0.0, np.cumsum(gaps))
    rng = np.random.default_rng(seed)
    shares = np.sort(rng.uniform(0.0, 1.0, (1, hours.size, 2, 3)), axis=1)
    made = Shares(hours[None], shares)
    times = np.linspace(0.0, hours[-1] + 2.0, 4001)
    by = made.by(times[:, None])[:, 0]
    summed = np.cumsum(0.5 * (by[1:] + by[:-1]) * np.diff(times)[:, None, None], axis=0)
    np.testing.assert_allclose(made.ages(times[1:, None])[:, 0], summed, atol=1e-3)


def test_a_block_may_hold_fires_with_shares_and_fires_with_maps():
    ages = np.stack([np.full((2, 3), age, np.float32) for age in (0.5, 1.5)])
    shares = np.stack([np.full((2, 3), share, np.float32) for share in (0.2, 0.9)])
    fields, hours = np.concatenate([ages, shares]), np.array([1.0, 2.0, 1.0, 2.0])
    both = FireHistory(fields, hours, np.array([[0, 1], [2, 3]]), 2)
    times = np.linspace(0.0, 3.0, 7)[:, None].repeat(2, axis=1)
    found = both.release(fields[:2]).by(times)
    of_maps = FireHistory(ages, hours[:2], np.array([[0, 1]])).release(fields[:1])
    np.testing.assert_allclose(found[:, 0], of_maps.by(times[:, :1])[:, 0], atol=1e-6)
    np.testing.assert_allclose(
        found[:, 1, 0, 0], np.interp(times[:, 1], [0.0, 1.0, 2.0], [0.0, 0.2, 0.9]), atol=1e-6
    )
    again = both.at(np.array([1])).loaded().release(fields[:1])
    np.testing.assert_allclose(again.by(times[:, :1])[:, 0], found[:, 1], atol=1e-6)
