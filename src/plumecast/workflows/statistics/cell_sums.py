"""Sums over fires of the statistics in every cell, of predicted smoke and of true smoke."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.ignitions import one_ignition
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.compute.arrays import (
    Array,
    array_namespace,
    arrays_in,
    like,
    map_arrays,
    to_device_of,
    to_numpy,
)
from plumecast.compute.blocks import add_up
from plumecast.compute.resources import free_bytes
from plumecast.data.clock import by_fire, fire_blocks, take_final
from plumecast.data.covariates import extrapolating
from plumecast.data.layout import to_rows
from plumecast.data.schema import final_rows
from plumecast.data.store import open_snapshots
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.family import Conditions
from plumecast.scores.field_statistics import (
    Clusters,
    ClusterSums,
    CodeSums,
    FieldSums,
    block_cluster_sums,
    code_sums,
    field_sums,
    scaled_by,
)
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.scores.quantities import as_integrals, find_quantity, quantity_factors
from plumecast.surrogate.error_bars.calibration import expected_block
from plumecast.surrogate.guards import refuse_infinite
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.extrapolation import (
    GROUP,
    Extrapolation,
    extrapolation_of,
    is_same_simulation,
)
from plumecast.workflows.statistics.request import (
    Request,
    block_factors,
    cluster_names,
    copy_marks,
    interval_ends,
    only_output,
    predicted_smoke,
)

LEFT_OUT = "training_ignitions_left_out"
"""Attribute of the fires with true smoke: how many ignitions of training were among them."""

_DEVICE = threading.Lock()


@dataclass(frozen=True, slots=True)
class EnsembleSums:
    """Partial sums over some fires; the sum of all parts gives the statistics."""

    fields: FieldSums | CodeSums
    fires: frozenset[str]  # names of the fires; empty if they have none
    beyond: Extrapolation = field(default_factory=Extrapolation)
    copies: frozenset[tuple[str, str]] = frozenset()  # marks of fields, and their ignitions
    hours: Counter[float] = field(default_factory=Counter)  # snapshots by hours since ignition

    def __add__(self, other: EnsembleSums) -> EnsembleSums:
        return EnsembleSums(
            self.fields + other.fields,  # type: ignore[operator]
            self.fires | other.fires,
            self.beyond + other.beyond,
            self.copies | other.copies,
            self.hours + other.hours,
        )


def device_memory(surrogate: Surrogate) -> int | None:
    """Free memory of the GPU that holds the surrogate's operator; None on the host."""
    return next((free_bytes(array) for array in arrays_in(surrogate.operator)), None)


def block_sums(surrogate: Surrogate, request: Request, block: xr.Dataset) -> EnsembleSums:
    """Predict one block on the surrogate's device and sum it there; the sums are on the host."""
    named = "fire_id" in block.variables
    names = frozenset(block.fire_id.values.astype(str).tolist()) if named else frozenset()
    rows = surrogate.read_rows(block)
    ignitions = cluster_names(block, request.statistics.independent)
    copies: frozenset[tuple[str, str]] = frozenset()
    if ignitions is not None and request.joins_copies:
        marks = copy_marks(block, rows[0])
        pairs = zip(marks.tolist(), ignitions.tolist(), strict=True)
        copies = frozenset(pair for pair in pairs if pair[0])
    clusters = None if ignitions is None else Clusters(ignitions, request.groups)
    factors = None
    if not _mean_in_codes(surrogate, request):
        factors = block_factors(block, surrogate, request.quantity, request.interval)
    # The memory of a GPU is planned for one block at a time.
    with contextlib.nullcontext() if device_memory(surrogate) is None else _DEVICE:
        sums, predicted = _device_sums(surrogate, request, rows, block, factors, clusters, copies)
    refuse_infinite(*(part for part in arrays_in(sums) if part.dtype.kind == "f"))
    beyond = extrapolation_of(surrogate, block, rows, predicted)
    hours = block["hours"].values if "hours" in block.variables else ()
    return EnsembleSums(sums, names, beyond, copies, count_hours(hours))


SHARED_HOURS = 0.9
"""Share of the snapshots of the fires, and of those with true smoke, whose hours the others have.
Some fires end earlier than others."""


