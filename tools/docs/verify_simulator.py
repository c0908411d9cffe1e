"""Print the verification table of docs/explanation/simulator.md.

python tools/docs/verify_simulator.py
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from scipy.ndimage import map_coordinates

from plumecast.physics.fuels import Moisture
from plumecast.simulator.fire import EMISSION_MINUTES, terrain
from plumecast.simulator.front import arrival_times
from plumecast.simulator.landscape import Landscape, ignition_mask, synthetic_landscape
from plumecast.simulator.smoke import carry_smoke, emission
from plumecast.simulator.spread import eccentricity, head_spread_rate, spread_coefficients
from plumecast.simulator.weather import weather

REFERENCE = Path(__file__).parents[3] / "shared/data/reference/surface_spread_rates.csv"
DRY = Moisture(0.05, 0.06, 0.07, 0.60, 0.90)
GRASS = 102
CELL = 300.0


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
    *moisture, wind, slope = columns
    found = head_spread_rate(codes, moisture, wind_10m=wind, slope=slope)
    burns = expected > 0.0
    return len(rows), float(np.max(np.abs(found - expected)[burns] / expected[burns]))


def ellipse_errors(wind: float, length: float = 120.0) -> dict[str, float]:
    """Worst relative errors over 24 wind directions on uniform grass: area, head, flank, back.

    The fire runs until its head is `length` cells away; distances are read between cells.
    """
    c = spread_coefficients(GRASS, DRY)
    head = float(head_spread_rate(GRASS, DRY, wind_10m=3.6 * wind, slope=0.0)) * 60.0 / CELL
    e = eccentricity(min(float(c.wind_adjustment) * wind, float(c.wind_limit)))
    time = length / head
    centre = length * e / (1.0 + e)  # of the ellipse, from its focus
    half = int(length / (1.0 + e)) + 12
    size = (2 * half, 2 * half)
    landscape = Landscape(np.zeros(size), np.full(size, GRASS, dtype=np.int16), CELL)
    later = time + 2.0 * (1.0 + e) / (1.0 - e) / head
    worst = {"area": 0.0, "head": 0.0, "flank": 0.0, "back": 0.0}
    for degrees in range(0, 360, 15):
        angle = math.radians(degrees)
        x, y = math.cos(angle), math.sin(angle)
        ignition = (half - round(centre * y), half - round(centre * x))
        arrival = arrival_times(
            landscape, DRY, [0.0], [wind * x], [wind * y], ignition=ignition, until_hours=later
        )
        exact = math.pi * (length / (1.0 + e)) ** 2 * math.sqrt(1.0 - e * e)
        errors = {"area": np.count_nonzero(arrival <= time) / exact - 1.0}
        for name, turn in (("head", 0), ("flank", 90), ("flank", -90), ("back", 180)):
            reach = length * (1.0 - e) / (1.0 - e * math.cos(math.radians(turn)))
            found = _distance(arrival, ignition, angle + math.radians(turn), time)
            errors[name] = found / reach - 1.0
            worst[name] = max(worst[name], abs(errors[name]))
        worst["area"] = max(worst["area"], abs(errors["area"]))
    return worst


def _distance(arrival: np.ndarray, start: tuple[int, int], angle: float, time: float) -> float:
    """Cells along a ray to where the arrival time passes `time`."""
    step = np.arange(0.5, max(arrival.shape), 0.1)
    known = np.where(np.isfinite(arrival), arrival, 1e6)
    points = [start[0] + step * math.sin(angle), start[1] + step * math.cos(angle)]
    along = map_coordinates(known, points, order=1, mode="nearest")
    beyond = int(np.argmax(along > time))
    before = along[beyond - 1]
    return float(step[beyond - 1] + 0.1 * (time - before) / (along[beyond] - before))


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
    smoke = carry_smoke(
        source, series, layers=ground.layers, steering=ground.faces, cell=3000.0,
        checkpoints=[6.0, 12.0, 18.0, 24.0],
    )  # fmt: skip
    return float(smoke.state.imbalance)


def main() -> None:
    if REFERENCE.exists():
        count, error = spread_error()
        print(f"spread rate, {count} reference rows: largest difference {error:.2%}")
    for speed in (0.0, 6.0, 12.0, 20.0):
        errors = ellipse_errors(speed)
        shown = ", ".join(f"{name} {value:.1%}" for name, value in errors.items())
        print(f"ellipse at {speed:g} m/s, 24 directions, worst: {shown}")
    print(f"mass budget of a 24 h fire: {budget():.0e} of the emitted mass")


if __name__ == "__main__":
    main()
