"""Lifts, targets, covariates and frames: named, composable, refused with the names that exist."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.compute.blocks import sampled_rows
from plumecast.operators import lift as lift_module
from plumecast.operators.lift import (
    CARRIED_RAMPS,
    PARTS,
    PRODUCTS,
    Part,
    Product,
    fit_lift,
    fit_physics_channels,
)
from plumecast.operators.targets import LOG_SHARE, Targets, choose_inverse, fit_targets
from support.windy_fires import GRID, puff, windy


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return windy()


def error(surrogate: pc.Surrogate, part: xr.Dataset) -> float:
    return float(pc.scores.relative_error(surrogate.predict(part), part.smoke))


def test_auto_chooses_the_wind_frame_where_every_fire_has_its_own_wind(data):
    """One convolution predicts all fires in the wind frame; on the map none does."""
    train, test = data.isel(snapshot=slice(0, 18)), data.isel(snapshot=slice(18, None))
    choices = {"physics": "none", "layers": 1}
    found = pc.fit_surrogate(train, "recommended", **choices)
    on_map = pc.fit_surrogate(train, "recommended", frame="map", **choices)
    assert found.training["frame"] == "wind"
    assert error(found, test) < 0.5 * error(on_map, test)


def test_auto_stays_on_the_map_where_the_wind_is_shared(data):
    same = data.assign_coords(wind_from_direction=("snapshot", np.full(24, 250.0)))
    same = same.assign_coords(wind_speed=("snapshot", np.full(24, 5.0)))
    assert pc.fit_surrogate(same, "recommended", layers=1).training["frame"] == "map"


def test_a_wind_surrogate_needs_the_wind_and_survives_saving(data, tmp_path):
    fitted = pc.fit_surrogate(data, "recommended", frame="wind-stretch", physics="none", layers=1)
    with pytest.raises(pc.PlumecastError, match="'wind_speed' is missing"):
        fitted.predict(data.time_since_ignition.values)
    with pytest.raises(pc.PlumecastError, match="needs the coordinates wind_speed"):
        pc.fit_surrogate(data.drop_vars("wind_speed"), "recommended", frame="wind")
    loaded = pc.load_surrogate(fitted.save(tmp_path / "wind.plume"))
    np.testing.assert_array_equal(loaded.predict(data), fitted.predict(data))


def test_a_new_part_and_product_are_one_entry_each(monkeypatch):
    monkeypatch.setitem(PARTS, "square", Part("age squared", lambda ages: [ages.fire**2]))
    monkeypatch.setitem(PRODUCTS, "twice", Product("twice the age", lambda ages: [2 * ages.oldest]))
    fire = np.maximum(puff(9, 9, 3) - 0.5, 0.0)[None].repeat(2, axis=0)
    fire[1] *= 3.0
    channels = fit_lift(fire, ("square",), ("twice",))(fire)
    oldest = fire.max(axis=(1, 2), keepdims=True)
    for number, expected in enumerate((fire**2, fire**2 * oldest)):
        scaled = expected / np.sqrt(np.mean(expected**2))
        np.testing.assert_allclose(channels[:, number], scaled, rtol=1e-5)


def test_every_part_and_product_vanishes_with_the_fire():
    fire = np.maximum(puff(9, 9, 3) - 0.5, 0.0)[None].repeat(3, axis=0)
    fire[1] *= 3.0
    fire[2, :, :9] *= -1.0  # for the part of negative inputs
    lift = fit_lift(fire, tuple(PARTS), tuple(PRODUCTS), covariates=np.ones((3, 2)))
    channels = lift(fire, np.ones((3, 2)))
    assert channels.shape == (3, lift.channels, *GRID)
    assert channels.dtype == np.float32
    assert np.abs(lift(0.0 * fire, np.ones((3, 2)))).max() == 0.0
    np.testing.assert_allclose(np.sqrt(np.mean(channels**2, axis=(0, 2, 3))), 1.0, rtol=1e-4)
    with pytest.raises(pc.PlumecastError, match="takes 2 covariates, got 0"):
        lift(fire)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"lift": "age"}, "lift 'age' is unknown; choose from identity, burned, age-bins"),
        ({"products": "size"}, "product 'size' is unknown; choose from hours, hours-squared, day"),
        ({"targets": "ln"}, "target 'ln' is unknown; choose from log, smoke, footprint"),
        ({"targets": "footprint"}, "needs the target 'log' or 'smoke'"),
        ({"frame": "sun"}, "frame 'sun' is unknown; choose from map, wind, wind-stretch, auto"),
        (
            {"family": "tree"},
            "family 'tree' is unknown; choose from coded, spectral, unet, fno",
        ),
        ({"epochs": 3}, "the spectral family has no setting 'epochs'"),
        ({"layers": 0}, "layers=0"),
        ({"inputs": ["time_since_ignition", "smoke"]}, r"has one input, not 2 \(time_since_ign"),
        ({"correction": True, "preset": "paper-linear"}, "has no setting 'correction'"),
        ({"covariates": "humidity"}, "covariate 'humidity' is missing"),
        ({"covariates": "hours"}, "covariate 'hours' is 6.0 in all training snapshots"),
    ],
)
def test_unknown_names_are_refused_with_those_known(data, choices, message):
    with pytest.raises(pc.PlumecastError, match=message):
        pc.fit_surrogate(data, choices.pop("preset", "recommended"), **choices)


def test_targets_return_the_smoke_they_were_made_of():
    rng = np.random.default_rng(0)
    smoke = rng.gamma(0.3, 20.0, size=(5, *GRID)).astype(np.float32)
    for names in (("log",), ("smoke",), ("log", "smoke"), ("smoke", "footprint", "log")):
        way = fit_targets(smoke, names, threshold=1.0)
        way, left = choose_inverse(way, way.encode(smoke), smoke)
        # ln in float32: seven digits of at most ln(1 + g/ε) ≈ 6.
        np.testing.assert_allclose(way.smoke(way.encode(smoke)), smoke, rtol=2e-5, atol=1e-5)
        assert left < 1e-4


def test_the_inverse_never_exceeds_training_and_the_gate_sets_zero():
    way = Targets(("log", "smoke", "footprint"), 1.0, 0.1, largest=50.0, blend=1.0, gate=0.2)
    wild = np.full((1, 3, 2), 1e6)
    wild[0, 2] = [1.0, 0.1]
    assert way.smoke(wild)[0].tolist() == [50.0, 0.0]
    assert way.score(wild).max() == 1.0


def test_what_cannot_be_fitted_is_refused(data):
    with pytest.raises(pc.PlumecastError, match="no snapshot holds smoke"):
        pc.fit_surrogate(data.assign(smoke=data.smoke * 0.0), "recommended")
    with pytest.raises(pc.PlumecastError, match="needs at least 2 'ignition_id'"):
        pc.fit_surrogate(data.isel(snapshot=[0]), "recommended")
    with pytest.raises(pc.PlumecastError, match="3 × 24 cells is too small"):
        pc.fit_surrogate(data.isel(y=slice(8, 11)), "recommended", frame="map")
    with pytest.raises(pc.PlumecastError, match="zero everywhere"):
        fit_targets(np.zeros((2, *GRID)), ("log",), threshold=0.1)


def moist(data: xr.Dataset) -> xr.Dataset:
    """Smoke that decreases with a moisture that the fires do not show; all have the same wind."""
    rng = np.random.default_rng(3)
    moisture = rng.uniform(0.02, 0.2, size=data.sizes["snapshot"])
    fire = data.time_since_ignition
    smoke = fire.rolling(x=3, y=3, center=True, min_periods=1).mean() * xr.DataArray(
        (1.2 - 5.0 * moisture).astype(np.float32), dims="snapshot"
    )
    out = data.assign(smoke=smoke.transpose("snapshot", "y", "x").astype(np.float32))
    out = out.drop_vars(["wind_speed", "wind_from_direction"])
    return out.assign_coords(fuel_moisture=("snapshot", moisture))


@pytest.mark.parametrize(
    "choices",
    [
        {"preset": "recommended", "layers": 1},
        {"kernel": "polynomial-1 + matern-5/2", "targets": "log"},
    ],
)
def test_covariates_improve_both_families(data, choices, tmp_path):
    """With the moisture as a covariate, the error on new fires is at most two thirds."""
    moist_data = moist(data)
    train, test = moist_data.isel(snapshot=slice(0, 18)), moist_data.isel(snapshot=slice(18, None))
    without = error(pc.fit_surrogate(train, **choices), test)
    fitted = pc.fit_surrogate(train, covariates="fuel_moisture", **choices)
    inside = test.assign_coords(fuel_moisture=test.fuel_moisture.clip(*_range(train)))
    assert error(fitted, inside) < 0.67 * without
    loaded = pc.load_surrogate(fitted.save(tmp_path / "moist.plume"))
    np.testing.assert_array_equal(loaded.predict(inside), fitted.predict(inside))


def _range(train: xr.Dataset) -> tuple[float, float]:
    return float(train.fuel_moisture.min()), float(train.fuel_moisture.max())


def test_covariates_beyond_training_warn(data):
    moist_data = moist(data)
    fitted = pc.fit_surrogate(moist_data, "recommended", covariates="fuel_moisture", layers=1)
    low, high = _range(moist_data)
    beyond = moist_data.assign_coords(
        fuel_moisture=moist_data.fuel_moisture * 0.0 + high + 0.5 * (high - low)
    )
    with pytest.warns(UserWarning, match=r"fuel_moisture .* lies outside .* of training: the pr"):
        fitted.predict(beyond)
    with pytest.raises(pc.PlumecastError, match="'fuel_moisture' is missing"):
        fitted.predict(moist_data.drop_vars("fuel_moisture"))


def test_a_text_covariate_is_used_and_unknown_values_are_refused(data):
    drought = np.where(np.arange(24) % 2, "low", "high")
    moist_data = moist(data).assign_coords(drought=("snapshot", drought))
    moist_data["fuel_moisture"] = moist_data.fuel_moisture.astype(object)  # numbers they are
    fitted = pc.fit_surrogate(moist_data, degree=1, covariates=("drought", "fuel_moisture"))
    assert [own.kind for own in fitted.covariates][1] == "number"
    mild = moist_data.assign_coords(drought=("snapshot", ["mild"] * 24))
    with pytest.raises(pc.PlumecastError, match="drought 'mild' was not in training"):
        fitted.predict(mild)


def test_a_rare_scenario_borrows_from_the_others(data):
    """Two droughts have the same physics, and one has a single ignition. Alone it could not be
    fitted; regularised towards the common operator, its error is like that of the other."""
    moist_data = moist(data).drop_vars("fuel_moisture")
    moist_data["smoke"] = moist_data.time_since_ignition.rolling(
        x=3, y=3, center=True, min_periods=1
    ).mean()
    labels = np.where(np.arange(24) == 4, "rare", "usual")
    train = moist_data.isel(snapshot=slice(0, 18)).assign_coords(drought=("snapshot", labels[:18]))
    test = moist_data.isel(snapshot=slice(18, None))
    fitted = pc.fit_surrogate(train, "recommended", layers=1)
    errors = [
        error(fitted, test.assign_coords(drought=("snapshot", [name] * 6)))
        for name in ("rare", "usual")
    ]
    assert errors[0] < 1.5 * errors[1] < 0.5


@pytest.mark.parametrize("same", ["hours", "ages"])
def test_equal_channels_do_not_stop_a_fit(same):
    """Channels of large fires of one duration (or one age) coincide: a penalty that is lost in
    rounding would leave the system singular."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:48, :48]
    distance = [np.hypot(y - row, x - column) for row, column in rng.uniform(15, 33, size=(12, 2))]
    radius = rng.uniform(9, 14, size=12)
    age = np.stack([np.clip(r - d, 0.0, None) for r, d in zip(radius, distance, strict=True)])
    age = 6.0 * age / age.max(axis=(1, 2), keepdims=True) if same == "hours" else 6.0 * (age > 0)
    data = windy(12).isel(x=0, y=0, drop=True).drop_vars(["wind_speed", "wind_from_direction"])
    data["time_since_ignition"] = (("snapshot", "y", "x"), age.astype(np.float32))
    data["smoke"] = data.time_since_ignition.rolling(x=5, center=True, min_periods=1).mean()
    assert error(pc.fit_surrogate(data, "recommended", layers=1), data) < 0.2


