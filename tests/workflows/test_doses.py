"""A predicted dose is one number, whatever command asks for it and through whatever file."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.data.clock import record_interval
from plumecast.data.split import DuplicateWarning
from plumecast.impact.compare import Comparing
from plumecast.scores.reading import Reading
from plumecast.workflows.statistics.request import Statistics
from support.weather_fires import weather_fires

# Some drawn fires burn equal cells, and count as one ignition.
pytestmark = pytest.mark.filterwarnings("ignore:.*have the same fields as others")

ROUNDING = {"rtol": 1e-5, "atol": 1e-5}  # of float32


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store of fires, and a surrogate with error bars whose training fires it has in part."""
    where = tmp_path_factory.mktemp("doses")
    fires = record_interval(weather_fires(12))
    pc.export_snapshots(fires, where / "fires.nc")
    train = fires.isel(snapshot=slice(0, 24))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicateWarning)  # two drawn fires burn equal cells
        made = pc.train_surrogate(
            train, "quick", physics="column", frame="map", split=None, folds=3
        )
    made.save(where / "smoke.plume")
    return where


@pytest.fixture(scope="module")
def bare(folder):
    """The surrogate without its error bars."""
    return replace(pc.load_surrogate(folder / "smoke.plume"), error_bars=None)


@pytest.mark.parametrize(("suffix", "hours"), [(".zarr", []), (".nc", ["--hours", "2.5,7"])])
def test_a_file_has_the_dose_of_python(run, folder, tmp_path, suffix, hours):
    out = tmp_path / f"smoke{suffix}"
    run("predict", folder / "smoke.plume", folder / "fires.nc", *hours, "-o", out)
    surrogate = pc.load_surrogate(folder / "smoke.plume")
    fires = pc.open_snapshots(folder / "fires.nc")
    fires = pc.workflows.at_hours(fires, [2.5, 7.0]) if hours else fires
    expected = pc.scores.as_quantity(surrogate.predict(fires), "mean")
    written = pc.open_snapshots(out, fields=["smoke"])
    assert expected.max() > 1.0
    for mean in (written["smoke_mean"], pc.scores.as_quantity(written["smoke"], "mean")):
        np.testing.assert_allclose(mean, expected, **ROUNDING)
    between = tmp_path / f"between{suffix}"
    run("predict", folder / "smoke.plume", folder / "fires.nc", *hours, "--quantity", "between",
        "-o", between)  # fmt: skip
    dose = pc.scores.as_quantity(written["smoke"], "dose").values
    first = written.fire_id.values == written.fire_id.values[0]
    gaps = np.diff(np.append(0.0, written.hours.values[first]))
    options = {"engine": "zarr", "consolidated": False} if suffix == ".zarr" else {}
    with xr.open_dataset(between, **options) as found:
        means = found["smoke_between"].values[first]
    made = np.cumsum(means * gaps[:, None, None], axis=0)
    np.testing.assert_allclose(made, dose[first], rtol=1e-4, atol=1e-3)


def test_smoke_never_falls_within_a_fire(run, folder, bare, tmp_path):
    """Neither sums nor doses nor footprints do, in files and in statistics; the last hour stays."""
    out = tmp_path / "smoke.nc"
    run("predict", folder / "smoke.plume", folder / "fires.nc", "--footprint", "-o", out)
    fires = pc.open_snapshots(folder / "fires.nc")
    alone = np.asarray(bare.predict(fires))
    name, level = fires.fire_id.values, bare.training["thresholds"]["decision"]
    assert not bare.detects  # its footprint is that of its smoke
    with xr.open_dataset(out) as made:
        sums = made.smoke.values
        for field in (sums, made.footprint.values.astype(float), made.dose_of_smoke.values):
            grown = np.diff(field, axis=0)[name[1:] == name[:-1]]
            assert (grown >= 0.0).all()
        np.testing.assert_array_equal(made.footprint, sums > level)
    assert (np.diff(alone, axis=0)[name[1:] == name[:-1]] < 0.0).any()
    last = np.append(name[1:] != name[:-1], True)
    np.testing.assert_allclose(sums[last], alone[last], atol=1.01 * level)
    mean = pc.ensemble_statistics(bare, fires, Reading("sum")).mean_smoke
    np.testing.assert_allclose(mean, sums.mean(axis=0), **ROUNDING)


def test_error_bars_lie_around_the_dose(run, folder, tmp_path):
    out = tmp_path / "smoke.nc"
    run("predict", folder / "smoke.plume", folder / "fires.nc", "--interval", "0.9", "-o", out)
    with xr.open_dataset(out) as made:
        assert (made.lower_mean <= made.smoke_mean + 1e-5).all()
        assert (made.smoke_mean <= made.upper_mean + 1e-5).all()
        wide = (made.upper_mean - made.lower_mean).where(made.smoke_mean > 1.0)
        assert (wide.max(("y", "x")) > 0.0).all()


def test_statistics_of_one_fire_are_its_prediction(folder, bare):
    fire = pc.open_snapshots(folder / "fires.nc").isel(snapshot=slice(33, 36)).load()
    mean = pc.scores.as_quantity(bare.predict(pc.workflows.at_hours(fire, [9.0])), "mean").isel(
        snapshot=0
    )
    found = pc.ensemble_statistics(bare, fire, statistics=Statistics(final=True))
    np.testing.assert_allclose(found["mean_smoke"], mean, rtol=1e-3, atol=1e-4 * float(mean.max()))
    # Q is that of the sum, as in the paper.
    expected = np.log1p(np.maximum(bare.predict(fire).isel(snapshot=-1).values, 0.0))
    np.testing.assert_allclose(found["mean_log_smoke"], expected, rtol=1e-3, atol=1e-3)


