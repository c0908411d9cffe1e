"""How many fires a comparison of treated with untreated fuels needs, paired and unpaired.

    PYTHONPATH=src python benchmarks/compare.py --ignitions 60

A hill of timber with understory (TU5, 72 km by 96 km) and the same hill with a thinned strip (TL1)
burn from the same ignitions, each with a drawn weather of its own; smoke is simulated. For the mean
over the grid and for four towns, the table has

- the difference and the half width of its 95 % interval from n pairs;
- the half width from n fires of each scenario as independent samples (Welch);
- the share of fires that pairs need for the same width: the ratio of the squared errors,
  var(b − a) / (var(a) + var(b)).

A line below checks the unpaired width on fires that are independent indeed: untreated fires of one
half of the ignitions against treated fires of the other half, whose squared error should be twice
that of all. The last lines have the coverage of paired 95 % intervals where all pairs are the
population, and 20, 50 or 100 of them are drawn with replacement, 2,000 times.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.impact.difference import (
    Difference,
    paired_difference,
    unpaired_difference,
)
from plumecast.physics.fuels import FUEL_CODES
from plumecast.workflows.fires.draw_fires import Change, DrawnFires, draw_scenarios
from plumecast.workflows.simulate import Ground

SHAPE, CELL = (120, 160), 600.0  # of the fire grid; smoke cells are ten times as large
STRIP = slice(70, 86)  # columns that are thinned
TOWNS = {"west": (6, 3), "centre": (6, 8), "east": (6, 13), "north": (10, 8)}  # smoke cells
CHECKPOINTS = 6


def write_rasters(folder: Path) -> dict[str, Path]:
    """GeoTIFFs of the elevation and of both fuels."""
    import rasterio

    y, x = np.indices(SHAPE) / max(SHAPE)
    hill = 1000.0 + 500.0 * np.exp(-8.0 * ((x - 0.5) ** 2 + (y - 0.4) ** 2))
    fuels = np.full(SHAPE, FUEL_CODES["TU5"], dtype=np.int16)
    thinned = fuels.copy()
    thinned[:, STRIP] = FUEL_CODES["TL1"]
    bands = {"dem": hill.astype(np.float32), "untreated": fuels, "treated": thinned}
    place = {
        "crs": "EPSG:5070",
        "transform": rasterio.Affine(CELL, 0, 0, 0, -CELL, SHAPE[0] * CELL),
    }
    size = {"driver": "GTiff", "height": SHAPE[0], "width": SHAPE[1], "count": 1}
    for name, band in bands.items():
        with rasterio.open(folder / f"{name}.tif", "w", dtype=band.dtype, **size, **place) as file:
            file.write(band, 1)
    return {name: folder / f"{name}.tif" for name in bands}


def time_means(fires: DrawnFires) -> np.ndarray:
    """(n, 1 + towns) time-mean smoke over the grid and at the towns, at the end of every fire."""
    rows = []
    for plan in fires.plans:
        last: xr.Dataset = fires.make([plan]).isel(snapshot=-1)
        smoke = last.smoke.values / CHECKPOINTS  # g Δ / h with h = CHECKPOINTS Δ
        rows.append([smoke.mean(), *(smoke[cell] for cell in TOWNS.values())])
    return np.array(rows, dtype=np.float64)


def half_width(found: Difference) -> np.ndarray:
    low, high = found.change.interval(0.95)
    return np.asarray(0.5 * (high - low))


def coverage(a: np.ndarray, b: np.ndarray, size: int, repetitions: int = 2000) -> np.ndarray:
    """Share of repetitions whose paired interval contains the mean difference of all pairs."""
    rng, truth = np.random.default_rng(size), (b - a).mean(axis=0)
    inside = np.zeros(truth.shape)
    for _ in range(repetitions):
        rows = rng.integers(a.shape[0], size=size)
        low, high = paired_difference(a[rows], b[rows], np.arange(size)).change.interval(0.95)
        inside += (low <= truth) & (truth <= high)
    return np.asarray(inside / repetitions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ignitions", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rasters = write_rasters(Path(folder))
        changes = {name: Change(fuels=rasters[name]) for name in ("untreated", "treated")}
        drawn = draw_scenarios(
            given.ignitions, changes, ground=Ground(dem=rasters["dem"]), weathers=1,
            checkpoints=CHECKPOINTS, seed=given.seed, with_smoke=True,
        )  # fmt: skip
        a, b = (time_means(fires) for fires in drawn.values())
    ignitions = np.arange(given.ignitions)
    paired = paired_difference(a, b, ignitions)
    unpaired = unpaired_difference(a, ignitions, b, ignitions)
    share = paired.change.error**2 / unpaired.change.error**2
    print(f"{given.ignitions} ignitions, seed {given.seed}")
    print(
        "| | untreated | treated | difference | ± paired | ± unpaired | fires, paired : unpaired |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for i, name in enumerate(["mean over the grid", *TOWNS]):
        print(
            f"| {name} | {paired.reference[i]:.3g} | {paired.other[i]:.3g} | "
            f"{paired.change.mean[i]:+.2g} | {half_width(paired)[i]:.2g} | "
            f"{half_width(unpaired)[i]:.2g} | {share[i]:.3f} |"
        )
    half = given.ignitions // 2
    apart = unpaired_difference(a[:half], ignitions[:half], b[half:], ignitions[half:])
    check = apart.change.error**2 / unpaired.change.error**2
    print(f"squared error of independent halves over that of all: {np.round(check, 2).tolist()}")
    for size in (20, 50, 100):
        print(f"coverage with {size} pairs: {np.round(coverage(a, b, size), 3).tolist()}")


if __name__ == "__main__":
    main()
