"""Carried smoke on the fuel of every snapshot: proportional, batched, on any array namespace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumecast.operators.carried.release import FuelLoads, WeatherSeries
from plumecast.operators.carried.transport import CARRIED, ColumnTransport

SHAPE = (30, 40)
HEIGHT_EFFECT = 0.03
"""Relative: more fuel makes more heat, so that smoke rises higher and less of it is deposited."""


def load(value: float) -> np.ndarray:
    return np.full(SHAPE, value, np.float32)


def transport(trained_on: np.ndarray | None) -> ColumnTransport:
    return ColumnTransport((3000.0, 3000.0), 1.0, 0.5, 4, CARRIED["column"].groups, trained_on)


def fires(count: int) -> np.ndarray:
    made = np.zeros((count, *SHAPE), np.float32)
    made[:, 15, 10:12] = np.linspace(3.0, 5.5, count)[:, None]
    return made


def weather(count: int) -> WeatherSeries:
    winds = np.full((count, 7, 2), 3.0)
    until = np.full(count, 6.0)
    depth = np.full((count, 7), 1000.0)
    return WeatherSeries(np.arange(7.0), np.array([10.0, 6000.0]), winds, -winds, depth, until)


@pytest.fixture
def loads() -> FuelLoads:
    """Of five snapshots, on two of three maps."""
    return FuelLoads(np.stack([load(1.0), load(9.0), load(2.0)]), np.array([0, 2, 2, 0, 2]))


def test_twice_the_fuel_makes_twice_the_smoke():
    own = transport(load(1.0))
    once = own.smoke(fires(2), weather(2))
    twice = own.smoke(fires(2), weather(2), FuelLoads(load(2.0)[None], np.zeros(2, int)))
    assert twice.sum() == pytest.approx(2.0 * once.sum(), rel=HEIGHT_EFFECT)


def test_the_map_of_training_gives_the_same_bits():
    own = transport(load(1.7))
    same = FuelLoads(load(1.7)[None], np.zeros(3, int))
    each = FuelLoads(np.stack([load(1.7)] * 3), np.arange(3))
    expected = own.smoke(fires(3), weather(3))
    for fuel in (same, each):
        np.testing.assert_array_equal(own.smoke(fires(3), weather(3), fuel), expected)


def test_every_snapshot_burns_its_own_fuel(loads):
    together = transport(load(1.0)).smoke(fires(5), weather(5), loads)
    for row, value in enumerate((1.0, 2.0, 2.0, 1.0, 2.0)):
        rows = slice(row, row + 1)
        alone = transport(load(value)).smoke(fires(5)[rows], weather(1))
        np.testing.assert_allclose(together[rows], alone, rtol=1e-5, atol=1e-9)  # float32


def test_a_transport_without_a_load_takes_none(loads):
    own = transport(None)
    plain = own.smoke(fires(5), weather(5))
    np.testing.assert_array_equal(own.smoke(fires(5), weather(5), loads), plain)


@pytest.mark.parametrize("namespace", ["torch", "array_api_strict"])
def test_other_arrays_give_the_same(namespace, loads):
    xp = pytest.importorskip(namespace)
    own = transport(load(1.0))
    there = own.smoke(xp.asarray(fires(5)), weather(5), loads)
    here = own.smoke(fires(5), weather(5), loads)
    np.testing.assert_allclose(np.asarray(there), here, rtol=1e-4, atol=1e-9)  # float32


def test_the_mean_counts_every_snapshot(loads):
    np.testing.assert_allclose(loads.mean(), 1.6)
    one = replace(loads, maps=load(0.1)[None], number=np.zeros(3, int))
    np.testing.assert_array_equal(one.mean(), load(0.1))
