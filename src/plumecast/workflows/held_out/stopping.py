"""The learning curve of a surrogate that takes in new fires, and what more fires would gain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import xarray as xr

from plumecast.data.covariates import extrapolating
from plumecast.scores.learning_curve import FEWEST, Forecast, Point, forecast
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.update import group_name
from plumecast.workflows.evaluate import evaluate_at
from plumecast.workflows.held_out.record import stored_scores

CURVE = "learning_curve"
"""Entry of a training record: scores of new ignitions, each predicted before it was added."""

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def score_new(surrogate: Surrogate, fires: xr.Dataset) -> dict[str, Any] | None:
    """Scores of fires that a surrogate does not contain; None if it has no thresholds.

    IoU and error are medians over snapshots of the first output.
    """
    first = surrogate.output(surrogate.outputs.names[0])
    thresholds = first.record.thresholds
    if thresholds is None:
        return None
    with extrapolating():
        result = evaluate_at({"before": (first, thresholds)}, fires)
    score = result.scores[0]
    count = ignition_count(surrogate)
    return {"ignitions": count, "iou": score.deployable_iou, "error": score.snapshot_error}


def ignition_count(surrogate: Surrogate) -> int:
    """Number of ignitions (or other groups) that a surrogate has learned."""
    return len(surrogate.training.get(group_name(surrogate.training), ()))


def curve_points(training: Mapping[str, Any]) -> list[Point]:
    """1 − IoU of new ignitions, and of the out-of-fold predictions of the last fit."""
    points = [
        Point(float(item["ignitions"]), 1.0 - float(item["iou"]))
        for item in training.get(CURVE, [])
        if math.isfinite(item["iou"])
    ]
    recorded = stored_scores(training)
    if recorded is not None and recorded.folds is not None:
        groups, iou = recorded.folds.groups, recorded.evaluation.scores[0].deployable_iou
        if groups > 1 and math.isfinite(iou):
            learned = groups * (1.0 - 1.0 / recorded.folds.folds)
            points.append(Point(learned, 1.0 - iou, float(groups)))
    return points


def forecast_iou(surrogate: Surrogate, more: int) -> Forecast | None:
    """What `more` ignitions would gain; None while there are too few points."""
    return forecast(curve_points(surrogate.training), ignition_count(surrogate), more)


def recommendation(surrogate: Surrogate, more: int, target: float | None = None) -> str:
    """What more ignitions would gain, in one line."""
    outlook = forecast_iou(surrogate, more)
    if outlook is None:
        points = len(curve_points(surrogate.training))
        return (
            f"cannot say yet what more ignitions would gain: {points} of at least {FEWEST} scores "
            "of ignitions that a fit had not seen"
        )
    name = _WORDS[more] if more < len(_WORDS) else str(more)
    now, later = 1.0 - outlook.now, 1.0 - outlook.later
    text = (
        f"{name} more ignition{'' if more == 1 else 's'}: IoU {now:.2f} ± {outlook.now_spread:.2f} "
        f"→ {later:.2f} ± {outlook.later_spread:.2f}"
    )
    if not outlook.is_clear:
        text += "; the gain is not clear from these fires"
    return text if target is None else f"{text}; {_towards(outlook, target)}"


def _towards(outlook: Forecast, target: float) -> str:
    needed = outlook.ignitions_for(1.0 - target)
    if needed is None:
        return f"IoU {target:g} is out of reach of more fires alone"
    if needed == 0:
        return f"IoU {target:g} is reached: stop"
    return f"IoU {target:g} needs about {needed} more"
