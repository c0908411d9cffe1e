"""Folders of WRF-Fire inputs: of fires of the simulator, and of others."""

from __future__ import annotations

import json

import numpy as np
import pytest

from plumecast import PlumecastError
from plumecast.base.names import SIMULATION
from plumecast.data.assembly import concat_snapshots
from plumecast.simulator.ensemble import Simulator, World, plan_fires
from plumecast.workflows import write_wrf_inputs
from plumecast.workflows.wrf_domain import anderson_categories
from plumecast.workflows.wrf_inputs import estimated_ignition
from support.weather_fires import CELL, weather_fires

SETTINGS = {"seed": 3, "checkpoints": 2, "years": 1, "shape": [80, 90], "cell": 300.0}
WORLD = World(3, 2, 1, (80, 90), 300.0)


@pytest.fixture(scope="module")
def simulated():
    simulator = Simulator(WORLD)
    plans = plan_fires(2, (), seed=3, weathers=1)
    fires = concat_snapshots([simulator.fire(plan, with_smoke=False) for plan in plans])
    return fires.assign_attrs({SIMULATION: json.dumps(SETTINGS | {"dem": None})})


@pytest.fixture(scope="module")
def others():
    return weather_fires(3)


def value(folder, name, file="namelist.input"):
    [line] = [
        line for line in (folder / file).read_text().splitlines() if line.startswith(f" {name} =")
    ]
    return float(line.split("=")[1].rstrip(","))


def test_a_simulated_fire_gets_all_files_of_its_own(simulated, tmp_path):
    [folder] = write_wrf_inputs(simulated, tmp_path / "wrf", ignitions=["s3-i0001"])
    assert folder.name == "s3-i0001-w0"
    assert {path.name for path in folder.iterdir()} == {
        "README.md", "input_fc", "input_ht", "input_sounding", "namelist.fire", "namelist.input"
    }  # fmt: skip
    fire = simulated.isel(snapshot=simulated.fire_id.values == "s3-i0001-w0")
    assert value(folder, "fuelmc_g", "namelist.fire") == pytest.approx(
        float(fire.fuel_moisture[0]), abs=5e-5
    )
    assert value(folder, "run_hours") == float(fire.hours.max())
    assert "Missing" not in (folder / "README.md").read_text(encoding="utf-8")


def test_the_ignition_and_the_fuels_are_those_of_the_simulated_fire(simulated, tmp_path):
    [folder, _] = write_wrf_inputs(simulated, tmp_path)
    x, y = (value(folder, f"fire_ignition_start_{axis}1") for axis in "xy")
    assert simulated.time_since_ignition.values[0, int(y // CELL), int(x // CELL)] > 0.0
    simulator = Simulator(WORLD)
    [plan, _] = plan_fires(2, (), seed=3, weathers=1)
    assert (int(y // 300.0), int(x // 300.0)) == simulator.ignition_cell(plan)
    fuels = np.loadtxt(folder / "input_fc", skiprows=1).T
    np.testing.assert_array_equal(fuels[:80, :90], anderson_categories(simulator.landscape().fuel))


def test_the_sounding_is_the_weather_at_ignition(simulated, tmp_path):
    [folder, _] = write_wrf_inputs(simulated, tmp_path)
    levels = np.loadtxt(folder / "input_sounding", skiprows=1)
    first = simulated.isel(snapshot=0, weather_hour=0)
    at = np.isin(levels[:, 0], first.height.values)
    rounded = 5.1e-4  # three decimals are written
    np.testing.assert_allclose(levels[at, 3], first.wind_u.values, atol=rounded)
    np.testing.assert_allclose(levels[at, 4], first.wind_v.values, atol=rounded)


def test_other_fires_get_what_their_snapshots_tell(others, tmp_path):
    """The place of ignition is known to a column, and the missing ground is named."""
    folders = write_wrf_inputs(others, tmp_path, ignitions=["f02", "f00"], hours=4)
    assert [folder.name for folder in folders] == ["f02", "f00"]
    assert not (folders[0] / "input_fc").exists()
    assert value(folders[0], "fire_fuel_read") == 0
    assert value(folders[0], "run_hours") == 4
    text = (folders[0] / "README.md").read_text(encoding="utf-8")
    assert "Missing: terrain" in text
    assert "Missing: fuels" in text
    ages = others.isel(snapshot=others.fire_id.values == "f02").time_since_ignition.values[0]
    row, column = np.unravel_index(ages.argmax(), ages.shape)
    corner = float(others.x[0]) - CELL / 2.0, float(others.y[0]) - CELL / 2.0
    assert abs(value(folders[0], "fire_ignition_start_x1") + corner[0] - others.x[column]) <= CELL
    assert abs(value(folders[0], "fire_ignition_start_y1") + corner[1] - others.y[row]) <= CELL


def test_terrain_of_a_store_is_used(others, tmp_path):
    high = np.fromfunction(lambda y, x: 100.0 * y + x, (others.y.size, others.x.size))
    [folder] = write_wrf_inputs(
        others.assign(surface_altitude=(("y", "x"), high)), tmp_path, ignitions=["f00"]
    )
    heights = np.loadtxt(folder / "input_ht", skiprows=1)
    assert heights.shape == (others.x.size + 1, others.y.size + 1)
    assert heights[8, 8] == pytest.approx(high[8, 8])


def test_the_ignition_is_the_mean_of_the_oldest_cells():
    age = np.array([[0.0, 0.2, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 0.9]])
    x, y = estimated_ignition(age, np.array([0.0, 1.0, 2.0]), np.array([10.0, 20.0, 30.0]))
    assert (x, y) == (pytest.approx(4.0 / 3.0), 20.0)  # (2·1 + 1·2) / 3


def test_fires_on_rasters_are_treated_as_others(simulated, tmp_path):
    """A store records the names of rasters only."""
    own = simulated.assign_attrs({SIMULATION: json.dumps(SETTINGS | {"dem": "dem.tif sha256:0"})})
    [folder] = write_wrf_inputs(own, tmp_path, ignitions=["s3-i0000"])
    assert not (folder / "input_ht").exists()


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (lambda d: d.drop_vars("wind_u"), {}, "no wind_u"),
        (lambda d: d, {"ignitions": ["f00", "lost"]}, "'lost'"),
        (lambda d: d, {"hours": 0}, "hours=0"),
        (lambda d: d.assign_coords(y=2.0 * d.y), {}, "3000 by 6000 m"),
        (lambda d: d.assign(time_since_ignition=0.0 * d.time_since_ignition), {}, "'f00'"),
    ],
)
def test_wrong_input_is_named_and_nothing_is_written(others, tmp_path, change, arguments, message):
    with pytest.raises(PlumecastError, match=message):
        write_wrf_inputs(change(others), tmp_path / "wrf", **arguments)
    assert not (tmp_path / "wrf").exists()


def test_a_folder_is_not_overwritten(others, tmp_path):
    write_wrf_inputs(others, tmp_path, ignitions=["f01"])
    with pytest.raises(PlumecastError, match="f01 exists"):
        write_wrf_inputs(others, tmp_path)
    assert not (tmp_path / "f00").exists()
