"""Rates of the numerics as shares of the machine's limits, and how times grow with size.

    python benchmarks/limits.py                            tables on the screen
    python benchmarks/limits.py --docs docs/benchmarks.md  … and into the document, with a figure
    python benchmarks/limits.py --size small               under a minute
    python benchmarks/limits.py --size tiny                only to see that it runs

Rates of matrix products and of copies are measured before and after every stage, in the same
process. The rate of a stage is divided by their mean, so that other work on the machine hardly
changes the share. Only necessary operations are counted: a symmetric product counts half.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.compute.arrays import map_arrays
from plumecast.compute.linalg import gram
from plumecast.operators.coded.kernels import monomial_kernel
from plumecast.operators.coded.operator import CodedOperator, folded
from plumecast.operators.coded.polynomial_map import PrimalMap, fit_polynomial_map
from plumecast.operators.pca import fit_basis

FIGURE = Path("figures/scaling.png")


@dataclass(frozen=True)
class Size:
    """Snapshots, cells, ranks, and how often a stage is repeated."""

    snapshots: int
    cells: int
    fire_rank: int
    smoke_rank: int
    repeats: int


SIZES = {
    "paper": Size(3302, 8000, 200, 273, 5),
    "small": Size(800, 1600, 60, 80, 3),
    "tiny": Size(200, 400, 24, 30, 1),
}


def median_seconds(function: Callable[[], Any], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


class Machine:
    """The current rates of matrix products and copies."""

    def __init__(self, order: int = 1500) -> None:
        rng = np.random.default_rng(0)
        self.squares = {
            kind: rng.normal(size=(order, order)).astype(kind) for kind in ("float64", "float32")
        }
        self.line = rng.normal(size=(1 << 23,))
        self.target = np.empty_like(self.line)

    def product_rate(self, kind: str) -> float:
        """FLOP/s of a square product."""
        a = self.squares[kind]
        return 2.0 * a.shape[0] ** 3 / median_seconds(lambda: a @ a, 3)

    def copy_rate(self) -> float:
        """Bytes/s read and written by a copy."""
        seconds = median_seconds(lambda: np.copyto(self.target, self.line), 3)
        return 2.0 * self.line.nbytes / seconds


def fields(rows: int, cells: int, seed: int) -> np.ndarray:
    """Snapshots with a slowly falling spectrum."""
    rng = np.random.default_rng(seed)
    k = min(rows, cells) // 2
    codes = rng.normal(size=(rows, k)) * np.arange(1, k + 1) ** -1.1
    return 30.0 * codes @ rng.normal(size=(k, cells)) + 0.01 * rng.normal(size=(rows, cells))


@dataclass(frozen=True)
class Stage:
    """A stage with the least number of operations and bytes that it needs."""

    name: str
    run: Callable[[], Any]
    flops: float
    bytes: float
    kind: str = "float64"
    is_product: bool = True


def stages(size: Size) -> list[Stage]:
    """The stages of encoding, fitting and predicting, at one size."""
    m, n, r, q = size.snapshots, size.cells, size.fire_rank, size.smoke_rank
    fire, smoke = fields(m, n, 1), np.abs(fields(m, n, 2))
    fire_basis, smoke_basis = fit_basis(fire, rank=r), fit_basis(smoke, rank=q)
    a, b = fire_basis.encode(fire), smoke_basis.encode(smoke)
    vectors = np.ascontiguousarray(a / fire_basis.singular_values)
    penalty = 1e-3 * float(np.trace(monomial_kernel(a, a, 2))) / m
    quadratic = fit_polynomial_map(a, b, degree=2, penalty=penalty)
    weights = (a.T @ b) / fire_basis.singular_values[:, None] ** 2
    linear = folded(CodedOperator(fire_basis, PrimalMap(weights, 1), smoke_basis))
    single = map_arrays(linear, lambda array: array.astype(np.float32))
    rows = fire.astype(np.float32)
    return [
        Stage("encode: Gram matrix", lambda: gram(fire), m * m * n, 8.0 * (m * n + m * m)),
        Stage("encode: modes", lambda: vectors.T @ fire, 2.0 * r * m * n, 8.0 * (m * n + r * n)),
        Stage("encode: codes", lambda: fire_basis.encode(fire), 2.0 * r * m * n, 8.0 * m * n),
        Stage(
            "fit: quadratic kernel",
            lambda: monomial_kernel(a, a, 2),
            m * m * 3.0 * r,
            8.0 * 5 * m * m,
        ),
        Stage(
            "predict: quadratic, codes to fields",
            lambda: smoke_basis.decode(quadratic.predict(a)),
            2.0 * m * (m * (r + q) + 2 * r * q + q * n),
            8.0 * m * (4.0 * m + n),
        ),
        Stage(
            "predict: linear, fields to fields, float32",
            lambda: single.predict(rows),
            4.0 * m * min(r, q) * n,
            4.0 * 2 * m * n,
            "float32",
        ),
        Stage(
            "encode one side, all of it",
            lambda: fit_basis(fire, rank=r),
            m * m * n + 2.0 * r * m * n + 4.0 / 3.0 * m**3,
            8.0 * 2 * m * n,
            is_product=False,
        ),
        Stage(
            "quadratic fit, all of it",
            lambda: fit_polynomial_map(a, b, degree=2, penalty=penalty),
            m * m * 3.0 * r + m**3 / 3.0 + 2.0 * m * m * q,
            8.0 * 8 * m * m,
            is_product=False,
        ),
    ]


def roofline(size: Size, machine: Machine) -> list[dict[str, Any]]:
    """Every stage with the rates measured before and after it."""
    records = []
    for stage in stages(size):
        stage.run()
        products, copies, seconds = [], [], []
        for _ in range(size.repeats):
            products.append(machine.product_rate(stage.kind))
            copies.append(machine.copy_rate())
            seconds.append(median_seconds(stage.run, 1))
        took = statistics.median(seconds)
        records.append(
            {
                "stage": stage.name,
                "seconds": took,
                "gflop_per_s": stage.flops / took / 1e9,
                "share_of_products": stage.flops / took / statistics.median(products),
                "gb_per_s": stage.bytes / took / 1e9,
                "share_of_copies": stage.bytes / took / statistics.median(copies),
                "is_product": stage.is_product,
                "flops": stage.flops,
                "product_rate": statistics.median(products),
            }
        )
    return records


def scaling(size: Size) -> list[dict[str, Any]]:
    """Time and memory of encoding, fitting and predicting over a decade of M, N and r."""
    shares = (0.1, 0.2, 0.4, 0.7, 1.0)
    m, n, r = size.snapshots, size.cells, size.fire_rank
    plans = {
        "M": [(round(2 * s * m), n // 2, r // 4) for s in shares],
        "N": [(m // 2, round(4 * s * n), r // 4) for s in shares],
        "r": [(m // 2, n // 2, max(4, round(s * r))) for s in shares],
    }
    records = []
    for axis, plan in plans.items():
        for rows, cells, rank in plan:
            fire = fields(rows, cells, 1)
            basis = fit_basis(fire, rank=rank)
            a = basis.encode(fire)
            work: dict[str, Callable[[], Any]] = {
                "encode": lambda fire=fire, rank=rank: fit_basis(fire, rank=rank),
                "quadratic fit": lambda a=a: fit_polynomial_map(a, a, degree=2, penalty=1.0),
                "codes of new fires": lambda fire=fire, basis=basis: basis.encode(fire),
            }
            for name, function in work.items():
                function()
                seconds = median_seconds(function, 3 if rows > m else 9)
                tracemalloc.start()
                function()
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                value = {"M": rows, "N": cells, "r": rank}[axis]
                records.append(
                    {"axis": axis, "value": value, "what": name, "seconds": seconds, "bytes": peak}
                )
    return records


def exponents(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Slopes of the logarithms, by least squares."""
    found = []
    for what in dict.fromkeys(record["what"] for record in records):
        row: dict[str, Any] = {"what": what}
        for axis in ("M", "N", "r"):
            part = [x for x in records if x["what"] == what and x["axis"] == axis]
            logs = np.log([[x["value"], x["seconds"], max(x["bytes"], 1)] for x in part])
            row[f"time_{axis}"] = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
            row[f"memory_{axis}"] = float(np.polyfit(logs[:, 0], logs[:, 2], 1)[0])
        found.append(row)
    return found


