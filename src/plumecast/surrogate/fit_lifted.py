"""Fit surrogates with a lift and targets: scenarios, covariates and the frame from the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import field_blocks
from plumecast.data.covariates import (
    ALIKE,
    SCENARIO,
    WIND,
    Covariate,
    fit_covariates,
    own_winds,
    read_covariates,
    read_wind,
)
from plumecast.data.layout import Field
from plumecast.operators.coded.memory import Placement
from plumecast.operators.fields.wind_frame import WindFrame, fit_wind_frame
from plumecast.operators.lifted import Conditions, PlumeChoices, PlumeOperator, fit_plume_operator
from plumecast.operators.settings import Settings
from plumecast.scores.footprint import smoke_threshold

CLEARLY = 0.8
"""Where winds differ, fields are turned unless the map's left-out error is below this share of the
turned one's: with a handful of fires the comparison is noise, and the physics is known."""


@dataclass(frozen=True, slots=True)
class PlumeFit:
    """A fitted operator with what its predictions need from the labels."""

    operator: PlumeOperator
    chosen: dict[str, Any]
    scenario: str | None
    covariates: tuple[Covariate, ...]


@dataclass(frozen=True, slots=True)
class PlumeData:
    """Training snapshots on their grid."""

    snapshots: xr.Dataset
    fields: tuple[Field, ...]
    fire: Array  # (M, *grid), as the next an array or what gives one of some rows
    smoke: Array  # (M, *grid)
    groups: Array  # (M,)

    def __post_init__(self) -> None:
        fields = self.fields
        same = len(fields) == 2 and (fields[0].shape, fields[0].dims) == (
            fields[1].shape,
            fields[1].dims,
        )
        if not same:
            told = [
                f"{part.name} {tuple(zip(part.dims, part.shape, strict=True))}" for part in fields
            ]
            raise PlumecastError(
                "a surrogate with a lift maps one field to one on the same grid, not "
                + " and ".join(told)
            )
        lowest = min(float(self.smoke[rows].min()) for rows in field_blocks(self.smoke))
        if lowest < 0.0:
            raise PlumecastError(
                f"a surrogate with a lift needs an output that is never negative; "
                f"'{fields[1].name}' goes down to {lowest:g}; choose another preset"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid."""
        return self.fields[0].shape

    def labels(self) -> Array | None:
        """(M,) scenario of every snapshot; None where the snapshots do not say."""
        if SCENARIO not in self.snapshots.variables:
            return None
        labels = self.snapshots[SCENARIO].values.astype(str)
        return np.broadcast_to(labels, (self.fire.shape[0],))

    def spacing(self) -> tuple[float, float]:
        """Size of a cell along y and x, negative where the axis descends; 1 where the grid does
        not say."""
        sizes = []
        for dim in self.fields[0].dims:
            places = self.snapshots[dim].values if dim in self.snapshots.coords else np.empty(0)
            known = places.size > 1 and places.dtype.kind in "fi"
            sizes.append(float(np.mean(np.diff(places))) if known else 0.0)
        return (sizes[0], sizes[1]) if len(sizes) == 2 and all(sizes) else (1.0, 1.0)


def fit_plume(
    data: PlumeData,
    settings: Settings,
    choices: PlumeChoices,
    place: Placement,
    progress: Callable[[str], None],
) -> PlumeFit:
    """Fit one operator for all droughts, each with weights of its own; with frame "auto", the one
    of map and wind with the smaller error on fires that were left out."""
    threshold = smoke_threshold(data.smoke)
    covariates = fit_covariates(data.snapshots, settings.covariates)
    told = Conditions(
        labels=data.labels() if settings.family != "coded" else None,
        covariates=read_covariates(data.snapshots, covariates),
        wind=read_wind(data.snapshots),
    )

    def fit(
        frame: WindFrame | None, given: Conditions, choices: PlumeChoices = choices
    ) -> tuple[PlumeOperator, float]:
        return fit_plume_operator(
            data.fire,
            data.smoke,
            data.groups,
            given,
            threshold=threshold,
            choices=choices,
            frame=frame,
            limit=place.limit,
            put=place.device.put,
            progress=progress,
        )

    # In the frame of the wind, what a drought's weather is called says nothing more.
    turned = replace(told, labels=None)
    chosen = settings.frame
    if chosen == "auto":
        chosen = "map"
        alike = ALIKE if told.labels is not None else ("hours",)
        on_map = data.fields[0].dims == ("y", "x")
        if on_map and own_winds(data.snapshots, data.groups, told.wind, alike):
            progress("comparing frames")
            frame = _frame(data, told.wind, "wind")
            quick = replace(choices, layers=1, correction=False)
            errors = fit(None, told, quick)[1], fit(frame, turned, quick)[1]
            chosen = "map" if errors[0] < CLEARLY * errors[1] else "wind"
    if chosen == "map":
        operator, error = fit(None, told)
    else:
        operator, error = fit(_frame(data, told.wind, chosen), turned)
    record = {
        "footprint_threshold": threshold,
        "scenarios": list(operator.labels),
        "frame": chosen,
        "leave_out_error": error,
    }
    if settings.correction:
        record["corrected"] = operator.correction is not None
    scenario = SCENARIO if operator.labels else None
    return PlumeFit(operator, record, scenario, covariates)


def _frame(data: PlumeData, wind: Array | None, kind: str) -> WindFrame:
    if data.fields[0].dims[-2:] != ("y", "x") or len(data.shape) != 2:
        raise PlumecastError(
            f"frame '{kind}' needs fields on (y, x), not on {data.fields[0].dims}; transpose them"
        )
    if wind is None:
        raise PlumecastError(
            f"frame '{kind}' needs the coordinates {' and '.join(WIND)} on every snapshot; leave "
            "it out, or add them"
        )
    return fit_wind_frame(data.shape, data.spacing(), wind, stretch=kind == "wind-stretch")
