"""Surrogates of fires with a fuel load, and fires on other fuels than those of training."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from support.weather_fires import SHAPE, weather_fires

LOAD = np.random.default_rng(1).uniform(0.5, 2.0, SHAPE).astype(np.float32)
FIT = {"layers": 1, "physics": "column", "frame": "wind"}


def with_load(fires: xr.Dataset, load: np.ndarray) -> xr.Dataset:
    dims = ("snapshot", "y", "x")[3 - load.ndim :]
    return fires.assign(fuel_load=(dims, load.astype(np.float32), {"units": "kg m-2"}))


@pytest.fixture(scope="module")
def fires() -> xr.Dataset:
    return with_load(weather_fires(6), LOAD)


@pytest.fixture(scope="module")
def trained(fires) -> pc.Surrogate:
    return pc.fit_surrogate(fires, "recommended", **FIT)


def test_the_fuel_of_training_gives_the_same_bits(trained, fires, tmp_path):
    expected = trained.predict(fires.drop_vars("fuel_load"))
    each = with_load(fires, np.tile(LOAD, (fires.sizes["snapshot"], 1, 1)))
    stored = pc.open_snapshots(pc.export_snapshots(each, tmp_path / "fires.zarr"))
    for same in (fires, each, stored):
        np.testing.assert_array_equal(trained.predict(same), expected)
    with pytest.raises(pc.PlumecastError, match="'fuel_load' is -2 in 288 of 288 cells"):
        trained.predict(with_load(fires, np.full_like(LOAD, -2.0)))
    bare = fires.drop_vars("fuel_load")
    without = pc.fit_surrogate(bare, "recommended", **FIT)
    assert not without.operator.uses_fuel
    np.testing.assert_array_equal(without.predict(fires), without.predict(bare))


def test_fires_on_other_fuels_have_other_smoke(trained, fires):
    as_trained = trained.predict(fires).values.sum(axis=(1, 2))
    last = fires.sizes["snapshot"] - 1
    own = np.stack([LOAD] * last + [3.0 * LOAD])
    more = trained.predict(with_load(fires, own)).values.sum(axis=(1, 2))
    np.testing.assert_array_equal(more[:last], as_trained[:last])
    assert more[last] > 1.1 * as_trained[last]


def test_training_fires_may_have_several_fuels(fires):
    """Smoke in proportion to the fuel: told the loads, the surrogate fits it better."""
    factor = np.where(np.arange(fires.sizes["snapshot"]) // 3 % 2, 4.0, 1.0)[:, None, None]
    smoke = fires.smoke * xr.DataArray(factor[:, 0, 0], dims="snapshot")
    several = with_load(fires.assign(smoke=smoke.assign_attrs(fires.smoke.attrs)), factor * LOAD)
    errors = []
    for data in (several, several.drop_vars("fuel_load")):
        fitted = pc.fit_surrogate(data, "recommended", **FIT)
        errors.append(float(pc.scores.relative_error(fitted.predict(data), data.smoke)))
    assert errors[0] < 0.9 * errors[1]
