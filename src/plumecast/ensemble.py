"""Statistics of the smoke of very many fires, without keeping their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from plumecast._array import Array, array_namespace, bytes_in, map_arrays, to_numpy
from plumecast._version import __version__
from plumecast.blocks import Runner, row_blocks
from plumecast.ensemble_sums import (
    QUANTILE_ERROR,
    CodeSums,
    FieldSums,
    bin_count,
    code_sums,
    field_sums,
    quantile_fields,
)
from plumecast.errors import PlumecastError
from plumecast.matrix import Field, grid_template
from plumecast.memory import parse_memory, rows_within
from plumecast.names import SNAPSHOT
from plumecast.operators import CodedOperator
from plumecast.quantity.optical_depth import LOG_SMOKE
from plumecast.snapshot_store import check_unchanged, open_snapshots
from plumecast.snapshots import final_snapshots
from plumecast.surrogate import Surrogate

BLOCK = 1024
"""Snapshots predicted together, where memory does not ask for fewer."""

Progress = Callable[[int, int, str], object]
Fires: TypeAlias = xr.Dataset | str | Path | Iterable[xr.Dataset | str | Path]


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of an ensemble."""

    thresholds: tuple[float, ...] = ()  # of smoke, in its unit
    quantiles: tuple[float, ...] = ()
    error: float = QUANTILE_ERROR  # relative, of the quantiles

    def __post_init__(self) -> None:
        wrong = [share for share in self.quantiles if not 0.0 < share < 1.0]
        if wrong:
            raise PlumecastError(f"quantile {wrong[0]:g} is not within (0, 1)")
        if any(not threshold >= 0.0 for threshold in self.thresholds):
            raise PlumecastError(f"thresholds {self.thresholds} must be ≥ 0")
        if not 1e-4 <= self.error <= 0.5:
            raise PlumecastError(f"a quantile error of {self.error:g} is not within 1e-4…0.5")


@dataclass(frozen=True, slots=True)
class EnsembleSums:
    """Partial statistics of some fires; those of all are the sum."""

    fields: FieldSums | CodeSums
    fires: frozenset[str]  # their names, where they have any

    def __add__(self, other: EnsembleSums) -> EnsembleSums:
        return EnsembleSums(self.fields + other.fields, self.fires | other.fires)  # type: ignore[operator]


def ensemble_statistics(
    surrogate: Surrogate,
    fires: Fires,
    *,
    thresholds: Iterable[float] = (),
    quantiles: Iterable[float] = (),
    quantile_error: float = QUANTILE_ERROR,
    final: bool = False,
    device: str = "cpu",
    precision: str = "float64",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, what: None,
) -> xr.Dataset:
    """Mean, exceedance probabilities and quantiles of the predicted smoke of many fires, by cell.

    `fires` is a Dataset, a store, or several of them. Q = E[ln(g + 1)] has a standard error;
    P(g > threshold) too; both take the snapshots of one fire for one sample, which is cautious.
    Quantiles are right to `quantile_error`, relative. Fields are predicted in blocks that keep
    `memory` ("2GB") and never stored; a `runner` (`pc.cluster`) spreads the blocks of stores over
    a cluster. `final` keeps the last checkpoint of every fire.
    """
    request = Request(tuple(map(float, thresholds)), tuple(map(float, quantiles)), quantile_error)
    placed = surrogate.on_device(device, precision)
    size = block_size(surrogate, request, memory)
    if runner is not None:
        blocks: Iterable[EnsembleSums] = _cluster_sums(
            placed, fires, request, size=size, final=final, runner=runner
        )
    else:
        parts = fire_blocks(surrogate, fires, size, final=final, progress=progress)
        blocks = (block_sums(placed, part, request) for part in parts)
    total: EnsembleSums | None = None
    for block in blocks:
        total = block if total is None else total + block
    if total is None:
        raise PlumecastError("there are no fires to make statistics of")
    return as_statistics(surrogate, total, request)


def _cluster_sums(
    surrogate: Surrogate,
    fires: Fires,
    request: Request,
    *,
    size: int,
    final: bool,
    runner: Runner,
) -> Iterator[EnsembleSums]:
    """The sums of each store, its blocks read, predicted and added up by the runner's processes."""
    names = list(surrogate.inputs.names)
    for source in [fires] if isinstance(fires, xr.Dataset | str | Path) else fires:
        data = source if isinstance(source, xr.Dataset) else open_snapshots(source, fields=names)
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
    progress: Progress = lambda done, total, what: None,
) -> Iterator[xr.Dataset]:
    """Fires in blocks of at most `size` snapshots."""
    if isinstance(fires, str | Path):
        fires = open_snapshots(fires, fields=list(surrogate.inputs.names))
    if isinstance(fires, xr.Dataset):
        fires = final_snapshots(fires) if final else fires
        count = fires.sizes[SNAPSHOT]
        for rows in row_blocks(count, size):
            check_unchanged(fires)
            yield fires.isel({SNAPSHOT: rows})
            progress(rows.stop, count, "snapshots")
        return
    for part in fires:
        followed = progress if isinstance(part, str | Path) else _unheard
        yield from fire_blocks(surrogate, part, size, final=final, progress=followed)


def _unheard(done: int, total: int, what: str) -> None:
    """Blocks that come from elsewhere are counted there."""


