"""Snapshots that are scored, with their predictions, in blocks.

A part is a set of snapshots with their predictions: made anew, block by block, by a surrogate
(`HeldOut`), or already in memory (`Predicted`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array, array_namespace, like
from plumecast.compute.blocks import Runner, map_over, row_blocks
from plumecast.compute.resources import Resources, refuse_device
from plumecast.data.clock import by_fire, fire_blocks
from plumecast.data.covariates import extrapolating
from plumecast.data.layout import Layout, to_rows
from plumecast.data.lazy_store import check_unchanged
from plumecast.scores.footprint import sample_coords
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import joint_score
from plumecast.workflows.predict import CLUSTER_MEMORY, prediction_rows

BLOCK = 256
"""Largest number of snapshots scored at a time."""

SCORE_BYTES = 160.0
"""Bytes per cell while a snapshot is scored: about twenty arrays, most of them for the ROC."""


@dataclass(frozen=True, slots=True)
class PredictedBlock:
    """Predictions of some snapshots: (m, N) float64 matrices on one device."""

    smoke: Array
    detected: Array  # detection score; the smoke itself where the surrogate has none
    observed: Array
    seconds: float  # of the prediction
    surrogate: Surrogate | None = None  # with `snapshots`, for thresholds of other quantities
    snapshots: xr.Dataset | None = None


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Snapshots that a surrogate predicts in blocks, in this process or by an executor."""

    surrogate: Surrogate  # on its device
    snapshots: xr.Dataset
    size: int
    stored: bool  # whether fields are read lazily from files, which may change
    runner: Runner | None

    @property
    def coords(self) -> Mapping[str, xr.DataArray]:
        """The coordinates of the snapshots."""
        return sample_coords(observed_field(self.surrogate.outputs, self.snapshots))

    def visit(self, function: Callable[[PredictedBlock], Any]) -> Iterator[Any]:
        """function(block) of every predicted block, in order."""
        return self._visit(partial(_of_predicted, self.surrogate, function))

    def visit_observed(self, function: Callable[[np.ndarray], Any]) -> Iterator[Any]:
        """The same of the (m, N) observed smoke, in the precision of the store."""
        return self._visit(partial(_of_observed, self.surrogate.outputs, function))

    def _visit(self, function: Callable[[xr.Dataset], Any]) -> Iterator[Any]:
        rows = fire_blocks(self.snapshots, self.size)
        return map_over(_visit_block, (function, self.snapshots, self.stored), rows, self.runner)


def held_out(surrogate: Surrogate, snapshots: xr.Dataset, resources: Resources) -> HeldOut:
    """Blocks of whole fires that keep to the memory limit; sorting for the ROC needs most of it."""
    memory = resources.memory
    if resources.runner is not None:
        memory = memory or CLUSTER_MEMORY
        refuse_device(resources.device)
    size = BLOCK
    if memory is not None:
        size = prediction_rows(
            surrogate,
            memory,
            input_bytes=24.0,
            output_bytes=SCORE_BYTES,
            what="scoring",
            most=BLOCK,
        )
    placed = surrogate.on_device(resources.device)
    return HeldOut(placed, by_fire(snapshots), size, memory is not None, resources.runner)


def _visit_block(shared: tuple[Callable[[xr.Dataset], Any], xr.Dataset, bool], rows: Any) -> Any:
    function, snapshots, stored = shared
    if stored:
        check_unchanged(snapshots)
    return function(snapshots.isel({SNAPSHOT: rows}))


def _of_observed(outputs: Layout, function: Callable[[np.ndarray], Any], block: xr.Dataset) -> Any:
    observed = observed_field(outputs, block).transpose(SNAPSHOT, ...)
    return function(np.ascontiguousarray(observed.values).reshape(observed.shape[0], -1))


def _of_predicted(
    surrogate: Surrogate, function: Callable[[PredictedBlock], Any], block: xr.Dataset
) -> Any:
    """Values are rounded to the precision of the input, as in `Surrogate.predict`."""
    start = time.perf_counter()
    both = surrogate.predict_both_rows(*surrogate.read_rows(block))
    single = block[surrogate.inputs.fields[0].name].dtype == np.float32

    def rounded(values: Array) -> Array:
        xp = array_namespace(values)
        values = xp.astype(values, xp.float32, copy=False) if single else values
        return xp.astype(values, xp.float64, copy=False)

    smoke = rounded(both[0])
    detected = smoke if both[1] is both[0] else rounded(both[1])
    float(smoke[0, 0])  # waits for the device
    seconds = time.perf_counter() - start
    observed = to_rows(
        observed_field(surrogate.outputs, block), surrogate.outputs.fields[0], [SNAPSHOT]
    )
    return function(
        PredictedBlock(smoke, detected, like(observed, smoke), seconds, surrogate, block)
    )


def observed_field(outputs: Layout, part: xr.Dataset) -> xr.DataArray:
    """The observed field of the only output; raises if there are several, or no such field."""
    if len(outputs.names) != 1:
        raise PlumecastError(
            f"footprints need one output, this surrogate has {', '.join(outputs.names)}; score "
            f"one at a time: surrogate.output('{outputs.names[0]}')"
        )
    name = outputs.names[0]
    if name not in part:
        raise PlumecastError(
            f"variable '{name}' is missing from these snapshots; a score needs observed {SMOKE}"
        )
    return part[name]


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predictions in memory, (M, …): smoke, detection score (or the smoke again), observed."""

    smoke: Array
    detected: Array
    observed: Array
    seconds: float = math.nan  # of the prediction
    coords: Mapping[str, xr.DataArray] | None = None
    fields: tuple[xr.DataArray, ...] = ()  # smoke and detection score of a surrogate, labelled

    def visit(self, function: Callable[[PredictedBlock], Any]) -> Iterator[Any]:
        """function(block) of every block, in order."""
        if self.smoke.shape != self.observed.shape:
            raise PlumecastError(
                f"prediction {self.smoke.shape} and observation {self.observed.shape} differ in "
                "shape"
            )
        for rows in row_blocks(self.smoke.shape[0], BLOCK):
            smoke = _matrix(self.smoke[rows])
            detected = smoke if self.detected is self.smoke else _matrix(self.detected[rows])
            seconds = self.seconds * smoke.shape[0] / self.smoke.shape[0]
            yield function(PredictedBlock(smoke, detected, _matrix(self.observed[rows]), seconds))


def _matrix(values: Array) -> Array:
    return values.reshape(values.shape[0], -1).astype(np.float64)


def predicted(
    surrogate: Surrogate, snapshots: xr.Dataset, joined_at: float | None = None
) -> Predicted:
    """All predictions of a surrogate in memory.

    With `joined_at`, a smoke threshold τ, the detection score is joined with the smoke, as in a
    surrogate that will be `agreeing`.
    """
    observed = observed_field(surrogate.outputs, snapshots).transpose(SNAPSHOT, ...)
    start = time.perf_counter()
    with extrapolating():
        smoke, detected = surrogate.predict_both(snapshots)
    seconds = time.perf_counter() - start
    first, second, truth = (
        field.transpose(*observed.dims).values for field in (smoke, detected, observed)
    )
    if not surrogate.detects:
        second = first
    elif joined_at is not None:
        second = joint_score(first, second, joined_at)
    return Predicted(first, second, truth, seconds, sample_coords(observed), (smoke, detected))


Part: TypeAlias = HeldOut | Predicted


def visit_parts(parts: Iterable[Part], function: Callable[[PredictedBlock], Any]) -> Iterator[Any]:
    """function(block) of every block of every part, in order."""
    return chain.from_iterable(part.visit(function) for part in parts)
