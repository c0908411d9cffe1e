"""Smoke as a quantity by the factors of its snapshots, whatever their fires have later."""

from __future__ import annotations

import xarray as xr

from plumecast.scores.quantities import quantity_factors


def time_mean(smoke: xr.DataArray, like: xr.DataArray | None = None) -> xr.DataArray:
    """Time means of predicted sums; or of others, by the factors of predicted sums `like`."""
    factors = quantity_factors(smoke, smoke if like is None else like, "mean")
    return smoke * xr.DataArray(factors, dims="snapshot")
