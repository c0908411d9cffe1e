"""Statistics of many fires: the request, partial sums over fires, and the labelled result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL, recorded_interval, smoke_comment
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE
from plumecast.base.version import __version__
from plumecast.data.layout import Field, grid_template
from plumecast.operators.coded.operator import CodedOperator
from plumecast.scores.field_statistics import QUANTILE_ERROR, CodeSums, FieldSums, quantile_fields
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.surrogate.surrogate import Surrogate


@dataclass(frozen=True, slots=True)
class Request:
    """The requested statistics of an ensemble."""

    thresholds: tuple[float, ...] = ()  # of smoke, in its unit
    quantiles: tuple[float, ...] = ()
    error: float = QUANTILE_ERROR  # largest relative error of the quantiles

    def __post_init__(self) -> None:
        wrong = [share for share in self.quantiles if not 0.0 < share < 1.0]
        if wrong:
            raise PlumecastError(f"quantile {wrong[0]:g} is not within (0, 1); 0.5 is the median")
        if any(not threshold >= 0.0 for threshold in self.thresholds):
            raise PlumecastError(f"thresholds {self.thresholds} must be ≥ 0")
        if not 1e-4 <= self.error <= 0.5:
            raise PlumecastError(f"a quantile error of {self.error:g} is not within 1e-4…0.5")


@dataclass(frozen=True, slots=True)
class EnsembleSums:
    """Partial sums over some fires; the sum of all parts gives the statistics."""

    fields: FieldSums | CodeSums
    fires: frozenset[str]  # names of the fires; empty if they have none

    def __add__(self, other: EnsembleSums) -> EnsembleSums:
        return EnsembleSums(self.fields + other.fields, self.fires | other.fires)  # type: ignore[operator]


def only_output(surrogate: Surrogate) -> Field:
    """The only output of a surrogate; raises if there are several."""
    if len(surrogate.outputs.fields) != 1:
        raise PlumecastError(
            "ensemble statistics need a surrogate with one output, this one has "
            f"{', '.join(surrogate.outputs.names)}"
        )
    return surrogate.outputs.fields[0]


def as_statistics(surrogate: Surrogate, total: EnsembleSums, request: Request) -> xr.Dataset:
    """The labelled statistics from the sums over all fires."""
    field = only_output(surrogate)
    sums = total.fields
    samples = len(total.fires) or sums.count
    if isinstance(sums, CodeSums):
        assert isinstance(surrogate.operator, CodedOperator)
        mean, variance = sums.moments(surrogate.operator.output_basis)
        found: dict[str, Any] = {}
    else:
        mean = sums.log / sums.count
        variance = np.maximum(sums.log_squares / sums.count - mean**2, 0.0)
        found = _distribution(sums, samples, field, request)
    error = np.sqrt(variance / samples)
    found |= {
        "mean_log_smoke": _on_grid(mean, field, "mean of ln(smoke + 1) over fires", "1"),
        "mean_log_smoke_error": _on_grid(error, field, "standard error of mean_log_smoke", "1"),
    }
    attrs = {
        "Conventions": "CF-1.11",
        "title": "Statistics of predicted smoke",
        "history": f"plumecast {__version__} ensemble",
        "fires": len(total.fires),
        "snapshots": sums.count,
        "trained_on": str(surrogate.training.get("data_version")),
    }
    given = {"threshold": list(request.thresholds), "quantile": list(request.quantiles)}
    coords = {
        name: (name, values, _axis_attrs(name, field)) for name, values in given.items() if values
    }
    made = xr.Dataset(found, coords=grid_template(field).coords, attrs=attrs).assign_coords(coords)
    return _with_meaning(made, field)


def _axis_attrs(name: str, field: Field) -> dict[str, str]:
    if name == "quantile":
        return {"long_name": "share of snapshots with less smoke", "units": "1"}
    return {"long_name": "threshold of smoke summed over checkpoints", "units": _unit(field)}


def _unit(field: Field) -> str:
    return str(field.attrs.get("units", "1")) if field.name != LOG_SMOKE else "ug m-3"


def _with_meaning(statistics: xr.Dataset, field: Field) -> xr.Dataset:
    """Say with every variable what smoke is, the interval between its checkpoints, and its CRS."""
    interval = recorded_interval(field.attrs)
    shared: dict[str, Any] = {}
    if field.name in (SMOKE, LOG_SMOKE):
        shared = {"comment": smoke_comment(interval)}
        shared |= {} if interval is None else {INTERVAL: interval}
    if "grid_mapping" in field.attrs:
        shared["grid_mapping"] = field.attrs["grid_mapping"]
    for item in statistics.data_vars.values():
        item.attrs |= shared
    return statistics


def _distribution(sums: FieldSums, samples: int, field: Field, request: Request) -> dict[str, Any]:
    unit = _unit(field)
    found = {
        "mean_smoke": _on_grid(
            sums.plain / sums.count, field, "mean over fires of smoke summed over checkpoints", unit
        )
    }
    if request.thresholds:
        share = sums.above / sums.count
        error = np.sqrt(share * (1.0 - share) / samples)
        what = "probability that smoke summed over checkpoints exceeds the threshold"
        found["exceedance"] = _on_grid(share, field, what, "1", "threshold")
        found["exceedance_error"] = _on_grid(
            error, field, "standard error of the exceedance", "1", "threshold"
        )
    if request.quantiles:
        values = quantile_fields(sums.bins, request.quantiles, request.error)
        found["smoke_quantile"] = _on_grid(
            values, field, "quantile of smoke summed over checkpoints", unit, "quantile"
        )
        found["smoke_quantile"][2]["relative_error"] = request.error
    return found


def _on_grid(
    values: np.ndarray, field: Field, long_name: str, units: str, *lead: str
) -> tuple[list[str], np.ndarray, dict[str, Any]]:
    shaped = values.reshape(*values.shape[: len(lead)], *field.shape)
    mapping = {key: value for key, value in field.attrs.items() if key == "grid_mapping"}
    return [*lead, *field.dims], shaped, {"long_name": long_name, "units": units, **mapping}
