"""How well operators, and the paper's Gaussian processes, detect smoke: ROC, IoU, maps, extent."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.operators.baselines import GP_SAMPLES, GaussianProcess
from plumecast.operators.coded.operator import CodedOperator
from plumecast.paper import published
from plumecast.paper.context import Context, Study, select, tidy
from plumecast.paper.figures import (
    MUTED,
    WIDTH,
    compare_maps,
    compare_one,
    histogram,
    hours_text,
    light_grid,
    look_of,
    mean_colours,
    new_figure,
    plain,
)
from plumecast.paper.methods import fitted, title_of
from plumecast.paper.scoring import FPR_GRID, SNAPSHOT_SCORES, MethodScores, outcome
from plumecast.scores.tally import known_median
from plumecast.surrogate.surrogate import Surrogate

COLUMNS = {
    "name": ("method", "1"),
    "fire_id": ("one ignition under one weather", "1"),
    "drought": ("drought scenario", "1"),
    "hours": ("time since ignition", "h"),
    "burned_area": ("burned area", "acre"),
    "extent": ("share of cells with smoke above the smoke threshold", "1"),
    **SNAPSHOT_SCORES,
    "relative_error": ("relative error of the smoke", "1"),
}


def compare_methods(context: Context, methods: tuple[str, ...]) -> xr.Dataset:
    """Per-snapshot scores of the methods, with ROC curves, and maps of the first method."""
    outcomes = {name: outcome(context, name) for name in methods}
    table = tidy([row for name in methods for row in _rows(name, outcomes[name])], COLUMNS)
    shown = context.rng("footprint").permutation(context.split.test.sizes[SNAPSHOT])
    shown = np.sort(shown[: context.limits.curves])
    parts = [_curves(outcomes[name], shown) for name in methods]
    curves = xr.concat(parts, dim="operator").assign_coords(operator=list(methods))
    maps = outcomes[methods[0]].maps
    found = xr.merge([table, curves, maps], combine_attrs="override")
    known = published.TABLE.get(methods[0])
    scores = {name: outcomes[name].score for name in methods}
    return found.assign_attrs(
        methods=",".join(methods),
        smoke_threshold=context.smoke_threshold,
        captured=context.captured,
        **{f"{name} decision_threshold": scores[name].decision_threshold for name in methods},
        **{f"{name} relative_error": score.relative_error for name, score in scores.items()},
        **({} if known is None else {"paper_auc": known.auc, "paper_iou": known.iou}),
    )


def _rows(name: str, found: MethodScores) -> list[dict[str, object]]:
    scores = found.scores
    known = [column for column in COLUMNS if column in scores.variables]
    values = {column: scores[column].values.tolist() for column in known}
    count = scores.sizes[SNAPSHOT]
    return [{"name": name} | {c: values[c][i] for c in known} for i in range(count)]


def _curves(found: MethodScores, shown: np.ndarray) -> xr.Dataset:
    known = found.curves[~np.isnan(found.curves).any(axis=1)]
    if known.shape[0] == 0:
        known = np.full((1, FPR_GRID.size), np.nan)
    low, middle, high = np.percentile(known, (25, 50, 75), axis=0)
    return xr.Dataset(
        {
            "tpr_median": ("fpr", middle),
            "tpr_low": ("fpr", low),
            "tpr_high": ("fpr", high),
            "tpr": (("member", "fpr"), found.curves[shown]),
        },
        coords={"fpr": FPR_GRID},
    )


CAPTIONS = {
    "classification": (
        "Left: ROC curves of a random subset of the test snapshots (thin) and their pointwise "
        "median (black); the curve of a good detector is close to the upper left corner. Centre "
        "and right: distributions of AUC and IoU over all test snapshots, with their median "
        "(solid) and the paper's value (dotted)."
    ),
    "maps": (
        "Smoke of five test snapshots, from low to high IoU: observed above, predicted below. All "
        "maps have one colour scale; smoke below the threshold τ is white, and the red line is "
        "the burned area. Errors show as spurious plumes or as plumes in the wrong direction."
    ),
    "extent": (
        "IoU against the extent of the footprint, one point per test snapshot. The line is the "
        "median in ten bins with equally many snapshots; if it rises, small footprints are harder "
        "to predict."
    ),
}


def figures(finding: xr.Dataset) -> dict[str, Figure]:
    """ROC curves and distributions, maps at IoU percentiles, IoU against extent."""
    return {
        "classification": classification(finding),
        "maps": maps(finding),
        "extent": extent(finding),
    }


def classification(finding: xr.Dataset) -> Figure:
    """ROC curves and the distributions of AUC and IoU, one row of panels per method."""
    methods = finding.attrs["methods"].split(",")
    figure = new_figure(2.5 * len(methods))
    axes = figure.subplots(len(methods), 3, squeeze=False)
    for line, name in zip(axes, methods, strict=True):
        known = published.TABLE.get(name)
        colour = look_of(name)["color"]
        scores = select(finding, name=name)
        _roc(line[0], finding.sel(operator=name), colour)
        line[0].set_title(title_of(name))
        histogram(line[1], scores.auc.values, "AUC", colour, None if known is None else known.auc)
        histogram(line[2], scores.iou.values, "IoU", colour, None if known is None else known.iou)
    return figure


def _roc(ax: Axes, curves: xr.Dataset, colour: str) -> None:
    ax.plot(
        curves.fpr,
        curves.tpr.transpose("fpr", "member").values,
        color=colour,
        linewidth=0.5,
        alpha=0.3,
    )
    ax.plot(curves.fpr, curves.tpr_median, color="black", linewidth=1.8, label="median")
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=0.7, linestyle="--")
    ax.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="false positive rate", ylabel="true positive rate")
    ax.set_aspect("equal")
    ax.legend(loc="lower right")


def maps(finding: xr.Dataset) -> Figure:
    """Observed and predicted smoke at five percentiles of IoU, on one colour scale."""
    shown = _shown(finding)
    titles = [
        f"{percentile}th percentile\nIoU {iou:.2f}\n{hours_text(hours)}, {plain(drought, 16)}"
        for percentile, iou, hours, drought in zip(
            finding.percentile.values, finding.map_iou.values, finding.map_hours.values,
            finding.map_drought.values, strict=True,
        )
    ]  # fmt: skip
    return compare_maps(
        shown,
        {"predicted": shown.predicted},
        range(shown.sizes[SNAPSHOT]),
        titles,
        threshold=float(finding.attrs["smoke_threshold"]),
        width=WIDTH,
    )


def _shown(finding: xr.Dataset) -> xr.Dataset:
    names = {"percentile": SNAPSHOT, "map_hours": "hours"}
    shown = finding[[FIRE, SMOKE, "predicted"]]
    return shown.rename({old: new for old, new in names.items() if old in shown.coords})


def typical_map(finding: xr.Dataset) -> tuple[Figure, str]:
    """The snapshot with the median IoU: observed beside predicted smoke, and a caption."""
    row = int(np.argmin(np.abs(finding.percentile.values - 50)))
    shown = _shown(finding)
    tau, colours = float(finding.attrs["smoke_threshold"]), mean_colours(shown)
    unit = "the time mean since ignition" if colours.is_mean else "the sum over checkpoints"
    method = title_of(finding.attrs["methods"].split(",")[0])
    caption = (
        f"A typical test snapshot (median IoU, {float(finding.map_iou[row]):.2f}): fire "
        f"{finding.map_fire_id.values[row]} after {hours_text(finding.map_hours[row])}. Left: "
        f"observed smoke. Right: predicted smoke ({method}). Colours are {unit}. White is smoke "
        f"whose sum over checkpoints is below τ = {tau:.3g} µg m⁻³; the red line is the burned "
        "area."
    )
    return compare_one(shown, shown.predicted, row, tau, colours), caption


def extent(finding: xr.Dataset) -> Figure:
    """IoU against the extent of the footprint, with the median in ten bins of equal count."""
    name = finding.attrs["methods"].split(",")[0]
    size, iou = 100.0 * finding.extent.values, finding.iou.values
    figure = new_figure(2.8, width=4.2)
    ax = figure.subplots()
    colour = look_of(name)["color"]
    ax.scatter(size, iou, s=5, color=colour, alpha=0.25, linewidths=0, rasterized=True)
    tenths = [part for part in np.array_split(np.argsort(size, kind="stable"), 10) if part.size]
    middles = np.array([(np.median(size[part]), np.median(iou[part])) for part in tenths])
    ax.plot(*middles.T, color="black", marker="o", linewidth=1.6, label="median of a tenth")
    ax.legend(loc="best")
    ax.set(xlabel="footprint, % of the grid", ylabel="IoU", ylim=(0, 1.02))
    ax.set_xlim(left=0)
    light_grid(ax)
    return figure


def remarks(finding: xr.Dataset) -> list[str]:
    """Median scores of every method, and whether the IoU depends on the extent."""
    methods = finding.attrs["methods"].split(",")
    out = [_medians(select(finding, name=name), name) for name in methods]
    part = select(finding, name=methods[0])
    size, iou = part.extent.values, part.iou.values
    if size.size > 2 and np.ptp(size) > 0.0 and np.ptp(iou) > 0.0:
        rank = np.corrcoef(_ranks(size), _ranks(iou))[0, 1]
        out.append(
            f"The rank correlation between the IoU and the extent of the footprint is {rank:+.2f}."
        )
    return out


def _medians(part: xr.Dataset, name: str) -> str:
    text = (
        f"{title_of(name)}: over {part.sizes['row']:,} test snapshots the median AUC is "
        f"{known_median(part.auc):.2f}, the IoU {known_median(part.iou):.2f}, the deployable IoU "
        f"{known_median(part.deployable_iou):.2f} and the relative error "
        f"{known_median(part.relative_error):.2f}"
    )
    known = published.TABLE.get(name)
    if known is not None:
        text += f" (paper: AUC {known.auc:.2f}, IoU {known.iou:.2f})"
    return text + "."


def _ranks(values: np.ndarray) -> np.ndarray:
    ranks = np.empty(values.size)
    ranks[np.argsort(values, kind="stable")] = np.arange(values.size)
    return ranks


def _study(name: str, method: str, title: str) -> Study:
    return Study(
        name=name,
        title=title,
        question="Where is smoke, and how often is the prediction right?",
        run=partial(compare_methods, methods=(method,)),
        figures=figures,
        remarks=remarks,
        captions=CAPTIONS,
        bitmap=("maps",),
        limits=("curves",),
        version=2,
    )


LINEAR = _study("footprint-linear", "paper-linear", "Smoke footprint, linear operator")
QUADRATIC = _study("footprint-quadratic", "paper-quadratic", "Smoke footprint, quadratic operator")
RECOMMENDED = _study(
    "footprint-recommended", "recommended", "Smoke footprint, recommended operator"
)


# -- The paper's alternative: Gaussian processes of images and of PCA codes, on 100 snapshots

GP_METHODS = ("gp-images", "gp-codes")


def compare_processes(context: Context) -> xr.Dataset:
    """Per-snapshot scores of both Gaussian processes."""
    found = compare_methods(context, GP_METHODS)
    scales = {
        f"{name} length_scale": length_scale(fitted(context, name).surrogate) for name in GP_METHODS
    }
    return found.assign_attrs(samples=GP_SAMPLES, **scales)


def length_scale(surrogate: Surrogate) -> float:
    """Length scale of a fitted Gaussian process, which maximises its likelihood."""
    process = process_of(surrogate)
    assert process is not None
    return process.length_scale


def process_of(surrogate: Surrogate) -> GaussianProcess | None:
    """The Gaussian process of a surrogate, of images or of codes; None if it has none."""
    operator = surrogate.operator
    process = operator.code_map if isinstance(operator, CodedOperator) else operator
    return process if isinstance(process, GaussianProcess) else None


def process_figures(finding: xr.Dataset) -> dict[str, Figure]:
    """ROC curves and distributions: images in the first row, codes in the second."""
    return {"classification": classification(finding)}


def process_remarks(finding: xr.Dataset) -> list[str]:
    """Median scores of both processes, and their length scales."""
    scales = " and ".join(
        f"{finding.attrs[f'{name} length_scale']:.3g} for {title_of(name)}" for name in GP_METHODS
    )
    return [
        *remarks(finding)[: len(GP_METHODS)],
        f"Both were trained on {finding.attrs['samples']} snapshots; the length scale l is "
        f"{scales}.",
    ]


PROCESSES = Study(
    name="gaussian-process",
    title="Gaussian processes",
    question="Is a Gaussian process trained on 100 snapshots as good?",
    run=compare_processes,
    figures=process_figures,
    remarks=process_remarks,
    captions={"classification": CAPTIONS["classification"]},
    limits=("curves",),
)
