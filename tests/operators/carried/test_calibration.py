"""Calibration of the transport: smoke of other constants is met, in any unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumecast.operators.carried.calibration import LADDERS, _error, calibrate
from plumecast.operators.carried.release import WeatherSeries
from plumecast.operators.carried.transport import ColumnTransport, plan_transport

CELL = 3000.0
SHAPE = (24, 28)
FIRES = 6
FACTOR = 40.0
"""µg m⁻³ per unit of carried smoke; any value."""
TAU = 1e-3
"""A smoke threshold in the same unit."""
MET = 0.6
"""Error of calibrated smoke, relative to that of the plain transport; 0 to .45 were found."""


@pytest.fixture(scope="module")
def fires() -> tuple[np.ndarray, WeatherSeries]:
    """Fires of a few cells, each with another wind, stronger aloft; smoke stays on the grid."""
    rng = np.random.default_rng(3)
    fire = np.zeros((FIRES, *SHAPE), np.float32)
    for number, (row, column) in enumerate(zip(*rng.integers(9, 16, (2, FIRES)), strict=True)):
        fire[number, row, column : column + 3] = (7.0, 5.0, 2.0)
    hours, heights = np.arange(9.0), np.array([10.0, 300.0, 1500.0, 6000.0])
    speed, angle = rng.uniform(0.6, 1.2, FIRES), rng.uniform(0.0, 2.0 * np.pi, FIRES)
    aloft = np.array([1.0, 1.4, 2.0, 3.0])
    u, v = (
        np.broadcast_to((speed * part)[:, None, None] * aloft, (FIRES, 9, 4))
        for part in (np.cos(angle), np.sin(angle))
    )
    depth = np.full((FIRES, 9), 1200.0)
    return fire, WeatherSeries(hours, heights, u, v, depth, np.full(FIRES, 8.0))


def planned(weather: WeatherSeries, **constants: float) -> ColumnTransport:
    return replace(plan_transport(weather, (CELL, CELL), 1.0), **constants)


def constants_of(transport: ColumnTransport) -> dict[str, float]:
    return {name: getattr(transport, name) for name in LADDERS}


@pytest.mark.parametrize(
    "true",
    [
        {"diffusivity": 4000.0, "rise": 0.25, "drift": 0.6},
        {"diffusivity": 500.0, "rise": 1.0, "drift": 1.2},
    ],
)
def test_smoke_of_other_constants_is_nearly_met(fires, true):
    """Constants can stand in for each other in part: what counts is the carried smoke."""
    fire, weather = fires
    smoke = FACTOR * planned(weather, **true).smoke(fire, weather)[:, 0]
    plan = planned(weather)
    found = calibrate(plan, fire, smoke, weather, threshold=TAU)
    ours, before = (
        np.linalg.norm(FACTOR * one.smoke(fire, weather)[:, 0] - smoke) for one in (found, plan)
    )
    assert ours <= MET * before


def test_the_plain_transport_is_kept_where_it_is_right(fires):
    fire, weather = fires
    smoke = FACTOR * planned(weather).smoke(fire, weather)[:, 0]
    found = calibrate(planned(weather), fire, smoke, weather, threshold=TAU)
    assert constants_of(found) == constants_of(planned(weather))


def test_the_unit_of_smoke_does_not_matter(fires):
    fire, weather = fires
    rng = np.random.default_rng(0)
    smoke = planned(weather, diffusivity=1000.0, drift=0.8).smoke(fire, weather)[:, 0]
    smoke = smoke * rng.uniform(0.5, 1.5, smoke.shape)
    found = [
        constants_of(calibrate(planned(weather), fire, unit * smoke, weather, threshold=unit * TAU))
        for unit in (1e-6, 1e6)
    ]
    assert found[0] == found[1]


def test_without_smoke_true_or_carried_the_transport_stays_as_planned(fires):
    fire, weather = fires
    plan = planned(weather)
    assert calibrate(plan, fire, np.zeros_like(fire), weather, threshold=TAU) is plan
    alone = calibrate(plan, np.zeros_like(fire), np.ones_like(fire), weather, threshold=TAU)
    assert constants_of(alone) == constants_of(plan)


def test_smoke_that_misses_altogether_is_no_success():
    carried, smoke = np.zeros((2, 4, *SHAPE))
    carried[:, 2, 2], smoke[:, 20, 20] = 1.0, 1.0
    assert _error(carried, smoke, 0.01, TAU) == 1.0
    smoke[0], carried[0] = carried[0], carried[0]  # one of four is right
    assert _error(carried, smoke, 0.01, TAU) == pytest.approx(0.75)
