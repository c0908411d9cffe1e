"""Surrogates with a calibration made by hand: quick, and with a known error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

import plumecast as pc
from plumecast.surrogate.error_bars.calibration import make_calibration
from plumecast.surrogate.error_bars.counting import CellBins, make_edges


def calibrate(surrogate: pc.Surrogate, fires: xr.Dataset, *, tau: float = 0.05) -> pc.Surrogate:
    """A surrogate with the calibration on fires with true smoke, by ignition."""
    predicted = np.maximum(surrogate.predict(fires).values, 0.0).reshape(
        fires.sizes["snapshot"], -1
    )
    observed = fires.smoke.values.reshape(predicted.shape)
    bins = CellBins("ignition_id", tau, make_edges(tau, float(observed.max())), detects=False)
    cells = bins.count(fires, predicted, predicted, observed)
    return replace(surrogate, error_bars=make_calibration(cells))