def test_the_wind_frame_rotates_the_right_way_on_descending_axes(data):
    """The same data stored from north to south gives the same errors."""
    turned = data.isel(y=slice(None, None, -1))
    errors = [
        error(
            pc.fit_surrogate(
                each.isel(snapshot=slice(0, 18)),
                "recommended",
                frame="wind",
                physics="none",
                layers=1,
            ),
            each.isel(snapshot=slice(18, None)),
        )
        for each in (data, turned)
    ]
    assert errors[1] == pytest.approx(errors[0], rel=0.1)  # single precision, sums reordered


def test_fields_laid_out_otherwise_are_refused(data):
    swapped = data.transpose("snapshot", "x", "y")
    with pytest.raises(pc.PlumecastError, match="needs fields on"):
        pc.fit_surrogate(swapped, "recommended", frame="wind")
    mixed = data.assign(smoke=data.smoke.transpose("snapshot", "x", "y"))
    with pytest.raises(pc.PlumecastError, match="maps one field to others on the same grid"):
        pc.fit_surrogate(mixed, "recommended")


def test_scalars_follow_the_dimensions_of_the_fire(data):
    """Fields by hour and member, one wind per member: each pair is predicted like a snapshot."""
    fitted = pc.fit_surrogate(data, "recommended", frame="wind", physics="none", layers=1)
    rows = [0, 1, 2, 0, 1, 2]
    flat = data.isel(snapshot=rows)
    winds = {
        name: ("member", data[name].values[:3]) for name in ("wind_speed", "wind_from_direction")
    }
    grid = xr.Dataset(
        {
            "time_since_ignition": (
                ("time", "member", "y", "x"),
                flat.time_since_ignition.values.reshape(2, 3, *GRID),
            )
        },
        coords={
            **winds,
            "hours": (("time", "member"), flat.hours.values.reshape(2, 3)),
            "y": data.y,
            "x": data.x,
        },
    )
    expected = fitted.predict(flat).values.reshape(2, 3, *GRID)
    np.testing.assert_array_equal(fitted.predict(grid).values, expected)
    with pytest.raises(pc.PlumecastError, match="has dimension 'member', which the input lacks"):
        fitted.predict(grid.assign(time_since_ignition=grid.time_since_ignition.isel(member=0)))


