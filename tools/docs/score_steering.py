"""Print the table of docs/results/other-problems.md on steering, for one store per strength of it.

    plumecast simulate --steering 0 --ignitions 40 --droughts medium --checkpoints 10 -o s0.zarr
    python tools/docs/score_steering.py s0.zarr s1.2.zarr s3.4.zarr

Ignitions are split before small fires are dropped, so that stores with the same ignitions have the
same split.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np
import xarray as xr

import plumecast as pc
from plumecast.simulator.atmosphere import STEERING_STRENGTH
from plumecast.workflows.simulate import SETTINGS

ROWS: dict[str, Callable[[xr.Dataset], pc.Surrogate]] = {
    "mean field": lambda train: pc.surrogate.fit_baseline("mean-field", train),
    "nearest fire": lambda train: pc.surrogate.fit_baseline("nearest-fire", train),
    "paper-quadratic": lambda train: pc.fit_surrogate(train, "paper-quadratic"),
    "recommended": lambda train: pc.fit_surrogate(train, "recommended"),
    "recommended with position": lambda train: pc.fit_surrogate(
        train, "recommended", lift=("age-bins", "burned", "position")
    ),
}


def log_error(surrogate: pc.Surrogate, test: xr.Dataset) -> float:
    """Median over snapshots of the relative error of ln(g + 1)."""
    pair = np.log1p(surrogate.predict(test)), np.log1p(test.smoke)
    return float(np.nanmedian(pc.scores.snapshot_relative_errors(*pair)))


def score(path: str) -> None:
    """The rows of one store, after a line that says what it holds."""
    snapshots = pc.open_snapshots(path).load()
    recorded = json.loads(snapshots.attrs[SETTINGS])
    split = pc.split_by_fire(snapshots, fractions=(0.45, 0.10, 0.45), seed=0)
    train, validation, test = (
        pc.data.drop_small_fires(part) for part in (split.train, split.validation, split.test)
    )
    sizes = ", ".join(
        f"{part.sizes['snapshot']} of {np.unique(part.ignition_id).size} ignitions"
        for part in (train, validation, test)
    )
    print(f"{path}: train, validation, test {sizes}", flush=True)
    for name, fit in ROWS.items():
        start = time.perf_counter()
        surrogate = fit(train)
        seconds = time.perf_counter() - start
        found = pc.evaluate({name: surrogate}, validation, test).scores[0]
        numbers = [
            found.auc, found.iou, found.deployable_iou, found.snapshot_error,
            log_error(surrogate, test),
        ]  # fmt: skip
        cells = " | ".join(f"{number:.3f}" for number in numbers)
        steering = recorded.get("steering", STEERING_STRENGTH)
        print(f"| {steering:g} | {name} | {cells} | {seconds:.0f} s |", flush=True)


def main() -> None:
    print("| steering | | AUC | IoU | deployable | rel | rel ln | fit |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in sys.argv[1:]:
        score(path)


if __name__ == "__main__":
    main()
