"""Draw the maps of docs/results/networks.md: one row per snapshot, the truth beside every family.

    python tools/docs/draw_families.py quadratic.plume drawn.png spectral.npz unet.npz fno.npz

The .npz files are those that benchmarks/families.py writes with --maps, of the same five snapshots;
the surrogate predicts the same fires without their drought, so it must not need one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

import plumecast as pc

FLOOR = 0.05  # µg m⁻³, below which nothing is drawn
ROWS = (0, 2, 4)


def columns() -> dict[str, np.ndarray]:
    """The smoke of every column, (5, y, x)."""
    files = [np.load(path) for path in sys.argv[3:]]
    fire = files[0]["fire"].astype(np.float32)
    drawn = {
        "simulated": files[0]["truth"].astype(np.float32),
        "paper-quadratic": pc.load_surrogate(sys.argv[1]).predict(fire),
    }
    for file in files:
        name = next(key for key in file.files if key.endswith("-all-smoke"))
        drawn[name.removesuffix("-all-smoke")] = file[name].astype(np.float32)
    return {"fire": fire, **drawn}


def main() -> None:
    drawn = columns()
    fire = drawn.pop("fire")
    norm = LogNorm(FLOOR, float(drawn["simulated"].max()))
    figure, axes = plt.subplots(
        len(ROWS),
        len(drawn),
        figsize=(2.1 * len(drawn), 1.8 * len(ROWS)),
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    for row, snapshot in enumerate(ROWS):
        for axis, (name, smoke) in zip(axes[row], drawn.items(), strict=True):
            shown = np.where(smoke[snapshot] > FLOOR, smoke[snapshot], np.nan)
            image = axis.imshow(shown, origin="lower", norm=norm, cmap="magma_r")
            axis.contour(fire[snapshot] > 0.0, levels=[0.5], colors="tab:cyan", linewidths=0.7)
            axis.set(xticks=[], yticks=[], title=name if row == 0 else "")
    bar = figure.colorbar(image, ax=axes, shrink=0.7)
    bar.set_label("smoke, µg m⁻³")
    figure.savefig(Path(sys.argv[2]), dpi=110)


if __name__ == "__main__":
    main()
