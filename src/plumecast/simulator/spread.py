"""Spread of surface fires: Rothermel's rate in Albini's form, and the ellipse of every cell.

R = I_R ξ (1 + φ_W + φ_S) / (ρ_b ε Q_ig) is the ratio of the heat that reaches the fuel ahead to the
heat needed to ignite it. Sources: Rothermel (1972) INT-RP-115; Albini (1976) INT-GTR-30; Burgan
(1979) INT-RP-226 and Scott and Burgan (2005) RMRS-GTR-153 for curing herbs; Andrews (2012)
RMRS-GTR-266 for the wind at flame height; Andrews (2018) RMRS-GTR-371 for all of it in one place.
The fits use feet, pounds, BTU and minutes, so the fuel bed is computed in these units and converted
at the end.

A fire that spreads as an ellipse from its focus, with semi-axes a, b and a centre that moves at c,
has an arrival time T with b² |∇T|² + 2 c·∇T = 1, because a² − c² = b². With r = a / b² and
g = c / b² (hours per cell) this is |∇T + g| = r, an isotropic eikonal equation for the shifted
gradient. (r, g) is the metric of a cell; a ray in direction d takes r − g·d hours per cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Field, Mask
from plumecast.physics.fuels import J_KG_PER_BTU_LB, M_PER_FT, Codes, fuel_codes, fuel_table
from plumecast.physics.plume import damping_polynomial
from plumecast.simulator import compiled

KG_M2_PER_LB_FT2 = 0.45359237 / M_PER_FT**2
FT_MIN_PER_M_S = 60.0 / M_PER_FT
PARTICLE_DENSITY = 32.0  # oven-dry wood, lb ft⁻³
TOTAL_MINERALS = 0.0555  # fraction of the oven-dry mass
SILICA_FREE_MINERALS = 0.010
WIND_20FT_OVER_10M = 1.0 / 1.15
"""Ratio of the open wind at 20 ft to that at 10 m (Andrews 2012)."""

MAX_LENGTH_TO_BREADTH = 8.0
"""Largest elongation in the data of Anderson's fit (also the limit in FARSITE)."""

DEAD = 4  # particle classes 0–3 are dead (1 h, 10 h, 100 h, cured herbs), 4–5 live (herbs, woody)


class SpreadCoefficients(NamedTuple):
    """Coefficients of the spread rate for given fuels and moistures; arrays of one common shape.

    φ_W = wind_coefficient · U^wind_exponent with the midflame wind U in m s⁻¹, and
    φ_S = slope_coefficient · tan²(slope).
    """

    base_rate: Field  # no-wind, no-slope spread rate R₀, m min⁻¹
    wind_coefficient: Field  # C (β/β_op)^−E, for U in m s⁻¹
    wind_exponent: Field  # B
    slope_coefficient: Field  # 5.275 β^−0.3
    wind_adjustment: Field  # ratio of the midflame wind to the 10 m wind
    wind_limit: Field  # largest effective midflame wind, m s⁻¹


def head_spread_rate(
    fuel_model: Any, moisture: Sequence[npt.ArrayLike], *, wind_10m: npt.ArrayLike,
    slope: npt.ArrayLike,
) -> Field:  # fmt: skip
    """Spread rate of the head of the fire along the ground, m min⁻¹; all arguments broadcast.

    `fuel_model` has codes or names; `moisture` has the five fractions of `Moisture`; `wind_10m` is
    the wind at 10 m in the open, km h⁻¹, upslope (negative: downslope); `slope` is rise over run.
    """
    codes, *rest = np.broadcast_arrays(fuel_codes(fuel_model), *moisture, wind_10m, slope)
    wind, slope = (np.ravel(np.asarray(value, dtype=float)) for value in rest[5:])
    if not (np.isfinite(wind).all() and np.isfinite(slope).all()):
        raise PlumecastError("wind_10m and slope must be finite; fill the gaps first")
    c = spread_coefficients(codes.ravel(), [np.ravel(value) for value in rest[:5]])
    midflame = c.wind_adjustment * wind / 3.6
    return np.asarray(_head_rates(np.stack(c, axis=1), midflame, slope).reshape(codes.shape))