def tables(size: Size, stages_: list[dict[str, Any]], slopes: list[dict[str, Any]]) -> str:
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "all")
    products = [
        record for record in stages_ if record["is_product"] and "float32" not in record["stage"]
    ]
    ideal = sum(record["flops"] / record["product_rate"] for record in products)
    share = ideal / sum(record["seconds"] for record in products)
    float32 = next(record for record in stages_ if "float32" in record["stage"])
    lines = [
        f"M = {size.snapshots}, N = {size.cells}, r = {size.fire_rank}, r̃ = {size.smoke_rank}, "
        f"{threads} BLAS thread(s). Shares are of the rates of a square product and of a copy, "
        "measured around every stage.",
        "",
        "| stage | time | GFLOP/s | of products | GB/s | of copies |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {x['stage']} | {1e3 * x['seconds']:.0f} ms | {x['gflop_per_s']:.1f} "
        f"| {x['share_of_products']:.0%} | {x['gb_per_s']:.1f} | {x['share_of_copies']:.0%} |"
        for x in stages_
    ]
    lines += [
        "",
        f"All float64 products together: {share:.0%} of the product rate (asked: 60 %). Linear "
        f"predictions in float32: {size.snapshots / float32['seconds']:,.0f} fires/s (asked: "
        "10,000 on two cores).",
        "",
        "Growth over a decade, exponents fitted to five sizes each (time / memory):",
        "",
        "| | M | N | r |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {x['what']} | "
        + " | ".join(f"{x[f'time_{k}']:.1f} / {x[f'memory_{k}']:.1f}" for k in "MNr")
        + " |"
        for x in slopes
    ]
    return "\n".join(lines)


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Time against M, N and r, on logarithmic axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    figure, axes = plt.subplots(1, 3, figsize=(9.0, 3.0), sharey=True, constrained_layout=True)
    labels = {"M": "snapshots M", "N": "cells N", "r": "rank r"}
    for panel, axis in zip(axes, labels, strict=True):
        for what in dict.fromkeys(record["what"] for record in records):
            part = [x for x in records if x["what"] == what and x["axis"] == axis]
            panel.loglog([x["value"] for x in part], [x["seconds"] for x in part], "o-", label=what)
        sizes = sorted({x["value"] for x in records if x["axis"] == axis})
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel(labels[axis])
        panel.grid(which="both", alpha=0.2)
    axes[0].set_ylabel("seconds")
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def into_document(path: Path, name: str, text: str) -> None:
    """Replace what stands between the marks `<!-- name -->` and `<!-- /name -->`."""
    first, last = f"<!-- {name} -->", f"<!-- /{name} -->"
    content = path.read_text(encoding="utf-8")
    if first not in content or last not in content:
        raise SystemExit(f"{path} has no section {first} … {last}")
    head, tail = content.split(first)[0], content.split(last)[1]
    path.write_text(f"{head}{first}\n{text}\n{last}{tail}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="paper")
    parser.add_argument("--out", type=Path, help="where to write the records as JSON")
    parser.add_argument("--docs", type=Path, help="a document whose section `limits` is replaced")
    arguments = parser.parse_args()
    size = SIZES[arguments.size]
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores\n")
    measured = roofline(size, Machine())
    grown = scaling(size)
    text = tables(size, measured, exponents(grown))
    print(text)
    if arguments.out is not None:
        content = {"stages": measured, "scaling": grown, "exponents": exponents(grown)}
        arguments.out.write_text(json.dumps(content, indent=1) + "\n")
    if arguments.docs is not None:
        figure = f"![Time against size]({FIGURE.as_posix()})"
        draw(grown, arguments.docs.parent / FIGURE)
        into_document(arguments.docs, "limits", f"{text}\n\n{figure}")


if __name__ == "__main__":
    main()
