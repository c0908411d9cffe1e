"""Files and frames of a fire: order, overlaps, domains, checkpoints, bad input, odd metadata."""

from __future__ import annotations

import re
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.compute.dose import running_dose
from plumecast.sources.wrf import WrfOptions, read_wrf, read_wrf_fires
from plumecast.sources.wrf.files import Frame, FrameReader, thin
from plumecast.sources.wrf.integrity import dimensions_of
from support.wrf_files import (
    FILE,
    HOURS,
    NX,
    NY,
    NZ,
    REFINE,
    Circle,
    broken,
    expected_column,
    plume,
    read_run,
    write_run,
    write_wrfout,
)

SHAPES = {"LFN": ((NY + 1) * REFINE, (NX + 1) * REFINE), "fire_smoke": (NZ, NY, NX)}


# -- files, times and domains


def test_one_frame_per_file_equals_one_file(tmp_path):
    whole = read_run(tmp_path / "whole")
    for hour in HOURS:
        name = f"wrfout_d01_2020-08-01_{12 + hour}_00_00"
        write_wrfout(tmp_path / "parts" / name, [3600.0 * hour], format="NETCDF3_64BIT_OFFSET")
    xr.testing.assert_identical(read_wrf(tmp_path / "parts", fire_id="f"), whole)
    xr.testing.assert_identical(read_wrf(str(tmp_path / "parts" / "wrfout*"), fire_id="f"), whole)
    files = sorted((tmp_path / "parts").iterdir(), reverse=True)
    xr.testing.assert_identical(read_wrf(files, fire_id="f"), whole)


def test_chunks_that_span_frames_read_the_same(tmp_path):
    plain = read_run(tmp_path)
    encoding = {name: {"chunksizes": (7, *shape), "zlib": True, "_FillValue": None}
                for name, shape in SHAPES.items()}  # fmt: skip
    (tmp_path / "again").mkdir()
    with xr.open_dataset(tmp_path / FILE, decode_times=False) as source:
        encoding["Times"] = {"char_dim_name": "DateStrLen"}
        source.to_netcdf(tmp_path / "again" / FILE, encoding=encoding)
    xr.testing.assert_identical(read_wrf(tmp_path / "again", fire_id="f"), plain)


def test_the_domain_with_the_fire_grid_is_read(tmp_path):
    run = tmp_path / "fire"
    seconds = [3600.0 * hour for hour in HOURS]
    write_wrfout(run / FILE, seconds, fire_grid=False)
    write_wrfout(run / FILE.replace("d01", "d02"), seconds, attributes={"GRID_ID": np.int32(2)})
    ds = read_wrf(run)
    assert ds.sizes["snapshot"] == 6
    xr.testing.assert_identical(read_wrf(run, WrfOptions(domain="d02")).smoke, ds.smoke)
    for domain, message in (
        (1, r"no fire grid .* in d01; found d01, d02"),
        (3, "no files of d03; found d01, d02"),
        ("inner", "domain='inner'"),
    ):
        with pytest.raises(PlumecastError, match=message):
            read_wrf(run, WrfOptions(domain=domain))


def test_checkpoints_are_thinned_and_the_sum_runs_over_them(tmp_path):
    run = write_run(tmp_path / "fire", range(13))
    ds = read_wrf(run, WrfOptions(every="6h", floor=0.0))
    np.testing.assert_allclose(ds.hours + Circle().arrival().min() / 3600, [6, 12], rtol=1e-6)
    total = sum(expected_column(plume(3600.0 * hour)) for hour in (0, 6, 12))
    np.testing.assert_allclose(ds.smoke[-1], total, rtol=1e-5)
    for same in (6, "360min", "0.25d", 6.0):
        xr.testing.assert_equal(read_wrf(run, WrfOptions(every=same, floor=0.0)), ds)


