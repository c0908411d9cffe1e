"""Operators with a lift and several targets: fire → field map → targets → smoke. Arrays only.

The field map can be of any family. If winds differ between fires, it works in the wind frame:
fields are rotated into the frame, predicted there and rotated back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace
from plumecast.compute.blocks import field_blocks, sampled_rows
from plumecast.compute.device import DEFAULT_RESOURCES, Resources
from plumecast.operators.coded.correction import SHARES, CorrectedMap
from plumecast.operators.families import FAMILIES
from plumecast.operators.family import (
    NOTHING,
    Conditions,
    FieldMap,
    FittedMap,
    Operator,
    TrainingSet,
)
from plumecast.operators.fields.targets import CHOICE_ROWS, Targets, choose_inverse, fit_targets
from plumecast.operators.fields.wind_frame import WindFrame
from plumecast.operators.settings import Settings


@dataclass(frozen=True, slots=True)
class LiftedOperator(Operator):
    """A field map, and the inverse from its targets to smoke and detection score."""

    labels: tuple[str, ...]  # scenarios with their own weights; empty: one map for all
    field_map: FieldMap
    targets: Targets
    shape: tuple[int, ...]  # the grid
    frame: WindFrame | None = None

    @property
    def detects(self) -> bool:
        """Whether the footprint is among the targets."""
        return self.targets.detects

    @property
    def needs_wind(self) -> bool:
        """Whether fields are rotated into the wind frame."""
        return self.frame is not None

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, N) smoke."""
        return _as_rows(self.targets.smoke(self.target_fields(inputs, given)))

    def predict_both(
        self, inputs: Array, given: Conditions = NOTHING
    ) -> tuple[Array, Array | None]:
        """Smoke and detection score, (M, N) each, from one pass."""
        fields = self.target_fields(inputs, given)
        score = _as_rows(self.targets.score(fields)) if self.detects else None
        return _as_rows(self.targets.smoke(fields)), score

    def target_fields(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, T, *grid) predicted targets."""
        fire = array_namespace(inputs).reshape(inputs, (-1, *self.shape))
        known = self._numbered(fire.shape[0], given)
        if self.frame is None:
            return self.field_map.predict(fire, known)
        if given.wind is None:
            raise PlumecastError(
                "this surrogate was trained in the wind frame; pass a Dataset with the coordinates "
                "'wind_speed' and 'wind_from_direction'"
            )
        fields = self.field_map.predict(self.frame.to_wind(fire, given.wind), known)
        return self.frame.to_map(fields, given.wind)

    def working_bytes(self) -> tuple[float, float]:
        """(fixed, per_row) working bytes of the field map, and its targets in double precision."""
        fixed, per_row = self.field_map.working_bytes()
        return fixed, per_row + 16.0 * len(self.targets.names) * math.prod(self.shape)

    def for_float32(self) -> LiftedOperator:
        """The operator itself, because field maps compute in a fixed precision."""
        return self

    def _numbered(self, count: int, given: Conditions) -> Conditions:
        """The conditions, with the scenario of every snapshot as a number."""
        if not self.labels or (given.labels is None and len(self.labels) == 1):
            scenarios = np.zeros(count, dtype=np.int64)
        elif given.labels is None:
            raise PlumecastError(
                f"this surrogate was trained on the droughts {', '.join(self.labels)}; pass a "
                "Dataset or DataArray whose coordinate 'drought' names the drought of each snapshot"
            )
        else:
            unknown = sorted(set(np.asarray(given.labels).tolist()) - set(self.labels))
            if unknown:
                raise PlumecastError(
                    f"drought '{unknown[0]}' was not in training; known are "
                    f"{', '.join(self.labels)}; label the fires with one of them (--drought)"
                )
            numbers = {label: number for number, label in enumerate(self.labels)}
            scenarios = np.array([numbers[str(label)] for label in given.labels], dtype=np.int64)
        return replace(given, scenarios=scenarios, scenario_count=len(self.labels))


def _as_rows(fields: Array) -> Array:
    xp = array_namespace(fields)
    return xp.astype(xp.reshape(fields, (fields.shape[0], -1)), xp.float64, copy=False)


@dataclass(frozen=True, slots=True)
class EncodedFields:
    """Fields of snapshots that are encoded as targets and rotated into a frame when they are read.

    Indexing by rows gives an array, (B, *grid), or (B, T, *grid) for targets.
    """

    source: Array  # (M, *grid), an array or an object that gives one when indexed by rows
    encode: Targets | None = None
    frame: WindFrame | None = None
    wind: Array | None = None  # (M, 2)

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, *grid) or (M, T, *grid)."""
        count, *grid = self.source.shape
        kinds = () if self.encode is None else (len(self.encode.names),)
        return (count, *kinds, *(grid if self.frame is None else self.frame.canvas))

    def __getitem__(self, rows: Array | slice) -> Array:
        values = self.source[rows]
        if self.encode is not None:
            values = self.encode.encode(values)
        if self.frame is None or self.wind is None:
            return values
        return self.frame.to_wind(values, self.wind[rows])

    def in_memory(self) -> Array:
        """All fields in one array, for a fit that reads them several times."""
        if self.encode is None and self.frame is None:
            return self.source[:]
        out = np.empty(self.shape, dtype=np.float32)
        for rows in field_blocks(self):
            out[rows] = self[rows]
        return out


