"""New fires in a surrogate: what it learns, records and refuses."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.compute.resources import Resources
from plumecast.surrogate.surrogate import Surrogate
from support.snapshots import make_snapshots
from support.windy_fires import windy

QUICK = {"preset": "quick", "layers": 1}
KINDS = {
    "spectral": QUICK,
    "linear": {"preset": "paper-linear"},
    "quadratic": {"preset": "paper-quadratic"},
    "kernel": {"kernel": "matern-5/2"},
}


def ignitions(data: xr.Dataset, part: slice) -> xr.Dataset:
    names = np.unique(data.ignition_id.values)[part]
    return data.isel(snapshot=np.flatnonzero(np.isin(data.ignition_id.values, names)))


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return make_snapshots(fires=14)


@pytest.fixture(scope="module")
def old(data) -> xr.Dataset:
    return ignitions(data, slice(0, 6))


@pytest.fixture(scope="module")
def new(data) -> xr.Dataset:
    return ignitions(data, slice(6, 7))


@pytest.fixture(scope="module")
def trained(old) -> Surrogate:
    return pc.train_surrogate(old, split=None, updatable=True, **QUICK)


def error(surrogate: Surrogate, fires: xr.Dataset) -> float:
    wrong = surrogate.predict(fires).values - fires.smoke.values
    return float(np.linalg.norm(wrong) / np.linalg.norm(fires.smoke.values))


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_ignition_is_learned_and_saved(kind, old, new, tmp_path):
    before = pc.fit_surrogate(old, updatable=True, **KINDS[kind])
    plain = pc.fit_surrogate(old, **KINDS[kind])
    assert np.array_equal(before.predict(new).values, plain.predict(new).values)
    after = before.update(new)
    assert error(after, new) < error(before, new)
    assert after.training["snapshots"] == old.sizes["snapshot"] + new.sizes["snapshot"]
    assert set(new.fire_id.values) <= set(after.training["fire_id"])
    done = after.training["updates"][-1]
    assert done["fires"] == np.unique(new.fire_id.values).tolist()
    assert {"penalties", "thresholds"} <= set(done["kept"])
    loaded = pc.load_surrogate(after.save(tmp_path / "after.plume"))
    assert np.array_equal(loaded.predict(new).values, after.predict(new).values)
    with pytest.raises(PlumecastError, match="already in the surrogate"):
        loaded.update(new)


def test_the_wind_frame_is_kept():
    data = windy(12)
    before = pc.fit_surrogate(
        data.isel(snapshot=slice(0, 9)), frame="wind", updatable=True, **QUICK
    )
    new = data.isel(snapshot=slice(9, 12))
    after = before.update(new)
    assert "frame" in after.training["updates"][0]["kept"]
    assert error(after, new) < error(before, new)
    calm = new.drop_vars(["wind_speed", "wind_from_direction"])
    with pytest.raises(PlumecastError, match="wind_speed"):
        before.update(calm)


def test_error_bars_gain_ignitions_as_they_were_predicted_before(trained, new):
    after = trained.update(new)
    assert after.error_bars.groups == (*trained.error_bars.groups, "ignition-06")
    cells = new.smoke.size
    assert after.error_bars.counts[-1].sum() == cells
    assert np.array_equal(after.error_bars.counts[:-1], trained.error_bars.counts)
    # Predicted by a surrogate that has learned the fires, they would lie nearer the diagonal.
    own = after.error_bars.counts[-1]
    distance = np.abs(np.subtract.outer(np.arange(len(own)), np.arange(len(own))))
    seen = after.error_bars.edges.searchsorted(after.predict(new).values.ravel())
    true = after.error_bars.edges.searchsorted(new.smoke.values.ravel())
    assert (own * distance).sum() > np.abs(seen - true).sum()
    assert after.training["thresholds"] == trained.training["thresholds"]


def test_fires_of_a_known_ignition_do_not_join_the_error_bars(trained, new):
    known = str(np.unique(trained.training["ignition_id"])[0])
    longer = new.assign_coords(hours=new.hours + 100.0)
    after = trained.update(labelled_as(ignition_id=known)(longer))
    assert after.error_bars.groups == trained.error_bars.groups
    assert after.training["ignition_id"] == trained.training["ignition_id"]
    first, last = after.training["ranges"]["hours"]
    assert (first, last) == (trained.training["ranges"]["hours"][0], float(longer.hours.max()))


def test_an_update_on_another_device_is_the_same(trained, new, one_thread):
    """Up to the rounding of sums in single precision, which small penalties amplify."""
    here, there = (
        trained.update(new, resources=Resources(device=name)).predict(new).values
        for name in ("cpu", "torch")
    )
    assert np.abs(here - there).max() < 1e-2 * np.abs(here).max()


def other_name(new):
    names = np.where(new.fire_id.values == new.fire_id.values[0], "fire-00-low", "fire-99")
    return new.assign_coords(fire_id=("snapshot", names))


def labelled_as(**labels):
    return lambda new: new.assign_coords(
        {name: ("snapshot", [label] * new.sizes["snapshot"]) for name, label in labels.items()}
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda new: new.assign_coords(x=new.x + 50_000.0), "grid|coordinate"),
        (lambda new: new.drop_vars("smoke"), "variable 'smoke' is missing from the new fires"),
        (lambda new: new.isel(snapshot=slice(0, 0)), "no snapshots to take in"),
        (other_name, "fire_id 'fire-00-low' names another fire"),
        (
            lambda new: new.assign(smoke=new.smoke.assign_attrs({INTERVAL: 1.0})),
            "every 1 h, that of training every 6 h",
        ),
        (labelled_as(drought="extreme"), "drought 'extreme' was not in training"),
    ],
)
def test_fires_that_do_not_fit_are_refused(trained, old, new, change, words):
    with pytest.raises(PlumecastError, match=words):
        trained.update(change(new))
    copy = ignitions(old, slice(0, 1))
    names = [f"copy-of-{name}" for name in copy.fire_id.values]
    with pytest.raises(PlumecastError, match="already in the surrogate"):
        trained.update(copy.assign_coords(fire_id=("snapshot", names)))
    with pytest.raises(PlumecastError, match="train STORE --updatable"):
        pc.fit_surrogate(old, "paper-linear").update(new)


@pytest.mark.parametrize(
    "choices", [{"preset": "thorough"}, {"family": "unet"}, {"family": "coded", "lift": "age-bins"}]
)
def test_families_that_cannot_are_refused_before_the_fit(old, choices):
    with pytest.raises(PlumecastError, match="cannot take in new fires without a new fit"):
        pc.fit_surrogate(old, updatable=True, **choices)
