"""What results record of their surrogate: its identity, its training, what its error bars promise.

All values are numbers or text, so that any file can hold them as attributes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.names import SIMULATION
from plumecast.surrogate.error_bars.interval import promise_text
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.held_out.evaluation import recorded_evaluation
from plumecast.workflows.held_out.verdict import Verdict, judge

MODEL = "model_id"
COVERAGE = 0.9
"""Coverage for which the promise of the error bars is stated."""

NO_ERROR_BARS = "not calibrated"


def model_record(surrogate: Surrogate) -> dict[str, Any]:
    """Attributes `model_…` of results that were made with a surrogate."""
    training = surrogate.training
    found: dict[str, Any] = {
        MODEL: model_id(surrogate),
        "model_preset": str(surrogate.settings.get("preset") or "own settings"),
        "model_version": str(training.get("plumecast", "unknown")),
        "model_trained_on": str(training.get("source") or "unknown"),
        "model_data_version": str(training.get("data_version") or "unknown"),
        "model_snapshots": int(training.get("snapshots", 0)),
        "model_ignitions": len(training.get("ignition_id") or ()),
        "model_output": ", ".join(surrogate.outputs.names),
        "model_weather": _weather(surrogate),
        "model_error_bars": NO_ERROR_BARS,
    }
    interval = recorded_interval(surrogate.outputs.fields[0].attrs)
    if interval is not None:
        found["model_checkpoint_interval_h"] = float(interval)
    seed = (training.get(SIMULATION) or {}).get("seed")
    if seed is not None:
        found["model_seed"] = int(seed)
    if surrogate.error_bars is not None:
        found["model_error_bars"] = promise_text(surrogate.error_bars, COVERAGE)
    verdict = recorded_verdict(surrogate)
    if verdict is not None:
        found |= {"model_verdict": verdict.text, "model_beats_baselines": int(verdict.beats)}
    return found


def recorded_verdict(surrogate: Surrogate) -> Verdict | None:
    """The verdict on fires that a fit has not seen, from the scores that `train` recorded."""
    checks = (surrogate.training.get(name) for name in ("out_of_fold", "validation"))
    known = next((item for item in checks if item and item.get("scores")), None)
    return None if known is None else judge(recorded_evaluation(known).scores)


def model_id(surrogate: Surrogate) -> str:
    """The same for surrogates with the same settings and training record, with or without files."""
    known = json.dumps([surrogate.settings, surrogate.training], sort_keys=True, default=str)
    return hashlib.sha256(known.encode()).hexdigest()[:12]


def _weather(surrogate: Surrogate) -> str:
    """What the surrogate uses of the weather of a fire, in words."""
    if surrogate.operator.needs_weather:
        return "hourly wind and mixing depth of every fire"
    if surrogate.operator.needs_wind:
        return "mean wind of every fire"
    if surrogate.scenario is not None:
        return f"only the label '{surrogate.scenario}' of every fire"
    return "none: fires are taken to burn in the weather of the training fires"
