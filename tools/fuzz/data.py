"""Small data for the targets: discs that burn and the smoke around them."""

from __future__ import annotations

import numpy as np
import xarray as xr

from plumecast.base.names import FIRE, SMOKE, SNAPSHOT


def small_fires(ignitions: int = 8, shape: tuple[int, int] = (8, 10), seed: int = 0) -> xr.Dataset:
    """Discs that grow for three checkpoints, with smoke shifted to the east of them."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float64)
    fire, smoke, names, hours = [], [], [], []
    for number in range(ignitions):
        centre = rng.uniform(2.0, np.array(shape) - 3.0)
        speed = rng.uniform(0.2, 0.4)
        for hour in (4.0, 8.0, 12.0):
            distance = np.hypot(y - centre[0], x - centre[1])
            age = np.maximum(hour - distance / speed, 0.0)
            fire.append(age)
            smoke.append(np.roll(age, 1, axis=1) * (5.0 + number % 3))
            names.append(f"fire-{number}")
            hours.append(hour)
    burned = [0.5 * float(np.count_nonzero(age)) for age in fire]
    return xr.Dataset(
        {
            FIRE: ((SNAPSHOT, "y", "x"), np.array(fire, dtype=np.float32), {"units": "h"}),
            SMOKE: ((SNAPSHOT, "y", "x"), np.array(smoke, dtype=np.float32), {"units": "ug m-3"}),
        },
        coords={
            "y": ("y", 3000.0 * np.arange(shape[0]), {"units": "m"}),
            "x": ("x", 3000.0 * np.arange(shape[1]), {"units": "m"}),
            "fire_id": (SNAPSHOT, names),
            "ignition_id": (SNAPSHOT, names),
            "hours": (SNAPSHOT, hours, {"units": "h"}),
            "drought": (SNAPSHOT, ["low", "high"] * (len(names) // 2)),
            "is_final": (SNAPSHOT, [hour == 12.0 for hour in hours]),
            "burned_area": (SNAPSHOT, burned, {"units": "acre"}),
        },
    )
