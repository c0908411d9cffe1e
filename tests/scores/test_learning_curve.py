"""Learning curves: the power law is found, its spread falls with points, and few say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.scores.learning_curve import Point, fit_power_law, forecast

GRID = 0.005  # step of the powers that are tried


def law(a: float, b: float, counts, noise: float = 0.0, seed: int = 0) -> list[Point]:
    rng = np.random.default_rng(seed)
    return [Point(n, a * n**-b * float(np.exp(noise * rng.normal()))) for n in counts]


@pytest.mark.parametrize("b", [0.0, 0.25, 0.6])
def test_an_exact_power_law_is_found(b):
    found = fit_power_law(law(0.7, b, range(4, 20)))
    assert found.b == pytest.approx(b, abs=GRID)
    assert found.a == pytest.approx(0.7, rel=3 * GRID)


def test_a_rising_error_is_taken_for_a_constant_one():
    points = [Point(n, 0.1 + 0.01 * n) for n in range(4, 12)]
    assert fit_power_law(points).b == 0.0
    found = forecast(points, 12, 4)
    assert found is not None
    assert found.now == found.later
    assert not found.is_clear
    assert found.ignitions_for(0.01) is None


def test_few_points_or_a_single_count_say_nothing():
    assert forecast(law(0.7, 0.5, [4, 5]), 5, 4) is None
    assert forecast([Point(4, e) for e in (0.3, 0.4, 0.5)], 4, 4) is None
    assert forecast(law(0.7, 0.5, [4, 5, 6]), 6, 4) is not None


def test_a_forecast_follows_its_law():
    found = forecast(law(0.8, 0.5, range(4, 17)), 16, 20)
    assert found is not None
    assert found.now == pytest.approx(0.2, rel=1e-6)
    assert found.later == pytest.approx(0.8 / 6.0, rel=1e-6)
    assert found.is_clear
    assert found.ignitions_for(0.1) == 48
    assert found.ignitions_for(0.3) == 0


def test_more_points_make_the_forecast_surer():
    few, many = (
        forecast(law(0.8, 0.4, np.linspace(4, 40, number), noise=0.3, seed=1), 40, 8)
        for number in (6, 60)
    )
    assert many.now_spread < few.now_spread
    assert many.later == pytest.approx(0.8 * 48**-0.4, rel=0.2)


def test_weights_count_as_repeated_points():
    points = [Point(4, 0.5), Point(8, 0.4), Point(16, 0.2)]
    heavy = [Point(4, 0.5, 3.0), *points[1:]]
    found, expected = fit_power_law(heavy), fit_power_law([points[0]] * 3 + points[1:])
    assert (found.a, found.b) == pytest.approx((expected.a, expected.b), rel=1e-12)
