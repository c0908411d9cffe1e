"""Fit surrogates: from labelled training snapshots to an operator with its provenance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast import operators
from plumecast._array import Array
from plumecast._version import __version__
from plumecast.encode import Basis, Truncation, fit_truncated_basis
from plumecast.errors import PlumecastError
from plumecast.kernel_map import KernelMap, fit_kernel_map
from plumecast.kernel_search import tune_kernel_map
from plumecast.kernels import POLYNOMIAL, has_length_scale
from plumecast.matrix import Layout, fit_layout
from plumecast.names import FIRE, SMOKE, SNAPSHOT
from plumecast.operators import CodedOperator, DualMap, Operator, PrimalMap
from plumecast.plume import PlumeOperator, fit_plume_operator
from plumecast.quantity.footprint import smoke_threshold
from plumecast.settings import Settings, choose_settings
from plumecast.snapshot_store import DATA_VERSION
from plumecast.snapshots import check_values
from plumecast.split import group_rows
from plumecast.surrogate import Surrogate

SCENARIO = "drought"
"""Snapshots of different droughts have different weather: the spectral family tells them apart."""


def fit_surrogate(
    train: xr.Dataset,
    preset: str | None = None,
    *,
    degree: int | None = None,
    penalty: float | None = None,
    fire_rank: int | None = None,
    fire_std_fraction: float | None = None,
    fire_variance_fraction: float | None = None,
    smoke_rank: int | None = None,
    smoke_std_fraction: float | None = None,
    smoke_variance_fraction: float | None = None,
    center: bool | None = None,
    kernel: str | None = None,
    length_scale: float | None = None,
    layers: int | None = None,
    age_bins: int | None = None,
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
    nonnegative: bool = True,
    group_by: str = "ignition_id",
) -> Surrogate:
    """Fit a surrogate to training snapshots.

    The *coded* family: PCA of both sides, then a polynomial of the codes of some `degree`, or
    another `kernel`: "matern-5/2", "squared-exponential", or a sum such as
    "polynomial-1 + matern-5/2". Its `length_scale` is in units of the typical distance between
    training snapshots; without one it is chosen together with the penalty. The *spectral* family
    (preset "recommended"): an equivariant operator in `layers`, on `age_bins` of the time since
    ignition, one per drought where the data has several; needs `group_by` to leave fires out.

    A preset, every choice by keyword, or a preset with single choices replaced. `fire_*` truncates
    the input basis and `smoke_*` the output basis, whatever the variables are called. Without a
    `penalty` (and with a preset that leaves it open) it is chosen by leaving out one `group_by`
    at a time, in closed form.
    """
    settings = choose_settings(
        preset,
        layers=layers,
        age_bins=age_bins,
        degree=degree,
        penalty=penalty,
        center=center,
        kernel=kernel,
        length_scale=length_scale,
        fire={
            "rank": fire_rank,
            "std_fraction": fire_std_fraction,
            "variance_fraction": fire_variance_fraction,
        },
        smoke={
            "rank": smoke_rank,
            "std_fraction": smoke_std_fraction,
            "variance_fraction": smoke_variance_fraction,
        },
    )
    data = training_matrices(train, inputs, outputs)
    operator: Operator
    scenario: str | None = None
    if settings.family == "spectral":
        operator, chosen, scenario = fit_plume(data, settings, group_by)
    else:
        operator, chosen = fit_coded(data, settings, group_by)
    return Surrogate(
        inputs=data.input_layout,
        outputs=data.output_layout,
        operator=operator,
        nonnegative=nonnegative,
        settings=asdict(settings),
        training={**provenance(train), **chosen},
        scenario=scenario,
    )


@dataclass(frozen=True, slots=True)
class TrainingMatrices:
    """Training snapshots as matrices, with the layouts that label their columns."""

    snapshots: xr.Dataset
    input_layout: Layout
    output_layout: Layout
    inputs: Array  # (M, N)
    outputs: Array  # (M, Ñ)

    def groups(self, by: str) -> list[Array]:
        """Rows that belong together."""
        if by not in self.snapshots.variables:
            raise PlumecastError(
                f"choosing a penalty leaves one '{by}' out at a time, but the training data has no "
                "such coordinate; add it or give the penalty"
            )
        return group_rows(self.snapshots[by].values)


def training_matrices(
    train: xr.Dataset, inputs: str | Sequence[str], outputs: str | Sequence[str]
) -> TrainingMatrices:
    """Check training snapshots and lay their fields out as matrices."""
    input_names = [inputs] if isinstance(inputs, str) else list(inputs)
    output_names = [outputs] if isinstance(outputs, str) else list(outputs)
    if SNAPSHOT not in train.dims or train.sizes[SNAPSHOT] == 0:
        raise PlumecastError("there are no training snapshots")
    input_layout = fit_layout(train, input_names)
    output_layout = fit_layout(train, output_names)
    check_values(train, [*input_names, *output_names])
    return TrainingMatrices(
        snapshots=train,
        input_layout=input_layout,
        output_layout=output_layout,
        inputs=input_layout.to_matrix(train),
        outputs=output_layout.to_matrix(train),
    )


def fit_coded(
    data: TrainingMatrices, settings: Settings, group_by: str
) -> tuple[CodedOperator, dict[str, Any]]:
    """Encode both sides and fit the map between the codes; also what was chosen on the way."""
    input_basis = _fit_side(data.inputs, settings.fire, settings.center, data.input_layout)
    output_basis = _fit_side(data.outputs, settings.smoke, settings.center, data.output_layout)
    codes, targets = input_basis.encode(data.inputs), output_basis.encode(data.outputs)
    chosen: dict[str, Any] = {"fire_rank": input_basis.rank, "smoke_rank": output_basis.rank}
    code_map: PrimalMap | DualMap | KernelMap
    if settings.kernel != POLYNOMIAL:
        groups = data.groups(group_by) if _leaves_out(settings) else None
        code_map, more = _fit_kernel(codes, targets, settings, groups)
        chosen |= more | ({} if groups is None else {"leave_out": group_by})
    elif settings.penalty is None:
        code_map, scan = operators.tune_polynomial_map(
            codes, targets, degree=settings.degree, groups=data.groups(group_by), penalties=None
        )
        chosen |= {"penalty": scan.best, "leave_out": group_by, "leave_out_error": min(scan.errors)}
    elif settings.degree == 1 and settings.penalty == 0.0:
        code_map = operators.fit_linear_map(codes, input_basis.singular_values, targets)
        chosen |= {"penalty": 0.0}
    else:
        code_map = operators.fit_polynomial_map(
            codes, targets, degree=settings.degree, penalty=settings.penalty
        )
        chosen |= {"penalty": settings.penalty}
    return CodedOperator(input_basis, code_map, output_basis), chosen


def _leaves_out(settings: Settings) -> bool:
    open_length = settings.length_scale is None and has_length_scale(settings.kernel)
    return settings.penalty is None or open_length


def _fit_kernel(
    codes: Array, targets: Array, settings: Settings, groups: list[Array] | None
) -> tuple[KernelMap, dict[str, Any]]:
    """A kernel other than the polynomial; what is left open is chosen by leaving out `groups`.

    In an uncentred basis the code 0 is the empty fire, whose smoke is known: none.
    """
    anchored = not settings.center
    if groups is None:
        assert settings.penalty is not None
        given = {"length_scale": settings.length_scale or 1.0, "penalty": settings.penalty}
        fitted = fit_kernel_map(codes, targets, kernel=settings.kernel, anchored=anchored, **given)
        return fitted, given
    fitted, scan = tune_kernel_map(
        codes,
        targets,
        kernel=settings.kernel,
        groups=groups,
        length_scale=settings.length_scale,
        penalty=settings.penalty,
        anchored=anchored,
    )
    found = {"length_scale": scan.length_scale, "penalty": scan.penalty}
    return fitted, {**found, "leave_out_error": scan.error}


def fit_plume(
    data: TrainingMatrices, settings: Settings, group_by: str
) -> tuple[PlumeOperator, dict[str, Any], str | None]:
    """The spectral family: one map per drought, or one for all where a drought has one ignition
    or the data has no droughts."""
    fields = (*data.input_layout.fields, *data.output_layout.fields)
    if len(fields) != 2 or fields[0].shape != fields[1].shape:
        raise PlumecastError(
            "a spectral surrogate maps one field to one on the same grid, not "
            + " and ".join(f"{part.name} {part.shape}" for part in fields)
        )
    lowest = float(data.outputs.min())
    if lowest < 0.0:
        raise PlumecastError(
            f"a spectral surrogate needs an output that is never negative; "
            f"'{fields[1].name}' goes down to {lowest:g}; choose another preset"
        )
    groups = np.empty(data.inputs.shape[0], dtype=np.int64)
    for number, rows in enumerate(data.groups(group_by)):
        groups[rows] = number
    labels = _scenarios(data.snapshots, groups)
    shape = (-1, *fields[0].shape)
    threshold = smoke_threshold(data.outputs)
    operator = fit_plume_operator(
        data.inputs.reshape(shape),
        data.outputs.reshape(shape),
        groups,
        labels,
        threshold=threshold,
        layers=settings.layers,
        bins=settings.age_bins,
    )
    chosen = {"footprint_threshold": threshold, "scenarios": list(operator.labels)}
    return operator, chosen, None if labels is None else SCENARIO


def _scenarios(snapshots: xr.Dataset, groups: Array) -> Array | None:
    if SCENARIO not in snapshots.variables:
        return None
    labels = snapshots[SCENARIO].values.astype(str)
    enough = all(np.unique(groups[labels == name]).size >= 2 for name in np.unique(labels))
    return labels if enough else None


def _fit_side(matrix: Array, rule: Truncation, center: bool, layout: Layout) -> Basis:
    try:
        return fit_truncated_basis(matrix, rule, center)
    except PlumecastError as error:
        raise PlumecastError(f"{', '.join(layout.names)}: {error}") from None


def provenance(train: xr.Dataset) -> dict[str, Any]:
    """Where a fit comes from: package and data version, source, snapshots and their groups."""
    record: dict[str, Any] = {
        "plumecast": __version__,
        "data_version": train.attrs.get(DATA_VERSION),
        "source": train.attrs.get("source"),
        "snapshots": int(train.sizes[SNAPSHOT]),
    }
    for name in ("fire_id", "ignition_id"):
        if name in train.variables:
            record[name] = np.unique(train[name].values.astype(str)).tolist()
    return record
