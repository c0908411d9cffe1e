"""Time of taking one fire into a surrogate, as a ratio of its fit; and how good the result is.

    python benchmarks/update.py fires.nc --held-out 40

The store has fires with a weather each (docs/benchmarks.md says which). All but the held-out
ignitions and the last one are fitted, the last one is taken in. Times are CPU seconds of this
process, so that other programs do not count; use OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import plumecast as pc

TIMES = 3
"""Updates whose median time is stated."""


def timed(task: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return task(), time.process_time() - start


def errors(surrogate: pc.Surrogate, fires: xr.Dataset) -> str:
    """Median relative errors of g and ln(1 + g)."""
    predicted, observed = surrogate.predict(fires).values, fires.smoke.values
    found = [
        np.median(pc.scores.snapshot_relative_errors(*pair))
        for pair in ((predicted, observed), (np.log1p(predicted), np.log1p(observed)))
    ]
    return f"error {found[0]:.3f}, of ln(1 + g) {found[1]:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--preset", default="recommended")
    parser.add_argument("--held-out", type=int, default=0)
    parser.add_argument("--added", type=int, default=1, help="ignitions taken in, one by one")
    given = parser.parse_args()
    data = pc.open_snapshots(given.store).compute()
    names = np.random.default_rng(0).permutation(np.unique(data.ignition_id.values))

    def fires(chosen: np.ndarray) -> xr.Dataset:
        return data.isel(snapshot=np.flatnonzero(np.isin(data.ignition_id.values, chosen)))

    held, names = names[: given.held_out], names[given.held_out :]
    old, new = names[: -given.added], names[-given.added :]
    fitted, seconds = timed(lambda: pc.fit_surrogate(fires(old), given.preset, updatable=True))
    print(
        f"fit to {fires(old).sizes['snapshot']} snapshots of {old.size} ignitions: {seconds:.1f} s"
    )
    one = fires(new[:1])
    times = [timed(lambda: fitted.update(one))[1] for _ in range(TIMES)]
    middle = float(np.median(times))
    print(f"update by {one.sizes['snapshot']} snapshots: {middle:.2f} s, {middle / seconds:.1%}")
    if not held.size:
        return
    print(f"held out, {held.size} ignitions: fit {errors(fitted, fires(held))}")
    updated = fitted
    for name in new:
        updated = updated.update(fires(np.array([name])))
    print(f"with {given.added} more taken in: {errors(updated, fires(held))}")
    again = pc.fit_surrogate(fires(names), given.preset)
    print(f"fitted again to all: {errors(again, fires(held))}")


if __name__ == "__main__":
    main()
