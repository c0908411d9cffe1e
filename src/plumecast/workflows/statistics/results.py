"""The labelled statistics of many fires: on the grid, and at places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL, recorded_interval, smoke_comment
from plumecast.base.ignitions import one_ignition
from plumecast.base.names import SMOKE
from plumecast.base.version import __version__
from plumecast.compute.arrays import to_numpy
from plumecast.data.layout import Field, grid_template
from plumecast.operators.coded.operator import CodedOperator
from plumecast.scores.field_statistics import CodeSums, FieldSums, quantile_fields
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.scores.quantities import find_quantity
from plumecast.scores.sampling import quantiles_with_intervals
from plumecast.sources.places import Places
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.held_out.record import model_record
from plumecast.workflows.statistics.cell_sums import LEFT_OUT, EnsembleSums, TruthSums
from plumecast.workflows.statistics.estimates import (
    CALIBRATED,
    CORRECTED,
    ONE_IGNITION,
    SAMPLING,
    Corrected,
    Labelled,
    Means,
    estimate_variables,
    nested_shares,
    quantity_meaning,
)
from plumecast.workflows.statistics.point_table import OUTSIDE
from plumecast.workflows.statistics.request import Request, only_output
from plumecast.workflows.statistics.samples import PlaceSamples, place_means

PLACE = "place"

LOG, QUANTITY = 0, 1
"""Numbers of the statistics in the sums by cluster of `field_sums`; those of thresholds follow."""

Estimates: TypeAlias = dict[str, tuple[Corrected | list[Corrected], str, str]]
"""By name of the variable: a statistic, or one for each threshold; its meaning and its unit."""


def as_statistics(
    surrogate: Surrogate, total: EnsembleSums, request: Request, truth: TruthSums | None = None
) -> xr.Dataset:
    """The labelled statistics from the sums over all fires, corrected by those with true smoke."""
    field, sums = only_output(surrogate), total.fields
    names: Mapping[str, str] = {}
    if sums.clusters is not None:
        names = one_ignition(sums.clusters.clusters, total.copies)
        if request.statistics.independent:
            names = {name: name for name in names}
        sums = replace(sums, clusters=sums.clusters.joined(names))
    truth = None if truth is None else truth.joined()
    means, variance = _cell_means(surrogate, sums, request, truth)
    label = "mean of ln(smoke + 1) over fires"
    estimates: Estimates = {"mean_log_smoke": (means.of(LOG), label, "1")}
    if isinstance(sums, FieldSums):
        estimates |= _quantity_estimates(means, QUANTITY, request, field)
    made = _labelled(estimates, request)
    if sums.clusters is None:  # of fires without names no interval is known
        made = {name: made[name] for name in estimates}
    samples = len(total.fires) or sums.count
    for name, text in (("mean_log_smoke", "mean_log_smoke"), ("exceedance", "the exceedance")):
        if name not in estimates:
            continue
        best, (lead, mean, _) = estimates[name][0], made[name]
        error = np.sqrt((variance if name == "mean_log_smoke" else mean * (1.0 - mean)) / samples)
        if means.corrected:
            error = best.error if isinstance(best, Corrected) else np.stack([p.error for p in best])
        attrs = {"long_name": f"standard error of {text}", "units": "1"}
        made[f"{name}_error"] = lead, error, attrs
    if isinstance(sums, FieldSums) and request.quantiles:
        what, unit = quantity_meaning(request.quantity, field)
        precision = request.statistics.quantile_error
        values = quantile_fields(sums.bins, request.quantiles, precision)
        described = {"long_name": f"quantile of the {what}", "units": unit}
        made["smoke_quantile"] = ("quantile",), values, described | {"relative_error": precision}
    record: dict[str, Any] = {
        "Conventions": "CF-1.11",
        "title": "Statistics of predicted smoke",
        "history": f"plumecast {__version__} ensemble",
        "fires": len(total.fires),
        "snapshots": sums.count,
        "snapshots_beyond_training": total.beyond.noted,
        "trained_on": str(surrogate.training.get("data_version")),
        "quantity": request.quantity,
        **model_record(surrogate),
    }
    if sums.clusters is not None:
        record["ignitions"] = len(sums.clusters.clusters)
        record |= _interval_record(request, truth is not None, means.one)
    if truth is not None:
        record |= {"true_ignitions": truth.ignitions, LEFT_OUT: truth.left_out}
    return _on_grid(made, field, record, request)


def _cell_means(
    surrogate: Surrogate, sums: FieldSums | CodeSums, request: Request, truth: TruthSums | None
) -> tuple[Means, np.ndarray]:
    """The statistics of every cell, and the variance of ln(g + 1); codes are decoded linearly."""
    clusters = sums.clusters
    by_cluster = None if clusters is None else clusters.sums
    if isinstance(sums, CodeSums):
        assert isinstance(surrogate.operator, CodedOperator)
        basis = surrogate.operator.output_basis
        modes, offset = to_numpy(basis.modes), None if basis.mean is None else to_numpy(basis.mean)
        mean, variance = sums.moments(modes, offset)
        predicted, changes = [mean], None
        if clusters is not None:
            decoded = clusters.sums[:, LOG] @ modes
            decoded = decoded if offset is None else decoded + clusters.counts[:, None] * offset
            by_cluster = decoded[:, np.newaxis]
    else:
        predicted = [sums.log / sums.count, sums.plain / sums.count, *(sums.above / sums.count)]
        variance = np.maximum(sums.log_squares / sums.count - predicted[LOG] ** 2, 0.0)
        changes = sums.changes
    counts = np.array([sums.count]) if clusters is None else clusters.counts
    if by_cluster is None:  # fires without names are one cluster
        by_cluster = sums.count * np.stack(predicted)[np.newaxis]
    pairs = None
    if truth is not None and clusters is not None:
        pairs = truth.observed, truth.predicted
    ends = None
    if isinstance(sums, FieldSums) and sums.ends is not None and counts.size == 1:
        ends = {QUANTITY: sums.ends / sums.count}
    means = Means(
        by_cluster, counts, predicted, request.coverage, request.expected, changes, truth=pairs,
        ends=ends,
    )  # fmt: skip
    return means, variance


def _quantity_estimates(means: Means, first: int, request: Request, field: Field) -> Estimates:
    """The mean of the quantity, which is statistic `first`, and the shares above thresholds."""
    what, unit = quantity_meaning(request.quantity, field)
    made: Estimates = {"mean_smoke": (means.of(first), f"mean over fires of the {what}", unit)}
    if request.thresholds:
        shares = [
            means.of(first + 1 + number, share=True) for number in range(len(request.thresholds))
        ]
        label = f"probability that the {what} exceeds the threshold"
        made["exceedance"] = nested_shares(shares, request.thresholds), label, "1"
    return made


def _labelled(estimates: Estimates, request: Request) -> Labelled:
    """The variables of estimates with their intervals."""
    made: Labelled = {}
    for name, (best, label, unit) in estimates.items():
        made |= estimate_variables(best, name, label, unit, request.coverage)
    return made


def _interval_record(request: Request, truth: bool, one: bool) -> dict[str, Any]:
    """Attributes that say what intervals contain."""
    record: dict[str, Any] = {"coverage": request.coverage}
    if one:
        return record | {"intervals_contain": ONE_IGNITION}
    if request.expected is not None:
        record["calibration_ignitions"] = request.expected.groups
        return record | {"intervals_contain": CALIBRATED}
    return record | {"intervals_contain": CORRECTED if truth else SAMPLING}


def _on_grid(made: Labelled, field: Field, attrs: dict[str, Any], request: Request) -> xr.Dataset:
    """The variables on the grid, each with what smoke is and its coordinate system."""
    shared: dict[str, Any] = {}
    interval = recorded_interval(field.attrs) if request.interval is None else request.interval
    if field.name in (SMOKE, LOG_SMOKE):
        shared = {"comment": smoke_comment(interval)}
        shared |= {} if interval is None else {INTERVAL: interval}
    mapping = {name: field.attrs[name] for name in ("grid_mapping",) if name in field.attrs}
    plain = not find_quantity(request.quantity).needs_interval
    variables = {}
    for name, (lead, values, described) in made.items():
        shaped = values.reshape(*values.shape[: len(lead)], *field.shape)
        of_sum = shared if plain or name.startswith("mean_log") else {}
        variables[name] = ([*lead, *field.dims], shaped, described | of_sum | mapping)
    fields = xr.Dataset(variables, coords=grid_template(field).coords, attrs=attrs)
    return fields.assign_coords(_axis_coords(request, field))


def _axis_coords(request: Request, field: Field) -> dict[str, Any]:
    """The coordinates threshold and quantile, as far as they are asked for."""
    what, unit = quantity_meaning(request.quantity, field)
    axes = (
        ("threshold", request.thresholds, f"threshold of the {what}", unit),
        ("quantile", request.quantiles, "share of snapshots with less smoke", "1"),
    )
    return {
        name: (name, list(values), {"long_name": text, "units": units})
        for name, values, text, units in axes
        if values
    }


def place_statistics(
    surrogate: Surrogate,
    places: Places,
    samples: PlaceSamples,
    request: Request,
    truth: tuple[PlaceSamples, PlaceSamples] | None = None,
) -> xr.Dataset:
    """The labelled statistics of samples at places; `truth` has true and predicted samples."""
    field = only_output(surrogate)
    means = place_means(samples, request, truth)
    what, unit = quantity_meaning(request.quantity, field)
    made = _labelled(_quantity_estimates(means, 0, request, field), request)
    if request.quantiles:
        made |= _quantiles(samples, request, f"quantile of the {what}", unit)
    variables = {name: ((*lead, PLACE), v, attrs) for name, (lead, v, attrs) in made.items()}
    variables |= _exposure(places, means, request, what, unit)
    attrs: dict[str, Any] = {
        "title": "Smoke at places",
        "history": f"plumecast {__version__}",
        "places": places.source,
        "fires": int(np.unique(samples.fires).size),
        "snapshots": int(means.counts.sum()),
        "ignitions": int(means.counts.size),
        "quantity": request.quantity,
        "units": unit,
        **_interval_record(request, truth is not None, means.one),
        **model_record(surrogate),
    }
    if places.outside:
        attrs[OUTSIDE] = list(places.outside)
    if truth is not None:
        attrs["true_ignitions"] = int(np.unique(truth[0].ignitions).size)
    coords = {PLACE: list(places.names)} | _axis_coords(request, field)
    coords |= {name: (PLACE, numbers) for name, numbers in places.numbers.items()}
    for axis, index in {"x": places.columns, "y": places.rows}.items():
        if axis in surrogate.grid.coords:
            described = {"long_name": f"{axis} of the cell", "units": "m"}
            coords[f"cell_{axis}"] = PLACE, surrogate.grid[axis].values[index], described
    if places.counties:
        coords["county"] = PLACE, list(places.counties), {"long_name": "county"}
    if places.plane is not None:
        for axis, values in zip("xy", places.plane.T, strict=True):
            described = {"long_name": f"{axis} of the place", "units": "m"}
            coords[f"place_{axis}"] = PLACE, values, described
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def _quantiles(samples: PlaceSamples, request: Request, label: str, unit: str) -> Labelled:
    values = samples.quantity(request.quantity, request.interval)
    _, index = np.unique(samples.ignitions, return_inverse=True)
    parts = quantiles_with_intervals(values, index, request.quantiles, request.coverage)
    words = ("", "lower end of the ", "upper end of the ")
    named = zip(("", "_lower", "_upper"), words, parts, strict=True)
    return {
        f"smoke_quantile{ending}": (
            ("quantile",),
            part,
            {"long_name": f"{prefix}{label}", "units": unit, "comment": "of the predictions"},
        )
        for ending, prefix, part in named
    }


def _exposure(places: Places, means: Means, request: Request, what: str, unit: str) -> Labelled:
    """Population-weighted mean and persons above thresholds; nothing without a population.

    Places without a number have no population.
    """
    population = places.numbers.get("population")
    if population is None or not np.nansum(population) > 0.0:
        return {}
    persons = np.nan_to_num(population)
    total = float(persons.sum())
    weighted = replace(means, weights=persons / total)
    label = f"population-weighted mean over fires of the {what}"
    estimates: Estimates = {"exposure": (weighted.of(0), label, unit)}
    if request.thresholds:
        shares = [weighted.of(1 + number, share=True) for number in range(len(request.thresholds))]
        label = f"mean number of persons where the {what} exceeds the threshold"
        estimates["persons_above"] = shares, label, "1"
    made = _labelled(estimates, request)
    for ending in ("", "_lower", "_upper", "_surrogate"):
        if (name := f"persons_above{ending}") in made:
            lead, values, attrs = made[name]
            made[name] = lead, values * total, attrs
    return made