def fit_lifted_operator(
    training: TrainingSet,
    settings: Settings,
    *,
    threshold: float,
    epsilon: float = 1.0,
    frame: WindFrame | None = None,
    resources: Resources = DEFAULT_RESOURCES,
) -> tuple[LiftedOperator, float]:
    """Fit an operator from (M, *grid) fires to (M, *grid) smoke, the `targets` of the training set.

    The inverse from targets to smoke is chosen on out-of-fold predictions. Their error is returned
    too: the sum of the median relative errors of g and of ln(1 + g/ε). The operator is on the host.
    """
    smoke, given = training.targets, training.given
    targets = fit_targets(smoke, settings.targets, threshold=threshold, epsilon=epsilon)
    labels: tuple[str, ...] = ()
    if given.labels is not None:
        names, scenarios = np.unique(given.labels, return_inverse=True)
        labels = tuple(map(str, names))
        given = replace(given, scenarios=scenarios, scenario_count=len(labels))
    fire: Array = EncodedFields(training.fire, None, frame, given.wind)
    encoded: Array = EncodedFields(smoke, targets, frame, given.wind)
    if resources.limit is None:
        fire, encoded = fire.in_memory(), encoded.in_memory()
    framed = replace(training, fire=fire, targets=encoded, given=given)
    fitted = FAMILIES[settings.family].fit(framed, settings, resources)
    targets, field_map, error = _choose_inverse(fitted, targets, smoke, frame, given)
    shape = tuple(int(n) for n in smoke.shape[1:])
    return LiftedOperator(labels, field_map, targets, shape, frame), error


def _choose_inverse(
    fitted: FittedMap,
    targets: Targets,
    smoke: Array,
    frame: WindFrame | None,
    given: Conditions,
) -> tuple[Targets, FieldMap, float]:
    """The targets with their inverse, the field map with its best correction, and the error."""
    correction = fitted.correction
    known = fitted.rows if correction is None else correction.rows
    some = sampled_rows(known.size, CHOICE_ROWS)
    rows = known[some]
    # A correction exists only where every snapshot has an out-of-fold prediction.
    predicted = fitted.out_of_fold[some if correction is None else rows]
    observed, wind = smoke[rows], given.at(rows).wind

    def choose(fields: Array) -> tuple[Targets, float]:
        on_map = fields if frame is None else frame.to_map(fields, wind)
        return choose_inverse(targets, on_map, observed)

    best, error = choose(predicted)
    field_map = fitted.field_map
    if correction is None:
        return best, field_map, error
    change = correction.out_of_fold(some)
    for share in SHARES:
        fields = predicted + share * change
        xp = array_namespace(fields)
        other, other_error = choose(xp.astype(fields, xp.float32))
        if other_error < error:
            best, error = other, other_error
            field_map = CorrectedMap(fitted.field_map, correction.shared(share))
    return best, field_map, error