def spread_coefficients(fuel_model: Any, moisture: Sequence[npt.ArrayLike]) -> SpreadCoefficients:
    """The part of the model that depends on fuel and moisture but not on wind and slope.

    `moisture` has the five fractions of `Moisture`, each of which broadcasts with `fuel_model`.
    """
    codes, *moistures = np.broadcast_arrays(fuel_codes(fuel_model), *moisture)
    classes = np.stack([np.ravel(np.asarray(value, dtype=float)) for value in moistures], axis=-1)
    if not (np.isfinite(classes).all() and (classes >= 0.0).all()):
        raise PlumecastError(
            f"moisture must be fractions of at least 0, got {classes.min():g}; correct it"
        )
    table = fuel_table()
    columns = _fuel_beds(
        codes.ravel(), classes, table.load / KG_M2_PER_LB_FT2, table.sav * M_PER_FT,
        table.depth / M_PER_FT, table.extinction_moisture, table.heat_content / J_KG_PER_BTU_LB,
        table.dynamic,
    )  # fmt: skip
    return SpreadCoefficients(*(column.reshape(codes.shape) for column in columns))


@compiled()
def fire_ellipse(
    coefficients: Field, wind: tuple[float, float], slope: tuple[float, float]
) -> tuple[float, float, float, float]:
    """(head rate, eccentricity, heading x, heading y) under a midflame wind and a slope.

    `coefficients` are the six of `SpreadCoefficients` of one fuel, `wind` is the horizontal
    midflame wind vector, m s⁻¹, and `slope` the gradient of the terrain. Both are projected onto
    the ground. φ_W and φ_S are vectors along them, and their sum φ gives an effective wind by
    inverting φ_W. The effective wind is limited to 0.9 I_R (Rothermel 1972). The head rate
    R₀ (1 + |φ|) is measured along the ground; the heading is horizontal.
    """
    base_rate, wind_coefficient, wind_exponent = coefficients[0], coefficients[1], coefficients[2]
    slope_coefficient, wind_limit = coefficients[3], coefficients[5]
    climb = wind[0] * slope[0] + wind[1] * slope[1]
    speed = math.sqrt(wind[0] ** 2 + wind[1] ** 2 + climb**2)
    steepness = math.sqrt(slope[0] ** 2 + slope[1] ** 2)
    wind_pull = wind_coefficient * speed ** (wind_exponent - 1.0) if speed > 0.0 else 0.0
    slope_pull = slope_coefficient * steepness / math.sqrt(1.0 + steepness**2)
    x = wind_pull * wind[0] + slope_pull * slope[0]
    y = wind_pull * wind[1] + slope_pull * slope[1]
    z = wind_pull * climb + slope_pull * steepness**2
    phi = math.sqrt(x**2 + y**2 + z**2)
    if phi == 0.0 or base_rate == 0.0:
        return base_rate, 0.0, 1.0, 0.0
    level = math.sqrt(x**2 + y**2)
    effective = (phi / wind_coefficient) ** (1.0 / wind_exponent)
    if effective > wind_limit:
        effective = wind_limit
        phi = wind_coefficient * wind_limit**wind_exponent
    return base_rate * (1.0 + phi), eccentricity(effective), x / level, y / level


@compiled()
def eccentricity(effective_wind: float) -> float:
    """√(1 − 1/LB²) of the fire's ellipse; effective midflame wind in m s⁻¹.

    LB = 0.936 e^(0.2566 U) + 0.461 e^(−0.1548 U) − 0.397, at most 8, is the ratio of length to
    breadth (Anderson 1983, INT-RP-305), with the constant for which a fire without wind is a circle
    (Finney 1998, RMRS-RP-4).
    """
    ratio = 0.936 * math.exp(0.2566 * effective_wind) + 0.461 * math.exp(-0.1548 * effective_wind)
    ratio = min(max(ratio - 0.397, 1.0), MAX_LENGTH_TO_BREADTH)
    return math.sqrt(1.0 - 1.0 / ratio**2)


@compiled()
def _head_rates(coefficients: Field, wind: Field, slope: Field) -> Field:
    rates = np.empty(wind.size)
    for i in range(wind.size):
        rates[i] = fire_ellipse(coefficients[i], (wind[i], 0.0), (slope[i], 0.0))[0]
    return rates


