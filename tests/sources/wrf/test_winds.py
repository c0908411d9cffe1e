"""The wind of WRF runs: mean of U10 and V10 since ignition."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast import read_wrf
from plumecast.sources.wrf import WrfOptions
from plumecast.sources.wrf.frame import domain_wind, mean_winds
from support.places import shared_data
from support.wrf_files import Circle, blowing, write_run


def towards(speed: float, from_direction: float) -> tuple[float, float]:
    angle = np.deg2rad(from_direction)
    return -speed * np.sin(angle), -speed * np.cos(angle)


def test_mean_wind_by_hand():
    """West wind of 4, then south wind of 2 m/s: speeds 4 and 3, the mean vector is (2, 1)."""
    speed, direction = mean_winds([towards(4.0, 270.0), towards(2.0, 180.0)])
    np.testing.assert_allclose(speed, [4.0, 3.0])
    np.testing.assert_allclose(direction, [270.0, 180.0 + np.rad2deg(np.arctan2(2.0, 1.0))])


def test_frames_without_a_wind_are_left_out():
    west = towards(5.0, 270.0)
    speed, direction = mean_winds([None, west, None, towards(7.0, 270.0)])
    np.testing.assert_allclose(speed, [5.0, 5.0, 5.0, 6.0])
    np.testing.assert_allclose(direction, 270.0)
    assert mean_winds([None, None]) is None


def test_a_wind_that_was_not_computed_yet_is_none():
    assert domain_wind(np.zeros((2, 3)), np.zeros((2, 3))) is None


def test_the_mean_runs_from_ignition_over_the_kept_frames(tmp_path):
    """The fire ignites after 1.5 h, so that the storm at 1 h does not count."""
    fire = Circle(ignition=5400.0)
    wind = {1: (50.0, 0.0), 2: (4.0, 0.0), 3: (6.0, 0.0), 4: (8.0, 0.0)}
    run = write_run(
        tmp_path / "a", range(5), fire=fire, edit=blowing(lambda s: wind.get(round(s / 3600)))
    )
    snapshots = read_wrf(run)
    np.testing.assert_allclose(snapshots.wind_speed, [4.0, 5.0, 6.0])
    np.testing.assert_allclose(snapshots.wind_from_direction, 270.0)
    assert snapshots.wind_speed.attrs["units"] == "m s-1"
    np.testing.assert_allclose(read_wrf(run, WrfOptions(every="2h")).wind_speed, [4.0, 6.0])


def test_a_run_without_u10_and_v10_has_no_wind(tmp_path):
    assert "wind_speed" not in read_wrf(write_run(tmp_path / "a", range(3))).variables


@pytest.mark.parametrize(
    ("run", "from_direction"), [("018", 255.0), ("019", 235.0), ("020", 215.0)]
)
def test_real_winds_come_from_where_the_sounding_says(run, from_direction):
    """The 10 m wind is weaker than the sounding's surface wind and turned by less than 10°."""
    snapshots = read_wrf(shared_data(f"wrf/runs/fire_{run}"))
    assert abs(snapshots.wind_from_direction - from_direction).max() < 10.0
    stated = {"018": 9.5, "019": 7.0, "020": 5.5}[run]
    assert ((0.6 * stated < snapshots.wind_speed) & (snapshots.wind_speed < stated)).all()
