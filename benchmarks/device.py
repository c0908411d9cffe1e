"""The numerics on a GPU, compared with the measured rates of matrix products and copies.

    python benchmarks/device.py --device cuda --out device.json      M = 3302, N = 8000, one GPU
    python benchmarks/device.py --device torch --size small          the same on a CPU, to try it

Needs numpy, PyTorch (or CuPy, `--device cupy`), array-api-compat (`--vendor FOLDER` adds a folder
with it to the path) and src/ on PYTHONPATH; with SciPy it also checks the results on the host.
The time of a stage is the median of repeats after a first run, each until the device has finished.
FLOP/s count the matrix products of a stage, bytes/s the least that it must read and write.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Size:
    """Snapshots, cells, ranks, ignitions, predictions, fires of the ensemble and their block."""

    snapshots: int
    cells: int
    fire_rank: int
    smoke_rank: int
    fires: int
    predictions: int
    ensemble: int
    block: int
    product: int


SIZES = {
    "paper": Size(3302, 8000, 200, 273, 330, 4096, 1_000_000, 8192, 8192),
    "small": Size(400, 800, 40, 50, 40, 256, 4_000, 512, 1024),
}
TARGETS = {  # seconds, one H200, float64, paper size
    "encode both sides and quadratic fit": 0.200,
    "penalty path, leave one fire out": 0.150,
    "quadratic predictions, codes to fields": 0.002,
    "ensemble statistics, codes read from a file": 20.0,
}
DOUBLE = 8


class Bench:
    """Times stages on one device and keeps their records."""

    def __init__(self, device: str, size: Size) -> None:
        from plumecast.compute.resources import choose_device

        self.device, self.size = choose_device(device), size
        self.records: dict[str, dict[str, Any]] = {}
        self.product_rate = self.copy_rate = math.nan

    def wait(self) -> None:
        """Wait until the device has finished."""
        if self.device.name.startswith("cuda"):
            import torch

            torch.cuda.synchronize()
        elif self.device.name == "cupy":
            import cupy

            cupy.cuda.Device().synchronize()

    def time(self, function: Callable[[], Any], repeats: int = 5) -> tuple[float, Any]:
        """Median seconds after a first run, and the last result."""
        seconds, result = [], function()
        for _ in range(repeats):
            result = None
            self.wait()
            start = time.perf_counter()
            result = function()
            self.wait()
            seconds.append(time.perf_counter() - start)
        return statistics.median(seconds), result

    def stage(
        self,
        name: str,
        function: Callable[[], Any],
        *,
        flops: float,
        bytes_: float,
        repeats: int = 5,
    ) -> Any:
        """Time a stage and compare its rate with the rates of the machine."""
        seconds, result = self.time(function, repeats)
        record: dict[str, Any] = {
            "seconds": seconds,
            "gflop": flops / 1e9,
            "flop_per_s": flops / seconds,
            "share_of_product_rate": flops / seconds / self.product_rate,
            "bytes_per_s": bytes_ / seconds,
            "share_of_copy_rate": bytes_ / seconds / self.copy_rate,
        }
        if name in TARGETS:
            record["target_seconds"] = TARGETS[name]
        self.records[name] = record
        print(
            f"{name:48s} {1e3 * seconds:10.2f} ms  {flops / seconds / 1e12:7.2f} TFLOP/s "
            f"({record['share_of_product_rate']:5.1%})  {bytes_ / seconds / 1e9:8.1f} GB/s "
            f"({record['share_of_copy_rate']:5.1%})",
            flush=True,
        )
        return result


def rates(bench: Bench) -> dict[str, float]:
    """The machine's measured rates: products and copies in float64, and to the device."""
    rng = np.random.default_rng(0)
    n = bench.size.product
    host = rng.normal(size=(n, n))
    a = bench.device.put(host)
    seconds, _ = bench.time(lambda: a @ a)
    bench.product_rate = 2.0 * n**3 / seconds
    seconds, _ = bench.time(lambda: a + 0.0)
    bench.copy_rate = 2.0 * DOUBLE * n**2 / seconds
    seconds, _ = bench.time(lambda: bench.device.put(host) + 0.0, 3)
    upload = DOUBLE * n**2 / seconds
    print(
        f"products {bench.product_rate / 1e12:.2f} TFLOP/s, copies (read and write) "
        f"{bench.copy_rate / 1e9:.0f} GB/s, upload {upload / 1e9:.1f} GB/s, float64",
        flush=True,
    )
    return {
        "product_flop_per_s": bench.product_rate,
        "copy_bytes_per_s": bench.copy_rate,
        "upload_bytes_per_s": upload,
    }


