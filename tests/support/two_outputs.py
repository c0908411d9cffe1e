"""Snapshots with a further output: smoke in the lowest layer, of another shape than the column."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.ndimage import gaussian_filter

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.names import LEVEL, LOWEST, SURFACE_SMOKE, TABLE


def add_surface(snapshots: xr.Dataset) -> xr.Dataset:
    """Snapshots with surface smoke: ten times the column's, and nearer to the fire."""
    smoke = snapshots.smoke.values.astype(np.float64)
    blurred = gaussian_filter(np.sqrt(smoke * 4.0), (0, 0.5, 0.5))
    surface = np.where(blurred < 0.05, 0.0, 10.0 * blurred).astype(snapshots.smoke.dtype)
    kept = {name: value for name, value in snapshots.smoke.attrs.items() if name == INTERVAL}
    attrs = {**TABLE[SURFACE_SMOKE].attrs, LEVEL: LOWEST, **kept}
    return snapshots.assign({SURFACE_SMOKE: (snapshots.smoke.dims, surface, attrs)})
