"""Baselines as surrogates, which are trained, applied and scored like any other surrogate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.arrays import read_rows
from plumecast.compute.blocks import Passes, Runner
from plumecast.compute.resources import LOCAL, Resources, parse_memory
from plumecast.data.training import TrainingMatrices, training_matrices
from plumecast.operators.baselines import MeanField, NearestFire, fit_gaussian_process, sample_rows
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.family import Operator
from plumecast.operators.pca import fit_basis
from plumecast.surrogate.fit import label_operator
from plumecast.surrogate.surrogate import Surrogate

PAPER_STD_FRACTION = 0.95

MEAN_BLOCK = 256
"""Snapshots in a block while the mean field is computed."""


def _mean_field(data: TrainingMatrices, seed: int, runner: Runner | None) -> Operator:
    outputs, count = data.outputs, data.outputs.shape[0]
    total = Passes(MEAN_BLOCK, runner).sum(
        lambda rows: np.sum(read_rows(outputs, rows), axis=0), count
    )
    return MeanField(total / count)


def _nearest_fire(data: TrainingMatrices, seed: int, runner: Runner | None) -> Operator:
    return NearestFire(data.inputs, data.outputs)


def _gp_images(data: TrainingMatrices, seed: int, runner: Runner | None) -> Operator:
    rows = sample_rows(data.inputs.shape[0], seed)
    return fit_gaussian_process(data.inputs[rows], data.outputs[rows])


def _gp_codes(data: TrainingMatrices, seed: int, runner: Runner | None) -> Operator:
    input_basis = fit_basis(data.inputs, std_fraction=PAPER_STD_FRACTION)
    output_basis = fit_basis(data.outputs, std_fraction=PAPER_STD_FRACTION)
    rows = sample_rows(data.inputs.shape[0], seed)
    code_map = fit_gaussian_process(
        input_basis.encode(data.inputs[rows]), output_basis.encode(data.outputs[rows])
    )
    return CodedOperator(input_basis, code_map, output_basis)


BASELINES: dict[str, Callable[[TrainingMatrices, int, Runner | None], Operator]] = {
    "mean-field": _mean_field,
    "nearest-fire": _nearest_fire,
    "gp-images": _gp_images,
    "gp-codes": _gp_codes,
}
"""Mean training smoke; smoke of the nearest training fire; the paper's Gaussian processes."""


@folded_arguments(resources=Resources)
def fit_baseline(
    name: str,
    train: xr.Dataset,
    *,
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
    seed: int = 0,
    resources: Resources = LOCAL,
) -> Surrogate:
    """A baseline by name, trained on the same snapshots as a surrogate.

    `seed` selects the 100 random snapshots of the Gaussian processes. With `memory` the mean field
    is computed in blocks, with a `runner` by the workers of a cluster; the other baselines need all
    training snapshots in the memory of this process. All are computed on the host.
    """
    if name not in BASELINES:
        raise PlumecastError(f"baseline '{name}' is unknown; choose from {', '.join(BASELINES)}")
    limit = None if resources.memory is None else parse_memory(resources.memory)
    runner = resources.runner
    data = training_matrices(train, inputs, outputs, stored=resources.lazy, by=None, runner=runner)
    if name != "mean-field":
        data = data.in_memory(limit)
    operator = BASELINES[name](data, seed, runner)
    return label_operator(operator, data, settings={"preset": name, "seed": seed})
