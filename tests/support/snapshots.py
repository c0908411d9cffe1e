"""Small snapshots that look like fires and their smoke."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from scipy.ndimage import gaussian_filter, shift

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.names import FIRE, M2_PER_ACRE, SMOKE, SNAPSHOT, TABLE, WEATHER_NAMES

CELL = 3000.0  # m, the smoke grid of the paper
CHECKPOINT = 6.0  # h between checkpoints
FLOOR = 0.01  # µg m⁻³, smoke below it is exactly zero


def make_snapshots(
    fires: int = 12,
    checkpoints: int = 4,
    shape: tuple[int, int] = (8, 10),
    seed: int = 0,
    droughts: Sequence[str] = ("low", "high"),
) -> xr.Dataset:
    """Snapshots in the contract: every ignition burns once under each drought.

    The fire is a disc that grows at a constant rate, aged since the front passed. The smoke is a
    saturating function of that age, carried downwind and blurred, zero below a floor.
    """
    rng = np.random.default_rng(seed)
    ignitions = -(-fires // len(droughts))
    centres = rng.uniform(0.2, 0.8, size=(ignitions, 2)) * shape
    speeds = rng.uniform(0.8, 1.2, size=ignitions)  # of the slowest front, cells in 12 h
    rows = []
    for fire in range(fires):
        ignition, weather = divmod(fire, len(droughts))
        rate = speeds[ignition] * (1.0 + 0.7 * weather) / (2.0 * CHECKPOINT)  # cells per hour
        for checkpoint in range(1, checkpoints + 1):
            age = _disc(shape, centres[ignition], rate, CHECKPOINT * checkpoint)
            rows.append(
                {
                    "time_since_ignition": age,
                    "smoke": _plume(age, wind=(1.0, 2.0 + weather)),
                    "fire_id": f"fire-{ignition:02d}-{droughts[weather]}",
                    "ignition_id": f"ignition-{ignition:02d}",
                    "hours": CHECKPOINT * checkpoint,
                    "drought": droughts[weather],
                    "burned_area": np.count_nonzero(age) * CELL**2 / M2_PER_ACRE,
                    "is_final": checkpoint == checkpoints,
                }
            )
    columns = {name: np.asarray([row[name] for row in rows]) for name in rows[0]}
    grid = {axis: CELL * np.arange(size) for axis, size in zip("yx", shape, strict=True)}
    made = labelled(columns | grid)
    made.smoke.attrs[INTERVAL] = CHECKPOINT
    return made.assign_attrs(source="growing discs", smoke_floor=FLOOR)


def labelled(values: Mapping[str, object]) -> xr.Dataset:
    """Snapshots of values in the contract, with the dimensions and attributes of their names."""
    variables = {
        name: (TABLE[name].dims, np.asarray(part), dict(TABLE[name].attrs))
        for name, part in values.items()
    }
    fields = {FIRE, SMOKE, *WEATHER_NAMES}
    coordinates = {name: variables[name] for name in variables if name not in fields}
    return xr.Dataset({name: variables[name] for name in values if name in fields}, coordinates)


def add_weather(snapshots: xr.Dataset, *, seed: int = 0, until: float | None = None) -> xr.Dataset:
    """Snapshots with an hourly weather of each fire: a wind that turns, at 10, 500 and 3000 m."""
    hours = np.arange(np.ceil(until or float(snapshots.hours.max())) + 1.0)
    heights = np.array([10.0, 500.0, 3000.0])
    rng = np.random.default_rng(seed)
    names, fire = np.unique(snapshots.fire_id.values, return_inverse=True)
    speed = rng.uniform(3.0, 9.0, size=(names.size, 1, 1)) * (heights / 10.0) ** 0.1
    angle = rng.uniform(0.0, 2.0 * np.pi, size=(names.size, 1, 1)) + 0.05 * hours[:, None]
    depth = 1000.0 + 800.0 * np.sin(hours / 4.0) + np.zeros((names.size, 1))
    winds = {"wind_u": speed * np.sin(angle), "wind_v": speed * np.cos(angle)}
    values = {
        name: part[fire].astype(np.float32)
        for name, part in {**winds, "boundary_layer_depth": depth}.items()
    }
    weather = labelled({**values, "weather_hour": hours, "height": heights})
    return snapshots.assign(weather.variables).assign_coords(weather.coords)


def _disc(shape: tuple[int, int], centre: np.ndarray, rate: float, hours: float) -> np.ndarray:
    y, x = np.indices(shape)
    distance = np.maximum(np.hypot(y - centre[0], x - centre[1]) - 0.5, 0.0)
    return np.maximum(hours - distance / rate, 0.0).astype(np.float32)


def _plume(age: np.ndarray, wind: tuple[float, float]) -> np.ndarray:
    emitted = 80.0 * (1.0 - np.exp(-age / CHECKPOINT)) * age
    carried = gaussian_filter(shift(emitted, wind, order=1), 0.8, mode="constant")
    return np.where(carried < FLOOR, 0.0, carried).astype(np.float32)


def on_demo_grid() -> xr.Dataset:
    """Snapshots on the grid of the simulator's preset `demo`."""
    shape, cell = (40, 50), 6000.0
    made = make_snapshots(fires=8, checkpoints=2, shape=shape)
    centres = {axis: cell * (np.arange(n) + 0.5) for axis, n in zip("yx", shape, strict=True)}
    return made.assign_coords(
        {axis: (axis, values, TABLE[axis].attrs) for axis, values in centres.items()}
    )


def fires_of(snapshots: xr.Dataset) -> list[xr.Dataset]:
    """The snapshots of every fire, in the order of their first snapshot."""
    names = list(dict.fromkeys(snapshots.fire_id.values.tolist()))
    return [select_fire(snapshots, name) for name in names]


def select_fire(snapshots: xr.Dataset, name: str) -> xr.Dataset:
    """The snapshots of one fire."""
    return snapshots.isel({SNAPSHOT: np.flatnonzero(snapshots.fire_id.values == name)})
