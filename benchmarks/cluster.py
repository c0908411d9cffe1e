"""Speed-up of local clusters of 1, 2 and 4 workers over no cluster, and what a task costs.

    python benchmarks/cluster.py STORE                             tables on the screen
    python benchmarks/cluster.py STORE --docs docs/results/cluster.md   … and into the document
    python benchmarks/cluster.py --size medium                     a store of its own, on many cores
    python benchmarks/cluster.py --size small                      the same, minutes on two cores
    python benchmarks/cluster.py --size tiny --workers 1,2         only to see that it runs

STORE is an ensemble of `plumecast simulate --preset paper`. Every process has one BLAS thread, and
the workers are started before anything is timed. All ways compute the same blocks, one way after
another in every round. A ratio is the median over the rounds, so that other work on the machine
hardly changes it. The first row is an upper bound of the machine: independent matrix products.
More workers than cores cannot gain more than the cores; what a task costs (`cluster_tasks.py`, in
CPU seconds and bytes) then says what a larger cluster would lose. The run fails if the results of
the ways differ.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumecast.compute.resources import Resources

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402

import plumecast as pc  # noqa: E402
from cluster_tasks import cost_of, cost_table, empty_table, empty_task  # noqa: E402
from ingest import HDF5, write_run  # noqa: E402
from ingest import Size as RunSize  # noqa: E402
from limits import into_document  # noqa: E402
from plumecast.compute.blocks import Runner, add_up  # noqa: E402
from plumecast.workflows.ingest import ingest_wrf  # noqa: E402
from plumecast.workflows.predict import predict_store  # noqa: E402
from plumecast.workflows.statistics.request import Statistics  # noqa: E402

NONE = "no cluster"
COSTED = ("simulate", "ingest", "ensemble")  # stages whose tasks are measured one by one
RUN = RunSize(40, 32, 30, 6, 1)  # columns, layers and frames of the WRF runs that are ingested
AGREEMENT = 1e-6  # relative: sums in another order, of fields in float32
PRODUCT = 1200  # rows and columns of the matrices of the first row
HEADING = "## On a cluster"
SECTION = "cluster"

Work = Callable[[Runner | None], float]


@dataclass(frozen=True)
class Size:
    """How much is done in every stage, and how often."""

    preset: str  # of the fires that are simulated and drawn
    ignitions: int
    checkpoints: int
    drawn: int
    products: int
    memory: str
    rounds: int
    stored: int = 8  # ignitions of a store of its own
    runs: int = 8  # WRF runs that are ingested


SIZES = {
    "paper": Size("paper", 8, 15, 48, 48, "2GB", 3),
    "medium": Size("demo", 8, 3, 64, 48, "500MB", 3, stored=16, runs=16),
    "small": Size("demo", 2, 1, 6, 4, "100MB", 1, runs=6),
    "tiny": Size("demo", 1, 1, 2, 1, "100MB", 1, stored=4, runs=1),
}


def stages(store: Path, size: Size, folder: Path) -> dict[str, Work]:
    """The timed stages; each returns a number that must be the same for all ways.

    `folder` holds the WRF runs that are ingested, and the stores that they are read into.
    """
    split = pc.split_by_fire(pc.open_snapshots(store), seed=0)
    surrogate = pc.fit_surrogate(
        split.train, "paper-linear", resources=Resources(memory=size.memory)
    )
    fires = pc.draw_fires(
        size.drawn, like=surrogate.grid, preset=size.preset, checkpoints=size.checkpoints
    )
    blocks = {"memory": size.memory}
    runs = [
        write_run(folder / f"run_{number}", RUN, RUN.frames, HDF5, parts=False)
        for number in range(size.runs)
    ]

    def products(runner: Runner | None) -> float:
        items = range(size.products)
        return float(add_up(map(product, items)) if runner is None else runner.sum(product, items))

    def simulate(runner: Runner | None) -> float:
        made = pc.simulate(
            preset=size.preset,
            ignitions=size.ignitions,
            checkpoints=size.checkpoints,
            resources=pc.Resources(runner=runner),
        )
        return float(made.smoke.astype(np.float64).mean())

    def ingest(runner: Runner | None) -> float:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            out = Path(own) / "runs.zarr"
            found = ingest_wrf(
                runs, out, drought="low", time_limit=None, resources=Resources(runner=runner)
            )
            if problems := [outcome.problem for outcome in found if outcome.problem]:
                raise SystemExit(problems[0])
            return float(pc.open_snapshots(out).smoke.astype(np.float64).mean())

    def draw(runner: Runner | None) -> float:
        found = pc.ensemble_statistics(
            surrogate,
            fires,
            statistics=Statistics([0.5]),
            resources=Resources(memory=size.memory, runner=runner),
        )
        return float(found.mean_smoke.mean())

    def predict(runner: Runner | None) -> float:
        resources = Resources(memory=size.memory, runner=runner)
        parts = predict_store(surrogate, store, resources=resources)
        return add_up(float(part.smoke.sum(dtype=np.float64)) for part in parts)

    def evaluate(runner: Runner | None) -> float:
        found = pc.evaluate(
            {"linear": surrogate},
            split.validation,
            split.test,
            resources=Resources(runner=runner, **blocks),
        )
        return found.scores[0].relative_error

    def train(runner: Runner | None) -> float:
        other = pc.fit_surrogate(
            split.train, "paper-linear", resources=Resources(runner=runner, **blocks)
        )
        return float(np.sum(other.operator.output_basis.singular_values))

    return {
        f"{size.products} products of {PRODUCT}² matrices": products,
        f"simulate {3 * size.ignitions} fires": simulate,
        f"ingest {size.runs} WRF runs": ingest,
        f"ensemble --simulate {size.drawn}": draw,
        f"predict {split_size(split)} snapshots": predict,
        f"evaluate {split.validation.sizes['snapshot'] + split.test.sizes['snapshot']}": evaluate,
        f"train on {split.train.sizes['snapshot']} snapshots": train,
    }


def counted(rounds: int) -> str:
    return "one round" if rounds == 1 else f"medians of {rounds} rounds"


def split_size(split: pc.data.Split) -> int:
    return sum(part.sizes["snapshot"] for part in (split.train, split.validation, split.test))


def product(item: int) -> float:
    matrix = np.random.default_rng(item).normal(size=(PRODUCT, PRODUCT))
    for _ in range(4):
        matrix = matrix @ matrix.T
        matrix /= np.abs(matrix).max()
    return float(np.trace(matrix))


def measure(work: Work, runners: dict[str, Runner | None], rounds: int) -> dict[str, Any]:
    """Seconds of every way in every round, after a warm-up round; raises if results differ."""
    seconds: dict[str, list[float]] = {way: [] for way in runners}
    results: list[float] = []
    for number in range(rounds + 1):
        for way, runner in runners.items():
            start = time.perf_counter()
            results.append(work(runner))
            if number:
                seconds[way].append(time.perf_counter() - start)
    spread = max(results) - min(results)
    if spread > AGREEMENT * max(map(abs, results)):
        raise SystemExit(f"the ways differ by {spread:g}: {results}")
    return {"seconds": seconds, "spread": spread}


def gain(seconds: dict[str, list[float]], slow: str, fast: str) -> float:
    """Speed-up in the median round."""
    return statistics.median(a / b for a, b in zip(seconds[slow], seconds[fast], strict=True))


def table(records: dict[str, dict[str, Any]], ways: tuple[str, ...]) -> str:
    first, *more = ways[1:]
    pairs = [(first, way) for way in more] + [(NONE, way) for way in ways[1:]]
    heads = [*ways, *(f"{fast} over {slow}" for slow, fast in pairs)]
    lines = [f"| | {' | '.join(heads)} |", f"| --- |{' --- |' * len(heads)}"]
    for name, record in records.items():
        seconds = record["seconds"]
        cells = [f"{statistics.median(seconds[way]):.2f} s" for way in ways]
        cells += [f"{gain(seconds, slow, fast):.2f} ×" for slow, fast in pairs]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


@contextlib.contextmanager
def runners(counts: list[int]) -> Iterator[dict[str, Runner | None]]:
    """The ways, with their workers started."""
    ways: dict[str, Runner | None] = {NONE: None}
    with contextlib.ExitStack() as stack:
        for count in counts:
            name = f"{count} worker{'s' if count > 1 else ''}"
            ways[name] = stack.enter_context(pc.cluster("local", workers=count))
        yield ways


def into_section(document: Path, text: str) -> None:
    """Replace the section, or add it where the document has none yet."""
    content = document.read_text(encoding="utf-8")
    if f"<!-- {SECTION} -->" not in content:
        added = f"{content.rstrip()}\n\n{HEADING}\n\n<!-- {SECTION} -->\n<!-- /{SECTION} -->\n"
        document.write_text(added, encoding="utf-8")
    into_document(document, SECTION, text)


def own_store(folder: Path, size: Size) -> Path:
    path = folder / "ensemble.zarr"
    pc.simulate(
        path, preset=size.preset, ignitions=size.stored, droughts=("low", "high"), checkpoints=3
    )
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path, nargs="?", help="an ensemble on the size's preset")
    parser.add_argument("--size", choices=SIZES, default="paper")
    parser.add_argument("--out", type=Path, help="where to write the records as JSON")
    parser.add_argument("--docs", type=Path, help="a document whose section `cluster` is replaced")
    parser.add_argument("--rounds", type=int, help="timed rounds, after a warm-up round")
    parser.add_argument("--workers", default="1,2,4", help="workers of the clusters, from 1")
    parser.add_argument("--only", default="", help="stages that contain one of these words")
    arguments = parser.parse_args()
    size = SIZES[arguments.size]
    rounds = arguments.rounds or size.rounds
    counts = [int(text) for text in arguments.workers.split(",")]
    with tempfile.TemporaryDirectory() as name, runners(counts) as ways:
        folder = Path(name)
        work = stages(arguments.store or own_store(folder, size), size, folder)
        words = arguments.only.split(",")
        chosen = {name: do for name, do in work.items() if any(word in name for word in words)}
        one = next(runner for runner in ways.values() if runner is not None)
        costed = {name: do for name, do in chosen.items() if name.split()[0] in COSTED}
        costs = {name: cost_of(do, one) for name, do in costed.items()}
        empty = {way: empty_task(runner) for way, runner in ways.items() if runner is not None}
        print(f"{cost_table(costs)}\n\n{empty_table(empty)}\n", flush=True)
        records = {name: measure(do, ways, rounds) for name, do in chosen.items()}
    text = (
        f"`python benchmarks/cluster.py{' STORE' if arguments.store else ''} --size "
        f"{arguments.size} --docs docs/results/cluster.md` on {os.cpu_count()} cores "
        f"({platform.processor() or platform.machine()}), one BLAS thread in every process, "
        f"`--memory {size.memory}`, {counted(rounds)}; workers on the same machine, "
        "started before. The first row shares nothing: what the machine itself gives.\n\n"
        f"{table(records, tuple(ways))}\n\n"
        "What a task costs. Seconds are of the CPU: of the task, and of the process with the "
        "client and the scheduler.\n\n"
        f"{cost_table(costs)}\n\n{empty_table(empty)}"
    )
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(records, indent=1) + "\n")
    if arguments.docs is not None:
        into_section(arguments.docs, text)


if __name__ == "__main__":
    main()
