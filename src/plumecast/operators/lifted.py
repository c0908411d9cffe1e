"""The surrogate of smoke with lift and targets: fire → fields → operator → targets → smoke.

The operator between lifted fire and targets is one of three families with the same inputs and
outputs: spectral, coded on lifted fields, or a network. Arrays only, no labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, bytes_in
from plumecast.compute.blocks import drawn_rows
from plumecast.operators.coded.correction import SHARES, correction_rows, fit_correction
from plumecast.operators.coded.fields import CodedMap, EncodeSide, FitMap, fit_coded_map
from plumecast.operators.fields.lift import fit_lift
from plumecast.operators.fields.targets import (
    CHOICE_ROWS,
    Targets,
    check_choice,
    choose_inverse,
    fit_targets,
)
from plumecast.operators.fields.training_fields import TrainingFields
from plumecast.operators.fields.wind_frame import WindFrame
from plumecast.operators.neural.map import NeuralMap, fit_neural
from plumecast.operators.spectral.fit import fit_spectral, fold_numbers
from plumecast.operators.spectral.map import SpectralMap

FOLDS = 8
"""Parts of the ignitions left out in turn."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What is known of every snapshot beside its fire."""

    labels: Array | None = None  # (M,), its scenario
    covariates: Array | None = None  # (M, P), normalised
    wind: Array | None = None  # (M, 2), towards east and north

    def at(self, rows: Array | slice) -> Conditions:
        """Of some snapshots."""
        parts = (self.labels, self.covariates, self.wind)
        return Conditions(*(None if part is None else part[rows] for part in parts))


NOTHING = Conditions()

FieldMap: TypeAlias = SpectralMap | CodedMap | NeuralMap
"""From lifted fire to targets."""


@dataclass(frozen=True, slots=True)
class PlumeOperator:
    """A map from lifted fire to targets, and the way back to smoke.

    It computes where its inputs are; what is known beside the fire is on the host.
    """

    labels: tuple[str, ...]  # scenarios told apart; empty where there is one map for all
    fields: FieldMap
    targets: Targets
    shape: tuple[int, ...]  # the grid
    frame: WindFrame | None = None
    correction: CodedMap | None = None  # added to what a spectral map predicts
    detect: bool = False  # predict the detection score instead of the smoke

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, N) smoke, or the detection score."""
        fields = self.target_fields(inputs, given)
        out = self.targets.score(fields) if self.detect else self.targets.smoke(fields)
        xp = array_namespace(out)
        return xp.astype(xp.reshape(out, (out.shape[0], -1)), xp.float64, copy=False)

    def target_fields(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, T, *grid): one pass that serves smoke and footprint."""
        fire = array_namespace(inputs).reshape(inputs, (-1, *self.shape))
        numbers = self._scenarios(fire.shape[0], given.labels)
        if self.frame is not None:
            if given.wind is None:
                raise PlumecastError(
                    "this surrogate was trained in the frame of the wind: pass a Dataset with "
                    "'wind_speed' and 'wind_from_direction'"
                )
            fire = self.frame.to_wind(fire, given.wind)
        if isinstance(self.fields, SpectralMap):
            fields = self.fields.predict(fire, given.covariates, numbers)
            if self.correction is not None:
                scalars = _joined(given.covariates, numbers, len(self.labels))
                fields = fields + self.correction.predict(fire, scalars)
        elif isinstance(self.fields, CodedMap):
            fields = self.fields.predict(fire, given.covariates)
        else:
            scalars = _joined(given.covariates, numbers, len(self.labels))
            fields = self.fields.predict(fire, scalars)
        return fields if self.frame is None else self.frame.to_map(fields, given.wind)

    def _scenarios(self, count: int, labels: Array | None) -> Array:
        if not self.labels:
            return np.zeros(count, dtype=np.int64)
        if labels is None and len(self.labels) == 1:
            return np.zeros(count, dtype=np.int64)
        if labels is None:
            raise PlumecastError(
                f"this surrogate was trained on the droughts {', '.join(self.labels)}; pass a "
                "Dataset or DataArray whose coordinate 'drought' says which each snapshot is of"
            )
        unknown = sorted(set(np.asarray(labels).tolist()) - set(self.labels))
        if unknown:
            raise PlumecastError(
                f"drought '{unknown[0]}' was not in training; known are {', '.join(self.labels)}"
            )
        numbers = {label: number for number, label in enumerate(self.labels)}
        return np.array([numbers[str(label)] for label in labels], dtype=np.int64)


def predicting_bytes(operator: Any) -> tuple[float, float]:
    """Bytes that an operator and its work take beside the fields that come and go: once, and for
    every row of the targets, which are decoded in double precision."""
    held = float(bytes_in(operator))
    if not isinstance(operator, PlumeOperator):
        return held, 0.0
    row = 16.0 * len(operator.targets.names) * math.prod(operator.shape)
    if isinstance(operator.fields, SpectralMap):
        block, more = operator.fields.working_bytes()
        return held + block, row + more
    if isinstance(operator.fields, NeuralMap):
        held += operator.fields.working_bytes()
    return held, row


@dataclass(frozen=True, slots=True)
class PlumeChoices:
    """Everything that is chosen before a plume operator is fitted."""

    family: str = "spectral"
    lift: Sequence[str] = ("age-bins", "burned")
    products: Sequence[str] = ("hours",)
    bins: int = 3
    targets: Sequence[str] = ("log", "smoke", "footprint")
    epsilon: float = 1.0
    layers: int = 3  # of the spectral family
    correction: bool = False  # of the spectral family
    encode_side: EncodeSide | None = None  # of the coded family, as the next
    fit_map: FitMap | None = None
    epochs: int = 60  # of a network, as the two below
    seconds: float | None = None
    device: str | None = None


