"""Fit surrogates with a lift and targets; scenarios, covariates and winds come from the labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import WIND
from plumecast.compute.arrays import Array
from plumecast.compute.resources import Budget
from plumecast.data.covariates import (
    ALIKE,
    SCENARIO,
    Covariate,
    fit_covariates,
    own_winds,
    read_covariates,
    read_wind,
    weather_known,
)
from plumecast.data.layout import Field
from plumecast.data.training import TrainingMatrices, check_group_count
from plumecast.operators.carried.calibration import LADDERS, calibrate
from plumecast.operators.carried.release import FireHistory, FuelLoads, WeatherSeries
from plumecast.operators.carried.transport import ColumnTransport, plan_transport
from plumecast.operators.coded.correction import CorrectedMap
from plumecast.operators.family import Conditions, Operator, TrainingSet
from plumecast.operators.lifted import FittedLifted, fit_lifted_operator
from plumecast.operators.settings import FAMILIES, Settings
from plumecast.operators.targets import each_output, value_range
from plumecast.operators.wind_frame import WindFrame, fit_wind_frame
from plumecast.scores.footprint import smoke_threshold
from plumecast.surrogate.weather import (
    HOURLY,
    MEAN_WIND,
    fire_history,
    frame_interval,
    fuel_loads,
    weather_series,
)
from plumecast.weather.snapshots import STATE_WEATHER, has_weather

MAP_ADVANTAGE = 0.8
"""If winds differ, fields are rotated unless the out-of-fold error on the map is below this share
of the error in the wind frame. With a handful of fires the comparison is noisy, and the physics
favours rotation."""


CALIBRATED = "calibrated"
"""The kind of physics whose constants are chosen on the training fires."""

MEAN_KINDS = ["none", CALIBRATED]
"""Kinds of physics to compare where only mean winds are known: the frame is chosen without physics,
and on the map there is none, so that predictions need a wind only where the frame does."""

COMPARED_GROUPS = 48
"""Largest number of groups on which frames and physics are compared."""


@dataclass(frozen=True, slots=True)
class FittedOperator:
    """A fitted operator, what the fit chose, and the coordinates that its predictions need."""

    operator: Operator
    chosen: dict[str, Any]
    sums: Any = None  # what new fires are added to
    scenario: str | None = None
    covariates: tuple[Covariate, ...] = ()


def fit_lifted(
    data: TrainingMatrices,
    settings: Settings,
    group_by: str,
    resources: Budget,
    *,
    signed: bool = False,
) -> FittedOperator:
    """Fit one operator for all droughts, each with its own weights.

    Outputs that are `signed` have no footprint, and the settings must have targets for them.

    With frame or physics "auto", they are chosen by out-of-fold errors.
    """
    _check_fields(data)
    rows_of = data.groups(group_by)
    check_group_count(len(rows_of), group_by)
    groups = np.empty(data.inputs.shape[0], dtype=np.int64)
    for number, rows in enumerate(rows_of):
        groups[rows] = number
    covariates = fit_covariates(data.snapshots, settings.covariates)
    fire, smoke = data.on_grids()
    labels = None
    if FAMILIES[settings.family].scenarios and SCENARIO in data.snapshots.variables:
        droughts = data.snapshots[SCENARIO].values.astype(str)
        labels = np.broadcast_to(droughts, (fire.shape[0],))
    given = Conditions(
        labels=labels,
        covariates=read_covariates(data.snapshots, covariates),
        wind=read_wind(data.snapshots),
    )
    names = (", ".join(data.input_layout.names), ", ".join(data.output_layout.names))
    fits = _Fits(data, TrainingSet(fire, smoke, groups, given, names), resources, signed)
    frames, kinds = fits.candidates(settings)
    frame, physics = frames[-1], kinds[0]
    if len(frames) > 1 or len(kinds) > 1:
        resources.progress("comparing frames and physics")
        simple = replace(
            settings, family_settings=settings.family_settings.simplified(), updatable=False
        )
        some = None
        if len(rows_of) > COMPARED_GROUPS:
            compared = np.random.default_rng(0).permutation(np.arange(len(rows_of)))
            some = np.flatnonzero(np.isin(groups, compared[:COMPARED_GROUPS]))
        frame, physics = _choose_inputs(
            frames, kinds, lambda frame, physics: fits.fit(frame, physics, simple, some).error
        )
    fitted = fits.fit(frame, physics, settings)
    operator = fitted.operator
    record: dict[str, Any] = {}
    if not signed:
        record["footprint_threshold"] = fits.by_output(fits.thresholds)
    if "log" in operator.targets.names:
        both = (operator.targets, *operator.further)
        record["log_scale"] = fits.by_output([own.epsilon for own in both])
    record |= {
        "scenarios": list(operator.labels),
        "frame": frame,
        "physics": physics,
        "leave_out_error": fitted.error,
    }
    if operator.physics is not None:
        record["weather"] = HOURLY if has_weather(data.snapshots) else MEAN_WIND
        record["transport"] = {name: getattr(operator.physics, name) for name in LADDERS}
    if getattr(settings.family_settings, "correction", False):
        record["corrected"] = isinstance(operator.field_map, CorrectedMap)
    scenario = SCENARIO if operator.labels else None
    return FittedOperator(operator, record, fitted.sums, scenario, covariates)


@dataclass(frozen=True)
class _Fits:
    """Fits of one training set with any frame and physics."""

    data: TrainingMatrices
    on_map: TrainingSet
    resources: Budget
    signed: bool

    @cached_property
    def thresholds(self) -> list[float]:
        """The smoke threshold τ of every output; 0 for signed ones, which have no footprint."""
        outputs = each_output(self.on_map.targets, self.field.shape)
        return [0.0 if self.signed else smoke_threshold(own) for own in outputs]

    def by_output(self, values: Sequence[float]) -> float | dict[str, float]:
        """A value of the only output, or the values by the names of several."""
        names = self.data.output_layout.names
        return values[0] if len(names) == 1 else dict(zip(names, values, strict=True))

    @cached_property
    def weather(self) -> WeatherSeries:
        """The weather of every snapshot."""
        return weather_series(self.data.snapshots)

    @cached_property
    def fuel(self) -> FuelLoads | None:
        """The fuel load of every snapshot, where it is known."""
        return fuel_loads(self.data.snapshots, self.field.dims)

    @cached_property
    def history(self) -> FireHistory | None:
        """The earlier snapshots of every fire, where they are known."""
        return fire_history(self.data.snapshots, self.on_map.fire, self.field.dims)

    def transport(self, kind: str) -> ColumnTransport:
        """A transport of one kind for these fires."""
        if kind == CALIBRATED:
            return self._calibrated
        snapshots, fuel = self.data.snapshots, self.fuel
        return plan_transport(
            self.weather,
            grid_spacing(snapshots, self.field),
            frame_interval(snapshots),
            kind=kind,
            load=None if fuel is None else fuel.mean(),
        )

    @cached_property
    def _calibrated(self) -> ColumnTransport:
        """The transport of the column with constants that suit the smoke of the first output."""
        self.resources.progress("calibrating carried smoke")
        smoke = each_output(self.on_map.targets, self.field.shape)[0]
        return calibrate(
            self.transport("column"),
            self.on_map.fire,
            smoke,
            self.weather,
            threshold=self.thresholds[0],
            fuel=self.fuel,
            history=self.history,
            put=self.resources.device.put,
        )

    @property
    def field(self) -> Field:
        """The field of the fire."""
        return self.data.input_layout.fields[0]

    def candidates(self, settings: Settings) -> tuple[list[str], list[str]]:
        """Frames and kinds of physics to compare; the likely best frame last, physics first."""
        given, snapshots = self.on_map.given, self.data.snapshots
        is_map = self.field.dims == ("y", "x")
        alike = ALIKE if given.labels is not None else ("hours",)
        own_weather = is_map and own_winds(snapshots, self.on_map.groups, given.wind, alike)
        frames = [settings.frame]
        if settings.frame == "auto":
            frames = ["map", "wind"] if own_weather else ["map"]
        return frames, _physics_kinds(snapshots, settings, is_map, own_weather)

    def fit(
        self, frame: str, physics: str, settings: Settings, rows: Array | None = None
    ) -> FittedLifted:
        """The operator fitted to some rows, by default to all, and its out-of-fold error."""
        training, snapshots = self.on_map, self.data.snapshots
        given, turned = training.given, None
        if frame != "map":
            turned = wind_frame_of(snapshots, self.field, given.wind, frame)
            given = replace(given, labels=None)  # redundant: a drought only names a wind series
        carrier = None
        if physics != "none":
            given = replace(given, weather=self.weather, fuel=self.fuel, history=self.history)
            carrier = self.transport(physics)
        training = replace(training, given=given)
        return fit_lifted_operator(
            training if rows is None else training.at(rows),
            settings,
            threshold=self.thresholds,
            frame=turned,
            physics=carrier,
            resources=self.resources,
        )


def _physics_kinds(
    snapshots: xr.Dataset, settings: Settings, is_map: bool, own_weather: bool
) -> list[str]:
    """The kinds of physics to compare, the likely best one first; "none" alone without weather."""
    known = is_map and weather_known(snapshots)
    if settings.physics == "auto":
        # Fires that share a few weathers need none: their smoke is learned directly, in a fraction
        # of the time. A mean wind alone, with the default profile, needs calibrated constants.
        if not (known and own_weather):
            return ["none"]
        return [CALIBRATED, "column", "layers", "none"] if has_weather(snapshots) else MEAN_KINDS
    if settings.physics != "none" and not known:
        raise PlumecastError(
            f"physics '{settings.physics}' needs fields on (y, x), and the hours and the weather "
            f"of every snapshot; use physics 'none', or add the weather: {STATE_WEATHER}"
        )
    return [settings.physics]


def _choose_inputs(
    frames: list[str], kinds: list[str], error_of: Callable[[str, str], float]
) -> tuple[str, str]:
    """Frame and physics with small out-of-fold errors: first the frame, then the physics in it."""
    errors = {}
    frame = frames[-1]
    if len(frames) > 1:
        errors = {(name, kinds[0]): error_of(name, kinds[0]) for name in frames}
        on_map, in_wind = (errors[name, kinds[0]] for name in ("map", "wind"))
        frame = "map" if on_map < MAP_ADVANTAGE * in_wind else "wind"
    if len(kinds) == 1 or (kinds == MEAN_KINDS and not frame.startswith("wind")):
        return frame, kinds[0]
    for kind in kinds:
        if (frame, kind) not in errors:
            errors[frame, kind] = error_of(frame, kind)
    return frame, min(kinds, key=lambda kind: errors[frame, kind])


def _check_fields(data: TrainingMatrices) -> None:
    """Raise unless one field is mapped to fields on the same grid."""
    layout = data.input_layout
    if len(layout.fields) > 1:
        raise PlumecastError(
            f"a surrogate with a lift has one input, not {len(layout.fields)} "
            f"({', '.join(layout.names)}); use the preset 'paper-quadratic', or one surrogate each"
        )
    fields = (*layout.fields, *data.output_layout.fields)
    if any((own.shape, own.dims) != (fields[0].shape, fields[0].dims) for own in fields):
        described = [
            f"{part.name} {tuple(zip(part.dims, part.shape, strict=True))}" for part in fields
        ]
        raise PlumecastError(
            "a surrogate with a lift maps one field to others on the same grid, not "
            + " and ".join(described)
            + "; regrid, or use the preset 'paper-quadratic'"
        )
    if len(data.output_layout.fields) > 1:
        outputs = each_output(data.on_grids()[1], fields[0].shape)
        for name, own in zip(data.output_layout.names, outputs, strict=True):
            if value_range(own) == (0.0, 0.0):
                raise PlumecastError(
                    f"variable '{name}' is zero in every training snapshot; leave it out of outputs"
                )


def wind_frame_of(snapshots: xr.Dataset, field: Field, wind: Array | None, kind: str) -> WindFrame:
    """The frame of the (M, 2) winds of snapshots; raises where there can be none."""
    if field.dims[-2:] != ("y", "x") or len(field.shape) != 2:
        raise PlumecastError(
            f"frame '{kind}' needs fields on (y, x), not on {field.dims}; transpose them"
        )
    if wind is None:
        raise PlumecastError(
            f"frame '{kind}' needs the coordinates {' and '.join(WIND)} on every snapshot; use "
            f"frame 'map', or add the wind: {STATE_WEATHER}"
        )
    spacing = grid_spacing(snapshots, field)
    return fit_wind_frame(field.shape, spacing, wind, stretch=kind == "wind-stretch")


def grid_spacing(snapshots: xr.Dataset, field: Field) -> tuple[float, float]:
    """Size of a cell along y and x, negative if the axis descends; 1 without coordinates."""
    sizes = []
    for dim in field.dims:
        places = snapshots[dim].values if dim in snapshots.coords else np.empty(0)
        known = places.size > 1 and places.dtype.kind in "fi"
        sizes.append(float(np.mean(np.diff(places))) if known else 0.0)
    return (sizes[0], sizes[1]) if len(sizes) == 2 and all(sizes) else (1.0, 1.0)