def fields(size: Size, rows: int, seed: int) -> np.ndarray:
    """Snapshots with the slowly falling spectrum of moving plumes: sums of random smooth modes."""
    rng = np.random.default_rng(seed)
    k = min(size.snapshots, size.cells) // 3
    codes = rng.normal(size=(rows, k)) * np.arange(1, k + 1) ** -1.1
    modes = np.random.default_rng(seed + 100).normal(size=(k, size.cells))
    return 30.0 * codes @ modes + 0.01 * rng.normal(size=(rows, size.cells))


def run(bench: Bench) -> None:
    from plumecast.operators.coded.operator import CodedOperator

    size = bench.size
    hosts = [fields(size, size.snapshots, 1), np.abs(fields(size, size.snapshots, 2))]
    encoded, code_map, penalty = training_stages(bench, hosts)
    new = fields(size, size.predictions, 1)
    operator = CodedOperator(encoded[0], code_map, encoded[1])
    predicted = prediction_stages(bench, operator, bench.device.put(new))
    bench.records["checks"] = checks(hosts, encoded, predicted, new, penalty)
    ensemble(bench, code_map, encoded[1])


def training_stages(bench: Bench, hosts: list[np.ndarray]) -> tuple[Any, Any, float]:
    """Encode, fit, and the path of penalties; bases and codes, the map, and its penalty."""
    from plumecast.operators.coded.polynomial_map import fit_polynomial_map, tune_polynomial_map
    from plumecast.operators.pca import fit_basis

    size = bench.size
    m, n, r, q = size.snapshots, size.cells, size.fire_rank, size.smoke_rank
    fire, smoke = (bench.device.put(host) for host in hosts)

    def encode() -> tuple[Any, Any, Any, Any]:
        bases = fit_basis(fire, rank=r), fit_basis(smoke, rank=q)
        return *bases, bases[0].encode(fire), bases[1].encode(smoke)

    small, large = min(m, n), max(m, n)
    encode_flops = sum(2.0 * small**2 * large + 4.0 * k * m * n + 3.0 * k**2 * n for k in (r, q))
    encode_bytes = DOUBLE * 6.0 * m * n
    encoded = bench.stage("encode both sides", encode, flops=encode_flops, bytes_=encode_bytes)
    a, b = encoded[2:]
    penalty = 1e-3 * (float((a * a).sum()) / m) ** 2  # a share of the kernel's mean diagonal

    def fit(codes: Any, targets: Any) -> Any:
        return fit_polynomial_map(codes, targets, degree=2, penalty=penalty)

    fit_flops = 2.0 * m**2 * 3 * r + m**3 / 3 + 2.0 * m**2 * q
    fit_bytes = 5.0 * DOUBLE * m**2
    code_map = bench.stage("quadratic fit", lambda: fit(a, b), flops=fit_flops, bytes_=fit_bytes)
    bench.stage(
        "encode both sides and quadratic fit",
        lambda: fit(*encode()[2:]),
        flops=encode_flops + fit_flops,
        bytes_=encode_bytes + fit_bytes,
    )
    groups = np.array_split(np.arange(m), size.fires)
    bench.stage(
        "penalty path, leave one fire out",
        lambda: tune_polynomial_map(a, b, degree=2, groups=groups, penalties=None),
        flops=2.0 * m**2 * (3 * r + 40 * q + 40 * m / size.fires),
        bytes_=DOUBLE * 40.0 * m**2,
    )
    return encoded, code_map, penalty


def prediction_stages(bench: Bench, operator: Any, new: Any) -> Any:
    """Predict and score; the predicted fields."""
    from plumecast.scores.roc import roc_scores

    size = bench.size
    m, n, r, q, p = (
        size.snapshots,
        size.cells,
        size.fire_rank,
        size.smoke_rank,
        size.predictions,
    )
    codes = operator.input_basis.encode(new)
    flops = 2.0 * p * (m * (r + q) + 2 * r * q + q * n)
    bytes_ = DOUBLE * p * (4.0 * m + n)
    bench.stage(
        "quadratic predictions, codes to fields",
        lambda: operator.output_basis.decode(operator.code_map.predict(codes)),
        flops=flops,
        bytes_=bytes_,
    )
    predicted = bench.stage(
        "quadratic predictions, fields to fields",
        lambda: operator.predict(new),
        flops=flops + 2.0 * p * r * n,
        bytes_=bytes_ + DOUBLE * p * n,
    )
    rows = predicted[:1024, :]
    observed = bench.device.put(np.abs(fields(size, int(rows.shape[0]), 2))) > 1.0
    bench.stage(
        f"ROC and IoU of {rows.shape[0]} snapshots",
        lambda: roc_scores(rows, observed),
        flops=0.0,
        bytes_=DOUBLE * 20.0 * rows.shape[0] * n,
    )
    return predicted


