"""Fields of a wrfout frame against hand-computed ones: age, smoke, wind, units and coordinates."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import M2_PER_ACRE
from plumecast.sources.wrf import SMOKE_FLOOR, WrfOptions, read_wrf
from plumecast.sources.wrf.frame import (
    FireState,
    LevelSet,
    advance_arrival,
    changed_cells,
    domain_wind,
    map_plane,
    mean_winds,
)
from plumecast.sources.wrf.options import known_unit
from support.places import shared_data
from support.wrf_files import (
    CELL,
    HEIGHTS,
    HOURS,
    NX,
    NY,
    REFINE,
    STEP,
    Circle,
    blowing,
    expected_age,
    expected_column,
    plume,
    read_run,
    write_run,
)

ALL = {"floor": 0.0}
"""Options that keep the faintest smoke."""

# -- fire


def test_age_hours_and_burned_area_are_those_of_the_fire_cells(tmp_path):
    ds = read_run(tmp_path)
    expected = [expected_age(3600.0 * hour, Circle()) for hour in HOURS[1:]]
    np.testing.assert_allclose(ds.time_since_ignition, expected, rtol=1e-5, atol=1e-5)
    assert ds.time_since_ignition.dtype == ds.smoke.dtype == np.float32
    earliest = Circle().arrival().min()
    np.testing.assert_allclose(ds.hours, np.arange(1, 7) - earliest / 3600, rtol=1e-6)
    cells = [(Circle().level(3600.0 * hour) < 0).sum() for hour in HOURS[1:]]
    np.testing.assert_allclose(ds.burned_area, np.array(cells) * (CELL / REFINE) ** 2 / M2_PER_ACRE)
    oldest = read_wrf(tmp_path, WrfOptions(aggregate="max")).time_since_ignition
    np.testing.assert_allclose(oldest.max(("y", "x")), ds.hours, rtol=1e-5)


def test_a_cell_lit_in_the_future_has_age_zero(tmp_path):
    def early(fields, seconds):
        burned = fields["LFN"] < 0
        fields["TIGN_G"][burned] = np.maximum(fields["TIGN_G"][burned], seconds + STEP / 2)

    ds = read_run(tmp_path, [0, 1], edit=early)
    assert ds.time_since_ignition.max() == 0
    assert ds.hours.item() == 0


def test_padding_is_not_burned(tmp_path):
    def burn_padding(fields, seconds):
        fields["LFN"][NY * REFINE :] = -1.0
        fields["LFN"][:, NX * REFINE :] = -1.0

    padded = read_run(tmp_path / "padded", edit=burn_padding)
    xr.testing.assert_identical(padded, read_run(tmp_path / "plain"))


def test_labels_follow_the_contract(tmp_path):
    run = write_run(tmp_path / "fire_7", HOURS)
    ds = read_wrf(run, drought="high", ignition_id="spot-1")
    labels = [set(ds[name].values) for name in ("fire_id", "ignition_id", "drought")]
    assert labels == [{"fire_7"}, {"spot-1"}, {"high"}]
    assert set(read_wrf(run, fire_id="other").ignition_id.values) == {"other"}
    ds.to_netcdf(tmp_path / "out.nc")
    with xr.open_dataset(tmp_path / "out.nc") as back:
        xr.testing.assert_identical(back.load(), ds)


@pytest.mark.parametrize("every", [None, "3h"])
def test_arrival_is_rebuilt_from_the_level_set_of_all_frames(tmp_path, every):
    """Distance − speed · time is linear in time: the crossing is exact after the first hour."""
    fire = {"fire": Circle(ignition=0.0), "read": {"every": every}}
    whole = read_run(tmp_path / "a", **fire).time_since_ignition
    rebuilt = read_run(tmp_path / "b", **fire, drop=["TIGN_G"]).time_since_ignition
    np.testing.assert_allclose(rebuilt, whole, rtol=1e-4, atol=1e-4)


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


# -- smoke and its units


def test_smoke_is_the_cumulative_column_mean(tmp_path):
    ds = read_run(tmp_path, read=ALL)
    columns = np.cumsum([expected_column(plume(3600.0 * hour)) for hour in HOURS], axis=0)[1:]
    np.testing.assert_allclose(ds.smoke, columns, rtol=1e-5)


def test_frames_before_ignition_count_in_the_sum_but_give_no_snapshot(tmp_path):
    ds = read_run(tmp_path, read=ALL, fire=Circle(ignition=2.5 * 3600))
    assert ds.sizes["snapshot"] == 4
    total = sum(expected_column(plume(3600.0 * hour)) for hour in range(4))
    np.testing.assert_allclose(ds.smoke[0], total, rtol=1e-5)
    assert "smoke before fire" in ds.attrs["quality"]


def test_negative_and_faint_smoke_is_zero(tmp_path):
    def edges(seconds):
        field = plume(seconds) + 1e-12
        field[:, 0] = -1e-6
        return field

    run = write_run(tmp_path, HOURS, smoke=edges)
    faint, ds = (read_wrf(run, WrfOptions(floor=floor)).smoke for floor in (0.0, SMOKE_FLOOR))
    assert (faint[:, 0] == 0).all()
    assert (faint[:, 1:] > 0).all()
    assert ((ds == 0) | (ds >= SMOKE_FLOOR)).all()
    assert (ds[:, 1:] == 0).any()


def test_known_smoke_variables(tmp_path):
    hour = plume(3600.0)
    mixed = read_run(tmp_path / "a", [0, 1], {**ALL, "smoke": "tr17_1"}, smoke_name="tr17_1",
                     smoke_units="Dimensionless")  # fmt: skip
    np.testing.assert_allclose(mixed.smoke[0], 1e-6 * expected_column(hour), rtol=1e-5)
    # A concentration needs no air.
    dense = read_run(tmp_path / "b", [0, 1], {**ALL, "smoke": "PM2_5_DRY"}, smoke_name="PM2_5_DRY",
                     smoke_units="ug m^-3", drop=["P", "PB", "T"])  # fmt: skip
    depth = np.diff(HEIGHTS)[:, None, None]
    np.testing.assert_allclose(dense.smoke[0], (hour * depth).sum(axis=0) / depth.sum(), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "label", "unit", "message"),
    [
        ("bbc_1", "", "ug/kg", r"unit of bbc_1 is unknown.*fire_smoke g/kg"),
        ("smoke", "", "ug/kg", r"unit of smoke is unknown; .*ppmv.*ug/kg"),
        ("fire_smoke", "ppmv", "g/kg", r"fire_smoke is labelled 'ppmv', not g/kg"),
    ],
)
def test_units_are_stated_and_never_guessed(tmp_path, name, label, unit, message):
    run = write_run(tmp_path, [0, 1], smoke_name=name, smoke_units=label)
    with pytest.raises(PlumecastError, match=message):
        read_wrf(run, WrfOptions(smoke=name))
    factor = {"g/kg": 1.0, "ug/kg": 1e-6}[unit]
    smoke = read_wrf(run, WrfOptions(smoke=name, smoke_unit=unit, **ALL)).smoke[0]
    np.testing.assert_allclose(smoke, factor * expected_column(plume(3600.0)), rtol=1e-5)


@pytest.mark.parametrize(
    ("label", "unit"),
    [("g_smoke/kg_air", "g/kg"), ("ug/kg-dryair", "ug/kg"), ("kg kg-1", "kg/kg"),
     ("μg m-3", "ug/m3"), ("mg/m^3", "mg/m3"), ("ug/m2", None), ("ppmv", None), ("", None)],
)  # fmt: skip
def test_unit_labels(label, unit):
    assert known_unit(label) == unit


# -- wind


def towards(speed: float, from_direction: float) -> tuple[float, float]:
    angle = np.deg2rad(from_direction)
    return -speed * np.sin(angle), -speed * np.cos(angle)


def test_mean_wind_by_hand():
    """West wind of 4, then south wind of 2 m/s: speeds 4 and 3, the mean vector is (2, 1)."""
    speed, direction = mean_winds([towards(4.0, 270.0), towards(2.0, 180.0)])
    np.testing.assert_allclose(speed, [4.0, 3.0])
    np.testing.assert_allclose(direction, [270.0, 180.0 + np.rad2deg(np.arctan2(2.0, 1.0))])
    gaps = [None, towards(5.0, 270.0), None, towards(7.0, 270.0)]
    np.testing.assert_allclose(mean_winds(gaps)[0], [5.0, 5.0, 5.0, 6.0])
    assert mean_winds([None, None]) is None
    assert domain_wind(np.zeros((2, 3)), np.zeros((2, 3))) is None  # not computed yet


def test_the_mean_wind_runs_from_ignition_over_the_kept_frames(tmp_path):
    """The fire ignites after 1.5 h, so that the storm at 1 h does not count."""
    wind = {1: (50.0, 0.0), 2: (4.0, 0.0), 3: (6.0, 0.0), 4: (8.0, 0.0)}
    storm = {"fire": Circle(ignition=5400.0), "edit": blowing(lambda s: wind.get(round(s / 3600)))}
    snapshots = read_run(tmp_path, range(5), **storm)
    np.testing.assert_allclose(snapshots.wind_speed, [4.0, 5.0, 6.0])
    np.testing.assert_allclose(snapshots.wind_from_direction, 270.0)
    np.testing.assert_allclose(read_wrf(tmp_path, WrfOptions(every="2h")).wind_speed, [4.0, 6.0])
    assert "wind_speed" not in read_run(tmp_path / "calm", range(3)).variables


@pytest.mark.parametrize(
    ("run", "from_direction", "sounding"),
    [("018", 255.0, 9.5), ("019", 235.0, 7.0), ("020", 215.0, 5.5)],
)
def test_real_winds_come_from_where_the_sounding_says(run, from_direction, sounding):
    """The 10 m wind is weaker than the sounding's surface wind and turned by less than 10°."""
    snapshots = read_wrf(shared_data(f"wrf/runs/fire_{run}"), WrfOptions(every="2h"))
    assert abs(snapshots.wind_from_direction - from_direction).max() < 10.0
    assert ((0.6 * sounding < snapshots.wind_speed) & (snapshots.wind_speed < sounding)).all()


