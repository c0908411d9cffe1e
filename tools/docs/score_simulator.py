"""Print tables of docs/explanation/simulator.md and docs/results/networks.md for a simulated store.

plumecast simulate --preset paper -o paper.zarr
python tools/docs/score_simulator.py paper.zarr
"""

from __future__ import annotations

import sys
import time

import numpy as np

import plumecast as pc
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.operators.settings import PRESETS
from plumecast.surrogate.baselines import BASELINES


def describe(split: pc.data.Split, snapshots: int) -> None:
    """Sizes, ranks of 95 % std and projection errors on validation, as the paper reports them."""
    parts = [part.sizes[SNAPSHOT] for part in (split.train, split.validation, split.test)]
    print(f"{snapshots} snapshots, {sum(parts)} of at least 10⁵ acres: {parts}")
    final = pc.data.final_snapshots(split.test)
    acres = final.burned_area.values
    print(
        f"final burned area {acres.min():,.0f} … {np.median(acres):,.0f} … {acres.max():,.0f} acres"
    )
    for name in (FIRE, SMOKE):
        train, validation = (
            part[name].values.reshape(part.sizes[SNAPSHOT], -1).astype(np.float64)
            for part in (split.train, split.validation)
        )
        start = time.perf_counter()
        basis = pc.operators.fit_basis(train, std_fraction=0.95)
        seconds = time.perf_counter() - start
        error = pc.operators.projection_error(basis, validation)
        print(
            f"{name}: rank {basis.rank}, projection error {error:.1%}, encoded in {seconds:.1f} s"
        )


def main() -> None:
    snapshots = pc.open_snapshots(sys.argv[1])
    split = pc.split_by_fire(pc.data.drop_small_fires(snapshots).load())
    describe(split, snapshots.sizes[SNAPSHOT])
    surrogates, seconds = {}, {}
    for name in (*PRESETS, *BASELINES):
        start = time.perf_counter()
        fit = (
            pc.fit_surrogate
            if name in PRESETS
            else lambda train, name: pc.surrogate.fit_baseline(name, train)
        )
        surrogates[name] = fit(split.train, name)
        seconds[name] = time.perf_counter() - start
        print(f"fitted {name} in {seconds[name]:.1f} s", flush=True)
    result = pc.evaluate(surrogates, split.validation, split.test)
    print(f"smoke threshold {result.smoke_threshold:.3g}\n")
    print("| | AUC | IoU | deployable IoU | rel, median | rel, all | fit | predict |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for s in result.scores:
        cells = [
            s.name, f"{s.auc:.3f}", f"{s.iou:.3f}", f"{s.deployable_iou:.3f}",
            f"{s.snapshot_error:.2f}", f"{s.relative_error:.2f}", f"{seconds[s.name]:.1f} s",
            f"{s.predict_ms:.2f} ms",
        ]  # fmt: skip
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
