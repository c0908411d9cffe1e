"""Print the tables of docs/accuracy.md for a store of WRF-Fire snapshots.

    python docs/score_accuracy.py ensemble.nc shared-weather 2
    python docs/score_accuracy.py ensemble.nc diverse-weather 3

The arguments are the store, the design (its coordinate `ensemble`) and how many ignitions are held
out at a time. The smoke threshold is that of the training fires. Scores are medians over all
held-out snapshots.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict

import numpy as np
import xarray as xr

import plumecast as pc
from plumecast.operators.settings import PRESETS
from plumecast.surrogate.baselines import BASELINES

FLOOR = 0.01  # µg m⁻³


def rows(snapshots: xr.Dataset, chosen: np.ndarray) -> xr.Dataset:
    return snapshots.isel(snapshot=np.flatnonzero(chosen))


def main() -> None:
    path, design, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    snapshots = pc.apply_smoke_floor(pc.open_snapshots(path).load(), FLOOR)
    snapshots = rows(snapshots, snapshots.ensemble.values == design)
    ignitions = np.unique(snapshots.ignition_id.values)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for start in range(0, ignitions.size, count):
        held_out = np.isin(snapshots.ignition_id.values, ignitions[start : start + count])
        train, test = rows(snapshots, ~held_out), rows(snapshots, held_out)
        tau = pc.smoke_threshold(train.smoke)
        for name in (*PRESETS, *BASELINES):
            begin = time.perf_counter()
            if name in PRESETS:
                surrogate = pc.fit_surrogate(train, name)
            else:
                surrogate = pc.fit_baseline(name, train)
            seconds = time.perf_counter() - begin
            smoke = surrogate.predict(test)
            score = surrogate.predict_footprint(test) if surrogate.detects else smoke
            scores = pc.score_footprints(score, test.smoke, tau)
            logs = np.log1p(smoke), np.log1p(test.smoke)
            mine = found[name]
            mine["AUC"] += scores.auc.values.tolist()
            mine["IoU"] += scores.iou.values.tolist()
            mine["rel"] += pc.snapshot_relative_errors(smoke, test.smoke).tolist()
            mine["rel ln"] += pc.snapshot_relative_errors(*logs).tolist()
            mine["fit s"].append(seconds)
    print("| | AUC | IoU | rel | rel ln | fit s |\n| --- | --- | --- | --- | --- | --- |")
    for name, columns in found.items():
        medians = [f"{np.nanmedian(values):.3f}" for values in columns.values()]
        print(f"| {name} | {' | '.join(medians)} |")


if __name__ == "__main__":
    main()
