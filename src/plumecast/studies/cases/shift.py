"""Distributional shift: train on one drought, test on the others, with and without covariates.

τ and α come from validation fires of the training droughts, as they would for a user who has no
others. Spectral surrogates are trained without being told droughts apart, on a bounded sample.
Within one drought the moisture is constant and the wind nearly so: a coefficient for them cannot be
learned. What can be told is the direction of the wind, in a frame that turns with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE
from plumecast.data.covariates import WIND
from plumecast.data.schema import select_drought
from plumecast.scores.footprint import choose_decision_threshold, score_footprints, smoke_threshold
from plumecast.studies import paper
from plumecast.studies.context import Context, bounded
from plumecast.studies.figures import style
from plumecast.studies.methods.methods import title_of
from plumecast.studies.methods.scoring import detect, median
from plumecast.studies.table import select, tidy
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate

METHODS = ("paper-linear", "recommended")
ORDER = ("low", "medium", "high")
OTHERS = "all others"

COLUMNS = {
    "method": ("method", "1"),
    "covariates": ("whether the wind is told, by a frame that turns with it: 1 or 0", "1"),
    "trained_on": ("drought of training", "1"),
    "tested_on": ("drought of the test", "1"),
    "auc": ("area under the ROC curve", "1"),
    "iou": ("IoU at the ROC point nearest (0, 1)", "1"),
    "deployable_iou": ("IoU at one threshold from validation", "1"),
    "extent": ("share of cells with smoke", "1"),
}


def run(context: Context) -> xr.Dataset:
    """Per-snapshot scores for every pair of droughts."""
    droughts = known_droughts(context.split.train)
    covariates = known_covariates(context.split.train)
    rng = context.rng("shift")
    tests = {
        name: bounded(_drought(context.split.test, [name]), context.limits.scored // 2, rng)
        for name in droughts
    }
    pairs = [([name], droughts, name) for name in droughts]
    if len(droughts) > 2:
        pairs += [([n for n in droughts if n != name], [name], OTHERS) for name in droughts]
    rows: list[dict[str, Any]] = []
    for trained, tested, label in pairs:
        train = _drought(context.split.train, trained)
        sample = bounded(train, context.limits.shift_train, rng)
        validation = bounded(
            _drought(context.split.validation, trained), context.limits.scored // 2, rng
        )
        tau = smoke_threshold(validation[SMOKE], context.captured)
        for method in METHODS:
            part = sample if method == "recommended" else train
            for told in (False, True) if covariates and method == "recommended" else (False,):
                context.tell(f"shift: {method} trained on {' and '.join(trained)}")
                made = _fit(method, part, told, context.split.by)
                found = detect(made, validation)
                alpha = choose_decision_threshold(found, validation[SMOKE], tau)
                for name in tested:
                    found = detect(made, tests[name])
                    scores = score_footprints(found, tests[name][SMOKE], tau, alpha)
                    named = {"method": method, "covariates": int(told),
                             "trained_on": label, "tested_on": name}  # fmt: skip
                    rows += [named | row for row in _scores(scores)]
    return tidy(rows, COLUMNS).assign_attrs(
        droughts=",".join(droughts),
        covariates=",".join(covariates),
        shift_train=context.limits.shift_train,
        paper_iou=paper.SHIFT_IOU,
        paper_auc_medium_low=paper.SHIFT_AUC["medium", "low"],
    )


def known_droughts(train: xr.Dataset) -> list[str]:
    """The droughts of the training part, from low to high; two are needed."""
    found = set(train.drought.values.astype(str)) if "drought" in train.variables else set()
    if len(found) < 2:
        named = f"only drought '{found.pop()}'" if found else "no droughts"
        raise PlumecastError(f"the data has {named}; a shift needs at least two")
    return sorted(found, key=lambda name: (ORDER.index(name) if name in ORDER else 9, name))


def known_covariates(train: xr.Dataset) -> tuple[str, ...]:
    """The wind, where the data has it and it differs between the droughts."""
    known = all(name in train.variables for name in WIND)
    return WIND if known and any(np.ptp(train[name].values) > 0.0 for name in WIND) else ()


def _drought(part: xr.Dataset, names: list[str]) -> xr.Dataset:
    """The snapshots of some droughts, without the label: an unseen drought has none."""
    return select_drought(part, names).drop_vars("drought")


def _fit(method: str, part: xr.Dataset, told: bool, by: str) -> Surrogate:
    extra: dict[str, Any] = {"frame": "wind" if told else "map"} if method == "recommended" else {}
    return fit_surrogate(part, method, group_by=by, **extra)


def _scores(scores: xr.Dataset) -> list[dict[str, float]]:
    names = ("auc", "iou", "deployable_iou", "extent")
    columns = [scores[name].values.tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def figures(found: xr.Dataset) -> dict[str, Figure]:
    """Median IoU of every pair of droughts, and the paper's case as distributions."""
    drawn = {"pairs": _pairs(found)}
    if {"low", "medium", "high"} <= set(found.attrs["droughts"].split(",")):
        drawn["medium"] = _medium(found)
    return drawn


