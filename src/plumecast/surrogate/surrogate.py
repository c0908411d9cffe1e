"""The surrogate: labelled fires in, labelled smoke out, with a fitted operator between them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import PlumecastError
from plumecast.base.names import DOSE_SCALE, SMOKE, SNAPSHOT, TABLE, WIND
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
from plumecast.compute.resources import LOCAL, Resources, choose_device
from plumecast.data.covariates import (
    Covariate,
    ExtrapolationWarning,
    read_covariates,
    read_scalar,
    wind_vector,
)
from plumecast.data.layout import (
    Layout,
    from_rows,
    grid_template,
    leading_dims,
)
from plumecast.operators.family import NOTHING, Conditions, OneOutput, Operator
from plumecast.scores.predicted_dose import with_doses, without_other_doses
from plumecast.scores.quantities import INTEGRATED
from plumecast.surrogate.error_bars.calibration import Calibration
from plumecast.surrogate.error_bars.interval import output_intervals, require_calibration
from plumecast.surrogate.file import save_value
from plumecast.surrogate.guards import (
    Checked,
    largest_sizes,
    limits,
    measure_rows,
    notices,
    output_measures,
    snapshot_labels,
)
from plumecast.surrogate.ranges import stated_measures
from plumecast.surrogate.thresholds import (
    FURTHER,
    OF_OUTPUT,
    OutputRecord,
    output_entries,
    read_record,
    reconcile_outputs,
    score_layout,
    training_entries,
)
from plumecast.surrogate.weather import (
    HOURLY,
    fire_history,
    fuel_loads,
    note_constant_wind,
    weather_series,
)

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
    error_bars: Calibration | None = None  # residuals of fires that a fit has not seen
    further_bars: dict[str, Calibration] | None = None  # those of outputs after the first
    sums: Any = None  # what `update` adds new fires to; None unless trained for it

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
        if self.operator.needs_weather:
            lines.append(" needs the hourly weather of every fire, or at least its mean wind")
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

        Labelled smoke of a surrogate that carries smoke has its dose beside it, as a coordinate,
        which `pc.scores.as_quantity` reads.

        Every snapshot is predicted by itself, so that smoke may fall from one to the next of a
        fire. It does not in `plumecast predict`, `ensemble` and `compare`.
        """
        own = _is_labelled(data)
        labelled = self._as_labelled(_on_host(data))
        fields, checked = self._labelled(labelled, self.predict_rows, self.outputs, dose=own)
        self._warn(checked)
        return self._as_given(fields, data)

    def _as_given(self, fields: list[xr.DataArray], data: Any) -> Any:
        """One field with the type of the input; several as a Dataset."""
        if len(fields) == 1:
            one = fields[0] if _is_labelled(data) else fields[0].values
            return one if _on_host(data) is data else like(one, data)
        if not _is_labelled(data):
            raise PlumecastError(
                f"this surrogate has outputs {', '.join(self.outputs.names)}; pass a Dataset"
            )
        return xr.Dataset({str(field.name): field for field in fields})

    def predict_footprint(self, data: Any) -> Any:
        """Detection score of smoke from 0 to 1, with the type of the input.

        It is a separate target of surrogates that have one (`detects`). Trained with thresholds,
        they predict smoke above `training["thresholds"]["smoke"]` exactly where the score is above
        `training["thresholds"]["decision"]`.
        """
        if not self.detects:
            raise PlumecastError(
                "this surrogate has no footprint target; threshold its smoke, or train with "
                "the preset 'recommended'"
            )

        def score_rows(inputs: np.ndarray, given: Conditions) -> Array:
            return self.predict_both_rows(inputs, given)[1]

        labelled = self._as_labelled(_on_host(data))
        scores, _ = self._labelled(labelled, score_rows, score_layout(self.outputs))
        return self._as_given(scores, data)

    def output(self, name: str) -> Surrogate:
        """The surrogate of one of its outputs, with the thresholds of that output."""
        names = self.outputs.names
        if name not in names:
            raise PlumecastError(f"output '{name}' is unknown; choose from {', '.join(names)}")
        if len(names) == 1:
            return self
        number = names.index(name)
        start = sum(part.size for part in self.outputs.fields[:number])
        field = self.outputs.fields[number]
        training = output_entries(self.training, names, name)
        if "split" in training:
            training["split"] = training["split"] | {"outputs": name}
        return replace(
            self,
            error_bars=self.calibrations()[number],
            further_bars=None,
            sums=None,
            outputs=Layout((replace(field, scale=1.0),)),
            operator=OneOutput(self.operator, start, start + field.size, field.scale),
            training=training,
        )

    def predict_both(self, data: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
        """Smoke and detection score from one pass; the smoke twice if there is no score.

        Of several outputs, they are those of the first; see `output` for the others.
        """
        fields, checked = self._both(data, dose=False)
        self._warn(checked)
        return fields[0], fields[len(self.outputs.fields)]

    def predict_interval(self, data: Any, coverage: float = 0.9) -> xr.Dataset:
        """Smoke with error bars: `lower` and `upper`, `certain_smoke` and `possible_smoke`.

        In the mean over new fires like those of training, a share `coverage` of the cells with
        predicted or observed smoke (above the smoke threshold) is to lie between `lower` and
        `upper`. At most 1 − coverage of the cells of `certain_smoke` are to have no smoke, and at
        most 1 − coverage of the smoky cells are to lie outside of `possible_smoke`, each in a share
        `coverage` of new fires. The attribute `promised_coverage` is what the number of ignitions
        can promise. `train_surrogate` with `split=None` makes the calibration. Of several outputs,
        the fields of those after the first are named after their output: `lower_surface_smoke`.
        """
        require_calibration(self.record)
        fields, checked = self._both(self._as_labelled(_on_host(data)))
        self._warn(checked)
        smoke, scores = fields[: len(self.outputs.fields)], fields[len(self.outputs.fields) :]
        bars = output_intervals(self.calibrations(), smoke, scores, coverage)
        return xr.Dataset({str(field.name): field for field in smoke} | dict(bars.data_vars))

    @property
    def records(self) -> dict[str, OutputRecord]:
        """What training chose and measured of every output, by its name."""
        names, bars = self.outputs.names, {self.outputs.names[0]: self.error_bars}
        bars |= self.further_bars or {}
        return {
            name: read_record(output_entries(self.training, names, name), bars.get(name))
            for name in names
        }

    @property
    def record(self) -> OutputRecord:
        """What training chose and measured of the first output."""
        return self.records[self.outputs.names[0]]

    def with_records(self, records: Mapping[str, OutputRecord]) -> Surrogate:
        """The surrogate with other records, of all outputs in their order."""
        first, *others = self.outputs.names
        kept = {
            name: value
            for name, value in self.training.items()
            if name not in OF_OUTPUT and name != FURTHER
        }
        bars = {name: records[name].error_bars for name in others}
        return replace(
            self,
            training=kept | training_entries({name: records[name] for name in (first, *others)}),
            error_bars=records[first].error_bars,
            further_bars={name: own for name, own in bars.items() if own is not None} or None,
        )

    def calibrations(self) -> list[Calibration | None]:
        """The calibration of the error bars of every output; None for outputs without them."""
        return [record.error_bars for record in self.records.values()]

    def predict_checked(
        self, data: xr.Dataset, *, score: bool = False
    ) -> tuple[list[xr.DataArray], Checked]:
        """Predicted fields, one per output, and what the guards say of them; no warning.

        With `score` the detection score of every output follows; its smoke again if there is none.
        """
        if not score:
            return self._labelled(data, self.predict_rows, self.outputs, dose=True)
        return self._both(data)

    def _both(self, data: Labelled, *, dose: bool = True) -> tuple[list[xr.DataArray], Checked]:
        score = score_layout(self.outputs) if self.detects else self.outputs
        layout = Layout((*self.outputs.fields, *score.fields))

        def both(inputs: np.ndarray, given: Conditions) -> Array:
            smoke, score = self.predict_both_rows(inputs, given)
            return np.concatenate([to_numpy(smoke), to_numpy(score)], axis=1)

        return self._labelled(data, both, layout, dose=dose)

    @property
    def grid(self) -> xr.Dataset:
        """The grid coordinates of the (first) input, as a template for other fields."""
        return grid_template(self.inputs.fields[0])

    @property
    def detects(self) -> bool:
        """Whether the surrogate predicts a detection score in addition to smoke."""
        return self.operator.detects

    def _as_labelled(self, data: Any) -> Labelled:
        """A Dataset, DataArray or array as fields by name."""
        if isinstance(data, xr.Dataset):
            return data
        part, *others = self.inputs.fields
        if others:
            raise PlumecastError(
                f"this surrogate needs {len(self.inputs.fields)} inputs "
                f"({', '.join(self.inputs.names)}); pass a Dataset"
            )
        if isinstance(data, xr.DataArray):
            return {part.name: data}
        if np.ma.is_masked(data):
            masked = np.count_nonzero(np.ma.getmaskarray(data))
            raise PlumecastError(f"data has {masked} masked values; fill them with data.filled(…)")
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
        *,
        dose: bool = False,
    ) -> tuple[list[xr.DataArray], Checked]:
        """Predict all rows block by block: a labelled field per field of the layout, and checks.

        With `dose` the outputs, which come first, get their dose as a coordinate.
        """
        matrix, given = self.read_rows(data)
        like = data[self.inputs.fields[0].name]
        lead = leading_dims(like, self.inputs.fields[0])
        dtype = like.dtype if like.dtype.kind == "f" else np.dtype(np.float64)
        # Stacked variables are rescaled below; float64 avoids rounding twice.
        plain = all(part.scale == 1.0 for part in layout.fields)
        out = np.empty((matrix.shape[0], layout.size), dtype=dtype if plain else np.float64)
        stated = stated_measures(self.training.get("ranges", {}), data, like, lead)
        measured: list[dict[str, Array]] = []
        integrated = self.integrated() if dose else self
        doses = np.empty((matrix.shape[0], self.outputs.size if integrated is not self else 0))
        for start in range(0, matrix.shape[0], PREDICT_BLOCK):
            rows = slice(start, start + PREDICT_BLOCK)
            own = given.at(rows).loaded()
            with np.errstate(over="ignore", invalid="ignore"):  # checked below
                if integrated is not self:
                    own = self.prepared(matrix[rows], own)
                    doses[rows] = to_numpy(integrated.predict_rows(matrix[rows], own))
                out[rows] = to_numpy(predict(matrix[rows], own))
            peak = largest_sizes(np.concatenate([out[rows], doses[rows]], axis=1))
            if not np.isfinite(peak).all():
                wrong = start + int(np.argmin(np.isfinite(peak)))
                raise PlumecastError(
                    f"the prediction of {snapshot_labels(like, lead)[wrong]} is not finite in "
                    f"{out.dtype}: its inputs lie far beyond those of training, or need more "
                    "digits; check their values and units, or pass float64"
                )
            made = output_measures(self, out[rows, : self.outputs.size])
            known = (matrix[rows], own, made)
            here = {name: values[rows] for name, values in stated.items()}
            measured.append(measure_rows(self, *known, here))
        bare = without_other_doses(like).drop_vars(DOSE_SCALE, errors="ignore")
        fields = [
            from_rows(values.astype(dtype, copy=False), part, bare, lead)
            for part, values in zip(layout.fields, layout.split(out), strict=True)
        ]
        if integrated is not self:
            intervals = [recorded_interval(part.attrs) or np.nan for part in self.outputs.fields]
            pairs = zip(intervals, self.outputs.split(doses), strict=True)
            fields = with_doses(fields, [interval * own for interval, own in pairs])
        joined = {
            name: np.concatenate([block[name] for block in measured])
            for name in (measured[0] if measured else ())
        }
        return fields, Checked(joined, snapshot_labels(like, lead))

    def integrated(self) -> Surrogate:
        """The surrogate of ∫ c dt / Δ instead of the sum over frames, where it carries smoke.

        The operator is applied to the integral of the carried smoke. Other surrogates, and those of
        fields that are no smoke or have no recorded interval, are returned as they are.
        """
        parts, units = self.outputs.fields, TABLE[SMOKE].units
        summed = all(recorded_interval(p.attrs) and p.attrs.get("units") == units for p in parts)
        if not self.operator.needs_weather or not summed:
            return self
        fields = tuple(replace(part, attrs={**part.attrs, INTEGRATED: 1}) for part in parts)
        operator = OneOutput(self.operator, 0, self.outputs.size, integrated=True)
        return replace(self, outputs=replace(self.outputs, fields=fields), operator=operator)

    def _warn(self, checked: Checked) -> None:
        """Warn once of every kind of extrapolation."""
        known = limits(self)
        for notice in notices(checked.excesses(known), known):
            if notice.loud:
                warnings.warn(notice.text, ExtrapolationWarning, stacklevel=3)

    def read_rows(self, data: Labelled) -> tuple[np.ndarray, Conditions]:
        """The inputs of labelled fields as a matrix, and the conditions of every row.

        One field in float32 stays so; the operator converts it to its precision on its device.
        """
        matrix = self.inputs.to_matrix(data, as_stored=True)
        operator, part = self.operator, self.inputs.fields[0]
        needs_labels = self.scenario is not None or self.covariates
        if not needs_labels and not operator.needs_wind and not operator.needs_weather:
            return matrix, NOTHING
        like = data[part.name]
        labelled = data if isinstance(data, xr.Dataset) else like.coords.to_dataset()
        lead = leading_dims(like, part)
        sizes = {dim: like.sizes[dim] for dim in lead}
        labels = wind = weather = fuel = history = None
        if self.scenario is not None and self.scenario in labelled.variables:
            labels = read_scalar(labelled, self.scenario, sizes).astype(str)
        if operator.needs_wind:
            wind = wind_vector(*(read_scalar(labelled, name, sizes) for name in WIND))
        if operator.needs_weather:
            trained = self.training.get("weather")
            weather = weather_series(labelled, sizes, kind=trained or HOURLY)
            note_constant_wind(labelled, trained)
            if len(lead) <= 1:
                whole = labelled if lead else labelled.expand_dims(SNAPSHOT)
                history = fire_history(whole, matrix.reshape(-1, *part.shape), part.dims)
        if operator.uses_fuel:
            fuel = fuel_loads(labelled, part.dims, sizes)
        covariates = read_covariates(labelled, self.covariates, sizes)
        return matrix, Conditions(
            labels, covariates, wind, weather=weather, fuel=fuel, history=history
        )

    def prepared(self, inputs: np.ndarray, given: Conditions) -> Conditions:
        """The conditions with what predictions of sums and of their integrals share."""
        return self.operator.prepared(to_device_of(self.operator, inputs), given)

    def predict_rows(self, inputs: np.ndarray, given: Conditions = NOTHING) -> Array:
        """(M, N) → (M, Ñ), rows in the layouts of inputs and outputs, on the operator's device."""
        if any(record.agreement for record in self.records.values()):
            return self.predict_both_rows(inputs, given)[0]
        return self._clipped(self.operator.predict(to_device_of(self.operator, inputs), given))

    def predict_both_rows(
        self, inputs: np.ndarray, given: Conditions = NOTHING
    ) -> tuple[Array, Array]:
        """Smoke and detection score of (M, N) inputs, on the operator's device, from one pass.

        Returns the smoke twice if there is no score. Surrogates that record an agreement predict
        smoke above τ exactly where the score is above α.
        """
        smoke, score = self.operator.predict_both(to_device_of(self.operator, inputs), given)
        smoke = self._clipped(smoke)
        if score is None:
            return smoke, smoke
        agreements = [record.agreement for record in self.records.values()]
        return reconcile_outputs(agreements, smoke, score)

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

    @folded_arguments(resources=Resources)
    def update(self, fires: xr.Dataset, *, resources: Resources = LOCAL) -> Surrogate:
        """A surrogate that has also learned new fires; it must be trained with `updatable=True`.

        `training["updates"]` lists what was kept. Error bars gain the new ignitions. Of the
        resources, the device is used.
        """
        from plumecast.surrogate.update import update_surrogate

        return update_surrogate(self, fires, resources)

    def save(self, path: str | Path) -> Path:
        """Write the surrogate to one safetensors file; a failed write leaves no file."""
        return save_value(replace(self, operator=map_arrays(self.operator, to_numpy)), path)


def _is_labelled(data: Any) -> bool:
    return isinstance(data, xr.Dataset | xr.DataArray)


def _on_host(data: Any) -> Any:
    """A device array as a NumPy array; everything else as it is."""
    return to_numpy(data) if is_torch_array(data) or is_cupy_array(data) else data
