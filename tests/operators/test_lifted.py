"""Lifts, targets, covariates and frames: named, composable, refused with the names that exist."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.compute.blocks import sampled_rows
from plumecast.data.covariates import wind_vector
from plumecast.operators import lift as lift_module
from plumecast.operators.lift import PARTS, PRODUCTS, Part, Product, fit_lift
from plumecast.operators.spectral.equations import Equations
from plumecast.operators.spectral.systems import PENALTIES, Systems
from plumecast.operators.spectral.transform import choose_frequencies, make_transform
from plumecast.operators.targets import LOG_SHARE, Targets, choose_inverse, fit_targets
from plumecast.operators.wind_frame import fit_wind_frame
from support.windy_fires import GRID, puff, windy


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return windy()


def error(surrogate: pc.Surrogate, part: xr.Dataset) -> float:
    return float(pc.scores.relative_error(surrogate.predict(part), part.smoke))


def test_auto_chooses_the_wind_frame_where_every_fire_has_its_own_wind(data):
    """One convolution predicts all fires in the wind frame; on the map none does."""
    train, test = data.isel(snapshot=slice(0, 18)), data.isel(snapshot=slice(18, None))
    found = pc.fit_surrogate(train, "recommended")
    on_map = pc.fit_surrogate(train, "recommended", frame="map")
    assert found.training["frame"] == "wind"
    assert error(found, test) < 0.5 * error(on_map, test)


def test_quick_is_the_recommended_operator_cut_short(data, tmp_path):
    train, test = data.isel(snapshot=slice(0, 18)), data.isel(snapshot=slice(18, None))
    quick = pc.fit_surrogate(train, "quick")
    same = pc.fit_surrogate(train, "recommended", layers=2, targets="log")
    np.testing.assert_array_equal(quick.predict(test), same.predict(test))
    assert not quick.detects
    quick.save(tmp_path / "quick.plume")
    loaded = pc.load_surrogate(tmp_path / "quick.plume")
    np.testing.assert_array_equal(loaded.predict(test), quick.predict(test))


def test_auto_stays_on_the_map_where_the_wind_is_shared(data):
    same = data.assign_coords(wind_from_direction=("snapshot", np.full(24, 250.0)))
    same = same.assign_coords(wind_speed=("snapshot", np.full(24, 5.0)))
    assert pc.fit_surrogate(same, "recommended", layers=1).training["frame"] == "map"


def test_a_wind_surrogate_needs_the_wind_and_survives_saving(data, tmp_path):
    fitted = pc.fit_surrogate(data, "recommended", frame="wind-stretch", layers=1)
    with pytest.raises(pc.PlumecastError, match="'wind_speed' is missing"):
        fitted.predict(data.time_since_ignition.values)
    with pytest.raises(pc.PlumecastError, match="needs the coordinates wind_speed"):
        pc.fit_surrogate(data.drop_vars("wind_speed"), "recommended", frame="wind")
    loaded = pc.load_surrogate(fitted.save(tmp_path / "wind.plume"))
    np.testing.assert_array_equal(loaded.predict(data), fitted.predict(data))


def test_rotating_there_and_back_keeps_a_smooth_field():
    """Two bilinear interpolations change a puff of several cells by at most 5 % of its peak, and
    its mass by at most 2 %."""
    field = puff(9.0, 12.0, 3.0)[None].astype(np.float32)
    for direction in (0.0, 33.0, 90.0, 225.0):
        wind = wind_vector(np.array([5.0]), np.array([direction]))
        frame = fit_wind_frame(GRID, (1000.0, 1000.0), wind, stretch=False)
        back = frame.to_map(frame.to_wind(field, wind)[:, None], wind)[:, 0]
        np.testing.assert_allclose(back, field, atol=0.05)
        assert back.sum() == pytest.approx(field.sum(), rel=0.02)


def test_the_wind_blows_along_x_in_its_frame():
    """A wind from the north carries towards smaller y; in the frame that is towards +x."""
    field = np.zeros((1, *GRID), dtype=np.float32)
    field[0, 2:5, 12] = 1.0  # south of the middle
    wind = wind_vector(np.array([5.0]), np.array([0.0]))
    frame = fit_wind_frame(GRID, (1.0, 1.0), wind, stretch=False)
    turned = frame.to_wind(field, wind)[0]
    columns = (turned.sum(axis=0) * np.arange(frame.canvas[1])).sum() / turned.sum()
    assert columns - 0.5 * (frame.canvas[1] - 1) == pytest.approx(9.5 - 3.0, abs=0.2)


def test_transform_equals_a_padded_fft_and_its_inverse_returns():
    rng = np.random.default_rng(0)
    for grid in ((8, 10), (7, 9), (16,), (4, 5, 6)):
        fields = rng.normal(size=(*grid, 3)).astype(np.float32)
        kept = choose_frequencies(grid)
        transform = make_transform(kept, fields)
        axes = tuple(range(len(grid)))
        wanted = np.fft.fftn(fields, s=kept.padded, axes=axes)[np.ix_(*kept.axes())]
        for axis, (waves, count) in enumerate(zip(kept.axes(), grid, strict=True)):
            # The origin of the phases is the centre of the grid.
            phase = np.exp(1j * np.pi * waves * (count - 1) / kept.padded[axis])
            wanted = wanted * np.expand_dims(phase, [n for n in range(wanted.ndim) if n != axis])
        wanted = wanted.reshape(kept.count, 3)
        # Float32 sums of at most a few hundred values of size one.
        pair = np.stack([wanted.real, wanted.imag], axis=1)
        np.testing.assert_allclose(transform.spectra(fields), pair, atol=1e-3)
        np.testing.assert_allclose(transform.fields(transform.spectra(fields)), fields, atol=1e-5)


def test_a_budget_keeps_the_lowest_frequencies():
    kept = choose_frequencies((100, 80), budget=2000)
    assert 1500 < kept.count <= 2000
    assert kept.highest[0] / kept.padded[0] == pytest.approx(
        kept.highest[1] / kept.padded[1], abs=0.015
    )


def test_a_grid_too_small_for_the_padding_is_refused():
    with pytest.raises(pc.PlumecastError, match="3 × 40 cells is too small"):
        choose_frequencies((3, 40))


def test_a_lift_of_nearly_empty_snapshots(monkeypatch):
    monkeypatch.setattr(lift_module, "AGE_VALUES", 0)
    fire = np.zeros((400, 6, 6))
    fire[np.setdiff1d(np.arange(400), sampled_rows(400, lift_module.LEAST_ROWS))[0], 2, 3] = 7.0
    assert fit_lift(fire).knots.tolist() == [0.0, 7.0]


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
        ({"covariates": "humidity"}, "covariate 'humidity' is missing"),
        ({"covariates": "hours"}, "covariate 'hours' is 6.0 in all training snapshots"),
    ],
)
def test_unknown_names_are_refused_with_those_known(data, choices, message):
    with pytest.raises(pc.PlumecastError, match=message):
        pc.fit_surrogate(data, "recommended", **choices)


def test_targets_return_the_smoke_they_were_made_of():
    rng = np.random.default_rng(0)
    smoke = rng.gamma(0.3, 20.0, size=(5, *GRID)).astype(np.float32)
    for names in (("log",), ("smoke",), ("log", "smoke"), ("smoke", "footprint", "log")):
        way = fit_targets(smoke, names, threshold=1.0, epsilon=0.5)
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


def test_no_smoke_at_all_is_refused(data):
    with pytest.raises(pc.PlumecastError, match="no snapshot holds smoke"):
        pc.fit_surrogate(data.assign(smoke=data.smoke * 0.0), "recommended")
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
        {"degree": 2, "lift": ("identity", "burned"), "targets": ("smoke", "log", "footprint")},
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
    fitted = pc.fit_surrogate(moist_data, degree=1, covariates=("drought", "fuel_moisture"))
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


def test_shrinkage_meets_its_limits():
    """Without snapshots the weights are the prior; without a penalty, those of least squares."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(4, 9, 2)) + 1j * rng.normal(size=(4, 9, 2))).astype(np.complex128)
    y = (rng.normal(size=(4, 9, 1)) + 1j * rng.normal(size=(4, 9, 1))).astype(np.complex128)
    prior = np.ones((4, 2, 1)) + 0j
    nothing = Equations.of(x[:, :0], y[:, :0])
    np.testing.assert_allclose(nothing.solve(0.3, prior), prior)
    exact = np.stack([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(Equations.of(x, y).solve(1e-12, prior), exact, rtol=1e-8)


def test_out_of_fold_weights_are_those_of_a_fit_without_the_fold():
    rng = np.random.default_rng(1)
    kept = choose_frequencies((6, 6))
    x, y = (
        (rng.normal(size=(kept.count, 12, c)) + 1j * rng.normal(size=(kept.count, 12, c)))
        for c in (3, 2)
    )
    folds = (slice(0, 4), slice(4, 9), slice(9, 12))
    parts = [Equations.of(x[:, rows], y[:, rows]) for rows in folds]
    systems = Systems([list(parts)], kept)
    _, without, _ = systems.solve()
    # Noise cannot be predicted: every ring and target has the largest penalty.
    alone = (parts[0] + parts[2]).solve(PENALTIES[-1] * systems.scale())
    np.testing.assert_allclose(without[0][1], alone, atol=1e-12)


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


@pytest.mark.parametrize("axis", ["y", "x"])
def test_the_wind_frame_rotates_the_right_way_on_descending_axes(data, axis):
    """The same data stored from north to south (or east to west) gives the same errors."""
    turned = data.isel({axis: slice(None, None, -1)})
    errors = [
        error(
            pc.fit_surrogate(each.isel(snapshot=slice(0, 18)), "recommended", frame="wind"),
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


def test_the_canvas_covers_the_grid_for_winds_outside_training():
    wind = wind_vector(np.full(2, 5.0), np.array([0.0, 270.0]))
    frame = fit_wind_frame(GRID, (1.0, 1.0), wind, stretch=False)
    full = np.ones((1, *GRID), dtype=np.float32)
    other = wind_vector(np.array([5.0]), np.array([225.0]))
    back = frame.to_map(frame.to_wind(full, other)[:, None], other)[0, 0]
    assert back[1:-1, 1:-1].min() > 0.5  # the rim is interpolated with zeros outside
    for direction in (0.0, 90.0, 180.0, 270.0):  # quarter turns move cells onto cells
        turn = wind_vector(np.array([5.0]), np.array([direction]))
        spot = np.zeros((1, *GRID), dtype=np.float32)
        spot[0, 5, 6] = 1.0
        if GRID[0] % 2 == GRID[1] % 2:
            assert frame.to_wind(spot, turn).max() == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(pc.PlumecastError, match="not \\(1, 2\\)"):
        frame.to_wind(full, np.zeros((3, 2)))


def test_scalars_follow_the_dimensions_of_the_fire(data):
    """Fields by hour and member, one wind per member: each pair is predicted like a snapshot."""
    fitted = pc.fit_surrogate(data, "recommended", frame="wind", layers=1)
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


def test_a_saved_surrogate_still_detects(data, tmp_path):
    fitted = pc.fit_surrogate(data, "recommended", layers=1)
    expected = fitted.predict_footprint(data)
    loaded = pc.load_surrogate(fitted.save(tmp_path / "detector.plume"))
    assert loaded.detects
    np.testing.assert_array_equal(loaded.predict_footprint(data), expected)
    np.testing.assert_array_equal(fitted.on_device("cpu").predict_footprint(data), expected)


def test_any_coordinate_may_be_called_fire_and_any_may_be_a_single_value(data):
    fitted = pc.fit_surrogate(data.assign_coords(drought="medium"), "recommended", frame="map")
    named = data.time_since_ignition.rename(snapshot="fire").assign_coords(fire=np.arange(24))
    assert fitted.predict(named.drop_vars("drought")).sizes["fire"] == 24


def test_numbers_kept_as_objects_are_numbers(data):
    moist_data = moist(data)
    moist_data["fuel_moisture"] = moist_data.fuel_moisture.astype(object)
    fitted = pc.fit_surrogate(moist_data, degree=1, covariates="fuel_moisture")
    assert fitted.covariates[0].kind == "number"
    assert float(fitted.predict(moist_data * 0.0).max()) == 0.0


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
