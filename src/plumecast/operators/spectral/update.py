"""Add snapshots to a fitted spectral operator. Arrays only, no labels.

The weights of the last layer follow from normal equations, which are sums over snapshots: those of
new snapshots are added, and the layer is solved again with the penalties that were chosen before.
The lift, the ramps, the penalties and the earlier layers are kept. So the result equals a fit of
the last layer to all snapshots, given these. For a new snapshot the earlier layers are fitted
without it, as those are whose predictions were the inputs of the fit (decision 0034).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumecast.compute.arrays import Array, like, to_numpy
from plumecast.compute.device import Budget
from plumecast.operators.family import TrainingSet
from plumecast.operators.spectral.blocks import SpectralBlocks
from plumecast.operators.spectral.equations import Equations
from plumecast.operators.spectral.map import SpectralMap
from plumecast.operators.spectral.systems import Choices, solve_totals
from plumecast.operators.spectral.transform import make_transform

BLOCK = 96
"""Snapshots in a block; bounds the memory of their spectra."""


@dataclass(frozen=True, slots=True)
class LayerSums:
    """The normal equations of a layer by scenario, on the host, and its chosen penalties.

    Complex numbers are pairs of real ones; of the Hermitian Gram matrices the upper triangle is
    stored, K = C (C + 1) / 2 values.
    """

    gram: Array  # (S, F, K, 2)
    cross: Array  # (S, F, C, T, 2)
    size: Array  # (S, F, T)
    choices: Choices

    def totals(self, example: Array) -> list[Equations]:
        """The equations of every scenario, on the device of `example`."""
        rows, columns = np.triu_indices(self.cross.shape[2])
        found = []
        for packed, cross, size in zip(self.gram, self.cross, self.size, strict=True):
            upper = _as_complex(packed)
            gram = np.zeros((*upper.shape[:1], cross.shape[1], cross.shape[1]), upper.dtype)
            gram[:, columns, rows] = upper.conj()
            gram[:, rows, columns] = upper
            arrays = (gram, _as_complex(cross), size)
            found.append(Equations(*(like(each, example) for each in arrays)))
        return found


def layer_sums(totals: list[Equations], choices: Choices) -> LayerSums:
    """The equations of every scenario in their saved form."""
    rows, columns = np.triu_indices(totals[0].gram.shape[1])
    return LayerSums(
        np.stack([_as_pairs(to_numpy(own.gram)[:, rows, columns]) for own in totals]),
        np.stack([_as_pairs(to_numpy(own.cross)) for own in totals]),
        np.stack([to_numpy(own.size) for own in totals]),
        choices,
    )


def paired_weights(weights: list[Array]) -> Array:
    """(F, C, T) complex weights of every scenario → (S, F, C, T, 2) float32, on the host."""
    return _as_pairs(np.stack([to_numpy(own) for own in weights])).astype(np.float32)


def update_spectral(
    fitted: SpectralMap, sums: LayerSums, training: TrainingSet, resources: Budget
) -> tuple[SpectralMap, LayerSums]:
    """The map and its sums with further snapshots; `training` has only the new ones."""
    given = training.given
    example = resources.put(np.zeros(1, dtype=np.float32))
    transform = make_transform(fitted.frequencies, example)
    blocks = SpectralBlocks(
        training.fire, training.targets, given.physics, given.covariates, fitted.target_scales,
        fitted.lift, transform, BLOCK, resources.device.put, training.leading or 0,
    )  # fmt: skip
    count = training.fire.shape[0]
    numbers = np.zeros(count, dtype=np.int64) if given.scenarios is None else given.scenarios
    *earlier, last = fitted.layers
    totals = sums.totals(example)
    for number in np.unique(numbers).tolist():
        steps = [(own, like(own.weights[number, ...], example)) for own in earlier]
        new = blocks.equations(np.flatnonzero(numbers == number), steps)
        totals[number] = totals[number] + new
    weights = solve_totals(totals, fitted.frequencies, sums.choices)
    solved = replace(last, weights=paired_weights(weights))
    return replace(fitted, layers=(*earlier, solved)), layer_sums(totals, sums.choices)


def _as_pairs(values: np.ndarray) -> np.ndarray:
    return np.stack([values.real, values.imag], axis=-1)


def _as_complex(pairs: np.ndarray) -> np.ndarray:
    return pairs[..., 0] + 1j * pairs[..., 1]
