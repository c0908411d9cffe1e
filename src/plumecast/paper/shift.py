"""Distributional shift: train on one drought, test on the others, with and without the wind.

τ and α come from validation fires of the training droughts, because a user who meets a new drought
has no others. Spectral surrogates are trained without the drought label, on a bounded sample.
Within one drought the moisture is constant and the wind almost constant, so no coefficient for them
can be fitted. The wind frame still conditions an operator on the wind: it rotates the fields into
the direction of the wind. If the hourly weather of every fire is known, smoke that it carries
(physics channels) conditions an operator on all of the weather.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, WIND
from plumecast.data.covariates import weather_known
from plumecast.data.schema import select_drought
from plumecast.paper import published
from plumecast.paper.context import Context, Study, bounded, select, tidy
from plumecast.paper.figures import (
    BLUE,
    INK,
    SHARE_COLOURS,
    VERMILION,
    legend_below,
    new_figure,
    plain,
)
from plumecast.paper.methods import title_of
from plumecast.paper.scoring import SNAPSHOT_SCORES, score_surrogate
from plumecast.scores.footprint import smoke_threshold
from plumecast.scores.tally import known_median, known_values
from plumecast.surrogate.fit import fit_surrogate
from plumecast.weather.snapshots import has_weather

PLAIN, WIND_FRAME, CARRIED, CARRIED_ON_MAP = (0, 0), (1, 0), (1, 1), (0, 1)
"""Kinds of operator: in the wind frame or not, with physics channels or not."""
ORDER = ("low", "medium", "high")
OTHERS = "all others"

COLUMNS = {
    "method": ("method", "1"),
    "covariates": ("1 if the operator is conditioned on the wind (wind frame), else 0", "1"),
    "physics": ("1 if smoke carried by the fire's own weather is among the channels, else 0", "1"),
    "trained_on": ("drought of training", "1"),
    "tested_on": ("drought of the test", "1"),
    **SNAPSHOT_SCORES,
    "extent": ("share of cells with smoke", "1"),
}


def run(context: Context) -> xr.Dataset:
    """Per-snapshot scores for every pair of droughts."""
    split, limits = context.split, context.limits
    droughts, kinds = known_droughts(split.train), spectral_kinds(split.train)
    rng = context.rng("shift")
    tests = {
        name: bounded(_drought(split.test, [name]), limits.scored // 2, rng) for name in droughts
    }
    fits = [([name], droughts, name) for name in droughts]
    if len(droughts) > 2:
        fits += [([n for n in droughts if n != name], [name], OTHERS) for name in droughts]
    rows: list[dict[str, Any]] = []
    for trained, tested, label in fits:
        scores = scores_after(context, rng, trained, {n: tests[n] for n in tested}, kinds)
        rows += [{"trained_on": label, **row} for row in scores]
    return tidy(rows, COLUMNS).assign_attrs(
        droughts=",".join(droughts),
        covariates=",".join(known_covariates(split.train)),
        shift_train=limits.shift_train,
        paper_iou=published.SHIFT_IOU,
        paper_auc_medium_low=published.SHIFT_AUC["medium", "low"],
    )


def scores_after(
    context: Context,
    rng: np.random.Generator,
    trained: list[str],
    tests: dict[str, xr.Dataset],
    kinds: list[tuple[int, int]],
) -> Iterator[dict[str, Any]]:
    """Scores of every method trained on some droughts, one row per test snapshot."""
    train = _drought(context.split.train, trained)
    sample = bounded(train, context.limits.shift_train, rng)
    validation = _drought(context.split.validation, trained)
    validation = bounded(validation, context.limits.scored // 2, rng)
    tau, names = smoke_threshold(validation[SMOKE], context.captured), (*SNAPSHOT_SCORES, "extent")
    fits = [("paper-linear", PLAIN), *(("recommended", kind) for kind in kinds)]
    for method, kind in fits:
        spectral = method == "recommended"
        frame, physics = "wind" if kind[0] else "map", "column" if kind[1] else "none"
        choices: dict[str, Any] = {"frame": frame, "physics": physics} if spectral else {}
        context.tell(f"shift: {method}{_suffix(*kind)} trained on {' and '.join(trained)}")
        part = sample if spectral else train
        made = fit_surrogate(part, method, group_by=context.split.by, **choices)
        scored = score_surrogate(made, validation, list(tests.values()), tau=tau)
        for tested, found in zip(tests, scored, strict=True):
            labels = {"method": method, "tested_on": tested, "covariates": kind[0]}
            values = zip(*(found.scores[name].values.tolist() for name in names), strict=True)
            for row in values:
                yield labels | {"physics": kind[1]} | dict(zip(names, row, strict=True))


def known_droughts(train: xr.Dataset) -> list[str]:
    """The droughts of the training part, from low to high; raises if there are fewer than two."""
    found = set(train.drought.values.astype(str)) if "drought" in train.variables else set()
    if len(found) < 2:
        named = f"only drought '{found.pop()}'" if found else "no droughts"
        raise PlumecastError(f"the training part has {named}; a shift needs at least two droughts")
    return sorted(found, key=lambda name: (ORDER.index(name) if name in ORDER else 9, name))


def known_covariates(train: xr.Dataset) -> tuple[str, ...]:
    """The names of the wind coordinates, if the data has them and the wind varies."""
    known = all(name in train.variables for name in WIND)
    return WIND if known and any(np.ptp(train[name].values) > 0.0 for name in WIND) else ()


def spectral_kinds(train: xr.Dataset) -> list[tuple[int, int]]:
    """The kinds of spectral operator for which the data has wind or hourly weather."""
    kinds = [PLAIN]
    if known_covariates(train):
        kinds.append(WIND_FRAME)
    if has_weather(train) and weather_known(train):
        kinds.append(CARRIED_ON_MAP)
        if known_covariates(train):
            kinds.append(CARRIED)
    return kinds


def _drought(part: xr.Dataset, names: list[str]) -> xr.Dataset:
    """The snapshots of some droughts, without the drought label, which a new drought lacks."""
    return select_drought(part, names).drop_vars("drought")


CAPTIONS = {
    "pairs": (
        "Median IoU of surrogates trained on one drought (rows) or on all droughts but the "
        "tested one (last row), and tested on one drought (columns). There is no shift on the "
        "diagonal; the difference from the diagonal is the loss due to the shift."
    ),
    "medium": (
        "The paper's case: AUC and IoU of the linear operator trained on medium drought. In "
        "the paper the IoU falls to about 0.3 on both other droughts."
    ),
}


def figures(finding: xr.Dataset) -> dict[str, Figure]:
    """Median IoU of every pair of droughts; distributions of AUC and IoU for the paper's case."""
    drawn = {"pairs": _pairs(finding)}
    if {"low", "medium", "high"} <= set(finding.attrs["droughts"].split(",")):
        drawn["medium"] = _medium(finding)
    return drawn


