"""One fire with its smoke: arrival times → emission → transport → snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from plumecast.base import names
from plumecast.base.checkpoints import DEPTH, INTERVAL, LOCAL_HOUR
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import M2_PER_ACRE
from plumecast.base.version import __version__
from plumecast.compute.arrays import Field
from plumecast.compute.dose import running_dose
from plumecast.compute.regrid import block_mean
from plumecast.data.assembly import PER_SNAPSHOT, block_parts, burned_shares, with_burned_shares
from plumecast.physics.fuels import fuel_table
from plumecast.simulator.atmosphere import (
    STEERING_STRENGTH,
    FaceSteering,
    Layers,
    face_steering,
    steering,
    stretched_layers,
)
from plumecast.simulator.front import Ignition, arrival_times
from plumecast.simulator.landscape import Landscape, smoke_grid
from plumecast.simulator.smoke import CarriedSmoke, carry_smoke, emission
from plumecast.simulator.weather import IGNITION_LOCAL_HOUR, Weather, hourly_weather
from plumecast.weather.profile import mean_wind

BLOCK = 10
"""Fire cells along one side of a smoke cell: 300 m and 3 km in the paper."""

INTERVAL_HOURS = 6.0
"""Time between checkpoints, as in the paper."""

EMISSION_MINUTES = 10.0
"""Longest interval in which wind and emission are constant."""

SMOKE_FLOOR = 0.01
"""Cumulative column mean, µg m⁻³, below which smoke is set to exactly 0.

Over a 15 km column it is 0.15 mg m⁻², an optical depth of 6·10⁻⁴ at 4 m² g⁻¹: a hundredth of what a
satellite or a sun photometer can detect against a clean sky. Numerical diffusion alone produces
ever smaller values around the plume, which must not count as part of the footprint.
"""


@dataclass(frozen=True, slots=True)
class Terrain:
    """Effect of a landscape on the wind, and its air layers; the same for all its fires."""

    steering: npt.NDArray[np.float32]  # (ny, nx, 2, 2) on the fire grid
    faces: FaceSteering  # on the smoke grid
    layers: Layers
    block: int  # fire cells along one side of a smoke cell


def terrain(
    landscape: Landscape, *, strength: float = STEERING_STRENGTH, block: int = BLOCK
) -> Terrain:
    """Steering of the wind on both grids, and air layers above the landscape's mean elevation."""
    ny, nx = landscape.fuel.shape
    if ny % block or nx % block:
        raise PlumecastError(
            f"a landscape of {ny} by {nx} cells does not divide into smoke cells of {block} by "
            f"{block}; crop it to {ny - ny % block} by {nx - nx % block}"
        )
    local = steering(landscape.elevation, landscape.cell, strength)
    layers = stretched_layers(ground=float(landscape.elevation.mean()))
    return Terrain(local.astype(np.float32), face_steering(local, block), layers, block)


def simulate_fire(
    landscape: Landscape, weather: Weather, ignition: Ignition, checkpoints: int = 10, *,
    interval: float = INTERVAL_HOURS, ground: Terrain | None = None, fire_id: str = "fire",
    ignition_id: str | None = None, with_smoke: bool = True, planned: int | None = None,
) -> xr.Dataset:  # fmt: skip
    """Simulate one fire: `checkpoints` snapshots, one every `interval` hours.

    `ignition` is the row (from the south) and column of the fire cell that ignites at hour 0, or
    a list of such cells.
    `ground` is `terrain(landscape)`; pass it to compute it once for many fires. The smoke does not
    affect the fire: with `with_smoke=False` the fire is the same and only its front is computed.
    If this is the beginning of a fire with `planned` checkpoints, it is exactly that fire's.
    """
    if checkpoints < 1:
        raise ArgumentError("checkpoints", checkpoints, "give at least 1")
    hours = interval * np.arange(1, checkpoints + 1, dtype=np.float64)
    if weather.hours[-1] < hours[-1]:
        raise PlumecastError(
            f"the weather ends after {weather.hours[-1]:g} h, the last checkpoint is at "
            f"{hours[-1]:g} h; use weather({weather.drought!r}, hours={hours[-1]:g})"
        )
    ground = ground or terrain(landscape)
    arrival = arrival_times(
        landscape, weather.moisture, weather.hours, weather.wind_u, weather.wind_v,
        steering=ground.steering, ignition=ignition, until_hours=float(hours[-1]),
        grown_until=interval * max(planned or 0, checkpoints),
    )  # fmt: skip
    fields = {names.FIRE: block_age(arrival, hours, ground.block)}
    if with_smoke:
        carried = smoke_columns(landscape, weather, arrival, hours, ground)
        smoke = np.cumsum(carried.means, axis=0)
        by_frames = np.array(running_dose(hours.tolist(), carried.means.sum(axis=(1, 2)).tolist()))
        smoky = by_frames > 0.0
        scale = np.where(smoky, carried.doses / np.where(smoky, by_frames, 1.0), 1.0)
        fields[names.SMOKE] = np.where(smoke < SMOKE_FLOOR, 0.0, smoke)
    speed, direction = mean_wind(weather.hours, weather.wind_u, weather.wind_v, hours)
    made = _snapshots(
        fields,
        grid=smoke_grid(landscape, ground.block),
        scalars={
            "fire_id": np.full(checkpoints, fire_id),
            "ignition_id": np.full(checkpoints, ignition_id or fire_id),
            "hours": hours,
            "drought": np.full(checkpoints, weather.drought),
            "burned_area": burned_acres(arrival, hours, landscape.cell),
            "is_final": hours == hours[-1],
            "fuel_moisture": np.full(checkpoints, weather.moisture.dead_1h),
            "wind_speed": speed,
            "wind_from_direction": direction,
        },
        weather=hourly_weather(weather, float(hours[-1])),
    )
    parts = block_parts(np.isfinite(arrival), ground.block, ground.block)
    shares = burned_shares(arrival[np.isfinite(arrival)], parts, hours, most=PER_SNAPSHOT)
    made = with_burned_shares(made, shares)
    if with_smoke:
        entry = names.TABLE[names.DOSE_SCALE]
        made = made.assign_coords({entry.name: (names.SNAPSHOT, scale, entry.attrs)})
        made[names.SMOKE].attrs |= {
            INTERVAL: float(interval), DEPTH: float(ground.layers.edges[-1])
        }  # fmt: skip
    return made


