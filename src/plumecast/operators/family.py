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

from plumecast.compute.arrays import Array, array_namespace, is_numpy_array, map_arrays
from plumecast.compute.blocks import field_blocks, row_blocks
from plumecast.compute.resources import Budget
from plumecast.operators.carried.release import FireHistory, FuelLoads, WeatherSeries

if TYPE_CHECKING:
    from plumecast.operators.coded.correction import FittedCorrection
    from plumecast.operators.settings import Settings


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is known of every snapshot in addition to its fire; on the host, except the physics."""

    labels: Array | None = None  # (M,), name of its scenario
    covariates: Array | None = None  # (M, P), normalised
    wind: Array | None = None  # (M, 2), towards east and north
    scenarios: Array | None = None  # (M,), number of its scenario, from 0
    scenario_count: int = 0  # 0: one map for all scenarios
    weather: WeatherSeries | None = None
    fuel: FuelLoads | None = None  # None: that of the training fires
    history: FireHistory | None = None  # what tells when the fires burned
    physics: Array | None = None  # (M, K, *grid), smoke of cheap physics, on the fire's device
    carried: Array | None = None  # (M, 2, K, *grid), it and ∫ c dt / Δ, before any rotation
    integrated: bool = False  # whether the integral is what predictions are made of

    def at(self, rows: Array | slice) -> Conditions:
        """The conditions of some snapshots."""
        arrays = ("labels", "covariates", "wind", "scenarios", "physics", "carried")
        parts = {n: v[rows] for n in arrays if (v := getattr(self, n)) is not None}
        for name in ("weather", "fuel", "history"):
            if (part := getattr(self, name)) is not None:
                parts[name] = part.at(rows)
        return replace(self, **parts)

    def loaded(self) -> Conditions:
        """The same with the history of the fires in memory; each map is read once."""
        return self if self.history is None else replace(self, history=self.history.loaded())

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

    @property
    def needs_weather(self) -> bool:
        """Whether predictions need the hourly weather of every snapshot."""
        return False

    @property
    def uses_fuel(self) -> bool:
        """Whether predictions use the fuel load of every snapshot where it is known."""
        return False

    @abc.abstractmethod
    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) inputs → (M, Ñ) outputs, on the device of the inputs."""

    def predict_both(
        self, inputs: Array, given: Conditions = NOTHING
    ) -> tuple[Array, Array | None]:
        """Outputs and detection score within [0, 1], (M, Ñ) each, from one pass."""
        return self.predict(inputs, given), None

    def prepared(self, inputs: Array, given: Conditions = NOTHING) -> Conditions:
        """The conditions with what several predictions of the same inputs share."""
        return given

    @property
    def ceilings(self) -> tuple[float, ...]:
        """The largest value that each output can have, side by side; empty if there is none."""
        return ()

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


