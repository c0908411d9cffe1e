"""Fires whose smoke is known above a few solar plants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import DEPTH
from support.snapshots import make_snapshots

NOON = "2020-09-08T12:00"
COLUMN = 15_000.0
THIN = 0.05  # of the smoke of `make_snapshots`: optical depths below 3


def smoky(fires: int = 4, concentration: float | None = None, **more: int) -> xr.Dataset:
    """Small fires with a recorded column; `concentration` (µg m⁻³) is the same everywhere."""
    made = make_snapshots(fires=fires, **more)
    made["smoke"] = made.smoke * THIN
    made["smoke"].attrs = dict(make_snapshots(fires=1).smoke.attrs)
    if concentration is not None:
        sums = concentration * made.hours.values[:, None, None] / 6.0
        made["smoke"] = made.smoke.copy(data=np.broadcast_to(sums, made.smoke.shape))
    made["smoke"].attrs[DEPTH] = COLUMN
    return made


def write_plants(path: Path, *rows: str, columns: str = "name,x,y,megawatts") -> Path:
    path.write_text("\n".join([columns, *(rows or ("a,9000,9000,100", "b,15000,12000,50"))]) + "\n")
    return path
