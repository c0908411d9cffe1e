"""Folders of WRF-Fire inputs: of fires of the simulator and of others, and each file of them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from plumecast import PlumecastError
from plumecast.base.names import GRAVITY, SIMULATION
from plumecast.data.assembly import concat_snapshots
from plumecast.physics.fuels import FUEL_CODES, fuel_table
from plumecast.simulator.ensemble import Simulator, World, plan_fires
from plumecast.weather.profile import HEIGHTS
from plumecast.workflows import wrf_domain as wrf
from plumecast.workflows import write_wrf_inputs
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
    np.testing.assert_array_equal(
        fuels[:80, :90], wrf.anderson_categories(simulator.landscape().fuel)
    )


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


# -- the files


DOMAIN = wrf.Domain(nx=40, ny=32, dx=3000.0, refinement=10, corner=(-6000.0, 9000.0))
SITE = wrf.Site(x=39_747.25, y=35_000.0, exact=True)


def options(text):
    """{group: {name: value}} of a namelist, as text."""
    groups, current = {}, {}
    for line in text.splitlines():
        if line.startswith("&"):
            current = groups.setdefault(line[1:], {})
        elif "=" in line:
            name, value = line.split("=")
            current[name.strip()] = value.strip().rstrip(",")
    return groups


def test_the_domain_has_the_columns_of_the_store_and_the_fire_ignites_in_it():
    groups = options(wrf.namelist_input(DOMAIN, SITE, 20.0, 8))
    domains, fire, times = groups["domains"], groups["fire"], groups["time_control"]
    assert (domains["e_we"], domains["e_sn"]) == ("41", "33")  # WRF counts the faces of columns
    assert (float(domains["dx"]), domains["sr_x"], domains["sr_y"]) == (3000.0, "10", "10")
    for end in ("start", "end"):
        assert float(fire[f"fire_ignition_{end}_x1"]) == 45_747.25  # from the corner
        assert float(fire[f"fire_ignition_{end}_y1"]) == 26_000.0
    assert float(fire["fire_ignition_radius1"]) == 900.0  # three cells of 300 m
    lit = float(fire["fire_ignition_end_time1"]) - float(fire["fire_ignition_start_time1"])
    assert lit * float(fire["fire_ignition_ros1"]) == float(fire["fire_ignition_radius1"])
    assert [times[f"start_{part}"] for part in ("day", "hour")] == ["1", "20"]
    assert [times[f"end_{part}"] for part in ("day", "hour")] == ["2", "4"]  # the next day
    assert times["run_hours"] == "8"
    open_sides = {name for name, value in groups["bdy_control"].items() if value == ".true."}
    assert open_sides == {"open_xs", "open_xe", "open_ys", "open_ye"}
    assert groups["dynamics"]["tracer_opt"] == "3"
    assert fire["ifire"] == "2"


@pytest.mark.parametrize(
    ("ground", "fuel", "terrain"), [(np.ones((2, 2)), "2", ".true."), (None, "0", ".false.")]
)
def test_files_of_the_ground_are_read_where_they_exist(ground, fuel, terrain):
    site = replace(SITE, terrain=ground, fuels=ground)
    fire = options(wrf.namelist_input(DOMAIN, site, 20.0, 8))["fire"]
    assert (fire["fire_fuel_read"], fire["fire_read_atm_ht"]) == (fuel, terrain)
    assert fire["fire_fuel_cat"] == "10"


def test_steps_below_a_second_are_fractions():
    """A cell of 50 m allows 0.335 s, a third of a second."""
    fine = wrf.Domain(nx=40, ny=32, dx=50.0, refinement=10, corner=(0.0, 0.0))
    domains = options(wrf.namelist_input(fine, SITE, 20.0, 8))["domains"]
    assert domains["time_step"] == "0"
    parts = int(domains["time_step_fract_den"])
    assert int(domains["time_step_fract_num"]) / parts <= 6.7 * 0.05
    assert parts == 3


@pytest.mark.parametrize("dx", [150.0, 3000.0, 6000.0])
def test_time_steps_divide_the_hour(dx):
    """Output falls on the hour, and a step is not longer than WRF allows."""
    assert 3600 % wrf.time_step(dx) == 0
    assert wrf.time_step(dx) <= 6.7 * dx / 1000.0


def test_every_fuel_model_has_a_category_and_only_bare_ground_has_none():
    codes = np.array(list(FUEL_CODES.values()), dtype=np.int16)
    assert set(wrf.CATEGORIES) == set(FUEL_CODES)
    categories = wrf.anderson_categories(codes)
    assert ((categories >= 1) & (categories <= wrf.NO_FUEL)).all()
    np.testing.assert_array_equal(categories == wrf.NO_FUEL, ~fuel_table().burnable[codes])


def test_namelist_fire_has_the_moisture_and_all_categories():
    text = wrf.namelist_fire(0.0634)
    values = dict(line.split(" = ") for line in text.splitlines() if " = " in line)
    assert float(values[" fuelmc_g"]) == 0.0634
    for name in ("windrf", "fgi", "fueldepthm", "savr", "fuelmce", "fueldens", "st", "se"):
        assert len(values[f" {name}"].split(",")) == wrf.NO_FUEL


def read(text):
    """Values [y, x] of a file that WRF reads line by line along x."""
    sizes, *lines = text.splitlines()
    nx, ny = (int(size) for size in sizes.split())
    values = np.array([[float(value) for value in line.split()] for line in lines])
    assert values.shape == (nx, ny)
    return values.T


def test_fuels_come_back_with_the_cells_of_one_more_column():
    domain = wrf.Domain(nx=3, ny=2, dx=1000.0, refinement=4, corner=(0.0, 0.0))
    categories = np.arange(8 * 12).reshape(8, 12) % 14 + 1
    values = read(wrf.input_fc(categories, domain))
    assert values.shape == (3 * 4, 4 * 4)
    np.testing.assert_array_equal(values[:8, :12], categories)


def test_terrain_comes_back_above_its_lowest_ground():
    rows, columns = np.mgrid[0:20, 0:30]
    elevation = 1500.0 + 10.0 * rows + columns
    values = read(wrf.input_ht(wrf.rimmed_terrain(elevation)))
    assert values.shape == (21, 31)
    inner = (slice(wrf.RIM, 20 - wrf.RIM), slice(wrf.RIM, 30 - wrf.RIM))
    np.testing.assert_allclose(values[inner], (elevation - 1500.0)[inner])
    rim = wrf.rimmed_terrain(elevation)
    assert not rim[[0, -1]].any()
    assert not rim[:, [0, -1]].any()
    assert (rim <= elevation - 1500.0).all()


ROUNDED = 5.1e-4  # three decimals are written
STABILITY = 1.2e-4


def profile(depth=1200.0):
    z = np.array(HEIGHTS)
    return wrf.Profile(z, 3.0 + z / 1000.0, -2.0 * np.log10(z), depth)


def levels_of(text):
    """Levels of `input_sounding`, (n, 5), below its first line."""
    lines = [[float(value) for value in line.split()] for line in text.splitlines()]
    assert len(lines[0]) == 3
    return np.array(lines[1:])


def test_winds_come_back():
    given = profile()
    levels = levels_of(wrf.input_sounding(wrf.sounding_table(given, STABILITY)))
    at = np.isin(levels[:, 0], given.height)
    assert at.sum() == given.height.size
    np.testing.assert_allclose(levels[at, 3], given.u, atol=ROUNDED)
    np.testing.assert_allclose(levels[at, 4], given.v, atol=ROUNDED)
    assert levels[-1, 0] > wrf.TOP
    np.testing.assert_allclose(levels[-1, 3:], [given.u[-1], given.v[-1]], atol=ROUNDED)


@pytest.mark.parametrize("depth", [0.0, 400.0, 1500.0, 3333.3])
def test_levels_rise_and_air_is_stable(depth):
    levels = wrf.sounding_table(profile(depth), STABILITY)
    assert (np.diff(levels[:, 0]) > 0.0).all()
    assert (np.diff(levels[:, 1]) >= 0.0).all()
    assert (np.diff(levels[:, 2]) < 0.0).all()


def test_temperature_is_mixed_then_jumps_then_has_the_stability_of_the_weather():
    levels = wrf.sounding_table(profile(1200.0), STABILITY)
    height, theta = levels[:, 0], levels[:, 1]
    np.testing.assert_allclose(theta[height <= 1200.0], wrf.MIXED_TEMPERATURE)
    assert theta[height == 1300.0] == pytest.approx(wrf.MIXED_TEMPERATURE + wrf.INVERSION)
    free = height >= 1300.0
    gradient = np.diff(theta[free]) / np.diff(height[free])
    np.testing.assert_allclose(GRAVITY * gradient / wrf.MIXED_TEMPERATURE, STABILITY, rtol=1e-9)