def test_stored_and_fresh_predictions_are_compared_equally(run, folder, tmp_path):
    """`compare` of predictions in files, and of the fires with the model, at two towns."""
    (tmp_path / "towns.csv").write_text("name,x,y\nAsh,25500,25500\nElm,31500,28500\n")
    fires = pc.open_snapshots(folder / "fires.nc")
    tables = []
    for part, rows in {"a": slice(0, 18), "b": slice(18, 36)}.items():
        pc.export_snapshots(fires.isel(snapshot=rows).load(), tmp_path / f"{part}.nc")
        run("predict", folder / "smoke.plume", tmp_path / f"{part}.nc",
            "-o", tmp_path / f"{part}_smoke.nc")  # fmt: skip
    for names, options in (
        (["a_smoke.nc", "b_smoke.nc"], {}),
        (["a.nc", "b.nc"], {"model": folder / "smoke.plume"}),
    ):
        scenarios = {name[0]: tmp_path / name for name in names}
        found = pc.compare_scenarios(
            scenarios, places=tmp_path / "towns.csv", comparing=Comparing(maps=False), **options
        )
        tables.append(found.places)
    for name in ("reference_mean", "scenario_mean", "difference"):
        stored, fresh = (table[name].values for table in tables)
        assert np.abs(fresh).max() > 0.0
        np.testing.assert_allclose(stored, fresh, rtol=1e-3, atol=1e-3)


def test_the_peak_is_the_highest_hourly_mean(run, folder, tmp_path, monkeypatch):
    """Also where a fire is predicted in several blocks."""
    monkeypatch.setattr("plumecast.workflows.predict.BLOCK", 7)
    few = pc.open_snapshots(folder / "fires.nc").isel(snapshot=slice(0, 9)).load()
    fires = pc.export_snapshots(few, tmp_path / "fires.nc")
    made = {}
    for name in ("between", "peak"):
        out = tmp_path / f"{name}.nc"
        hours = ("--hours", "1,2,4,6,9")
        run("predict", folder / "smoke.plume", fires, *hours, "--quantity", name, "-o", out)
        with xr.open_dataset(out) as found:
            made[name] = found[f"smoke_{name}"].values.reshape(3, 5, -1)
    np.testing.assert_array_equal(made["peak"], np.maximum.accumulate(made["between"], axis=1))
    assert (made["peak"][:, -1] > made["between"][:, -1]).any()


def test_smoke_that_was_changed_or_summed_has_no_predicted_dose(folder):
    """The dose beside it would be that of other values; subsets and copies are unchanged."""
    surrogate = pc.load_surrogate(folder / "smoke.plume")
    smoke = surrogate.predict(pc.open_snapshots(folder / "fires.nc").isel(snapshot=slice(0, 6)))
    mean = pc.scores.as_quantity(smoke, "mean")
    for changed in (0.5 * smoke, smoke.where(smoke > 5.0, 0.0), smoke - smoke, smoke.clip(max=1.0)):
        if "dose_coordinate" in changed.attrs:  # older versions of xarray drop attributes
            with pytest.raises(pc.PlumecastError, match="was changed after it was predicted"):
                pc.scores.as_quantity(changed, "mean")
    with pytest.raises(pc.PlumecastError, match="has lost its predicted dose"):
        pc.scores.as_quantity(smoke.drop_vars("dose_of_smoke"), "mean")
    for same, expected in (
        (smoke.isel(snapshot=[2], y=slice(3, 9)), mean.isel(snapshot=[2], y=slice(3, 9))),
        (smoke.transpose("x", "snapshot", "y"), mean.transpose("x", "snapshot", "y")),
        (smoke.rename("other").astype(np.float64), mean),
        (smoke.isel(snapshot=2, y=5, x=6), mean.isel(snapshot=2, y=5, x=6)),
        (xr.concat([smoke.isel(snapshot=[0, 1, 2]), smoke.isel(snapshot=[3, 4, 5])], "snapshot"),
         mean),
    ):  # fmt: skip
        np.testing.assert_allclose(
            pc.scores.as_quantity(same, "mean"), expected, rtol=0.03, atol=0.1
        )


@pytest.mark.parametrize(("quantity", "final"), [("mean", True), ("dose", False), ("sum", False)])
def test_a_perfect_surrogate_needs_no_correction_by_true_fires(bare, tmp_path, quantity, final):
    """Its own predictions, with their doses, as the truth: on the map and at places."""
    fires = record_interval(weather_fires(16, seed=3)).drop_vars("smoke")
    names = [f"new{name}" for name in fires.fire_id.values]
    fires = fires.assign_coords(fire_id=("snapshot", names), ignition_id=("snapshot", names))
    single = [bare.predict(pc.workflows.at_hours(fires, [hour])) for hour in (3.0, 6.0, 9.0)]
    truth = xr.concat(single, "snapshot").sortby(["fire_id", "hours"])
    truth = fires.sortby(["fire_id", "hours"]).assign(smoke=truth.transpose("snapshot", ...))
    truth = truth.assign_coords(hours=fires.sortby(["fire_id", "hours"]).hours)
    asked = Reading(quantity, [1.0]), Statistics(final=final)
    made = pc.ensemble_statistics(bare, fires, *asked, truth=truth)
    scale = float(made["mean_smoke_surrogate"].max())
    (tmp_path / "towns.csv").write_text("name,x,y\nAsh,25500,25500\nElm,31500,28500\n")
    at = pc.evaluate_points(bare, fires, tmp_path / "towns.csv", *asked, truth=truth)
    for found in (made, at):
        np.testing.assert_allclose(
            found["mean_smoke"], found["mean_smoke_surrogate"], rtol=0.05, atol=0.01 * scale
        )
