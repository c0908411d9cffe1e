"""Coded surrogates from one decomposition of each side: every rank is a slice, every penalty a
division."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import xarray as xr

from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.arrays import Array, contiguous
from plumecast.data.training import TrainingMatrices, provenance, training_matrices
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.coded.polynomial_map import (
    DualMap,
    PolynomialPath,
    PrimalMap,
    fit_linear_map,
    fit_polynomial_map,
    polynomial_path,
)
from plumecast.operators.family import Operator
from plumecast.operators.pca import Basis, Truncation, fit_truncated_basis
from plumecast.operators.ridge import PenaltyScan, penalty_grid, scan_penalties
from plumecast.operators.settings import PRESETS
from plumecast.surrogate.surrogate import Surrogate

LARGEST_STD = 0.99
"""Share of Σσ up to which both sides are decomposed."""


@dataclass(frozen=True, slots=True)
class Encodings:
    """Training matrices with the largest bases that a study asks for."""

    data: TrainingMatrices
    inputs: Basis
    outputs: Basis
    input_codes: Array  # (M, r) of the training part, all of `inputs`' modes
    output_codes: Array  # (M, r̃)
    seconds: float

    def bases(self, fire: Truncation, smoke: Truncation) -> tuple[Basis, Basis]:
        """Both bases cut by their rules."""
        return (
            self.inputs.truncate(min(fire.count(self.inputs.spectrum), self.inputs.rank)),
            self.outputs.truncate(min(smoke.count(self.outputs.spectrum), self.outputs.rank)),
        )

    def surrogate(self, operator: Operator, **described: Any) -> Surrogate:
        """An operator between these matrices' columns, with labels."""
        return Surrogate(
            inputs=self.data.input_layout,
            outputs=self.data.output_layout,
            operator=operator,
            nonnegative=True,
            settings=described.pop("settings", {}),
            training={**provenance(self.data.snapshots), **described},
        )


def encode_both(train: xr.Dataset) -> Encodings:
    """Decompose fire and smoke once."""
    data = training_matrices(train, FIRE, SMOKE)
    rule = Truncation(std_fraction=LARGEST_STD)
    start = time.perf_counter()
    inputs = fit_truncated_basis(data.inputs, rule)
    outputs = fit_truncated_basis(data.outputs, rule)
    codes, targets = inputs.encode(data.inputs), outputs.encode(data.outputs)
    return Encodings(data, inputs, outputs, codes, targets, time.perf_counter() - start)


def linear_surrogate(
    encodings: Encodings, fire: Truncation, smoke: Truncation, **described: Any
) -> Surrogate:
    """The paper's linear operator on slices of the decomposition (Theorem 1)."""
    inputs, outputs = encodings.bases(fire, smoke)
    code_map = fit_linear_map(
        encodings.input_codes[:, : inputs.rank],
        inputs.singular_values,
        encodings.output_codes[:, : outputs.rank],
    )
    return encodings.surrogate(
        CodedOperator(inputs, code_map, outputs),
        fire_rank=inputs.rank,
        smoke_rank=outputs.rank,
        penalty=0.0,
        **described,
    )


@dataclass(frozen=True, slots=True)
class Quadratic:
    """The paper's quadratic operator at every penalty, from one eigendecomposition."""

    inputs: Basis
    outputs: Basis
    path: PolynomialPath
    scan: PenaltyScan
    seconds: float  # of the eigendecomposition and the leave-one-fire-out scan

    def operator(self, penalty: float) -> CodedOperator:
        """The operator of one penalty."""
        return CodedOperator(self.inputs, self.path.at(penalty), self.outputs)


def quadratic_path(encodings: Encodings, by: str) -> Quadratic:
    """Eigendecompose the quadratic's kernel and score its penalties by leaving fires out."""
    settings = PRESETS["paper-quadratic"].own
    inputs, outputs = encodings.bases(settings.fire, settings.smoke)
    codes = contiguous(encodings.input_codes[:, : inputs.rank])
    targets = contiguous(encodings.output_codes[:, : outputs.rank])
    start = time.perf_counter()
    path = polynomial_path(codes, targets, settings.degree)
    grid = penalty_grid(path.mean_diagonal)
    scan = scan_penalties(path.path, grid, encodings.data.groups(by))
    return Quadratic(inputs, outputs, path, scan, time.perf_counter() - start)


def quadratic_fit(quadratic: Quadratic) -> tuple[PrimalMap | DualMap, float]:
    """The quadratic map at its best penalty by one factorisation, and its seconds."""
    start = time.perf_counter()
    fitted = fit_polynomial_map(
        quadratic.path.codes, quadratic.path.targets, degree=2, penalty=quadratic.scan.best
    )
    return fitted, time.perf_counter() - start


def quadratic_surrogate(
    encodings: Encodings, quadratic: Quadratic, code_map: PrimalMap | DualMap, by: str
) -> Surrogate:
    """The quadratic map as a surrogate."""
    return encodings.surrogate(
        CodedOperator(quadratic.inputs, code_map, quadratic.outputs),
        settings=PRESETS["paper-quadratic"].record(),
        fire_rank=quadratic.inputs.rank,
        smoke_rank=quadratic.outputs.rank,
        penalty=quadratic.scan.best,
        leave_out=by,
        leave_out_error=min(quadratic.scan.errors),
    )
