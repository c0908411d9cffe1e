"""Coded surrogates from one PCA of fire and smoke.

A smaller rank is a slice of the same codes; another penalty is a division in the same
eigendecomposition. No study refits a basis.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import xarray as xr

from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.arrays import Array, contiguous
from plumecast.data.training import TrainingMatrices, training_matrices
from plumecast.operators.coded.operator import CodedOperator, CodeMap
from plumecast.operators.coded.polynomial_map import (
    DualMap,
    PolynomialPath,
    PrimalMap,
    fit_linear_map,
    fit_polynomial_map,
    polynomial_path,
)
from plumecast.operators.pca import Basis, Truncation, fit_truncated_basis
from plumecast.operators.ridge import PenaltyScan, penalty_grid, scan_penalties
from plumecast.operators.settings import PRESETS
from plumecast.studies.context import Context
from plumecast.surrogate.fit import label_operator
from plumecast.surrogate.surrogate import Surrogate

LARGEST_STD = 0.99
"""Std fraction that the bases keep; studies use ranks up to it."""


@dataclass(frozen=True, slots=True)
class Encodings:
    """Training matrices, the bases of fire and smoke, and the codes of the training snapshots."""

    data: TrainingMatrices
    inputs: Basis
    outputs: Basis
    input_codes: Array  # (M, r)
    output_codes: Array  # (M, r̃)
    seconds: float  # of the PCA

    def truncate(self, fire: Truncation, smoke: Truncation) -> Encodings:
        """The same encodings cut to the ranks that the two rules give."""
        inputs = self.inputs.truncate(min(fire.count(self.inputs.spectrum), self.inputs.rank))
        outputs = self.outputs.truncate(min(smoke.count(self.outputs.spectrum), self.outputs.rank))
        return replace(
            self,
            inputs=inputs,
            outputs=outputs,
            input_codes=self.input_codes[:, : inputs.rank],
            output_codes=self.output_codes[:, : outputs.rank],
        )

    def surrogate(self, code_map: CodeMap, settings: dict[str, Any], **training: Any) -> Surrogate:
        """The surrogate that encodes the fire, applies `code_map` and decodes the smoke."""
        ranks = {"fire_rank": self.inputs.rank, "smoke_rank": self.outputs.rank}
        operator = CodedOperator(self.inputs, code_map, self.outputs)
        return label_operator(operator, self.data, settings=settings, chosen=ranks | training)


def encodings_of(context: Context) -> Encodings:
    """The encodings of the training part, computed once per run."""
    return context.once("encoding both sides", lambda: encode_both(context.split.train))


def encode_both(train: xr.Dataset) -> Encodings:
    """PCA of fire and smoke, with the codes of the training snapshots."""
    data = training_matrices(train, FIRE, SMOKE)
    rule = Truncation(std_fraction=LARGEST_STD)
    start = time.perf_counter()
    inputs = fit_truncated_basis(data.inputs, rule)
    outputs = fit_truncated_basis(data.outputs, rule)
    codes, targets = inputs.encode(data.inputs), outputs.encode(data.outputs)
    return Encodings(data, inputs, outputs, codes, targets, time.perf_counter() - start)


def linear_surrogate(encodings: Encodings) -> Surrogate:
    """The paper's linear operator on slices of the PCA (Theorem 1)."""
    settings = PRESETS["paper-linear"]
    part = encodings.truncate(settings.family_settings.fire, settings.family_settings.smoke)
    code_map = fit_linear_map(part.input_codes, part.inputs.singular_values, part.output_codes)
    return part.surrogate(code_map, settings.record(), penalty=0.0)


@dataclass(frozen=True, slots=True)
class Quadratic:
    """The paper's quadratic operator at every penalty, from one eigendecomposition."""

    part: Encodings  # cut to the ranks of the preset
    path: PolynomialPath
    scan: PenaltyScan
    seconds: float  # of the eigendecomposition and the leave-one-group-out scan


def quadratic_of(context: Context) -> Quadratic:
    """The penalty path of the paper's quadratic operator, computed once per run."""
    by = context.split.by
    return context.once("penalty path", lambda: quadratic_path(encodings_of(context), by))


def quadratic_path(encodings: Encodings, by: str) -> Quadratic:
    """Eigendecompose the quadratic kernel and score the penalties by leave-one-group-out."""
    settings = PRESETS["paper-quadratic"].family_settings
    part = encodings.truncate(settings.fire, settings.smoke)
    codes, targets = contiguous(part.input_codes), contiguous(part.output_codes)
    start = time.perf_counter()
    path = polynomial_path(codes, targets, settings.degree)
    grid = penalty_grid(path.mean_diagonal)
    scan = scan_penalties(path.path, grid, encodings.data.groups(by))
    return Quadratic(part, path, scan, time.perf_counter() - start)


def quadratic_fit(quadratic: Quadratic) -> tuple[PrimalMap | DualMap, float]:
    """The quadratic map at its best penalty by one factorisation, and the seconds it took."""
    start = time.perf_counter()
    code_map = fit_polynomial_map(
        quadratic.path.codes, quadratic.path.targets, degree=2, penalty=quadratic.scan.best
    )
    return code_map, time.perf_counter() - start


def quadratic_surrogate(quadratic: Quadratic, code_map: PrimalMap | DualMap, by: str) -> Surrogate:
    """The quadratic map as a surrogate."""
    return quadratic.part.surrogate(
        code_map,
        PRESETS["paper-quadratic"].record(),
        penalty=quadratic.scan.best,
        leave_out=by,
        leave_out_error=min(quadratic.scan.errors),
    )
