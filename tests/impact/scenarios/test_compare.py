"""Comparing scenarios: the numbers of the stores, pairs by ignition, and clear refusals."""

from __future__ import annotations

import csv
import errno
import json
from unittest.mock import Mock

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
import plumecast.cli.commands.compare as compare_command
from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.impact.compare import EVERYWHERE, EXPOSURE, Comparing
from plumecast.scores.reading import Reading
from support.calibrations import calibrate
from support.quantities import time_mean
from support.snapshots import CELL, make_snapshots

ROUNDING = 1e-6  # smoke is stored in float32


def dimmed(snapshots: xr.Dataset, by: float = 0.5) -> xr.Dataset:
    """The same fires with less smoke."""
    return snapshots.assign(smoke=(by * snapshots.smoke).assign_attrs(snapshots.smoke.attrs))


def without_interval(snapshots: xr.Dataset) -> xr.Dataset:
    """Dimmed smoke that does not record its checkpoint interval."""
    bare = dimmed(snapshots)
    bare.smoke.attrs.pop(INTERVAL)
    return bare


@pytest.fixture(scope="module")
def before():
    return make_snapshots(fires=12, checkpoints=3, droughts=("high",), seed=3)


@pytest.fixture
def towns(tmp_path):
    path = tmp_path / "towns.csv"
    path.write_text(
        f"name,x,y,population\nA,{5 * CELL},{4 * CELL},3000\nB,{6 * CELL},{5 * CELL},1000\n"
    )
    return path


@pytest.fixture
def stores(tmp_path, before):
    paths = tmp_path / "before.nc", tmp_path / "after.nc"
    pc.export_snapshots(before, paths[0])
    pc.export_snapshots(dimmed(before), paths[1])
    return paths


def last(snapshots: xr.Dataset) -> xr.DataArray:
    """Time means of the last snapshots."""
    means = pc.scores.as_quantity(snapshots.smoke.astype(float), "mean")
    return pc.data.final_snapshots(snapshots.assign(smoke=means)).smoke


def test_differences_are_those_of_the_last_time_means(before, towns):
    found = pc.compare_scenarios({"a": before, "b": dimmed(before)}, places=towns)
    means = last(before).mean("snapshot")
    np.testing.assert_allclose(found.maps.difference[0], -0.5 * means, rtol=ROUNDING)
    at = [float(means[4, 5]), float(means[5, 6])]
    expected = [*at, (3 * at[0] + at[1]) / 4, float(means.mean())]
    assert found.places.place.values.tolist() == ["A", "B", EXPOSURE, EVERYWHERE]
    np.testing.assert_allclose(found.places.reference_mean[0], expected, rtol=ROUNDING)
    np.testing.assert_allclose(found.places.relative[0], -0.5, rtol=ROUNDING)
    assert found.places.pairs.values.tolist() == [12]
    assert found.maps.attrs["coverage"] == 0.95


def test_the_share_above_of_all_people_is_the_share_of_persons(before, towns):
    """Not whether the mean over all persons is above: one smoky town would lift it alone."""
    level = float(last(before)[:, 4, 5].median())
    scenarios = {"a": before, "b": dimmed(before)}
    found = pc.compare_scenarios(
        scenarios, Reading(thresholds=[level]), Comparing(maps=False), places=towns
    ).places
    for name in ("reference_exceedance", "scenario_exceedance"):
        a, b, people = found[name].sel(threshold=level).values.ravel()[:3]
        assert people == pytest.approx(0.75 * a + 0.25 * b)


def test_places_alone_are_those_with_maps(before, towns):
    asked = {"a": before, "b": dimmed(before)}, Reading(thresholds=[1.0])
    with_maps = pc.compare_scenarios(*asked, places=towns).places
    alone = pc.compare_scenarios(*asked, Comparing(maps=False), places=towns)
    assert alone.maps is None
    xr.testing.assert_allclose(alone.places.drop_vars("clear"),
                               with_maps.isel(place=slice(0, 3)).drop_vars("clear"))  # fmt: skip


