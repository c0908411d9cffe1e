"""Print how much terrain steering changes the smoke of the same fires.

    python tools/docs/measure_steering.py 1.2 3.4

The fires burn without steering, under the medium drought for 60 h; only the wind that carries their
smoke is steered, with the given strengths. A convolution cannot represent this change.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

import plumecast as pc
from plumecast.simulator.fire import simulate_fire, terrain
from plumecast.simulator.landscape import ignition_mask, synthetic_landscape
from plumecast.simulator.weather import weather

FIRES, CHECKPOINTS = 8, 10


def main() -> None:
    strengths = [float(word) for word in sys.argv[1:]]
    landscape, series = synthetic_landscape(seed=0), weather("medium", seed=0, hours=60.0)
    still = terrain(landscape, strength=0.0)
    grounds = [replace(still, faces=terrain(landscape, strength=s).faces) for s in strengths]
    candidates = np.flatnonzero(ignition_mask(landscape))
    found: list[list[list[float]]] = [[[], [], []] for _ in strengths]
    for number in range(FIRES):
        row, column = divmod(
            int(np.random.default_rng([0, number]).choice(candidates)), landscape.shape[1]
        )
        plain = simulate_fire(landscape, series, (row, column), CHECKPOINTS, ground=still).smoke
        for columns, ground in zip(found, grounds, strict=True):
            moved = simulate_fire(landscape, series, (row, column), CHECKPOINTS, ground=ground)
            logs = np.log1p(moved.smoke), np.log1p(plain)
            both = ((moved.smoke > 0.0) & (plain > 0.0)).sum(("y", "x"))
            either = ((moved.smoke > 0.0) | (plain > 0.0)).sum(("y", "x"))
            columns[0] += (both / either).values.tolist()
            columns[1] += pc.scores.snapshot_relative_errors(moved.smoke, plain).tolist()
            columns[2] += pc.scores.snapshot_relative_errors(*logs).tolist()
    print("| steering of the smoke | IoU | rel | rel ln |\n| --- | --- | --- | --- |")
    for strength, columns in zip(strengths, found, strict=True):
        print(f"| {strength:g} | {' | '.join(f'{np.median(c):.3f}' for c in columns)} |")


if __name__ == "__main__":
    main()