# -- coordinates


def test_idealised_domains_are_in_metres(tmp_path):
    ds = read_run(tmp_path, [0, 1])
    np.testing.assert_array_equal(ds.x, (np.arange(NX) + 0.5) * CELL)
    np.testing.assert_array_equal(ds.y, (np.arange(NY) + 0.5) * CELL)
    assert not {"lat", "crs"} & set(ds.coords)


@pytest.mark.parametrize(
    ("projection", "proj"),
    [
        ((1, 33.0, 45.0, -97.0, 39.0), "+proj=lcc +lat_1=33 +lat_2=45 +lat_0=39 +lon_0=-97"),
        ((1, 38.5, 38.5, -97.5, 38.5), "+proj=lcc +lat_1=38.5 +lat_0=38.5 +lon_0=-97.5"),
        ((2, 60.0, 0.0, -150.0, 0.0), "+proj=stere +lat_0=90 +lat_ts=60 +lon_0=-150"),
        ((2, -71.0, 0.0, 10.0, 0.0), "+proj=stere +lat_0=-90 +lat_ts=-71 +lon_0=10"),
        ((3, 15.0, 0.0, 170.0, 0.0), "+proj=merc +lat_ts=15 +lon_0=170"),
    ],
)
def test_map_planes_agree_with_proj(projection, proj):
    pyproj = pytest.importorskip("pyproj")
    names = ("MAP_PROJ", "TRUELAT1", "TRUELAT2", "STAND_LON", "MOAD_CEN_LAT")
    attributes = dict(zip(names, projection, strict=True))
    move = pyproj.Transformer.from_crs(
        "+proj=longlat +R=6370000", f"{proj} +R=6370000 +units=m", always_xy=True
    ).transform
    for lat, lon in ((20.0, -110.0), (40.0, -90.0), (-35.0, -179.0)):
        _, place = map_plane(attributes, lat, lon)
        np.testing.assert_allclose(place, move(lon, lat), rtol=1e-9, atol=1e-3)


