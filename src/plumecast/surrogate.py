"""The surrogate: labelled fields in, labelled smoke out, with a fitted operator between them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import xarray as xr

from plumecast import operators
from plumecast._array import Array
from plumecast._version import __version__
from plumecast.baseline_operators import GaussianProcess, MeanField, NearestFire
from plumecast.encode import Basis, Truncation, fit_truncated_basis
from plumecast.errors import PlumecastError
from plumecast.matrix import Coordinate, Field, Layout, fit_layout, from_rows, leading_dims
from plumecast.names import FIRE, SMOKE, SNAPSHOT
from plumecast.operators import CodedOperator, DualMap, Operator, PrimalMap
from plumecast.settings import Settings, choose_settings
from plumecast.snapshot_store import DATA_VERSION
from plumecast.snapshots import check_values
from plumecast.split import group_rows
from plumecast.store import load_value, save_value

PREDICT_BLOCK = 2048
"""Rows predicted together: bounds the memory of kernels and decoded fields."""


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A fitted map between fields: what goes in, what comes out, and the operator between."""

    inputs: Layout
    outputs: Layout
    operator: Operator
    nonnegative: bool  # predictions below zero are set to zero, as smoke cannot be negative
    settings: dict[str, Any]
    training: dict[str, Any]  # provenance: data version, fires, counts, chosen penalty

    @overload
    def predict(self, data: xr.Dataset) -> xr.DataArray | xr.Dataset: ...
    @overload
    def predict(self, data: xr.DataArray) -> xr.DataArray | xr.Dataset: ...
    @overload
    def predict(self, data: np.ndarray) -> np.ndarray: ...
    def predict(self, data: Any) -> Any:
        """Smoke of one or many fires, in the kind of the input.

        A Dataset or DataArray gives labelled fields with coordinates and units (a Dataset where
        there are several outputs); an array (…, *grid) gives an array. The input's floating-point
        type is kept; the arithmetic is float64.
        """
        if isinstance(data, xr.Dataset):
            return self._predict_labelled(data)
        if isinstance(data, xr.DataArray):
            return self._predict_labelled({self._only_input().name: data})
        return self._predict_array(np.asarray(data))

    def _only_input(self) -> Field:
        if len(self.inputs.fields) > 1:
            raise PlumecastError(
                f"this surrogate needs {len(self.inputs.fields)} inputs "
                f"({', '.join(self.inputs.names)}); pass a Dataset"
            )
        return self.inputs.fields[0]

    def _predict_labelled(
        self, data: Mapping[Hashable, xr.DataArray] | xr.Dataset
    ) -> xr.DataArray | xr.Dataset:
        matrix = self.inputs.to_matrix(data)
        like = data[self.inputs.fields[0].name]
        lead = leading_dims(like, self.inputs.fields[0])
        dtype = like.dtype if like.dtype.kind == "f" else np.dtype(np.float64)
        values = self.outputs.split(self.predict_matrix(matrix))
        fields = [
            from_rows(rows.astype(dtype, copy=False), part, like, lead)
            for part, rows in zip(self.outputs.fields, values, strict=True)
        ]
        return fields[0] if len(fields) == 1 else xr.Dataset({str(f.name): f for f in fields})

    def _predict_array(self, data: np.ndarray) -> np.ndarray:
        part = self._only_input()
        lead = data.shape[: data.ndim - len(part.shape)]
        if data.ndim < len(part.shape) or data.shape[len(lead) :] != part.shape:
            raise PlumecastError(
                f"expected an array (…, {', '.join(map(str, part.shape))}), got shape {data.shape}"
            )
        names = [f"lead_{i}" for i in range(len(lead))]
        labelled = xr.DataArray(data, dims=[*names, *part.dims])
        out = self._predict_labelled({part.name: labelled})
        if isinstance(out, xr.Dataset):
            raise PlumecastError(
                f"this surrogate has outputs {', '.join(self.outputs.names)}; pass a Dataset"
            )
        return out.values

    def predict_matrix(self, inputs: Array) -> Array:
        """(M, N) → (M, Ñ) in the layouts' columns, clipped at zero where smoke is predicted."""
        starts = range(0, inputs.shape[0], PREDICT_BLOCK)
        blocks = [self.operator.predict(inputs[i : i + PREDICT_BLOCK]) for i in starts]
        out = np.concatenate(blocks) if blocks else np.empty((0, self.outputs.size))
        return np.maximum(out, 0.0, out=out) if self.nonnegative else out

    def save(self, path: str | Path) -> Path:
        """Write the surrogate to one safetensors file, all or nothing."""
        return save_value(self, path)


SAVED_CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Surrogate,
        Layout,
        Field,
        Coordinate,
        CodedOperator,
        PrimalMap,
        DualMap,
        Basis,
        MeanField,
        NearestFire,
        GaussianProcess,
    )
}
"""What a surrogate file may hold."""


def load_surrogate(path: str | Path) -> Surrogate:
    """Read a surrogate back; it predicts bit for bit as the one that was saved."""
    value = load_value(path, SAVED_CLASSES)
    if not isinstance(value, Surrogate):
        raise PlumecastError(f"{path} holds a {type(value).__name__}, not a surrogate")
    return value


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
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
    nonnegative: bool = True,
    group_by: str = "ignition_id",
) -> Surrogate:
    """Fit a surrogate to training snapshots: PCA of both sides, then a polynomial of the codes.

    A preset, every choice by keyword, or a preset with single choices replaced. `fire_*` truncates
    the input basis and `smoke_*` the output basis, whatever the variables are called. Without a
    `penalty` (and with a preset that leaves it open) it is chosen by leaving out one `group_by`
    at a time, in closed form.
    """
    settings = choose_settings(
        preset,
        degree=degree,
        penalty=penalty,
        center=center,
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
    operator, chosen = fit_coded(data, settings, group_by)
    return Surrogate(
        inputs=data.input_layout,
        outputs=data.output_layout,
        operator=operator,
        nonnegative=nonnegative,
        settings=asdict(settings),
        training={**provenance(train), **chosen},
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
    code_map: PrimalMap | DualMap
    if settings.penalty is None:
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
