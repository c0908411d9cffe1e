"""Sensitivity of the scores on validation to β, the std fraction and the penalty λ.

No operator is refitted. Every std fraction is a slice of one PCA of fire and smoke (Theorem 1 has
no cross terms), every penalty a division in one eigendecomposition, and every β another threshold
on the same predictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.data.covariates import extrapolating
from plumecast.operators.coded.polynomial_map import fit_linear_map
from plumecast.operators.pca import rank_for_std
from plumecast.paper import published
from plumecast.paper.context import Context, Stopwatch, Study, rows_of, select, tidy
from plumecast.paper.figures import BLUE, MUTED, VERMILION, light_grid, new_figure
from plumecast.paper.methods import encodings_of, fitted, quadratic_of
from plumecast.scores.footprint import score_footprints, smoke_threshold
from plumecast.scores.tally import known_values

CAPTURED = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
STD_FRACTIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
PENALTIES = 12  # about this many of the grid that tuning scans

COLUMNS = {
    "parameter": ("parameter that is varied", "1"),
    "value": ("value of the parameter", "1"),
    "method": ("operator", "1"),
    "fire_rank": ("modes of the fire", "1"),
    "smoke_rank": ("modes of the smoke", "1"),
    "smoke_threshold": ("smoke threshold", "ug m-3"),
    "auc": ("median AUC on validation", "1"),
    "auc_low": ("25th percentile of the AUC", "1"),
    "auc_high": ("75th percentile of the AUC", "1"),
    "iou": ("median IoU on validation", "1"),
    "iou_low": ("25th percentile of the IoU", "1"),
    "iou_high": ("75th percentile of the IoU", "1"),
}


def run(context: Context) -> xr.Dataset:
    """Scores for every value of the three parameters."""
    std_rows, _ = std_sweep(context)
    penalty_rows, _ = penalty_sweep(context)
    table = tidy([*_captured_sweep(context), *std_rows, *penalty_rows], COLUMNS)
    return table.assign_attrs(
        captured=context.captured,
        std_fraction=0.95,
        penalty=quadratic_of(context).scan.best,
        paper_penalty=published.PENALTY,
    )


def std_sweep(context: Context) -> tuple[list[dict[str, Any]], float]:
    """Scores of the linear operator for every std fraction, and the seconds they took."""
    return context.once("sweeping std fractions", lambda: _timed(_std_rows(context)))


def penalty_sweep(context: Context) -> tuple[list[dict[str, Any]], float]:
    """Scores of the quadratic operator for every penalty, and the seconds they took."""
    return context.once("sweeping penalties", lambda: _timed(_penalty_rows(context)))


def _timed(rows: Iterator[dict[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    watch = Stopwatch()
    return watch.time("sweep", lambda: list(rows)), watch.seconds["sweep"]


def _captured_sweep(context: Context) -> list[dict[str, Any]]:
    validation = context.split.validation
    with extrapolating():
        predicted = fitted(context, "paper-linear").surrogate.predict(validation)
    rows = []
    for captured in CAPTURED:
        tau = smoke_threshold(validation[SMOKE], captured)
        scores = _scores(predicted.values, validation[SMOKE].values, tau)
        rows.append({"parameter": "captured", "value": captured, "method": "paper-linear"} | scores)
    return rows


def _std_rows(context: Context) -> Iterator[dict[str, Any]]:
    encodings, observed = encodings_of(context), context.split.validation[SMOKE].values
    whole = fit_linear_map(
        encodings.input_codes, encodings.inputs.singular_values, encodings.output_codes
    ).weights
    codes = encodings.inputs.encode(_validation_fires(context))
    for fraction in STD_FRACTIONS:
        r = rank_for_std(encodings.inputs.spectrum, fraction)
        q = rank_for_std(encodings.outputs.spectrum, fraction)
        predicted = encodings.outputs.truncate(q).decode(codes[:, :r] @ whole[:r, :q])
        scores = _scores(np.maximum(predicted, 0.0), observed, context.smoke_threshold)
        ranks = {"fire_rank": r, "smoke_rank": q}
        named = {"parameter": "std_fraction", "value": fraction, "method": "paper-linear"}
        yield named | ranks | scores


def _penalty_rows(context: Context) -> Iterator[dict[str, Any]]:
    path, observed = quadratic_of(context), context.split.validation[SMOKE].values
    part = path.part
    codes = part.inputs.encode(_validation_fires(context))
    known = path.scan.penalties
    chosen = known[:: max(1, len(known) // PENALTIES)]
    for penalty in sorted({*chosen, path.scan.best}):
        predicted = part.outputs.decode(path.path.at(penalty).predict(codes))
        scores = _scores(np.maximum(predicted, 0.0), observed, context.smoke_threshold)
        ranks = {"fire_rank": part.inputs.rank, "smoke_rank": part.outputs.rank}
        named = {"parameter": "penalty", "value": penalty, "method": "paper-quadratic"}
        yield named | ranks | scores


def _validation_fires(context: Context) -> Array:
    fires = context.split.validation[FIRE]
    return fires.values.reshape(fires.sizes[SNAPSHOT], -1).astype(np.float64)


def _scores(predicted: Array, observed: Array, tau: float) -> dict[str, float]:
    scores = score_footprints(
        predicted.reshape(predicted.shape[0], -1), observed.reshape(observed.shape[0], -1), tau
    )
    found = {"smoke_threshold": tau}
    for name in ("auc", "iou"):
        known = known_values(scores[name])
        spread = np.percentile(known, (25, 50, 75)) if known.size else np.full(3, np.nan)
        found |= dict(zip((f"{name}_low", name, f"{name}_high"), map(float, spread), strict=True))
    return found


PANELS = (
    ("captured", "captured fraction of the footprint β", "Linear: smoke threshold"),
    ("std_fraction", "std fraction", "Linear: truncation"),
    ("penalty", "penalty λ", "Quadratic: penalty"),
)


CAPTIONS = {
    "scores": (
        "Median (line) and 25–75 % band of AUC and IoU over validation snapshots, against the "
        "captured fraction β and the std fraction of the linear operator, and the penalty of "
        "the quadratic operator. Dashed lines mark the values that the other studies use. A "
        "flat line means that the choice does not matter."
    )
}


def figures(finding: xr.Dataset) -> dict[str, Figure]:
    """AUC and IoU against each parameter; a line marks the value that the other studies use."""
    figure = new_figure(2.7)
    axes = figure.subplots(1, 3, sharey=True)
    for ax, (parameter, label, title) in zip(axes, PANELS, strict=True):
        _panel(ax, select(finding, parameter=parameter))
        ax.axvline(finding.attrs[parameter], color=MUTED, linewidth=0.8, linestyle="--")
        ax.set(xlabel=label, title=title)
        light_grid(ax)
    axes[2].set_xscale("log")
    axes[0].set(ylim=(0.0, 1.02), ylabel="score on validation")
    axes[0].legend(loc="lower left")
    return {"scores": figure}


def _panel(ax: Axes, part: xr.Dataset) -> None:
    for name, colour in (("auc", BLUE), ("iou", VERMILION)):
        low, middle, high = (part[f"{name}{end}"].values for end in ("_low", "", "_high"))
        ax.fill_between(part.value.values, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(
            part.value.values,
            middle,
            color=colour,
            marker="o",
            label={"auc": "AUC", "iou": "IoU"}[name],
        )


def remarks(finding: xr.Dataset) -> list[str]:
    """Range of the scores over each parameter."""
    out = []
    for name, label in (("captured", "β"), ("std_fraction", "the std fraction"), ("penalty", "λ")):
        rows = rows_of(select(finding, parameter=name))
        best = max(rows, key=lambda row: row["iou"])
        out.append(
            f"When {label} varies, the median IoU on validation ranges from "
            f"{min(r['iou'] for r in rows):.2f} to {best['iou']:.2f} (at {best['value']:.3g}) and "
            f"the median AUC from {min(r['auc'] for r in rows):.2f} to "
            f"{max(r['auc'] for r in rows):.2f}."
        )
    return out


STUDY = Study(
    name="sensitivity", title="Sensitivity to the choices",
    question="How much do β, the truncation and the penalty matter?",
    run=run, figures=figures, remarks=remarks, captions=CAPTIONS,
)  # fmt: skip
