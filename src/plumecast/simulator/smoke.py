"""Smoke of one fire: emission from its arrival times, plume rise, transport, and column means.

The emission of a time interval is the exact difference of the burned fuel (`physics.emission`), so
the emission summed over all time is `SMOKE_YIELD` times the fuel consumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plumecast.compute.arrays import Field
from plumecast.compute.dose import running_dose
from plumecast.physics.air import (
    DEPOSITION_VELOCITY,
    HORIZONTAL_DIFFUSIVITY,
    column_mean,
    diffusivity,
    friction_velocity,
)
from plumecast.physics.fuels import Codes, Moisture, fuel_table
from plumecast.physics.plume import (
    RADIATIVE_FRACTION,
    SMOKE_YIELD,
    burned_share,
    consumed_load,
    injection_profile,
    plume_lift,
    plume_top,
)
from plumecast.simulator import compiled
from plumecast.simulator.atmosphere import FaceSteering, Layers, empty_flux, fill_flux
from plumecast.simulator.transport import SmokeState, Source, Turbulence, advance, clean_air
from plumecast.simulator.weather import Weather, wind_profile

UG_PER_KG = 1.0e9


@dataclass(frozen=True, slots=True)
class Emission:
    """Mean emission rate of every smoke cell in equal time intervals."""

    hours: Field  # (n + 1,) edges of the intervals, since ignition
    smoke: Field  # (n, ny, nx) kg s⁻¹
    heat: Field  # (n, ny, nx) W

    @property
    def seconds(self) -> float:
        """Length of an interval, s."""
        return float(self.hours[1] - self.hours[0]) * 3600.0

    @property
    def total_smoke(self) -> float:
        """Smoke emitted by all cells in all intervals, kg."""
        return float(self.smoke.sum()) * self.seconds


def emission(
    arrival: Field, fuel: Codes, *, moisture: Moisture, hours: Field, cell: float,
    block: int,
) -> Emission:  # fmt: skip
    """Smoke and heat emission of a fire on the smoke grid.

    `arrival` (ny·block, nx·block) is in hours, inf where unburned; `fuel` has the fuel codes;
    `hours` (n + 1,) are the equally spaced edges of the intervals; `cell` is the size of a fire
    cell in m. A smoke cell has `block`² fire cells. Fuel that burns after the last hour is left
    out.
    """
    table = fuel_table()
    load = consumed_load(moisture)
    step = float(hours[1] - hours[0])
    shape = (hours.size - 1, arrival.shape[0] // block, arrival.shape[1] // block)
    burned, heat = np.zeros(shape), np.zeros(shape)
    _burn(
        arrival - hours[0], fuel, load * cell**2, table.heat_content, table.burnout_time / 3600.0,
        step, block, burned, heat,
    )  # fmt: skip
    burned *= SMOKE_YIELD / (3600.0 * step)
    heat /= 3600.0 * step
    return Emission(hours, burned, heat)


_burned_share = compiled(error_model="numpy")(burned_share)


@compiled(error_model="numpy")
def _burn(
    arrival: Field, fuel: Codes, mass: Field, heat_content: Field, burnout: Field,
    step: float, block: int, burned: Field, heat: Field,
) -> None:  # fmt: skip
    """Add the burned mass (kg) and heat (J) of each fire cell to its smoke cell; times in h."""
    for j in range(arrival.shape[0]):
        for i in range(arrival.shape[1]):
            code = fuel[j, i]
            if not arrival[j, i] < np.inf or mass[code] == 0.0:
                continue
            crossing = crossing_time(arrival, j, i)
            start = max(arrival[j, i] - 0.5 * crossing, 0.0)
            n, before = int(start // step), 0.0
            while n < burned.shape[0] and before < 1.0:
                after = _burned_share((n + 1) * step - start, crossing, burnout[code])
                amount = mass[code] * (after - before)
                burned[n, j // block, i // block] += amount
                heat[n, j // block, i // block] += amount * heat_content[code]
                before = after
                n += 1


@compiled(error_model="numpy")
def crossing_time(arrival: Field, j: int, i: int) -> float:
    """Time that the front needs to cross a cell, h: |∇arrival| · Δx with upwind differences.

    At the ignition no neighbour burns earlier; there it is the time to the next neighbour.
    """
    here = arrival[j, i]
    west = arrival[j, i - 1] if i > 0 else np.inf
    east = arrival[j, i + 1] if i + 1 < arrival.shape[1] else np.inf
    south = arrival[j - 1, i] if j > 0 else np.inf
    north = arrival[j + 1, i] if j + 1 < arrival.shape[0] else np.inf
    first_x, first_y = min(west, east), min(south, north)
    if first_x < here or first_y < here:
        return math.hypot(max(here - first_x, 0.0), max(here - first_y, 0.0))
    first = min(first_x, first_y)
    return first - here if first < np.inf else 0.0


class CarriedSmoke(NamedTuple):
    """Smoke of a fire at its checkpoints."""

    means: Field  # (K, ny, nx) column means, µg m⁻³
    doses: Field  # (K,) their integral since ignition over all steps, sum over the cells, µg m⁻³ h
    state: SmokeState  # after the last


def carry_smoke(
    emission: Emission, weather: Weather, *, layers: Layers, steering: FaceSteering, cell: float,
    checkpoints: Sequence[float],
) -> CarriedSmoke:  # fmt: skip
    """Column-mean smoke at each checkpoint, its dose, and the state after the last.

    Each of `checkpoints` (hours) must be the end of an emission interval. Wind, mixing and plume
    rise are evaluated at the middle of each interval.
    """
    ny, nx = emission.smoke.shape[1:]
    shape = (layers.mass.size, ny, nx)
    plume, flux, means = clean_air(shape, cell), empty_flux(shape), []
    totals, per_mass = [], UG_PER_KG / float(layers.depth.sum())
    ends = [int(np.argmin(np.abs(emission.hours - hour))) for hour in checkpoints]
    for n in range(max(ends)):
        middle = 0.5 * float(emission.hours[n] + emission.hours[n + 1])
        source = emitted_columns(emission, n, weather, layers.edges)
        if plume.box[0] or source.rate.size:
            fill_flux(
                flux, wind_profile(weather, middle, layers.middle), steering, layers, cell=cell
            )
            turbulence = weather_turbulence(weather, middle, layers)
            plume = advance(
                plume, emission.seconds, flux=flux, layers=layers, turbulence=turbulence,
                source=source,
            )  # fmt: skip
        totals.append(per_mass * float(plume.smoke.sum()))
        if n + 1 in ends:
            means.append(column_smoke(plume, layers))
    doses = running_dose(emission.hours[1 : max(ends) + 1].tolist(), totals)
    return CarriedSmoke(np.stack(means), np.array([doses[end - 1] for end in ends]), plume)


def emitted_columns(emission: Emission, interval: int, weather: Weather, edges: Field) -> Source:
    """Emitting columns of one interval, with their smoke distributed over the layers."""
    smoke = emission.smoke[interval]
    rows, columns = np.nonzero(smoke)
    middle = 0.5 * float(emission.hours[interval] + emission.hours[interval + 1])
    power = RADIATIVE_FRACTION * emission.heat[interval][rows, columns] / 1.0e6
    top = plume_top(
        weather.at(weather.boundary_layer_depth, middle), plume_lift(power, weather.stability)
    )
    share = injection_profile(top, edges)
    return Source(np.stack([rows, columns], axis=1), smoke[rows, columns, np.newaxis] * share)


def weather_turbulence(weather: Weather, hour: float, layers: Layers) -> Turbulence:
    """Vertical mixing, deposition and horizontal diffusion at `hour`."""
    speed = float(np.hypot(weather.at(weather.wind_u, hour), weather.at(weather.wind_v, hour)))
    inner = diffusivity(
        layers.edges[1:-1],
        depth=weather.at(weather.boundary_layer_depth, hour),
        friction_velocity=friction_velocity(speed),
        convective_velocity_cubed=weather.at(weather.convective_velocity, hour) ** 3,
    )
    ground = DEPOSITION_VELOCITY * float(layers.density[0])
    return Turbulence(layers.exchange(inner), ground, HORIZONTAL_DIFFUSIVITY)


def column_smoke(plume: SmokeState, layers: Layers) -> Field:
    """Column-mean concentration, (ny, nx) µg m⁻³."""
    depth = layers.depth[:, np.newaxis, np.newaxis]
    return np.asarray(column_mean(UG_PER_KG * plume.smoke / depth, depth))
