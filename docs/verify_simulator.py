"""Print the verification table of docs/simulator.md: `python docs/verify_simulator.py`."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from plumecast.source.simulator.emission import emission
from plumecast.source.simulator.fire import EMISSION_MINUTES, terrain
from plumecast.source.simulator.front import arrival_times
from plumecast.source.simulator.landscape import Landscape, ignition_mask, synthetic_landscape
from plumecast.source.simulator.smoke import carry_smoke
from plumecast.source.simulator.spread import (
    Moisture,
    fire_ellipse,
    head_spread_rate,
    spread_coefficients,
)
from plumecast.source.simulator.weather import weather

REFERENCE = Path(__file__).parents[2] / "shared/data/reference/surface_spread_rates.csv"
DRY = Moisture(0.05, 0.06, 0.07, 0.60, 0.90)
GRASS = 102


def spread_error() -> tuple[int, float]:
    """Rows of the reference table and the largest relative difference of the head-fire rate."""
    with REFERENCE.open() as file:
        rows = list(csv.DictReader(file))
    names = (
        "dead_1h", "dead_10h", "dead_100h", "live_herb", "live_woody", "wind_10m_km_h",
        "slope_rise_over_run",
    )  # fmt: skip
    columns = [np.array([float(row[name]) for row in rows]) for name in names]
    codes = np.array([int(row["fuel_model"]) for row in rows])
    expected = np.array([float(row["spread_rate_m_min"]) for row in rows])
    found = head_spread_rate(codes, *columns)
    burns = expected > 0.0
    return len(rows), float(np.max(np.abs(found - expected)[burns] / expected[burns]))


def ellipse_errors(speed: float, hours: float = 20.0) -> dict[str, float]:
    """Worst relative errors over 24 wind directions on uniform ground: area, head, flank, back."""
    size = 401
    flat = np.zeros((size, size))
    landscape = Landscape(flat, np.full((size, size), GRASS, dtype=np.int16), 300.0)
    c = spread_coefficients(np.array([GRASS]), *DRY)
    parts = [float(x[0]) for x in (
        c.base_rate, c.wind_coefficient, c.wind_exponent, c.slope_coefficient, c.wind_limit,
    )]  # fmt: skip
    u = speed * float(c.wind_adjustment[0])
    rate, eccentricity, _, _ = fire_ellipse(*parts, (u, 0.0), (0.0, 0.0))
    # Semi-axes and distances of the ellipse whose focus is the ignition, in cells.
    head = rate * 60.0 * hours / 300.0
    scale = min(1.0, 150.0 / head)
    hours, head = hours * scale, head * scale
    back = head * (1.0 - eccentricity) / (1.0 + eccentricity)
    major = 0.5 * (head + back)
    minor = major * math.sqrt(1.0 - eccentricity**2)
    centre = size // 2
    worst = {"area": 0.0, "head": 0.0, "flank": 0.0, "back": 0.0}
    y, x = np.mgrid[:size, :size] - centre
    for degrees in range(0, 360, 15):
        angle = math.radians(degrees)
        arrival = arrival_times(
            landscape, DRY, [0.0], [speed * math.cos(angle)], [speed * math.sin(angle)],
            ignition=(centre, centre), until_hours=hours,
        )  # fmt: skip
        burned = np.isfinite(arrival)
        along = x * math.cos(angle) + y * math.sin(angle)
        across = -x * math.sin(angle) + y * math.cos(angle)
        half = 0.5  # a burned cell reaches half a cell beyond its centre
        measured = {
            "area": float(burned.sum()) / (math.pi * major * minor),
            "head": (along[burned].max() + half) / head,
            "flank": (np.abs(across[burned]).max() + half) / minor,
            "back": (half - along[burned].min()) / back if back > 5.0 else 1.0,
        }
        worst = {key: max(worst[key], abs(measured[key] - 1.0)) for key in worst}
    return worst


def budget() -> float:
    """Imbalance of the smoke account of a whole fire."""
    landscape = synthetic_landscape(0)
    ground = terrain(landscape)
    series = weather("high", hours=24.0)
    chosen = np.random.default_rng(3).choice(np.flatnonzero(ignition_mask(landscape)))
    arrival = arrival_times(
        landscape, series.moisture, series.hours, series.wind_u, series.wind_v,
        steering=ground.steering, ignition=divmod(int(chosen), 1000), until_hours=24.0,
    )  # fmt: skip
    ends = np.linspace(0.0, 24.0, int(24 * 60 / EMISSION_MINUTES) + 1)
    source = emission(
        arrival, landscape.fuel, moisture=series.moisture, hours=ends, cell=300.0, block=10
    )
    _, plume = carry_smoke(
        source, series, layers=ground.layers, steering=ground.faces, cell=3000.0,
        checkpoints=[6.0, 12.0, 18.0, 24.0],
    )  # fmt: skip
    return float(plume.imbalance)


def main() -> None:
    if REFERENCE.exists():
        count, error = spread_error()
        print(f"spread rate, {count} reference rows: largest difference {error:.2%}")
    for speed in (0.0, 2.0, 5.0, 10.0):
        errors = ellipse_errors(speed)
        shown = ", ".join(f"{name} {value:.1%}" for name, value in errors.items())
        print(f"ellipse at {speed:g} m/s, 24 directions, worst: {shown}")
    print(f"mass budget of a 24 h fire: {budget():.0e} of what was emitted")


if __name__ == "__main__":
    main()