def smoke_columns(
    landscape: Landscape, weather: Weather, arrival: Field, hours: Field, ground: Terrain
) -> CarriedSmoke:
    """Smoke at each of the equally spaced `hours`."""
    per_checkpoint = int(np.ceil(hours[0] * 60.0 / EMISSION_MINUTES))
    ends = np.linspace(0.0, hours[-1], per_checkpoint * hours.size + 1)
    source = emission(
        arrival, landscape.fuel, moisture=weather.moisture, hours=ends, cell=landscape.cell,
        block=ground.block,
    )  # fmt: skip
    return carry_smoke(
        source, weather, layers=ground.layers, steering=ground.faces,
        cell=landscape.cell * ground.block, checkpoints=list(hours),
    )  # fmt: skip


def burned_acres(arrival: Field, hours: Field, cell: float) -> Field:
    """Area that has burned by each hour, acres."""
    burned = np.array([np.count_nonzero(arrival <= hour) for hour in hours])
    return np.asarray(burned * cell**2 / M2_PER_ACRE)


def block_age(arrival: Field, hours: Field, block: int) -> Field:
    """Block mean of max(t − arrival, 0) at each hour, (K, ny, nx) h; 0 where unburned."""
    ages = (np.maximum(hour - arrival, 0.0) for hour in hours)
    return np.stack([block_mean(age, block, block) for age in ages])


def block_fuel_load(landscape: Landscape, block: int) -> Field:
    """Block mean of the total surface fuel load, (ny, nx) kg m⁻²; 0 where nothing burns."""
    return np.asarray(block_mean(fuel_table().total_load[landscape.fuel], block, block))


def _snapshots(
    fields: Mapping[str, Field],
    *,
    grid: Mapping[str, Any],
    scalars: Mapping[str, npt.NDArray[Any]],
    weather: Mapping[str, Field],
) -> xr.Dataset:
    """Label the fields according to the snapshot contract."""
    mapping = {"grid_mapping": "crs"} if "crs" in grid else {}

    def labelled(values: Mapping[str, npt.NDArray[Any]], **more: str) -> dict[str, Any]:
        table = names.TABLE
        return {
            key: (table[key].dims, value, {**table[key].attrs, **more})
            for key, value in values.items()
        }

    count = len(scalars["hours"])
    stored = {name: values.astype(np.float32) for name, values in fields.items()}
    axes = {name: weather[name] for name in (names.WEATHER_HOUR, names.HEIGHT)}
    series = {item.name: weather[item.name].astype(np.float32) for item in names.WEATHER}
    series = {name: np.broadcast_to(item, (count, *item.shape)) for name, item in series.items()}
    made = xr.Dataset(
        labelled(stored, **mapping),
        coords={**labelled(scalars), **grid, **labelled(axes)},
        attrs={
            "Conventions": "CF-1.11",
            "title": "Wildfires and their smoke",
            "source": f"plumecast {__version__} embedded simulator: reduced physics, one-way "
            "coupled",
            "smoke_floor": SMOKE_FLOOR,
            LOCAL_HOUR: IGNITION_LOCAL_HOUR,
        },
    )
    return made.assign(labelled(series))
