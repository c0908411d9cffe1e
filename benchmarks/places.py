"""Smoke of very many fires at fifty places with intervals: seconds and peak memory.

    export PYTHONPATH=src
    python benchmarks/places.py --fires 100000 --preset paper-quadratic
    python benchmarks/places.py --fires 100000 --preset recommended --device cuda

Fires are made as they are predicted: an ellipse of random place, size, heading and duration on a
grid of 80 × 100 cells, one snapshot each. The training smoke is a plume downwind of every ellipse.
The time is that of `pc.evaluate_points` less that of making the fires, which is printed too; on a
shared machine look at the CPU time. Needs
numpy, scipy, xarray, array-api-compat and threadpoolctl, and torch for a GPU; no store is read.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from plumecast.compute.resources import Resources
from plumecast.scores.reading import Reading
from plumecast.sources.places import Places
from plumecast.surrogate.fit import fit_surrogate
from plumecast.workflows.ensemble import evaluate_points
from plumecast.workflows.statistics.request import Statistics

SHAPE, CELL = (80, 100), 3000.0
TOGETHER = 1024
PLACES = 50


def make_fires(numbers: np.ndarray, *, smoke: bool = False) -> xr.Dataset:
    """A snapshot of each of some fires; the same number is the same fire."""
    rng = np.random.default_rng([int(numbers[0]), 1])
    count = numbers.size
    row, column = (rng.uniform(0.15, 0.85, size=count) * size for size in SHAPE)
    hours = 6.0 * rng.integers(1, 13, size=count)
    reach = rng.uniform(0.03, 0.15, size=count) * hours
    y, x = (np.arange(size, dtype=np.float32) for size in SHAPE)
    down, across = (
        (axis[None, :] - centre[:, None].astype(np.float32)) / reach[:, None].astype(np.float32)
        for axis, centre in ((x, column), (y, row))
    )
    distance = np.sqrt(0.5 * np.square(down)[:, None, :] + np.square(across)[:, :, None])
    age = np.maximum(1.0 - distance, 0.0) * hours[:, None, None].astype(np.float32)
    data = {"time_since_ignition": (("snapshot", "y", "x"), age, {"units": "h"})}
    if smoke:
        ahead = np.maximum(down, 0.0)[:, None, :]
        width = 0.3 + 0.2 * ahead
        plume = np.exp(-np.square(across)[:, :, None] / width - 0.2 * ahead) / width
        plume *= (down > -0.5)[:, None, :] * reach[:, None, None] ** 2
        known = {"units": "ug m-3", INTERVAL: 6.0}
        data["smoke"] = (("snapshot", "y", "x"), plume.astype(np.float32), known)
    names = np.char.add("fire-", numbers.astype(str))
    return xr.Dataset(
        data,
        coords={
            "y": ("y", CELL * y, {"units": "m"}),
            "x": ("x", CELL * x, {"units": "m"}),
            "fire_id": ("snapshot", names),
            "ignition_id": ("snapshot", names),
            "drought": ("snapshot", np.full(count, "high")),
            "hours": ("snapshot", hours),
        },
    )


@dataclass
class Made:
    """Fires that are made on demand; `seconds` is the time that this took."""

    count: int
    first: int = 10**6
    seconds: list[float] = field(default_factory=list)

    def sums(
        self, function: Callable[[xr.Dataset], Any], runner: Any, progress: Any
    ) -> Iterator[Any]:
        """The function of every block of fires."""
        for start in range(0, self.count, TOGETHER):
            begun = time.perf_counter()
            stop = min(start + TOGETHER, self.count)
            fires = make_fires(self.first + np.arange(start, stop))
            self.seconds.append(time.perf_counter() - begun)
            yield function(fires)


def random_places() -> Places:
    rng = np.random.default_rng(0)
    rows, columns = (rng.integers(size, size=PLACES) for size in SHAPE)
    people = rng.integers(100, 100_000, size=PLACES).astype(float)
    names = tuple(f"town {number}" for number in range(PLACES))
    cells = rows * SHAPE[1] + columns
    return Places(names, cells, rows, columns, {"population": people}, "generated")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fires", type=int, default=100_000)
    parser.add_argument("--trained", type=int, default=300, help="number of training fires")
    parser.add_argument("--preset", default="paper-quadratic")
    parser.add_argument("--device", default="cpu", help="cpu, torch, cuda")
    parser.add_argument("--precision", default="float64")
    options = parser.parse_args()
    training = make_fires(np.arange(options.trained), smoke=True)
    surrogate = fit_surrogate(training, options.preset, resources=Resources(device=options.device))
    fires = Made(options.fires)
    begun, used = time.perf_counter(), time.process_time()
    found = evaluate_points(
        surrogate,
        fires,
        random_places(),
        Reading(thresholds=[1.0, 35.0]),
        Statistics([0.5, 0.95], precision=options.precision),
        notify=lambda notice: None,
        resources=Resources(device=options.device),
    )
    whole, making = time.perf_counter() - begun, sum(fires.seconds)
    used = time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    low, high = float(found.exposure_lower), float(found.exposure_upper)
    print(f"{options.preset} on {options.device}: {options.fires} fires × {PLACES} places")
    print(f"{whole - making:.1f} s, and {making:.1f} s to make the fires; peak {peak / 1e9:.2f} GB")
    print(f"{used:.1f} s of CPU time in all")
    print(f"exposure {float(found.exposure):.4g} ({low:.4g} … {high:.4g}) ug m-3")


if __name__ == "__main__":
    main()
