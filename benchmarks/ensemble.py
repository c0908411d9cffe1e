"""Statistics of very many fires that are read from a store: seconds, fires/s and peak memory.

    export PYTHONPATH=src
    python benchmarks/ensemble.py --fires 20000
    python benchmarks/ensemble.py --fires 1000000 --stored 100000 --device cuda

The fires are those of `places.py`: ellipses on 80 × 100 cells, one snapshot each. `--stored` of
them are written to a Zarr store, which is read as often as `--fires` needs; the time is that of
`pc.ensemble_statistics`, reading included: mean, one exceedance probability and three quantiles by
cell, with the intervals of a surrogate that has error bars. `--profile` shows where it goes.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr

from places import make_fires
from plumecast.compute.resources import Resources
from plumecast.data.writers import write_blocks
from plumecast.scores.reading import Reading
from plumecast.workflows.ensemble import ensemble_statistics
from plumecast.workflows.statistics.request import Statistics
from plumecast.workflows.train import train_surrogate

TOGETHER = 4096


def blocks(count: int) -> Iterator[xr.Dataset]:
    """Fires with numbers that no training fire has."""
    for start in range(0, count, TOGETHER):
        yield make_fires(10**6 + np.arange(start, min(start + TOGETHER, count)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fires", type=int, default=20_000)
    parser.add_argument("--stored", type=int, help="fires in the store; default: all")
    parser.add_argument("--trained", type=int, default=300, help="number of training fires")
    parser.add_argument("--presets", default="recommended", help="comma-separated")
    parser.add_argument("--device", default="cpu", help="cpu, torch, cuda")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    stored = options.fires if options.stored is None else min(options.stored, options.fires)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "fires.zarr"
        begun = time.perf_counter()
        write_blocks(blocks(stored), store)
        size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
        print(f"{stored} fires written in {time.perf_counter() - begun:.1f} s, {size / 1e9:.2f} GB")
        for preset in options.presets.split(","):
            run(preset, [store] * (options.fires // stored), stored, options)


def run(preset: str, stores: list[Path], stored: int, options: argparse.Namespace) -> None:
    begun = time.perf_counter()
    training = make_fires(np.arange(options.trained), smoke=True)
    surrogate = train_surrogate(training, preset, split=None, resources=Resources(options.device))
    trained = time.perf_counter() - begun
    profile = cProfile.Profile() if options.profile else None
    begun = time.perf_counter()
    if profile is not None:
        profile.enable()
    found = ensemble_statistics(
        surrogate,
        stores,
        Reading(thresholds=[1.0]),
        Statistics([0.5, 0.9, 0.95]),
        notify=lambda notice: None,
        resources=Resources(device=options.device),
    )
    if profile is not None:
        profile.disable()
    seconds, fires = time.perf_counter() - begun, stored * len(stores)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{preset} on {options.device}: trained with error bars in {trained:.1f} s; {fires} fires "
        f"in {seconds:.1f} s, {fires / seconds:.0f} fires/s; peak {peak / 1e9:.2f} GB; largest "
        f"mean {float(found.mean_smoke.max()):.4g} ug m-3",
        flush=True,
    )
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
