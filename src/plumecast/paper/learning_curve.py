"""How many fires does each method need? Scores against the number of training ignitions.

Study `learning-curve` trains on nested random subsets of the ignitions, with all fires and
snapshots of each, and scores on one bounded random sample of test snapshots.

Study `weather` is for fires that each have their own weather: training sets of each size are drawn
several times, and test snapshots are always those of the same ignitions. Methods that carry smoke
are left out if the data has no weather. Finished rows are kept in the folder of the run, so that a
stopped study continues where it was.

In both, τ and the decision threshold come from the validation part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT, WIND
from plumecast.data.covariates import extrapolating, weather_known
from plumecast.operators.settings import NETWORKS
from plumecast.paper.context import (
    Context,
    Study,
    bounded,
    rows_of,
    select,
    tidy,
    timed,
    with_groups,
)
from plumecast.paper.figures import draw_bending, size_curves
from plumecast.paper.methods import PHYSICS_ALONE, fit_physics_alone, fitted, title_of
from plumecast.paper.scoring import MEDIAN_SCORES, median_scores, score_surrogate
from plumecast.surrogate.baselines import BASELINES, fit_baseline
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate

METHODS = (
    "paper-linear", "paper-quadratic", "gp-images", "recommended", "mean-field", "nearest-fire",
)  # fmt: skip
FEWEST = 4  # ignitions of the learning curve

_SCORES = {**MEDIAN_SCORES, "median_error": ("median relative error of the smoke", "1")}

COLUMNS = {
    "method": ("method", "1"),
    "ignitions": ("training ignitions", "1"),
    "fires": ("training fires", "1"),
    "snapshots": ("training snapshots", "1"),
    **_SCORES,
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
        part, whole = with_groups(train, by, order[:size]), size == order.size
        counts = {"ignitions": size, "fires": len(np.unique(part.fire_id.values))}
        counts["snapshots"] = int(part.sizes[SNAPSHOT])
        for name in METHODS:
            too_large = counts["snapshots"] > context.limits.curve_train
            if not whole and name == "recommended" and too_large:
                left_out += 1
                continue
            context.tell(f"{name} from {size} ignitions")
            made = fitted(context, name).surrogate if whole else _fit(context, name, part)
            [scored] = score_surrogate(made, validation, [test], tau=context.smoke_threshold)
            rows.append({"method": name, **counts, **median_scores(scored.score)})
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


def _fit(context: Context, method: str, part: xr.Dataset) -> Surrogate:
    """A method trained on a part of the training part."""
    if method in BASELINES:
        return fit_baseline(method, part, seed=context.seed)
    if method == PHYSICS_ALONE:
        return fit_physics_alone(part)
    choices = dict(CHOICES.get(method, {}), preset="recommended" if method in CHOICES else method)
    if method in NETWORKS:  # the frame and the channels that serve the spectral family
        choices = {"family": method}
        choices |= {"physics": "column"} if weather_known(part) else {}
        choices |= {"frame": "wind"} if all(name in part.variables for name in WIND) else {}
    return fit_surrogate(part, group_by=context.split.by, **choices)


CAPTIONS = {
    "curves": (
        "Median scores on the same test snapshots against the number of training ignitions, "
        "for nested subsets of the ignitions. High-fidelity simulations dominate the cost, so "
        "the best method is the one whose scores are good with few ignitions."
    )
}


def figures(finding: xr.Dataset) -> dict[str, Figure]:
    """AUC, IoU and relative error against the number of training ignitions."""
    panels = {"auc": "AUC", "deployable_iou": "deployable IoU", "median_error": "relative error"}
    titles = {method: title_of(method) for method in METHODS}
    figure = size_curves(finding, titles, panels, height=3.1)
    left, middle, right = figure.axes
    left.set_ylim(min(0.5, float(finding.auc.min()) - 0.02), 1.01)
    middle.set_ylim(0.0, 1.01)
    right.set_ylim(0.0, min(1.6, right.get_ylim()[1]))
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
    return [
        *out,
        f"The scores are medians over {finding.attrs['test_snapshots']} random test snapshots, for "
        "one random sequence of nested subsets.",
    ]


STUDY = Study(
    name="learning-curve", title="Learning curve",
    question="How many fires does each method need?",
    run=run, figures=figures, remarks=remarks, captions=CAPTIONS, limits=("curve_train", "scored"),
)  # fmt: skip


# -- Fires with their own weather

CHOICES: dict[str, dict[str, Any]] = {
    "recommended": {},
    "spectral-no-physics": {"physics": "none"},
    "spectral-on-map": {"frame": "map", "physics": "column"},
}
"""Methods of the spectral family: what each replaces in the preset `recommended`."""

CARRIED = ("spectral-on-map", PHYSICS_ALONE)
"""Methods that need the weather."""

MAPPED = ("recommended", PHYSICS_ALONE)  # methods on maps
SHOWN = 4  # held-out fires on maps
FEWEST_OF_WEATHER = 3  # ignitions of a training set

WEATHER_COLUMNS = {
    "method": ("method", "1"),
    "ignitions": ("training ignitions", "1"),
    "draw": ("number of the random draw of the training ignitions", "1"),
    "snapshots": ("training snapshots", "1"),
    "frame": ("frame of the operator", "1"),
    "physics": ("physics channels of the operator", "1"),
    **_SCORES,
    "log_error": ("median relative error of ln(smoke + 1)", "1"),
    "seconds": ("time of training", "s"),
}


def run_weather(context: Context) -> xr.Dataset:
    """Scores of every method, size and draw, and maps of a few held-out fires."""
    by, rng, limits = context.split.by, context.rng("weather"), context.limits
    pool = np.unique(context.split.train[by].values.astype(str))
    sizes = training_sizes(limits.weather_sizes, pool.size)
    orders = [rng.permutation(pool) for _ in range(limits.weather_draws)]
    names = np.unique(context.split.test[by].values.astype(str))
    test = with_groups(context.split.test, by, rng.permutation(names)[: limits.weather_tested])
    validation = bounded(context.split.validation, limits.scored // 2, rng)
    methods = methods_of(context)

    def row_of(method: str, size: int, draw: int) -> dict[str, Any]:
        made, seconds = _timed_fit(context, method, size, draw, orders[draw])
        [scored] = score_surrogate(made, validation, [test], tau=context.smoke_threshold)
        return {
            "method": method, "ignitions": size, "draw": draw,
            "snapshots": int(made.training["snapshots"]),
            **{name: str(made.training.get(name, "none")) for name in ("frame", "physics")},
            **median_scores(scored.score), "log_error": scored.median("log_error"),
            "seconds": seconds,
        }  # fmt: skip

    limits_of_row = ("weather_tested", "scored")
    rows = [
        context.kept(
            f"weather {method} {size} {draw}",
            limits_of_row,
            lambda: row_of(method, size, draw),  # noqa: B023
        )
        for size in sizes
        for draw in range(len(orders))
        for method in methods
    ]
    shown = _maps(context, methods, sizes[-1], orders[0], test)
    return (
        tidy(rows, WEATHER_COLUMNS, clocks=("seconds",))
        .merge(shown)
        .assign_attrs(
            methods=",".join(methods),
            test_fires=len(np.unique(test.fire_id.values)),
            test_snapshots=int(test.sizes[SNAPSHOT]),
            validation_snapshots=int(validation.sizes[SNAPSHOT]),
            draws=len(orders),
            smoke_threshold=context.smoke_threshold,
            weather_known=int(weather_known(context.split.train)),
        )
    )


def methods_of(context: Context) -> tuple[str, ...]:
    """The methods to compare; without weather, those that need none."""
    network = tuple(name for name in context.limits.neural if name == "unet")
    every = (*CHOICES, *network, PHYSICS_ALONE, "mean-field", "nearest-fire")
    if weather_known(context.split.train):
        return every
    return tuple(name for name in every if name not in CARRIED)


def training_sizes(wanted: tuple[int, ...], count: int) -> list[int]:
    """The wanted numbers of ignitions that the training part has; all of them if it has fewer."""
    if count < FEWEST_OF_WEATHER:
        raise PlumecastError(
            f"{count} training ignitions are too few for the study weather; at least "
            f"{FEWEST_OF_WEATHER} are needed, so add fires or give a larger training part with "
            "--fractions"
        )
    return sorted({size for size in wanted if FEWEST_OF_WEATHER <= size <= count}) or [count]


def _timed_fit(
    context: Context, method: str, size: int, draw: int, order: np.ndarray
) -> tuple[Surrogate, float]:
    """A method trained on the first ignitions of an order, and the seconds of its training.

    Surrogates of the first draw that are shown on maps stay in memory.
    """

    def fit() -> tuple[Surrogate, float]:
        part = with_groups(context.split.train, context.split.by, order[:size])
        return timed(lambda: _fit(context, method, part))

    if draw == 0 and method in MAPPED:
        return context.once(f"weather: fitting {method} to {size} ignitions", fit)
    return fit()


def _maps(
    context: Context, methods: tuple[str, ...], size: int, order: np.ndarray, test: xr.Dataset
) -> xr.Dataset:
    """The last snapshots of a few held-out fires with different winds, and their predictions."""
    chosen = test.isel({SNAPSHOT: different_winds(test, SHOWN)})
    fields = {FIRE: chosen[FIRE], "observed": chosen[SMOKE]}
    for name in MAPPED:
        if name in methods:
            made, _ = _timed_fit(context, name, size, 0, order)
            with extrapolating():
                predicted, _ = made.predict_both(chosen)
            fields[name] = predicted.transpose(*chosen[SMOKE].dims)
    maps = xr.Dataset({f"map_{name}": field.variable for name, field in fields.items()})
    labels = {
        f"shown_{name}": ("shown", chosen[name].values)
        for name in ("hours", "fire_id", *WIND)
        if name in chosen.variables
    }
    return maps.rename({SNAPSHOT: "shown"}).assign_coords({"x": chosen.x, "y": chosen.y} | labels)


def different_winds(test: xr.Dataset, count: int) -> list[int]:
    """Rows of the last snapshots of fires whose wind directions are spread evenly.

    Without winds, fires in the order of the data.
    """
    _, last = np.unique(test.fire_id.values[::-1], return_index=True)
    rows = np.sort(test.sizes[SNAPSHOT] - 1 - last)
    smoky = rows[(test[SMOKE].values[rows] > 0.0).any(axis=(1, 2))]
    rows = smoky if smoky.size else rows
    if all(name in test.variables for name in WIND):
        rows = rows[np.argsort(test[WIND[1]].values[rows], kind="stable")]
    places = np.linspace(0, rows.size, min(count, rows.size), endpoint=False).astype(int)
    return [int(row) for row in rows[places]]


WEATHER_CAPTIONS = {
    "curves": (
        "Median scores on the same test fires against the number of training ignitions. Lines "
        "are means over random draws of the training ignitions, and shading spans the draws."
    ),
    "plumes": (
        "Held-out fires with different winds at their last checkpoint: simulated or observed "
        "smoke, the recommended surrogate with the most training ignitions, and carried smoke "
        "times one factor where the weather is known. The burned area is outlined, and the arrow "
        "shows where the mean wind blows. Smoke below the smoke threshold is white."
    ),
}


def weather_figures(finding: xr.Dataset) -> dict[str, Figure]:
    """Learning curves with the spread of draws; maps of plumes that bend with the wind."""
    panels = {
        "iou": "IoU, swept",
        "deployable_iou": "IoU, deployable",
        "log_error": "relative error of ln(g + 1)",
    }
    titles = {method: title_of(method) for method in finding.attrs["methods"].split(",")}
    figure = size_curves(finding, titles, panels, height=3.4, draws=True)
    *shares, errors = figure.axes
    for ax in shares:
        ax.set_ylim(0.0, 1.01)
    errors.set_ylim(0.0, min(1.6, errors.get_ylim()[1]))
    return {"curves": figure, "plumes": draw_bending(finding)}


def weather_remarks(finding: xr.Dataset) -> list[str]:
    """Scores for each number of ignitions, costs of training, and what the table rests on."""
    out = []
    for size in np.unique(finding.ignitions.values):
        part = select(finding, method="recommended", ignitions=size)
        out.append(
            f"With {size} training ignitions the recommended surrogate has a median IoU of "
            f"{_range(part.iou)} (deployable {_range(part.deployable_iou)}, smoke above τ "
            f"{_range(part.smoke_iou)}), a relative error of {_range(part.median_error)}, and of "
            f"{_range(part.log_error)} for the logarithm; its training takes "
            f"{_range(part.seconds, 0)} s."
        )
    largest = int(finding.ignitions.max())
    listed = ", ".join(
        f"{float(select(finding, method=name, ignitions=largest).iou.mean()):.2f} for "
        f"{title_of(name)}"
        for name in finding.attrs["methods"].split(",")
        if name != "recommended"
    )
    out.append(f"With {largest} ignitions the mean IoU of the other methods is {listed}.")
    if not finding.attrs["weather_known"]:
        out.append("No smoke was carried, because the data has no weather.")
    return [
        *out,
        f"The scores are medians over {finding.attrs['test_snapshots']} snapshots of "
        f"{finding.attrs['test_fires']} held-out fires; ranges are over {finding.attrs['draws']} "
        "random draws of the training ignitions, and thresholds are from validation fires.",
    ]


def _range(values: xr.DataArray, digits: int = 2) -> str:
    low, high = (f"{value:.{digits}f}" for value in (float(values.min()), float(values.max())))
    return low if low == high else f"{low} to {high}"


WEATHER = Study(
    name="weather", title="Fires with their own weather",
    question="How many fires does each method need if every fire has its own weather?",
    run=run_weather, figures=weather_figures, remarks=weather_remarks, captions=WEATHER_CAPTIONS,
    bitmap=("plumes",),
    limits=("weather_sizes", "weather_draws", "weather_tested", "scored", "neural"),
)  # fmt: skip
