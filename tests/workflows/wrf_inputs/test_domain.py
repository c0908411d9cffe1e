"""`namelist.input`: the names of WRF 4.3.3 and the values of the domain and the ignition."""

from __future__ import annotations

import pytest

from plumecast.workflows.wrf_domain import Domain, GroundFiles, Ignition, namelist_input, time_step

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
