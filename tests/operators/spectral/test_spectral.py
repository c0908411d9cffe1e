"""The spectral operator: it recovers a convolution, is equivariant, adds up parts of its normal
equations, and predicts no smoke without a fire."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.operators.family import NOTHING, TrainingSet
from plumecast.operators.lift import fit_lift
from plumecast.operators.spectral.fit import fit_spectral
from plumecast.operators.targets import Targets
from support.convolved_fires import fires, plume, snapshots


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return snapshots()


@pytest.fixture(scope="module")
def surrogate(data):
    return pc.fit_surrogate(data.isel(snapshot=slice(0, 20)), "recommended", layers=2)


def test_a_convolution_of_the_lift_is_found():
    """One layer represents it exactly, but for the penalty: the out-of-fold error is below 5 %."""
    fire = fires(24)
    targets = plume(fire)[:, None]
    lift = fit_lift(fire, bins=4)
    training = TrainingSet(fire, targets, np.arange(24) % 6, NOTHING)
    _, out_of_fold, _ = fit_spectral(training, lift, layers=1)
    assert np.linalg.norm(out_of_fold[:] - targets) < 0.05 * np.linalg.norm(targets)


def test_prediction_moves_with_the_fire(data):
    """Exact for one layer; further layers depend on the edge of the grid where smoke leaves it."""
    surrogate = pc.fit_surrogate(data, "recommended", layers=1)
    fire = data.time_since_ignition.values[:1]
    moved = np.roll(fire, (2, 3), axis=(1, 2))
    high = xr.DataArray(
        np.concatenate([fire, moved]),
        dims=("snapshot", "y", "x"),
        coords={"drought": ("snapshot", ["high", "high"])},
    )
    here, there = surrogate.predict(high).values
    shifted = np.roll(here, (2, 3), axis=(0, 1))
    # Float32 transforms; the rim that left or entered the grid is not compared.
    np.testing.assert_allclose(there[2:, 3:], shifted[2:, 3:], atol=1e-4 * here.max())


def test_it_beats_every_baseline_on_unseen_fires(surrogate, data):
    train, test = data.isel(snapshot=slice(0, 20)), data.isel(snapshot=slice(20, None))
    ours = pc.scores.relative_error(surrogate.predict(test), test.smoke)
    for name in ("mean-field", "nearest-fire", "gp-images", "gp-codes"):
        theirs = pc.scores.relative_error(
            pc.surrogate.fit_baseline(name, train).predict(test), test.smoke
        )
        assert ours < 0.7 * theirs
    tau = pc.scores.smoke_threshold(train.smoke)
    scores = pc.scores.score_footprints(surrogate.predict_footprint(test), test.smoke, tau)
    assert float(scores.auc.median()) > 0.95


def test_every_scenario_has_its_own_weights(surrogate, data):
    """The same fire under the drier drought makes about twice the smoke, as in training."""
    pair = data.isel(snapshot=slice(24, 26))
    high, low = surrogate.predict(pair).sum(("y", "x")).values
    assert high / low == pytest.approx(2.0, rel=0.15)


def test_lift_is_a_partition_of_the_burned_ages():
    """The hats of one age sum to one from the first knot on, and to less below it."""
    fire = fires(5)
    lift = fit_lift(fire, ("age-bins",), (), bins=3)
    total = lift.fields(np.moveaxis(fire, 0, -1)).sum(axis=-1).transpose(2, 0, 1)
    old = fire >= lift.knots[1]
    np.testing.assert_allclose(total[old], 1.0, atol=1e-6)
    assert (total[fire == 0.0] == 0.0).all()


def test_the_blend_uses_the_log_target_for_thin_and_the_smoke_target_for_thick_smoke():
    targets = np.zeros((1, 3, 2))
    targets[0, 0] = np.log1p([0.01, 100.0])
    targets[0, 1] = [5.0, 120.0]
    way = Targets(("log", "smoke", "footprint"), 1.0, 0.1, largest=1000.0, blend=1.0)
    thin, thick = way.smoke(targets)[0]
    assert thin == pytest.approx(0.01, abs=0.06)
    assert thick == pytest.approx(120.0, abs=0.5)


def test_one_pass_gives_smoke_and_score(surrogate, data):
    smoke, score = surrogate.predict_both(data)
    xr.testing.assert_identical(smoke, surrogate.predict(data))
    xr.testing.assert_identical(score, surrogate.predict_footprint(data))
    coded = pc.fit_surrogate(data, "paper-linear")
    xr.testing.assert_identical(*coded.predict_both(data))


def test_unknown_and_missing_scenarios_are_refused(surrogate, data):
    test = data.isel(snapshot=[20])
    with pytest.raises(pc.PlumecastError, match="drought 'mild' was not in training; known are"):
        surrogate.predict(test.assign_coords(drought=("snapshot", ["mild"])))
    with pytest.raises(pc.PlumecastError, match="trained on the droughts high, low"):
        surrogate.predict(test.time_since_ignition.values)


def test_coded_surrogates_have_no_footprint(data):
    coded = pc.fit_surrogate(data, "paper-linear")
    assert not coded.detects
    with pytest.raises(pc.PlumecastError, match="no footprint target"):
        coded.predict_footprint(data)


def test_a_drought_without_smoke_predicts_none(data):
    """All fires of one drought clean: no smoke, not NaN."""
    clean = data.copy()
    clean["smoke"] = clean.smoke.where(clean.drought == "high", 0.0)
    predicted = pc.fit_surrogate(clean, "recommended", layers=1).predict(clean)
    assert float(predicted.sel(snapshot=clean.drought == "low").max()) == 0.0
    assert np.isfinite(predicted.values).all()


def test_output_below_zero_is_fitted_without_logarithm_and_footprint(data):
    shifted = data.assign(temperature=data.smoke - 3.0)
    with pytest.warns(UserWarning, match="'temperature' has values down to -3 in training"):
        fitted = pc.fit_surrogate(shifted, "recommended", outputs="temperature", layers=1)
    assert fitted.predict(data).min() < 0.0
    assert not fitted.detects


def test_drought_may_be_a_variable_of_the_data_set(surrogate, data):
    test = data.isel(snapshot=slice(20, 24))
    np.testing.assert_array_equal(
        surrogate.predict(test.reset_coords("drought")), surrogate.predict(test)
    )


def test_one_drought_needs_no_label_and_is_remembered(data):
    high = data.isel(snapshot=slice(0, None, 2))
    fitted = pc.fit_surrogate(high, "recommended", layers=1)
    array = high.time_since_ignition.values[10:]
    assert fitted.predict(array).shape == array.shape
    with pytest.raises(pc.PlumecastError, match="drought 'low' was not in training"):
        fitted.predict(data)
