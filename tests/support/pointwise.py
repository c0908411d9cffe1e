"""The pointwise family: ridge regression of the targets of a cell on the channels of that cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, like
from plumecast.compute.resources import Budget
from plumecast.operators.family import NOTHING, Conditions, Family, FittedMap, TrainingSet
from plumecast.operators.lift import Lift, fit_lift

if TYPE_CHECKING:
    from plumecast.operators.settings import Settings


@dataclass(frozen=True, slots=True)
class PointwiseSettings:
    """Choices of the pointwise family."""

    penalty: float = 1e-6  # relative to the mean of the Gram diagonal

    def __post_init__(self) -> None:
        if not self.penalty > 0.0:
            raise PlumecastError(f"penalty={self.penalty} must be positive")

    def simplified(self) -> PointwiseSettings:
        """Settings that compare frames: the same."""
        return self


@dataclass(frozen=True, slots=True)
class PointwiseMap:
    """A field map: targets of a cell = channels of the cell @ weights."""

    lift: Lift
    weights: Array  # (C, T)
    grid: tuple[int, ...]

    def predict(self, fire: Array, given: Conditions = NOTHING) -> Array:
        """(M, *grid) → (M, T, *grid); without fire all channels are zero."""
        xp = array_namespace(fire)
        channels = xp.moveaxis(self.lift(fire), 1, -1)
        return xp.moveaxis(channels @ like(self.weights, channels, channels.dtype), -1, 1)

    def working_bytes(self) -> tuple[float, float]:
        """At most four float32 arrays of the size of the channels, while a fire is lifted."""
        return 0.0, 16.0 * self.lift.channels * math.prod(self.grid)


@dataclass(frozen=True, slots=True)
class PointwiseOutOfFold:
    """Out-of-fold predictions, computed when they are indexed."""

    fire: Array  # (M, *grid)
    folds: Array  # (M,)
    maps: tuple[PointwiseMap, ...]  # number k was fitted without fold k

    def __getitem__(self, some: Array) -> Array:
        rows = np.arange(self.folds.size)[some]
        return np.concatenate(
            [self.maps[self.folds[row]].predict(self.fire[row : row + 1]) for row in rows]
        )


def fit_pointwise(training: TrainingSet, settings: Settings, resources: Budget) -> FittedMap:
    """Weights of all snapshots, and weights without each fold: sums over the folds give both."""
    lift = fit_lift(training.fire, settings.lift, settings.products, bins=settings.age_bins)
    folds, penalty = training.folds(), settings.family_settings.penalty
    sums = [normal_equations(lift, training, folds == fold) for fold in range(folds.max() + 1)]
    gram, cross = (sum(parts) for parts in zip(*sums, strict=True))
    grid = tuple(training.fire.shape[1:])
    whole = PointwiseMap(lift, solve(gram, cross, penalty), grid)
    without = tuple(
        PointwiseMap(lift, solve(gram - own_gram, cross - own_cross, penalty), grid)
        for own_gram, own_cross in sums
    )
    return FittedMap(
        whole, np.arange(folds.size), PointwiseOutOfFold(training.fire, folds, without)
    )


def normal_equations(lift: Lift, training: TrainingSet, chosen: Array) -> tuple[Array, Array]:
    """XᵀX (C, C) and XᵀY (C, T) of the cells of some snapshots."""
    rows = np.flatnonzero(chosen)
    channels, targets = (
        np.moveaxis(fields, 1, -1).reshape(-1, fields.shape[1]).astype(np.float64)
        for fields in (lift(training.fire[rows]), training.targets[rows])
    )
    return channels.T @ channels, channels.T @ targets


def solve(gram: Array, cross: Array, penalty: float) -> Array:
    """(XᵀX + λI)⁻¹ XᵀY with λ = penalty · mean(diag XᵀX)."""
    return np.linalg.solve(gram + penalty * np.mean(np.diag(gram)) * np.eye(len(gram)), cross)


POINTWISE = Family(
    name="pointwise",
    title="Pointwise ridge",
    summary="targets of a cell by ridge regression on the channels of that cell",
    settings=PointwiseSettings,
    fit=fit_pointwise,
    saved=(PointwiseMap,),
    scenarios=False,
)
