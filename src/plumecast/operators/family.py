"""What every operator and every family of operators provides. Arrays only, no labels.

An *operator* maps the rows of an input matrix to the rows of an output matrix. A *field map* maps
lifted fires to targets on a grid and is what the families differ in. A *family* is one entry of the
registry in `families`: how its field map is fitted, its settings, and what a saved file holds.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, map_arrays
from plumecast.compute.device import Resources

if TYPE_CHECKING:
    from plumecast.operators.coded.correction import FittedCorrection
    from plumecast.operators.settings import Settings


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is known of every snapshot in addition to its fire; always on the host."""

    labels: Array | None = None  # (M,), name of its scenario
    covariates: Array | None = None  # (M, P), normalised
    wind: Array | None = None  # (M, 2), towards east and north
    scenarios: Array | None = None  # (M,), number of its scenario, from 0
    scenario_count: int = 0  # 0: one map for all scenarios

    def at(self, rows: Array | slice) -> Conditions:
        """The conditions of some snapshots."""
        parts = ("labels", "covariates", "wind", "scenarios")
        known = {name: getattr(self, name) for name in parts}
        return replace(self, **{n: v[rows] for n, v in known.items() if v is not None})

    def scalars(self) -> Array | None:
        """(M, P + S): the covariates, then the scenario as an indicator of each of S scenarios."""
        if self.scenarios is None or self.scenario_count == 0:
            return self.covariates
        one_hot = np.eye(self.scenario_count, dtype=np.float32)[self.scenarios]
        if self.covariates is None:
            return one_hot
        return np.concatenate([self.covariates, one_hot], axis=1)


NOTHING = Conditions()
"""Only the fire is known."""

FOLDS = 8
"""Number of folds of the training groups."""


class Operator(abc.ABC):
    """Base of all fitted operators: frozen values with a `predict`. Subclasses are final.

    A subclass needs `predict` alone. One that also predicts a detection score sets `detects` and
    overrides `predict_both`; one that takes much memory overrides `working_bytes`.
    """

    __slots__ = ()

    @property
    def detects(self) -> bool:
        """Whether a detection score is predicted in addition to smoke."""
        return False

    @property
    def needs_wind(self) -> bool:
        """Whether predictions need the wind of every snapshot."""
        return False

    @abc.abstractmethod
    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) inputs → (M, Ñ) outputs, on the device of the inputs."""

    def predict_both(
        self, inputs: Array, given: Conditions = NOTHING
    ) -> tuple[Array, Array | None]:
        """Outputs and detection score within [0, 1], (M, Ñ) each, from one pass."""
        return self.predict(inputs, given), None

    def represented(self, inputs: Array) -> Array | None:
        """(M,) share of the squared norm of each input that the operator's basis represents.

        NaN for inputs that are zero; None for operators without a basis.
        """
        return None

    def working_bytes(self) -> tuple[float, float]:
        """(fixed, per_row) working bytes of a prediction.

        They come in addition to the operator's own arrays, the inputs and the outputs.
        """
        return 0.0, 0.0

    def for_float32(self) -> Operator:
        """The operator for predictions in single precision."""
        return map_arrays(self, in_float32)


def in_float32(array: Array) -> Array:
    """The array in single precision."""
    xp = array_namespace(array)
    return xp.astype(array, xp.float32, copy=False)


class FieldMap(Protocol):
    """A fitted map from fires to targets on one grid: what a family provides."""

    def predict(self, fire: Array, given: Conditions) -> Array:
        """(M, *grid) time since ignition → (M, T, *grid) targets, on the device of the fire."""
        ...

    def working_bytes(self) -> tuple[float, float]:
        """(fixed, per_row) working bytes of a prediction, in addition to inputs and outputs."""
        ...


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Training snapshots as a family sees them.

    Fields are arrays on the host, or objects that give an array when indexed by rows.
    """

    fire: Array  # (M, *grid), time since ignition
    targets: Array  # (M, T, *grid)
    groups: Array  # (M,), snapshots of one group are left out together
    given: Conditions
    names: tuple[str, str] = ("inputs", "outputs")  # of the variables, for error messages

    def folds(self) -> Array:
        """(M,) number of every snapshot's fold, from 0."""
        return fold_numbers(self.groups, FOLDS)


def fold_numbers(groups: Array, folds: int) -> Array:
    """(M,) fold of every snapshot: groups, sorted by label, are assigned to the folds in turn."""
    names, member = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    return member % min(folds, names.size)


@dataclass(frozen=True, slots=True)
class FittedMap:
    """A field map with out-of-fold predictions of some training snapshots.

    `out_of_fold[i]` predicts the snapshots `rows[i]`, i an index array, by maps that were fitted
    without their groups.
    """

    field_map: FieldMap
    rows: Array  # (m,)
    out_of_fold: Any  # indexed by (k,) positions in `rows`, gives (k, T, *grid)
    correction: FittedCorrection | None = None  # fitted to the out-of-fold residuals


class OwnSettings(Protocol):
    """Settings of one family: a frozen dataclass that checks its values when it is created."""

    def simplified(self) -> OwnSettings:
        """Cheaper settings that are good enough to compare frames."""
        ...


FitFields = Callable[[TrainingSet, "Settings", Resources], FittedMap]
"""Fit a field map to lifted fires and targets."""


@dataclass(frozen=True, slots=True)
class Family:
    """One entry of the registry of families."""

    name: str
    title: str  # for readers, e.g. "U-Net"
    summary: str  # one line for help texts
    settings: type[OwnSettings]  # the settings that only this family has
    fit: FitFields
    saved: tuple[type, ...]  # classes in a file with an operator of this family
    cluster_memory: str = "16GB"  # per process on a cluster if no limit is given
    scenarios: bool = True  # whether every scenario can have its own weights
    equivariant: bool = False  # a fire that is shifted has smoke that is shifted
    extra: str | None = None  # the extra of the package that it needs, if any
