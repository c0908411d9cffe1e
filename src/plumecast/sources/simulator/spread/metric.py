"""Metric of fire spread in each cell: the ellipse given by its fuel, slope and local wind.

A fire that spreads as an ellipse from its focus, with semi-axes a, b and a centre that moves at c,
has an arrival time T with b² |∇T|² + 2 c·∇T = 1, because a² − c² = b². With r = a / b² and
g = c / b² (hours per cell) this is |∇T + g| = r, an isotropic eikonal equation for the shifted
gradient. A ray in direction d takes r − g·d hours per cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plumecast.sources.simulator.compiled import compiled
from plumecast.sources.simulator.fields import Codes, Field
from plumecast.sources.simulator.spread.rothermel import fire_ellipse


class Ground(NamedTuple):
    """Properties of every cell that determine its metric."""

    fuel: Codes  # (ny, nx) code
    slope_x: npt.NDArray[np.float32]  # (ny, nx) rise over run
    slope_y: npt.NDArray[np.float32]
    steering: npt.NDArray[np.float32]  # (ny, nx, 2, 2), or (0, 0, 2, 2) for none
    coefficients: Field  # (256, 6) base rate … wind limit by fuel code
    cells_per_hour: float  # speed of 1 m min⁻¹ in cells h⁻¹


@compiled()
def metric_in_wind(
    ground: Ground, row: int, column: int, wind: Field
) -> tuple[float, float, float]:
    """(r, g_x, g_y) in h per cell of one burnable cell, for a 10 m wind in m s⁻¹."""
    c = ground.coefficients[ground.fuel[row, column]]
    slope = (float(ground.slope_x[row, column]), float(ground.slope_y[row, column]))
    u, v = wind[0] * c[4], wind[1] * c[4]
    if ground.steering.size > 0:
        s = ground.steering[row, column]
        u, v = s[0, 0] * u + s[0, 1] * v, s[1, 0] * u + s[1, 1] * v
    head, e, x, y = fire_ellipse(c[0], c[1], c[2], c[3], c[5], (u, v), slope)
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