def fit_plume_operator(
    fire: Array,
    smoke: Array,
    groups: Array,
    given: Conditions,
    *,
    threshold: float,
    choices: PlumeChoices,
    frame: WindFrame | None = None,
    limit: int | None = None,
    put: Callable[[Array], Array] = lambda array: array,
    progress: Callable[[str], None] = lambda step: None,
) -> tuple[PlumeOperator, float]:
    """Fit (M, *grid) ages to (M, *grid) smoke; `groups` (M,) names what is left out together.

    Both are arrays, or with a `limit` in bytes what gives arrays of some rows when indexed. `put`
    brings arrays to the device that computes; the operator is on the host.

    The way back from the targets is chosen on predictions of fires that were left out; their error
    is returned too: the sum of the median relative errors of g and of ln(1 + g/ε).
    """
    shape = tuple(int(n) for n in fire.shape[1:])
    targets = fit_targets(smoke, choices.targets, threshold=threshold, epsilon=choices.epsilon)
    ages = TrainingFields(fire, None, frame, given.wind)
    encoded = TrainingFields(smoke, targets, frame, given.wind)
    if choices.correction:
        correction_rows(groups, encoded.shape, limit)  # refuses a limit before the long fit
    if limit is None:
        ages, encoded = ages.held(), encoded.held()
    labels: tuple[str, ...] = ()
    if given.labels is not None:
        labels = tuple(str(name) for name in np.unique(given.labels))
    fields, rows, left_out = _fit_fields(
        ages, encoded, groups, given, choices, limit, put, progress
    )
    correction = None
    if choices.correction:
        progress("correction")
        scalars = _joined(given.covariates, _scenario_numbers(given), len(labels))
        correction = fit_correction(ages, encoded, left_out, groups, scalars, limit=limit, put=put)
    if correction is None:
        some = drawn_rows(rows.size, CHOICE_ROWS)
        rows, predicted, change = rows[some], left_out[some], None
    else:
        some = drawn_rows(correction.rows.size, CHOICE_ROWS)
        rows = correction.rows[some]
        predicted, change = left_out[rows], correction.left_out(some)
    back = _WayBack(targets, smoke[rows], frame, given.at(rows).wind)
    targets, error, share = back.choose(predicted, change)
    added = correction.shared(share) if correction is not None and share > 0.0 else None
    return PlumeOperator(labels, fields, targets, shape, frame, added), error


@dataclass(frozen=True, slots=True)
class _WayBack:
    """The choice of how targets become smoke, on some fires that were left out."""

    targets: Targets
    smoke: Array  # (m, *grid)
    frame: WindFrame | None
    wind: Array | None  # (m, 2)

    def choose(self, predicted: Array, change: Array | None) -> tuple[Targets, float, float]:
        """From (m, T, *grid) predictions: the targets with their inverse, its error, and the share
        of a change of the predictions that serves best."""
        best, share = self._inverse(predicted), 0.0
        if change is not None:
            for part in SHARES:
                fields = predicted + part * change
                xp = array_namespace(fields)
                other = self._inverse(xp.astype(fields, xp.float32))
                if other[1] < best[1]:
                    best, share = other, part
        return (*best, share)

    def _inverse(self, fields: Array) -> tuple[Targets, float]:
        turned = fields if self.frame is None else self.frame.to_map(fields, self.wind)
        return choose_inverse(self.targets, turned, self.smoke)


def _fit_fields(
    fire: Array,
    encoded: Array,
    groups: Array,
    given: Conditions,
    choices: PlumeChoices,
    limit: int | None,
    put: Callable[[Array], Array],
    progress: Callable[[str], None],
) -> tuple[FieldMap, Array, Array]:
    """The map, some rows, and predictions of these by maps that did not see them."""
    numbers = _scenario_numbers(given)
    folds = fold_numbers(groups, FOLDS)
    by_covariate = given.covariates if choices.family == "spectral" else None
    lift = fit_lift(
        fire, choices.lift, choices.products, bins=choices.bins, covariates=by_covariate
    )
    if choices.family == "spectral":
        spectral, left_out = fit_spectral(
            fire,
            encoded,
            folds,
            lift=lift,
            layers=choices.layers,
            covariates=given.covariates,
            scenarios=numbers,
            limit=limit,
            put=put,
            progress=progress,
        )
        return spectral, np.arange(fire.shape[0]), left_out
    check_choice(encoded.shape, limit)
    if choices.family == "coded":
        assert choices.encode_side is not None
        assert choices.fit_map is not None
        return fit_coded_map(
            fire,
            encoded,
            folds,
            [np.flatnonzero(groups == name) for name in np.unique(groups)],
            lift=lift,
            covariates=given.covariates,
            encode_side=choices.encode_side,
            fit_map=choices.fit_map,
        )
    return fit_neural(
        fire,
        encoded,
        folds,
        lift=lift,
        scalars=_joined(given.covariates, numbers, 0 if numbers is None else numbers.max() + 1),
        architecture=choices.family,
        epochs=choices.epochs,
        seconds=choices.seconds,
        device=choices.device,
        limit=limit,
        progress=lambda epoch: progress(f"epoch {epoch.number} of {epoch.of}"),
    )


def _scenario_numbers(given: Conditions) -> Array | None:
    """(M,) scenario of every snapshot, from 0 in the order of the labels."""
    return None if given.labels is None else np.unique(given.labels, return_inverse=True)[1]


def _joined(covariates: Array | None, numbers: Array | None, labels: int) -> Array | None:
    """Covariates and the scenario as zeros and a one, for a network."""
    if numbers is None or labels == 0:
        return covariates
    one_hot = np.eye(labels, dtype=np.float32)[numbers]
    return one_hot if covariates is None else np.concatenate([covariates, one_hot], axis=1)