def test_thinning_takes_the_nearest_frame_of_an_adaptive_run(tmp_path):
    frames = [Frame(t, tmp_path, i) for i, t in enumerate([0, 3604, 7211, 10790, 14400])]
    assert [frame.number for frame in thin(frames, 7200.0)] == [0, 2, 4]
    with pytest.raises(PlumecastError, match=r"every=0.5 h is finer"):
        thin(frames, 1800.0)


@pytest.mark.parametrize(
    "hours",
    [
        [0, 1, 2, 5, 6],  # two frames are missing
        [0, 1, 2, 3, 3.5, 4, 4.5, 5, 5.5, 6],  # a restart with another interval
        [0, 1.3, 2.1, 4, 6],
    ],
)
def test_frames_at_uneven_times_give_the_dose_of_even_ones(tmp_path, hours):
    """The sum weights each frame by its time, so that smoke keeps its size and has an interval."""
    even = read_run(tmp_path / "even", np.arange(0, 6.1, 0.5), {"floor": 0.0})
    uneven = read_run(tmp_path / "uneven", hours, {"floor": 0.0})
    gaps = np.diff(hours)
    assert uneven.smoke.attrs["checkpoint_interval_hours"] == pytest.approx(np.median(gaps), 1e-4)
    assert "frame_weights" in uneven.smoke.attrs
    assert "frame_weights" not in even.smoke.attrs
    weights = [1.0, *(gaps / np.median(gaps))]
    total = sum(
        weight * expected_column(plume(3600.0 * hour))
        for weight, hour in zip(weights, hours, strict=True)
    )
    np.testing.assert_allclose(uneven.smoke[-1], total, rtol=1e-5)
    # The dose of all cells is the trapezoid over these frames, which differs from the finer one.
    since = np.array(hours[1:]) - float(Circle().arrival().min()) / 3600.0
    sums = [expected_column(plume(3600.0 * hour)).sum() for hour in hours[1:]]
    burning = since > 0.0
    exact = running_dose(since[burning].tolist(), np.array(sums)[burning].tolist())
    dose = pc.scores.as_quantity(uneven.smoke, "dose").sum(("y", "x"))
    np.testing.assert_allclose(dose, exact, rtol=1e-5)
    true = pc.scores.as_quantity(even.smoke, "dose").sum(("y", "x"))[-1]
    assert float(dose[-1]) == pytest.approx(float(true), rel=0.1)


def test_identical_overlap_of_restarts_is_merged(tmp_path):
    whole = read_run(tmp_path / "whole")
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
    with pytest.raises(PlumecastError, match=rf"{late.name}: 2 h is stored twice.*fire_smoke"):
        read_wrf(run)
    twice = write_wrfout(tmp_path / "twice" / FILE, [0.0, 3600.0, 3600.0])
    assert read_wrf(twice).sizes["snapshot"] == 1  # identical, so merged

    calls = iter(range(9))

    def other(fields, seconds):
        fields["T"] = fields["T"] + next(calls)

    write_wrfout(twice, [0.0, 3600.0, 3600.0], edit=other)
    with pytest.raises(PlumecastError, match="1 h is stored twice, with other T"):
        read_wrf(twice)


def test_start_without_attributes_is_the_first_time(tmp_path):
    none = {"SIMULATION_START_DATE": None, "START_DATE": None, "GRID_ID": None}
    bare = read_run(tmp_path / "bare", attributes=none)
    xr.testing.assert_equal(bare.smoke, read_run(tmp_path / "fire").smoke)


# -- bad input