REAL = {"TRUELAT1": 36.0, "TRUELAT2": 39.0, "STAND_LON": -106.0, "MOAD_CEN_LAT": 37.5}


@pytest.mark.parametrize(("kind", "parallel"), [(1, 36.0), (2, -60.0)])
def test_real_domains_have_lat_lon_and_a_grid_mapping(tmp_path, kind, parallel):
    pyproj = pytest.importorskip("pyproj")
    attributes = {**REAL, "TRUELAT1": parallel, "MAP_PROJ": np.int32(kind)}
    mapping, _ = map_plane(attributes, 40.0, -100.0)
    to_degrees = pyproj.Transformer.from_crs(
        pyproj.CRS.from_cf(mapping), pyproj.CRS("+proj=longlat +R=6370000"), always_xy=True
    ).transform
    x, y = np.meshgrid(2e5 + CELL * np.arange(NX), -3e5 + CELL * np.arange(NY))
    lon, lat = to_degrees(x, y)
    ds = read_run(tmp_path, [0, 1], attributes=attributes, places=(lat, lon))
    np.testing.assert_allclose(ds.x, x[0], atol=5.0)  # float32 degrees are metres apart
    np.testing.assert_allclose(ds.y, y[:, 0], atol=5.0)
    np.testing.assert_allclose(ds.lat, lat, atol=1e-5)
    assert ds.smoke.attrs["grid_mapping"] == "crs"
    assert ds.crs.attrs["grid_mapping_name"] == mapping["grid_mapping_name"]


def test_a_projection_without_a_plane_keeps_lat_lon_only(tmp_path):
    lat, lon = np.full((NY, NX), 10.0), np.full((NY, NX), 20.0)
    attributes = {**REAL, "MAP_PROJ": np.int32(6)}
    ds = read_run(tmp_path, [0, 1], attributes=attributes, places=(lat, lon))
    assert "crs" not in ds.coords
    assert ds.x[0] == CELL / 2
    assert float(ds.lat[0, 0]) == 10.0
