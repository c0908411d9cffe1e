"""Weather of a fire: one fixed series per drought scenario, or a drawn one of its own.

The 10 m wind is a synoptic wind that turns over days, times a diurnal cycle, plus seeded gusts. The
profile above has shear and turning. The boundary layer deepens by day and collapses at night. The
numbers are those of a dry continental summer over high ground (Stull 1988, An Introduction to
Boundary Layer Meteorology); the scenarios are plausible, but no reanalysis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import HEIGHT, WEATHER_HOUR
from plumecast.compute.arrays import Field
from plumecast.physics.fuels import Moisture
from plumecast.weather import profile

STEP_HOURS = 0.5
"""Time step of the series, h; winds are linear in time between the steps."""

IGNITION_LOCAL_HOUR = 12.0
"""Local solar time at hour 0, when every fire ignites."""

JET_HEIGHT = 10_000.0
"""Height of the upper wind above ground, m."""

GUST_MEMORY_HOURS = 2.0
"""e-folding time of the gusts' autocorrelation, h."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Fuel moisture, wind and boundary layer of one drought."""

    moisture: Moisture
    wind_speed: float  # mean 10 m wind, m s⁻¹
    wind_from: float  # mean direction the wind comes from, degree
    swing: float  # amplitude of the synoptic turning, degree
    period: float  # of the synoptic turning, h
    jet_speed: float  # wind at `JET_HEIGHT`, m s⁻¹
    jet_from: float  # mean direction the upper wind comes from, degree
    day_depth: float  # deepest boundary layer of the day, m
    convective_velocity: float  # w* at its largest, m s⁻¹
    stability: float  # N² of the free troposphere, s⁻²
    phase: float = 0.0  # of the synoptic turning at ignition, degree


# The paper sets the moisture of all surface fuel to 10, 5 and 0 %. A dead fuel of exactly 0 % is
# oven-dry, which does not occur outdoors and lies outside the data behind Rothermel's fits; 2 % is
# about the driest seen in the field. Live fuel stays far moister than dead: from half cured herbs
# (60 %) to fully cured ones (30 %), woody plants from 90 % to the dormant 60 %.
SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        "low": Scenario(
            Moisture(0.10, 0.11, 0.12, 0.60, 0.90),
            wind_speed=6.5, wind_from=205.0, swing=45.0, period=100.0,
            jet_speed=17.0, jet_from=230.0,
            day_depth=2000.0, convective_velocity=1.6, stability=1.4e-4,
        ),
        "medium": Scenario(
            Moisture(0.05, 0.06, 0.07, 0.45, 0.75),
            wind_speed=7.5, wind_from=245.0, swing=40.0, period=130.0,
            jet_speed=19.0, jet_from=260.0,
            day_depth=2700.0, convective_velocity=2.0, stability=1.2e-4,
        ),
        "high": Scenario(
            Moisture(0.02, 0.03, 0.04, 0.30, 0.60),
            wind_speed=9.0, wind_from=280.0, swing=45.0, period=95.0,
            jet_speed=22.0, jet_from=285.0,
            day_depth=3400.0, convective_velocity=2.4, stability=1.0e-4,
        ),
    }
)  # fmt: skip
"""The three drought scenarios by name."""

OWN = "own"
"""Label, in place of a drought, of fires that have a drawn weather each."""

RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "wind_speed": (4.0, 10.0),
        "wind_from": (0.0, 360.0),
        "swing": (10.0, 60.0),
        "period": (72.0, 168.0),
        "phase": (0.0, 360.0),
        "jet_speed": (12.0, 26.0),
        "jet_turn": (-30.0, 60.0),  # of the upper wind against the surface wind, degree
        "day_depth": (1500.0, 3600.0),
        "stability": (0.8e-4, 1.8e-4),
        "dryness": (0.0, 1.0),  # 0: fuels as moist as under "low", 1: as dry as under "high"
    }
)
"""Ranges of a drawn weather; every value is uniform and independent of the others."""

STORED_HEIGHTS = profile.HEIGHTS
"""Heights above ground at which the wind is stored with the snapshots, m."""


