"""Smoke of one fire: emission, plume rise and transport, and the resulting column means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plumecast.compute.dose import running_dose
from plumecast.sources.column import column_mean
from plumecast.sources.simulator.air.atmosphere import FaceSteering, Layers, empty_flux, fill_flux
from plumecast.sources.simulator.air.mixing import (
    DEPOSITION_VELOCITY,
    diffusivity,
    exchange,
    friction_velocity,
)
from plumecast.sources.simulator.air.plume_rise import injection_height, injection_profile
from plumecast.sources.simulator.air.transport import (
    SmokeState,
    Source,
    Turbulence,
    advance,
    clean_air,
)
from plumecast.sources.simulator.air.weather import Weather, wind_profile
from plumecast.sources.simulator.emission import Emission
from plumecast.sources.simulator.fields import Field

HORIZONTAL_DIFFUSIVITY = 100.0
"""Diffusivity of eddies smaller than a 3 km cell, m² s⁻¹.

Smagorinsky: (0.2 Δx)² times a shear of 3·10⁻⁴ s⁻¹.
"""

UG_PER_KG = 1.0e9


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
    height = injection_height(
        emission.heat[interval][rows, columns],
        weather.at(weather.boundary_layer_depth, middle),
        weather.stability,
    )
    share = injection_profile(height, edges)
    return Source(np.stack([rows, columns], axis=1), smoke[rows, columns, np.newaxis] * share)


def weather_turbulence(weather: Weather, hour: float, layers: Layers) -> Turbulence:
    """Vertical mixing, deposition and horizontal diffusion at `hour`."""
    speed = float(np.hypot(weather.at(weather.wind_u, hour), weather.at(weather.wind_v, hour)))
    inner = diffusivity(
        layers.edges[1:-1],
        depth=weather.at(weather.boundary_layer_depth, hour),
        friction_velocity=friction_velocity(speed),
        convective_velocity=weather.at(weather.convective_velocity, hour),
    )
    ground = DEPOSITION_VELOCITY * float(layers.density[0])
    return Turbulence(exchange(layers, inner), ground, HORIZONTAL_DIFFUSIVITY)


def column_smoke(plume: SmokeState, layers: Layers) -> Field:
    """Column-mean concentration, (ny, nx) µg m⁻³."""
    depth = layers.depth[:, np.newaxis, np.newaxis]
    return np.asarray(column_mean(UG_PER_KG * plume.smoke / depth, depth))