@compiled()
def _fuel_beds(
    codes: Codes, moisture: Field, loads: Field, savs: Field, depths: Field, extinctions: Field,
    heats: Field, dynamic: Mask,
) -> Field:  # fmt: skip
    """Fields of `SpreadCoefficients`, (6, n), for n codes and (n, 5) moistures; ft, lb, BTU."""
    out = np.zeros((6, codes.size))
    for i in range(codes.size):
        code = codes[i]
        if depths[code] == 0.0:
            continue
        load, sav, wet = _six_classes(loads[code], savs[code], moisture[i], dynamic[code])
        share, live_share = _surface_weights(load, sav)
        sav_mean = _blend(share, live_share, sav)
        packing = load.sum() / (PARTICLE_DENSITY * depths[code])
        relative = packing * sav_mean**0.8189 / 3.348
        intensity = _reaction_intensity(load, sav, wet, share, extinctions[code], heats[code])
        intensity *= _reaction_velocity(sav_mean, relative)
        flux_ratio = math.exp((0.792 + 0.681 * math.sqrt(sav_mean)) * (packing + 0.1))
        flux_ratio /= 192.0 + 0.2595 * sav_mean
        ignition_heat = np.exp(-138.0 / np.maximum(sav, 1e-3)) * (250.0 + 1116.0 * wet)
        sink = load.sum() / depths[code] * _blend(share, live_share, ignition_heat)
        exponent = 0.02526 * sav_mean**0.54
        height = depths[code]
        out[0, i] = intensity * flux_ratio / sink * M_PER_FT
        out[1, i] = 7.47 * math.exp(-0.133 * sav_mean**0.55) * FT_MIN_PER_M_S**exponent
        out[1, i] *= relative ** (-0.715 * math.exp(-3.59e-4 * sav_mean))
        out[2, i] = exponent
        out[3, i] = 5.275 * packing**-0.3
        out[4, i] = WIND_20FT_OVER_10M * 1.83 / math.log((20.0 + 0.36 * height) / (0.13 * height))
        out[5, i] = 0.9 * intensity / FT_MIN_PER_M_S
    return out


@compiled()
def _six_classes(
    load: Field, sav: Field, moisture: Field, dynamic: bool
) -> tuple[Field, Field, Field]:
    """Loads, SAV ratios and moistures of six classes; cured herbs are the fourth dead class.

    The cured share decreases linearly from 1 at 30 % live-herb moisture to 0 at 120 %. Cured herbs
    keep their SAV ratio and have the moisture of the 1 h fuel.
    """
    cured = min(max((1.2 - moisture[3]) / 0.9, 0.0), 1.0) if dynamic else 0.0
    herbs = load[3]
    loads = np.array([load[0], load[1], load[2], cured * herbs, (1.0 - cured) * herbs, load[4]])
    savs = np.array([sav[0], sav[1], sav[2], sav[3], sav[3], sav[4]])
    wet = np.array([moisture[0], moisture[1], moisture[2], moisture[0], moisture[3], moisture[4]])
    return loads, savs, wet


@compiled()
def _surface_weights(load: Field, sav: Field) -> tuple[Field, float]:
    """Share of each class in the surface area of its category, and live share of all surface."""
    share = load * sav
    dead, live = share[:DEAD].sum(), share[DEAD:].sum()
    if dead > 0.0:
        share[:DEAD] /= dead
    if live > 0.0:
        share[DEAD:] /= live
    return share, live / (dead + live)


@compiled()
def _blend(share: Field, live_share: float, value: Field) -> float:
    """Mean over all classes, weighted by surface area."""
    dead: float = (share[:DEAD] * value[:DEAD]).sum()
    live: float = (share[DEAD:] * value[DEAD:]).sum()
    return (1.0 - live_share) * dead + live_share * live


@compiled()
def _reaction_velocity(sav: float, relative_packing: float) -> float:
    """Γ' = Γ'_max (β/β_op)^A exp(A (1 − β/β_op)), min⁻¹, with Albini's A = 133 σ^−0.7913."""
    maximum = sav**1.5 / (495.0 + 0.0594 * sav**1.5)
    a = 133.0 * sav**-0.7913
    velocity: float = maximum * relative_packing**a * math.exp(a * (1.0 - relative_packing))
    return velocity