def test_droughts_are_paired_by_ignition():
    both = make_snapshots(fires=16, checkpoints=2)
    parts = {name: pc.data.select_drought(both, name) for name in ("low", "high")}
    found = pc.compare_scenarios(parts).places
    assert found.paired.values.tolist() == [True]
    assert found.pairs.values.tolist() == [8]
    low, high = (
        final.groupby("ignition_id").mean().mean(("y", "x")) for final in map(last, parts.values())
    )
    np.testing.assert_allclose(found.difference[0], [(high - low).mean()], rtol=ROUNDING)
    assert float(found.worse[0, 0]) == float((high > low).mean())


def test_what_is_shared_is_paired(before):
    part = before.isel(snapshot=before.ignition_id.values > "ignition-02")
    found = pc.compare_scenarios({"a": before, "b": dimmed(part)})
    assert found.places.pairs.values.tolist() == [9]
    assert any("3 fires of 'a' and 0 of 'b' have no partner" in text for text in found.notes)


def test_pairs_that_do_not_last_equally_long_are_named(before):
    """Every second fire ends earlier in one of the two, so that the means are equal."""
    hours, odd = before.hours.values, np.isin(before.fire_id.values, before.fire_id.values[::6])
    one, two = (before.isel(snapshot=hours <= np.where(part, 12.0, 18.0)) for part in (odd, ~odd))
    found = pc.compare_scenarios({"a": one, "b": two})
    assert any("12 of 12 pairs do not last equally long" in text for text in found.notes)


def renamed(snapshots: xr.Dataset) -> xr.Dataset:
    """The same fires under other names."""
    names = {key: ("snapshot", np.char.add("x", snapshots[key].values)) for key in
             ("fire_id", "ignition_id")}  # fmt: skip
    return snapshots.assign_coords(names)


def test_other_ignitions_are_not_paired(before):
    other = renamed(dimmed(before))
    found = pc.compare_scenarios({"a": before, "b": other})
    assert found.places.paired.values.tolist() == [False]
    assert "share 0 ignitions" in found.notes[0]
    with pytest.raises(PlumecastError, match=r"paired=True needs common ignitions.*have none"):
        pc.compare_scenarios({"a": before, "b": other}, comparing=Comparing(paired=True))


def test_the_same_name_at_another_place_is_no_pair(before):
    """As when other fuels are simulated by themselves: the n-th ignition is elsewhere."""
    moved = dimmed(before).assign(
        time_since_ignition=before.time_since_ignition.roll(x=5, roll_coords=False)
    )
    found = pc.compare_scenarios({"a": before, "b": moved})
    assert found.places.paired.values.tolist() == [False]
    assert "12 have the same name but begin at other places" in found.notes[0]


def test_predicted_scenarios(split, before, towns):
    surrogate = pc.fit_surrogate(split.train, "paper-linear")
    smaller = before.assign(
        time_since_ignition=(before.time_since_ignition - 2.0).clip(0.0).assign_attrs(
            before.time_since_ignition.attrs))  # fmt: skip
    fires = {"a": before.drop_vars("smoke"), "b": smaller.drop_vars("smoke")}
    with pytest.warns(UserWarning, match="beyond the training fires"):
        found = pc.compare_scenarios(fires, model=surrogate, places=towns)
    fields = [
        time_mean(surrogate.predict(pc.data.final_snapshots(part)).clip(0.0))
        for part in fires.values()
    ]
    expected = (fields[1] - fields[0]).mean("snapshot")
    np.testing.assert_allclose(found.maps.difference[0], expected, atol=1e-4)  # float32 fields
    assert "not the error of the surrogate" in found.notes[0]
    assert "has no error bars" in found.notes[1]
    assert set(np.unique(found.maps.rough)) <= {0, 1}


def test_fires_of_training_are_told(before, towns):
    surrogate = pc.fit_surrogate(before, degree=1, fire_rank=4, smoke_rank=4)
    other = before.assign_coords(ignition_id=before.ignition_id.astype(str) + "-new")
    later = before.time_since_ignition * 0.5
    said = []
    for reference in (other, before):
        fires = {"a": reference, "b": other.assign(time_since_ignition=later)}
        options = {"notify": said.append, "comparing": Comparing(maps=False)}
        pc.compare_scenarios(fires, model=surrogate, places=towns, **options)
    (told,) = [notice.text for notice in said if "those of training" in notice.text]
    assert told.startswith("12 of the ignitions are those of training")