@dataclass(frozen=True, slots=True)
class OneOutput(Operator):
    """One of several outputs of an operator, in its own unit: scale · columns [start, stop).

    With `integrated` it is ∫ c dt / Δ instead of the sum over frames: the operator is applied to
    the integral of the carried smoke. It has no detection score, which is one of the sum.
    """

    operator: Operator
    start: int
    stop: int
    scale: float = 1.0
    integrated: bool = False

    @property
    def detects(self) -> bool:
        """Whether the operator detects."""
        return self.operator.detects and not self.integrated

    @property
    def needs_wind(self) -> bool:
        """Whether the operator needs the wind."""
        return self.operator.needs_wind

    @property
    def needs_weather(self) -> bool:
        """Whether the operator needs the hourly weather."""
        return self.operator.needs_weather

    @property
    def uses_fuel(self) -> bool:
        """Whether the operator uses the fuel load."""
        return self.operator.uses_fuel

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) inputs → (M, Ñ) values of this output."""
        given = replace(given, integrated=True) if self.integrated else given
        return self.scale * self.operator.predict(inputs, given)[:, self.start : self.stop]

    def predict_both(
        self, inputs: Array, given: Conditions = NOTHING
    ) -> tuple[Array, Array | None]:
        """Values and detection score of this output."""
        if self.integrated:
            return self.predict(inputs, given), None
        values, score = self.operator.predict_both(inputs, given)
        columns = slice(self.start, self.stop)
        return self.scale * values[:, columns], None if score is None else score[:, columns]

    def prepared(self, inputs: Array, given: Conditions = NOTHING) -> Conditions:
        """As for all outputs."""
        return self.operator.prepared(inputs, given)

    @property
    def ceilings(self) -> tuple[float, ...]:
        """That of this output; unknown for the integrals of several outputs."""
        every = self.operator.ceilings
        if len(every) > 1:
            every = () if self.integrated else (every[self.start // (self.stop - self.start)],)
        return tuple(self.scale * value for value in every)

    def represented(self, inputs: Array) -> Array | None:
        """As for all outputs."""
        return self.operator.represented(inputs)

    def working_bytes(self) -> tuple[float, float]:
        """As for all outputs."""
        return self.operator.working_bytes()

    def for_float32(self) -> OneOutput:
        """The operator for predictions in single precision."""
        return replace(self, operator=self.operator.for_float32())


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
class ComputedFields:
    """Fields of M snapshots that are computed when they are indexed by rows."""

    shape: tuple[int, ...]  # (M, …)
    read: Callable[[Array | slice], Array]

    def __getitem__(self, rows: Array | slice) -> Array:
        return self.read(rows)


def in_memory(fields: Array, size: int | None = None) -> Array:
    """Fields as one array, computed `size` rows at a time if they are computed when read."""
    if not isinstance(fields, ComputedFields):
        return fields[:]
    out = np.empty(fields.shape, dtype=np.float32)
    for rows in field_blocks(fields) if size is None else row_blocks(fields.shape[0], size):
        out[rows] = fields[rows]
    return out


def mirrored(source: Array, axis: int) -> ComputedFields:
    """(M, …) fields, and after them the same fields mirrored at one axis, (2 M, …)."""
    count = source.shape[0]

    def read(rows: Array | slice) -> Array:
        wanted = np.arange(2 * count)[rows]
        values = np.array(source[wanted % count])
        copies = wanted >= count
        values[copies] = np.flip(values[copies], axis=axis)
        return values

    return ComputedFields((2 * count, *source.shape[1:]), read)


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
    leading: int | None = None  # number of targets of the first output; None: all are

    def at(self, rows: Array) -> TrainingSet:
        """Some of the snapshots; fields that are read when they are indexed stay so."""

        def some(fields: Array) -> Array:
            if is_numpy_array(fields):
                return fields[rows]
            shape = (rows.size, *fields.shape[1:])
            return ComputedFields(shape, lambda part: fields[rows[part]])

        given, groups = self.given.at(rows), self.groups[rows]
        fire, targets = some(self.fire), some(self.targets)
        return replace(self, fire=fire, targets=targets, groups=groups, given=given)

    def in_memory(self) -> TrainingSet:
        """The same with all fields as arrays."""
        given = self.given
        if given.physics is not None:
            given = replace(given, physics=given.physics[:])
        return replace(self, fire=self.fire[:], targets=self.targets[:], given=given)

    def with_mirrored(self) -> TrainingSet:
        """The snapshots, then copies that are mirrored at the first axis of the grid."""
        twice, physics = np.tile(np.arange(self.groups.size), 2), self.given.physics
        given = replace(self.given, physics=None, weather=None, history=None).at(twice)
        if physics is not None:
            given = replace(given, physics=mirrored(physics, axis=2))
        fire, targets = mirrored(self.fire, axis=1), mirrored(self.targets, axis=2)
        return replace(self, fire=fire, targets=targets, groups=self.groups[twice], given=given)

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
    sums: Any = None  # what `Family.update` adds new snapshots to; None unless it was asked for


class FamilySettings(Protocol):
    """Settings of one family: a frozen dataclass that checks its values when it is created."""

    def simplified(self) -> FamilySettings:
        """Cheaper settings that are good enough to compare frames."""
        ...


@dataclass(frozen=True, slots=True)
class Family:
    """One entry of the registry of families."""

    name: str
    title: str  # for readers, e.g. "U-Net"
    summary: str  # one line for help texts
    settings: type[FamilySettings]  # the settings that only this family has
    fit: Callable[[TrainingSet, Settings, Budget], FittedMap]  # to lifted fires and targets
    saved: tuple[type, ...]  # classes in a file with an operator of this family
    cluster_memory: str = "16GB"  # per process on a cluster if no limit is given
    scenarios: bool = True  # whether every scenario can have its own weights
    equivariant: bool = False  # a fire that is shifted has smoke that is shifted
    extra: str | None = None  # the extra of the package that it needs, if any
    # Map, its sums and new snapshots alone → those of all snapshots; None: these need a new fit.
    update: Callable[[Any, Any, TrainingSet, Budget], tuple[FieldMap, Any]] | None = None