MESSAGES = {
    "empty": r"empty: the folder is empty",
    "text": "not a NetCDF file",
    "truncated": "damaged or truncated",
    "classic": r"truncated, \d+ bytes are missing",
    "header": "truncated inside its header",
    "no_smoke": r"no variable fire_smoke; found LFN, P, PB",
    "no_air": r"no variable PHB, T; found LFN",
    "no_level": "no variable LFN; found P",
    "no_burn": "no cell burns in 2 frames",
    "no_frames": "it contains no frames",
    "folder": "not a file",
    "nan_column": rf"frame 0: 1 of {NZ * NY * NX} values of fire_smoke are .* such as nan",
    "nan_level": r"frame 0: 1 of \d+ values of LFN are unwritten, NaN or .* such as nan",
    "unwritten": "frame 0: .* values of PH are unwritten, .* such as 9.96921e[+]36",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_bad_input_is_one_line_that_names_the_file(tmp_path, name):
    run = broken(tmp_path, name)
    with pytest.raises(PlumecastError, match=MESSAGES[name]) as info:
        read_wrf(run)
    assert str(run) in str(info.value)
    assert "\n" not in str(info.value)


def test_a_missing_path_and_a_second_simulation_are_named(tmp_path):
    with pytest.raises(PlumecastError, match="nowhere: no such folder"):
        read_wrf(tmp_path / "nowhere")
    write_wrfout(tmp_path / FILE, [0.0, 3600.0])
    later = {"SIMULATION_START_DATE": "2020-08-02_12:00:00"}
    write_wrfout(tmp_path / "wrfout_d01_b", [0.0, 3600.0], attributes=later)
    with pytest.raises(PlumecastError, match="wrfout_d01_b: simulation starts 2020-08-02"):
        read_wrf(tmp_path)


def stamped(text: str):
    def edit(file: netCDF4.Dataset) -> None:
        file["Times"][1] = np.array(list(text), dtype="S1")

    return edit


def retyped(kind: object):
    def edit(file: netCDF4.Dataset) -> None:
        file.renameVariable("T", "old_T")
        values = file.createVariable("T", kind, file["old_T"].dimensions)
        if kind is not str:
            values[:] = 5

    return edit


def swap_faces(file: netCDF4.Dataset) -> None:
    names = ("bottom_top_stag", "spare"), ("bottom_top", "bottom_top_stag"), ("spare", "bottom_top")
    for old, new in names:
        file.renameDimension(old, new)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda file: file.createVariable("PB2", str, ("Time",)), None),
        (retyped("f8"), None),
        (retyped("i4"), "T has values of type int32, not floating-point numbers"),
        (retyped(str), "T has values of type .*, not floating-point numbers"),
        (lambda file: file["T"].setncattr("scale_factor", 2.0), "T is packed"),
        (lambda file: file["T"].setncattr("missing_value", "none"), "missing_value of T is"),
        (
            lambda file: file.setncattr("SIMULATION_START_DATE", [1.0, 2.0]),
            "unreadable time",
        ),
        (lambda file: file.setncattr("GRID_ID", "one"), "attribute GRID_ID is 'one', not"),
        (stamped("2020-08-01_99:00:00"), "unreadable time '2020-08-01_99:00:00'"),
        (stamped(" " * 19), "unreadable time ''"),
        (swap_faces, r"\('Time', 'bottom_top'|5 layers with 4 faces"),
    ],
)
def test_odd_metadata_is_one_line_and_the_others_go_on(tmp_path, edit, message):
    odd, good = write_run(tmp_path / "odd", [0, 1]), write_run(tmp_path / "good", [0, 1])
    with netCDF4.Dataset(odd / FILE, "a") as file:
        edit(file)
    first, second = (fire.outcome for fire in read_wrf_fires([odd, good]))
    assert isinstance(second, xr.Dataset)
    if message is None:
        assert isinstance(first, xr.Dataset), first
    else:
        assert first.startswith(f"{odd / FILE}: ")
        assert re.search(message, first)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"west_east": 99999, "south_north": 99999, "west_east_subgrid": 100000,
             "south_north_subgrid": 100000},
            "LFN would have 37.3 GiB, more than the file can",
        ),
        (
            {"west_east": 3, "south_north": 3, "west_east_subgrid": 10, "south_north_subgrid": 12},
            r"fire grid \(12, 10\) is no multiple of \(4, 4\)",
        ),
    ],
)  # fmt: skip
def test_impossible_dimensions_are_refused_before_memory_is_taken(tmp_path, sizes, message):
    path = tmp_path / FILE
    fixed = {"Time": 1, "DateStrLen": 19, "bottom_top": 50, "bottom_top_stag": 51}
    with netCDF4.Dataset(path, "w") as file:
        for name, size in {**fixed, **sizes}.items():
            file.createDimension(name, size)
        file.createVariable("Times", "S1", ("Time", "DateStrLen"))[0] = list("2020-08-01_12:00:00")
        for name in ("LFN", "fire_smoke", "P", "PB", "T", "PH", "PHB"):
            dims = dimensions_of(name)
            file.createVariable(name, "f4", dims, chunksizes=(1,) + (3,) * (len(dims) - 1))
    with pytest.raises(PlumecastError, match=message):
        read_wrf(path)