def _pairs(found: xr.Dataset) -> Figure:
    kinds = sorted(set(zip(found.method.values.tolist(), found.covariates.values.tolist(),
                           strict=True)), key=lambda kind: (kind[1], kind[0]))  # fmt: skip
    tested = found.attrs["droughts"].split(",")
    trained = [*tested, OTHERS] if len(tested) > 2 else tested
    figure = style.new_figure(2.6 * -(-len(kinds) // 2))
    axes = figure.subplots(-(-len(kinds) // 2), 2, squeeze=False)
    for ax, (method, covariates) in zip(axes.flat, kinds, strict=False):
        values = np.array(
            [
                [
                    median(
                        select(found, method=method, covariates=covariates, trained_on=row,
                               tested_on=column).iou.values
                    )
                    for column in tested
                ]
                for row in trained
            ]
        )  # fmt: skip
        title = title_of(method).split(" (")[0] + (", told the wind" if covariates else "")
        _matrix(ax, values, trained, tested, title)
    for ax in axes.flat[len(kinds) :]:
        ax.set_axis_off()
    return figure


def _matrix(ax: Axes, values: np.ndarray, rows: list[str], columns: list[str], title: str) -> None:
    ax.imshow(values, vmin=0.0, vmax=1.0, cmap=style.SHARE_COLOURS, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        text = "–" if np.isnan(value) else f"{value:.2f}"
        ax.text(column, row, text, ha="center", va="center",
                color="black" if value > 0.55 else "white")  # fmt: skip
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set(title=title, xlabel="tested on drought", ylabel="trained on drought")


def _medium(found: xr.Dataset) -> Figure:
    figure = style.new_figure(2.7)
    axes = figure.subplots(1, 2)
    part = select(found, method="paper-linear", covariates=0, trained_on="medium")
    colours = {"low": style.BLUE, "medium": style.INK, "high": style.VERMILION}
    bins = np.linspace(0.0, 1.0, 31).tolist()
    for drought, colour in colours.items():
        tested = select(part, tested_on=drought)
        label = (
            f"tested on {drought}: median AUC {median(tested.auc.values):.2f}, "
            f"IoU {median(tested.iou.values):.2f}"
        )
        for ax, name in zip(axes, ("auc", "iou"), strict=True):
            known = tested[name].values[~np.isnan(tested[name].values)]
            weights = np.full(known.size, 1.0 / max(known.size, 1))
            ax.hist(known, bins, weights=weights, histtype="step", linewidth=1.5, color=colour,
                    label=label)  # fmt: skip
    for ax, name in zip(axes, ("AUC", "IoU"), strict=True):
        ax.set(xlabel=name, ylabel="share of snapshots", xlim=(0.0, 1.0))
    axes[0].set_title("Linear operator trained on medium drought")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=1)
    return figure
