"""Print the tables of docs/results/{shared,own}-weather.md for a store of WRF-Fire snapshots.

    python tools/docs/score_accuracy.py ensemble.nc shared-weather 2
    python tools/docs/score_accuracy.py ensemble.nc diverse-weather 3
    python tools/docs/score_accuracy.py mountains.nc mountains 3 recommended map+column wind+none

The arguments are the store, the design (its coordinate `ensemble`), how many ignitions are held
out at a time and perhaps names of methods: a preset, a baseline, or the recommended preset with
another frame and physics (FRAME+PHYSICS). The smoke threshold and the decision threshold
("deployable") are those of the training fires. Scores are medians over all held-out snapshots.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict

import numpy as np
import xarray as xr

import plumecast as pc
from plumecast.operators.settings import PRESETS
from plumecast.paper.methods import PHYSICS_ALONE, fit_physics_alone
from plumecast.paper.scoring import score_surrogate
from plumecast.surrogate.baselines import BASELINES
from plumecast.surrogate.surrogate import Surrogate

FLOOR = 0.01  # µg m⁻³


def rows(snapshots: xr.Dataset, chosen: np.ndarray) -> xr.Dataset:
    return snapshots.isel(snapshot=np.flatnonzero(chosen))


def fit(name: str, train: xr.Dataset) -> Surrogate:
    if name in BASELINES:
        return pc.surrogate.fit_baseline(name, train)
    if name == PHYSICS_ALONE:
        return fit_physics_alone(train)
    if name in PRESETS:
        return pc.fit_surrogate(train, name)
    frame, physics = name.split("+")
    return pc.fit_surrogate(train, "recommended", frame=frame, physics=physics)


def main() -> None:
    path, design, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    methods = sys.argv[4:] or [*PRESETS, *BASELINES]
    snapshots = pc.data.apply_smoke_floor(pc.open_snapshots(path).load(), FLOOR)
    snapshots = rows(snapshots, snapshots.ensemble.values == design)
    ignitions = np.unique(snapshots.ignition_id.values)
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for start in range(0, ignitions.size, count):
        held_out = np.isin(snapshots.ignition_id.values, ignitions[start : start + count])
        train, test = rows(snapshots, ~held_out), rows(snapshots, held_out)
        tau = pc.scores.smoke_threshold(train.smoke)
        for name in methods:
            begin = time.perf_counter()
            surrogate = fit(name, train)
            seconds = time.perf_counter() - begin
            [scored] = score_surrogate(surrogate, train, [test], tau=tau)
            mine = found[name]
            mine["AUC"] += scored.scores.auc.values.tolist()
            mine["IoU"] += scored.scores.iou.values.tolist()
            mine["deployable"] += scored.scores.deployable_iou.values.tolist()
            mine["smoke above τ"] += scored.scores.smoke_iou.values.tolist()
            mine["rel"] += scored.scores.relative_error.values.tolist()
            mine["rel ln"] += scored.scores.log_error.values.tolist()
            mine["fit s"].append(seconds)
            chosen = {key: surrogate.training.get(key) for key in ("frame", "physics")}
            print(start // count, name, chosen, f"{seconds:.0f} s", file=sys.stderr, flush=True)
    columns = list(next(iter(found.values())))
    print(f"| | {' | '.join(columns)} |\n|{' --- |' * (1 + len(columns))}")
    for name, values in found.items():
        medians = [f"{np.nanmedian(numbers):.3f}" for numbers in values.values()]
        print(f"| {name} | {' | '.join(medians)} |")


if __name__ == "__main__":
    main()
