"""Smoke as a quantity by the factors of its snapshots, whatever their fires have later."""

from __future__ import annotations

import xarray as xr

import plumecast as pc
from plumecast.scores.quantities import quantity_factors
from plumecast.surrogate.guards import EXTRAPOLATES
from plumecast.workflows.predict import predict_fires


def settled(surrogate: pc.Surrogate, fires: xr.Dataset) -> xr.DataArray:
    """The first output as `plumecast predict` writes it: smoke never falls within a fire."""
    made = predict_fires(surrogate, fires, notify=lambda notice: None)
    return made[surrogate.outputs.names[0]].drop_vars(EXTRAPOLATES)


def time_mean(smoke: xr.DataArray, like: xr.DataArray | None = None) -> xr.DataArray:
    """Time means of predicted sums; or of others, by the factors of predicted sums `like`."""
    factors = quantity_factors(smoke, smoke if like is None else like, "mean")
    return smoke * xr.DataArray(factors, dims="snapshot")