def checks(
    hosts: list[np.ndarray], encoded: Any, predicted: Any, new: np.ndarray, penalty: float
) -> dict[str, Any]:
    """Error of orthonormality; with SciPy also the difference from predictions on the host."""
    from plumecast.compute.arrays import to_numpy
    from plumecast.operators.coded.operator import CodedOperator
    from plumecast.operators.coded.polynomial_map import fit_polynomial_map
    from plumecast.operators.pca import fit_basis

    modes = to_numpy(encoded[0].modes)
    found: dict[str, Any] = {
        "modes_orthonormal": float(np.abs(modes @ modes.T - np.eye(modes.shape[0])).max())
    }
    try:
        import scipy  # noqa: F401
    except ImportError:
        return found | {"numpy": "SciPy is not here"}
    bases = [
        fit_basis(host, rank=basis.rank) for host, basis in zip(hosts, encoded[:2], strict=True)
    ]
    codes, targets = (basis.encode(host) for basis, host in zip(bases, hosts, strict=True))
    code_map = fit_polynomial_map(codes, targets, degree=2, penalty=penalty)
    ours = CodedOperator(bases[0], code_map, bases[1]).predict(new)
    apart = float(np.abs(to_numpy(predicted) - ours).max() / np.abs(ours).max())
    print(f"predictions differ from the host's by {apart:.1e} of the largest", flush=True)
    return found | {"predictions_from_numpy": apart}


def ensemble(bench: Bench, code_map: Any, basis: Any) -> None:
    """Mean, exceedance and quantiles of fields predicted from codes in a file; no field is kept."""
    from plumecast.compute.arrays import array_namespace
    from plumecast.scores.field_statistics import field_sums

    size = bench.size
    scale = np.asarray(1.0 / np.arange(1, size.fire_rank + 1), dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.npy"
        stored = np.lib.format.open_memmap(
            path, mode="w+", dtype=np.float32, shape=(size.ensemble, size.fire_rank)
        )
        rng = np.random.default_rng(5)
        for start in range(0, size.ensemble, 50_000):
            part = stored[start : start + 50_000]
            part[:] = 300.0 * scale * rng.standard_normal(part.shape, dtype=np.float32)
        stored.flush()
        del stored

        def statistics_of(count: int) -> Any:
            total = None
            for start in range(0, count, size.block):
                rows = np.load(path, mmap_mode="r")[start : min(start + size.block, count)]
                codes = bench.device.put(np.asarray(rows, dtype=np.float64))
                smoke = basis.decode(code_map.predict(codes))
                smoke = array_namespace(smoke).clip(smoke, 0.0, None)
                part = field_sums(smoke, (1.0, 10.0, 35.0), quantiles=True)
                total = part if total is None else total + part
            return total

        statistics_of(min(size.ensemble, 2 * size.block))
        n, q, m = size.cells, size.smoke_rank, size.snapshots
        flops = size.ensemble * (2.0 * m * (size.fire_rank + q) + 2.0 * q * n)
        bench.wait()
        start = time.perf_counter()
        total = statistics_of(size.ensemble)
        bench.wait()
        seconds = time.perf_counter() - start
        assert total.count == size.ensemble
        # Timed once: a million fires average out disturbances.
        bytes_ = size.ensemble * n * DOUBLE * 12.0
        name = "ensemble statistics, codes read from a file"
        bench.records[name] = {
            "seconds": seconds,
            "fires": size.ensemble,
            "fires_per_s": size.ensemble / seconds,
            "flop_per_s": flops / seconds,
            "share_of_product_rate": flops / seconds / bench.product_rate,
            "bytes_per_s": bytes_ / seconds,
            "share_of_copy_rate": bytes_ / seconds / bench.copy_rate,
            "target_seconds": TARGETS[name],
        }
        print(f"{name:48s} {seconds:10.2f} s   {size.ensemble / seconds:.0f} fires/s", flush=True)


def device_name(device: str) -> str:
    if device.startswith("cuda"):
        import torch

        return f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
    if device == "cupy":
        import cupy

        return (
            f"{cupy.cuda.runtime.getDeviceProperties(0)['name'].decode()}, CuPy {cupy.__version__}"
        )
    return f"{platform.processor() or platform.machine()}, device {device}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cupy, torch or cpu")
    parser.add_argument("--size", choices=SIZES, default="paper")
    parser.add_argument("--vendor", action="append", default=[], help="folder to add to the path")
    parser.add_argument("--out", type=Path, help="where to write the records as JSON")
    arguments = parser.parse_args()
    sys.path[:0] = arguments.vendor
    size = SIZES[arguments.size]
    bench = Bench(arguments.device, size)
    machine = device_name(arguments.device)
    print(f"{machine}; M = {size.snapshots}, N = {size.cells}, float64")
    measured = rates(bench)
    run(bench)
    met = {
        name: record["seconds"] <= record["target_seconds"]
        for name, record in bench.records.items()
        if "target_seconds" in record
    }
    if arguments.size == "paper":
        print("targets of one H200:", json.dumps(met, indent=1))
    result = {"machine": machine, "size": vars(size), "rates": measured, "stages": bench.records}
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
