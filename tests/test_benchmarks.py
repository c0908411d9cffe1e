"""The benchmarks run: their smallest sizes, in processes of their own, to a file that is whole."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from conftest import REPOSITORY, make_snapshots
from plumecast import append_fire

# What a bare machine with a GPU lacks; None in sys.modules makes an import fail.
BARE = """
import runpy, sys
for name in ("scipy", "xarray", "zarr", "icechunk", "typer", "rich", "matplotlib", "netCDF4"):
    sys.modules[name] = None
sys.argv = ["device.py", *sys.argv[1:]]
runpy.run_path({path!r}, run_name="__main__")
"""


def run_benchmark(name: str, *options: object) -> str:
    path = REPOSITORY / "benchmarks" / name
    command = [sys.executable, str(path), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_limits_write_their_section_and_figure(tmp_path):
    document = tmp_path / "benchmarks.md"
    document.write_text("before\n<!-- limits -->\nold\n<!-- /limits -->\nafter\n")
    (tmp_path / "figures").mkdir()
    printed = run_benchmark("limits.py", "--size", "small", "--docs", document)
    text = document.read_text()
    assert text.startswith("before\n<!-- limits -->\nM = 800")
    assert text.endswith("<!-- /limits -->\nafter\n")
    assert "old" not in text
    assert "| encode: Gram matrix |" in printed
    assert (tmp_path / "figures" / "scaling.png").stat().st_size > 10_000


def test_peers_stand_beside_plumecast(tmp_path):
    snapshots = make_snapshots(fires=24, shape=(10, 12))
    acres = snapshots.burned_area
    snapshots["burned_area"] = (acres + 1e5).assign_attrs(acres.attrs)
    append_fire(tmp_path / "ensemble.zarr", snapshots)
    out = tmp_path / "peers.json"
    run_benchmark("peers.py", tmp_path / "ensemble.zarr", "--out", out)
    found = {record["name"]: record for record in json.loads(out.read_text())}
    assert {"plumecast, quadratic", "plumecast, recommended"} <= set(found)
    assert all(0.0 <= record["iou"] <= 1.0 for record in found.values())
    polynomial = found["scikit-learn, PCA + PolynomialFeatures + Ridge"]
    assert polynomial["relative_error"] < 1.5


def test_device_benchmark_runs_on_a_bare_machine(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    code = BARE.format(path=str(REPOSITORY / "benchmarks" / "device.py"))
    options = ["--device", "torch", "--size", "small", "--out", str(tmp_path / "a.json")]
    done = subprocess.run(
        [sys.executable, "-c", code, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "a.json").read_text())
    assert record["stages"]["checks"]["modes_orthonormal"] < 1e-10
    for name in ("encode both sides and quadratic fit", "penalty path, leave one fire out"):
        assert record["stages"][name]["seconds"] > 0.0
    assert record["rates"]["product_flop_per_s"] > 0.0