def test_any_coordinate_may_be_called_fire_and_any_may_be_a_single_value(data):
    fitted = pc.fit_surrogate(data.assign_coords(drought="medium"), "recommended", frame="map")
    named = data.time_since_ignition.rename(snapshot="fire").assign_coords(fire=np.arange(24))
    assert fitted.predict(named.drop_vars("drought")).sizes["fire"] == 24


def test_log_scale_is_a_share_of_the_smoke_and_one_beside_the_plain_target():
    smoke = np.array([[0.0, 1.0], [3.0, 1e-20]])[None]
    mean = 10.0 / 4.0  # (1 + 9) / (1 + 3)
    assert fit_targets(smoke, ("log",), threshold=0.0).epsilon == pytest.approx(LOG_SHARE * mean)
    assert fit_targets(1e-3 * smoke, ("log", "footprint"), threshold=0.0).epsilon == pytest.approx(
        1e-3 * LOG_SHARE * mean
    )
    assert fit_targets(smoke, ("log", "smoke"), threshold=0.0).epsilon == 1.0


def test_the_gate_does_not_empty_a_whole_snapshot():
    """Of two snapshots with smoke, the detection score misses the second."""
    targets = Targets(("log", "footprint"), 1.0, 0.1, 100.0, gate=0.2, spares=True)
    fields = np.zeros((2, 2, 3, 3))
    fields[:, 0] = 1.0
    fields[0, 1, 0, 0] = 0.9
    smoke = targets.smoke(fields)
    assert (smoke[0] > 0.0).sum() == 1
    assert (smoke[1] > 0.0).all()
    before = replace(targets, spares=False).smoke(fields)
    assert not before[1].any()


