"""Summaries of per-snapshot scores, some of which are undefined (NaN)."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from plumecast.compute.arrays import Array


def known_values(values: xr.DataArray | Array) -> np.ndarray:
    """The values that are not NaN, as a flat array."""
    array = np.asarray(values)
    found: np.ndarray = array[~np.isnan(array)]
    return found


def known_median(values: xr.DataArray | Array) -> float:
    """Median of the values that are not NaN; NaN where there are none.

    >>> known_median(np.array([1.0, np.nan, 3.0]))
    2.0
    """
    known = known_values(values)
    return float(np.median(known)) if known.size else math.nan
