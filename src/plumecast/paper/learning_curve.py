"""How many fires does each method need? Scores against the number of training ignitions.

The training sets are nested random subsets of the ignitions, with all fires and snapshots of each.
All fits are scored on the same random sample of test snapshots; their thresholds come from a random
sample of validation snapshots. The sizes of both samples are bounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.paper.context import (
    Context,
    Study,
    bounded,
    is_baseline,
    rows_of,
    select,
    tidy,
    with_groups,
)
from plumecast.paper.figures import light_grid, look_of, new_figure
from plumecast.paper.methods import fitted, title_of
from plumecast.paper.scoring import MEDIAN_SCORES, score_surrogate
from plumecast.surrogate.baselines import fit_baseline
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate

METHODS = (
    "paper-linear", "paper-quadratic", "gp-images", "recommended", "mean-field", "nearest-fire",
)  # fmt: skip
FEWEST = 4  # ignitions

COLUMNS = {
    "method": ("method", "1"),
    "ignitions": ("training ignitions", "1"),
    "fires": ("training fires", "1"),
    "snapshots": ("training snapshots", "1"),
    **MEDIAN_SCORES,
    "median_error": ("median relative error of the smoke", "1"),
}


def run(context: Context) -> xr.Dataset:
    """Scores of every method for doubling numbers of ignitions."""
    train, by = context.split.train, context.split.by
    rng = context.rng("learning-curve")
    order = rng.permutation(np.unique(train[by].values.astype(str)))
    if order.size < 2 * FEWEST:
        raise PlumecastError(
            f"{order.size} training ignitions are too few for a learning curve; at least "
            f"{2 * FEWEST} are needed"
        )
    validation = bounded(context.split.validation, context.limits.scored // 2, rng)
    test = bounded(context.split.test, context.limits.scored, rng)
    rows, left_out = [], 0
    for size in curve_sizes(order.size):
        part = with_groups(train, by, order[:size])
        whole = size == order.size
        for name in METHODS:
            if not whole and name == "recommended" and _too_large(context, part):
                left_out += 1
                continue
            context.tell(f"{name} from {size} ignitions")
            made = fitted(context, name).surrogate if whole else _fit(context, name, part)
            [found] = score_surrogate(made, validation, [test], tau=context.smoke_threshold)
            scores = {column: getattr(found.score, column) for column in MEDIAN_SCORES}
            scores["median_error"] = found.score.snapshot_error
            rows.append({"method": name, "ignitions": size, **_counts(part), **scores})
    return tidy(rows, COLUMNS).assign_attrs(
        test_snapshots=int(test.sizes[SNAPSHOT]),
        validation_snapshots=int(validation.sizes[SNAPSHOT]),
        smoke_threshold=context.smoke_threshold,
        recommended_left_out=left_out,
        curve_train=context.limits.curve_train,
    )


def curve_sizes(count: int) -> list[int]:
    """Doubling numbers of ignitions; the last size is `count`."""
    sizes = [FEWEST * 2**power for power in range(20) if FEWEST * 2**power < 0.75 * count]
    return [*sizes, count]


def _fit(context: Context, name: str, part: xr.Dataset) -> Surrogate:
    if is_baseline(name):
        return fit_baseline(name, part, seed=context.seed)
    return fit_surrogate(part, name, group_by=context.split.by)


def _too_large(context: Context, part: xr.Dataset) -> bool:
    return bool(part.sizes[SNAPSHOT] > context.limits.curve_train)


def _counts(part: xr.Dataset) -> dict[str, Any]:
    return {
        "fires": len(np.unique(part.fire_id.values)),
        "snapshots": int(part.sizes[SNAPSHOT]),
    }


CAPTIONS = {
    "curves": (
        "Median scores on the same test snapshots against the number of training ignitions, "
        "for nested subsets of the ignitions. High-fidelity simulations dominate the cost, so "
        "the best method is the one whose scores are good with few ignitions."
    )
}


def figures(finding: xr.Dataset) -> dict[str, Figure]:
    """AUC, IoU and relative error against the number of training ignitions."""
    figure = new_figure(3.1)
    axes = figure.subplots(1, 3)
    panels = (
        ("auc", "AUC"),
        ("deployable_iou", "deployable IoU"),
        ("median_error", "relative error"),
    )
    for ax, (name, label) in zip(axes, panels, strict=True):
        for method in METHODS:
            part = select(finding, method=method)
            ax.plot(part.ignitions, part[name], label=title_of(method), **look_of(method))
        ax.set(xscale="log", xlabel="training ignitions", title=label)
        ticks = np.unique(finding.ignitions.values)
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
        light_grid(ax)
    axes[0].set_ylim(min(0.5, float(finding.auc.min()) - 0.02), 1.01)
    axes[1].set_ylim(0.0, 1.01)
    axes[2].set_ylim(0.0, min(1.6, axes[2].get_ylim()[1]))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return {"curves": figure}


def remarks(finding: xr.Dataset) -> list[str]:
    """Scores for the fewest ignitions, and the bounds of the study."""
    smallest = int(finding.ignitions.min())
    listed = ", ".join(
        f"{row['deployable_iou']:.2f} for {title_of(row['method'])}"
        for row in rows_of(select(finding, ignitions=smallest))
    )
    out = [f"With {smallest} training ignitions the median deployable IoU is {listed}."]
    if finding.attrs["recommended_left_out"]:
        out.append(
            "The recommended operator was fitted to the whole training part, but not to subsets "
            f"of more than {finding.attrs['curve_train']:,} snapshots."
        )
    out.append(
        f"The scores are medians over {finding.attrs['test_snapshots']} random test snapshots, for "
        "one random sequence of nested subsets."
    )
    return out


STUDY = Study(
    name="learning-curve", title="Learning curve",
    question="How many fires does each method need?",
    run=run, figures=figures, remarks=remarks, captions=CAPTIONS, limits=("curve_train", "scored"),
)  # fmt: skip