@compiled()
def _reaction_intensity(
    load: Field, sav: Field, wet: Field, share: Field, extinction: float, heat: float
) -> float:
    """Σ over dead and live of w_n h η_M η_s, BTU ft⁻²; times Γ' it is the reaction intensity."""
    mineral_damping: float = 0.174 * SILICA_FREE_MINERALS**-0.19
    live_extinction = _live_extinction(load, sav, wet, extinction)
    total: float = 0.0
    for first, last, limit in ((0, DEAD, extinction), (DEAD, 6, live_extinction)):
        net_load = 0.0
        for i in range(first, last):
            for j in range(first, last):
                if _size_group(sav[i]) == _size_group(sav[j]):
                    net_load += share[j] * load[i]
        ratio = (share[first:last] * wet[first:last]).sum() / limit
        if ratio < 1.0:
            total += net_load * _moisture_damping(ratio)
    return total * (1.0 - TOTAL_MINERALS) * heat * mineral_damping


_moisture_damping = compiled()(damping_polynomial)


@compiled()
def _size_group(sav: float) -> int:
    """Albini's size group of a class, from σ in ft⁻¹; weights of loads add up within a group."""
    if sav >= 1200.0:
        return 0
    if sav >= 192.0:
        return 1
    if sav >= 96.0:
        return 2
    return 3 if sav >= 48.0 else 4


@compiled()
def _live_extinction(load: Field, sav: Field, wet: Field, extinction: float) -> float:
    """Extinction moisture of live fuel, 2.9 W (1 − M_dead / M_x,dead) − 0.226, at least M_x,dead.

    W is the ratio of fine dead to fine live load, Σ w e^(−138/σ) over Σ w e^(−500/σ), and M_dead is
    the moisture of the fine dead fuel.
    """
    dead = load[:DEAD] * np.exp(-138.0 / np.maximum(sav[:DEAD], 1e-3))
    live = (load[DEAD:] * np.exp(-500.0 / np.maximum(sav[DEAD:], 1e-3))).sum()
    if live == 0.0 or dead.sum() == 0.0:
        return extinction
    fine_moisture = (dead * wet[:DEAD]).sum() / dead.sum()
    limit = 2.9 * dead.sum() / live * (1.0 - fine_moisture / extinction) - 0.226
    return float(max(limit, extinction))


class CellProperties(NamedTuple):
    """Properties of every cell that determine its metric."""

    fuel: Codes  # (ny, nx) code
    slope_x: npt.NDArray[np.float32]  # (ny, nx) rise over run
    slope_y: npt.NDArray[np.float32]
    steering: npt.NDArray[np.float32]  # (ny, nx, 2, 2), or (0, 0, 2, 2) for none
    coefficients: Field  # (256, 6) base rate … wind limit by fuel code
    cells_per_hour: float  # speed of 1 m min⁻¹ in cells h⁻¹


@compiled()
def metric_in_wind(
    ground: CellProperties, row: int, column: int, wind: Field
) -> tuple[float, float, float]:
    """(r, g_x, g_y) in h per cell of one burnable cell, for a 10 m wind in m s⁻¹."""
    c = ground.coefficients[ground.fuel[row, column]]
    slope = (float(ground.slope_x[row, column]), float(ground.slope_y[row, column]))
    u, v = wind[0] * c[4], wind[1] * c[4]
    if ground.steering.size > 0:
        s = ground.steering[row, column]
        u, v = s[0, 0] * u + s[0, 1] * v, s[1, 0] * u + s[1, 1] * v
    head, e, x, y = fire_ellipse(c, (u, v), slope)
    head *= ground.cells_per_hour / math.sqrt(1.0 + (slope[0] * x + slope[1] * y) ** 2)
    r = 1.0 / (head * (1.0 - e))
    return r, r * e * x, r * e * y


@compiled()
def front_speed(r: float, gx: float, gy: float, px: float, py: float) -> float:
    """H(p) = c·p + √(b² |p|² + (c·p)²); for |p| = 1, the speed of the front in cells h⁻¹.

    H(∇T) = 1 is the eikonal equation of the metric.
    """
    b2 = 1.0 / (r * r - gx * gx - gy * gy)
    drift = b2 * (gx * px + gy * py)
    return drift + math.sqrt(b2 * (px * px + py * py) + drift * drift)
