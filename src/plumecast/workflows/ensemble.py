"""Statistics of the predicted smoke of very many fires, without storing their fields."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.compute.arrays import Array, arrays_in, map_arrays, to_device_of, to_numpy
from plumecast.compute.blocks import Runner
from plumecast.compute.device import free_bytes
from plumecast.compute.memory import parse_memory
from plumecast.data.conditions.covariates import extrapolating
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.family import Conditions
from plumecast.scores.field_statistics import (
    QUANTILE_ERROR,
    Clusters,
    CodeSums,
    FieldSums,
    bin_count,
    code_sums,
    field_sums,
    groups_for,
)
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.surrogate.covered.guards import refuse_infinite
from plumecast.surrogate.error_bars.expected import expected_block
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.extrapolation import GROUP, extrapolation_of
from plumecast.workflows.fires.memory_plan import prediction_rows
from plumecast.workflows.fires.origin import fires_origin
from plumecast.workflows.fires.reduce import Fires, FireSource, Progress, reduce_fires
from plumecast.workflows.fires.stated import stated
from plumecast.workflows.fires.weather import WeatherGiven
from plumecast.workflows.fires.winds import WindsGiven
from plumecast.workflows.predict import Notify, warn_of
from plumecast.workflows.statistics.request import COVERAGE, Request
from plumecast.workflows.statistics.results import EnsembleSums, as_statistics
from plumecast.workflows.statistics.smoke import (
    block_factors,
    calibrated_smoke,
    chosen_quantity,
    cluster_names,
    only_output,
    predicted_smoke,
)
from plumecast.workflows.statistics.truth import open_truth, truth_sums

BLOCK, DEVICE_BLOCK = 1024, 4096
"""Largest number of snapshots predicted at a time on the host and on a GPU; a memory limit may
allow fewer."""

DEVICE_SHARE = 0.4
"""Share of the free memory of a GPU for the fields of a block; operators use the rest."""


def ensemble_statistics(
    surrogate: Surrogate,
    fires: Fires | FireSource,
    *,
    thresholds: Iterable[float] = (),
    quantiles: Iterable[float] = (),
    quantile_error: float = QUANTILE_ERROR,
    quantity: str | None = None,
    checkpoint_interval: float | None = None,
    coverage: float = COVERAGE,
    truth: xr.Dataset | str | Path | None = None,
    winds: WindsGiven | None = None,
    weather: WeatherGiven | None = None,
    final: bool = False,
    device: str = "cpu",
    precision: str = "float64",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, what: None,
    notify: Notify = warn_of,
) -> xr.Dataset:
    """Mean, exceedance probabilities and quantiles of the predicted smoke of many fires, by cell.

    `fires` is a Dataset, a store, several of them, or the result of `pc.draw_fires`. Means,
    thresholds and quantiles are of a `quantity` of smoke: "mean", the time-mean column
    concentration, by default; "dose"; or "sum", smoke as the surrogate predicts it. If the
    surrogate does not record the hours between checkpoints, `checkpoint_interval` states them.
    `mean_log_smoke` is always the paper's Q = E[ln(g + 1)] of the sum. Standard errors (`…_error`)
    count all snapshots of one fire as one sample. Intervals (`…_lower`, `…_upper`) contain the true
    value with probability `coverage`: t intervals of means and Wilson's of probabilities, clustered
    by ignition. Without error bars they contain only the sampling of fires. A surrogate with error
    bars (`train_surrogate` with `split=None`) adds its error: means and probabilities are those of
    the smoke to expect given the predicted smoke (`error_bars.expected`), `…_surrogate` those of
    the predictions. This assumes fires like those of training. Instead, `truth` with fires with
    true smoke from the same population corrects the estimates (`control_variate`); training
    ignitions among them are left out.

    Quantiles have a relative error of at most `quantile_error`. Fields are predicted in blocks that
    keep to `memory` ("2GB") and are never stored. With a `runner` (`pc.cluster`) the workers of a
    cluster read or simulate the fires and predict their smoke. `winds`, as for `with_winds`, or
    `weather`, as for `with_weather`, replace those of stores and Datasets. `final` keeps the last
    checkpoint of every fire. If snapshots lie beyond the training fires, `notify` is called once at
    the end, and `snapshots_beyond_training` is their number.
    """
    levels = tuple(map(float, thresholds))
    groups = _groups(surrogate, levels, memory)
    request = Request(
        levels,
        tuple(map(float, quantiles)),
        quantile_error,
        chosen_quantity(surrogate, quantity),
        checkpoint_interval,
        coverage,
        groups,
        calibrated_smoke(surrogate, groups) if truth is None else None,
    )
    known = None if truth is None else open_truth(surrogate, truth)
    placed = surrogate.on_device(device, precision)
    size = block_size(surrogate, request, memory, device_memory(placed))
    paired = None if known is None else truth_sums(placed, known, request, size, final=final)
    with extrapolating():  # one notice at the end tells it
        total: EnsembleSums = reduce_fires(
            partial(block_sums if runner is None else _sums_on_worker, placed, request),
            surrogate,
            fires,
            size=size,
            final=final,
            given=stated(winds, weather),
            threads=1 if memory is not None or device_memory(placed) is None else THREADS,
            runner=runner,
            progress=progress,
        )
    statistics = as_statistics(surrogate, total, request, paired)
    for notice in total.beyond.notices(surrogate, statistics.attrs["snapshots"]):
        notify(notice)
        if notice.measure != GROUP:
            statistics.attrs["extrapolation"] = notice.text
    return statistics.assign_attrs(fires_from=fires_origin(fires))


THREADS = 4
"""Threads that read and check blocks of fires while a GPU predicts; it predicts one at a time."""

_DEVICE = threading.Lock()

INPUT_BYTES, OUTPUT_BYTES = 24.0, 72.0
"""Working bytes per cell of inputs and outputs, in addition to those of the operator."""

EXPECTED_BYTES = 96.0
"""Working bytes per cell of the smoke to expect, if all cells have smoke."""


def _groups(surrogate: Surrogate, levels: tuple[float, ...], memory: str | int | None) -> int:
    """Number of clusters kept apart: their sums, three times at once, take a quarter of memory."""
    shape = only_output(surrogate).size, 2 + len(levels)
    return groups_for(*shape) if memory is None else groups_for(*shape, parse_memory(memory) / 12)


def device_memory(surrogate: Surrogate) -> int | None:
    """Free memory of the GPU that holds the surrogate's operator; None on the host."""
    return next((free_bytes(array) for array in arrays_in(surrogate.operator)), None)


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
    bins = cells * bin_count(request.error) if request.quantiles else 0.0
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


