"""The labelled statistics of many fires: on the grid, and at places."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL, recorded_interval, smoke_comment
from plumecast.base.names import SMOKE
from plumecast.base.version import __version__
from plumecast.compute.arrays import to_numpy
from plumecast.data.layout import Field, grid_template
from plumecast.operators.coded.operator import CodedOperator
from plumecast.scores.field_statistics import CodeSums, FieldSums, quantile_fields
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.scores.quantities import find_quantity
from plumecast.scores.sampling import quantiles_with_intervals, sums_mean
from plumecast.sources.places import Places
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.held_out.record import model_record
from plumecast.workflows.statistics.cell_sums import LEFT_OUT, EnsembleSums, TruthSums
from plumecast.workflows.statistics.estimates import (
    Corrected,
    Labelled,
    PairedSums,
    SurrogateMean,
    corrected_mean,
    corrected_share,
    interval_variables,
    nested_shares,
    quantity_meaning,
    surrogate_mean,
    what_intervals_contain,
)
from plumecast.workflows.statistics.request import Request, only_output
from plumecast.workflows.statistics.samples import PlaceSamples, PlaceSums, place_sums

PLACE = "place"

LOG, QUANTITY, FIRST_THRESHOLD = 0, 1, 2
"""Numbers of the statistics in the sums by cluster of `field_sums`."""


def as_statistics(
    surrogate: Surrogate, total: EnsembleSums, request: Request, truth: TruthSums | None = None
) -> xr.Dataset:
    """The labelled statistics from the sums over all fires, corrected by those with true smoke."""
    field, sums = only_output(surrogate), total.fields
    samples = len(total.fires) or sums.count
    if isinstance(sums, CodeSums):
        mean, variance = sums.moments(*_decoder(surrogate))
        made: Labelled = {}
    else:
        mean = sums.log / sums.count
        variance = np.maximum(sums.log_squares / sums.count - mean**2, 0.0)
        made = _distribution(sums, samples, field, request, truth)
    error = np.sqrt(variance / samples)
    what = "mean of ln(smoke + 1) over fires"
    log = _log_estimate(surrogate, sums, request, truth)
    if log is not None:
        if truth is not None or log.calibrated:
            mean, error = log.mean, log.error
        made |= interval_variables(log, "mean_log_smoke", what, "1", request.coverage)
    made["mean_log_smoke"] = ((), mean, {"long_name": what, "units": "1"})
    attrs = {"long_name": "standard error of mean_log_smoke", "units": "1"}
    made["mean_log_smoke_error"] = ((), error, attrs)
    return _on_grid(made, field, _attrs(surrogate, total, request, truth), request)


def _attrs(
    surrogate: Surrogate, total: EnsembleSums, request: Request, truth: TruthSums | None
) -> dict[str, Any]:
    clusters = total.fields.clusters
    attrs = {
        "Conventions": "CF-1.11",
        "title": "Statistics of predicted smoke",
        "history": f"plumecast {__version__} ensemble",
        "fires": len(total.fires),
        "snapshots": total.fields.count,
        "snapshots_beyond_training": total.beyond.noted,
        "trained_on": str(surrogate.training.get("data_version")),
        "quantity": request.quantity,
        **model_record(surrogate),
    }
    if clusters is not None:
        attrs |= {"ignitions": len(clusters.clusters), "coverage": request.coverage}
        attrs["intervals_contain"] = what_intervals_contain(
            truth=truth is not None, expected=request.expected
        )
        if request.expected is not None:
            attrs["calibration_ignitions"] = request.expected.groups
    if truth is not None:
        attrs["true_ignitions"] = truth.ignitions
        attrs[LEFT_OUT] = truth.left_out
    return attrs


def _log_estimate(
    surrogate: Surrogate, sums: FieldSums | CodeSums, request: Request, truth: TruthSums | None
) -> Corrected | None:
    """The mean of ln(g + 1); codes by cluster are decoded, which is linear."""
    clusters = sums.clusters
    if clusters is None:
        return None
    if not isinstance(sums, CodeSums):
        predictions = _predictions(sums, LOG, sums.log / sums.count, request)
    else:
        modes, offset = _decoder(surrogate)
        decoded = clusters.sums[:, LOG] @ modes
        if offset is not None:
            decoded = decoded + clusters.counts[:, None] * offset
        mean = sums_mean(decoded, clusters.counts)
        predictions = surrogate_mean(
            mean, mean.mean, clusters=clusters.counts.size, samples=sums.count
        )
    return corrected_mean(predictions, _paired(truth, LOG), request.coverage)


def _decoder(surrogate: Surrogate) -> tuple[np.ndarray, np.ndarray | None]:
    """Modes and mean of the output basis of a surrogate whose mean codes are decoded."""
    assert isinstance(surrogate.operator, CodedOperator)
    basis = surrogate.operator.output_basis
    return to_numpy(basis.modes), None if basis.mean is None else to_numpy(basis.mean)


def _predictions(
    sums: FieldSums, number: int, predicted: np.ndarray, request: Request
) -> SurrogateMean:
    """The mean of one of the statistics over the fires without true smoke."""
    assert sums.clusters is not None
    return surrogate_mean(
        sums.clusters.estimate(number),
        predicted,
        clusters=sums.clusters.counts.size,
        samples=sums.count,
        changes=None if sums.changes is None else sums.changes[number],
        expected=request.expected,
    )


def _paired(truth: TruthSums | None, number: int) -> PairedSums | None:
    if truth is None:
        return None
    observed, predicted = truth.observed, truth.predicted
    return PairedSums(observed.sums[:, number], predicted.sums[:, number], observed.counts)


def _distribution(
    sums: FieldSums,
    samples: int,
    field: Field,
    request: Request,
    truth: TruthSums | None,
) -> Labelled:
    """Mean, exceedance probabilities and quantiles of the quantity."""
    what, unit = quantity_meaning(request.quantity, field)
    mean = sums.plain / sums.count
    found: Labelled = {}
    if sums.clusters is not None:
        predictions = _predictions(sums, QUANTITY, mean, request)
        best = corrected_mean(predictions, _paired(truth, QUANTITY), request.coverage)
        mean = best.mean if truth is not None or best.calibrated else mean
        label = f"mean over fires of the {what}"
        found |= interval_variables(best, "mean_smoke", label, unit, request.coverage)
    found["mean_smoke"] = ((), mean, {"long_name": f"mean over fires of the {what}", "units": unit})
    if request.thresholds:
        found |= _exceedances(sums, samples, what, request, truth)
    if request.quantiles:
        values = quantile_fields(sums.bins, request.quantiles, request.statistics.quantile_error)
        attrs = {"long_name": f"quantile of the {what}", "units": unit}
        found["smoke_quantile"] = (
            ("quantile",),
            values,
            attrs | {"relative_error": request.statistics.quantile_error},
        )
    return found


def _exceedances(
    sums: FieldSums, samples: int, what: str, request: Request, truth: TruthSums | None
) -> Labelled:
    label = f"probability that the {what} exceeds the threshold"
    share = sums.above / sums.count
    error = np.sqrt(share * (1.0 - share) / samples)
    found: Labelled = {}
    if sums.clusters is not None:
        parts = [
            corrected_share(
                _predictions(sums, FIRST_THRESHOLD + i, share[i], request),
                _paired(truth, FIRST_THRESHOLD + i),
                request.coverage,
            )
            for i in range(len(request.thresholds))
        ]
        parts = nested_shares(parts, request.thresholds)
        if truth is not None or parts[0].calibrated:
            share, error = (np.stack([getattr(p, n) for p in parts]) for n in ("mean", "error"))
        found |= interval_variables(
            parts, "exceedance", label, "1", request.coverage, lead=("threshold",)
        )
    lead = ("threshold",)
    found["exceedance"] = (lead, share, {"long_name": label, "units": "1"})
    attrs = {"long_name": "standard error of the exceedance", "units": "1"}
    found["exceedance_error"] = (lead, error, attrs)
    return found


def _on_grid(found: Labelled, field: Field, attrs: dict[str, Any], request: Request) -> xr.Dataset:
    """The variables on the grid, each with what smoke is and its coordinate system."""
    shared: dict[str, Any] = {}
    interval = recorded_interval(field.attrs) if request.interval is None else request.interval
    if field.name in (SMOKE, LOG_SMOKE):
        shared = {"comment": smoke_comment(interval)}
        shared |= {} if interval is None else {INTERVAL: interval}
    if "grid_mapping" in field.attrs:
        shared["grid_mapping"] = field.attrs["grid_mapping"]
    plain = not find_quantity(request.quantity).needs_interval
    variables = {}
    for name, (lead, values, own) in found.items():
        shaped = values.reshape(*values.shape[: len(lead)], *field.shape)
        of_sum = plain or name.startswith("mean_log")
        kept = {k: v for k, v in shared.items() if of_sum or k == "grid_mapping"}
        variables[name] = ([*lead, *field.dims], shaped, own | kept)
    made = xr.Dataset(variables, coords=grid_template(field).coords, attrs=attrs)
    return made.assign_coords(axis_coords(request, field))


def axis_coords(request: Request, field: Field) -> dict[str, Any]:
    """The coordinates threshold and quantile, as far as they are asked for."""
    what, unit = quantity_meaning(request.quantity, field)
    given = {
        "threshold": (request.thresholds, {"long_name": f"threshold of the {what}", "units": unit}),
        "quantile": (
            request.quantiles,
            {"long_name": "share of snapshots with less smoke", "units": "1"},
        ),
    }
    return {name: (name, list(values), attrs) for name, (values, attrs) in given.items() if values}


def place_statistics(
    surrogate: Surrogate,
    places: Places,
    samples: PlaceSamples,
    request: Request,
    truth: tuple[PlaceSamples, PlaceSamples] | None = None,
) -> xr.Dataset:
    """The labelled statistics of samples at places; `truth` has true and predicted samples."""
    field = only_output(surrogate)
    sums = place_sums(samples, request, truth)
    what, unit = quantity_meaning(request.quantity, field)
    share = request.coverage
    best = corrected_mean(*sums.of(0), share)
    found = _with_estimate(best, "mean_smoke", f"mean over fires of the {what}", unit, share)
    if request.thresholds:
        label = f"probability that the {what} exceeds the threshold"
        count = len(request.thresholds)
        parts = [corrected_share(*sums.of(1 + number), share) for number in range(count)]
        parts = nested_shares(parts, request.thresholds)
        found |= _with_estimate(parts, "exceedance", label, "1", share, lead=("threshold",))
    if request.quantiles:
        found |= _quantiles(samples, request, f"quantile of the {what}", unit)
    variables = {name: ((*lead, PLACE), v, attrs) for name, (lead, v, attrs) in found.items()}
    variables |= _exposure(places, sums, request, what, unit)
    attrs: dict[str, Any] = {
        "title": "Smoke at places",
        "history": f"plumecast {__version__}",
        "places": places.source,
        "fires": int(np.unique(samples.fires).size),
        "snapshots": sums.samples,
        "ignitions": int(sums.counts.size),
        "quantity": request.quantity,
        "units": unit,
        "coverage": share,
        "intervals_contain": what_intervals_contain(
            truth=truth is not None, expected=request.expected
        ),
        **model_record(surrogate),
    }
    if request.expected is not None:
        attrs["calibration_ignitions"] = request.expected.groups
    if truth is not None:
        attrs["true_ignitions"] = int(np.unique(truth[0].ignitions).size)
    coords = {PLACE: list(places.names)} | axis_coords(request, field)
    coords |= {name: (PLACE, numbers) for name, numbers in places.numbers.items()}
    coords |= _cell_centres(surrogate, places)
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def _cell_centres(surrogate: Surrogate, places: Places) -> dict[str, Any]:
    """Where the cells of the places lie on the grid, if it has x and y."""
    grid, index = surrogate.grid, {"x": places.columns, "y": places.rows}
    return {
        f"cell_{axis}": (
            PLACE, grid[axis].values[at], {"long_name": f"{axis} of the cell", "units": "m"}
        )
        for axis, at in index.items()
        if axis in grid.coords
    }  # fmt: skip


def _with_estimate(
    found: Corrected | list[Corrected],
    name: str,
    label: str,
    unit: str,
    coverage: float,
    *,
    lead: tuple[str, ...] = (),
) -> Labelled:
    values = found.mean if isinstance(found, Corrected) else np.stack([p.mean for p in found])
    own: Labelled = {name: (lead, values, {"long_name": label, "units": unit})}
    return own | interval_variables(found, name, label, unit, coverage, lead=lead)


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


def _exposure(
    places: Places, sums: PlaceSums, request: Request, what: str, unit: str
) -> dict[str, Any]:
    """Population-weighted mean and persons above thresholds; nothing without a population.

    Sums over places are taken before the variance, so that places under one plume are not taken
    for independent. Places without a number have no population.
    """
    population = places.numbers.get("population")
    if population is None or not np.nansum(population) > 0.0:
        return {}
    persons = np.nan_to_num(population)
    total, share = float(persons.sum()), request.coverage
    best = corrected_mean(*sums.of(0, persons / total), share)
    found = _with_estimate(
        best, "exposure", f"population-weighted mean over fires of the {what}", unit, share
    )
    if request.thresholds:
        count = len(request.thresholds)
        parts = [
            corrected_share(*sums.of(1 + number, persons / total), share) for number in range(count)
        ]
        label = f"mean number of persons where the {what} exceeds the threshold"
        more = _with_estimate(parts, "persons_above", label, "1", share, lead=("threshold",))
        for ending in ("", "_lower", "_upper", "_surrogate"):
            if (name := f"persons_above{ending}") in more:
                lead, shares, attrs = more[name]
                more[name] = (lead, shares * total, attrs)
        found |= more
    return {name: (lead, values, attrs) for name, (lead, values, attrs) in found.items()}
