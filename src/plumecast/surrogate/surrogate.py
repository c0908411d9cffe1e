"""The surrogate: labelled fires in, labelled smoke out, with a fitted operator between them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import (
    Array,
    array_namespace,
    is_cupy_array,
    is_torch_array,
    like,
    map_arrays,
    to_device_of,
    to_numpy,
)
from plumecast.compute.device import choose_device
from plumecast.data.covariates import (
    WIND,
    Covariate,
    ExtrapolationWarning,
    read_covariates,
    read_scalar,
    wind_vector,
)
from plumecast.data.layout import (
    Coordinate,
    Field,
    Layout,
    from_rows,
    grid_template,
    leading_dims,
)
from plumecast.operators.baselines import GaussianProcess, MeanField, NearestFire
from plumecast.operators.coded.correction import CorrectedMap
from plumecast.operators.families import FAMILIES
from plumecast.operators.family import NOTHING, Conditions, FieldMap, Operator
from plumecast.operators.fields.lift import Lift
from plumecast.operators.fields.targets import Targets
from plumecast.operators.fields.wind_frame import WindFrame
from plumecast.operators.lifted import LiftedOperator
from plumecast.operators.pca import Basis
from plumecast.surrogate.file import load_value, save_value
from plumecast.surrogate.guards import (
    COVARIATE,
    Checked,
    join_measures,
    limits,
    measure_rows,
    notices,
    snapshot_labels,
)
from plumecast.surrogate.ranges import snapshot_hours

PREDICT_BLOCK = 2048
"""Rows predicted at a time; bounds the memory of kernels and decoded fields."""

Labelled = Mapping[Hashable, xr.DataArray] | xr.Dataset


@dataclass(frozen=True, slots=True, repr=False)
class Surrogate:
    """A fitted map between labelled fields: the layouts of inputs and outputs, and the operator."""

    inputs: Layout
    outputs: Layout
    operator: Operator
    nonnegative: bool  # predictions below zero are set to zero, as smoke cannot be negative
    settings: dict[str, Any]
    training: dict[str, Any]  # provenance: data version, fires, counts, chosen penalty
    scenario: str | None = None  # name of the coordinate with the scenario of a snapshot
    covariates: tuple[Covariate, ...] = ()  # coordinates that are inputs of the operator

    def __repr__(self) -> str:
        """A few lines without arrays: fields and grids, settings, training data."""
        made = [str(self.settings.get(name) or "") for name in ("preset", "family")]
        kind = ", ".join(filter(None, made)) or type(self.operator).__name__
        needs = [*filter(None, [self.scenario]), *(item.name for item in self.covariates)]
        needs += WIND if self.operator.needs_wind else ()
        lines = [
            f"<plumecast.Surrogate: {self.inputs} → {self.outputs}",
            f" {kind}; {self.training.get('snapshots', '?')} training snapshots; predictions "
            + ("are not negative" if self.nonnegative else "may be negative"),
        ]
        if needs:
            lines.append(f" needs the coordinates {', '.join(dict.fromkeys(needs))}")
        return "\n".join(lines) + ">"

    @overload
    def predict(self, data: xr.Dataset) -> xr.DataArray | xr.Dataset: ...
    @overload
    def predict(self, data: xr.DataArray) -> xr.DataArray | xr.Dataset: ...
    @overload
    def predict(self, data: np.ndarray) -> np.ndarray: ...
    def predict(self, data: Any) -> Any:
        """Smoke of one or many fires, with the type of the input.

        A Dataset or DataArray gives labelled fields with coordinates and units (a Dataset if there
        are several outputs); an array (…, *grid) gives an array, a PyTorch tensor a tensor on its
        device (without gradients). The floating-point type of the input is kept; the arithmetic is
        float64 (float32 within a spectral operator).
        """
        if _is_device_array(data):
            return like(self.predict(to_numpy(data)), data)
        fields, checked = self._labelled(self._as_labelled(data), self.predict_rows, self.outputs)
        self._warn(checked)
        if len(fields) == 1:
            return fields[0] if _is_labelled(data) else fields[0].values
        if not _is_labelled(data):
            raise PlumecastError(
                f"this surrogate has outputs {', '.join(self.outputs.names)}; pass a Dataset"
            )
        return xr.Dataset({str(field.name): field for field in fields})

    def predict_footprint(self, data: Any) -> Any:
        """Detection score of smoke from 0 to 1, with the type of the input.

        It is a separate target of surrogates that have one (`detects`). Its decision threshold is
        chosen on validation snapshots, like that of predicted smoke.
        """
        if not self.detects:
            raise PlumecastError(
                "this surrogate has no footprint target; threshold its smoke, or train with "
                "preset='recommended'"
            )

        def score_rows(inputs: np.ndarray, given: Conditions) -> Array:
            return self.predict_both_rows(inputs, given)[1]

        if _is_device_array(data):
            return like(self.predict_footprint(to_numpy(data)), data)
        layout = _score_layout(self.outputs)
        (score,), _ = self._labelled(self._as_labelled(data), score_rows, layout)
        return score if _is_labelled(data) else score.values

    def predict_both(self, data: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
        """Smoke and detection score from one pass; the smoke twice if there is no score."""
        fields, checked = self.predict_checked(data, score=True)
        self._warn(checked)
        return fields[0], fields[-1]

    def predict_checked(
        self, data: xr.Dataset, *, score: bool = False
    ) -> tuple[list[xr.DataArray], Checked]:
        """Predicted fields, one per output, and what the guards say of them; no warning.

        With `score` the detection score is the last field; the smoke again if there is none.
        """
        if not score:
            return self._labelled(data, self.predict_rows, self.outputs)
        return self._both(data)

    def _both(self, data: xr.Dataset) -> tuple[list[xr.DataArray], Checked]:
        score = _score_layout(self.outputs) if self.detects else self.outputs
        layout = Layout((*self.outputs.fields, *score.fields))

        def both(inputs: np.ndarray, given: Conditions) -> Array:
            smoke, score = self.predict_both_rows(inputs, given)
            return np.concatenate([to_numpy(smoke), to_numpy(score)], axis=1)

        return self._labelled(data, both, layout)

    @property
    def grid(self) -> xr.Dataset:
        """The grid coordinates of the (first) input, as a template for other fields."""
        return grid_template(self.inputs.fields[0])

    @property
    def detects(self) -> bool:
        """Whether the surrogate predicts a detection score in addition to smoke."""
        return self.operator.detects

    def _only_input(self) -> Field:
        if len(self.inputs.fields) > 1:
            raise PlumecastError(
                f"this surrogate needs {len(self.inputs.fields)} inputs "
                f"({', '.join(self.inputs.names)}); pass a Dataset"
            )
        return self.inputs.fields[0]

    def _as_labelled(self, data: Any) -> Labelled:
        """A Dataset, DataArray or array as fields by name."""
        if isinstance(data, xr.Dataset):
            return data
        part = self._only_input()
        if isinstance(data, xr.DataArray):
            return {part.name: data}
        array = np.asarray(data)
        lead = array.shape[: array.ndim - len(part.shape)]
        if array.ndim < len(part.shape) or array.shape[len(lead) :] != part.shape:
            raise PlumecastError(
                f"expected an array (…, {', '.join(map(str, part.shape))}), got shape {array.shape}"
            )
        names = [f"lead_{i}" for i in range(len(lead))]
        return {part.name: xr.DataArray(array, dims=[*names, *part.dims])}

    def _labelled(
        self,
        data: Labelled,
        predict: Callable[[np.ndarray, Conditions], Array],
        layout: Layout,
    ) -> tuple[list[xr.DataArray], Checked]:
        """Predict all rows block by block: a labelled field per field of the layout, and checks."""
        matrix, given = self.read_rows(data)
        like = data[self.inputs.fields[0].name]
        lead = leading_dims(like, self.inputs.fields[0])
        dtype = like.dtype if like.dtype.kind == "f" else np.dtype(np.float64)
        # Stacked variables are rescaled below; float64 avoids rounding twice.
        plain = all(part.scale == 1.0 for part in layout.fields)
        out = np.empty((matrix.shape[0], layout.size), dtype=dtype if plain else np.float64)
        hours = snapshot_hours(like.coords.to_dataset(), {dim: like.sizes[dim] for dim in lead})
        measured: list[dict[str, Array]] = []
        for start in range(0, matrix.shape[0], PREDICT_BLOCK):
            rows = slice(start, start + PREDICT_BLOCK)
            out[rows] = to_numpy(predict(matrix[rows], given.at(rows)))
            known = (matrix[rows], given.at(rows), out[rows, : self.outputs.size])
            measured.append(measure_rows(self, *known, None if hours is None else hours[rows]))
        fields = [
            from_rows(values.astype(dtype, copy=False), part, like, lead)
            for part, values in zip(layout.fields, layout.split(out), strict=True)
        ]
        return fields, Checked(join_measures(measured), snapshot_labels(like, lead))

    def _warn(self, checked: Checked) -> None:
        """Warn once of every kind of extrapolation; covariates have warned when they were read."""
        known = limits(self)
        for notice in notices(checked.findings(known), known):
            if notice.loud and not notice.measure.startswith(COVARIATE):
                warnings.warn(notice.text, ExtrapolationWarning, stacklevel=3)

    def read_rows(self, data: Labelled) -> tuple[np.ndarray, Conditions]:
        """The inputs of labelled fields as a matrix, and the conditions of every row."""
        matrix = self.inputs.to_matrix(data)
        if self.scenario is None and not self.covariates and not self.operator.needs_wind:
            return matrix, NOTHING
        like = data[self.inputs.fields[0].name]
        found = data if isinstance(data, xr.Dataset) else like.coords.to_dataset()
        lead = leading_dims(like, self.inputs.fields[0])
        sizes = {dim: like.sizes[dim] for dim in lead}
        labels = wind = None
        if self.scenario is not None and self.scenario in found.variables:
            labels = read_scalar(found, self.scenario, sizes).astype(str)
        if self.operator.needs_wind:
            wind = wind_vector(*(read_scalar(found, name, sizes) for name in WIND))
        return matrix, Conditions(labels, read_covariates(found, self.covariates, sizes), wind)

    def predict_rows(self, inputs: np.ndarray, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, Ñ), rows in the layouts of inputs and outputs, on the operator's device."""
        return self._clipped(self.operator.predict(to_device_of(self.operator, inputs), given))

    def predict_both_rows(
        self, inputs: np.ndarray, given: Conditions = NOTHING
    ) -> tuple[Array, Array]:
        """Smoke and detection score of (M, N) inputs, on the operator's device, from one pass.

        Returns the smoke twice if there is no score.
        """
        smoke, score = self.operator.predict_both(to_device_of(self.operator, inputs), given)
        smoke = self._clipped(smoke)
        return smoke, smoke if score is None else score

    def _clipped(self, outputs: Array) -> Array:
        if not self.nonnegative:
            return outputs
        return array_namespace(outputs).clip(outputs, 0.0, None)

    def on_device(self, device: str, precision: str = "float64") -> Surrogate:
        """The same surrogate with its operator's arrays on a device ("cuda", "cupy", "cpu").

        Predictions are computed there and returned as NumPy arrays. With `precision` "float32" they
        are faster and accurate to about four digits; a linear operator then needs fewer products.
        Operators on lifted fields have a fixed precision, which does not change.
        """
        if precision not in ("float64", "float32"):
            raise PlumecastError(
                f"precision '{precision}' is unknown; choose from float64, float32"
            )
        put = choose_device(device).put
        operator = self.operator.for_float32() if precision == "float32" else self.operator
        return replace(self, operator=map_arrays(operator, lambda array: put(to_numpy(array))))

    def save(self, path: str | Path) -> Path:
        """Write the surrogate to one safetensors file; a failed write leaves no file."""
        return save_value(replace(self, operator=map_arrays(self.operator, to_numpy)), path)


