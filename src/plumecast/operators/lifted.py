"""Operators with a lift and several targets: fire → field map → targets → smoke. Arrays only.

The field map can be of any family. If winds differ between fires, it works in the wind frame:
fields are rotated into the frame, predicted there and rotated back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, like
from plumecast.compute.blocks import sampled_rows
from plumecast.compute.resources import DEFAULT_BUDGET, Budget
from plumecast.operators.carried.transport import ColumnTransport
from plumecast.operators.coded.correction import SHARES, CorrectedMap
from plumecast.operators.family import (
    NOTHING,
    Conditions,
    FieldMap,
    FittedMap,
    Operator,
    TrainingSet,
)
from plumecast.operators.settings import FAMILIES, Settings
from plumecast.operators.targets import (
    CHOICE_ROWS,
    Targets,
    choose_inverse,
    each_output,
    fit_targets,
    side_by_side,
    value_range,
)
from plumecast.operators.wind_frame import WindFrame, in_frame


@dataclass(frozen=True, slots=True)
class LiftedOperator(Operator):
    """A field map, and the inverse from its targets to smoke and detection score."""

    labels: tuple[str, ...]  # scenarios with their own weights; empty: one map for all
    field_map: FieldMap
    targets: Targets
    shape: tuple[int, ...]  # the grid
    frame: WindFrame | None = None
    physics: ColumnTransport | None = None
    further: tuple[Targets, ...] = ()  # of further outputs; their channels follow in this order

    @property
    def detects(self) -> bool:
        """Whether the footprint is among the targets."""
        return self.targets.detects

    @property
    def needs_wind(self) -> bool:
        """Whether fields are rotated into the wind frame."""
        return self.frame is not None

    @property
    def needs_weather(self) -> bool:
        """Whether smoke of cheap physics is among the channels."""
        return self.physics is not None

    @property
    def uses_fuel(self) -> bool:
        """Whether that smoke is released by the fuel load of every cell."""
        return self.physics is not None and self.physics.load is not None

    @property
    def ceilings(self) -> tuple[float, ...]:
        """The largest training values, which limit predictions."""
        return tuple(own.largest for own in (self.targets, *self.further))

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, N) smoke, (M, K N) of K outputs."""
        smoke = self._decoded(Targets.smoke, self.target_fields(inputs, given))
        if not given.integrated:
            return smoke
        # Integrals are 0 at ignition, also of families that predict smoke without a fire.
        assert self.physics is not None
        assert given.weather is not None
        grown = np.clip(given.weather.until / self.physics.step, 0.0, 1.0)
        return smoke * like(grown, smoke, smoke.dtype)[:, None]

    def predict_both(
        self, inputs: Array, given: Conditions = NOTHING
    ) -> tuple[Array, Array | None]:
        """Smoke and detection score, (M, N) each (K N columns of K outputs), from one pass."""
        fields = self.target_fields(inputs, given)
        score = self._decoded(Targets.score, fields) if self.detects else None
        return self._decoded(Targets.smoke, fields), score

    def prepared(
        self, inputs: Array, given: Conditions = NOTHING, *, integrals: bool = True
    ) -> Conditions:
        """The conditions with the smoke that the weather carries."""
        if self.physics is None or given.carried is not None:
            return given
        if given.weather is None:
            raise PlumecastError(
                "this surrogate was trained with the weather of every fire; pass a Dataset "
                "with 'wind_u', 'wind_v' and 'boundary_layer_depth'"
            )
        fire = array_namespace(inputs).reshape(inputs, (-1, *self.shape))
        past = given.loaded().history
        carried = self.physics.summed(fire, given.weather, given.fuel, past, integrals=integrals)
        return replace(given, carried=carried)

    def _decoded(self, decode: Callable[[Targets, Array], Array], fields: Array) -> Array:
        """(M, T, *grid) targets → (M, K N) rows, the K outputs side by side."""
        xp, rows = array_namespace(fields), []
        for own, part in side_by_side((self.targets, *self.further)):
            values = decode(own, fields[:, part, ...])
            flat = xp.reshape(values, (fields.shape[0], -1))
            rows.append(xp.astype(flat, xp.float64, copy=False))
        return rows[0] if len(rows) == 1 else xp.concat(rows, axis=1)

    def target_fields(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, T, *grid) predicted targets."""
        fire = array_namespace(inputs).reshape(inputs, (-1, *self.shape))
        conditions = self.numbered(fire.shape[0], given)
        if self.physics is not None:
            carried = self.prepared(inputs, given, integrals=given.integrated).carried
            assert carried is not None
            carried = carried[:, int(given.integrated), ...]
            if self.frame is not None and given.wind is not None:
                carried = self.frame.to_wind(carried, given.wind)
            conditions = replace(conditions, physics=carried)
        if self.frame is None:
            return self.field_map.predict(fire, conditions)
        if given.wind is None:
            raise PlumecastError(
                "this surrogate was trained in the wind frame; pass a Dataset with the coordinates "
                "'wind_speed' and 'wind_from_direction'"
            )
        fields = self.field_map.predict(self.frame.to_wind(fire, given.wind), conditions)
        return self.frame.to_map(fields, given.wind)

    def working_bytes(self) -> tuple[float, float]:
        """(fixed, per_row) working bytes of the field map, and its targets in double precision."""
        fixed, per_row = self.field_map.working_bytes()
        cells = math.prod(self.shape)
        if self.physics is not None:
            fixed += self.physics.working_bytes(cells)
            per_row += 16.0 * (len(self.physics.groups) - 1) * cells
        channels = sum(len(own.names) for own in (self.targets, *self.further))
        return fixed, per_row + 16.0 * channels * cells

    def for_float32(self) -> LiftedOperator:
        """The operator itself, because field maps compute in a fixed precision."""
        return self

    def numbered(self, count: int, given: Conditions) -> Conditions:
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


@dataclass(frozen=True, slots=True)
class LiftedSums:
    """What new snapshots are added to, beside the operator itself."""

    own: Any  # of its family
    mirrored: bool  # whether mirrored copies were fitted too


class FittedLifted(NamedTuple):
    """A fitted operator on the host, its out-of-fold error, and sums where they were asked for."""

    operator: LiftedOperator
    error: float
    sums: LiftedSums | None


def fit_lifted_operator(
    training: TrainingSet,
    settings: Settings,
    *,
    threshold: float | Sequence[float],
    frame: WindFrame | None = None,
    physics: ColumnTransport | None = None,
    resources: Budget = DEFAULT_BUDGET,
) -> FittedLifted:
    """Fit an operator from (M, *grid) fires to (M, *grid) smoke, the `targets` of the training set.

    Smoke (M, K, *grid) is that of K outputs, each with a `threshold`: their targets are further
    right-hand sides of one fit. The inverse from targets to smoke is chosen on out-of-fold
    predictions. Their error is returned too: the sum of the median relative errors of g and of
    ln(1 + g/ε), the mean over the outputs. The operator is on the host.
    """
    smoke, given = training.targets, training.given
    shape = tuple(int(n) for n in training.fire.shape[1:])
    outputs = each_output(smoke, shape)
    levels = [threshold] if isinstance(threshold, int | float) else threshold
    targets = tuple(
        fit_targets(own, settings.targets, threshold=level)
        for own, level in zip(outputs, levels, strict=True)
    )
    labels: tuple[str, ...] = ()
    if given.labels is not None:
        names, scenarios = np.unique(given.labels, return_inverse=True)
        labels = tuple(map(str, names))
        given = replace(given, scenarios=scenarios, scenario_count=len(labels))
    # In the wind frame a plume and its mirror image are equally likely; the physics knows how the
    # wind turns with height. A family that is equivariant gains from copies while fires are few.
    corrected = getattr(settings.family_settings, "correction", False)
    mirrored = frame is not None and physics is not None and not corrected
    mirrored = mirrored and FAMILIES[settings.family].equivariant
    mirrored = mirrored and np.unique(training.groups).size <= MIRRORED_GROUPS
    training = replace(training, given=given)
    framed = in_frame(training, targets, frame, physics, resources, mirrored=mirrored)
    fitted = FAMILIES[settings.family].fit(framed, settings, resources)
    targets, field_map, error = _choose_inverse(fitted, targets, outputs, frame, given)
    operator = LiftedOperator(labels, field_map, targets[0], shape, frame, physics, targets[1:])
    sums = None if fitted.sums is None else LiftedSums(fitted.sums, mirrored)
    return FittedLifted(operator, error, sums)


MIRRORED_GROUPS = 32
"""Largest number of groups of which mirrored copies are fitted. Measured on 21 WRF fires: median
IoU .848 without and .854 with them; on 8 and 32 simulated fires no difference."""


def _choose_inverse(
    fitted: FittedMap,
    targets: tuple[Targets, ...],
    outputs: Sequence[Array],
    frame: WindFrame | None,
    given: Conditions,
) -> tuple[tuple[Targets, ...], FieldMap, float]:
    """The targets with their inverse, the field map with its best correction, and the error."""
    correction = fitted.correction
    rows = fitted.rows if correction is None else correction.rows
    rows = rows[rows < outputs[0].shape[0]]  # mirrored copies follow the snapshots themselves
    some = sampled_rows(rows.size, CHOICE_ROWS)
    rows = rows[some]
    # A correction exists only where every snapshot has an out-of-fold prediction.
    predicted = fitted.out_of_fold[some if correction is None else rows]
    observed = [own[rows] for own in outputs]
    wind = None if given.wind is None else given.wind[rows]

    def choose(fields: Array) -> tuple[tuple[Targets, ...], float]:
        on_map = fields if frame is None else frame.to_map(fields, wind)
        pairs = zip(side_by_side(targets), observed, strict=True)
        chosen = [choose_inverse(own, on_map[:, part, ...], seen) for (own, part), seen in pairs]
        return tuple(own for own, _ in chosen), sum(error for _, error in chosen) / len(chosen)

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


def update_lifted_operator(
    operator: LiftedOperator,
    sums: LiftedSums,
    training: TrainingSet,
    family: str,
    resources: Budget = DEFAULT_BUDGET,
) -> tuple[LiftedOperator, LiftedSums]:
    """The operator and its sums with further snapshots on the map; `training` has only these.

    Kept as they are: the lift, the frame, the mix of the physics, the inverse from targets to smoke
    and whether mirrored copies are fitted. The largest smoke, which bounds predictions, grows.
    """
    update = FAMILIES[family].update
    assert update is not None  # sums exist only of families that have it
    targets = (operator.targets, *operator.further)
    given = operator.numbered(training.fire.shape[0], training.given)
    framed = in_frame(replace(training, given=given), targets, operator.frame, operator.physics,
                      resources, mirrored=sums.mirrored)  # fmt: skip
    field_map, own = update(operator.field_map, sums.own, framed, resources)
    ranges = [value_range(fields) for fields in each_output(training.targets, operator.shape)]
    grown = tuple(
        replace(each, lowest=min(each.lowest, low), largest=max(each.largest, high))
        for each, (low, high) in zip(targets, ranges, strict=True)
    )
    updated = replace(operator, field_map=field_map, targets=grown[0], further=grown[1:])
    return updated, replace(sums, own=own)
