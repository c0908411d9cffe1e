"""Fires with true smoke that correct the statistics of predicted smoke."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array, array_namespace, like
from plumecast.compute.blocks import add_up
from plumecast.data.clock import by_fire, fire_blocks, take_final
from plumecast.data.conditions.covariates import extrapolating
from plumecast.data.layout import to_rows
from plumecast.data.schema import final_rows
from plumecast.data.store import open_snapshots
from plumecast.scores.field_statistics import ClusterSums, block_cluster_sums, scaled_by
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.scores.quantities import as_integrals, find_quantity, quantity_factors
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.held_out.unseen import is_same_simulation
from plumecast.workflows.statistics.request import Request
from plumecast.workflows.statistics.smoke import block_factors, only_output, predicted_smoke

GROUP = "ignition_id"

LEFT_OUT = "training_ignitions_left_out"
"""Attribute of the fires with true smoke: how many ignitions of training were among them."""


@dataclass(frozen=True, slots=True)
class TruthSums:
    """Sums by ignition of the statistics of true and of predicted smoke of the same fires."""

    observed: ClusterSums
    predicted: ClusterSums
    left_out: int  # training ignitions among the fires with true smoke

    def __add__(self, other: TruthSums) -> TruthSums:
        both = self.observed + other.observed, self.predicted + other.predicted
        return TruthSums(*both, self.left_out)

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
    if name not in data:
        raise PlumecastError(f"truth={_shown(truth)} has no '{name}'; give fires with true smoke")
    if GROUP not in data.variables:
        raise PlumecastError(
            f"truth={_shown(truth)} has no coordinate '{GROUP}', so that it is unknown whether the "
            "surrogate was trained on these fires; add it"
        )
    labels = data[GROUP].values.astype(str)
    trained = set(surrogate.training.get(GROUP, ()))
    seen = np.isin(labels, sorted(trained)) & is_same_simulation(surrogate, data)
    left = np.unique(labels[~seen]).size
    if left < 2:
        raise PlumecastError(
            f"truth={_shown(truth)} has {left} ignitions that the surrogate was not trained on "
            f"({np.unique(labels[seen]).size} that it was); give true smoke of at least 2 others, "
            "better 8"
        )
    data = data.isel({SNAPSHOT: np.flatnonzero(~seen)})
    return data.assign_attrs({LEFT_OUT: int(np.unique(labels[seen]).size)})


def truth_name(surrogate: Surrogate) -> str:
    """The variable with the true values of what the surrogate predicts."""
    name = only_output(surrogate).name
    return SMOKE if name == LOG_SMOKE else name


def truth_sums(
    surrogate: Surrogate, truth: xr.Dataset, request: Request, size: int, *, final: bool
) -> TruthSums:
    """The sums over all fires of `open_truth`; `surrogate` is on its device.

    With `final` the last snapshot of each fire counts.
    """
    truth = by_fire(truth)
    blocks = fire_blocks(truth, size)
    total: TruthSums = add_up(
        _block_sums(surrogate, request, truth.isel({SNAPSHOT: rows}), final=final)
        for rows in blocks
    )
    return total


def _block_sums(
    surrogate: Surrogate, request: Request, block: xr.Dataset, *, final: bool
) -> TruthSums:
    name = truth_name(surrogate)
    field = replace(only_output(surrogate), name=name)
    read = block[name]
    if find_quantity(request.quantity).needs_interval:
        read = as_integrals(read, request.interval)
    if final:
        last = final_rows(block)
        block = take_final(block, last, history=surrogate.operator.needs_weather)
        read = read.isel({SNAPSHOT: last})
    with extrapolating():
        given = surrogate.read_rows(block)
    factors = block_factors(block, surrogate, request.quantity, request.interval)
    _, predicted, read_of = predicted_smoke(surrogate, request.quantity, given, block, factors)

    def rows(smoke: xr.DataArray) -> Array:
        values = np.maximum(to_rows(smoke, field, [SNAPSHOT]), 0.0)
        return like(values, predicted, predicted.dtype)

    seen = quantity_factors(block, read, request.quantity, request.interval)
    names = block[GROUP].values.astype(str)
    observed_sums, predicted_sums = (
        block_cluster_sums(_statistics(*part, request), names, request.groups)
        for part in ((rows(block[name]), rows(read), seen), (predicted, read_of, factors))
    )
    return TruthSums(observed_sums, predicted_sums, block.attrs[LEFT_OUT])


def _statistics(
    smoke: Array, read: Array, factors: np.ndarray | None, request: Request
) -> list[Array]:
    """ln(g + 1), the quantity, and whether it exceeds each threshold, as in `field_sums`."""
    scaled = read if factors is None else scaled_by(read, factors)
    log = array_namespace(smoke).log1p(smoke)
    return [log, scaled, *(scaled > threshold for threshold in request.thresholds)]


def _shown(truth: xr.Dataset | str | Path) -> str:
    return "Dataset" if isinstance(truth, xr.Dataset) else str(truth)
