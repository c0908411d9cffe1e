"""Discs whose smoke is one convolution of their age, for tests of equivariant operators."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.signal import fftconvolve

from support.snapshots import labelled

GRID = (16, 20)


def fires(count: int, seed: int = 0) -> np.ndarray:
    """Discs of random place, size and age, away from the edges."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: GRID[0], : GRID[1]]
    out = np.zeros((count, *GRID), dtype=np.float32)
    for field in out:
        row, column, radius = rng.uniform(5, 8), rng.uniform(3, 8), rng.uniform(1.0, 3.0)
        distance = np.hypot(y - row, x - column)
        field[:] = np.maximum(radius - distance, 0.0) * rng.uniform(1.0, 4.0)
    return out


def plume(fire: np.ndarray) -> np.ndarray:
    """Smoke of each fire: a saturating function of age, carried by one kernel."""
    kernel = np.zeros((7, 9))
    kernel[3, 2:] = 0.6 ** np.arange(7)
    kernel[4, 3:] = 0.3 ** np.arange(6)
    full = [fftconvolve(np.minimum(field, 2.0), kernel)[3:19, 2:22] for field in fire]
    return np.maximum(np.stack(full), 0.0).astype(np.float32)


def snapshots(ignitions: int = 14, seed: int = 0) -> xr.Dataset:
    """One snapshot per fire of every ignition under two droughts; the second is half as smoky."""
    fire = np.repeat(fires(ignitions, seed), 2, axis=0)
    drought = np.array(["high", "low"] * ignitions)
    smoke = plume(fire) * np.where(drought == "low", 0.5, 1.0)[:, None, None].astype(np.float32)
    smoke[smoke < 1e-4] = 0.0
    ids = np.repeat([f"i{n:02d}" for n in range(ignitions)], 2)
    labels = {"ignition_id": ids, "fire_id": np.char.add(ids, drought), "drought": drought}
    return labelled({"time_since_ignition": fire, "smoke": smoke, **labels})


EVERYWHERE = np.mgrid[: GRID[0], : GRID[1]]


def rough(ignitions: int = 60) -> xr.Dataset:
    """Fuels that differ from place to place, which no equivariant operator can know."""
    data = snapshots(ignitions, seed=1)
    fire = data.time_since_ignition.values
    y, x = ((fire * place).sum(axis=(1, 2)) / fire.sum(axis=(1, 2)) for place in EVERYWHERE)
    share = (1.0 + 0.8 * np.sin(1.2 * y + 0.9 * x)).astype(np.float32)
    return data.assign(smoke=data.smoke * xr.DataArray(share, dims="snapshot"))


def parts(data: xr.Dataset) -> tuple[xr.Dataset, xr.Dataset]:
    new = np.isin(data.ignition_id.values, np.unique(data.ignition_id.values)[::5])
    return data.isel(snapshot=~new), data.isel(snapshot=new)