@dataclass(frozen=True, slots=True)
class Weather:
    """One weather series; u is the wind component towards east and v towards north, m s⁻¹."""

    drought: str
    moisture: Moisture
    hours: Field  # (n,) since ignition
    wind_u: Field  # (n,) at 10 m
    wind_v: Field
    upper_u: Field  # (n,) at `JET_HEIGHT`
    upper_v: Field
    shear_exponent: Field  # (n,) of the power law in the boundary layer
    boundary_layer_depth: Field  # (n,) m
    convective_velocity: Field  # (n,) w*, m s⁻¹
    stability: float  # N² of the free troposphere, s⁻²

    def at(self, series: Field, hour: float) -> float:
        """Value of one of the series at `hour`, by linear interpolation."""
        return float(np.interp(hour, self.hours, series))


def weather(drought: str, *, seed: int = 0, hours: float = 60.0) -> Weather:
    """Series of one drought from ignition to at least `hours`; a longer series begins equally."""
    return _series(_scenario(drought), drought, hours, [seed, *drought.encode()])


def _scenario(drought: str) -> Scenario:
    if drought not in SCENARIOS:
        raise PlumecastError(
            f"unknown drought {drought!r}; known are {', '.join(map(repr, SCENARIOS))}"
        )
    return SCENARIOS[drought]


def drawn_weather(seed: int, ignition: int, number: int, *, hours: float = 60.0) -> Weather:
    """Weather `number` of an ignition, drawn from `RANGES`."""
    key = [seed, ignition, number, *OWN.encode()]
    draw = np.random.default_rng(key)
    value = {name: float(draw.uniform(*limits)) for name, limits in RANGES.items()}
    dry, moist = SCENARIOS["high"].moisture, SCENARIOS["low"].moisture
    share = value.pop("dryness")
    moisture = Moisture(*(share * a + (1.0 - share) * b for a, b in zip(dry, moist, strict=True)))
    # A deeper boundary layer is heated more strongly: w* = 1.6 m s⁻¹ at 2000 m, as under "low".
    scenario = Scenario(
        moisture=moisture,
        jet_from=value["wind_from"] + value.pop("jet_turn"),
        convective_velocity=1.6 * (value["day_depth"] / 2000.0) ** (1.0 / 3.0),
        **value,
    )
    return _series(scenario, OWN, hours, [*key, 1])


def stated_weather(
    surface: tuple[float, float], aloft: tuple[float, float], *, local_hour: float = 12.0,
    drought: str = "medium", hours: float = 60.0,
) -> Weather:  # fmt: skip
    """Weather of two stated winds, each (speed in m s⁻¹, direction it comes from in degree).

    `surface` is the daily mean at 10 m, `aloft` the wind at `JET_HEIGHT`. Their directions are
    constant and there are no gusts; the speed at 10 m has the diurnal cycle of the other weathers.
    Moisture, boundary layer and stability are those of `drought`. The fire ignites at `local_hour`.
    """
    scenario = _scenario(drought)
    if not (np.isfinite([*surface, *aloft]).all() and min(surface[0], aloft[0]) >= 0.0):
        raise PlumecastError(
            f"winds surface={surface} and aloft={aloft} need a speed of at least 0 m/s and a "
            "direction in degrees"
        )
    if not 0.0 <= local_hour <= 24.0:
        raise ArgumentError(
            "local_hour", local_hour, "give 0 to 24", problem="is no hour of the day"
        )
    scenario = replace(
        scenario, wind_speed=surface[0], wind_from=surface[1], swing=0.0,
        jet_speed=aloft[0], jet_from=aloft[1],
    )  # fmt: skip
    return _series(scenario, OWN, hours, None, local_hour)


