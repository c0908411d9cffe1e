"""Statistics of the predicted smoke of very many fires, in every cell or at places.

Both are means of addable statistics: blocks of fires are predicted, summed and forgotten.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.compute.resources import LOCAL, Resources, parse_memory
from plumecast.data.covariates import extrapolating
from plumecast.data.schema import final_rows
from plumecast.scores.field_statistics import bin_count, groups_for
from plumecast.scores.reading import AS_STORED, Reading
from plumecast.sources.places import Places, read_places
from plumecast.surrogate.surrogate import Surrogate
from plumecast.weather.read import WeatherLike, accepts_winds
from plumecast.workflows.fires.conditions import user_weather
from plumecast.workflows.fires.extrapolation import GROUP, copies_notice
from plumecast.workflows.fires.sources import Fires, FireSource, fires_origin, reduce_fires
from plumecast.workflows.predict import Notify, prediction_rows, warn_of
from plumecast.workflows.statistics.cell_sums import (
    LEFT_OUT,
    EnsembleSums,
    block_sums,
    block_sums_on_worker,
    count_hours,
    device_memory,
    open_truth,
    refuse_other_hours,
    truth_name,
    truth_sums,
)
from plumecast.workflows.statistics.request import (
    MEANS,
    Request,
    Statistics,
    are_drawn,
    only_output,
    request_of,
)
from plumecast.workflows.statistics.results import as_statistics, place_statistics
from plumecast.workflows.statistics.samples import predicted_at, stored_at

BLOCK, DEVICE_BLOCK = 1024, 4096
"""Largest number of snapshots predicted at a time on the host and on a GPU; a memory limit may
allow fewer."""

DEVICE_SHARE = 0.4
"""Share of the free memory of a GPU for the fields of a block; operators use the rest."""

THREADS = 4
"""Threads that read and check blocks of fires while a GPU predicts; it predicts one at a time."""

INPUT_BYTES, OUTPUT_BYTES = 24.0, 72.0
"""Working bytes per cell of inputs and outputs, in addition to those of the operator."""

EXPECTED_BYTES = 96.0
"""Working bytes per cell of the smoke to expect, if all cells have smoke."""

_folded = folded_arguments(
    reading=Reading,
    statistics=Statistics,
    resources=Resources,
    renamed={"checkpoint_interval": "interval"},
)


@accepts_winds
@_folded
def ensemble_statistics(
    surrogate: Surrogate,
    fires: Fires | FireSource,
    reading: Reading = AS_STORED,
    statistics: Statistics = MEANS,
    *,
    truth: xr.Dataset | str | Path | None = None,
    weather: WeatherLike | None = None,
    resources: Resources = LOCAL,
    notify: Notify = warn_of,
) -> xr.Dataset:
    """Mean, exceedance probabilities and quantiles of the predicted smoke of many fires, by cell.

    Parameters
    ----------
    surrogate
        Predicts the smoke.
    fires
        A Dataset, a store, several of them, or the result of `pc.draw_fires`.
    reading
        Thresholds, and the quantity of smoke of which means, thresholds and quantiles are: "mean",
        the time-mean column concentration, by default; "dose"; or "sum", smoke as the surrogate
        predicts it. Its hours replace those of the snapshots of stores.
    statistics
        Quantiles, the coverage of intervals, and whether only final snapshots count.
    truth
        Fires with true smoke from the same population, which correct the estimates
        (`control_variate`); training ignitions among them are left out.
    weather
        As for `with_weather`; it replaces that of stores and Datasets.
    resources
        Fields are predicted in blocks that keep to the memory and are never stored. With a runner
        (`pc.cluster`) the workers of a cluster read or simulate the fires and predict their smoke.
    notify
        Called once at the end if snapshots lie beyond the training fires;
        `snapshots_beyond_training` is their number.

    Returns
    -------
    xr.Dataset
        `mean_log_smoke` is always the paper's Q = E[ln(g + 1)] of the sum. Standard errors
        (`…_error`) count all snapshots of one fire as one sample. Intervals (`…_lower`, `…_upper`)
        contain the true value with the probability `coverage`: t intervals of means and Wilson's of
        probabilities, clustered by ignition. Without error bars they contain only the sampling of
        fires. A surrogate with error bars (`train_surrogate` with `split=None`) adds its error:
        means and probabilities are those of the smoke to expect given the predicted smoke
        (`error_bars.expected`), `…_surrogate` those of the predictions. This assumes fires like
        those of training.
    """
    # Clusters are kept apart: their sums, three times at once, take a quarter of the memory.
    shape = only_output(surrogate).size, 2 + len(tuple(reading.thresholds))
    memory = [] if resources.memory is None else [parse_memory(resources.memory) / 12]
    groups = groups_for(*shape, *memory)
    request = request_of(surrogate, reading, statistics, groups=groups, corrected=truth is not None)
    request = replace(request, drawn=are_drawn(fires))
    true_fires = None if truth is None else open_truth(surrogate, truth)
    placed = surrogate.on_device(resources.device, statistics.precision)
    free = device_memory(placed)
    size = block_size(surrogate, request, resources.memory, free)
    paired = None if true_fires is None else truth_sums(placed, true_fires, request, size)
    of_block = block_sums if resources.runner is None else block_sums_on_worker
    with extrapolating():  # one notice at the end tells it
        total: EnsembleSums = reduce_fires(
            partial(of_block, placed, request),
            surrogate,
            fires,
            size=size,
            final=statistics.final,
            hours=tuple(reading.hours),
            weather=user_weather(weather),
            threads=1 if resources.memory is not None or free is None else THREADS,
            resources=resources,
        )
    if true_fires is not None:
        refuse_other_hours(true_fires, total.hours, final=statistics.final)
    made = as_statistics(surrogate, total, request, paired)
    clusters = total.fields.clusters
    if clusters is not None:
        alike = copies_notice(clusters.clusters, total.copies, grouped=clusters.grouped)
        if alike is not None:
            notify(alike)
    for notice in total.beyond.notices(surrogate, made.attrs["snapshots"]):
        notify(notice)
        if notice.measure != GROUP:
            made.attrs["extrapolation"] = notice.text
    return made.assign_attrs(fires_from=fires_origin(fires))


@accepts_winds
@_folded
def evaluate_points(
    surrogate: Surrogate,
    fires: Fires | FireSource,
    places: Places | str | Path,
    reading: Reading = AS_STORED,
    statistics: Statistics = MEANS,
    *,
    truth: xr.Dataset | str | Path | None = None,
    weather: WeatherLike | None = None,
    resources: Resources = LOCAL,
    notify: Notify = warn_of,
) -> xr.Dataset:
    """Mean, exceedance probabilities and quantiles of the predicted smoke of many fires at places.

    The names and meanings of the variables are those of `ensemble_statistics`, on the dimension
    `place`; quantiles are those of the predictions, with intervals for the sampling of fires only.
    Where the table has a population, `exposure` is the population-weighted mean and `persons_above`
    the mean number of persons above each threshold, with intervals clustered by ignition.

    Parameters
    ----------
    surrogate, fires, reading, statistics, truth, weather, resources, notify
        As for `ensemble_statistics`.
    places
        A table (`read_places`), or what was read from it. The attribute `places_outside` names
        those outside the grid, which have no values.
    """
    at = places if isinstance(places, Places) else read_places(places, surrogate.grid, keep=True)
    request = request_of(surrogate, reading, statistics, corrected=truth is not None)
    true_fires = None if truth is None else open_truth(surrogate, truth)
    paired = None
    if true_fires is not None:
        observed = stored_at(
            at,
            true_fires,
            name=truth_name(surrogate),
            quantity=request.quantity,
            interval=request.interval,
        )
        if statistics.final:
            observed = observed.at(final_rows(true_fires))
        both = predicted_at(  # at the hours of their snapshots
            *(at, surrogate, true_fires, replace(request.reading, hours=()), statistics),
            resources=replace(resources, runner=None).quiet(),
        )
        paired = observed.with_ignitions(dict(zip(both.fires, both.ignitions, strict=True))), both
    predicted = predicted_at(
        at,
        surrogate,
        fires,
        request.reading,
        statistics,
        weather=weather,
        resources=resources,
        notify=notify,
    )
    if true_fires is not None:
        refuse_other_hours(true_fires, count_hours(predicted.hours), final=statistics.final)
    made = place_statistics(surrogate, at, predicted, request, paired)
    made = made.assign_attrs(fires_from=fires_origin(fires))
    if true_fires is None:
        return made
    return made.assign_attrs({LEFT_OUT: true_fires.attrs[LEFT_OUT]})


def block_size(
    surrogate: Surrogate, request: Request, memory: str | int | None, free: int | None = None
) -> int:
    """Number of snapshots that can be predicted at a time within a memory limit, at most BLOCK.

    On a GPU with `free` bytes it is at most DEVICE_BLOCK. Operators divide it further themselves.
    """
    most = BLOCK
    if free is not None:
        row = INPUT_BYTES * surrogate.inputs.size + 2.0 * OUTPUT_BYTES * surrogate.outputs.size
        most = min(DEVICE_BLOCK, max(1, int(DEVICE_SHARE * free / row)))
    cells = 3.0 * 8.0 * surrogate.outputs.size
    bins = cells * bin_count(request.statistics.quantile_error) if request.quantiles else 0.0
    groups = cells * request.groups * (2 + len(request.thresholds))
    if request.expected is not None:
        groups += cells * request.expected.freedom * (2 + len(request.thresholds))
    return prediction_rows(
        surrogate,
        memory,
        input_bytes=INPUT_BYTES,
        output_bytes=OUTPUT_BYTES + (0.0 if request.expected is None else EXPECTED_BYTES),
        fixed=bins + groups,
        what="ensemble statistics",
        most=most,
    )
