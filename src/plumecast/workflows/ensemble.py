"""Statistics of the predicted smoke of very many fires, without storing their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.arrays import Array, array_namespace, map_arrays, to_device_of, to_numpy
from plumecast.compute.blocks import Runner, add_up, row_blocks
from plumecast.data.lazy_store import check_unchanged
from plumecast.data.schema import final_snapshots
from plumecast.operators.coded.operator import CodedOperator
from plumecast.scores.field_statistics import (
    QUANTILE_ERROR,
    CodeSums,
    FieldSums,
    bin_count,
    code_sums,
    field_sums,
)
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.surrogate.memory_plan import prediction_rows
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.winds import Winds, WindsGiven, as_winds
from plumecast.workflows.predict import open_fires
from plumecast.workflows.statistics.results import EnsembleSums, Request, as_statistics, only_output

BLOCK = 1024
"""Largest number of snapshots predicted at a time; a memory limit may allow fewer."""

Progress = Callable[[int, int, str], object]


@runtime_checkable
class FireSource(Protocol):
    """Fires that are made or read on demand, in the process that predicts their smoke."""

    def sums(
        self,
        function: Callable[[xr.Dataset], Any],
        runner: Runner | None,
        progress: Progress,
    ) -> Iterator[Any]:
        """`function` of the snapshots of a few fires at a time; the results can be added up.

        With an executor the fires are made, and the function is called, on its workers.
        """
        ...


Fires: TypeAlias = xr.Dataset | str | Path | Iterable[xr.Dataset | str | Path]


def ensemble_statistics(
    surrogate: Surrogate,
    fires: Fires | FireSource,
    *,
    thresholds: Iterable[float] = (),
    quantiles: Iterable[float] = (),
    quantile_error: float = QUANTILE_ERROR,
    winds: WindsGiven | None = None,
    final: bool = False,
    device: str = "cpu",
    precision: str = "float64",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, what: None,
) -> xr.Dataset:
    """Mean, exceedance probabilities and quantiles of the predicted smoke of many fires, by cell.

    `fires` is a Dataset, a store, several of them, or the result of `pc.draw_fires`. The mean
    Q = E[ln(g + 1)] and P(g > threshold) have standard errors, which count all snapshots of one
    fire as one sample: they are rather too large than too small. Quantiles have a relative error
    of at most `quantile_error`. Fields are predicted in blocks that keep to `memory` ("2GB") and
    are never stored. With a `runner` (`pc.cluster`) the workers of a cluster read or simulate the
    fires and predict their smoke. `winds`, as for `with_winds`, replace those of stores and
    Datasets. `final` keeps the last checkpoint of every fire.
    """
    request = Request(tuple(map(float, thresholds)), tuple(map(float, quantiles)), quantile_error)
    given = None if winds is None else as_winds(winds)
    if given is not None and isinstance(fires, FireSource):
        raise PlumecastError("winds are for stores and Datasets; these fires have their own winds")
    placed = surrogate.on_device(device, precision)
    size = block_size(surrogate, request, memory)
    blocks: Iterable[EnsembleSums]
    if isinstance(fires, FireSource):
        blocks = fires.sums(partial(_sum_blocks, placed, request, size, final), runner, progress)
    elif runner is not None:
        blocks = _cluster_sums(
            placed, fires, request, size=size, final=final, winds=given, runner=runner
        )
    else:
        parts = fire_blocks(surrogate, fires, size, final=final, winds=given, progress=progress)
        blocks = (block_sums(placed, part, request) for part in parts)
    total: EnsembleSums | None = None
    for block in blocks:
        total = block if total is None else total + block
    if total is None:
        raise PlumecastError("there are no fires; give at least one store or raster")
    return as_statistics(surrogate, total, request)


def _sum_blocks(
    surrogate: Surrogate, request: Request, size: int, final: bool, fires: xr.Dataset
) -> EnsembleSums:
    """The sums of some fires, predicted in blocks of at most `size` snapshots."""
    fires = final_snapshots(fires) if final else fires
    sums: EnsembleSums = add_up(
        block_sums(surrogate, fires.isel({SNAPSHOT: rows}), request)
        for rows in row_blocks(fires.sizes[SNAPSHOT], size)
    )
    return sums


def _cluster_sums(
    surrogate: Surrogate,
    fires: Fires,
    request: Request,
    *,
    size: int,
    final: bool,
    winds: Winds | None,
    runner: Runner,
) -> Iterator[EnsembleSums]:
    """The sums of each store; the workers of a cluster read, predict and add its blocks."""
    for source in [fires] if isinstance(fires, xr.Dataset | str | Path) else fires:
        data = open_fires(surrogate, source, winds)
        data = final_snapshots(data) if final else data
        sums = partial(_part_sums, surrogate, data, request)
        yield runner.sum(sums, row_blocks(data.sizes[SNAPSHOT], size))


def _part_sums(
    surrogate: Surrogate, fires: xr.Dataset, request: Request, rows: slice
) -> EnsembleSums:
    check_unchanged(fires)
    return block_sums(surrogate, fires.isel({SNAPSHOT: rows}), request)


def fire_blocks(
    surrogate: Surrogate,
    fires: Fires,
    size: int,
    *,
    final: bool = False,
    winds: Winds | None = None,
    progress: Progress = lambda done, total, what: None,
) -> Iterator[xr.Dataset]:
    """Fires in blocks of at most `size` snapshots."""
    if isinstance(fires, xr.Dataset | str | Path):
        fires = open_fires(surrogate, fires, winds)
        fires = final_snapshots(fires) if final else fires
        count = fires.sizes[SNAPSHOT]
        for rows in row_blocks(count, size):
            check_unchanged(fires)
            yield fires.isel({SNAPSHOT: rows})
            progress(rows.stop, count, "snapshots")
        return
    for part in fires:
        reported = progress if isinstance(part, str | Path) else _no_progress
        yield from fire_blocks(surrogate, part, size, final=final, winds=winds, progress=reported)


def _no_progress(done: int, total: int, what: str) -> None:
    """Report nothing: the caller who passes Datasets knows their number."""


def block_size(surrogate: Surrogate, request: Request, memory: str | int | None) -> int:
    """Number of snapshots that can be predicted at a time within a memory limit, at most BLOCK."""
    bins = 3.0 * 8.0 * surrogate.outputs.size * bin_count(request.error)
    return prediction_rows(
        surrogate,
        memory,
        input_bytes=24.0,
        output_bytes=56.0,
        fixed=bins if request.quantiles else 0.0,
        what="ensemble statistics",
        most=BLOCK,
    )


def block_sums(surrogate: Surrogate, block: xr.Dataset, request: Request) -> EnsembleSums:
    """Predict one block on the surrogate's device and sum it there; the sums are on the host."""
    only_output(surrogate)
    named = "fire_id" in block.variables
    names = frozenset(block.fire_id.values.astype(str).tolist()) if named else frozenset()
    sums: FieldSums | CodeSums
    if _mean_in_codes(surrogate, request):
        operator = surrogate.operator
        assert isinstance(operator, CodedOperator)
        rows = to_device_of(operator, surrogate.read_rows(block)[0])
        sums = code_sums(operator.code_map.predict(operator.input_basis.encode(rows)))
    else:
        smoke = _smoke(surrogate, surrogate.predict_rows(*surrogate.read_rows(block)))
        sums = field_sums(
            smoke, request.thresholds, quantiles=bool(request.quantiles), error=request.error
        )
    return EnsembleSums(map_arrays(sums, to_numpy), names)


def _mean_in_codes(surrogate: Surrogate, request: Request) -> bool:
    """Whether the mean field can be decoded from the mean codes.

    Decoding is linear, so it can, unless fields are clipped or their distribution is requested.
    """
    only_mean = not request.thresholds and not request.quantiles
    unclipped = not surrogate.nonnegative and surrogate.outputs.names == (LOG_SMOKE,)
    return only_mean and unclipped and isinstance(surrogate.operator, CodedOperator)


def _smoke(surrogate: Surrogate, predicted: Array) -> Array:
    """Non-negative smoke, from its logarithm if the surrogate predicts that."""
    xp = array_namespace(predicted)
    clipped = xp.clip(predicted, 0.0, None)
    return xp.expm1(clipped) if surrogate.outputs.names == (LOG_SMOKE,) else clipped
