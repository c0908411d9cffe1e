"""The score tables of docs/results/wrf.md: surrogates and baselines on the WRF-Fire ensemble.

    python tools/docs/score_wrf.py ../shared/data/wrf/ensemble.nc

Each design is scored separately. Two ignitions are held out at a time, and thresholds are chosen on
one more. Scores are medians over all held-out snapshots.
"""

from __future__ import annotations

import sys
from collections import defaultdict

import numpy as np
import xarray as xr

import plumecast as pc
from plumecast.operators.settings import PRESETS
from plumecast.surrogate.baselines import BASELINES

FLOOR = 0.01  # µg m⁻³
HELD_OUT = 2


def select(snapshots: xr.Dataset, ignitions: list[str]) -> xr.Dataset:
    rows = np.flatnonzero(np.isin(snapshots.ignition_id.values, ignitions))
    return snapshots.isel(snapshot=rows)


def cross_validate(snapshots: xr.Dataset) -> dict[str, xr.Dataset]:
    """Scores of every held-out snapshot, by the name of the surrogate."""
    ignitions = sorted(set(snapshots.ignition_id.values.tolist()))
    parts = defaultdict(list)
    for start in range(0, len(ignitions), HELD_OUT):
        test = ignitions[start : start + HELD_OUT]
        rest = [name for name in ignitions if name not in test]
        validation = [rest[start % len(rest)]]
        train = select(snapshots, [name for name in rest if name not in validation])
        surrogates = {name: pc.fit_surrogate(train, name) for name in PRESETS}
        surrogates |= {name: pc.surrogate.fit_baseline(name, train) for name in BASELINES}
        result = pc.evaluate(surrogates, select(snapshots, validation), select(snapshots, test))
        for name, scores in result.details.items():
            parts[name].append(scores)
    return {name: xr.concat(scores, "snapshot") for name, scores in parts.items()}


def main() -> None:
    whole = pc.data.apply_smoke_floor(pc.open_snapshots(sys.argv[1]).load(), FLOOR)
    for design in np.unique(whole.ensemble.values):
        snapshots = whole.isel(snapshot=np.flatnonzero(whole.ensemble.values == design))
        count = len(set(snapshots.ignition_id.values.tolist()))
        print(f"\n{design}: {count} ignitions, {count - HELD_OUT - 1} to train on\n")
        print("| | AUC | IoU | deployable IoU | relative error |\n| --- | --- | --- | --- | --- |")
        for name, scores in cross_validate(snapshots).items():
            columns = ("auc", "iou", "deployable_iou", "relative_error")
            values = [f"{float(np.nanmedian(scores[column])):.3f}" for column in columns]
            print(f"| {name} | {' | '.join(values)} |")


if __name__ == "__main__":
    main()