def test_a_frame_that_cannot_be_read_is_named(tmp_path):
    path = write_wrfout(tmp_path / FILE, [0.0, 3600.0])
    reader = FrameReader()
    with pytest.raises(PlumecastError, match=rf"{FILE}: frame 9 cannot be read"):
        reader.read(Frame(0.0, path, 9), "LFN")
    reader.close()


# -- one frame per file, by name


def write_parts(folder: Path, hours: range, **options: object) -> list[Path]:
    """One file per frame, named as WRF does."""
    return [
        write_wrfout(
            folder / f"wrfout_d01_2020-08-01_{12 + hour}:00:00", [3600.0 * hour], **options
        )
        for hour in hours
    ]


def test_one_frame_per_file_is_opened_once(tmp_path, monkeypatch):
    parts = write_parts(tmp_path / "fire", HOURS)
    whole = read_run(tmp_path / "whole", read={"every": "3h"})
    names: list[str] = []
    real = netCDF4.Dataset

    def record(path, *args, **options):
        names.append(Path(path).name)
        return real(path, *args, **options)

    monkeypatch.setattr(netCDF4, "Dataset", record)
    thinned = read_wrf(tmp_path / "fire", WrfOptions(every="3h"), fire_id="f")
    assert names == [path.name for path in parts], "the dose needs all frames"
    xr.testing.assert_identical(thinned, whole)


@pytest.mark.parametrize("fault", ["two frames", "another time", "another domain", "no such day"])
def test_files_are_opened_if_their_names_mislead(tmp_path, fault):
    write_parts(tmp_path / "fire", range(6))
    last = tmp_path / "fire" / "wrfout_d01_2020-08-01_17:00:00"
    if fault == "two frames":
        write_wrfout(last, [3600.0 * 5, 3600.0 * 6])
    elif fault == "another time":
        write_wrfout(last, [3600.0 * 6])
    elif fault == "another domain":
        write_wrfout(last, [3600.0 * 5], attributes={"GRID_ID": np.int32(2)}, fire_grid=False)
    else:
        last.rename(last.with_name("wrfout_d01_2020-08-99_17:00:00"))
    times = {"two frames": range(7), "another time": [0, 1, 2, 3, 4, 6],
             "another domain": range(5), "no such day": range(6)}[fault]  # fmt: skip
    expected = read_run(tmp_path / "whole", times)
    xr.testing.assert_identical(read_wrf(tmp_path / "fire", fire_id="f"), expected)


def test_every_file_of_a_classic_run_must_be_complete(tmp_path):
    parts = write_parts(tmp_path / "fire", HOURS, format="NETCDF3_64BIT_OFFSET")
    parts[4].write_bytes(parts[4].read_bytes()[:-100])
    with pytest.raises(PlumecastError, match=rf"{parts[4].name}: truncated, 100 bytes are missing"):
        read_wrf(tmp_path / "fire")