def block_sums(surrogate: Surrogate, request: Request, block: xr.Dataset) -> EnsembleSums:
    """Predict one block on the surrogate's device and sum it there; the sums are on the host."""
    named = "fire_id" in block.variables
    names = frozenset(block.fire_id.values.astype(str).tolist()) if named else frozenset()
    rows = surrogate.read_rows(block)
    ignitions = cluster_names(block)
    clusters = None if ignitions is None else Clusters(ignitions, request.groups)
    factors = None
    if not _mean_in_codes(surrogate, request):
        factors = block_factors(block, surrogate, request.quantity, request.interval)
    # The memory of a GPU is planned for one block at a time.
    with contextlib.nullcontext() if device_memory(surrogate) is None else _DEVICE:
        sums, predicted = _device_sums(surrogate, request, rows, block, factors, clusters)
    refuse_infinite(*(part for part in arrays_in(sums) if part.dtype.kind == "f"))
    return EnsembleSums(sums, names, extrapolation_of(surrogate, block, rows, predicted))


def _sums_on_worker(surrogate: Surrogate, request: Request, block: xr.Dataset) -> EnsembleSums:
    with extrapolating():
        return block_sums(surrogate, request, block)


def _device_sums(
    surrogate: Surrogate,
    request: Request,
    rows: tuple[np.ndarray, Conditions],
    block: xr.Dataset,
    factors: np.ndarray | None,
    clusters: Clusters | None,
) -> tuple[FieldSums | CodeSums, Array | None]:
    """The sums of a block, on the host, and its predictions on the device if they were decoded."""
    if _mean_in_codes(surrogate, request):
        operator = surrogate.operator
        assert isinstance(operator, CodedOperator)
        inputs = to_device_of(operator, rows[0])
        codes = operator.code_map.predict(operator.input_basis.encode(inputs))
        return map_arrays(code_sums(codes, clusters), to_numpy), None
    predicted, smoke, read = predicted_smoke(surrogate, request.quantity, rows, block, factors)
    expected = None
    if request.expected is not None and clusters is not None:
        found = expected_block(request.expected, smoke, request.thresholds, factors, read=read)
        expected = found.fields, found.changes
    sums = field_sums(
        smoke,
        request.thresholds,
        quantiles=bool(request.quantiles),
        read=read,
        error=request.error,
        factors=factors,
        clusters=clusters,
        expected=expected,
    )
    return map_arrays(sums, to_numpy), predicted


def _mean_in_codes(surrogate: Surrogate, request: Request) -> bool:
    """Whether the mean field can be decoded from the mean codes.

    Decoding is linear, so it can, unless fields are clipped or their distribution is requested.
    """
    only_mean = not request.thresholds and not request.quantiles
    unclipped = not surrogate.nonnegative and surrogate.outputs.names == (LOG_SMOKE,)
    return only_mean and unclipped and isinstance(surrogate.operator, CodedOperator)
