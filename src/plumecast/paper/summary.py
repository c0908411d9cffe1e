"""The paper's table on this data: times, hyperparameters and scores of every method."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import xarray as xr
from matplotlib.figure import Figure

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.linalg import gram
from plumecast.operators.coded.kernels import monomial_count, monomials
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.pca import projection_error
from plumecast.operators.settings import PRESETS
from plumecast.paper import published
from plumecast.paper.context import Context, Study, rows_of, tidy
from plumecast.paper.figures import INK, light_grid, look_of, new_figure
from plumecast.paper.footprint import process_of
from plumecast.paper.methods import HYPERPARAMETERS, encodings_of, fitted, quadratic_of, title_of
from plumecast.paper.scoring import MEDIAN_SCORES, median_scores, outcome
from plumecast.paper.sensitivity import penalty_sweep, std_sweep
from plumecast.surrogate.surrogate import Surrogate

LITERAL = "paper-quadratic-literal"

COLUMNS = {
    "method": ("method", "1"),
    "title": ("title of the method", "1"),
    "hyperparameters": ("hyperparameters", "1"),
    "choices": ("chosen hyperparameters", "1"),
    **MEDIAN_SCORES,
    "decision_threshold": ("decision threshold from validation", "1"),
    "median_error": ("median relative error of a snapshot", "1"),
    "mass_ratio": ("total predicted over total observed smoke of a fire, median", "1"),
    "mass_ratio_low": ("the same, 10th percentile over fires", "1"),
    "mass_ratio_high": ("the same, 90th percentile over fires", "1"),
    "relative_error": ("relative error over all snapshots (Frobenius)", "1"),
    "hit_rate": ("hit rate of smoke above the smoke threshold", "1"),
    "false_alarm_ratio": ("false alarm ratio of smoke above the smoke threshold", "1"),
    "bias": ("frequency bias of smoke above the smoke threshold", "1"),
    "auc_undefined": ("snapshots whose AUC is undefined", "1"),
    "paper_auc": ("AUC in the paper", "1"),
    "paper_iou": ("IoU in the paper", "1"),
    "paper_encoding": ("time of encoding in the paper", "s"),
    "paper_training": ("time of training in the paper", "s"),
    "paper_tuning": ("time of tuning in the paper", "s"),
    "encoding": ("time of encoding", "s"),
    "training": ("time of training without encoding", "s"),
    "tuning": ("time of tuning", "s"),
    "predict_ms": ("time to predict a snapshot", "ms"),
}
CLOCKS = ("encoding", "training", "tuning", "predict_ms")
_OF_SCORE = ("decision_threshold", "relative_error", "auc_undefined", "predict_ms")
_MASS = ("mass_ratio", "mass_ratio_low", "mass_ratio_high")
_ABOVE = ("hit_rate", "false_alarm_ratio", "bias")


def run(context: Context) -> xr.Dataset:
    """One row per method, and one for the literal quadratic fit."""
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
        paper_smoke_threshold=published.SMOKE_THRESHOLD,
        penalties_scanned=len(quadratic_of(context).scan.penalties),
        **_projection_errors(context),
        **facts,
    )


def _row(context: Context, name: str) -> dict[str, Any]:
    made, scored, paper = fitted(context, name), outcome(context, name), published.TABLE.get(name)
    score = scored.score
    (above,) = score.exceedances
    # The seconds to score the grid of the hyperparameters on validation.
    sweeps = {"paper-linear": std_sweep, "paper-quadratic": penalty_sweep}
    swept = sweeps[name](context)[1] if name in sweeps else 0.0
    row: dict[str, Any] = {
        "method": name,
        "title": title_of(name),
        "hyperparameters": HYPERPARAMETERS.get(name, "weights, α"),
        "choices": _choices(made.surrogate),
        **median_scores(score),
        **{column: getattr(score, column) for column in (*_OF_SCORE, *_MASS)},
        **{column: getattr(above, column) for column in _ABOVE},
        **{step: made.seconds.get(step) for step in ("encoding", "training")},
        "tuning": made.seconds.get("tuning", 0.0) + scored.seconds["threshold"] + swept,
    }
    theirs = {} if paper is None else asdict(paper)
    return row | {f"paper_{column}": value for column, value in theirs.items()}


def _choices(surrogate: Surrogate) -> str:
    training, process = surrogate.training, process_of(surrogate)
    parts = []
    if "fire_rank" in training:
        parts.append(f"r = {training['fire_rank']}, r̃ = {training['smoke_rank']}")
    if training.get("penalty"):
        parts.append(f"λ = {training['penalty']:.3g}")
    if process is not None:
        parts.append(f"l = {process.length_scale:.3g}")
    if "layers" in surrogate.settings and surrogate.settings.get("family") == "spectral":
        parts.append(f"{surrogate.settings['layers']} layers")
    return ", ".join(parts)


def _literal_row(context: Context) -> tuple[dict[str, Any], dict[str, Any]]:
    """The paper's quadratic fit as written, with its times and its difference from ours.

    One fit is timed. The time of tuning is computed: the normal equations are formed once and
    solved again for every penalty of the scan.
    """
    quadratic = quadratic_of(context)
    surrogate = fitted(context, "paper-quadratic").surrogate
    row: dict[str, Any] = {
        "method": LITERAL,
        "title": "Quadratic, literal",
        "hyperparameters": HYPERPARAMETERS["paper-quadratic"],
        "choices": _choices(surrogate),
    }
    inputs = quadratic.part.inputs
    problem = too_large(inputs.rank)
    if problem is not None:
        return row, {"literal_problem": problem}
    context.tell("the paper's literal quadratic fit")
    path, penalties = quadratic.path, quadratic.scan.penalties
    made = literal_quadratic(path.codes, path.targets, quadratic.scan.best)
    fires = context.split.validation[FIRE].values
    codes = inputs.encode(fires.reshape(fires.shape[0], -1).astype(np.float64))
    assert isinstance(surrogate.operator, CodedOperator)
    ours = surrogate.operator.code_map.predict(codes)
    theirs = monomials(codes, 2) @ made.weights
    row |= {
        "training": made.forming + made.solving,
        "tuning": made.forming + made.solving * len(penalties),
    }
    facts = {
        "literal_difference": float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)),
        "literal_features": int(made.weights.shape[0]),
    }
    return row, facts


def _projection_errors(context: Context) -> dict[str, float]:
    """Ranks at a std fraction of 95 % and their projection errors on validation."""
    rules, validation = PRESETS["paper-linear"].family_settings, context.split.validation
    facts: dict[str, float] = {}
    part = encodings_of(context).truncate(rules.fire, rules.smoke)
    bases = (part.inputs, part.outputs)
    for side, name, basis in zip(("fire", "smoke"), (FIRE, SMOKE), bases, strict=True):
        values = validation[name].values
        facts[f"{side}_rank"] = basis.rank
        facts[f"{side}_projection_error"] = projection_error(
            basis, values.reshape(values.shape[0], -1)
        )
    return facts


CAPTIONS = {
    "scores": (
        "Median scores over the test snapshots; open circles are the paper's values on its own "
        "data. A surrogate is useful only if it scores higher than the mean field and the "
        "nearest fire. Deployable IoU uses one decision threshold from validation, as a user "
        "must; IoU uses a separate threshold for every snapshot."
    )
}


def figures(finding: xr.Dataset) -> dict[str, Figure]:
    """AUC, IoU and deployable IoU of every method; open circles are the paper's values."""
    rows = [row for row in rows_of(finding) if np.isfinite(row["iou"])]
    figure = new_figure(0.32 * len(rows) + 1.0)
    axes = figure.subplots(1, 3, sharey=True)
    heights = np.arange(len(rows))[::-1]
    panels = (("auc", "AUC"), ("iou", "IoU"), ("deployable_iou", "deployable IoU"))
    for ax, (name, label) in zip(axes, panels, strict=True):
        for height, row in zip(heights, rows, strict=True):
            look = look_of(row["method"])
            ax.plot(row[name], height, linestyle="none", **look)
            ax.hlines(height, 0.0, row[name], color=look["color"], linewidth=1.0, alpha=0.5)
            theirs = row.get(f"paper_{name}", np.nan)
            if np.isfinite(theirs):
                ax.plot(theirs, height, "o", mfc="none", mec=INK, ms=6)
        ax.set(xlim=(0.0, 1.03), xlabel=label)
        light_grid(ax, "x")
    axes[0].set_yticks(heights, [row["title"] for row in rows])
    return {"scores": figure}


