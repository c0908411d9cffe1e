"""How much the choices matter: scores on validation against β, the std fraction and λ.

Nothing is refitted: every std fraction is a slice of one decomposition of each side (Theorem 1 has
no cross terms), every penalty a division in one eigendecomposition, every β a new threshold on the
same predictions.
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
from plumecast.operators.coded.polynomial_map import fit_linear_map
from plumecast.operators.pca import rank_for_std
from plumecast.scores.footprint import score_footprints, smoke_threshold
from plumecast.studies import paper
from plumecast.studies.context import Context, Stopwatch
from plumecast.studies.figures import style
from plumecast.studies.methods.methods import fitted, quadratic
from plumecast.studies.table import select, tidy

CAPTURED = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
STD_FRACTIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
PENALTIES = 12  # of the grid that tuning scans

COLUMNS = {
    "parameter": ("what is varied", "1"),
    "value": ("its value", "1"),
    "method": ("operator", "1"),
    "fire_rank": ("modes of the fire", "1"),
    "smoke_rank": ("modes of the smoke", "1"),
    "smoke_threshold": ("smoke threshold", "ug m-3"),
    "auc": ("median AUC on validation", "1"),
    "auc_low": ("25th percentile", "1"),
    "auc_high": ("75th percentile", "1"),
    "iou": ("median IoU on validation", "1"),
    "iou_low": ("25th percentile", "1"),
    "iou_high": ("75th percentile", "1"),
}


def run(context: Context) -> xr.Dataset:
    """Scores over the three choices."""
    std_rows, _ = std_sweep(context)
    penalty_rows, _ = penalty_sweep(context)
    table = tidy([*_captured_sweep(context), *std_rows, *penalty_rows], COLUMNS)
    return table.assign_attrs(
        captured=context.captured,
        std_fraction=0.95,
        penalty=quadratic(context).scan.best,
        paper_penalty=paper.PENALTY,
    )


def std_sweep(context: Context) -> tuple[list[dict[str, Any]], float]:
    """Scores of the linear operator over std fractions, and the seconds of finding them."""

    def make() -> tuple[list[dict[str, Any]], float]:
        watch = Stopwatch()
        return watch.time("sweep", lambda: list(_std_rows(context))), watch.seconds["sweep"]

    return context.once("sweeping std fractions", make)


def penalty_sweep(context: Context) -> tuple[list[dict[str, Any]], float]:
    """Scores of the quadratic operator over penalties, and the seconds of finding them."""

    def make() -> tuple[list[dict[str, Any]], float]:
        watch = Stopwatch()
        return watch.time("sweep", lambda: list(_penalty_rows(context))), watch.seconds["sweep"]

    return context.once("sweeping penalties", make)


def _captured_sweep(context: Context) -> list[dict[str, Any]]:
    validation = context.split.validation
    predicted = fitted(context, "paper-linear").surrogate.predict(validation)
    rows = []
    for captured in CAPTURED:
        tau = smoke_threshold(validation[SMOKE], captured)
        scores = _scores(predicted.values, validation[SMOKE].values, tau)
        rows.append({"parameter": "captured", "value": captured, "method": "paper-linear"} | scores)
    return rows


def _std_rows(context: Context) -> Iterator[dict[str, Any]]:
    encodings, observed = context.encodings, context.split.validation[SMOKE].values
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
    path, observed = quadratic(context), context.split.validation[SMOKE].values
    codes = path.inputs.encode(_validation_fires(context))
    known = path.scan.penalties
    chosen = known[:: max(1, len(known) // PENALTIES)]
    for penalty in sorted({*chosen, path.scan.best}):
        predicted = path.outputs.decode(path.path.at(penalty).predict(codes))
        scores = _scores(np.maximum(predicted, 0.0), observed, context.smoke_threshold)
        ranks = {"fire_rank": path.inputs.rank, "smoke_rank": path.outputs.rank}
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
        known = scores[name].values[~np.isnan(scores[name].values)]
        spread = np.percentile(known, (25, 50, 75)) if known.size else np.full(3, np.nan)
        found |= dict(zip((f"{name}_low", name, f"{name}_high"), map(float, spread), strict=True))
    return found


PANELS = (
    ("captured", "captured share of the footprint β", "Linear: smoke threshold"),
    ("std_fraction", "share of the standard deviation", "Linear: truncation"),
    ("penalty", "penalty λ", "Quadratic: penalty"),
)


def figures(found: xr.Dataset) -> dict[str, Figure]:
    """AUC and IoU against each choice; a line marks the value used elsewhere."""
    figure = style.new_figure(2.7)
    axes = figure.subplots(1, 3, sharey=True)
    for ax, (parameter, label, title) in zip(axes, PANELS, strict=True):
        _panel(ax, select(found, parameter=parameter))
        ax.axvline(found.attrs[parameter], color=style.MUTED, linewidth=0.8, linestyle="--")
        ax.set(xlabel=label, title=title)
        style.light_grid(ax)
    axes[2].set_xscale("log")
    axes[0].set(ylim=(0.0, 1.02), ylabel="score on validation")
    axes[0].legend(loc="lower left")
    return {"scores": figure}


def _panel(ax: Axes, part: xr.Dataset) -> None:
    for name, colour in (("auc", style.BLUE), ("iou", style.VERMILION)):
        low, middle, high = (part[f"{name}{end}"].values for end in ("_low", "", "_high"))
        ax.fill_between(part.value.values, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(
            part.value.values,
            middle,
            color=colour,
            marker="o",
            label={"auc": "AUC", "iou": "IoU"}[name],
        )
