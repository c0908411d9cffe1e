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
    INK,
    MUTED,
    WIDTH,
    compare_maps,
    compare_one,
    hours_text,
    light_grid,
    look_of,
    mean_colours,
    new_figure,
    plain,
)
from plumecast.paper.methods import fitted, title_of
from plumecast.paper.scoring import FPR_GRID, SNAPSHOT_SCORES, MethodScores, outcome
from plumecast.scores.tally import known_median, known_values
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
    table = tidy([row for name in methods for row in _rows(name, outcomes[name].scores)], COLUMNS)
    shown = context.rng("footprint").permutation(context.split.test.sizes[SNAPSHOT])
    shown = np.sort(shown[: context.limits.curves])
    parts = [_curves(outcomes[name], shown) for name in methods]
    curves = xr.concat(parts, dim="operator").assign_coords(operator=list(methods))
    maps = outcomes[methods[0]].maps
    merged = xr.merge([table, curves, maps], combine_attrs="override")
    paper = published.TABLE.get(methods[0])
    scores = {name: outcomes[name].score for name in methods}
    return merged.assign_attrs(
        methods=",".join(methods),
        smoke_threshold=context.smoke_threshold,
        captured=context.captured,
        **{f"{name} decision_threshold": scores[name].decision_threshold for name in methods},
        **{f"{name} relative_error": score.relative_error for name, score in scores.items()},
        **({} if paper is None else {"paper_auc": paper.auc, "paper_iou": paper.iou}),
    )


def _rows(name: str, scores: xr.Dataset) -> list[dict[str, object]]:
    columns = [column for column in COLUMNS if column in scores.variables]
    values = zip(*(scores[column].values.tolist() for column in columns), strict=True)
    return [{"name": name} | dict(zip(columns, row, strict=True)) for row in values]


def _curves(found: MethodScores, shown: np.ndarray) -> xr.Dataset:
    defined = found.curves[~np.isnan(found.curves).any(axis=1)]
    if defined.shape[0] == 0:
        defined = np.full((1, FPR_GRID.size), np.nan)
    spread = np.percentile(defined, (50, 25, 75), axis=0)
    names = ("tpr_median", "tpr_low", "tpr_high")
    curves = {name: ("fpr", values) for name, values in zip(names, spread, strict=True)}
    drawn = {"tpr": (("member", "fpr"), found.curves[shown])}
    return xr.Dataset({**curves, **drawn}, coords={"fpr": FPR_GRID})


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
    drawn = {"classification": classification, "maps": maps, "extent": extent}
    return {name: draw(finding) for name, draw in drawn.items()}


def classification(finding: xr.Dataset) -> Figure:
    """ROC curves and the distributions of AUC and IoU, one row of panels per method."""
    methods = finding.attrs["methods"].split(",")
    figure = new_figure(2.5 * len(methods))
    axes = figure.subplots(len(methods), 3, squeeze=False)
    for line, name in zip(axes, methods, strict=True):
        paper, colour = published.TABLE.get(name), look_of(name)["color"]
        scores = select(finding, name=name)
        _roc(line[0], finding.sel(operator=name), colour)
        line[0].set_title(title_of(name))
        for ax, column in ((line[1], "auc"), (line[2], "iou")):
            theirs = None if paper is None else getattr(paper, column)
            label = {"auc": "AUC", "iou": "IoU"}[column]
            _histogram(ax, scores[column].values, label, colour, theirs)
    return figure


def _roc(ax: Axes, curves: xr.Dataset, colour: str) -> None:
    thin = curves.tpr.transpose("fpr", "member").values
    ax.plot(curves.fpr, thin, color=colour, linewidth=0.5, alpha=0.3)
    ax.plot(curves.fpr, curves.tpr_median, color="black", linewidth=1.8, label="median")
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=0.7, linestyle="--")
    ax.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="false positive rate", ylabel="true positive rate")
    ax.set_aspect("equal")
    ax.legend(loc="lower right")


def _histogram(ax: Axes, values: np.ndarray, label: str, colour: str, paper: float | None) -> None:
    """Histogram of a score between 0 and 1, with its median and the paper's value."""
    defined = known_values(values)
    ax.hist(defined, bins=np.linspace(0.0, 1.0, 41).tolist(), color=colour, alpha=0.75)
    ax.set(xlim=(0.0, 1.0), xlabel=label, ylabel="snapshots")
    lines = [("median", known_median(defined), "-")] if defined.size else []
    lines += [] if paper is None else [("paper", paper, ":")]
    for _, value, style in lines:
        ax.axvline(value, color=INK, linewidth=1.2, linestyle=style)
    title = ", ".join(f"{name} {value:.2f}" for name, value, _ in lines)
    ax.set_title(title, fontweight="normal", fontsize=8.5)


def maps(finding: xr.Dataset) -> Figure:
    """Observed and predicted smoke at five percentiles of IoU, on one colour scale."""
    shown = _shown(finding)
    named = (finding[name].values for name in ("percentile", "map_iou", "map_hours", "map_drought"))
    titles = [
        f"{percentile}th percentile\nIoU {iou:.2f}\n{hours_text(hours)}, {plain(drought, 16)}"
        for percentile, iou, hours, drought in zip(*named, strict=True)
    ]
    tau = float(finding.attrs["smoke_threshold"])
    fields, rows = {"predicted": shown.predicted}, range(shown.sizes[SNAPSHOT])
    return compare_maps(shown, fields, rows, titles, threshold=tau, width=WIDTH)


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
        one, other = (np.argsort(np.argsort(item, kind="stable")) for item in (size, iou))
        rank = np.corrcoef(one, other)[0, 1]
        out.append(
            f"The rank correlation between the IoU and the extent of the footprint is {rank:+.2f}."
        )
    return out


def _medians(part: xr.Dataset, name: str) -> str:
    columns = ("auc", "iou", "deployable_iou", "relative_error")
    medians = {column: known_median(part[column]) for column in columns}
    text = (
        f"{title_of(name)}: over {part.sizes['row']:,} test snapshots the median AUC is "
        f"{medians['auc']:.2f}, the IoU {medians['iou']:.2f}, the deployable IoU "
        f"{medians['deployable_iou']:.2f} and the relative error {medians['relative_error']:.2f}"
    )
    paper = published.TABLE.get(name)
    return text + ("." if paper is None else f" (paper: AUC {paper.auc:.2f}, IoU {paper.iou:.2f}).")


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
    """Per-snapshot scores of both Gaussian processes, and their length scales."""
    processes = {name: process_of(fitted(context, name).surrogate) for name in GP_METHODS}
    scales = {f"{name} length_scale": item.length_scale for name, item in processes.items() if item}
    return compare_methods(context, GP_METHODS).assign_attrs(samples=GP_SAMPLES, **scales)


def process_of(surrogate: Surrogate) -> GaussianProcess | None:
    """The Gaussian process of a surrogate, of images or of codes; None if it has none.

    Its length scale maximises its likelihood.
    """
    operator = surrogate.operator
    process = operator.code_map if isinstance(operator, CodedOperator) else operator
    return process if isinstance(process, GaussianProcess) else None


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
    figures=lambda finding: {"classification": classification(finding)},
    remarks=process_remarks,
    captions={"classification": CAPTIONS["classification"]},
    limits=("curves",),
)
