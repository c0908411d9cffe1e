"""The surrogate: labelled fields in, labelled smoke out, with a fitted operator between them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, beside, map_arrays, to_numpy
from plumecast.compute.device import choose_device
from plumecast.data.covariates import WIND, Covariate, read_covariates, read_scalar, wind_vector
from plumecast.data.layout import Coordinate, Field, Layout, from_rows, grid_template, leading_dims
from plumecast.operators.baselines import GaussianProcess, MeanField, NearestFire
from plumecast.operators.coded.fields import CodedMap
from plumecast.operators.coded.kernel_map import KernelMap
from plumecast.operators.coded.operator import CodedOperator, FoldedLinear, Operator, folded
from plumecast.operators.coded.polynomial_map import DualMap, PrimalMap
from plumecast.operators.fields.lift import Lift
from plumecast.operators.fields.targets import Targets
from plumecast.operators.fields.wind_frame import WindFrame
from plumecast.operators.lifted import NOTHING, Conditions, PlumeOperator
from plumecast.operators.neural.map import NeuralMap
from plumecast.operators.pca import Basis
from plumecast.operators.spectral.map import Layer, SpectralMap
from plumecast.operators.spectral.transform import Frequencies
from plumecast.surrogate.file import load_value, save_value

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
    scenario: str | None = None  # coordinate that says which scenario a snapshot belongs to
    covariates: tuple[Covariate, ...] = ()  # coordinates that join the operator

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
        type is kept; the arithmetic is float64 (float32 within a spectral operator).
        """
        if isinstance(data, xr.Dataset):
            return self._predict_labelled(data)
        if isinstance(data, xr.DataArray):
            return self._predict_labelled({self._only_input().name: data})
        return self._predict_array(np.asarray(data))

    @property
    def grid(self) -> xr.Dataset:
        """The coordinates of the (first) input, as a template for other fields."""
        return grid_template(self.inputs.fields[0])

    @property
    def detects(self) -> bool:
        """Whether the surrogate was trained to find the footprint, beside predicting smoke."""
        return isinstance(self.operator, PlumeOperator) and self.operator.targets.detects

    def predict_footprint(self, data: Any) -> Any:
        """Detection score of smoke, within 0 and 1, in the kind of the input.

        From a target of its own, for families that have one (`detects`); the threshold to deploy
        is chosen on validation like that of any prediction.
        """
        if not self.detects:
            raise PlumecastError(
                "this surrogate has no footprint target; threshold its smoke, or train with "
                "preset='recommended'"
            )
        return self.detector.predict(data)

    def predict_both(self, data: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
        """Smoke and detection score of a data set in one pass; without a score, the smoke twice."""
        plume = self.operator
        if not isinstance(plume, PlumeOperator) or not plume.targets.detects:
            smoke = self.predict(data)
            assert isinstance(smoke, xr.DataArray)
            return smoke, smoke
        matrix, like = self.inputs.to_matrix(data), data[self.inputs.fields[0].name]
        lead = leading_dims(like, self.inputs.fields[0])
        given = self._conditions(data, like, lead)
        dtype = like.dtype if like.dtype.kind == "f" else np.dtype(np.float64)
        both = np.empty((2, *matrix.shape), dtype=dtype)
        for start in range(0, matrix.shape[0], PREDICT_BLOCK):
            rows = slice(start, start + PREDICT_BLOCK)
            fields = plume.target_fields(beside(matrix[rows], plume), given.at(rows))
            for out, values in zip(both, plume.targets.both(fields), strict=True):
                out[rows] = to_numpy(values).reshape(values.shape[0], -1)
        parts = (self.outputs.fields[0], _score_layout(self.outputs).fields[0])
        smoke, score = (
            from_rows(rows, part, like, lead) for rows, part in zip(both, parts, strict=True)
        )
        return smoke, score

    @property
    def detector(self) -> Surrogate:
        """A surrogate of the detection score in place of the smoke."""
        assert isinstance(self.operator, PlumeOperator)
        operator = replace(self.operator, detect=True)
        return replace(self, operator=operator, outputs=_score_layout(self.outputs))

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
        given = self._conditions(data, like, lead)
        values = self.outputs.split(self.predict_matrix(matrix, given))
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

    def _conditions(
        self,
        data: Mapping[Hashable, xr.DataArray] | xr.Dataset,
        like: xr.DataArray,
        lead: list[Hashable],
    ) -> Conditions:
        """What the operator needs to know of every row beside its fields."""
        if not isinstance(self.operator, PlumeOperator):
            return NOTHING
        found = data if isinstance(data, xr.Dataset) else like.coords.to_dataset()
        sizes = {dim: like.sizes[dim] for dim in lead}
        labels = wind = None
        if self.scenario is not None and self.scenario in found.variables:
            labels = read_scalar(found, self.scenario, sizes).astype(str)
        if self.operator.frame is not None:
            wind = wind_vector(*(read_scalar(found, name, sizes) for name in WIND))
        return Conditions(labels, read_covariates(found, self.covariates, sizes), wind)

    def predict_matrix(self, inputs: Array, given: Conditions = NOTHING) -> np.ndarray:
        """(M, N) → (M, Ñ) in the layouts' columns, clipped at zero where smoke is predicted."""
        blocks = [np.empty((0, self.outputs.size))]
        for start in range(0, inputs.shape[0], PREDICT_BLOCK):
            rows = slice(start, start + PREDICT_BLOCK)
            blocks.append(to_numpy(self.predict_rows(inputs[rows], given.at(rows))))
        return blocks[1] if len(blocks) == 2 else np.concatenate(blocks)

    def predict_rows(self, inputs: np.ndarray, given: Conditions = NOTHING) -> Array:
        """`predict_matrix` of a few rows at once, left where the operator's arrays are."""
        rows = beside(inputs, self.operator)
        if isinstance(self.operator, PlumeOperator):
            out = self.operator.predict(rows, given)
        else:
            out = self.operator.predict(rows)
        return array_namespace(out).clip(out, 0.0, None) if self.nonnegative else out

    def predict_dataset_rows(self, data: xr.Dataset) -> Array:
        """The prediction of a few snapshots as a float64 matrix, left where the operator is.

        Rounded to the input's precision, as `predict` gives it.
        """
        out = self.predict_block_rows(data)
        xp = array_namespace(out)
        if data[self.inputs.fields[0].name].dtype == np.float32:
            out = xp.astype(out, xp.float32, copy=False)
        return xp.astype(out, xp.float64, copy=False)

    def predict_block_rows(self, data: xr.Dataset) -> Array:
        """The prediction of a few snapshots as a matrix, left as and where the operator made it."""
        like = data[self.inputs.fields[0].name]
        given = self._conditions(data, like, leading_dims(like, self.inputs.fields[0]))
        return self.predict_rows(self.inputs.to_matrix(data), given)

    def input_rows(self, data: xr.Dataset) -> Array:
        """The inputs of a few snapshots as a matrix, where the operator is."""
        return beside(self.inputs.to_matrix(data), self.operator)

    def on_device(self, device: str, precision: str = "float64") -> Surrogate:
        """The same surrogate with its operator's arrays on a device ("cuda", "cupy", "cpu").

        Predictions are made there and come back as NumPy's. In `precision` "float32" they are
        faster and right to about four digits; a linear operator is folded to fewer products.
        Operators on lifted fields have their precisions already and keep them.
        """
        if precision not in ("float64", "float32"):
            raise PlumecastError(f"precision '{precision}' is unknown; float64 or float32")
        put = choose_device(device).put
        single = precision == "float32" and not isinstance(self.operator, PlumeOperator)
        operator = folded(self.operator) if single else self.operator

        def place(array: Array) -> Array:
            host = to_numpy(array)
            return put(host.astype(np.float32) if single else host)

        return replace(self, operator=map_arrays(operator, place))

    def save(self, path: str | Path) -> Path:
        """Write the surrogate to one safetensors file, all or nothing."""
        return save_value(replace(self, operator=map_arrays(self.operator, to_numpy)), path)


def _score_layout(outputs: Layout) -> Layout:
    attrs = {"units": "1", "long_name": "detection score of smoke"}
    return Layout(
        tuple(replace(part, name="footprint_score", attrs=attrs) for part in outputs.fields)
    )


SAVED_CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Surrogate,
        Layout,
        Field,
        Coordinate,
        CodedOperator,
        FoldedLinear,
        PrimalMap,
        DualMap,
        KernelMap,
        Basis,
        MeanField,
        NearestFire,
        GaussianProcess,
        PlumeOperator,
        Targets,
        WindFrame,
        Covariate,
        CodedMap,
        NeuralMap,
        SpectralMap,
        Frequencies,
        Layer,
        Lift,
    )
}
"""What a surrogate file may hold."""


def load_surrogate(path: str | Path) -> Surrogate:
    """Read a surrogate back; it predicts bit for bit as the one that was saved."""
    value = load_value(path, SAVED_CLASSES)
    if not isinstance(value, Surrogate):
        raise PlumecastError(f"{path} holds a {type(value).__name__}, not a surrogate")
    return value
