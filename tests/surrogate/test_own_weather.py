"""Surrogates of fires that each have their own weather, through the public functions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.compute.resources import Resources
from plumecast.surrogate import fit_lifted as fit_lifted_module
from support.weather_fires import SHAPE, weather_fires

WEATHER = ("wind_u", "wind_v", "boundary_layer_depth")
FIT_ROUNDING = 2e-3
"""Relative to the largest smoke: float32 normal equations summed in other blocks."""


@pytest.fixture(scope="module")
def parts() -> tuple[xr.Dataset, xr.Dataset]:
    fires = weather_fires(14)
    left_out = np.isin(fires.fire_id.values, ["f11", "f12", "f13"])
    return fires.isel(snapshot=~left_out), fires.isel(snapshot=left_out)


@pytest.fixture(scope="module")
def trained(parts) -> pc.Surrogate:
    return pc.fit_surrogate(parts[0], "recommended", layers=1)


def with_wind(snapshot: int, hour: int, height: int, speed: float):
    def spoil(fires: xr.Dataset) -> xr.Dataset:
        wrong = fires.copy(deep=True)
        wrong.wind_u[snapshot, hour, height] = speed
        return wrong

    return spoil


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda d: d.drop_vars([*WEATHER, "wind_speed", "wind_from_direction"]),
            r"wind_speed|--weather",
        ),
        (
            with_wind(4, 2, 1, np.nan),
            "weather of fire 'f12': 'wind_u' is nan at hour 2, 500 m; fill it in",
        ),
        (with_wind(3, 1, 0, 90.0), r"fire 'f12': 90.* m/s at hour 1, 10 m is no wind"),
        (lambda d: d.assign_coords(hours=d.hours - 100.0), r"'hours' is -9\d of a snapshot; exp"),
    ],
)
def test_weather_that_cannot_be_is_refused(trained, parts, change, said):
    with pytest.raises(pc.PlumecastError, match=said):
        trained.predict(change(parts[1]))
    # Values after the hour of a snapshot are not needed and may be anything.
    trained.predict(with_wind(0, 8, 0, 500.0)(parts[1].isel(snapshot=[3])))


def error(surrogate: pc.Surrogate, fires: xr.Dataset) -> float:
    return float(pc.scores.relative_error(surrogate.predict(fires), fires.smoke))


def test_carried_smoke_is_chosen_and_is_better(trained, parts):
    assert trained.training["physics"] in ("calibrated", "column", "layers")
    assert "weather" in repr(trained)
    without = pc.fit_surrogate(parts[0], "recommended", layers=1, physics="none")
    assert error(trained, parts[1]) < 0.8 * error(without, parts[1])


def test_turning_the_wind_turns_the_plume(trained, parts):
    one = parts[1].isel(snapshot=[2])
    turned = one.copy(deep=True)
    turned["wind_u"], turned["wind_v"] = -one.wind_u, -one.wind_v
    turned["wind_from_direction"] = (one.wind_from_direction + 180.0) % 360.0
    fire = one.time_since_ignition.values[0] > 0.0
    y, x = np.argwhere(fire).mean(axis=0)
    moved = []
    for fires in (one, turned):
        smoke = trained.predict(fires).values[0]
        rows, columns = np.mgrid[: smoke.shape[0], : smoke.shape[1]]
        moved.append(
            [(rows * smoke).sum() / smoke.sum() - y, (columns * smoke).sum() / smoke.sum() - x]
        )
    assert np.dot(*moved) < 0.0


def test_a_store_without_any_wind_has_no_physics(parts):
    bare = parts[0].drop_vars([*WEATHER, "wind_speed", "wind_from_direction"])
    fitted = pc.fit_surrogate(bare, "recommended", layers=1)
    assert fitted.training["physics"] == "none"
    with pytest.raises(pc.PlumecastError, match=r"physics 'column' needs .* the weather"):
        pc.fit_surrogate(bare, "recommended", layers=1, physics="column")


def test_constants_for_mean_winds_are_not_used_with_other_profiles(parts, tmp_path):
    """The hourly weather of new fires is left aside: the constants suit the default profile."""
    scalars = parts[0].drop_vars(WEATHER)
    fitted = pc.fit_surrogate(scalars, "quick", layers=1, physics="calibrated")
    loaded = pc.load_surrogate(fitted.save(tmp_path / "mean.plume"))
    expected = fitted.predict(parts[1].drop_vars(WEATHER))
    np.testing.assert_array_equal(loaded.predict(parts[1]).values, expected.values)


def test_calibrated_constants_are_recorded_and_saved(parts, tmp_path):
    slow = parts[0].copy()
    slow["wind_u"], slow["wind_v"] = 2.0 * slow.wind_u, 2.0 * slow.wind_v
    fitted = pc.fit_surrogate(slow, "quick", layers=1, physics="calibrated")
    constants = fitted.training["transport"]
    assert constants["drift"] <= 0.7  # the stated winds are twice those that carried the smoke
    loaded = pc.load_surrogate(fitted.save(tmp_path / "slow.plume"))
    assert loaded.operator.physics.drift == constants["drift"]
    xr.testing.assert_identical(loaded.predict(parts[1]), fitted.predict(parts[1]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"diffusivity": 1e9}, "diffusivity=1e\\+09 of its transport is not within"),
        ({"drift": -1.0}, "drift=-1 of its transport"),
        ({"step": 1e-9}, "step=1e-09 of its transport"),
        ({"halvings": 60}, "halvings=60 of its transport"),
    ],
)
def test_a_transport_that_no_fit_makes_is_refused_on_load(trained, tmp_path, change, words):
    operator = replace(trained.operator, physics=replace(trained.operator.physics, **change))
    path = replace(trained, operator=operator).save(tmp_path / "odd.plume")
    with pytest.raises(pc.PlumecastError, match=words):
        pc.load_surrogate(path)


def test_many_fires_in_a_store_are_compared_without_reading_them_at_once(
    parts, tmp_path, monkeypatch
):
    monkeypatch.setattr(fit_lifted_module, "COMPARED_GROUPS", 6)
    few = parts[0].isel(snapshot=slice(0, 24))  # eight fires
    stored = pc.open_snapshots(pc.export_snapshots(few, tmp_path / "own.zarr"))
    choices = {"preset": "recommended", "layers": 1, "frame": "wind"}
    lazy = pc.fit_surrogate(stored, resources=Resources(memory="1.5GB"), **choices)
    loaded = pc.fit_surrogate(few, **choices)
    assert lazy.training["frame"] == loaded.training["frame"]
    assert lazy.training["physics"] == loaded.training["physics"]
    ours, theirs = (one.predict(parts[1]).values for one in (loaded, lazy))
    np.testing.assert_allclose(theirs, ours, atol=FIT_ROUNDING * ours.max())


# Fuels: fires with a fuel load, and on other fuels than those of training


LOAD = np.random.default_rng(1).uniform(0.5, 2.0, SHAPE).astype(np.float32)
FIT = {"layers": 1, "physics": "column", "frame": "wind"}


def with_load(loaded: xr.Dataset, load: np.ndarray) -> xr.Dataset:
    dims = ("snapshot", "y", "x")[3 - load.ndim :]
    return loaded.assign(fuel_load=(dims, load.astype(np.float32), {"units": "kg m-2"}))


@pytest.fixture(scope="module")
def loaded() -> xr.Dataset:
    return with_load(weather_fires(6), LOAD)


@pytest.fixture(scope="module")
def fuelled(loaded) -> pc.Surrogate:
    return pc.fit_surrogate(loaded, "recommended", **FIT)


def test_the_fuel_of_training_gives_the_same_bits(fuelled, loaded, tmp_path):
    expected = fuelled.predict(loaded.drop_vars("fuel_load"))
    each = with_load(loaded, np.tile(LOAD, (loaded.sizes["snapshot"], 1, 1)))
    stored = pc.open_snapshots(pc.export_snapshots(each, tmp_path / "fires.zarr"))
    for same in (loaded, each, stored):
        np.testing.assert_array_equal(fuelled.predict(same), expected)
    with pytest.raises(pc.PlumecastError, match="'fuel_load' is -2 in 288 of 288 cells"):
        fuelled.predict(with_load(loaded, np.full_like(LOAD, -2.0)))
    bare = loaded.drop_vars("fuel_load")
    without = pc.fit_surrogate(bare, "recommended", **FIT)
    assert not without.operator.uses_fuel
    np.testing.assert_array_equal(without.predict(loaded), without.predict(bare))


def test_fires_on_other_fuels_have_other_smoke(fuelled, loaded):
    as_trained = fuelled.predict(loaded).values.sum(axis=(1, 2))
    last = loaded.sizes["snapshot"] - 1
    own = np.stack([LOAD] * last + [3.0 * LOAD])
    more = fuelled.predict(with_load(loaded, own)).values.sum(axis=(1, 2))
    np.testing.assert_array_equal(more[:last], as_trained[:last])
    assert more[last] > 1.1 * as_trained[last]


def test_training_fires_may_have_several_fuels(loaded):
    """Smoke in proportion to the fuel: told the loads, the surrogate fits it better."""
    factor = np.where(np.arange(loaded.sizes["snapshot"]) // 3 % 2, 4.0, 1.0)[:, None, None]
    smoke = loaded.smoke * xr.DataArray(factor[:, 0, 0], dims="snapshot")
    several = with_load(loaded.assign(smoke=smoke.assign_attrs(loaded.smoke.attrs)), factor * LOAD)
    errors = []
    for data in (several, several.drop_vars("fuel_load")):
        fitted = pc.fit_surrogate(data, "recommended", **FIT)
        errors.append(float(pc.scores.relative_error(fitted.predict(data), data.smoke)))
    assert errors[0] < 0.9 * errors[1]
