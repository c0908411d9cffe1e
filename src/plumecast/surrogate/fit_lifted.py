"""Fit surrogates with a lift and targets; scenarios, covariates and winds come from the labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.compute.device import Resources
from plumecast.data.covariates import (
    ALIKE,
    SCENARIO,
    STATE_WIND,
    WIND,
    Covariate,
    fit_covariates,
    own_winds,
    read_covariates,
    read_wind,
)
from plumecast.data.layout import Field
from plumecast.data.training import TrainingMatrices
from plumecast.operators.coded.correction import CorrectedMap
from plumecast.operators.families import FAMILIES
from plumecast.operators.family import Conditions, TrainingSet
from plumecast.operators.fields.wind_frame import WindFrame, fit_wind_frame
from plumecast.operators.lifted import LiftedOperator, fit_lifted_operator
from plumecast.operators.settings import Settings
from plumecast.scores.footprint import smoke_threshold

MAP_ADVANTAGE = 0.8
"""If winds differ, fields are rotated unless the out-of-fold error on the map is below this share
of the error in the wind frame. With a handful of fires the comparison is noisy, and the physics
favours rotation."""


@dataclass(frozen=True, slots=True)
class LiftedFit:
    """A fitted operator, and the coordinates that its predictions need."""

    operator: LiftedOperator
    chosen: dict[str, Any]
    scenario: str | None
    covariates: tuple[Covariate, ...]


def fit_lifted(
    data: TrainingMatrices,
    settings: Settings,
    group_by: str,
    resources: Resources,
    *,
    signed: bool = False,
) -> LiftedFit:
    """Fit one operator for all droughts, each with its own weights.

    Outputs that are `signed` have no footprint, and the settings must have targets for them.

    With frame "auto", the frame of the map or of the wind is chosen by out-of-fold errors.
    """
    fields = (*data.input_layout.fields, *data.output_layout.fields)
    fire, smoke = data.on_grids()
    groups = _group_numbers(data, group_by)
    _check_fields(data)
    threshold = 0.0 if signed else smoke_threshold(smoke)
    covariates = fit_covariates(data.snapshots, settings.covariates)
    has_scenarios = FAMILIES[settings.family].scenarios
    on_map = Conditions(
        labels=_labels(data.snapshots, fire.shape[0]) if has_scenarios else None,
        covariates=read_covariates(data.snapshots, covariates),
        wind=read_wind(data.snapshots),
    )
    names = (", ".join(data.input_layout.names), ", ".join(data.output_layout.names))
    training = TrainingSet(fire, smoke, groups, on_map, names)
    # In the wind frame the drought label is redundant: it only names a wind series.
    in_wind = replace(training, given=replace(on_map, labels=None))

    def fit(kind: str, settings: Settings) -> tuple[LiftedOperator, float]:
        frame = None if kind == "map" else _frame(data.snapshots, fields[0], on_map.wind, kind)
        return fit_lifted_operator(
            training if frame is None else in_wind,
            settings,
            threshold=threshold,
            frame=frame,
            resources=resources,
        )

    frame = settings.frame
    if frame == "auto":
        frame = "map"
        alike = ALIKE if on_map.labels is not None else ("hours",)
        is_map = fields[0].dims == ("y", "x")
        if is_map and own_winds(data.snapshots, groups, on_map.wind, alike):
            resources.progress("comparing frames")
            simple = replace(settings, own=settings.own.simplified())
            errors = {kind: fit(kind, simple)[1] for kind in ("map", "wind")}
            frame = "map" if errors["map"] < MAP_ADVANTAGE * errors["wind"] else "wind"
    operator, error = fit(frame, settings)
    record: dict[str, Any] = {} if signed else {"footprint_threshold": threshold}
    record |= {
        "scenarios": list(operator.labels),
        "frame": frame,
        "leave_out_error": error,
    }
    if getattr(settings.own, "correction", False):
        record["corrected"] = isinstance(operator.field_map, CorrectedMap)
    return LiftedFit(operator, record, SCENARIO if operator.labels else None, covariates)


def _group_numbers(data: TrainingMatrices, group_by: str) -> Array:
    """(M,) number of every snapshot's group; at least two groups."""
    groups = np.empty(data.inputs.shape[0], dtype=np.int64)
    rows_of = data.groups(group_by)
    for number, rows in enumerate(rows_of):
        groups[rows] = number
    if len(rows_of) < 2:
        raise PlumecastError(
            "this surrogate leaves fires out to choose its penalties; it needs at least 2 "
            f"'{group_by}', the training data has {len(rows_of)}; add fires, change --fractions or "
            "--seed of the split, or train on all of them with --all"
        )
    return groups


def _check_fields(data: TrainingMatrices) -> None:
    """Raise unless one field is mapped to one field on the same grid."""
    for kind, layout in (("input", data.input_layout), ("output", data.output_layout)):
        if len(layout.fields) > 1:
            raise PlumecastError(
                f"a surrogate with a lift has one {kind}, not {len(layout.fields)} "
                f"({', '.join(layout.names)}); use preset='paper-quadratic', or one surrogate each"
            )
    fields = (*data.input_layout.fields, *data.output_layout.fields)
    if (fields[0].shape, fields[0].dims) != (fields[1].shape, fields[1].dims):
        described = [
            f"{part.name} {tuple(zip(part.dims, part.shape, strict=True))}" for part in fields
        ]
        raise PlumecastError(
            "a surrogate with a lift maps one field to one on the same grid, not "
            + " and ".join(described)
            + "; regrid, or use preset='paper-quadratic'"
        )


def _labels(snapshots: xr.Dataset, count: int) -> Array | None:
    """(M,) scenario of every snapshot; None where there is no such coordinate."""
    if SCENARIO not in snapshots.variables:
        return None
    return np.broadcast_to(snapshots[SCENARIO].values.astype(str), (count,))


def _frame(snapshots: xr.Dataset, field: Field, wind: Array | None, kind: str) -> WindFrame:
    if field.dims[-2:] != ("y", "x") or len(field.shape) != 2:
        raise PlumecastError(
            f"frame '{kind}' needs fields on (y, x), not on {field.dims}; transpose them"
        )
    if wind is None:
        raise PlumecastError(
            f"frame '{kind}' needs the coordinates {' and '.join(WIND)} on every snapshot; use "
            f"frame 'map', or add the wind: {STATE_WIND}"
        )
    spacing = _spacing(snapshots, field)
    return fit_wind_frame(field.shape, spacing, wind, stretch=kind == "wind-stretch")


def _spacing(snapshots: xr.Dataset, field: Field) -> tuple[float, float]:
    """Size of a cell along y and x, negative if the axis descends; 1 without coordinates."""
    sizes = []
    for dim in field.dims:
        places = snapshots[dim].values if dim in snapshots.coords else np.empty(0)
        known = places.size > 1 and places.dtype.kind in "fi"
        sizes.append(float(np.mean(np.diff(places))) if known else 0.0)
    return (sizes[0], sizes[1]) if len(sizes) == 2 and all(sizes) else (1.0, 1.0)
