"""Fires with winds of their own, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from support.raster_files import write_ascii
from support.snapshots import labelled

GRID = (20, 24)


def puff(row: float, column: float, width: float, shape: tuple[int, int] = GRID) -> np.ndarray:
    y, x = np.mgrid[: shape[0], : shape[1]]
    return np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2.0 * width**2))


def windy(ignitions: int = 24, seed: int = 0, shape: tuple[int, int] = GRID) -> xr.Dataset:
    """Round fires near the middle, each with a wind of its own that carries its smoke 5 cells."""
    rng = np.random.default_rng(seed)
    rows, columns = shape
    top, left = (GRID[0] - rows) / 2, (GRID[1] - columns) / 2
    fire, smoke, speed, direction = [], [], [], []
    for _ in range(ignitions):
        row, column = rng.uniform(8, 11) - top, rng.uniform(10, 13) - left
        size = rng.uniform(1.5, 2.5)
        towards = rng.uniform(0.0, 2.0 * np.pi)
        age = np.maximum(puff(row, column, size, shape) - 0.4, 0.0) * 10.0
        plume = [
            puff(row + step * np.sin(towards), column + step * np.cos(towards), 1.5, shape)
            for step in range(6)
        ]
        fire.append(age)
        smoke.append(sum(plume) * size)
        speed.append(rng.uniform(4.0, 6.0))
        direction.append((270.0 - np.rad2deg(towards)) % 360.0)
    names = [f"i{n:02d}" for n in range(ignitions)]
    fields = np.stack(smoke).astype(np.float32)
    fields[fields < 0.05] = 0.0
    made = labelled(
        {
            "time_since_ignition": np.float32(fire),
            "smoke": fields,
            "ignition_id": names,
            "fire_id": names,
            "hours": np.full(ignitions, 6.0),
            "drought": ["medium"] * ignitions,
            "burned_area": np.full(ignitions, 2e5),
            "is_final": np.full(ignitions, True),
            "wind_speed": speed,
            "wind_from_direction": direction,
            "y": np.arange(rows) * 1000.0,
            "x": np.arange(columns) * 1000.0,
        }
    )
    made.smoke.attrs[INTERVAL] = 1.0
    return made


def write_windy_rasters(
    folder: Path, names: Sequence[str], shape: tuple[int, int] = GRID
) -> list[Path]:
    """FARSITE rasters of fires like those of `windy` after 6 h, on its grid."""
    folder.mkdir(parents=True, exist_ok=True)
    size = {"NCOLS": shape[1], "NROWS": shape[0], "CELLSIZE": 1000.0}
    corner = {"XLLCORNER": -500.0, "YLLCORNER": -500.0}
    paths = []
    for number, name in enumerate(names):
        age = np.maximum(puff(shape[0] // 2, shape[1] // 2 - number, 2.0, shape) - 0.4, 0.0) * 10.0
        arrival = np.where(age > 0.0, 60.0 * (6.0 - age), np.nan)
        paths.append(write_ascii(folder / f"{name}.asc", arrival[::-1], **size, **corner))
    return paths