def test_last_snapshots_that_are_not_marked_are_those_by_their_hours(split, before, towns):
    surrogate = calibrate(pc.fit_surrogate(split.train, "paper-linear"), before)
    other = before.assign(time_since_ignition=0.5 * before.time_since_ignition)
    marked, unmarked = (
        pc.compare_scenarios(
            {"a": before, "b": b}, model=surrogate, places=towns, comparing=Comparing(maps=False)
        )
        for b in (other, other.drop_vars("is_final"))
    )
    xr.testing.assert_equal(marked.places, unmarked.places)
    assert any("90 % of the true values are" in text for text in marked.notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.drop_vars("smoke"), "scenario 'b': there is no 'smoke'; give a surrogate"),
        (lambda d: d.isel(x=slice(0, 9)), "different grids: 10 × 8 cells .* and 9 × 8 cells"),
        (lambda d: d, "all 12 fires of 'a' and 'b' are identical"),
        (lambda d: d.assign(smoke=d.smoke * np.nan), "smoke of fire .* not finite"),
        (without_interval, "scenario 'b'.*does not record the interval"),
    ],
)
def test_refused_scenarios(before, change, said):
    with pytest.raises(PlumecastError, match=said):
        pc.compare_scenarios({"a": before, "b": change(before)})


def test_command_writes_what_it_prints(run, tmp_path, stores, towns):
    files = [tmp_path / name for name in ("d.nc", "d.csv", "d.json")]
    named = f"untreated={stores[0]}", f"treated={stores[1]}"
    outputs = "-o", files[0], "--table", files[1], "--json", files[2]
    result = run("compare", *named, "--points", towns, "--thresholds", "1,5", *outputs)
    assert result.code == 0, result.err
    assert "treated − untreated: 12 pairs of 12 ignitions" in result.out
    assert "percent of fires above 5 µg m⁻³" in result.out
    maps = xr.load_dataset(files[0])
    assert {"difference", "lower", "upper", "chance"} <= set(maps)
    rows = list(csv.DictReader(files[1].read_text().splitlines()))
    assert [row["place"] for row in rows] == ["A", "B", EXPOSURE, EVERYWHERE]
    np.testing.assert_allclose(float(rows[0]["difference"]), maps.difference[0, 4, 5], rtol=1e-4)
    content = json.loads(files[2].read_text())
    assert content["places"][0]["scenario"] == "treated"


def test_command_writes_geotiffs(run, tmp_path, stores):
    rasterio = pytest.importorskip("rasterio")
    result = run("compare", *stores, "-o", tmp_path / "d.tif")
    assert result.code == 0, result.err
    with rasterio.open(tmp_path / "d_after_difference.tif") as file:
        assert file.shape == (8, 10)
        assert file.read(1).min() < 0.0


def test_an_error_in_the_last_file_leaves_none_that_the_next_run_would_refuse(
    run, tmp_path, stores, monkeypatch
):
    files = [tmp_path / "out" / name for name in ("d.nc", "d.csv", "d.json")]
    words = ["compare", *stores, "-o", files[0], "--table", files[1], "--json", files[2]]
    with monkeypatch.context() as patched:
        full = OSError(errno.ENOSPC, "No space left on device", str(files[2]))
        patched.setattr(compare_command, "write_json", Mock(side_effect=full))
        assert run(*words).code == 2
    assert list((tmp_path / "out").iterdir()) == []
    assert run(*words).code == 0
    assert sorted((tmp_path / "out").iterdir()) == sorted(files)


def test_command_refuses(refused, tmp_path, stores, towns):
    one, two = stores
    assert "at least two scenarios" in refused("compare", one)
    assert "are both" in refused("compare", one, f"x={one}")
    copy = tmp_path / "copy.nc"
    copy.write_bytes(one.read_bytes())
    assert "the same store, or copies" in refused("compare", one, copy)
    assert "two scenarios are named 'before'" in refused("compare", one, f"before={two}")
    assert "drought 'low' is not in the data" in refused("compare", one, f"{two}@low")
    assert "does not exist" in refused("compare", one, tmp_path / "no.nc")
    assert "--coverage=2" in refused("compare", one, two, "--coverage", 2)
    assert "is for --simulate and for rasters" in refused("compare", one, two, "--fuels", "f.tif")
    assert "give a surrogate" in refused("compare", one, two, "--unit", "hours")
    assert "neither a drought" in refused("compare", "--simulate", 2, "low", "wet")
    assert "is an input" in refused("compare", one, two, "--table", towns, "--points", towns)