def carried() -> np.ndarray:
    rng = np.random.default_rng(0)
    smoke = 10.0 ** rng.uniform(-4.0, 2.0, (12, 2, 8, 9))
    return np.where(rng.random(smoke.shape) < 0.6, 0.0, smoke).astype(np.float32)


def test_every_channel_has_a_root_mean_square_of_one_and_is_zero_without_smoke():
    channels = fit_physics_channels(carried())
    made = channels.of(carried())
    assert made.shape == (8, 9, 12, channels.channels) == (8, 9, 12, 2 * (2 + len(CARRIED_RAMPS)))
    np.testing.assert_allclose(np.sqrt((made**2).mean(axis=(0, 1, 2))), 1.0, rtol=1e-4)
    assert not channels.of(np.zeros((3, 2, 8, 9))).any()


def test_fields_without_smoke_in_training_give_finite_channels():
    channels = fit_physics_channels(np.zeros((4, 1, 5, 5), np.float32))
    assert np.isfinite(channels.of(carried()[:, :1])).all()


def test_a_lift_of_nearly_empty_snapshots_and_of_one_bin(monkeypatch):
    monkeypatch.setattr(lift_module, "AGE_VALUES", 0)
    fire = np.zeros((400, 6, 6))
    fire[np.setdiff1d(np.arange(400), sampled_rows(400, lift_module.LEAST_ROWS))[0], 2, 3] = 7.0
    assert fit_lift(fire).knots.tolist() == fit_lift(fire, bins=1).knots.tolist() == [0.0, 7.0]