def remarks(finding: xr.Dataset) -> list[str]:
    """Threshold, ranks and projection errors beside the paper's; times of the quadratic fit."""
    facts = finding.attrs
    rows = {row["method"]: row for row in rows_of(finding)}
    return [
        f"The smoke threshold τ = {facts['smoke_threshold']:.3g} µg m⁻³ (sum over checkpoints) "
        f"captures {facts['captured']:.0%} of the footprint (paper: {published.SMOKE_THRESHOLD}).",
        f"A std fraction of 95 % keeps r = {facts['fire_rank']} modes of the fire and r̃ = "
        f"{facts['smoke_rank']} of the smoke (paper: {published.FIRE_RANK} and "
        f"{published.SMOKE_RANK}). Their projection errors on validation are "
        f"{facts['fire_projection_error']:.0%} and {facts['smoke_projection_error']:.0%} (paper: "
        f"{published.FIRE_PROJECTION_ERROR:.0%} and {published.SMOKE_PROJECTION_ERROR:.0%}).",
        *_quadratic_times(facts, rows),
    ]


def _quadratic_times(facts: dict[str, Any], rows: dict[str, dict[str, Any]]) -> list[str]:
    ours, literal, paper = rows["paper-quadratic"], rows.get(LITERAL), published.TABLE
    first = (
        f"The quadratic operator trains in {_plain(ours['training'])} s after encoding (paper: "
        f"{paper['paper-quadratic'].training:.0f} s). Its tuning over "
        f"{facts['penalties_scanned']} penalties takes {_plain(ours['tuning'])} s (paper: "
        f"{paper['paper-quadratic'].tuning:.0f} s)."
    )
    if literal is None:
        return [first, "The literal method was not timed in this run."]
    if math.isnan(literal["training"]):
        return [first, f"The literal method was not timed, because {facts['literal_problem']}."]
    return [
        first,
        f"The literal method takes {_plain(literal['training'])} s on this machine. For the same "
        f"penalties it would take {_plain(literal['tuning'])} s, computed from the time of one "
        "solve. The relative difference between its predictions and ours is "
        f"{facts['literal_difference']:.0e}.",
    ]


