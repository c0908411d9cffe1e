"""Snapshots from wrfout files: against hand-computed fields, and against real runs."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from wrf_files import (
    CELL,
    HEIGHTS,
    NX,
    NY,
    NZ,
    REFINE,
    STEP,
    Circle,
    air,
    plume,
    write_run,
    write_wrfout,
)

from plumecast.constants import CP_DRY, M2_PER_ACRE, P0, R_DRY
from plumecast.errors import PlumecastError
from plumecast.source import wrf
from plumecast.source.wrf import FireResult, read_wrf, read_wrf_fires

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "wrf"
REFERENCES = sorted((SHARED / "reference").glob("*.npz"))
needs_shared = pytest.mark.skipif(not REFERENCES, reason="../shared/data/wrf is not here")

HOURS = range(7)
FILE = "wrfout_d01_2020-08-01_12_00_00"


def expected_age(seconds: float, fire: Circle) -> np.ndarray:
    age = np.maximum(seconds - fire.arrival(), 0) * (fire.level(seconds) < 0) / 3600
    return age.reshape(NY, REFINE, NX, REFINE).mean(axis=(1, 3))


def expected_column(smoke: np.ndarray) -> np.ndarray:
    """Σ q ρ Δz / Σ Δz with ρ from the ideal gas law, µg m⁻³, q in g/kg."""
    state = air()
    pressure = state["P"] + state["PB"]
    temperature = (state["T"] + 300) * (pressure / P0) ** (R_DRY / CP_DRY)
    depth = 1.01 * np.diff(HEIGHTS)[:, None, None]
    mass = 1e6 * np.maximum(smoke, 0) * pressure / (R_DRY * temperature) * depth
    return mass.sum(axis=0) / depth.sum()


# -- fields


def test_time_since_ignition_is_the_block_mean_of_the_age(tmp_path):
    ds = read_wrf(write_run(tmp_path / "fire", HOURS))
    expected = [expected_age(3600.0 * hour, Circle()) for hour in HOURS[1:]]
    np.testing.assert_allclose(ds.time_since_ignition, expected, rtol=1e-5, atol=1e-5)
    assert ds.time_since_ignition.dtype == ds.smoke.dtype == np.float32


def test_block_max_keeps_the_oldest_cell(tmp_path):
    ds = read_wrf(write_run(tmp_path / "fire", HOURS), aggregate="max")
    np.testing.assert_allclose(ds.time_since_ignition.max(("y", "x")), ds.hours, rtol=1e-5)
    with pytest.raises(PlumecastError, match="aggregate='sum'"):
        read_wrf(tmp_path / "fire", aggregate="sum")


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
    ds = read_wrf(write_run(tmp_path / "fire", HOURS), floor=0.0)
    columns = np.cumsum([expected_column(plume(3600.0 * hour)) for hour in HOURS], axis=0)[1:]
    np.testing.assert_allclose(ds.smoke, columns, rtol=1e-5)
    assert (np.diff(ds.smoke, axis=0) >= 0).all()


def test_frames_before_ignition_count_in_the_sum_but_give_no_snapshot(tmp_path):
    fire = Circle(ignition=2.5 * 3600)
    ds = read_wrf(write_run(tmp_path / "fire", HOURS, fire=fire), floor=0.0)
    assert ds.sizes["snapshot"] == 4
    total = sum(expected_column(plume(3600.0 * hour)) for hour in range(4))
    np.testing.assert_allclose(ds.smoke[0], total, rtol=1e-5)
    assert "smoke before fire" in ds.attrs["quality"]


def test_negative_mixing_ratios_are_set_to_zero(tmp_path):
    def boundary(seconds):
        field = plume(seconds)
        field[:, 0] = -1e-6
        return field

    ds = read_wrf(write_run(tmp_path / "fire", HOURS, smoke=boundary), floor=0.0)
    assert (ds.smoke[:, 0] == 0).all()
    assert ds.smoke.max() > 0


def test_smoke_below_the_floor_is_exactly_zero(tmp_path):
    def faint(seconds):
        return plume(seconds) + 1e-12

    run = write_run(tmp_path / "fire", HOURS, smoke=faint)
    assert (read_wrf(run, floor=0.0).smoke > 0).all()
    ds = read_wrf(run)
    assert ds.attrs["smoke_floor"] == wrf.SMOKE_FLOOR
    assert ((ds.smoke == 0) | (ds.smoke >= wrf.SMOKE_FLOOR)).all()
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
    whole = read_wrf(write_run(tmp_path / "a", HOURS, fire=fire), every="6h")
    rebuilt = read_wrf(write_run(tmp_path / "b", HOURS, fire=fire, drop=["TIGN_G"]), every="6h")
    np.testing.assert_allclose(
        rebuilt.time_since_ignition, whole.time_since_ignition, rtol=1e-4, atol=1e-4
    )


def test_crossing_time_is_linear_and_final():
    level = np.array([3.0, 1.0, -1.0])
    before = wrf.FireState(0.0, level, level < 0, np.array([np.inf, np.inf, 0.0]))
    arrival = wrf.advance_arrival(before, np.array([1.0, -3.0, -5.0]), 100.0)
    np.testing.assert_allclose(arrival, [np.inf, 25.0, 0.0])


# -- files, times and domains


def test_one_frame_per_file_equals_one_file(tmp_path):
    whole = read_wrf(write_run(tmp_path / "whole", HOURS), fire_id="f")
    for hour in HOURS:
        name = f"wrfout_d01_2020-08-01_{12 + hour}_00_00"
        write_wrfout(tmp_path / "parts" / name, [3600.0 * hour], format="NETCDF3_64BIT_OFFSET")
    xr.testing.assert_identical(read_wrf(tmp_path / "parts", fire_id="f"), whole)
    xr.testing.assert_identical(read_wrf(str(tmp_path / "parts" / "wrfout*"), fire_id="f"), whole)
    files = sorted((tmp_path / "parts").iterdir(), reverse=True)
    xr.testing.assert_identical(read_wrf(files, fire_id="f"), whole)


def test_chunks_that_span_frames_read_the_same(tmp_path):
    run = write_run(tmp_path / "fire", HOURS)
    with xr.open_dataset(run / FILE, decode_times=False) as source:
        encoding = {name: {"chunksizes": source[name].shape, "zlib": True, "_FillValue": None}
                    for name in ("LFN", "TIGN_G", "fire_smoke")}  # fmt: skip
        (tmp_path / "again").mkdir()
        source.to_netcdf(
            tmp_path / "again" / FILE,
            encoding={**encoding, "Times": {"char_dim_name": "DateStrLen"}},
        )
    xr.testing.assert_identical(
        read_wrf(tmp_path / "again", fire_id="f"), read_wrf(run, fire_id="f")
    )


def test_the_domain_with_the_fire_grid_is_read(tmp_path):
    run = tmp_path / "fire"
    seconds = [3600.0 * hour for hour in HOURS]
    write_wrfout(run / FILE, seconds, fire_grid=False)
    write_wrfout(run / FILE.replace("d01", "d02"), seconds, attributes={"GRID_ID": np.int32(2)})
    ds = read_wrf(run)
    assert ds.sizes["snapshot"] == 6
    xr.testing.assert_identical(read_wrf(run, domain="d02").smoke, ds.smoke)
    with pytest.raises(PlumecastError, match=r"no fire grid .* in d01, d02"):
        read_wrf(run, domain=1)
    with pytest.raises(PlumecastError, match="no files of d03; found d01, d02"):
        read_wrf(run, domain=3)
    with pytest.raises(PlumecastError, match="domain='inner'"):
        read_wrf(run, domain="inner")


def test_checkpoints_are_thinned_and_the_sum_runs_over_them(tmp_path):
    run = write_run(tmp_path / "fire", range(13))
    ds = read_wrf(run, every="6h", floor=0.0)
    np.testing.assert_allclose(ds.hours + Circle().arrival().min() / 3600, [6, 12], rtol=1e-6)
    total = sum(expected_column(plume(3600.0 * hour)) for hour in (0, 6, 12))
    np.testing.assert_allclose(ds.smoke[-1], total, rtol=1e-5)
    for same in (6, "360min", "0.25d", 6.0):
        xr.testing.assert_equal(read_wrf(run, every=same, floor=0.0), ds)


def test_thinning_takes_the_nearest_frame_of_an_adaptive_run(tmp_path):
    frames = [wrf.Frame(t, tmp_path, i) for i, t in enumerate([0, 3604, 7211, 10790, 14400])]
    assert [frame.number for frame in wrf.thin(frames, 7200.0)] == [0, 2, 4]
    with pytest.raises(PlumecastError, match=r"every=0.5 h is finer"):
        wrf.thin(frames, 1800.0)
    with pytest.raises(PlumecastError, match="every='often'"):
        read_wrf(write_run(tmp_path / "fire", HOURS), every="often")


def test_identical_overlap_of_restarts_is_merged(tmp_path):
    whole = read_wrf(write_run(tmp_path / "whole", HOURS), fire_id="f")
    restart = {"START_DATE": "2020-08-01_15:00:00"}
    run = tmp_path / "restarted"
    write_wrfout(run / FILE, [3600.0 * hour for hour in range(5)])
    late = [3600.0 * hour for hour in range(3, 7)]
    write_wrfout(run / "wrfout_d01_2020-08-01_15_00_00", late, attributes=restart)
    xr.testing.assert_identical(read_wrf(run, fire_id="f"), whole)


def test_conflicting_overlap_and_duplicate_times_are_refused(tmp_path):
    run = tmp_path / "restarted"
    write_wrfout(run / FILE, [0.0, 3600.0, 7200.0])
    late = write_wrfout(run / "wrfout_d01_late", [7200.0, 10800.0], smoke=lambda t: 2 * plume(t))
    with pytest.raises(
        PlumecastError, match=rf"{late.name}: 2 h is stored twice.*fire_smoke"
    ) as info:
        read_wrf(run)
    assert "\n" not in str(info.value)
    twice = write_wrfout(tmp_path / "twice" / FILE, [0.0, 3600.0, 3600.0])
    assert read_wrf(twice).sizes["snapshot"] == 1  # identical, so merged

    calls = iter(range(9))

    def other(fields, seconds):
        fields["T"] = fields["T"] + next(calls)

    write_wrfout(twice, [0.0, 3600.0, 3600.0], edit=other)
    with pytest.raises(PlumecastError, match="1 h is stored twice, with other T"):
        read_wrf(twice)


def test_two_simulations_in_one_directory_are_refused(tmp_path):
    write_wrfout(tmp_path / FILE, [0.0, 3600.0])
    later = {"SIMULATION_START_DATE": "2020-08-02_12:00:00"}
    write_wrfout(tmp_path / "wrfout_d01_b", [0.0, 3600.0], attributes=later)
    with pytest.raises(PlumecastError, match="wrfout_d01_b: simulation starts 2020-08-02"):
        read_wrf(tmp_path)


def test_start_without_attributes_is_the_first_time(tmp_path):
    none = {"SIMULATION_START_DATE": None, "START_DATE": None, "GRID_ID": None}
    ds = read_wrf(write_run(tmp_path / "fire", HOURS, attributes=none))
    xr.testing.assert_equal(ds.smoke, read_wrf(write_run(tmp_path / "b" / "fire", HOURS)).smoke)


# -- smoke variables and units


@pytest.mark.parametrize(
    ("name", "label", "factor", "per_volume"),
    [
        ("tr17_1", "Dimensionless", 1e-6, False),
        ("PM2_5_DRY", "ug m^-3", 1.0, True),
        ("smoke", "ug/m3", 1.0, True),
    ],
)
def test_known_smoke_variables(tmp_path, name, label, factor, per_volume):
    run = write_run(tmp_path / "fire", HOURS, smoke_name=name, smoke_units=label)
    ds = read_wrf(run, smoke=name, floor=0.0)
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
    assert read_wrf(run, smoke="PM2_5_DRY").smoke.max() > 0


def test_units_are_never_guessed(tmp_path):
    run = write_run(tmp_path / "fire", HOURS, smoke_name="bbc_1", smoke_units="")
    with pytest.raises(PlumecastError, match=r"unit of bbc_1 is unknown.*fire_smoke g/kg"):
        read_wrf(run, smoke="bbc_1")
    stated = read_wrf(run, smoke="bbc_1", smoke_unit="g/kg")
    micro = read_wrf(run, smoke="bbc_1", smoke_unit="µg/kg", floor=0.0)
    np.testing.assert_allclose(stated.smoke, 1e6 * micro.smoke, rtol=1e-5)
    with pytest.raises(PlumecastError, match="smoke_unit='ppmv'"):
        read_wrf(run, smoke="bbc_1", smoke_unit="ppmv")


def test_a_label_that_contradicts_the_table_is_refused(tmp_path):
    run = write_run(tmp_path / "fire", HOURS, smoke_name="smoke", smoke_units="Dimensionless")
    with pytest.raises(PlumecastError, match=r"smoke is labelled 'Dimensionless', not ug/m3"):
        read_wrf(run, smoke="smoke")
    assert read_wrf(run, smoke="smoke", smoke_unit="ug/kg").sizes["snapshot"] == 6


@pytest.mark.parametrize(
    ("label", "unit"),
    [("g_smoke/kg_air", "g/kg"), ("ug/kg-dryair", "ug/kg"), ("kg kg-1", "kg/kg"),
     ("μg m-3", "ug/m3"), ("mg/m^3", "mg/m3"), ("ug/m2", None), ("ppmv", None), ("", None)],
)  # fmt: skip
def test_unit_labels(label, unit):
    assert wrf.known_unit(label) == unit


# -- where it is


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
    mapping, _ = wrf.regrid.map_plane(attributes, 40.0, -100.0)
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


# -- bad input


def broken(tmp_path: Path, name: str) -> Path:
    """A run with one fault."""
    run = tmp_path / name
    run.mkdir()
    file = run / FILE
    if name == "empty":
        return run
    if name == "text":
        file.write_text("hello" * 100)
    elif name in ("truncated", "classic"):
        form = "NETCDF4" if name == "truncated" else "NETCDF3_64BIT_OFFSET"
        write_wrfout(file, [0.0, 3600.0], format=form)
        file.write_bytes(file.read_bytes()[: -(file.stat().st_size // 5)])
    elif name == "header":
        write_wrfout(file, [0.0], format="NETCDF3_64BIT_OFFSET")
        file.write_bytes(file.read_bytes()[:100])
    elif name == "no_smoke":
        write_wrfout(file, [0.0, 3600.0], drop=["fire_smoke"])
    elif name == "no_air":
        write_wrfout(file, [0.0, 3600.0], drop=["PHB", "T"])
    elif name == "no_level":
        write_wrfout(file, [0.0, 3600.0], drop=["LFN"])
    elif name == "no_burn":
        write_wrfout(file, [0.0, 3600.0], fire=Circle(ignition=1e9))
    elif name == "no_frames":
        write_wrfout(file, [])
    elif name == "folder":
        file.mkdir()
    else:
        write_wrfout(file, [0.0, 3600.0], edit=FAULTS[name])
    return run


def nan_column(fields, seconds):
    fields["fire_smoke"][1, 2, 3] = np.nan


def nan_level(fields, seconds):
    fields["LFN"][3, 3] = np.nan


def unwritten(fields, seconds):
    for name in ("PH", "PHB", "fire_smoke"):
        fields[name] = np.full_like(fields[name], 9.96921e36)


FAULTS = {"nan_column": nan_column, "nan_level": nan_level, "unwritten": unwritten}
MESSAGES = {
    "empty": r"empty: no wrfout\* files",
    "text": "not a NetCDF file",
    "truncated": "damaged or truncated",
    "classic": r"truncated, \d+ bytes are missing",
    "header": "truncated inside its header",
    "no_smoke": r"no variable fire_smoke; found LFN, P, PB",
    "no_air": r"no variable PHB, T; found LFN",
    "no_level": "no variable LFN; found P",
    "no_burn": "no cell burns in 2 frames",
    "no_frames": "no frames in it",
    "folder": "not a file",
    "nan_column": "1 columns are NaN or unwritten in frame 0; look at fire_smoke, PH",
    "nan_level": "NaN or unwritten LFN in frame 0",
    "unwritten": f"{NY * NX} columns are NaN or unwritten",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_bad_input_is_one_line_that_names_the_file(tmp_path, name):
    run = broken(tmp_path, name)
    with pytest.raises(PlumecastError, match=MESSAGES[name]) as info:
        read_wrf(run)
    assert str(run) in str(info.value)
    assert "\n" not in str(info.value)


def test_a_missing_path_is_named(tmp_path):
    with pytest.raises(PlumecastError, match="nowhere: no wrfout"):
        read_wrf(tmp_path / "nowhere")


def test_a_bad_time_and_an_odd_fire_grid_are_named(tmp_path):
    import netCDF4

    for stamp in ("2020-08-01_99:00:00", " " * 19):
        path = write_wrfout(tmp_path / FILE, [0.0, 3600.0])
        with netCDF4.Dataset(path, "a") as file:
            file["Times"][1] = np.array(list(stamp), dtype="S1")
        with pytest.raises(PlumecastError, match=f"unreadable time '{stamp.strip()}'"):
            read_wrf(path)
    odd = wrf.FrameReader()
    with netCDF4.Dataset(tmp_path / "odd.nc", "w") as file:
        for name, size in (("south_north", 3), ("west_east", 3), ("west_east_subgrid", 10),
                           ("south_north_subgrid", 12)):  # fmt: skip
            file.createDimension(name, size)
    with pytest.raises(PlumecastError, match=r"fire grid \(12, 10\) is no multiple of \(4, 4\)"):
        wrf._layout(odd.open(tmp_path / "odd.nc"), tmp_path / "odd.nc")
    odd.close()


def test_a_frame_that_cannot_be_read_is_named(tmp_path):
    path = write_wrfout(tmp_path / FILE, [0.0, 3600.0])
    reader = wrf.FrameReader()
    with pytest.raises(PlumecastError, match=rf"{FILE}: frame 9 cannot be read"):
        reader.read(wrf.Frame(0.0, path, 9), ["LFN"])
    reader.close()


# -- many fires


def test_a_failing_fire_does_not_stop_the_others(tmp_path):
    runs = [write_run(tmp_path / "a", HOURS), broken(tmp_path, "text"),
            write_run(tmp_path / "b", HOURS), write_run(tmp_path / "c", HOURS),
            write_run(tmp_path / "again" / "a", HOURS)]  # fmt: skip
    calls: list[tuple[str, int, int]] = []
    results = list(
        read_wrf_fires(
            runs,
            drought={"a": "low", "c": "high"},
            ignition_id={"c": "a"},
            done={"b"},
            progress=lambda result, n, total: calls.append((result.fire_id, n, total)),
            every="3h",
        )
    )
    assert [result.fire_id for result in results] == ["a", "text", "c", "a"]
    assert calls == [("a", 1, 4), ("text", 2, 4), ("c", 3, 4), ("a", 4, 4)]
    assert results[1].outcome == f"{runs[1] / FILE}: not a NetCDF file"
    assert results[3].outcome == f"{runs[4]}: fire_id 'a' is also that of {runs[0]}"
    assert set(results[2].outcome.ignition_id.values) == {"a"}
    assert set(results[0].outcome.drought.values) == {"low"}
    xr.testing.assert_identical(results[0].outcome, read_wrf(runs[0], drought="low", every="3h"))


def test_processes_give_the_same_results_in_the_same_order(tmp_path):
    runs = [write_run(tmp_path / name, HOURS) for name in "abc"] + [broken(tmp_path, "no_air")]
    alone = list(read_wrf_fires(runs))
    together = list(read_wrf_fires(runs, workers=2))
    assert [result.fire_id for result in together] == [result.fire_id for result in alone]
    for one, other in zip(alone, together, strict=True):
        assert one.quality == other.quality
        if isinstance(one.outcome, str):
            assert one.outcome == other.outcome
        else:
            xr.testing.assert_identical(one.outcome, other.outcome)


class Deadly:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (1,)


def test_a_process_that_dies_costs_only_its_fire(tmp_path):
    runs = [write_run(tmp_path / name, [0, 1]) for name in "ab"]
    jobs = [wrf._Job(path, wrf._Options(), (name, name, "low"), None)
            for name, path in (("dead", Deadly()), ("a", runs[0]), ("b", runs[1]))]  # fmt: skip
    results = list(wrf._in_order(jobs, workers=2))
    assert "process died" in results[0].outcome
    assert [type(result.outcome) for result in results[1:]] == [xr.Dataset, xr.Dataset]


def test_a_surprise_is_reported_with_its_type(tmp_path, monkeypatch):
    def surprise(*args, **kwargs):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(wrf, "_prepare", surprise)
    (result,) = read_wrf_fires([write_run(tmp_path / "a", HOURS)])
    assert result == FireResult("a", f"{tmp_path / 'a'}: ZeroDivisionError: oh", ())


def test_memory_does_not_grow_with_the_number_of_frames(tmp_path):
    peaks = []
    for count in (4, 4, 40):
        run = write_run(tmp_path / f"run{count}", np.arange(count) / 4)
        tracemalloc.start()
        read_wrf(run)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    frame_bytes = 4 * (2 * (NY + 1) * (NX + 1) * REFINE**2 + 6 * (NZ + 1) * NY * NX)
    rows = 36 * NY * NX * 8  # the snapshots themselves
    assert peaks[2] - peaks[1] < 3 * rows + 2 * frame_bytes


# -- real runs


@needs_shared
@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_real_runs_equal_their_reference(path):
    ds = read_wrf(SHARED / "runs" / path.stem, floor=0.0)
    with np.load(path) as reference:
        burned = reference["burned_area_acres"] > 0
        for name in ("time_since_ignition", "smoke"):
            expected = reference[name][burned]
            tiny = np.finfo(np.float32).tiny
            np.testing.assert_allclose(ds[name], expected, rtol=1e-5, atol=tiny)
        np.testing.assert_allclose(ds.burned_area, reference["burned_area_acres"][burned])
        simulated = reference["seconds"][burned] / 3600
        np.testing.assert_allclose(np.diff(simulated - ds.hours.values), 0, atol=1e-9)
    assert (ds.time_since_ignition.max(("y", "x")) <= ds.hours + 1e-6).all()
    findings = ds.attrs["quality"].split("; ")
    assert all(finding.startswith("plume at boundary") for finding in findings)


@needs_shared
def test_one_classic_frame_per_file_of_the_year_one():
    ds = read_wrf(SHARED / "runs" / "classic_one_frame_per_file")
    assert ds.sizes == {"snapshot": 1, "y": 32, "x": 40}
    assert 0 < ds.hours.item() < 1
    assert float(ds.smoke.max()) > 1


@needs_shared
def test_arrival_rebuilt_from_a_real_level_set_is_near(monkeypatch):
    run = SHARED / "runs" / "fire_018"
    with_times = read_wrf(run)
    real_read = wrf._prepare

    def without_times(*args):
        found = real_read(*args)
        found.names.remove("TIGN_G")
        return found

    monkeypatch.setattr(wrf, "_prepare", without_times)
    rebuilt = read_wrf(run)
    error = np.abs(rebuilt.time_since_ignition - with_times.time_since_ignition)
    assert float(error.max()) < 1.0  # never beyond the spacing of the frames
    assert float(error.sum() / with_times.time_since_ignition.sum()) < 0.05