def _pairs(finding: xr.Dataset) -> Figure:
    kinds = sorted(_kinds(finding), key=lambda kind: (kind[2], kind[1], kind[0]))
    tested = finding.attrs["droughts"].split(",")
    trained = [*tested, OTHERS] if len(tested) > 2 else tested
    figure = new_figure(2.6 * -(-len(kinds) // 2))
    axes = figure.subplots(-(-len(kinds) // 2), 2, squeeze=False)
    for ax, (method, covariates, physics) in zip(axes.flat, kinds, strict=False):
        part = select(finding, method=method, covariates=covariates, physics=physics)
        values = np.array(
            [[_median_iou(part, row, column) for column in tested] for row in trained]
        )
        title = title_of(method).split(" (")[0] + _suffix(covariates, physics)
        _matrix(ax, values, trained, tested, title)
    for ax in axes.flat[len(kinds) :]:
        ax.set_axis_off()
    return figure


def _kinds(finding: xr.Dataset) -> set[tuple[str, int, int]]:
    """The combinations of method, `covariates` and `physics` in the table."""
    columns = (finding[name].values.tolist() for name in ("method", "covariates", "physics"))
    return set(zip(*columns, strict=True))


def _suffix(covariates: int, physics: int) -> str:
    """What an operator is conditioned on, for titles."""
    return (", wind frame" if covariates else "") + (", carried smoke" if physics else "")


def _median_iou(part: xr.Dataset, trained: str, tested: str) -> float:
    return known_median(select(part, trained_on=trained, tested_on=tested).iou)


def _matrix(ax: Axes, values: np.ndarray, rows: list[str], columns: list[str], title: str) -> None:
    ax.imshow(values, vmin=0.0, vmax=1.0, cmap=SHARE_COLOURS, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        text = "–" if np.isnan(value) else f"{value:.2f}"
        ax.text(column, row, text, ha="center", va="center",
                color="black" if value > 0.55 else "white")  # fmt: skip
    ax.set_xticks(range(len(columns)), [plain(name, 16) for name in columns])
    ax.set_yticks(range(len(rows)), [plain(name, 16) for name in rows])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set(title=title, xlabel="tested on drought", ylabel="trained on drought")


def _medium(finding: xr.Dataset) -> Figure:
    figure = new_figure(2.7)
    axes = figure.subplots(1, 2)
    part = select(finding, method="paper-linear", trained_on="medium")
    colours = {"low": BLUE, "medium": INK, "high": VERMILION}
    bins = np.linspace(0.0, 1.0, 31).tolist()
    for drought, colour in colours.items():
        tested = select(part, tested_on=drought)
        label = (
            f"tested on {drought}: median AUC {known_median(tested.auc):.2f}, "
            f"IoU {known_median(tested.iou):.2f}"
        )
        for ax, name in zip(axes, ("auc", "iou"), strict=True):
            defined = known_values(tested[name])
            weights = np.full(defined.size, 1.0 / max(defined.size, 1))
            ax.hist(defined, bins, weights=weights, histtype="step", linewidth=1.5, color=colour,
                    label=label)  # fmt: skip
    for ax, name in zip(axes, ("AUC", "IoU"), strict=True):
        ax.set(xlabel=name, ylabel="fraction of snapshots", xlim=(0.0, 1.0))
    axes[0].set_title("Linear operator trained on medium drought")
    legend_below(figure, axes[0], 1)
    return figure


def remarks(finding: xr.Dataset) -> list[str]:
    """Median IoU with and without shift, averaged over the droughts."""
    droughts = finding.attrs["droughts"].split(",")
    out = []
    for method, covariates, physics in sorted(_kinds(finding)):
        part = select(finding, method=method, covariates=covariates, physics=physics)
        same = [_median_iou(part, d, d) for d in droughts]
        other = [_median_iou(part, a, b) for a in droughts for b in droughts if a != b]
        text = (
            f"{title_of(method)}{_suffix(covariates, physics)}: the median IoU, averaged "
            f"over droughts, is {np.mean(same):.2f} on the drought of training and "
            f"{np.mean(other):.2f} on another drought"
        )
        if len(droughts) > 2:
            rest = [_median_iou(part, OTHERS, d) for d in droughts]
            text += f"; trained on all droughts but the tested one, it is {np.mean(rest):.2f}"
        out.append(text + ".")
    if not finding.attrs["covariates"]:
        out.append("No wind frame was tried, because the data has no wind or a constant wind.")
    if not np.any(finding.physics.values):
        out.append("No smoke was carried, because the data has no hourly weather.")
    out.append(
        f"Each spectral surrogate was trained on at most {finding.attrs['shift_train']} snapshots."
    )
    return out


STUDY = Study(
    name="shift", title="Distributional shift between droughts",
    question="How good is a surrogate on a drought on which it was not trained?",
    run=run, figures=figures, remarks=remarks, captions=CAPTIONS, limits=("shift_train", "scored"),
    version=2,
)  # fmt: skip
