"""Predictions per second and seconds of a fit, of lifted operators on one device.

    export PYTHONPATH=src
    OPENBLAS_NUM_THREADS=1 python benchmarks/throughput.py --out throughput.json
    python benchmarks/throughput.py --device cuda --out throughput.json
    python benchmarks/throughput.py --device cuda --short

`--short` measures in less than a minute on a GPU what the targets ask: fires/s with statistics of
`recommended` and `thorough`, the seconds of their fits, and the agreement with NumPy.

Needs numpy, scipy, xarray, array-api-compat, threadpoolctl, and PyTorch for `--device cuda`. It
makes its own fires: growing ellipses, with smoke carried by a random hourly weather, and shifted
copies of them for the large cases. The cases are

- `weather+column`, `weather+none`: 40 × 50 cells, every fire with its own weather, `recommended` in
  the wind frame with and without carried smoke;
- `paper`, `paper-thorough`: 80 × 100 cells, three droughts, `recommended` and `thorough`.

Fires start in the memory of the host. "fires/s" copies them to the device and leaves smoke there;
"with statistics" also sums the fields (mean, exceedance, and with `--quantiles` bins) and copies
the sums back, as `plumecast ensemble` does. Times are medians after a first run; with one thread on
the host they are seconds of the processor. The difference to the host is the largest difference of
smoke to predictions by NumPy, relative to the largest smoke. Scores of both (median IoU of smoke
above the training threshold, median relative error) are printed beside it.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import math
import platform
import pstats
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.compute.arrays import map_arrays, to_numpy
from plumecast.compute.blocks import cores
from plumecast.compute.resources import Budget, Device, choose_device
from plumecast.operators.carried.release import WeatherSeries
from plumecast.operators.carried.transport import plan_transport
from plumecast.operators.family import Conditions, TrainingSet
from plumecast.operators.lifted import LiftedOperator, fit_lifted_operator
from plumecast.operators.settings import choose_settings
from plumecast.operators.wind_frame import fit_wind_frame
from plumecast.scores.field_statistics import field_sums
from plumecast.scores.roc import iou_at

THRESHOLDS = (35.0,)
HOURS, EVERY = 72, 6.0
HEIGHTS = np.array([10.0, 100.0, 300.0, 800.0, 1500.0, 3000.0, 5000.0])
HOST_BLOCKS, DEVICE_BLOCKS = (1, 24, 256), (1, 64, 256, 1024, 4096, 16384)
FEWEST_SECONDS = 0.5
CHECKED = 32
"""Snapshots whose predictions are compared with those of the host."""

DIFFERENT = 24
"""Fires of the large cases that are made; the others are shifted copies."""

FARTHEST = 8
"""Largest shift of a copy along every axis, in cells."""

SHORT_BLOCKS = (1024, 4096)
TARGETS = {"paper": (20_000.0, 3.0), "paper-thorough": (10_000.0, 6.0)}
"""Fires/s with statistics and seconds of the fit that a GPU should reach."""


@dataclass(frozen=True)
class Case:
    """A grid, the training fires, and the operator that is fitted to them."""

    shape: tuple[int, int]
    cell: float  # m
    fires: int
    preset: str
    droughts: bool
    physics: bool


CASES = {
    "weather+column": Case((40, 50), 3000.0, 64, "recommended", False, True),
    "weather+none": Case((40, 50), 3000.0, 64, "recommended", False, False),
    "paper": Case((80, 100), 3000.0, 275, "recommended", True, False),
    "paper-thorough": Case((80, 100), 3000.0, 275, "thorough", True, False),
}


@dataclass(frozen=True)
class Fires:
    """Snapshots (M, y, x), the fire of each, and what is known of them."""

    fire: np.ndarray
    smoke: np.ndarray
    number: np.ndarray
    given: Conditions


def make_fires(case: Case, fires: int, seed: int) -> Fires:
    """Ellipses that grow at a constant rate, 12 checkpoints each, and their smoke."""
    rng = np.random.default_rng(seed)
    checkpoints = np.arange(EVERY, HOURS + 0.5, EVERY)
    number = np.arange(fires).repeat(checkpoints.size)
    until = np.tile(checkpoints, fires)
    ny, nx = case.shape
    y, x = np.mgrid[:ny, :nx].astype(np.float32)
    centre = rng.uniform([0.3 * ny, 0.3 * nx], [0.7 * ny, 0.7 * nx], size=(fires, 2))[number]
    rate = rng.uniform(0.03, 0.12, size=(fires, 2))[number]  # cells per hour
    apart = [
        (axis[None] - centre[:, i, None, None]) / rate[:, i, None, None]
        for i, axis in enumerate((y, x))
    ]
    arrival = np.hypot(*apart)
    fire = np.clip(until[:, None, None] - arrival, 0.0, None).astype(np.float32)
    weather = make_weather(rng, fires, number, until)
    plan = plan_transport(weather, (case.cell, case.cell), EVERY)
    smoke = 50.0 * plan.smoke(fire, weather)[:, 0]
    wind = np.stack([weather.u[:, :, 0].mean(axis=1), weather.v[:, :, 0].mean(axis=1)], axis=1)
    labels = np.array(["low", "medium", "high"])[number % 3] if case.droughts else None
    return Fires(fire, smoke, number, Conditions(labels, wind=wind, weather=weather))


def with_copies(data: Fires, fires: int, seed: int) -> Fires:
    """The snapshots, and copies shifted by whole cells, until there are so many fires."""
    rng = np.random.default_rng(seed)
    made, rows = int(data.number.max()) + 1, [np.arange(data.number.size)]
    fields, number = [(data.fire, data.smoke)], [data.number]
    for copy in range(made, fires):
        own = np.flatnonzero(data.number == copy % made)
        by = rng.integers(-FARTHEST, FARTHEST + 1, size=2)
        fields.append((shifted(data.fire[own], by), shifted(data.smoke[own], by)))
        number.append(np.full(own.size, copy))
        rows.append(own)
    fire, smoke = (np.concatenate(parts) for parts in zip(*fields, strict=True))
    given = data.given.at(np.concatenate(rows))
    return Fires(fire, smoke, np.concatenate(number), given)


def shifted(fields: np.ndarray, by: np.ndarray) -> np.ndarray:
    """(M, y, x) fields shifted by whole cells, with zeros where nothing comes from."""
    out = np.roll(fields, tuple(by), axis=(1, 2))
    for axis, cells in enumerate(by, start=1):
        gone = [slice(None)] * 3
        gone[axis] = slice(0, cells) if cells >= 0 else slice(cells, None)
        out[tuple(gone)] = 0.0
    return out


def make_weather(
    rng: np.random.Generator, fires: int, number: np.ndarray, until: np.ndarray
) -> WeatherSeries:
    """Winds that turn slowly with time and height, and a boundary layer that follows the day."""
    hours = np.arange(HOURS + 1.0)
    speed = rng.uniform(2.0, 8.0, size=(fires, 1, 1)) * (HEIGHTS / 10.0) ** 0.15
    turned = rng.uniform(0.0, 2.0 * np.pi, size=(fires, 1, 1))
    turned = turned + rng.normal(0.0, 0.01, size=(fires, 1, 1)) * hours[:, None] + HEIGHTS / 1e4
    depth = 250.0 + 1500.0 * np.clip(np.sin(2.0 * np.pi * hours / 24.0), 0.0, None)
    depth = np.broadcast_to(depth, (fires, hours.size))
    wind = [(speed * turn(turned))[number] for turn in (np.cos, np.sin)]
    return WeatherSeries(hours, HEIGHTS, *wind, depth[number], until)


def fit(case: Case, data: Fires, device: Device) -> LiftedOperator:
    spacing = (case.cell, case.cell)
    given, frame, physics = data.given, None, None
    assert given.weather is not None
    if case.droughts:
        given = replace(given, wind=None, weather=None)
    else:
        frame = fit_wind_frame(case.shape, spacing, given.wind, stretch=False)
    if case.physics:
        physics = plan_transport(given.weather, spacing, EVERY)
    threshold = float(np.quantile(data.smoke[data.smoke > 0.0], 0.3))
    operator, *_ = fit_lifted_operator(
        TrainingSet(data.fire, data.smoke, data.number, given),
        choose_settings(case.preset),
        threshold=threshold,
        frame=frame,
        physics=physics,
        resources=Budget(device=device),
    )
    return operator


class Bench:
    """Times calls on one device."""

    def __init__(self, device: str) -> None:
        self.device = choose_device(device)
        # With one thread on the host, other programs do not count.
        alone = self.device.is_host and cores() == 1
        self.clock = time.process_time if alone else time.perf_counter

    def wait(self) -> None:
        """Wait until the device has finished."""
        if self.device.name.startswith("cuda"):
            import torch

            torch.cuda.synchronize()

    def seconds(self, function: Callable[[], Any], repeats: int = 3) -> float:
        """Median seconds of calls after a first one, which also compiles and allocates."""
        function()
        self.wait()
        found: list[float] = []
        while len(found) < repeats or sum(found) < FEWEST_SECONDS:
            start = self.clock()
            function()
            self.wait()
            found.append(self.clock() - start)
        return statistics.median(found)

    def rows(
        self, operator: LiftedOperator, data: Fires, block: int, quantiles: bool
    ) -> dict[str, float]:
        """Fires per second of one block, without and with statistics."""
        rows = np.resize(np.arange(data.fire.shape[0])[::-1], block)  # the last hours first
        flat, given = data.fire[rows].reshape(block, -1), data.given.at(rows)

        def predict() -> Any:
            return operator.predict(self.device.put(flat), given)

        def summed() -> Any:
            return map_arrays(field_sums(predict(), THRESHOLDS, quantiles=quantiles), to_numpy)

        plain, sums = self.seconds(predict), self.seconds(summed)
        return {
            "block": block,
            "fires_per_s": block / plain,
            "ms_per_fire": 1e3 * plain / block,
            "with_statistics": block / sums,
        }


def agreement(
    bench: Bench, host: LiftedOperator, placed: LiftedOperator, data: Fires
) -> dict[str, Any]:
    """Largest difference of smoke to the host, relative to the largest, and scores of both."""
    rows = np.linspace(0, data.fire.shape[0] - 1, CHECKED).astype(int)
    flat, given = data.fire[rows].reshape(CHECKED, -1), data.given.at(rows)
    expected = host.predict(flat, given)
    found = to_numpy(placed.predict(bench.device.put(flat), given))
    smoke, level = data.smoke[rows].reshape(CHECKED, -1), host.targets.threshold

    def scores(predicted: np.ndarray) -> list[float]:
        known = np.flatnonzero((smoke > level).any(axis=1))
        iou = iou_at(predicted[known], smoke[known] > level, level)
        wrong, size = (np.linalg.norm(x[known], axis=1) for x in (predicted - smoke, smoke))
        return [float(np.median(iou)), float(np.median(wrong / size))]

    return {
        "error": float(np.abs(found - expected).max() / np.abs(expected).max()),
        "scores": scores(found),
        "host_scores": scores(expected),
    }


def timed_fits(
    case: Case, data: Fires, bench: Bench, options: argparse.Namespace
) -> tuple[LiftedOperator, list[float]]:
    """The operator, and the seconds of its fits; the first on a GPU also loads libraries."""
    times: list[float] = []
    if options.short:
        few = np.flatnonzero(data.number < DIFFERENT)
        given = data.given.at(few)
        fit(case, Fires(data.fire[few], data.smoke[few], data.number[few], given), bench.device)
    for _ in range(1 if bench.device.is_host or options.short else 2):
        bench.wait()
        start = bench.clock()
        operator = fit(case, data, bench.device)
        bench.wait()
        times.append(bench.clock() - start)
    return operator, times


def run(case_name: str, bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    case = CASES[case_name]
    fires = case.fires if options.fires is None else options.fires
    data = make_fires(case, min(fires, DIFFERENT) if case.droughts else fires, seed=0)
    data = with_copies(data, fires, seed=1)
    operator, times = timed_fits(case, data, bench, options)
    if options.profile:
        with cProfile.Profile(bench.clock) as profile:
            fit(case, data, bench.device)
        pstats.Stats(profile).sort_stats("cumtime").print_stats(40)
    placed = map_arrays(operator, bench.device.put)
    lines = []
    for block in options.blocks:
        lines.append(bench.rows(placed, data, block, options.quantiles))
        shown = [f"{lines[-1][name]:.4g}" for name in lines[-1]]
        print(f"| {case_name} | {bench.device.name} | {' | '.join(shown)} |", flush=True)
    agree = agreement(bench, operator, placed, data)
    snapshots = data.fire.shape[0]
    scores = [" and ".join(f"{x:.4f}" for x in agree[n]) for n in ("scores", "host_scores")]
    print(
        f"{case_name}: fit of {snapshots} snapshots {times[-1]:.2f} s (first {times[0]:.2f} s), "
        f"difference to the host {agree['error']:.1e}, IoU and relative error {scores[0]}, on the "
        f"host {scores[1]}",
        flush=True,
    )
    if case_name in TARGETS and not bench.device.is_host:
        rate, seconds = TARGETS[case_name]
        best = max(line["with_statistics"] for line in lines)
        print(
            f"{case_name}: {best:.0f} fires/s with statistics (target {rate:.0f}), fit "
            f"{times[-1]:.2f} s (target {seconds:g} s)",
            flush=True,
        )
    return {
        "case": case_name, "snapshots": snapshots, "fit_s": times[-1], "first_fit_s": times[0],
        **agree, "blocks": lines,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", help="cpu, torch, cuda, cupy")
    parser.add_argument("--cases", default=",".join(CASES), help="comma-separated")
    parser.add_argument("--blocks", help="snapshots predicted at a time, comma-separated")
    parser.add_argument("--fires", type=int, help="training fires; default: by case")
    parser.add_argument("--quantiles", action="store_true", help="also count bins of quantiles")
    parser.add_argument("--profile", action="store_true", help="also profile a fit (on a GPU with "
                        "CUDA_LAUNCH_BLOCKING=1)")  # fmt: skip
    parser.add_argument("--short", action="store_true", help="the cases, blocks and quantiles of "
                        "the targets only, after a small first fit")  # fmt: skip
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    default = HOST_BLOCKS if options.device in ("cpu", "torch") else DEVICE_BLOCKS
    blocks = default if options.blocks is None else map(int, options.blocks.split(","))
    options.blocks = tuple(blocks)
    if options.short:
        options.cases, options.quantiles = ",".join(TARGETS), True
        options.blocks = SHORT_BLOCKS if options.device not in ("cpu", "torch") else (24,)
    bench = Bench(options.device)
    print("| case | device | block | fires/s | ms a fire | fires/s with statistics |")
    print(f"|{' --- |' * 6}")
    found = [run(name, bench, options) for name in options.cases.split(",")]
    if options.out is not None:
        machine = {"machine": platform.machine(), "python": platform.python_version()}
        record = {"device": options.device, **machine, "cases": found}
        assert all(math.isfinite(case["error"]) for case in found)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
