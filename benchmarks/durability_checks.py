"""Cost of checksums: writing, opening and training with them, as ratios to the same without.

    python benchmarks/durability_checks.py               the grid of the demo, a few minutes
    python benchmarks/durability_checks.py --size tiny   only to see that it runs

Both ways are timed one after the other in every round; a ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import xarray as xr  # noqa: E402

import plumecast as pc  # noqa: E402
from plumecast.base.names import SNAPSHOT  # noqa: E402
from plumecast.data import store, writers  # noqa: E402

SIZES = {"tiny": (6, 2, 2), "demo": (24, 6, 9)}
"""Fires, checkpoints and rounds."""


@contextlib.contextmanager
def without_checksums() -> Iterator[None]:
    """Write as before: no checksum in the chunks, none of the snapshots."""

    def plain(block: xr.Dataset) -> dict[Hashable, dict[str, Any]]:
        kept = writers.zarr_encoding(block)
        return {
            name: {k: v for k, v in item.items() if k == "chunks"} for name, item in kept.items()
        }

    with (
        mock.patch.object(store, "with_checksums", lambda block: block),
        mock.patch.object(store, "zarr_encoding", plain),
    ):
        yield


def ratio(
    with_them: Callable[[], object], without: Callable[[], object], rounds: int
) -> tuple[float, float]:
    """Median of the ratio of two times, and median seconds of the second."""
    ratios, seconds = [], []
    for turn in range(rounds):
        times = {}
        for name in ("with", "without") if turn % 2 else ("without", "with"):
            since = time.perf_counter()
            (with_them if name == "with" else without)()
            times[name] = time.perf_counter() - since
        ratios.append(times["with"] / times["without"])
        seconds.append(times["without"])
    return statistics.median(ratios), statistics.median(seconds)


def fires(count: int, checkpoints: int) -> list[xr.Dataset]:
    """Simulated fires, one data set each."""
    made = pc.simulate(preset="demo", ignitions=count, droughts=("low",), checkpoints=checkpoints)
    names = dict.fromkeys(made.fire_id.values.tolist())
    return [made.isel({SNAPSHOT: made.fire_id.values == name}) for name in names]


def write(path: Path, parts: list[xr.Dataset]) -> None:
    """Append the fires to a new store, one commit each."""
    shutil.rmtree(path, ignore_errors=True)
    for part in parts:
        pc.data.append_fire(path, part)


def measure(parts: list[xr.Dataset], rounds: int, folder: Path) -> dict[str, tuple[float, float]]:
    """Ratio and seconds without checksums of every step, by its name."""
    checked, plain = folder / "checked", folder / "plain"

    def write_plain() -> None:
        with without_checksums():
            write(plain, parts)

    def train(path: Path) -> None:
        pc.train_surrogate(path, "recommended", split=None, folds=0, layers=1)

    found = {"write": ratio(lambda: write(checked, parts), write_plain, rounds)}
    for name, step in (
        ("open", pc.open_snapshots),
        ("read all fields", lambda path: pc.open_snapshots(path).load()),
        ("train", train),
    ):
        found[name] = ratio(lambda: step(checked), lambda: step(plain), rounds)  # noqa: B023
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="demo")
    count, checkpoints, rounds = SIZES[parser.parse_args().size]
    since = time.perf_counter()
    parts = fires(count, checkpoints)
    simulated = time.perf_counter() - since
    print("| step | ratio | seconds without |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(parts, rounds, Path(folder))
    for name, (value, seconds) in found.items():
        print(f"| {name} | {value:.3f} | {seconds:.3f} |")
    value, seconds = found["write"]
    share = 1.0 + (value - 1.0) * seconds / (simulated + seconds)
    print(f"| simulate and write | {share:.3f} | {simulated + seconds:.3f} |")


if __name__ == "__main__":
    main()
