"""One large fire of the embedded simulator: time of its parts on one core, and memory.

    python benchmarks/simulator.py --size paper     60 h on the full grids
    python benchmarks/simulator.py --size small     12 h

Times are medians of repeats after the compiled code is loaded. They are also given relative to a
matrix product timed in the same run, because seconds do not carry over between machines.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402

from plumecast.simulator.fire import simulate_fire, terrain  # noqa: E402
from plumecast.simulator.front import arrival_times  # noqa: E402
from plumecast.simulator.landscape import ignition_mask, synthetic_landscape  # noqa: E402
from plumecast.simulator.weather import SCENARIOS, weather  # noqa: E402

CHECKPOINTS = {"paper": 10, "small": 2}


def timed(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    seconds, result = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=CHECKPOINTS, default="paper")
    checkpoints = CHECKPOINTS[parser.parse_args().size]
    square = np.random.default_rng(0).normal(size=(1500, 1500))
    unit, _ = timed(lambda: square @ square.T.copy(), 5)
    making, landscape = timed(lambda: synthetic_landscape(0), 1)
    ground = terrain(landscape)
    chosen = np.random.default_rng(3).choice(np.flatnonzero(ignition_mask(landscape)))
    ignition = divmod(int(chosen), landscape.fuel.shape[1])
    hours = 6.0 * checkpoints
    print(
        f"landscape of {landscape.fuel.shape}: {making:.1f} s; "
        f"unit: a 1500³ matrix product, {unit:.3f} s\n"
    )
    print(
        f"| one {hours:g} h fire, one core | front | emission and transport | whole "
        "| in units | acres |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for drought in SCENARIOS:
        series = weather(drought, hours=hours)

        def front(series: Any = series) -> Any:
            return arrival_times(
                landscape, series.moisture, series.hours, series.wind_u, series.wind_v,
                steering=ground.steering, ignition=ignition, until_hours=hours,
            )  # fmt: skip

        def whole(series: Any = series) -> Any:
            return simulate_fire(landscape, series, ignition, checkpoints, ground=ground)

        whole()  # loads or compiles
        spread, _ = timed(front)
        total, fire = timed(whole)
        cells = [
            drought, f"{spread:.2f} s", f"{total - spread:.2f} s", f"{total:.2f} s",
            f"{total / unit:.0f}", f"{float(fire.burned_area[-1]):,.0f}",
        ]  # fmt: skip
        print(f"| {' | '.join(cells)} |", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\npeak memory of the process: {peak:.2f} GB")


if __name__ == "__main__":
    main()