def _is_labelled(data: Any) -> bool:
    return isinstance(data, xr.Dataset | xr.DataArray)


def _is_device_array(data: Any) -> bool:
    return bool(is_torch_array(data) or is_cupy_array(data))


def _score_layout(outputs: Layout) -> Layout:
    attrs = {"units": "1", "long_name": "detection score of smoke"}
    return Layout(
        tuple(replace(part, name="footprint_score", attrs=attrs) for part in outputs.fields)
    )


def _plume_operator(
    labels: tuple[str, ...],
    fields: FieldMap,
    targets: Targets,
    shape: tuple[int, ...],
    frame: WindFrame | None = None,
    correction: Any = None,
    detect: bool = False,
) -> LiftedOperator:
    """The `PlumeOperator` of files of version 0.1.0, as a `LiftedOperator`."""
    field_map = fields if correction is None else CorrectedMap(fields, correction)
    return LiftedOperator(labels, field_map, targets, shape, frame)


SHARED_CLASSES: tuple[type, ...] = (
    Surrogate,
    Layout,
    Field,
    Coordinate,
    Covariate,
    LiftedOperator,
    Basis,
    Lift,
    Targets,
    WindFrame,
    MeanField,
    NearestFire,
    GaussianProcess,
)
"""Classes that the file of a surrogate of any family may contain."""


def saved_classes() -> dict[str, Callable[..., Any]]:
    """Classes that a file may contain, by their names in it: shared ones and those of families."""
    of_families = (kind for family in FAMILIES.values() for kind in family.saved)
    known: dict[str, Callable[..., Any]] = {
        kind.__name__: kind for kind in (*SHARED_CLASSES, *of_families)
    }
    return known | {"PlumeOperator": _plume_operator}


def load_surrogate(path: str | Path) -> Surrogate:
    """Read a surrogate; its predictions equal those of the saved one bit for bit."""
    value = load_value(path, saved_classes())
    if not isinstance(value, Surrogate):
        raise PlumecastError(f"{path} holds a {type(value).__name__}, not a surrogate")
    return value