def _series(
    scenario: Scenario, label: str, hours: float, gusts: list[int] | None,
    local_hour: float = IGNITION_LOCAL_HOUR,
) -> Weather:  # fmt: skip
    """Series of a scenario from `local_hour` on; `gusts` is the key of their noise."""
    if not hours > 0:
        raise ArgumentError("hours", hours, "give a number of hours above 0")
    times = STEP_HOURS * np.arange(np.ceil(hours / STEP_HOURS) + 1.0, dtype=np.float64)
    local = local_hour + times
    noise = np.zeros((times.size, 2)) if gusts is None else _gust_noise(gusts, times.size)
    # The synoptic wind turns; its speed has a diurnal cycle with its peak at 15 h; gusts are 18 %.
    angle = 2 * np.pi * times / scenario.period + np.deg2rad(scenario.phase)
    turning = scenario.swing * np.sin(angle)
    speed = scenario.wind_speed * (1.0 + 0.35 * np.cos(2 * np.pi * (local - 15.0) / 24.0))
    u, v = profile.components(speed, scenario.wind_from + turning)
    upper_u, upper_v = profile.components(scenario.jet_speed, scenario.jet_from + 0.5 * turning)
    return Weather(
        drought=label,
        moisture=scenario.moisture,
        hours=times,
        wind_u=u + 0.18 * speed * noise[:, 0],
        wind_v=v + 0.18 * speed * noise[:, 1],
        upper_u=upper_u,
        upper_v=upper_v,
        shear_exponent=profile.shear_exponent(local),
        boundary_layer_depth=profile.default_depth(local, scenario.day_depth),
        convective_velocity=scenario.convective_velocity * profile.daylight(local),
        stability=scenario.stability,
    )


def wind_profile(
    series: Weather, hour: npt.ArrayLike, height: npt.ArrayLike
) -> tuple[Field, Field]:
    """(u, v) at `height` m above ground, m s⁻¹; of several hours, (hour, height) arrays.

    The speed follows the power law |V₁₀| (z/10)^p up to 300 m and is constant above, up to the top
    of the boundary layer (at least 500 m). Up to there the wind veers by `VEER`. Above, it is
    linear in z up to the upper wind at `JET_HEIGHT`.
    """
    z = np.asarray(height, dtype=float)
    times = np.asarray(hour, dtype=float)
    times = times[..., np.newaxis] if times.ndim else times

    def at(values: Field) -> Field:
        return np.asarray(np.interp(times, series.hours, values))

    top = np.maximum(at(series.boundary_layer_depth), profile.TURNING_DEPTH)
    mixed = np.clip(z, profile.SURFACE, top)
    growth = (np.minimum(mixed, profile.POWER_LAW_TOP) / profile.SURFACE) ** at(
        series.shear_exponent
    )
    angle = np.deg2rad(profile.VEER) * mixed / top
    u10, v10 = at(series.wind_u), at(series.wind_v)
    u = growth * (np.cos(angle) * u10 + np.sin(angle) * v10)
    v = growth * (np.cos(angle) * v10 - np.sin(angle) * u10)
    rise = np.clip((z - top) / (JET_HEIGHT - top), 0.0, 1.0)
    upper_u, upper_v = at(series.upper_u), at(series.upper_v)
    return u + rise * (upper_u - u), v + rise * (upper_v - v)


def hourly_weather(series: Weather, hours: float) -> dict[str, Field]:
    """Hourly winds at `STORED_HEIGHTS` and boundary-layer depths from ignition to `hours`."""
    times = np.arange(np.ceil(hours) + 1.0)
    wind_u, wind_v = wind_profile(series, times, STORED_HEIGHTS)
    return {
        WEATHER_HOUR: times,
        HEIGHT: np.array(STORED_HEIGHTS),
        "wind_u": wind_u,
        "wind_v": wind_v,
        "boundary_layer_depth": np.interp(times, series.hours, series.boundary_layer_depth),
    }


def _gust_noise(key: list[int], count: int) -> Field:
    """AR(1) noise of unit variance, x' = φ x + √(1 − φ²) ε, (count, 2).

    A longer series begins with the same values.
    """
    generator = np.random.default_rng(key)
    fresh = generator.standard_normal((count, 2))
    memory = np.exp(-STEP_HOURS / GUST_MEMORY_HOURS)
    noise = np.empty_like(fresh)
    noise[0] = fresh[0]
    for n in range(1, count):
        noise[n] = memory * noise[n - 1] + np.sqrt(1.0 - memory**2) * fresh[n]
    return noise
