"""The paper's table on this data: times, choices and scores of every method, ours beside theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.operators.baselines import GaussianProcess
from plumecast.operators.coded.monomials import monomials
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.pca import projection_error
from plumecast.operators.settings import PRESETS
from plumecast.studies import paper
from plumecast.studies.cases.sensitivity import penalty_sweep, std_sweep
from plumecast.studies.context import Context
from plumecast.studies.figures import style
from plumecast.studies.methods.literal import literal_quadratic, too_large
from plumecast.studies.methods.methods import HYPERPARAMETERS, fitted, quadratic, title_of
from plumecast.studies.methods.scoring import outcome
from plumecast.studies.table import rows_of, tidy
from plumecast.surrogate.surrogate import Surrogate

LITERAL = "paper-quadratic-literal"

COLUMNS = {
    "method": ("method", "1"),
    "title": ("what it is", "1"),
    "hyperparameters": ("what is chosen", "1"),
    "choices": ("values chosen", "1"),
    "auc": ("median AUC", "1"),
    "iou": ("median IoU at the ROC point nearest (0, 1)", "1"),
    "deployable_iou": ("median IoU at one threshold from validation", "1"),
    "decision_threshold": ("that threshold", "1"),
    "median_error": ("median over snapshots of the relative error", "1"),
    "relative_error": ("relative error of all snapshots together", "1"),
    "auc_undefined": ("snapshots without an AUC", "1"),
    "paper_auc": ("AUC in the paper", "1"),
    "paper_iou": ("IoU in the paper", "1"),
    "paper_encoding": ("encoding in the paper", "s"),
    "paper_training": ("training in the paper", "s"),
    "paper_tuning": ("tuning in the paper", "s"),
    "encoding": ("encoding", "s"),
    "training": ("training without encoding", "s"),
    "tuning": ("tuning", "s"),
    "predict_ms": ("prediction of a snapshot", "ms"),
}
CLOCKS = ("encoding", "training", "tuning", "predict_ms")


def run(context: Context) -> xr.Dataset:
    """Every method's row."""
    rows = [_row(context, name) for name in context.methods]
    facts: dict[str, Any] = {}
    if context.limits.literal:
        row, facts = _literal_row(context)
        rows.append(row)
    table = tidy(rows, COLUMNS, clocks=CLOCKS)
    return table.assign_attrs(
        smoke_threshold=context.smoke_threshold,
        captured=context.captured,
        test_snapshots=int(context.split.test.sizes[SNAPSHOT]),
        paper_smoke_threshold=paper.SMOKE_THRESHOLD,
        penalties_scanned=len(quadratic(context).scan.penalties),
        **_projection_errors(context),
        **facts,
    )


def _row(context: Context, name: str) -> dict[str, Any]:
    made, found = fitted(context, name), outcome(context, name)
    known = paper.TABLE.get(name)
    row: dict[str, Any] = {
        "method": name,
        "title": title_of(name),
        "hyperparameters": HYPERPARAMETERS.get(name, "weights, α"),
        "choices": _choices(made.surrogate),
        "auc": found.median("auc"),
        "iou": found.median("iou"),
        "deployable_iou": found.median("deployable_iou"),
        "decision_threshold": found.decision_threshold,
        "median_error": found.median("relative_error"),
        "relative_error": found.relative_error,
        "auc_undefined": int(np.isnan(found.scores.auc.values).sum()),
        "predict_ms": 1e3 * found.seconds["predicting"] / found.snapshots,
        **{step: made.seconds.get(step) for step in ("encoding", "training")},
        "tuning": made.seconds.get("tuning", 0.0)
        + found.seconds["threshold"]
        + _swept(context, name),
    }
    if known is not None:
        row |= {"paper_auc": known.auc, "paper_iou": known.iou, "paper_encoding": known.encoding}
        row |= {"paper_training": known.training, "paper_tuning": known.tuning}
    return row


def _swept(context: Context, name: str) -> float:
    """Seconds of scoring the grid of a method's choices on validation."""
    if name == "paper-linear":
        return std_sweep(context)[1]
    return penalty_sweep(context)[1] if name == "paper-quadratic" else 0.0


