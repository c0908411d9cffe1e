"""Speed-up of a local cluster of two workers over one worker and over no cluster, in one run.

    python benchmarks/cluster.py STORE                             tables on the screen
    python benchmarks/cluster.py STORE --docs docs/benchmarks.md   … and into the document
    python benchmarks/cluster.py --size small                      a store of its own, a minute
    python benchmarks/cluster.py --size tiny                       only to see that it runs

STORE is an ensemble of `plumecast simulate --preset paper`. Every process has one BLAS thread, and
the workers are started before anything is timed. All three ways compute the same blocks, one way
after another in every round. A ratio is the median over the rounds, so that other work on the
machine hardly changes it. The first row is an upper bound of the machine: independent matrix
products. The run fails if the results of the ways differ.
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

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402

import plumecast as pc  # noqa: E402
from limits import into_document  # noqa: E402
from plumecast.compute.blocks import Runner, add_up  # noqa: E402
from plumecast.workflows.predict import predict_store  # noqa: E402

WAYS = ("no cluster", "one worker", "two workers")
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


SIZES = {
    "paper": Size("paper", 8, 15, 48, 48, "2GB", 3),
    "small": Size("demo", 2, 1, 6, 4, "100MB", 1),
    "tiny": Size("demo", 1, 1, 2, 1, "100MB", 1, stored=4),
}


def stages(store: Path, size: Size) -> dict[str, Work]:
    """The timed stages; each returns a number that must be the same for all ways."""
    split = pc.split_by_fire(pc.open_snapshots(store), seed=0)
    surrogate = pc.fit_surrogate(split.train, "paper-linear", memory=size.memory)
    fires = pc.draw_fires(
        size.drawn, like=surrogate.grid, preset=size.preset, checkpoints=size.checkpoints
    )
    blocks = {"memory": size.memory}

    def products(runner: Runner | None) -> float:
        items = range(size.products)
        return float(add_up(map(product, items)) if runner is None else runner.sum(product, items))

    def simulate(runner: Runner | None) -> float:
        made = pc.simulate(
            preset=size.preset,
            ignitions=size.ignitions,
            checkpoints=size.checkpoints,
            runner=runner,
        )
        return float(made.smoke.astype(np.float64).mean())

    def draw(runner: Runner | None) -> float:
        found = pc.ensemble_statistics(surrogate, fires, quantiles=[0.5], runner=runner, **blocks)
        return float(found.mean_smoke.mean())

    def predict(runner: Runner | None) -> float:
        parts = predict_store(surrogate, store, runner=runner, **blocks)
        return add_up(float(part.smoke.sum(dtype=np.float64)) for part in parts)

    def evaluate(runner: Runner | None) -> float:
        found = pc.evaluate(
            {"linear": surrogate}, split.validation, split.test, runner=runner, **blocks
        )
        return found.scores[0].relative_error

    def train(runner: Runner | None) -> float:
        other = pc.fit_surrogate(split.train, "paper-linear", runner=runner, **blocks)
        return float(np.sum(other.operator.output_basis.singular_values))

    return {
        f"{size.products} products of {PRODUCT}² matrices": products,
        f"simulate {3 * size.ignitions} fires": simulate,
        f"ensemble --simulate {size.drawn}": draw,
        f"predict {split_size(split)} snapshots": predict,
        f"evaluate {split.validation.sizes['snapshot'] + split.test.sizes['snapshot']}": evaluate,
        f"train on {split.train.sizes['snapshot']} snapshots": train,
    }


def counted(rounds: int) -> str:
    return "one round" if rounds == 1 else f"medians of {rounds} rounds"


def split_size(split: pc.Split) -> int:
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


def table(records: dict[str, dict[str, Any]]) -> str:
    none, one, two = WAYS
    lines = [
        f"| | {none} | {one} | {two} | two over one | two over none | one over none |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, record in records.items():
        seconds = record["seconds"]
        cells = [f"{statistics.median(seconds[way]):.2f} s" for way in WAYS]
        cells += [
            f"{gain(seconds, slow, fast):.2f} ×"
            for slow, fast in ((one, two), (none, two), (none, one))
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


@contextlib.contextmanager
def runners() -> Iterator[dict[str, Runner | None]]:
    """The three ways, with their workers started."""
    with pc.cluster("local", workers=1) as one, pc.cluster("local", workers=2) as two:
        yield dict(zip(WAYS, (None, one, two), strict=True))


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
    arguments = parser.parse_args()
    size = SIZES[arguments.size]
    rounds = arguments.rounds or size.rounds
    with tempfile.TemporaryDirectory() as folder, runners() as ways:
        work = stages(arguments.store or own_store(Path(folder), size), size)
        records = {name: measure(do, ways, rounds) for name, do in work.items()}
    text = (
        f"`python benchmarks/cluster.py STORE --docs docs/benchmarks.md` on {os.cpu_count()} cores "
        f"({platform.processor() or platform.machine()}), one BLAS thread in every process, "
        f"`--memory {size.memory}`, {counted(rounds)}; workers on the same machine, "
        "started before. The first row shares nothing: what the machine itself gives.\n\n"
        f"{table(records)}"
    )
    print(text)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(records, indent=1) + "\n")
    if arguments.docs is not None:
        into_section(arguments.docs, text)


if __name__ == "__main__":
    main()
