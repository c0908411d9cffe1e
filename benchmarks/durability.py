"""What it costs that a stored fire survives a power loss: with and without, in one run.

    python benchmarks/durability.py              5 repeats
    python benchmarks/durability.py --repeats 11

Each command is measured in turn with the cost and without it; a ratio is the median over the pairs.
A cost is a function here that returns the context in which a command runs without it.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import plumecast as pc
from ingest import CLASSIC, SIZES, write_run
from plumecast.data import repository as writing
from plumecast.workflows.ingest import ingest_wrf

TARGET = 1.10
FIRES = 3


@contextlib.contextmanager
def without_flushes() -> Iterator[None]:
    """Commits that leave the time of writing to the system, as Icechunk's own do."""

    def commit(transaction: writing.Transaction, message: str, metadata: object = None) -> str:
        return str(transaction._session.commit(message, metadata))

    with (
        mock.patch.object(writing.Transaction, "commit", commit),
        mock.patch.object(writing, "collect_garbage"),
        mock.patch.object(writing, "flush_files"),
        mock.patch.object(writing, "flush_folder"),
        mock.patch.object(writing, "_files", return_value=set()),
    ):
        yield


COSTS = {"flushes at each commit": without_flushes}


def simulate(folder: Path, out: Path) -> None:
    """One ignition under three droughts."""
    pc.simulate(out, preset="demo", ignitions=1)


def ingest(folder: Path, out: Path) -> None:
    """Three WRF runs of six frames."""
    outcomes = ingest_wrf(sorted(folder.glob("run*")), out, drought="low")
    assert all(item.problem is None for item in outcomes), outcomes


def seconds(command: Callable[[Path, Path], object], folder: Path) -> float:
    """Wall clock of a command that writes a new store."""
    with tempfile.TemporaryDirectory(dir=folder) as new:
        start = time.perf_counter()
        command(folder, Path(new) / "store.zarr")
        return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    print("| command | cost | seconds without | seconds with | ratio | target |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(FIRES):
            write_run(folder / f"run{number}", SIZES["small"], 6, CLASSIC, parts=True)
        for command in (simulate, ingest):
            seconds(command, folder)  # imports and compiles
            for cost, without in COSTS.items():
                pairs = []
                for _ in range(repeats):
                    with without():
                        before = seconds(command, folder)
                    pairs.append((before, seconds(command, folder)))
                ratio = statistics.median(after / before for before, after in pairs)
                columns = [statistics.median(pair[k] for pair in pairs) for k in (0, 1)]
                shown = " | ".join(f"{value:.2f}" for value in (*columns, ratio))
                print(f"| {command.__name__} | {cost} | {shown} | ≤ {TARGET:.2f} |", flush=True)


if __name__ == "__main__":
    main()
