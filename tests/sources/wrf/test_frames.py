"""Fields of a wrfout frame against hand-computed ones: age, smoke, units and coordinates."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import M2_PER_ACRE
from plumecast.sources.wrf import WrfOptions, read_wrf
from plumecast.sources.wrf.frame import (
    FireState,
    LevelSet,
    advance_arrival,
    changed_cells,
    map_plane,
)
from plumecast.sources.wrf.options import SMOKE_FLOOR, known_unit
from support.wrf_files import (
    CELL,
    HEIGHTS,
    HOURS,
    NX,
    NY,
    REFINE,
    STEP,
    Circle,
    expected_age,
    expected_column,
    plume,
    write_run,
)

# -- fields


def test_time_since_ignition_is_the_block_mean_of_the_age(tmp_path):
    ds = read_wrf(write_run(tmp_path / "fire", HOURS))
    expected = [expected_age(3600.0 * hour, Circle()) for hour in HOURS[1:]]
    np.testing.assert_allclose(ds.time_since_ignition, expected, rtol=1e-5, atol=1e-5)
    assert ds.time_since_ignition.dtype == ds.smoke.dtype == np.float32


def test_block_max_keeps_the_oldest_cell(tmp_path):
    ds = read_wrf(write_run(tmp_path / "fire", HOURS), WrfOptions(aggregate="max"))
    np.testing.assert_allclose(ds.time_since_ignition.max(("y", "x")), ds.hours, rtol=1e-5)
    with pytest.raises(PlumecastError, match="aggregate='sum'"):
        read_wrf(tmp_path / "fire", WrfOptions(aggregate="sum"))


def test_hours_count_from_the_earliest_arrival(tmp_path):
    ds = read_wrf(write_run(tmp_path / "fire", HOURS))
    earliest = Circle().arrival().min()
    np.testing.assert_allclose(ds.hours, np.arange(1, 7) - earliest / 3600, rtol=1e-6)
    assert (ds.time_since_ignition.max(("y", "x")) <= ds.hours).all()


def test_a_cell_lit_in_the_future_has_age_zero(tmp_path):
    def early(fields, seconds):
        burned = fields["LFN"] < 0
        fields["TIGN_G"][burned] = np.maximum(fields["TIGN_G"][burned], seconds + STEP / 2)

    ds = read_wrf(write_run(tmp_path / "fire", [0, 1], edit=early))
    assert ds.time_since_ignition.max() == 0
    assert ds.hours.item() == 0


def test_padding_is_not_burned(tmp_path):
    def burn_padding(fields, seconds):
        fields["LFN"][NY * REFINE :] = -1.0
        fields["LFN"][:, NX * REFINE :] = -1.0

    plain = read_wrf(write_run(tmp_path / "plain", HOURS), fire_id="f")
    padded = read_wrf(write_run(tmp_path / "padded", HOURS, edit=burn_padding), fire_id="f")
    xr.testing.assert_identical(padded, plain)


def test_smoke_is_the_cumulative_column_mean(tmp_path):
    ds = read_wrf(write_run(tmp_path / "fire", HOURS), WrfOptions(floor=0.0))
    columns = np.cumsum([expected_column(plume(3600.0 * hour)) for hour in HOURS], axis=0)[1:]
    np.testing.assert_allclose(ds.smoke, columns, rtol=1e-5)
    assert (np.diff(ds.smoke, axis=0) >= 0).all()


def test_frames_before_ignition_count_in_the_sum_but_give_no_snapshot(tmp_path):
    fire = Circle(ignition=2.5 * 3600)
    ds = read_wrf(write_run(tmp_path / "fire", HOURS, fire=fire), WrfOptions(floor=0.0))
    assert ds.sizes["snapshot"] == 4
    total = sum(expected_column(plume(3600.0 * hour)) for hour in range(4))
    np.testing.assert_allclose(ds.smoke[0], total, rtol=1e-5)
    assert "smoke before fire" in ds.attrs["quality"]


def test_negative_mixing_ratios_are_set_to_zero(tmp_path):
    def boundary(seconds):
        field = plume(seconds)
        field[:, 0] = -1e-6
        return field

    ds = read_wrf(write_run(tmp_path / "fire", HOURS, smoke=boundary), WrfOptions(floor=0.0))
    assert (ds.smoke[:, 0] == 0).all()
    assert ds.smoke.max() > 0


def test_smoke_below_the_floor_is_exactly_zero(tmp_path):
    def faint(seconds):
        return plume(seconds) + 1e-12

    run = write_run(tmp_path / "fire", HOURS, smoke=faint)
    assert (read_wrf(run, WrfOptions(floor=0.0)).smoke > 0).all()
    ds = read_wrf(run)
    assert ds.attrs["smoke_floor"] == SMOKE_FLOOR
    assert ((ds.smoke == 0) | (ds.smoke >= SMOKE_FLOOR)).all()
    assert (ds.smoke == 0).any()


def test_burned_area_counts_fire_cells(tmp_path):
    ds = read_wrf(write_run(tmp_path / "fire", HOURS))
    cells = [(Circle().level(3600.0 * hour) < 0).sum() for hour in HOURS[1:]]
    np.testing.assert_allclose(ds.burned_area, np.array(cells) * (CELL / REFINE) ** 2 / M2_PER_ACRE)
    assert ds.is_final.values.tolist() == [False] * 5 + [True]


def test_labels_follow_the_contract(tmp_path):
    run = write_run(tmp_path / "fire_7", HOURS)
    ds = read_wrf(run, drought="high", ignition_id="spot-1")
    assert set(ds.fire_id.values) == {"fire_7"}
    assert set(ds.ignition_id.values) == {"spot-1"}
    assert set(ds.drought.values) == {"high"}
    assert ds.smoke.attrs["units"] == "ug m-3"
    assert ds.time_since_ignition.attrs["units"] == ds.hours.attrs["units"] == "h"
    assert set(read_wrf(run, fire_id="other").ignition_id.values) == {"other"}
    ds.to_netcdf(tmp_path / "out.nc")
    with xr.open_dataset(tmp_path / "out.nc") as back:
        xr.testing.assert_identical(back.load(), ds)


# -- arrival from the level set


def test_arrival_is_rebuilt_from_the_level_set(tmp_path):
    # distance − speed · time is linear in time, so the crossing is exact after the first hour
    whole = read_wrf(write_run(tmp_path / "a", HOURS, fire=Circle(ignition=0.0)))
    rebuilt = read_wrf(write_run(tmp_path / "b", HOURS, fire=Circle(ignition=0.0), drop=["TIGN_G"]))
    np.testing.assert_allclose(
        rebuilt.time_since_ignition, whole.time_since_ignition, rtol=1e-4, atol=1e-4
    )


def test_rebuilt_arrival_uses_the_frames_between_checkpoints(tmp_path):
    fire = Circle(ignition=0.0)
    whole = read_wrf(write_run(tmp_path / "a", HOURS, fire=fire), WrfOptions(every="6h"))
    rebuilt = read_wrf(
        write_run(tmp_path / "b", HOURS, fire=fire, drop=["TIGN_G"]), WrfOptions(every="6h")
    )
    np.testing.assert_allclose(
        rebuilt.time_since_ignition, whole.time_since_ignition, rtol=1e-4, atol=1e-4
    )


def test_crossing_time_is_linear_and_final():
    level = np.array([3.0, 1.0, -1.0])
    before = LevelSet(0.0, level, np.array([np.inf, np.inf, 0.0]))
    after = advance_arrival(before, np.array([1.0, -3.0, -5.0]), 100.0)
    np.testing.assert_allclose(after.arrival, [np.inf, 25.0, 0.0])


def test_changed_cells_are_counted_against_the_frame_before():
    before = FireState(0.0, np.array([[True, True], [True, False]]), np.array([1.0, 2.0, 3.0]))
    after = FireState(9.0, np.array([[True, False], [True, True]]), np.array([1.0, 70.0, 5.0]))
    assert changed_cells(before, after, 60.0) == (1, 1)  # one healed, one moved from 3 to 70 s
    assert changed_cells(before, before, 60.0) == (0, 0)


# -- smoke variables and units


@pytest.mark.parametrize(
    ("name", "label", "factor", "per_volume"),
    [
        ("tr17_1", "Dimensionless", 1e-6, False),
        ("PM2_5_DRY", "ug m^-3", 1.0, True),
    ],
)
def test_known_smoke_variables(tmp_path, name, label, factor, per_volume):
    run = write_run(tmp_path / "fire", HOURS, smoke_name=name, smoke_units=label)
    ds = read_wrf(run, WrfOptions(smoke=name, floor=0.0))
    depth = np.diff(HEIGHTS)[:, None, None]
    if per_volume:
        one = (plume(3600.0) * depth).sum(axis=0) / depth.sum()
    else:
        one = factor * expected_column(plume(3600.0))
    np.testing.assert_allclose(ds.smoke[0], one, rtol=1e-5)


def test_a_concentration_needs_no_air(tmp_path):
    run = write_run(
        tmp_path / "fire", HOURS, smoke_name="PM2_5_DRY", smoke_units="", drop=["P", "PB", "T"]
    )
    assert read_wrf(run, WrfOptions(smoke="PM2_5_DRY")).smoke.max() > 0


def test_units_are_never_guessed(tmp_path):
    run = write_run(tmp_path / "fire", HOURS, smoke_name="bbc_1", smoke_units="")
    with pytest.raises(PlumecastError, match=r"unit of bbc_1 is unknown.*fire_smoke g/kg"):
        read_wrf(run, WrfOptions(smoke="bbc_1"))
    stated = read_wrf(run, WrfOptions(smoke="bbc_1", smoke_unit="g/kg"))
    micro = read_wrf(run, WrfOptions(smoke="bbc_1", smoke_unit="µg/kg", floor=0.0))
    np.testing.assert_allclose(stated.smoke, 1e6 * micro.smoke, rtol=1e-5)
    with pytest.raises(PlumecastError, match="smoke_unit='ppmv'"):
        read_wrf(run, WrfOptions(smoke="bbc_1", smoke_unit="ppmv"))


def test_a_label_that_contradicts_the_table_is_refused(tmp_path):
    run = write_run(tmp_path / "fire", HOURS, smoke_units="ppmv")
    with pytest.raises(PlumecastError, match=r"fire_smoke is labelled 'ppmv', not g/kg"):
        read_wrf(run)
    assert read_wrf(run, WrfOptions(smoke_unit="g/kg")).sizes["snapshot"] == 6


def test_a_variable_with_different_units_between_models_needs_a_stated_unit(tmp_path):
    run = write_run(tmp_path / "fire", HOURS, smoke_name="smoke", smoke_units="")
    with pytest.raises(PlumecastError, match=r"unit of smoke is unknown; .*ppmv.*ug/kg"):
        read_wrf(run, WrfOptions(smoke="smoke"))
    assert read_wrf(run, WrfOptions(smoke="smoke", smoke_unit="ug/kg")).sizes["snapshot"] == 6


@pytest.mark.parametrize(
    ("label", "unit"),
    [("g_smoke/kg_air", "g/kg"), ("ug/kg-dryair", "ug/kg"), ("kg kg-1", "kg/kg"),
     ("μg m-3", "ug/m3"), ("mg/m^3", "mg/m3"), ("ug/m2", None), ("ppmv", None), ("", None)],
)  # fmt: skip
def test_unit_labels(label, unit):
    assert known_unit(label) == unit


# -- coordinates


def test_idealised_domains_are_in_metres(tmp_path):
    ds = read_wrf(write_run(tmp_path / "fire", HOURS))
    np.testing.assert_array_equal(ds.x, (np.arange(NX) + 0.5) * CELL)
    np.testing.assert_array_equal(ds.y, (np.arange(NY) + 0.5) * CELL)
    assert "lat" not in ds.coords
    assert "crs" not in ds.coords


REAL = {"TRUELAT1": 36.0, "TRUELAT2": 39.0, "STAND_LON": -106.0, "MOAD_CEN_LAT": 37.5}


@pytest.mark.parametrize(("kind", "parallel"), [(1, 36.0), (2, 60.0), (2, -60.0), (3, 20.0)])
def test_real_domains_have_lat_lon_and_a_grid_mapping(tmp_path, kind, parallel):
    pyproj = pytest.importorskip("pyproj")
    attributes = {**REAL, "TRUELAT1": parallel, "MAP_PROJ": np.int32(kind)}
    mapping, _ = map_plane(attributes, 40.0, -100.0)
    to_degrees = pyproj.Transformer.from_crs(
        pyproj.CRS.from_cf(mapping), pyproj.CRS("+proj=longlat +R=6370000"), always_xy=True
    ).transform
    x, y = np.meshgrid(2e5 + CELL * np.arange(NX), -3e5 + CELL * np.arange(NY))
    lon, lat = to_degrees(x, y)
    run = write_run(tmp_path / "fire", [0, 1], attributes=attributes, places=(lat, lon))
    ds = read_wrf(run)
    np.testing.assert_allclose(ds.x, x[0], atol=5.0)  # float32 degrees are metres apart
    np.testing.assert_allclose(ds.y, y[:, 0], atol=5.0)
    np.testing.assert_allclose(ds.lat, lat, atol=1e-5)
    ds.to_netcdf(tmp_path / "out.nc")
    assert ds.smoke.attrs["grid_mapping"] == "crs"
    assert ds.crs.attrs["grid_mapping_name"] == mapping["grid_mapping_name"]


def test_a_projection_without_a_plane_keeps_lat_lon_only(tmp_path):
    lat, lon = np.full((NY, NX), 10.0), np.full((NY, NX), 20.0)
    attributes = {**REAL, "MAP_PROJ": np.int32(6)}
    ds = read_wrf(write_run(tmp_path / "fire", [0, 1], attributes=attributes, places=(lat, lon)))
    assert "crs" not in ds.coords
    assert ds.x[0] == CELL / 2
    assert float(ds.lat[0, 0]) == 10.0