def count_hours(hours: Iterable[float]) -> Counter[float]:
    """Numbers of snapshots by their hours since ignition."""
    known = np.ravel(np.asarray(hours, dtype=np.float64))
    return Counter(np.round(known[np.isfinite(known)], 2).tolist())


def refuse_other_hours(true_fires: xr.Dataset, fires: Counter[float], *, final: bool) -> None:
    """Raise if the fires of `open_truth` have other hours than those whose smoke they correct."""
    if "hours" not in true_fires.variables or not fires:
        return
    hours = true_fires["hours"].values
    truth = count_hours(hours[final_rows(true_fires)] if final else hours)
    if final:  # the lengths of fires differ
        apart = max(truth) < min(fires) or max(fires) < min(truth)
    else:
        shares = (
            sum(number for hour, number in one.items() if hour in other) / one.total()
            for one, other in ((truth, fires), (fires, truth))
        )
        apart = min(shares) < SHARED_HOURS
    if apart:
        first = (sorted(part)[:8] for part in (truth, fires))
        true, of_fires = (", ".join(f"{hour:g}" for hour in hours) for hours in first)
        raise PlumecastError(
            f"true smoke is known at {true} h and cannot correct fires at {of_fires} h; choose the "
            f"same (--hours {true.replace(' ', '')}), or give true smoke at those of the fires"
        )


def block_sums_on_worker(surrogate: Surrogate, request: Request, block: xr.Dataset) -> EnsembleSums:
    """`block_sums` in another process, without warnings: one notice at the end tells them."""
    with extrapolating():
        return block_sums(surrogate, request, block)


def _device_sums(
    surrogate: Surrogate,
    request: Request,
    rows: tuple[np.ndarray, Conditions],
    block: xr.Dataset,
    factors: np.ndarray | None,
    clusters: Clusters | None,
    copies: Collection[tuple[str, str]],
) -> tuple[FieldSums | CodeSums, Array | None]:
    """The sums of a block, on the host, and its predictions on the device if they were decoded."""
    if _mean_in_codes(surrogate, request):
        operator = surrogate.operator
        assert isinstance(operator, CodedOperator)
        inputs = to_device_of(operator, rows[0])
        codes = operator.code_map.predict(operator.input_basis.encode(inputs))
        return map_arrays(code_sums(codes, clusters), to_numpy), None
    predicted, smoke, read = predicted_smoke(surrogate, request.quantity, rows, block, factors)
    expected = ends = None
    if request.expected is not None and clusters is not None:
        block_of = expected_block(request.expected, smoke, request.thresholds, factors, read=read)
        expected = block_of.fields, block_of.changes
        if len(set(one_ignition(clusters.names.tolist(), copies).values())) == 1:
            hours = block["hours"].values if "hours" in block.variables else None
            ends = interval_ends(request, read, hours, factors).sum(axis=1)
    sums = field_sums(
        smoke,
        request.thresholds,
        quantiles=bool(request.quantiles),
        read=read,
        error=request.statistics.quantile_error,
        factors=factors,
        clusters=clusters,
        expected=expected,
    )
    return replace(map_arrays(sums, to_numpy), ends=ends), predicted


def _mean_in_codes(surrogate: Surrogate, request: Request) -> bool:
    """Whether the mean field can be decoded from the mean codes.

    Decoding is linear, so it can, unless fields are clipped or their distribution is requested.
    """
    only_mean = not request.thresholds and not request.quantiles
    unclipped = not surrogate.nonnegative and surrogate.outputs.names == (LOG_SMOKE,)
    return only_mean and unclipped and isinstance(surrogate.operator, CodedOperator)


@dataclass(frozen=True, slots=True)
class TruthSums:
    """Sums by ignition of the statistics of true and of predicted smoke of the same fires."""

    observed: ClusterSums
    predicted: ClusterSums
    left_out: int  # training ignitions among the fires with true smoke

    def __add__(self, other: TruthSums) -> TruthSums:
        both = self.observed + other.observed, self.predicted + other.predicted
        return TruthSums(*both, self.left_out)

    def joined(self) -> TruthSums:
        """The sums by ignition, which several names of places may be."""
        names = one_ignition(self.observed.clusters)
        observed, predicted = (part.joined(names) for part in (self.observed, self.predicted))
        return replace(self, observed=observed, predicted=predicted)

    @property
    def ignitions(self) -> int:
        """Number of ignitions with true smoke."""
        return len(self.observed.clusters)


