"""Statistics of many fires on the grid: partial sums over fires, and the labelled result."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from plumecast.scores.sampling import sums_mean
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.extrapolation import Extrapolation
from plumecast.workflows.held_out.record import model_record
from plumecast.workflows.statistics.estimates import (
    Cheap,
    Corrected,
    PairedSums,
    cheap_mean,
    corrected_mean,
    corrected_share,
    nested_shares,
    what_intervals_contain,
)
from plumecast.workflows.statistics.labels import Labelled, interval_variables, quantity_meaning
from plumecast.workflows.statistics.request import Request
from plumecast.workflows.statistics.smoke import only_output
from plumecast.workflows.statistics.truth import TruthSums

LOG, QUANTITY, FIRST_THRESHOLD = 0, 1, 2
"""Numbers of the statistics in the sums by cluster of `field_sums`."""


@dataclass(frozen=True, slots=True)
class EnsembleSums:
    """Partial sums over some fires; the sum of all parts gives the statistics."""

    fields: FieldSums | CodeSums
    fires: frozenset[str]  # names of the fires; empty if they have none
    beyond: Extrapolation = field(default_factory=Extrapolation)

    def __add__(self, other: EnsembleSums) -> EnsembleSums:
        fields = self.fields + other.fields  # type: ignore[operator]
        return EnsembleSums(fields, self.fires | other.fires, self.beyond + other.beyond)


def as_statistics(
    surrogate: Surrogate, total: EnsembleSums, request: Request, truth: TruthSums | None = None
) -> xr.Dataset:
    """The labelled statistics from the sums over all fires, corrected by those with true smoke."""
    field, sums = only_output(surrogate), total.fields
    samples = len(total.fires) or sums.count
    if isinstance(sums, CodeSums):
        mean, variance = sums.moments(*_decoder(surrogate))
        found: Labelled = {}
    else:
        mean = sums.log / sums.count
        variance = np.maximum(sums.log_squares / sums.count - mean**2, 0.0)
        found = _distribution(sums, samples, field, request, truth)
    what = "mean of ln(smoke + 1) over fires"
    made = {
        "mean_log_smoke": (mean, what),
        "mean_log_smoke_error": (np.sqrt(variance / samples), ""),
    }
    log = _log_estimate(surrogate, sums, request, truth)
    if log is not None:
        if truth is not None or log.calibrated:
            made["mean_log_smoke"] = (log.mean, what)
            made["mean_log_smoke_error"] = (log.error, "")
        found |= interval_variables(log, "mean_log_smoke", what, "1", request.coverage)
    found["mean_log_smoke"] = ((), made["mean_log_smoke"][0], {"long_name": what, "units": "1"})
    found["mean_log_smoke_error"] = (
        (),
        made["mean_log_smoke_error"][0],
        {"long_name": "standard error of mean_log_smoke", "units": "1"},
    )
    return _on_grid(found, field, _attrs(surrogate, total, request, truth), request)


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
        attrs["training_ignitions_left_out"] = truth.left_out
    return attrs


def _log_estimate(
    surrogate: Surrogate, sums: FieldSums | CodeSums, request: Request, truth: TruthSums | None
) -> Corrected | None:
    """The mean of ln(g + 1); codes by cluster are decoded, which is linear."""
    clusters = sums.clusters
    if clusters is None:
        return None
    if not isinstance(sums, CodeSums):
        cheap = _cheap(sums, LOG, sums.log / sums.count, request)
    else:
        modes, offset = _decoder(surrogate)
        decoded = clusters.sums[:, LOG] @ modes
        if offset is not None:
            decoded = decoded + clusters.counts[:, None] * offset
        found = sums_mean(decoded, clusters.counts)
        cheap = cheap_mean(found, found.mean, clusters=clusters.counts.size, samples=sums.count)
    return corrected_mean(cheap, _paired(truth, LOG), request.coverage)


def _decoder(surrogate: Surrogate) -> tuple[np.ndarray, np.ndarray | None]:
    """Modes and mean of the output basis of a surrogate whose mean codes are decoded."""
    assert isinstance(surrogate.operator, CodedOperator)
    basis = surrogate.operator.output_basis
    return to_numpy(basis.modes), None if basis.mean is None else to_numpy(basis.mean)


def _cheap(sums: FieldSums, number: int, predicted: np.ndarray, request: Request) -> Cheap:
    """The mean of one of the statistics over the fires without true smoke."""
    assert sums.clusters is not None
    return cheap_mean(
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
        cheap = _cheap(sums, QUANTITY, mean, request)
        best = corrected_mean(cheap, _paired(truth, QUANTITY), request.coverage)
        mean = best.mean if truth is not None or best.calibrated else mean
        label = f"mean over fires of the {what}"
        found |= interval_variables(best, "mean_smoke", label, unit, request.coverage)
    found["mean_smoke"] = ((), mean, {"long_name": f"mean over fires of the {what}", "units": unit})
    if request.thresholds:
        found |= _exceedances(sums, samples, what, request, truth)
    if request.quantiles:
        values = quantile_fields(sums.bins, request.quantiles, request.error)
        attrs = {"long_name": f"quantile of the {what}", "units": unit}
        found["smoke_quantile"] = (("quantile",), values, attrs | {"relative_error": request.error})
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
                _cheap(sums, FIRST_THRESHOLD + i, share[i], request),
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
