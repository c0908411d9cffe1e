"""Error bars of a trained surrogate: labels, promises, files, and surrogates without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.cli import app
from plumecast.compute.resources import Resources
from plumecast.data.store import append_fire
from plumecast.surrogate.error_bars.interval import INTERVAL_FIELDS, promise_text, sets_text
from plumecast.surrogate.load import load_surrogate
from plumecast.workflows.predict import predict_store
from plumecast.workflows.train import train_surrogate
from support.snapshots import make_snapshots
from support.two_outputs import add_surface

FIRES = make_snapshots(fires=16)


@pytest.fixture(scope="module")
def surrogate() -> pc.Surrogate:
    return train_surrogate(FIRES, "quick", split=None, layers=1)


@pytest.fixture(scope="module")
def bars(surrogate) -> xr.Dataset:
    return surrogate.predict_interval(FIRES, coverage=0.8)


def test_error_bars_contain_the_prediction(surrogate, bars, tmp_path):
    xr.testing.assert_identical(bars.smoke, surrogate.predict(FIRES))
    assert list(bars.data_vars) == ["smoke", *INTERVAL_FIELDS]
    assert bars.lower.dtype == bars.upper.dtype == bars.smoke.dtype
    assert bool((bars.lower >= 0.0).all())
    assert bool(((bars.lower <= bars.smoke) & (bars.smoke <= bars.upper)).all())
    assert bool((bars.certain_smoke <= bars.possible_smoke).all())
    assert bool((bars.upper > bars.lower).any())
    assert bool(bars.certain_smoke.any())
    loaded = load_surrogate(surrogate.save(tmp_path / "smoke.plume"))
    xr.testing.assert_identical(loaded.predict_interval(FIRES, 0.8), bars)
    unburned = FIRES.isel(snapshot=[0]).assign(
        time_since_ignition=0.0 * FIRES.time_since_ignition[:1]
    )
    none = loaded.predict_interval(unburned)
    assert not none.certain_smoke.any()
    assert not none.lower.any()
    linear = train_surrogate(FIRES, split=None, degree=1, fire_rank=4, smoke_rank=4)
    assert not linear.detects
    arrays = linear.predict_interval(FIRES.time_since_ignition.values)
    np.testing.assert_array_equal(
        arrays.upper.values, linear.predict_interval(FIRES.drop_vars("hours")).upper.values
    )


def test_error_bars_have_labels_and_state_what_they_promise(bars, surrogate):
    table = surrogate.error_bars
    promise = 1 - (8 * table.bands(0.8).lost + 1) / 9
    promises = [promise, promise, *table.promised_footprint(0.8)]
    for name, promised in zip(INTERVAL_FIELDS, promises, strict=True):
        assert bars[name].attrs["coverage"] == 0.8
        assert bars[name].attrs["calibration_groups"] == 8
        assert bars[name].attrs["promised_coverage"] == pytest.approx(promised, abs=1e-4)
        xr.testing.assert_equal(bars[name].coords.to_dataset(), bars.smoke.coords.to_dataset())
    assert bars.lower.attrs["units"] == bars.upper.attrs["units"] == FIRES.smoke.attrs["units"]
    assert bars.possible_smoke.attrs["comment"] == (
        "at most 20 % of the smoky cells lie outside, in 80 % of new fires like those of training"
    )
    assert sets_text(table, 0.9) == (
        "certain_smoke: at most 10 % of its cells have no smoke; possible_smoke: at most 10 % of "
        "the smoky cells lie outside; each in 90 % of new fires like those of training "
        "(88 % can be promised)"
    )
    text = promise_text(table, 0.9)
    assert "on 8 ignitions" in text
    assert "% can be promised; no error bars from 8 ignitions can promise 90 %" in text
    assert table.counts.sum() == table.scores.sum() == FIRES.smoke.size
    assert table.scores[..., 1].sum() == (FIRES.smoke.values > table.tau).sum()


def test_bands_follow_the_time_since_ignition_continuously(surrogate):
    """Each time has its own table; the bands between two of them are interpolated."""
    table = surrogate.error_bars
    assert len(table.times) >= 2
    assert sum(int(own.counts.sum()) for own in table.times) <= int(table.counts.sum())
    smoke = np.full((3, 4), 5.0 * table.tau)
    first, last = table.times[0].hour, table.times[-1].hour
    hours = np.array([first, first + 1e-3, last])
    lower, upper = table.interval(smoke, 0.9, hours)
    assert (lower <= smoke).all()
    assert (upper >= smoke).all()
    np.testing.assert_allclose(upper[0], upper[1], rtol=1e-2)
    beyond = table.interval(smoke, 0.9, np.array([first, first, last + 100.0]))[1]
    np.testing.assert_array_equal(beyond[2], upper[2])
    whole = table.interval(smoke, 0.9)[1]
    assert not np.array_equal(whole, upper)
    again = table.interval(smoke, 0.9, np.full(3, np.nan))[1]
    np.testing.assert_array_equal(whole, again)


def test_blocks_of_a_store_have_the_same_error_bars(surrogate, bars, tmp_path):
    append_fire(tmp_path / "fires.zarr", FIRES)
    limit = Resources(memory="100MB")
    blocks = predict_store(surrogate, tmp_path / "fires.zarr", interval=0.8, resources=limit)
    joined = xr.concat(blocks, "snapshot")
    # Smoke never falls within a fire, and the bars contain it.
    for name, side in zip(INTERVAL_FIELDS, (np.minimum, np.maximum, None, np.maximum), strict=True):
        expected = bars[name].values if side is None else side(joined[name], bars[name]).values
        np.testing.assert_array_equal(joined[name].values, expected)
    assert bool(((joined.lower <= joined.smoke) & (joined.smoke <= joined.upper)).all())
    for name in ("counts", "edges", "scores"):
        table = surrogate.error_bars
        wrong = replace(surrogate, error_bars=replace(table, **{name: getattr(table, name)[:-1]}))
        with pytest.raises(PlumecastError, match=rf"error_bars\.{name}"):
            load_surrogate(wrong.save(tmp_path / "smoke.plume"))


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ({"split": None, "folds": 0}, r"no error bars; .*--all"),
        ({}, r"at least 5 ignitions .* had 1\); .*--all"),
    ],
    ids=["no folds", "few validation ignitions"],
)
def test_surrogates_without_calibration_say_what_makes_one(choices, reason):
    made = train_surrogate(FIRES, degree=1, **choices)
    assert made.error_bars is None
    with pytest.raises(PlumecastError, match=reason):
        made.predict_interval(FIRES)


def test_the_command_writes_error_bars_and_what_they_promise(surrogate, bars, tmp_path):
    append_fire(tmp_path / "fires.zarr", FIRES)
    surrogate.save(tmp_path / "smoke.plume")
    known = ["predict", str(tmp_path / "smoke.plume"), str(tmp_path / "fires.zarr")]
    result = CliRunner().invoke(app, [*known, "-o", str(tmp_path / "o.nc"), "--interval", "0.8"])
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "can be promised" in said
    assert "possible_smoke: at most 20 % of the smoky cells lie outside" in said
    assert "8 of the ignitions are those of training" in said
    with xr.open_dataset(tmp_path / "o.nc") as written:
        assert (written.upper.values >= bars.upper.values).all()
        assert written.upper.attrs["coverage"] == 0.8
    old = FIRES.assign(time_since_ignition=9.0 * FIRES.time_since_ignition)
    known[2] = str(pc.export_snapshots(old, tmp_path / "old.nc"))
    result = CliRunner().invoke(app, [*known, "-o", str(tmp_path / "q.nc"), "--interval", "0.8"])
    said = " ".join(result.output.split())
    count = old.sizes["snapshot"]
    assert f"all {count} snapshots lie beyond the training fires (hours_beyond_training" in said
    assert "error bars promise nothing for these" in said
    assert "can be promised" not in said
    wrong = CliRunner().invoke(app, [*known, "-o", str(tmp_path / "p.nc"), "--interval", "90"])
    assert wrong.exit_code != 0
    assert not (tmp_path / "p.nc").exists()


@pytest.mark.parametrize(
    ("interval", "told"), [(None, "than for new fires"), (0.9, "error bars are for new ones")]
)
def test_fires_of_training_are_told(surrogate, interval, told):
    said = []
    blocks = predict_store(surrogate, FIRES, interval=interval, notify=said.append)
    assert not [name for block in blocks for name in block.attrs if "training" in str(name)]
    assert said[-1].text.startswith("8 of the ignitions are those of training")
    assert said[-1].text.endswith(told)
    other = FIRES.assign_coords(ignition_id=FIRES.ignition_id.astype(str) + "-new")
    list(predict_store(surrogate, other, interval=interval, notify=said.append))
    assert sum("those of training" in notice.text for notice in said) == 1


def test_the_command_writes_error_bars_of_the_time_mean(surrogate, tmp_path, succeed, refused):
    """A GeoTIFF has no sums, so that error bars of sums would be taken for those of the mean."""
    append_fire(tmp_path / "fires.zarr", FIRES.isel(snapshot=slice(0, 1)))
    surrogate.save(tmp_path / "smoke.plume")
    for name in ("o.nc", "o.tif"):
        succeed("predict", tmp_path / "smoke.plume", tmp_path / "fires.zarr", "-o", tmp_path / name,
                "--interval", 0.8)  # fmt: skip
    with xr.open_dataset(tmp_path / "o.nc") as written:
        factor = written.smoke_mean.values.max() / written.smoke.values.max()
        np.testing.assert_allclose(written.upper_mean, factor * written.upper, rtol=1e-6)  # float32
    kinds = {path.stem.rsplit("h_", 1)[-1] for path in tmp_path.glob("o_*.tif")}
    assert {"lower_mean", "upper_mean", *INTERVAL_FIELDS[2:]} <= kinds
    assert not kinds & {"lower", "upper"}
    told = refused("predict", tmp_path / "smoke.plume", tmp_path / "fires.zarr", "-o",
                   tmp_path / "p.tif", "--interval", 0.8, "--quantity", "between")  # fmt: skip
    assert told.startswith("--quantity='between' has no error bars")
    assert not list(tmp_path.glob("p_*.tif"))


@pytest.fixture(scope="module")
def both() -> pc.Surrogate:
    names = ["smoke", "surface_smoke"]
    return train_surrogate(add_surface(FIRES), split=None, degree=1, outputs=names)


def test_every_output_has_error_bars_of_its_own(both, tmp_path):
    data = add_surface(FIRES)
    loaded = load_surrogate(both.save(tmp_path / "both.plume"))
    bars = loaded.predict_interval(FIRES, 0.8)
    further = [f"{name}_surface_smoke" for name in INTERVAL_FIELDS]
    assert list(bars.data_vars) == ["smoke", "surface_smoke", *INTERVAL_FIELDS, *further]
    for name, suffix in (("smoke", ""), ("surface_smoke", "_surface_smoke")):
        alone = loaded.output(name)
        assert alone.error_bars.scores[..., 1].sum() == (data[name] > alone.error_bars.tau).sum()
        expected = alone.predict_interval(FIRES, 0.8)
        for field in INTERVAL_FIELDS:
            np.testing.assert_array_equal(bars[field + suffix], expected[field])
    assert not np.allclose(bars.upper, bars.upper_surface_smoke)
    first = replace(both, further_bars=None)
    assert list(first.predict_interval(FIRES)) == ["smoke", "surface_smoke", *INTERVAL_FIELDS]
    with pytest.raises(PlumecastError, match="this surrogate has no error bars"):
        first.output("surface_smoke").predict_interval(FIRES)
    wrong = replace(both, further_bars={"other": both.error_bars})
    with pytest.raises(PlumecastError, match=r"further_bars=\['other'\] are not its further"):
        load_surrogate(wrong.save(tmp_path / "both.plume"))


def test_the_command_writes_error_bars_of_every_output(both, tmp_path, succeed):
    append_fire(tmp_path / "fires.zarr", FIRES.isel(snapshot=[0]))
    both.save(tmp_path / "both.plume")
    for name in ("o.nc", "o.tif"):
        said = succeed("predict", tmp_path / "both.plume", tmp_path / "fires.zarr", "-o",
                       tmp_path / name, "--interval", 0.8)  # fmt: skip
    assert "surface_smoke: error bars calibrated on 8 ignitions" in " ".join(said.split())
    with xr.open_dataset(tmp_path / "o.nc") as written:
        for smoke, end in (("smoke", "upper"), ("surface_smoke", "upper_surface_smoke")):
            factor = written[f"{smoke}_mean"].values.max() / written[smoke].values.max()
            np.testing.assert_allclose(written[f"{end}_mean"], factor * written[end], rtol=1e-6)
    kinds = {path.stem.rsplit("h_", 1)[-1] for path in tmp_path.glob("o_*.tif")}
    assert {"upper_mean", "upper_surface_smoke_mean", "possible_smoke_surface_smoke"} <= kinds
