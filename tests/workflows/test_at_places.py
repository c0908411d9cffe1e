"""Smoke of each fire at each place: when it arrives, its peak, days and dose, with error bars."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.workflows.statistics.at_places import summary
from plumecast.workflows.statistics.point_table import write_points
from support.snapshots import make_snapshots
from support.windy_fires import windy, write_windy_rasters

SINGLE = 1e-5  # relative: files have single precision
TOWNS = {"Millbrook": (3, 5), "Easton": (5, 7), "Farview": (6, 2)}  # row and column


class Made(NamedTuple):
    model: Path
    store: Path
    towns: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    """A surrogate with error bars, three fires, and four towns, one of them outside the grid."""
    folder = tmp_path_factory.mktemp("towns")
    fires = make_snapshots(fires=33, checkpoints=3, seed=1)
    trained, asked = fires.isel(snapshot=slice(0, 90)), fires.isel(snapshot=slice(90, 99))
    made = Made(folder / "smoke.plume", folder / "fires.zarr", folder / "towns.csv")
    pc.train_surrogate(trained, preset="paper-linear", split=None).save(made.model)
    pc.export_snapshots(asked.drop_vars("smoke"), made.store)
    lines = [f"{name},{3000 * x},{3000 * y},100" for name, (y, x) in TOWNS.items()]
    made.towns.write_text("\n".join(["name,x,y,population", "Nowhere,90000,0,7", *lines]))
    return made


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_the_table_is_the_prediction_at_the_cells_of_the_towns(tmp_path, made, succeed):
    points = (made.model, made.store, "--points", made.towns, "--interval", 0.9)
    for ending in (".csv", ".nc"):
        printed = succeed("predict", *points, "--points-out", tmp_path / f"table{ending}")
    assert "Nowhere" in printed
    assert "outside the grid" in printed
    assert "(µg m⁻³ h)" in printed
    hourly = ("--hours", ",".join(map(str, range(1, 19))), "--footprint")
    succeed("predict", made.model, made.store, "--interval", 0.9, *hourly, "--quantity", "dose",
            "-o", tmp_path / "dose.nc")  # fmt: skip
    fields = xr.load_dataset(tmp_path / "dose.nc")
    table = xr.load_dataset(tmp_path / "table.nc")
    assert table.sizes.items() >= {"fire": 3, "place": 3, "day": 1}.items()
    for name, fire in fields.groupby("fire_id"):
        for town, (row, column) in TOWNS.items():
            cell = fire.isel(y=row, x=column).sortby("hours")
            own = table.sel(fire=name, place=town)
            for end, field in (("", "smoke"), ("_lower", "lower"), ("_upper", "upper")):
                np.testing.assert_allclose(
                    own[f"dose{end}"], cell[f"{field}_dose"][-1], rtol=SINGLE
                )
            means = np.diff(cell.smoke_dose, prepend=0.0)
            np.testing.assert_allclose(own.peak, means.max(), rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(own.daily_mean[0], own.dose / 18.0, rtol=SINGLE)
            present = ["no", "possible", "yes"][int(own.footprint)] == "yes"
            assert present == bool(cell.footprint[-1])
            assert np.isfinite(own.arrival) == present
    for name in ("arrival", "peak", "dose", "daily_mean"):
        lower, value, upper = (table[name + end] for end in ("_lower", "", "_upper"))
        assert not ((lower > value) | (value > upper)).any()
    assert float(table.arrival.min()) >= 1.0
    assert table.daily_mean.units == table.peak.units == "ug m-3"
    rows = rows_of(tmp_path / "table.csv")
    write_points(table, tmp_path / "table.json")  # of the file, whose attributes are read back
    listed = json.loads((tmp_path / "table.json").read_text())["fires_at_places"]
    assert [(row["fire"], row["name"]) for row in rows] == [
        (fire, town) for fire in table.fire.values for town in (*TOWNS, "Nowhere")
    ]
    for row, same in zip(rows, listed, strict=True):
        assert row["note"] == ("outside the grid" if row["name"] == "Nowhere" else "")
        assert (same["dose_ug_m3_h"] is None) == (row["peak_ug_m3"] == "") == bool(row["note"])


def test_a_table_worked_out_by_hand():
    """Dose 0 until 24 h, then 10 per hour until 27 h; at the other town nothing."""
    hours = np.arange(1.0, 28.0)
    dose = np.stack([10.0 * np.maximum(hours - 24.0, 0.0), 0.0 * hours], axis=1)
    flags = {
        "present": hours >= 25.0,
        "possible": hours >= 24.0,
        "certain": hours >= 26.0,
    }
    at = {name: np.stack([flag, 0.0 * flag], axis=1) for name, flag in flags.items()}
    at["present"][3, 0] = 1.0  # what a later prediction takes back is not an arrival
    ends = {"dose_lower": 0.5 * dose, "dose_upper": 2.0 * dose + np.array([0.0, 6.0])}
    told = summary(hours, at | ends | {"dose": dose})
    np.testing.assert_array_equal(told["footprint"], [2, 0])
    np.testing.assert_array_equal(told["arrival"], [25.0, np.nan])
    np.testing.assert_array_equal(told["arrival_lower"], [24.0, np.nan])
    np.testing.assert_array_equal(told["arrival_upper"], [26.0, np.nan])
    np.testing.assert_array_equal(told["peak_hour"], [25.0, np.nan])
    np.testing.assert_allclose(told["peak"], [10.0, 0.0])
    np.testing.assert_allclose(told["peak_lower"], [5.0, 0.0])
    np.testing.assert_allclose(told["peak_upper"], [20.0, 6.0])
    np.testing.assert_allclose(told["dose"], [30.0, 0.0])
    np.testing.assert_allclose(told["daily_mean"], [[0.0, 10.0], [0.0, 0.0]])
    np.testing.assert_allclose(told["daily_mean_upper"], [[0.0, 20.0], [0.25, 2.0]])


def test_peaks_are_of_whole_hours():
    """The last half hour of a fire, or a fire of half an hour, counts as part of an hour."""
    told = summary(np.array([1.0, 1.5]), {"dose": np.array([[4.0], [10.0]])})
    np.testing.assert_allclose(told["peak"], [8.0])  # (10 − 2) / 1 h
    assert "arrival" not in told
    assert "peak_upper" not in told
    told = summary(np.array([0.5]), {"dose": np.array([[3.0]])})
    np.testing.assert_allclose([told["peak"], told["daily_mean"][0]], [[3.0], [6.0]])


def test_a_town_upwind_of_rasters_has_no_smoke(tmp_path, succeed):
    """The wind of --weather carries smoke east or west, to the town on its side alone."""
    shape = (14, 16)
    fires = windy(12, shape=shape)
    fitted = pc.fit_surrogate(fires, "recommended", frame="wind", layers=1, physics="none")
    fitted.save(tmp_path / "smoke.plume")
    raster, *_ = write_windy_rasters(tmp_path, ["ridge"], shape)
    towns = tmp_path / "towns.csv"
    towns.write_text("name,x,y\nEast,13000,7000\nWest,3000,7000\n")
    for side, downwind, upwind in (("W", "East", "West"), ("E", "West", "East")):
        out = tmp_path / f"{side}.nc"
        options = ("--format", "farsite", "--hours", 6, "--weather", f"5 m/s from {side}")
        places = ("--points", towns, "--points-out", out)
        succeed("predict", tmp_path / "smoke.plume", raster, *options, *places)
        table = xr.load_dataset(out).isel(fire=0)
        assert float(table.hours) == 6.0
        assert "arrival" not in table, "without a decision threshold"
        assert float(table.dose.sel(place=downwind)) > 1.0
        assert float(table.dose.sel(place=upwind)) < 0.05 * float(table.dose.sel(place=downwind))


def test_long_fires_are_followed_hour_by_hour_until_the_hour_asked_for(made):
    surrogate = pc.load_surrogate(made.model)
    one = make_snapshots(fires=1, checkpoints=3)
    one = one.assign_coords(hours=("snapshot", [20.0, 40.0, 60.0]))
    told = pc.workflows.smoke_at_places(surrogate, one, made.towns, notify=print)
    assert told.longest_step_hours == 60.0 / 48.0
    asked = pc.workflows.Overrides(hours=[60.0])
    told = pc.workflows.smoke_at_places(surrogate, one, made.towns, asked, notify=print)
    assert told.longest_step_hours == 1.0
    assert told.sizes["day"] == 3


def test_fires_beyond_training_and_long_ones_are_promised_no_more_than_holds(
    tmp_path, made, succeed
):
    for hours, peaks, promise in (
        ([6.0, 12.0, 18.0], "peaks are hourly means", "% can be promised"),
        ([200.0, 400.0, 600.0], "peaks are means of up to 12.5 h", "promise nothing for it"),
    ):
        fire = make_snapshots(fires=1, checkpoints=3).assign_coords(hours=("snapshot", hours))
        store = pc.export_snapshots(fire.drop_vars("smoke"), tmp_path / f"{hours[0]:g}.nc")
        words = (made.model, store, "--points", made.towns, "--interval", 0.9)
        printed = " ".join(succeed("predict", *words).split())
        assert peaks in printed
        assert promise in printed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "give --out for the smoke of every cell, or --points, or both"),
        (("-o", "a.nc", "--points-out", "a.csv"), "needs --points, a table of places"),
        (("--points", "TOWNS", "--quantity", "dose"), "give --out too, or leave it out"),
        (("--points", "TOWNS", "--footprint"), "give --out too, or leave it out"),
        (("--points", "TOWNS", "--names", "bluesky"), "give --out too, or leave it out"),
        (("--points", "TOWNS", "--points-out", "a.txt"), "use .csv, .json or .nc"),
        (("--points", "AWAY"), "x 90000, y 0 lies outside the grid"),
    ],
)
def test_what_cannot_be_answered_is_refused(tmp_path, monkeypatch, made, refused, options, words):
    monkeypatch.chdir(tmp_path)
    Path("away.csv").write_text("name,x,y\nNowhere,90000,0\n")
    files = {"TOWNS": made.towns, "AWAY": "away.csv"}
    named = [files.get(option, option) for option in options]
    assert words in refused("predict", made.model, made.store, *named)
    assert [path.name for path in tmp_path.iterdir()] == ["away.csv"]


def test_ensembles_name_a_town_outside_the_grid_in_its_row(tmp_path, made, succeed):
    out = tmp_path / "table.csv"
    asked = ("--points", made.towns, "--points-out", out)
    printed = succeed("ensemble", made.model, made.store, *asked)
    assert "outside the grid" in printed
    rows = {row["name"]: row for row in rows_of(out)}
    assert list(rows) == [*TOWNS, "Nowhere", "all people"]
    assert (rows["Nowhere"]["mean"], rows["Nowhere"]["note"]) == ("", "outside the grid")
    assert float(rows["all people"]["population"]) == 300.0
