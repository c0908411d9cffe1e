"""Evaluation: thresholds from validation, scores on test, nothing the surrogate has seen."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.data.split import split_by_fire
from plumecast.scores.footprint import (
    choose_decision_threshold,
    relative_error,
    score_footprints,
    smoke_threshold,
    snapshot_relative_errors,
)
from plumecast.scores.optical_depth import with_log_smoke
from plumecast.scores.reading import Reading
from plumecast.simulator.fire import simulate_fire, terrain
from plumecast.simulator.landscape import Landscape
from plumecast.simulator.weather import weather
from plumecast.surrogate.baselines import BASELINES, fit_baseline
from plumecast.surrogate.fit import fit_surrogate
from plumecast.workflows.evaluate import evaluate, evaluate_at, fit_thresholds
from plumecast.workflows.held_out.record import (
    MODEL,
    NO_ERROR_BARS,
    model_record,
    recorded_evaluation,
)
from plumecast.workflows.held_out.unseen import predict_unseen
from support.quantities import time_mean
from support.snapshots import CHECKPOINT, make_snapshots, select_fire


@pytest.fixture(scope="module")
def linear(split):
    return fit_surrogate(split.train, "paper-linear")


@pytest.fixture(scope="module")
def all_scores(linear, split):
    """The surrogate beside every baseline."""
    baselines = {name: fit_baseline(name, split.train) for name in BASELINES}
    return evaluate({"paper-linear": linear} | baselines, split.validation, split.test)


@pytest.fixture(scope="module")
def oracle(snapshots):
    """Knows the smoke of every fire and says it was trained on none: every score is perfect."""
    return replace(fit_baseline("nearest-fire", snapshots), training={})


def test_surrogate_is_scored_beside_every_baseline(all_scores, split):
    assert [score.name for score in all_scores.scores] == ["paper-linear", *BASELINES]
    assert list(all_scores.details) == ["paper-linear", *BASELINES]
    assert all_scores.snapshots == split.test.sizes["snapshot"] == 16
    errors = {score.name: score.relative_error for score in all_scores.scores}
    assert errors["paper-linear"] < errors["mean-field"]


def test_scores_are_those_of_the_footprint_functions(all_scores, linear, split):
    observed, predicted = split.test.smoke, linear.predict(split.test)
    tau = smoke_threshold(split.validation.smoke, 0.95)
    guess = linear.predict(split.validation)
    alpha = choose_decision_threshold(guess, split.validation.smoke, tau)
    each = score_footprints(predicted, observed, tau, alpha)
    score = all_scores.scores[0]
    assert all_scores.smoke_threshold == tau
    assert score.decision_threshold == alpha
    assert score.auc == np.nanmedian(each.auc)
    assert score.iou == np.median(each.iou)
    assert score.deployable_iou == np.median(each.deployable_iou)
    assert score.relative_error == relative_error(predicted, observed)
    assert score.snapshot_error == np.nanmedian(snapshot_relative_errors(predicted, observed))
    details = all_scores.details["paper-linear"]
    np.testing.assert_array_equal(details.fire_id, split.test.fire_id)
    assert float(details.iou.median()) == score.iou
    assert details.attrs["smoke_threshold"] == tau


def test_perfect_predictions_score_perfectly(oracle, split):
    (score,) = evaluate({"oracle": oracle}, split.validation, split.test).scores
    assert (score.auc, score.iou) == (1.0, 1.0)
    assert (score.relative_error, score.snapshot_error) == (0.0, 0.0)
    # The threshold that is best for the validation fires is τ itself: prediction = observation.
    assert score.deployable_iou == 1.0


def test_snapshots_without_smoke_are_left_out_of_the_auc_and_counted(oracle, snapshots, split):
    silent = split.test.copy(deep=True)
    silent.smoke.values[:3] = 0.0
    result = evaluate({"oracle": oracle}, split.validation, silent)
    empty = np.count_nonzero(~(silent.smoke > result.smoke_threshold).any(["y", "x"]))
    assert empty >= 3
    assert result.scores[0].auc_undefined == empty
    assert result.scores[0].auc == 1.0


def test_thresholds_come_from_validation_alone(linear, split):
    thresholds = fit_thresholds(linear, split.validation)
    doubled = split.test.assign(smoke=(2.0 * split.test.smoke).assign_attrs(units="ug m-3"))
    for test in (split.test, doubled):
        result = evaluate({"linear": linear}, split.validation, test)
        assert result.smoke_threshold == thresholds.smoke
        assert result.scores[0].decision_threshold == thresholds.decision


@pytest.mark.parametrize("captured", [0.5, 0.95])
def test_threshold_captures_the_asked_share_of_the_footprint(linear, split, captured):
    tau = fit_thresholds(linear, split.validation, captured).smoke
    smoke = split.validation.smoke.values.reshape(split.validation.sizes["snapshot"], -1)
    smoke = smoke[(smoke > 0.0).any(axis=1)]
    shares = (smoke > tau).sum(axis=1) / (smoke > 0.0).sum(axis=1)
    assert captured < shares.mean() < 1.0


REFUSED = {
    "captured": (lambda split: {"captured": 1.5}, r"captured=1.5 is not within \(0, 1\)"),
    "leak into test": (
        lambda split: {"test": split.train},
        r"trained on 3 ignition_id of these snapshots, the first 'ignition-\d\d'; score it on",
    ),
    "leak into validation": (
        lambda split: {"validation": split.train},
        r"trained on 3 ignition_id of these snapshots",
    ),
    "nothing": (lambda split: {"surrogates": {}}, "there is no surrogate to evaluate"),
    "empty": (
        lambda split: {"test": split.test.isel(snapshot=slice(0, 0))},
        "there are no snapshots to score",
    ),
    "several outputs": (
        lambda split: {
            "surrogates": {
                "both": fit_surrogate(with_log_smoke(split.train), outputs=["smoke", "log_smoke"])
            }
        },
        "footprints need one output, this surrogate has smoke, log_smoke",
    ),
    "missing smoke": (
        lambda split: {"validation": split.validation.drop_vars("smoke")},
        "variable 'smoke' is missing",
    ),
    "hours": (
        lambda split: {"reading": Reading(hours=[2.0])},
        "scores are of the snapshots as they are stored",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_scored_is_refused_by_name(linear, split, name):
    changes, message = REFUSED[name]
    asked = {"surrogates": {"a": linear}, "validation": split.validation, "test": split.test}
    with pytest.raises(PlumecastError, match=message):
        evaluate(**asked | changes(split))


@pytest.fixture(scope="module")
def one_ignition(snapshots):
    """A surrogate of one fire, that fire, and the same ignition under another weather."""
    low, high = (select_fire(snapshots, f"fire-00-{drought}") for drought in ("low", "high"))
    return fit_surrogate(low, penalty=1.0), low, high


def test_other_weather_of_a_training_ignition_is_a_leak_unless_asked_otherwise(one_ignition, split):
    surrogate, low, high = one_ignition
    message = "trained on 1 ignition_id of these snapshots, the first 'ignition-00'"
    with pytest.raises(PlumecastError, match=message):
        evaluate({"one": surrogate}, split.test, high)
    assert evaluate({"one": surrogate}, high, high, by="fire_id").snapshots == 4
    with pytest.raises(PlumecastError, match=r"trained on 1 fire_id .* the first 'fire-00-low'"):
        evaluate({"one": surrogate}, high, low, by="fire_id")


def test_part_without_the_coordinate_that_would_show_a_leak_is_refused(one_ignition, split):
    surrogate, low, _ = one_ignition
    with pytest.raises(PlumecastError, match="ignition_id"):
        evaluate({"one": surrogate}, split.test, low.drop_vars("ignition_id"))


def test_loose_arguments_of_earlier_versions_still_work(linear, split):
    heard: list[str] = []
    before = split.test.copy(deep=True)
    parts = ({"linear": linear}, split.validation, split.test)
    with (
        pytest.deprecated_call(match="use reading=Reading"),
        pytest.deprecated_call(match="use resources=Resources"),
    ):
        old = evaluate(*parts, thresholds=[1.0, 5.0], quantity="sum", progress=heard.append)
    new = evaluate(*parts, reading=Reading("sum", (1.0, 5.0)))
    xr.testing.assert_identical(split.test, before)
    assert old.scores[0].exceedances == new.scores[0].exceedances
    assert heard == ["linear"]


@pytest.mark.parametrize("quantity", ["sum", "mean", "dose"])
def test_unseen_smoke_has_the_scores_of_evaluate_at_any_threshold(linear, split, quantity):
    reading, chosen = Reading(quantity, [3.0]), fit_thresholds(linear, split.validation)
    score = evaluate_at({"linear": (linear, chosen)}, split.test, reading=reading).scores[0]
    unseen = predict_unseen(linear, split.test, CHECKPOINT, most=16)
    found = unseen.above(3.0, quantity)
    assert found == score.exceedances[1]
    curve = np.array(unseen.roc(3.0, quantity))
    assert (np.diff(curve, axis=0) >= 0.0).all()
    assert np.abs(curve - [0.0, 1.0]).sum(axis=1).min() < 1.0
    with pytest.raises(PlumecastError, match="trained on all fires of the store"):
        predict_unseen(linear, split.train, CHECKPOINT, most=16)


def test_order_of_the_test_snapshots_changes_no_score(linear, split):
    order = np.random.default_rng(3).permutation(16)
    first, other = (
        evaluate({"linear": linear}, split.validation, test).scores[0]
        for test in (split.test, split.test.isel(snapshot=order))
    )
    # The sums of the relative error are taken in another order.
    assert other.relative_error == pytest.approx(first.relative_error, rel=1e-12)
    names = ("auc", "iou", "deployable_iou", "decision_threshold", "auc_undefined")
    assert [getattr(other, name) for name in names] == [getattr(first, name) for name in names]


# -- the same run with other checkpoints: sums differ, what people read does not


LEVELS = (0.05, 0.2)
GS2 = 122


def hourly(snapshots: xr.Dataset) -> xr.Dataset:
    """The same fires with a checkpoint every hour: a concentration that is steady in each interval
    of six hours is counted six times."""
    changed = snapshots.copy()
    changed["smoke"] = (snapshots.smoke * CHECKPOINT).assign_attrs(snapshots.smoke.attrs)
    changed["smoke"].attrs[INTERVAL] = 1.0
    return changed


@pytest.fixture(scope="module")
def simulated() -> dict[float, xr.Dataset]:
    """One simulated fire of 24 h with a checkpoint every 1 h and every 6 h."""
    y, x = np.mgrid[0:80, 0:100] * 300.0
    elevation = 2000.0 + 150.0 * np.sin(x / 2500.0) * np.cos(y / 4000.0)
    land = Landscape(elevation, np.full((80, 100), GS2, dtype=np.int16), cell=300.0)
    ground = terrain(land)
    return {
        every: simulate_fire(
            land, weather("high"), (30, 40), int(24 / every), interval=every, ground=ground
        )
        for every in (1.0, 6.0)
    }


@pytest.mark.parametrize("quantity", ["mean", "dose"])
def test_a_simulated_run_reads_the_same_with_every_interval(simulated, quantity):
    """The total over the cells is that of all steps of the simulator; within a cell, the frames
    say how it is spread, and a plume that is seen every six hours may pass between two of them."""
    often, seldom = (simulated[every].smoke for every in (1.0, 6.0))
    read = [pc.scores.as_quantity(field, quantity).values for field in (often, seldom)]
    hourly, sparse = (field.sum(axis=(1, 2)) for field in read)
    np.testing.assert_allclose(sparse, hourly[5::6], rtol=1e-3)  # the floor of each store
    apart = np.abs(read[1][-1] - read[0][-1]).sum() / read[0][-1].sum()
    assert apart < 0.35  # 0.2 when this was written
    assert often.values[-1].sum() / seldom.values[-1].sum() > 3.0


@pytest.fixture(scope="module")
def ensembles() -> dict[float, xr.Dataset]:
    snapshots = make_snapshots(fires=24)
    return {CHECKPOINT: snapshots, 1.0: hourly(snapshots)}


def evaluated(snapshots: xr.Dataset, reading: Reading) -> tuple:
    """The scores of a linear surrogate, the surrogate and the test part."""
    parts = split_by_fire(snapshots)
    surrogate = pc.fit_surrogate(parts.train, "paper-linear")
    result = pc.evaluate({"a": surrogate}, parts.validation, parts.test, reading=reading)
    return result, surrogate, parts.test


def exceedances(
    snapshots: xr.Dataset, quantity: str = "mean", interval: float | None = None
) -> list[tuple[float, ...]]:
    result, _, _ = evaluated(snapshots, Reading(quantity, LEVELS, interval=interval))
    assert result.quantity == quantity
    first, *others = result.scores[0].exceedances
    assert first.quantity == "sum"
    assert {item.quantity for item in others} == {quantity}
    return [(item.hit_rate, item.false_alarm_ratio, item.bias, item.iou) for item in others]


def test_exceedances_of_the_sum_depend_on_the_interval(ensembles):
    one, other = (exceedances(data, quantity="sum") for data in ensembles.values())
    assert one != other


def test_the_mean_is_the_default_and_is_what_its_formula_says(ensembles):
    result, surrogate, test = evaluated(ensembles[CHECKPOINT], Reading(None, LEVELS))
    called, present = time_mean(surrogate.predict(test)), pc.scores.as_quantity(test.smoke, "mean")
    for item in result.scores[0].exceedances[1:]:
        bias = (called > item.threshold).sum() / (present > item.threshold).sum()
        assert item.bias == pytest.approx(bias)
    record = result.record()
    assert recorded_evaluation(record).quantity == "mean"
    # Records of earlier versions have no quantity: they are of the sum.
    del record["quantity"]
    for item in record["scores"][0]["exceedances"]:
        del item["quantity"]
    earlier = recorded_evaluation(record)
    assert earlier.quantity == earlier.scores[0].exceedances[0].quantity == "sum"


def test_smoke_without_an_interval_needs_it_stated(ensembles):
    unknown = ensembles[CHECKPOINT].copy()
    unknown["smoke"] = unknown.smoke.copy().drop_attrs().assign_attrs(units="ug m-3")
    with pytest.raises(pc.PlumecastError, match=r"checkpoint_interval is missing: .*not record"):
        exceedances(unknown)
    with pytest.raises(pc.PlumecastError, match=r"does not record"):
        pc.train_surrogate(unknown, "paper-linear", reading=Reading(thresholds=[1.0]))
    stated = exceedances(unknown, interval=CHECKPOINT)
    # Without a recorded interval, training knows no doses: smoke is taken to grow evenly.
    np.testing.assert_allclose(stated, exceedances(ensembles[CHECKPOINT]), rtol=0.15)


def test_an_interval_that_contradicts_the_data_is_refused(ensembles):
    words = "^checkpoint_interval=1 contradicts the 6 h that 'smoke' records; leave it out$"
    with pytest.raises(pc.PlumecastError, match=words):
        exceedances(ensembles[CHECKPOINT], interval=1.0)


# -- what results record of their surrogate


def test_a_surrogate_has_the_same_identity_after_saving(tmp_path):
    fires = make_snapshots(fires=8)
    one = pc.fit_surrogate(fires, "paper-linear")
    record = model_record(one)
    one.save(tmp_path / "one.plume")
    assert model_record(pc.load_surrogate(tmp_path / "one.plume")) == record
    assert model_record(pc.fit_surrogate(fires, "paper-linear"))[MODEL] == record[MODEL]
    fewer = pc.fit_surrogate(fires.isel(snapshot=slice(0, 24)), "paper-linear")
    assert model_record(fewer)[MODEL] != record[MODEL]


def test_the_record_warns_of_a_surrogate_that_trivial_baselines_beat():
    fitted = pc.fit_surrogate(make_snapshots(fires=8), "paper-linear")
    names = ("paper-linear", "mean-field", "nearest-fire")

    def judged(*overlaps):
        numbers = ("auc", "iou", "deployable_iou", "decision_threshold", "relative_error")
        scores = [
            dict.fromkeys(numbers, iou) | {"name": name, "snapshot_error": 1.0 - iou}
            | {"auc_undefined": 0}
            for name, iou in zip(names, overlaps, strict=True)
        ]  # fmt: skip
        record = {"scores": scores, "snapshots": 8, "smoke_threshold": 1.0, "captured": 0.95}
        return model_record(replace(fitted, training=fitted.training | {"validation": record}))

    assert "model_verdict" not in model_record(fitted)
    assert judged(0.9, 0.5, 0.4)["model_beats_baselines"] == 1
    poor = judged(0.3, 0.5, 0.4)
    assert poor["model_beats_baselines"] == 0
    assert "do not rely on it" in poor["model_verdict"]


def test_the_record_states_training_and_can_be_an_attribute():
    record = model_record(pc.fit_surrogate(make_snapshots(fires=8), "paper-linear"))
    assert record["model_snapshots"] == 32
    assert record["model_ignitions"] == 4
    assert record["model_checkpoint_interval_h"] == CHECKPOINT
    assert record["model_error_bars"] == NO_ERROR_BARS
    assert json.loads(json.dumps(record)) == record
    assert None not in record.values()
