"""The optical-depth proxy ln(g + 1), and three estimates of its mean over fires."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.compute.arrays import Array

LOG_SMOKE = "log_smoke"

_Fields = TypeVar("_Fields", xr.DataArray, np.ndarray)


def log_smoke(smoke: _Fields) -> _Fields:
    """ln(g + 1), g in µg m⁻³; zero where there is no smoke."""
    if isinstance(smoke, xr.DataArray):
        out = xr.DataArray(np.log1p(smoke))
        kept = {name: value for name, value in smoke.attrs.items() if name == INTERVAL}
        return out.rename(LOG_SMOKE).assign_attrs(units="1", long_name="ln(smoke + 1)", **kept)
    logarithm: np.ndarray = np.log1p(smoke)
    return logarithm


def with_log_smoke(snapshots: xr.Dataset) -> xr.Dataset:
    """The snapshots with ln(g + 1) added, for training with `outputs="log_smoke"`."""
    return snapshots.assign({LOG_SMOKE: log_smoke(snapshots[SMOKE])})


def mean_log_smoke(smoke: _Fields) -> _Fields:
    """Monte Carlo estimate of Q = E[ln(g + 1)]: the mean over the snapshots, a field."""
    if isinstance(smoke, xr.DataArray):
        return log_smoke(smoke).mean(SNAPSHOT, keep_attrs=True)
    mean: np.ndarray = log_smoke(smoke).mean(axis=0)
    return mean


def operator_mean_log_smoke(surrogate: Any, fires: xr.Dataset) -> xr.DataArray:
    """Operator estimate of Q: the mean prediction, over all fires, of a surrogate for ln(g + 1)."""
    if surrogate.outputs.names != (LOG_SMOKE,):
        raise PlumecastError(
            f"this surrogate predicts {', '.join(surrogate.outputs.names)}; "
            f"train one with outputs='{LOG_SMOKE}'"
        )
    predicted: xr.DataArray = surrogate.predict(fires)
    return predicted.mean(SNAPSHOT, keep_attrs=True)


def reduced_mean_log_smoke(basis: Any, smoke: Array) -> Array:
    """Reduced Monte Carlo estimate of Q: the mean of ln(g + 1) projected on a `Basis`.

    `smoke` is (M, N); the projection is linear, so it is applied to the mean.
    """
    mean = np.mean(np.log1p(np.asarray(smoke, dtype=np.float64)), axis=0, keepdims=True)
    projected: Array = basis.decode(basis.encode(mean))[0]
    return projected