def open_truth(surrogate: Surrogate, truth: xr.Dataset | str | Path) -> xr.Dataset:
    """Fires with true smoke, without the ignitions that the surrogate was trained on.

    All their snapshots are there, as the dose of one is told by the one before.

    The attribute `LEFT_OUT` is the number of those. Raises if fewer than two ignitions are left, or
    if it cannot be known.
    """
    name = truth_name(surrogate)
    data = truth if isinstance(truth, xr.Dataset) else open_snapshots(truth)
    refused = partial(
        ArgumentError, "truth", "Dataset" if isinstance(truth, xr.Dataset) else str(truth)
    )
    if name not in data:
        raise refused("give fires with true smoke", problem=f"has no '{name}'")
    if GROUP not in data.variables:
        raise refused(
            "add it",
            problem=f"has no coordinate '{GROUP}', so that it is unknown whether the surrogate was "
            "trained on these fires",
        )
    labels = data[GROUP].values.astype(str)
    trained = set(surrogate.training.get(GROUP, ()))
    seen = np.isin(labels, sorted(trained)) & is_same_simulation(surrogate, data)
    left, left_out = (np.unique(labels[part]).size for part in (~seen, seen))
    if left < 2:
        raise refused(
            "give true smoke of at least 2 others, better 8",
            problem=f"has {left} ignitions that the surrogate was not trained on ({left_out} that "
            "it was)",
        )
    return data.isel({SNAPSHOT: np.flatnonzero(~seen)}).assign_attrs({LEFT_OUT: left_out})


def truth_name(surrogate: Surrogate) -> str:
    """The variable with the true values of what the surrogate predicts."""
    name = only_output(surrogate).name
    return SMOKE if name == LOG_SMOKE else name


def truth_sums(surrogate: Surrogate, truth: xr.Dataset, request: Request, size: int) -> TruthSums:
    """The sums over all fires of `open_truth`; `surrogate` is on its device."""
    truth = by_fire(truth)
    total: TruthSums = add_up(
        _truth_block(surrogate, request, truth.isel({SNAPSHOT: rows}))
        for rows in fire_blocks(truth, size)
    )
    return total


def _truth_block(surrogate: Surrogate, request: Request, block: xr.Dataset) -> TruthSums:
    name = truth_name(surrogate)
    layout = replace(only_output(surrogate), name=name)
    read = block[name]
    if find_quantity(request.quantity).needs_interval:
        read = as_integrals(read, request.interval)
    if request.statistics.final:
        last = final_rows(block)
        block = take_final(block, last, history=surrogate.operator.needs_weather)
        read = read.isel({SNAPSHOT: last})
    with extrapolating():
        rows = surrogate.read_rows(block)
    factors = block_factors(block, surrogate, request.quantity, request.interval)
    predicted, smoke, predicted_read = predicted_smoke(
        surrogate, request.quantity, rows, block, factors
    )
    true, true_read = (
        like(np.maximum(to_rows(part, layout, [SNAPSHOT]), 0.0), predicted, predicted.dtype)
        for part in (block[name], read)
    )
    true_factors = quantity_factors(block, read, request.quantity, request.interval)
    names = block[GROUP].values.astype(str)
    sums = []
    for field_of, read_of, scale in (
        (true, true_read, true_factors),
        (smoke, predicted_read, factors),
    ):
        scaled = read_of if scale is None else scaled_by(read_of, scale)
        above = (scaled > threshold for threshold in request.thresholds)
        # as in `field_sums`: ln(g + 1), the quantity, and whether it exceeds each threshold
        statistics = [array_namespace(field_of).log1p(field_of), scaled, *above]
        sums.append(block_cluster_sums(statistics, names, request.groups))
    return TruthSums(sums[0], sums[1], block.attrs[LEFT_OUT])