def _choices(surrogate: Surrogate) -> str:
    training, operator = surrogate.training, surrogate.operator
    parts = []
    if "fire_rank" in training:
        parts.append(f"r = {training['fire_rank']}, r̃ = {training['smoke_rank']}")
    if training.get("penalty"):
        parts.append(f"λ = {training['penalty']:.3g}")
    process = operator.code_map if isinstance(operator, CodedOperator) else operator
    if isinstance(process, GaussianProcess):
        parts.append(f"l = {process.length_scale:.3g}")
    if "layers" in surrogate.settings and surrogate.settings.get("family") == "spectral":
        parts.append(f"{surrogate.settings['layers']} layers")
    return ", ".join(parts)


def _literal_row(context: Context) -> tuple[dict[str, Any], dict[str, Any]]:
    """The paper's quadratic fit as written: timed once, its tuning a solve for every penalty.

    The normal equations are formed once; every penalty of the scan would be solved anew.
    """
    path = quadratic(context)
    row: dict[str, Any] = {
        "method": LITERAL,
        "title": "Quadratic, literal",
        "hyperparameters": HYPERPARAMETERS["paper-quadratic"],
        "choices": _choices(fitted(context, "paper-quadratic").surrogate),
    }
    problem = too_large(path.inputs.rank)
    if problem is not None:
        return row, {"literal_problem": problem}
    context.tell("the paper's literal quadratic fit")
    made = literal_quadratic(path.path.codes, path.path.targets, path.scan.best)
    fires = context.split.validation[FIRE].values
    codes = path.inputs.encode(fires.reshape(fires.shape[0], -1).astype(np.float64))
    operator = fitted(context, "paper-quadratic").surrogate.operator
    assert isinstance(operator, CodedOperator)
    ours = operator.code_map.predict(codes)
    theirs = monomials(codes, 2) @ made.weights
    row |= {
        "training": made.forming + made.solving,
        "tuning": made.forming + made.solving * len(path.scan.penalties),
    }
    facts = {
        "literal_difference": float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)),
        "literal_features": int(made.weights.shape[0]),
    }
    return row, facts


def _projection_errors(context: Context) -> dict[str, float]:
    """Ranks of 95 % std and what they leave out on validation, as the paper documents them."""
    rules, validation = PRESETS["paper-linear"].own, context.split.validation
    facts: dict[str, float] = {}
    bases = context.encodings.bases(rules.fire, rules.smoke)
    for side, name, basis in zip(("fire", "smoke"), (FIRE, SMOKE), bases, strict=True):
        values = validation[name].values
        facts[f"{side}_rank"] = basis.rank
        facts[f"{side}_projection_error"] = projection_error(
            basis, values.reshape(values.shape[0], -1)
        )
    return facts


def figures(found: xr.Dataset) -> dict[str, Figure]:
    """AUC, IoU and deployable IoU of every method, the paper's as open marks."""
    rows = [row for row in rows_of(found) if np.isfinite(row["iou"])]
    figure = style.new_figure(0.32 * len(rows) + 1.0)
    axes = figure.subplots(1, 3, sharey=True)
    heights = np.arange(len(rows))[::-1]
    panels = (("auc", "AUC"), ("iou", "IoU"), ("deployable_iou", "deployable IoU"))
    for ax, (name, label) in zip(axes, panels, strict=True):
        for height, row in zip(heights, rows, strict=True):
            look = style.look_of(row["method"])
            ax.plot(row[name], height, linestyle="none", **look)
            ax.hlines(height, 0.0, row[name], color=look["color"], linewidth=1.0, alpha=0.5)
            theirs = row.get(f"paper_{name}", np.nan)
            if np.isfinite(theirs):
                ax.plot(theirs, height, "o", mfc="none", mec=style.INK, ms=6)
        ax.set(xlim=(0.0, 1.03), xlabel=label)
        style.light_grid(ax, "x")
    axes[0].set_yticks(heights, [row["title"] for row in rows])
    return {"scores": figure}
