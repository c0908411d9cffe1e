"""The benchmarks run: their smallest sizes, in processes of their own, to a file that is whole."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from conftest import REPOSITORY

# What a bare machine with a GPU lacks; None in sys.modules makes an import fail.
BARE = """
import runpy, sys
for name in ("scipy", "xarray", "zarr", "icechunk", "typer", "rich", "matplotlib", "netCDF4"):
    sys.modules[name] = None
sys.argv = ["device.py", *sys.argv[1:]]
runpy.run_path({path!r}, run_name="__main__")
"""


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
