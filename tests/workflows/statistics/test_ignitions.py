"""Ignitions are counted as ignitions: by where fires begin, not by what their files are called."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.ignitions import ignition_name, one_ignition
from plumecast.data.store import export_snapshots
from plumecast.scores.field_statistics import block_cluster_sums
from plumecast.sources.rasters import RasterOptions, read_arrival_times
from support.calibrations import calibrate
from support.raster_files import write_ascii
from support.snapshots import CELL, make_snapshots, select_fire

SIZE = CELL / 5


@pytest.fixture(scope="module")
def model(split, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    fitted = pc.fit_surrogate(split.train, "paper-linear")
    calibrate(fitted, make_snapshots(fires=24, checkpoints=3, seed=9)).save(folder / "bars.plume")
    fitted.save(folder / "none.plume")
    rows = [f"A,{5 * CELL},{3 * CELL}", f"B,{7 * CELL},{5 * CELL}"]
    (folder / "towns.csv").write_text("\n".join(["name,x,y", *rows]) + "\n")
    return folder


def write_fire(path, shift=0):
    """A fire that begins `shift` cells further east."""
    arrival = np.full((12, 20), np.nan)
    arrival[4, 4 + shift : 18] = 20.0 * np.arange(14 - shift)
    header = {"NCOLS": 20, "NROWS": 12, "CELLSIZE": SIZE, "XLLCORNER": 6000, "YLLCORNER": 6000}
    return write_ascii(path, arrival, **header)


@pytest.fixture
def ask(succeed, model, tmp_path):
    def table(names, *options, shifts=(0,), surrogate="bars"):
        """What `plumecast ensemble` prints for rasters: the line of the intervals, and the rows."""
        folder = tmp_path / "-".join((names[0], *map(str, (len(names), *options))))
        folder.mkdir()
        for number, name in enumerate(names):
            write_fire(folder / f"{name}.asc", shifts[number % len(shifts)])
        printed = succeed(
            "ensemble", model / f"{surrogate}.plume", folder, "--unit", "min", "--crs", "local",
            "--points", model / "towns.csv", *options,
        )  # fmt: skip
        lines = printed.splitlines()
        said = next(line for line in lines if " % intervals" in line)
        return said, [line.split() for line in lines if line.split()[:1] in (["A"], ["B"])]

    return table


def test_copies_of_a_raster_are_one_fire_with_its_error_bar(ask, model, tmp_path):
    said, alone = ask(["fire"])
    assert said.startswith("1 fire of 1 ignition: 95 % intervals of means contain the surrogate's")
    for names, options in ((list("abcdefghij"), ()), (list("zyxwv"), ("--batch", 2))):
        said, rows = ask(names, *options)
        assert said.startswith(f"{len(names)} fires of 1 ignition: 95 % intervals of means")
        assert rows == alone
    said, rows = ask(list("klmno"), "--independent")
    assert said.startswith("5 fires of 5 ignitions: 95 % intervals contain the sampling of fires")
    assert rows != alone
    assert all(row[-1] == "?)" for row in ask(list("pq"), surrogate="none")[1])
    write_fire(tmp_path / "fire.asc")
    surrogate = pc.load_surrogate(model / "bars.plume")
    options = RasterOptions(unit="min", crs="local", like=surrogate.grid)
    fires = read_arrival_times(tmp_path / "fire.asc", options)
    band = pc.scores.as_quantity(surrogate.predict_interval(fires, 0.95).upper, "mean")
    want = f"{float(band.isel(snapshot=-1, x=5, y=3)):.3g}"
    assert alone[0][-1] == f"{want})"


def test_fires_within_a_cell_are_one_ignition_and_others_are_not(ask):
    assert ask(list("abc"), shifts=(0, 1, 1))[0].startswith("3 fires of 1 ignition")
    assert ask(list("defg"), shifts=(0, 1, 5, 9))[0].startswith("4 fires of 3 ignitions")


def test_equal_fields_in_a_store_are_one_ignition_with_a_warning(run, model, tmp_path):
    one = select_fire(make_snapshots(fires=2, checkpoints=3, seed=3), "fire-00-low")
    copies = [
        one.assign_coords({n: ("snapshot", [f"{n}-{k}"] * 3) for n in ("fire_id", "ignition_id")})
        for k in range(4)
    ]
    store = export_snapshots(xr.concat(copies, "snapshot"), tmp_path / "copies.nc")
    for output in (("--points", model / "towns.csv"), ("-o", tmp_path / "cells.nc")):
        result = run("ensemble", model / "bars.plume", store, *output, "--thresholds", 1)
        assert "4 fires of 1 ignition: " in result.out
        assert "3 of 4 ignitions have the same fields as others under another name" in result.err
    surrogate = pc.load_surrogate(model / "bars.plume")
    alone = pc.ensemble_statistics(surrogate, one)
    found = xr.open_dataset(tmp_path / "cells.nc")
    for name in ("mean_smoke", "mean_smoke_lower", "mean_smoke_upper"):
        np.testing.assert_allclose(found[name], alone[name], rtol=1e-6)
    result = run("ensemble", model / "bars.plume", store, "-o", tmp_path / "4.nc", "--independent")
    assert "4 fires of 4 ignitions" in result.out
    assert "same fields" not in result.err


def test_a_comparison_counts_places_too(model):
    first = make_snapshots(fires=8, checkpoints=2, seed=3)
    places = {name: ignition_name(3000.0 * k, 0.0, 3000.0) for k, name in
              enumerate(np.unique(first.ignition_id.values))}  # fmt: skip
    named = [places[name] for name in first.ignition_id.values]
    first = first.assign_coords(ignition_id=("snapshot", named))
    other = first.assign(smoke=2.0 * first.smoke)
    found = pc.compare_scenarios({"a": first, "b": other})
    assert len(places) == 4
    assert int(found.places.ignitions[0]) == 2, "the first three extend over three cells"


@pytest.mark.parametrize(("across", "least"), [(10_000, 9_900), (1_000, 9_000), (200, 2_500)])
def test_random_ignitions_are_no_chain(across, least):
    columns, rows = np.random.default_rng(0).integers(0, across, (2, 10_000))
    names = [ignition_name(30.0 * x, 30.0 * y, 30.0) for x, y in zip(columns, rows, strict=True)]
    groups, sizes = np.unique(list(one_ignition(names).values()), return_counts=True)
    assert groups.size > least
    assert sizes.max() <= 9, "3 × 3 cells"


def test_near_ignitions_stay_together_in_random_groups():
    rng = np.random.default_rng(1)
    places = rng.integers(0, 1000, (400, 2)) * 16 + 8
    names = np.array([
        ignition_name(30.0 * (x + dx), 30.0 * y, 30.0) for x, y in places for dx in (0, 1, 2)
    ])  # fmt: skip
    sums = block_cluster_sums([np.repeat(rng.normal(size=(400, 1)), 3, axis=0)], names, 64)
    joined = sums.joined(one_ignition(names.tolist()))
    assert sums.grouped
    assert len(sums.clusters) == 3 * len(joined.clusters)
    error = float(joined.estimate(0).error[0]) * np.sqrt(400)
    assert 0.8 < error < 1.2, "that of 400 values, not of 1200"
