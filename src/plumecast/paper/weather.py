"""Fires that each have their own weather: scores against the number of training ignitions.

Training sets of each size are drawn at random several times from the ignitions of the training
part; test snapshots are always those of the same ignitions. τ and the decision threshold come from
the validation part. Methods that carry smoke are left out if the data has no weather. Finished rows
are kept in the folder of the run, so that a stopped study continues where it was.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_json
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT, WIND
from plumecast.base.version import __version__
from plumecast.data.covariates import extrapolating, weather_known
from plumecast.operators.settings import NETWORKS
from plumecast.paper.context import Context, Study, bounded, is_baseline, select, tidy, with_groups
from plumecast.paper.figures import draw_bending, light_grid, look_of, new_figure
from plumecast.paper.methods import PHYSICS_ALONE, fit_physics_alone, title_of
from plumecast.paper.scoring import MEDIAN_SCORES, score_surrogate
from plumecast.surrogate.baselines import fit_baseline
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate

CHOICES: dict[str, dict[str, Any]] = {
    "recommended": {},
    "spectral-no-physics": {"physics": "none"},
    "spectral-on-map": {"frame": "map", "physics": "column"},
}
"""Methods of the spectral family: what each replaces in the preset `recommended`."""

CARRIED = ("spectral-on-map", PHYSICS_ALONE)
"""Methods that need the weather."""

BASELINES = ("mean-field", "nearest-fire")
MAPPED = ("recommended", PHYSICS_ALONE)  # methods on maps
SHOWN = 4  # held-out fires on maps
FEWEST = 3  # ignitions of a training set

COLUMNS = {
    "method": ("method", "1"),
    "ignitions": ("training ignitions", "1"),
    "draw": ("number of the random draw of the training ignitions", "1"),
    "snapshots": ("training snapshots", "1"),
    "frame": ("frame of the operator", "1"),
    "physics": ("physics channels of the operator", "1"),
    **MEDIAN_SCORES,
    "median_error": ("median relative error of the smoke", "1"),
    "log_error": ("median relative error of ln(smoke + 1)", "1"),
    "seconds": ("time of training", "s"),
}


def run(context: Context) -> xr.Dataset:
    """Scores of every method, size and draw, and maps of a few held-out fires."""
    by, rng = context.split.by, context.rng("weather")
    pool = np.unique(context.split.train[by].values.astype(str))
    sizes = training_sizes(context.limits.weather_sizes, pool.size)
    orders = [rng.permutation(pool) for _ in range(context.limits.weather_draws)]
    names = np.unique(context.split.test[by].values.astype(str))
    tested = rng.permutation(names)[: context.limits.weather_tested]
    test = with_groups(context.split.test, by, tested)
    validation = bounded(context.split.validation, context.limits.scored // 2, rng)
    methods = methods_of(context)
    rows = [
        kept_row(
            context,
            f"weather {method} {size} {draw}",
            lambda: _row(context, method, size, draw, orders[draw], (validation, test)),  # noqa: B023
        )
        for size in sizes
        for draw in range(len(orders))
        for method in methods
    ]
    shown = _maps(context, methods, sizes[-1], orders[0], test)
    finding = tidy(rows, COLUMNS, clocks=("seconds",))
    return finding.merge(shown).assign_attrs(
        methods=",".join(methods),
        test_fires=len(np.unique(test.fire_id.values)),
        test_snapshots=int(test.sizes[SNAPSHOT]),
        validation_snapshots=int(validation.sizes[SNAPSHOT]),
        draws=len(orders),
        smoke_threshold=context.smoke_threshold,
        weather_known=int(weather_known(context.split.train)),
    )


def methods_of(context: Context) -> tuple[str, ...]:
    """The methods to compare; without weather, those that need none."""
    network = tuple(name for name in context.limits.neural if name == "unet")
    every = (*CHOICES, *network, PHYSICS_ALONE, *BASELINES)
    if weather_known(context.split.train):
        return every
    return tuple(name for name in every if name not in CARRIED)


def training_sizes(wanted: tuple[int, ...], count: int) -> list[int]:
    """The wanted numbers of ignitions that the training part has; all of them if it has fewer."""
    if count < FEWEST:
        raise PlumecastError(
            f"{count} training ignitions are too few for the study weather; at least {FEWEST} are "
            "needed, so add fires or give a larger training part with --fractions"
        )
    return sorted({size for size in wanted if FEWEST <= size <= count}) or [count]


def _row(
    context: Context,
    method: str,
    size: int,
    draw: int,
    order: np.ndarray,
    parts: tuple[xr.Dataset, xr.Dataset],
) -> dict[str, Any]:
    """One row of the table: fit a method to the first ignitions of an order, and score it."""
    made, seconds = _fitted(context, method, size, draw, order)
    validation, test = parts
    [found] = score_surrogate(made, validation, [test], tau=context.smoke_threshold)
    return {
        "method": method, "ignitions": size, "draw": draw,
        "snapshots": int(made.training["snapshots"]),
        **{name: str(made.training.get(name, "none")) for name in ("frame", "physics")},
        **{column: getattr(found.score, column) for column in MEDIAN_SCORES},
        "log_error": found.median("log_error"),
        "median_error": found.score.snapshot_error,
        "seconds": seconds,
    }  # fmt: skip


def _fitted(
    context: Context, method: str, size: int, draw: int, order: np.ndarray
) -> tuple[Surrogate, float]:
    """A method trained on the first ignitions of an order, and the seconds of its training.

    Surrogates of the first draw that are shown on maps stay in memory.
    """

    def fit() -> tuple[Surrogate, float]:
        part = with_groups(context.split.train, context.split.by, order[:size])
        start = time.perf_counter()
        made = _fit(context, method, part)
        return made, time.perf_counter() - start

    if draw == 0 and method in MAPPED:
        return context.once(f"weather: fitting {method} to {size} ignitions", fit)
    return fit()


def _fit(context: Context, method: str, part: xr.Dataset) -> Surrogate:
    if is_baseline(method):
        return fit_baseline(method, part, seed=context.seed)
    if method == PHYSICS_ALONE:
        return fit_physics_alone(part)
    if method in NETWORKS:
        return _fit_network(context, method, part)
    return fit_surrogate(part, "recommended", group_by=context.split.by, **CHOICES[method])


def _fit_network(context: Context, method: str, part: xr.Dataset) -> Surrogate:
    """A network with the frame and the channels that serve the spectral family, where known."""
    inputs: dict[str, Any] = {}
    if weather_known(part):
        inputs |= {"physics": "column"}
    if all(name in part.variables for name in WIND):
        inputs |= {"frame": "wind"}
    return fit_surrogate(part, family=method, group_by=context.split.by, **inputs)


def _maps(
    context: Context, methods: tuple[str, ...], size: int, order: np.ndarray, test: xr.Dataset
) -> xr.Dataset:
    """The last snapshots of a few held-out fires with different winds, and their predictions."""
    chosen = test.isel({SNAPSHOT: different_winds(test, SHOWN)})
    fields = {FIRE: chosen[FIRE], "observed": chosen[SMOKE]}
    for name in MAPPED:
        if name in methods:
            made, _ = _fitted(context, name, size, 0, order)
            with extrapolating():
                predicted, _ = made.predict_both(chosen)
            fields[name] = predicted.transpose(*chosen[SMOKE].dims)
    maps = xr.Dataset({f"map_{name}": field.variable for name, field in fields.items()})
    maps = maps.rename({SNAPSHOT: "shown"}).assign_coords(x=chosen.x, y=chosen.y)
    labels = {
        f"shown_{name}": ("shown", chosen[name].values)
        for name in ("hours", "fire_id", *WIND)
        if name in chosen.variables
    }
    return maps.assign_coords(labels)


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


CAPTIONS = {
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


def figures(finding: xr.Dataset) -> dict[str, Figure]:
    """Learning curves with the spread of draws; maps of plumes that bend with the wind."""
    return {"curves": _curves(finding), "plumes": draw_bending(finding)}


def _curves(finding: xr.Dataset) -> Figure:
    figure = new_figure(3.4)
    panels = (
        ("iou", "IoU, swept"),
        ("deployable_iou", "IoU, deployable"),
        ("log_error", "relative error of ln(g + 1)"),
    )
    axes = figure.subplots(1, len(panels))
    sizes = np.unique(finding.ignitions.values)
    for index, method in enumerate(finding.attrs["methods"].split(",")):
        look = look_of(method, index)
        part = select(finding, method=method)
        for ax, (name, _) in zip(axes, panels, strict=True):
            draws = [select(part, ignitions=size)[name].values for size in sizes]
            ax.plot(sizes, [np.mean(d) for d in draws], label=title_of(method), **look)
            ax.fill_between(sizes, [d.min() for d in draws], [d.max() for d in draws],
                            color=look["color"], alpha=0.2, linewidth=0)  # fmt: skip
    for ax, (name, label) in zip(axes, panels, strict=True):
        ax.set(xscale="log", xlabel="training ignitions", title=label)
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        ax.set_ylim(0.0, 1.01 if name != "log_error" else min(1.6, ax.get_ylim()[1]))
        light_grid(ax)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def remarks(finding: xr.Dataset) -> list[str]:
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
    others = [name for name in finding.attrs["methods"].split(",") if name != "recommended"]
    listed = ", ".join(
        f"{float(select(finding, method=name, ignitions=largest).iou.mean()):.2f} for "
        f"{title_of(name)}"
        for name in others
    )
    out.append(f"With {largest} ignitions the mean IoU of the other methods is {listed}.")
    if not finding.attrs["weather_known"]:
        out.append("No smoke was carried, because the data has no weather.")
    out.append(
        f"The scores are medians over {finding.attrs['test_snapshots']} snapshots of "
        f"{finding.attrs['test_fires']} held-out fires; ranges are over {finding.attrs['draws']} "
        "random draws of the training ignitions, and thresholds are from validation fires."
    )
    return out


def _range(values: xr.DataArray, digits: int = 2) -> str:
    low, high = (f"{value:.{digits}f}" for value in (float(values.min()), float(values.max())))
    return low if low == high else f"{low} to {high}"


# -- Rows that are kept on disk as soon as they are computed


def kept_row(context: Context, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The row that `make` computes, or the one that an earlier run with the same data kept.

    Rows are kept in the folder of the context; without one they are always computed.
    """
    if context.folder is None:
        context.tell(key)
        return make()
    where = context.folder / "rows" / f"{'-'.join(key.split())}.json"
    limits = {name: getattr(context.limits, name) for name in ("weather_tested", "scored")}
    content = [__version__, context.fingerprint, key, limits, context.captured]
    mark = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]
    try:
        record = json.loads(where.read_text(encoding="utf-8"))
        if record["fingerprint"] == mark:
            return dict(record["row"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not kept, or damaged: compute it again
    context.tell(key)
    row = make()
    where.parent.mkdir(parents=True, exist_ok=True)
    write_json(where, {"fingerprint": mark, "row": row})
    return row


STUDY = Study(
    name="weather", title="Fires with their own weather",
    question="How many fires does each method need if every fire has its own weather?",
    run=run, figures=figures, remarks=remarks, captions=CAPTIONS, bitmap=("plumes",),
    limits=("weather_sizes", "weather_draws", "weather_tested", "scored", "neural"),
)  # fmt: skip
