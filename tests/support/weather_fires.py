"""Fires with an hourly weather of their own, for tests."""

from __future__ import annotations

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from support.snapshots import labelled
from support.windy_fires import puff

SHAPE = (16, 18)
CELL = 3000.0
HEIGHTS = (10.0, 500.0, 2000.0, 6000.0)
CHECKPOINTS = (3.0, 6.0, 9.0)


def weather_fires(fires: int = 10, seed: int = 0) -> xr.Dataset:
    """Fires of one to three cells whose smoke drifts with a wind that turns over nine hours.

    Puffs of every half hour drift with the wind at 500 m and widen; no code is shared with the
    transport that is tested with them.
    """
    rng = np.random.default_rng(seed)
    hours = np.arange(10.0)
    parts = []
    for number in range(fires):
        angle = rng.uniform(0.0, 2.0 * np.pi) + rng.uniform(-0.1, 0.1) * hours
        speed = rng.uniform(1.0, 2.5)
        east, north = speed * np.cos(angle), speed * np.sin(angle)
        row, column = int(rng.integers(6, 10)), int(rng.integers(7, 11))
        arrival = np.full(SHAPE, np.inf)
        for step, (down, right) in enumerate([(0, 0), (0, 1), (1, 0)][: int(rng.integers(1, 4))]):
            arrival[row + down, column + right] = 0.5 + 1.5 * step
        parts.append(_snapshots(f"f{number:02d}", arrival, hours, east, north))
    return xr.concat(parts, "snapshot", data_vars="all", coords="different", compat="equals")


def _snapshots(
    name: str, arrival: np.ndarray, hours: np.ndarray, east: np.ndarray, north: np.ndarray
) -> xr.Dataset:
    fire, smoke, total = [], [], np.zeros(SHAPE)
    for end in CHECKPOINTS:
        fire.append(np.maximum(end - arrival, 0.0))
        total = total + _column(arrival, end, hours, east, north)
        smoke.append(np.where(total < 0.01, 0.0, total))
    count = len(CHECKPOINTS)
    growth = np.linspace(1.0, 1.3, len(HEIGHTS))
    wind = [np.tile(part[:, None] * growth, (count, 1, 1)) for part in (east, north)]
    mean = np.array([part[: int(end) + 1].mean() for end in CHECKPOINTS for part in (east, north)])
    mean = mean.reshape(count, 2)
    made = labelled(
        {
            "time_since_ignition": np.float32(fire),
            "smoke": np.float32(smoke),
            "wind_u": np.float32(wind[0]),
            "wind_v": np.float32(wind[1]),
            "boundary_layer_depth": np.full((count, hours.size), 1000.0, np.float32),
            "fire_id": [name] * count,
            "ignition_id": [name] * count,
            "drought": ["own"] * count,
            "hours": list(CHECKPOINTS),
            "burned_area": [1e5] * count,
            "wind_speed": np.hypot(*mean.T),
            "wind_from_direction": (270.0 - np.rad2deg(np.arctan2(*mean.T[::-1]))) % 360.0,
            "is_final": np.array(CHECKPOINTS) == CHECKPOINTS[-1],
            "weather_hour": hours,
            "height": HEIGHTS,
            **{a: CELL * (np.arange(n) + 0.5) for a, n in zip("yx", SHAPE, strict=True)},
        }
    )
    made.smoke.attrs[INTERVAL] = 3.0
    return made


def _column(
    arrival: np.ndarray, end: float, hours: np.ndarray, east: np.ndarray, north: np.ndarray
) -> np.ndarray:
    """Smoke in the air at `end`: puffs of 0.5 h after each arrival, for an hour."""
    total = np.zeros(SHAPE)
    for row, column in np.argwhere(np.isfinite(arrival)):
        for delay in (0.0, 0.5):
            start = arrival[row, column] + delay
            times = np.arange(start, end, 0.25)
            if not times.size:
                continue
            way = [np.interp(times, hours, wind).sum() * 900.0 / CELL for wind in (north, east)]
            width = 0.8 + 0.1 * (end - start)
            total += puff(row + way[0], column + way[1], width, SHAPE) / width**2
    return 10.0 * total


def true_doses(fires: xr.Dataset, step: float = 0.1) -> np.ndarray:
    """(M, y, x) integrals of the column mean since ignition, from every tenth of an hour."""
    made = np.zeros(fires.time_since_ignition.shape)
    hours = fires.weather_hour.values
    for row in range(fires.sizes["snapshot"]):
        fire = fires.isel(snapshot=row)
        age, until = fire.time_since_ignition.values.astype(float), float(fire.hours)
        arrival = np.where(age > 0.0, until - age, np.inf)
        wind = [fire[name].values[:, 0].astype(float) for name in ("wind_u", "wind_v")]
        for end in np.arange(step, until + 0.5 * step, step):
            made[row] += step * _column(arrival, end, hours, *wind)
    return made
