"""The files that an ideal WRF-Fire run reads: options, fuels, ground and sounding."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.names import GRAVITY
from plumecast.physics.fuels import FUEL_CODES, fuel_table
from plumecast.weather.profile import HEIGHTS
from plumecast.workflows.wrf_domain import (
    CATEGORIES,
    INVERSION,
    MIXED_TEMPERATURE,
    NO_FUEL,
    RIM,
    TOP,
    Domain,
    GroundFiles,
    Ignition,
    Profile,
    anderson_categories,
    input_fc,
    input_ht,
    input_sounding,
    namelist_fire,
    namelist_input,
    rimmed_terrain,
    sounding_table,
    time_step,
)

DOMAIN = Domain(nx=40, ny=32, dx=3000.0, refinement=10, corner=(-6000.0, 9000.0))
IGNITION = Ignition(x=39_747.25, y=35_000.0, local_hour=20.0, hours=8)
KNOWN = GroundFiles(terrain=True, fuels=True, category=10)


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


def test_the_domain_has_the_columns_of_the_store():
    domains = options(namelist_input(DOMAIN, IGNITION, KNOWN))["domains"]
    assert (domains["e_we"], domains["e_sn"]) == ("41", "33")  # WRF counts the faces of columns
    assert (float(domains["dx"]), domains["sr_x"], domains["sr_y"]) == (3000.0, "10", "10")


def test_the_fire_ignites_in_metres_from_the_corner():
    fire = options(namelist_input(DOMAIN, IGNITION, KNOWN))["fire"]
    for end in ("start", "end"):
        assert float(fire[f"fire_ignition_{end}_x1"]) == 45_747.25
        assert float(fire[f"fire_ignition_{end}_y1"]) == 26_000.0
    assert float(fire["fire_ignition_radius1"]) == 900.0  # three cells of 300 m
    lit = float(fire["fire_ignition_end_time1"]) - float(fire["fire_ignition_start_time1"])
    assert lit * float(fire["fire_ignition_ros1"]) == float(fire["fire_ignition_radius1"])


def test_a_run_may_end_on_the_next_day():
    times = options(namelist_input(DOMAIN, IGNITION, KNOWN))["time_control"]
    assert [times[f"start_{part}"] for part in ("day", "hour")] == ["1", "20"]
    assert [times[f"end_{part}"] for part in ("day", "hour")] == ["2", "4"]
    assert times["run_hours"] == "8"


@pytest.mark.parametrize(
    ("known", "fuel", "terrain"), [(True, "2", ".true."), (False, "0", ".false.")]
)
def test_files_of_the_ground_are_read_where_they_exist(known, fuel, terrain):
    fire = options(namelist_input(DOMAIN, IGNITION, GroundFiles(known, known, 8)))["fire"]
    assert (fire["fire_fuel_read"], fire["fire_read_atm_ht"]) == (fuel, terrain)
    assert fire["fire_fuel_cat"] == "8"


def test_boundaries_are_open_and_smoke_is_traced():
    groups = options(namelist_input(DOMAIN, IGNITION, KNOWN))
    open_sides = {name for name, value in groups["bdy_control"].items() if value == ".true."}
    assert open_sides == {"open_xs", "open_xe", "open_ys", "open_ye"}
    assert groups["dynamics"]["tracer_opt"] == "3"
    assert groups["fire"]["ifire"] == "2"


def test_steps_below_a_second_are_fractions():
    """A cell of 50 m allows 0.335 s, a third of a second."""
    fine = Domain(nx=40, ny=32, dx=50.0, refinement=10, corner=(0.0, 0.0))
    domains = options(namelist_input(fine, IGNITION, KNOWN))["domains"]
    assert domains["time_step"] == "0"
    parts = int(domains["time_step_fract_den"])
    assert int(domains["time_step_fract_num"]) / parts <= 6.7 * 0.05
    assert parts == 3


@pytest.mark.parametrize("dx", [150.0, 1000.0, 3000.0, 6000.0])
def test_time_steps_divide_the_hour(dx):
    """Output falls on the hour, and a step is not longer than WRF allows."""
    assert 3600 % time_step(dx) == 0
    assert time_step(dx) <= 6.7 * dx / 1000.0


def test_every_fuel_model_has_a_category_and_only_bare_ground_has_none():
    codes = np.array(list(FUEL_CODES.values()), dtype=np.int16)
    assert set(CATEGORIES) == set(FUEL_CODES)
    categories = anderson_categories(codes)
    assert ((categories >= 1) & (categories <= NO_FUEL)).all()
    np.testing.assert_array_equal(categories == NO_FUEL, ~fuel_table().burnable[codes])


def test_namelist_fire_has_the_moisture_and_all_categories():
    text = namelist_fire(0.0634)
    values = dict(line.split(" = ") for line in text.splitlines() if " = " in line)
    assert float(values[" fuelmc_g"]) == 0.0634
    for name in ("windrf", "fgi", "fueldepthm", "savr", "fuelmce", "fueldens", "st", "se"):
        assert len(values[f" {name}"].split(",")) == NO_FUEL


def read(text):
    """Values [y, x] of a file that WRF reads line by line along x."""
    sizes, *lines = text.splitlines()
    nx, ny = (int(size) for size in sizes.split())
    values = np.array([[float(value) for value in line.split()] for line in lines])
    assert values.shape == (nx, ny)
    return values.T


def test_fuels_come_back_with_the_cells_of_one_more_column():
    domain = Domain(nx=3, ny=2, dx=1000.0, refinement=4, corner=(0.0, 0.0))
    categories = np.arange(8 * 12).reshape(8, 12) % 14 + 1
    values = read(input_fc(categories, domain))
    assert values.shape == (3 * 4, 4 * 4)
    np.testing.assert_array_equal(values[:8, :12], categories)


def test_terrain_comes_back_above_its_lowest_ground():
    rows, columns = np.mgrid[0:20, 0:30]
    elevation = 1500.0 + 10.0 * rows + columns
    values = read(input_ht(rimmed_terrain(elevation)))
    assert values.shape == (21, 31)
    inner = (slice(RIM, 20 - RIM), slice(RIM, 30 - RIM))
    np.testing.assert_allclose(values[inner], (elevation - 1500.0)[inner])
    rim = rimmed_terrain(elevation)
    assert not rim[[0, -1]].any()
    assert not rim[:, [0, -1]].any()
    assert (rim <= elevation - 1500.0).all()


ROUNDED = 5.1e-4  # three decimals are written
STABILITY = 1.2e-4


def profile(depth=1200.0):
    z = np.array(HEIGHTS)
    return Profile(z, 3.0 + z / 1000.0, -2.0 * np.log10(z), depth)


def levels_of(text):
    """Levels of `input_sounding`, (n, 5), below its first line."""
    lines = [[float(value) for value in line.split()] for line in text.splitlines()]
    assert len(lines[0]) == 3
    return np.array(lines[1:])


def test_winds_come_back():
    given = profile()
    levels = levels_of(input_sounding(sounding_table(given, STABILITY)))
    at = np.isin(levels[:, 0], given.height)
    assert at.sum() == given.height.size
    np.testing.assert_allclose(levels[at, 3], given.u, atol=ROUNDED)
    np.testing.assert_allclose(levels[at, 4], given.v, atol=ROUNDED)
    assert levels[-1, 0] > TOP
    np.testing.assert_allclose(levels[-1, 3:], [given.u[-1], given.v[-1]], atol=ROUNDED)


@pytest.mark.parametrize("depth", [0.0, 400.0, 1500.0, 3333.3])
def test_levels_rise_and_air_is_stable(depth):
    levels = sounding_table(profile(depth), STABILITY)
    assert (np.diff(levels[:, 0]) > 0.0).all()
    assert (np.diff(levels[:, 1]) >= 0.0).all()
    assert (np.diff(levels[:, 2]) < 0.0).all()


def test_temperature_is_mixed_then_jumps_then_has_the_stability_of_the_weather():
    levels = sounding_table(profile(1200.0), STABILITY)
    height, theta = levels[:, 0], levels[:, 1]
    np.testing.assert_allclose(theta[height <= 1200.0], MIXED_TEMPERATURE)
    assert theta[height == 1300.0] == pytest.approx(MIXED_TEMPERATURE + INVERSION)
    free = height >= 1300.0
    gradient = np.diff(theta[free]) / np.diff(height[free])
    np.testing.assert_allclose(GRAVITY * gradient / MIXED_TEMPERATURE, STABILITY, rtol=1e-9)
