"""The core against the paper's literal route, as ratios within one run.

    python benchmarks/core.py --size paper     M = 3302, N = 8000, r = 200, r̃ = 273
    python benchmarks/core.py --size small     a fraction of it, under a minute

Each timing is the median of repeats (the slow literal routes run once at paper size). Ratios,
not seconds, are what carries over to other machines.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumecast.compute.linalg import symmetric_eigen
from plumecast.operators.coded.kernels import monomial_kernel, monomials
from plumecast.operators.coded.polynomial_map import fit_linear_map, fit_polynomial_map
from plumecast.operators.pca import fit_basis
from plumecast.operators.ridge import dual_path, penalty_grid, scan_penalties
from plumecast.paper.summary import literal_quadratic


@dataclass(frozen=True)
class Size:
    """The size of a benchmark and how often the slow literal routes are repeated."""

    snapshots: int
    cells: int
    fire_rank: int
    smoke_rank: int
    fires: int
    slow_repeats: int


SIZES = {
    "paper": Size(3302, 8000, 200, 273, 330, 1),
    "small": Size(800, 2000, 60, 80, 80, 3),
}


def timed(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median seconds of `repeats` calls, and the last result."""
    seconds, result = [], None
    for _ in range(repeats):
        result = None
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def peak_extra_memory(function: Callable[[], Any]) -> float:
    """Largest resident memory during a call above that before it, in GB, sampled every 2 ms."""
    page = os.sysconf("SC_PAGE_SIZE")

    def resident() -> int:
        with open("/proc/self/statm") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * page

    before, peak, running = resident(), 0, True

    def watch() -> None:
        nonlocal peak
        while running:
            peak = max(peak, resident())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        function()
    finally:
        running = False
        watcher.join()
    return (peak - before) / 1e9


def fields(size: Size, seed: int) -> np.ndarray:
    """Snapshots with the slowly falling spectrum of moving plumes: sums of random smooth modes."""
    rng = np.random.default_rng(seed)
    k = min(size.snapshots, size.cells) * 3 // 4
    codes = rng.normal(size=(size.snapshots, k)) * np.arange(1, k + 1) ** -1.1
    modes = rng.normal(size=(k, size.cells))
    return 30.0 * codes @ modes + 0.01 * rng.normal(size=(size.snapshots, size.cells))


def row(what: str, literal: float, ours: float, target: str, note: str = "") -> None:
    cells = [what, f"{literal:.3f} s", f"{ours:.3f} s", f"{literal / ours:.1f}×", target, note]
    print(f"| {' | '.join(cells)} |", flush=True)


def bench(size: Size) -> None:
    fast, slow = 5, size.slow_repeats
    fire, smoke = fields(size, 1), fields(size, 2)
    print("| what | literal | plumecast | ratio | target | check |")
    print("| --- | --- | --- | --- | --- | --- |")

    literal, svd = timed(lambda: np.linalg.svd(fire, full_matrices=False), slow)
    encode_seconds, basis = timed(lambda: fit_basis(fire, rank=size.fire_rank), 3)
    apart = np.linalg.norm(
        basis.modes - (basis.modes @ svd[2][: basis.rank].T) @ svd[2][: basis.rank], 2
    )
    check = f"subspace {apart:.0e}"
    row("encode one side against numpy SVD", literal, encode_seconds, "≥ 5×", check)
    del svd

    smoke_basis = fit_basis(smoke, rank=size.smoke_rank)
    a, b = basis.encode(fire), smoke_basis.encode(smoke)
    linear, _ = timed(lambda: fit_linear_map(a, basis.singular_values, b), fast)
    share = linear / (2.0 * encode_seconds)
    print(f"| linear fit after encoding | – | {linear:.4f} s | {share:.2%} of encoding | < 1 % | |")

    penalty = 1e-3 * float(np.trace(monomial_kernel(a, a, 2))) / size.snapshots
    ours, fitted = timed(lambda: fit_polynomial_map(a, b, degree=2, penalty=penalty), 3)
    memory = peak_extra_memory(lambda: fit_polynomial_map(a, b, degree=2, penalty=penalty))
    predict_seconds, predicted = timed(lambda: fitted.predict(a), fast)
    literal, theta = timed(lambda: literal_quadratic(a, b, penalty).weights, slow)
    explicit_seconds, explicit = timed(lambda: monomials(a, 2) @ theta, slow + 2)
    apart = np.linalg.norm(predicted - explicit) / np.linalg.norm(explicit)
    check = f"predictions {apart:.0e}"
    row("quadratic fit against normal equations", literal, ours, "≥ 30×", check)
    print(f"| quadratic fit, peak extra memory | – | {memory:.2f} GB | – | ≤ 1 GB | |")
    row(f"predict {size.snapshots} quadratic codes", explicit_seconds, predict_seconds, "≥ 2×")

    kernel = monomial_kernel(a, a, 2)
    eigen, _ = timed(lambda: symmetric_eigen(kernel), 3)
    groups = np.array_split(np.arange(size.snapshots), size.fires)
    grid = penalty_grid(float(np.trace(kernel)) / size.snapshots, 40)
    whole, _ = timed(lambda: scan_penalties(dual_path(kernel, b), grid, groups), 3)
    times = whole / eigen
    print(
        f"| 40 penalties, leave-one-fire-out, {size.fires} fires | – | {whole:.3f} s "
        f"| {times:.2f} eigendecompositions | ≤ 3 | no refits |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="paper")
    size = SIZES[parser.parse_args().size]
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, NumPy {np.__version__}; M = {size.snapshots}, "
        f"N = {size.cells}, r = {size.fire_rank}, r̃ = {size.smoke_rank}\n"
    )
    bench(size)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\npeak memory of the whole run, literal routes included: {peak:.1f} GB")


if __name__ == "__main__":
    main()
