"""What results record of their surrogate."""

from __future__ import annotations

import json
from dataclasses import replace

import plumecast as pc
from plumecast.workflows.held_out.record import MODEL, NO_ERROR_BARS, model_record
from support.snapshots import CHECKPOINT, make_snapshots


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