def block_size(surrogate: Surrogate, request: Request, memory: str | int | None) -> int:
    """Snapshots that can be predicted together within a memory limit, at most BLOCK."""
    if memory is None:
        return BLOCK
    cells = surrogate.outputs.size
    counted = 3 * 8 * cells * bin_count(request.error) if request.quantiles else 0
    return rows_within(
        parse_memory(memory),
        fixed=float(bytes_in(surrogate.operator) + counted),
        per_row=24.0 * surrogate.inputs.size + 56.0 * cells,
        what="ensemble statistics",
        most=BLOCK,
    )


def block_sums(surrogate: Surrogate, block: xr.Dataset, request: Request) -> EnsembleSums:
    """The statistics of one block, as NumPy's: prediction and sums in one go on its device."""
    _only_output(surrogate)
    named = "fire_id" in block.variables
    names = frozenset(block.fire_id.values.astype(str).tolist()) if named else frozenset()
    sums: FieldSums | CodeSums
    if _mean_in_codes(surrogate, request):
        operator = surrogate.operator
        assert isinstance(operator, CodedOperator)
        rows = surrogate.input_rows(block)
        sums = code_sums(operator.code_map.predict(operator.input_basis.encode(rows)))
    else:
        smoke = _smoke(surrogate, surrogate.predict_block_rows(block))
        sums = field_sums(
            smoke, request.thresholds, quantiles=bool(request.quantiles), error=request.error
        )
    return EnsembleSums(map_arrays(sums, to_numpy), names)


def _only_output(surrogate: Surrogate) -> Field:
    if len(surrogate.outputs.fields) != 1:
        raise PlumecastError(
            f"statistics are of one output, this surrogate has {', '.join(surrogate.outputs.names)}"
        )
    return surrogate.outputs.fields[0]


def _mean_in_codes(surrogate: Surrogate, request: Request) -> bool:
    """Whether the mean field is that of the mean codes: decoding is linear, clipping is not."""
    wanted = not request.thresholds and not request.quantiles
    exact = not surrogate.nonnegative and surrogate.outputs.names == (LOG_SMOKE,)
    return wanted and exact and isinstance(surrogate.operator, CodedOperator)


def _smoke(surrogate: Surrogate, predicted: Array) -> Array:
    """Smoke, never negative; from its logarithm where that is predicted."""
    xp = array_namespace(predicted)
    clipped = xp.clip(predicted, 0.0, None)
    return xp.expm1(clipped) if surrogate.outputs.names == (LOG_SMOKE,) else clipped


def as_statistics(surrogate: Surrogate, total: EnsembleSums, request: Request) -> xr.Dataset:
    """The labelled statistics of summed-up fires."""
    field = _only_output(surrogate)
    sums = total.fields
    samples = len(total.fires) or sums.count
    if isinstance(sums, CodeSums):
        assert isinstance(surrogate.operator, CodedOperator)
        mean, variance = sums.moments(surrogate.operator.output_basis)
        found: dict[str, Any] = {}
    else:
        mean = sums.log / sums.count
        variance = np.maximum(sums.log_squares / sums.count - mean**2, 0.0)
        found = _distribution(sums, samples, field, request)
    error = np.sqrt(variance / samples)
    found |= {
        "mean_log_smoke": _on_grid(mean, field, "mean of ln(smoke + 1) over fires", "1"),
        "mean_log_smoke_error": _on_grid(error, field, "standard error of that mean", "1"),
    }
    attrs = {
        "Conventions": "CF-1.11",
        "title": "Statistics of predicted smoke",
        "history": f"plumecast {__version__} ensemble",
        "fires": len(total.fires),
        "snapshots": sums.count,
        "trained_on": str(surrogate.training.get("data_version")),
    }
    given = {"threshold": list(request.thresholds), "quantile": list(request.quantiles)}
    coords = {name: values for name, values in given.items() if values}
    return xr.Dataset(found, coords=grid_template(field).coords, attrs=attrs).assign_coords(coords)


def _distribution(sums: FieldSums, samples: int, field: Field, request: Request) -> dict[str, Any]:
    unit = str(field.attrs.get("units", "1")) if field.name != LOG_SMOKE else "ug m-3"
    found = {"mean_smoke": _on_grid(sums.plain / sums.count, field, "mean smoke over fires", unit)}
    if request.thresholds:
        share = sums.above / sums.count
        error = np.sqrt(share * (1.0 - share) / samples)
        what = "probability of more smoke than the threshold"
        found["exceedance"] = _on_grid(share, field, what, "1", "threshold")
        found["exceedance_error"] = _on_grid(error, field, "its standard error", "1", "threshold")
    if request.quantiles:
        values = quantile_fields(sums.bins, request.quantiles, request.error)
        found["smoke_quantile"] = _on_grid(values, field, "quantile of smoke", unit, "quantile")
        found["smoke_quantile"][2]["relative_error"] = request.error
    return found


def _on_grid(
    values: np.ndarray, field: Field, long_name: str, units: str, *lead: str
) -> tuple[list[str], np.ndarray, dict[str, Any]]:
    shaped = values.reshape(*values.shape[: len(lead)], *field.shape)
    return [*lead, *field.dims], shaped, {"long_name": long_name, "units": units}