def _plain(seconds: float) -> str:
    """Two digits, without a power of ten."""
    return f"{seconds:,.0f}" if seconds >= 100.0 else f"{seconds:.2g}"


# -- The quadratic fit exactly as the paper writes it, to compare its time with ours


@dataclass(frozen=True, slots=True)
class LiteralFit:
    """Explicit weights, and the seconds to form and to solve the normal equations."""

    weights: Array
    forming: float
    solving: float


def literal_quadratic(codes: Array, targets: Array, penalty: float) -> LiteralFit:
    """Solve (ΦᵀΦ + λI) θ = ΦᵀY by Cholesky, with all monomials Φ formed explicitly."""
    start = time.perf_counter()
    features = monomials(codes, 2)
    normal = gram(features.T)
    right = features.T @ targets
    formed = time.perf_counter()
    normal.flat[:: normal.shape[0] + 1] += penalty
    lower = blocked_cholesky(normal)
    half = scipy.linalg.solve_triangular(lower, right, lower=True, check_finite=False)
    weights = scipy.linalg.solve_triangular(lower.T, half, lower=False, check_finite=False)
    return LiteralFit(weights, formed - start, time.perf_counter() - formed)


def blocked_cholesky(matrix: Array, block: int = 2048) -> Array:
    """Lower Cholesky factor in place, panel by panel; entries above the diagonal are not changed.

    The LAPACK routine crashes at 20,300 rows in common OpenBLAS builds.
    """
    n = matrix.shape[0]
    for start in range(0, n, block):
        stop = min(start + block, n)
        corner = matrix[start:stop, start:stop]
        corner[:] = np.tril(scipy.linalg.cholesky(corner, lower=True, check_finite=False))
        if stop == n:
            break
        panel = scipy.linalg.solve_triangular(
            corner, matrix[stop:, start:stop].T, lower=True, check_finite=False
        ).T
        matrix[stop:, start:stop] = panel
        for row in range(stop, n, block):
            last = min(row + block, n)
            matrix[row:last, stop:last] -= panel[row - stop : last - stop] @ panel[: last - stop].T
    return matrix


def too_large(rank: int) -> str | None:
    """The reason why the literal fit exceeds the free memory, or None if it fits.

    The normal matrix and a copy must fit.
    """
    features = monomial_count(rank, 2)
    needed = 10.0 * features**2
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        free = next(float(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None
    if needed <= 1024.0 * free:
        return None
    return f"{features:,} features need {needed / 1e9:.1f} GB and {free / 1e6:.1f} GB are free"


STUDY = Study(
    name="summary", title="Summary",
    question="What does each method cost, and how good is it?",
    run=run, figures=figures, remarks=remarks, captions=CAPTIONS, limits=("literal", "neural"),
)  # fmt: skip
