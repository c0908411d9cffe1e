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
from matplotlib.figure import Figure

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.data.covariates import extrapolating
from plumecast.operators.coded.polynomial_map import fit_linear_map
from plumecast.operators.pca import rank_for_std
from plumecast.paper import published
from plumecast.paper.context import Context, Study, rows_of, select, tidy, timed
from plumecast.paper.figures import BLUE, MUTED, VERMILION, light_grid, new_figure
from plumecast.paper.methods import encodings_of, fitted, quadratic_of
from plumecast.scores.footprint import score_footprints, smoke_threshold
from plumecast.scores.tally import known_values

CAPTURED = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
STD_FRACTIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
PENALTIES = 12  # about this many of the grid that tuning scans

Row = dict[str, Any]

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


def _captured_sweep(context: Context) -> list[Row]:
    validation = context.split.validation
    with extrapolating():
        predicted = fitted(context, "paper-linear").surrogate.predict(validation).values
    labels = {"parameter": "captured", "method": "paper-linear"}
    thresholds = {share: smoke_threshold(validation[SMOKE], share) for share in CAPTURED}
    return [
        labels | {"value": share} | _scores(predicted, validation, tau)
        for share, tau in thresholds.items()
    ]


def std_sweep(context: Context) -> tuple[list[Row], float]:
    """Scores of the linear operator for every std fraction, and the seconds they took."""

    def rows() -> Iterator[Row]:
        encodings = encodings_of(context)
        inputs, outputs = encodings.inputs, encodings.outputs
        weights = fit_linear_map(
            encodings.input_codes, inputs.singular_values, encodings.output_codes
        ).weights
        codes = inputs.encode(_validation_fires(context))
        for fraction in STD_FRACTIONS:
            r, q = (rank_for_std(basis.spectrum, fraction) for basis in (inputs, outputs))
            predicted = outputs.truncate(q).decode(codes[:, :r] @ weights[:r, :q])
            labels = {"parameter": "std_fraction", "value": fraction, "method": "paper-linear"}
            yield labels | _ranked_scores(context, predicted, r, q)

    return context.once("sweeping std fractions", lambda: timed(lambda: list(rows())))


def penalty_sweep(context: Context) -> tuple[list[Row], float]:
    """Scores of the quadratic operator for every penalty, and the seconds they took."""

    def rows() -> Iterator[Row]:
        quadratic = quadratic_of(context)
        inputs, outputs = quadratic.part.inputs, quadratic.part.outputs
        codes, penalties = inputs.encode(_validation_fires(context)), quadratic.scan.penalties
        some = penalties[:: max(1, len(penalties) // PENALTIES)]
        for penalty in sorted({*some, quadratic.scan.best}):
            predicted = outputs.decode(quadratic.path.at(penalty).predict(codes))
            labels = {"parameter": "penalty", "value": penalty, "method": "paper-quadratic"}
            yield labels | _ranked_scores(context, predicted, inputs.rank, outputs.rank)

    return context.once("sweeping penalties", lambda: timed(lambda: list(rows())))


def _validation_fires(context: Context) -> Array:
    fires = context.split.validation[FIRE]
    return fires.values.reshape(fires.sizes[SNAPSHOT], -1).astype(np.float64)


def _ranked_scores(context: Context, predicted: Array, fire_rank: int, smoke_rank: int) -> Row:
    scores = _scores(np.maximum(predicted, 0.0), context.split.validation, context.smoke_threshold)
    return {"fire_rank": fire_rank, "smoke_rank": smoke_rank} | scores


def _scores(predicted: Array, validation: xr.Dataset, tau: float) -> Row:
    rows = (predicted.shape[0], -1)
    scores = score_footprints(predicted.reshape(rows), validation[SMOKE].values.reshape(rows), tau)
    row = {"smoke_threshold": tau}
    for name in ("auc", "iou"):
        defined = known_values(scores[name])
        spread = np.percentile(defined, (25, 50, 75)) if defined.size else np.full(3, np.nan)
        row |= dict(zip((f"{name}_low", name, f"{name}_high"), map(float, spread), strict=True))
    return row


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
        part = select(finding, parameter=parameter)
        for name, colour, score in (("auc", BLUE, "AUC"), ("iou", VERMILION, "IoU")):
            low, middle, high = (part[f"{name}{end}"].values for end in ("_low", "", "_high"))
            ax.fill_between(part.value.values, low, high, color=colour, alpha=0.15, linewidth=0)
            ax.plot(part.value.values, middle, color=colour, marker="o", label=score)
        ax.axvline(finding.attrs[parameter], color=MUTED, linewidth=0.8, linestyle="--")
        ax.set(xlabel=label, title=title)
        light_grid(ax)
    axes[2].set_xscale("log")
    axes[0].set(ylim=(0.0, 1.02), ylabel="score on validation")
    axes[0].legend(loc="lower left")
    return {"scores": figure}


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
