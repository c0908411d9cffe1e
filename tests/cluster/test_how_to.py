"""The how-to page and the benchmark that need a cluster."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from plumecast import open_snapshots
from plumecast.data import append_fire
from plumecast.simulator import ensemble
from support.places import REPOSITORY
from support.raster_files import write_landscape
from support.snapshots import make_snapshots

pytest.importorskip("distributed", reason="Dask distributed is not installed")


@pytest.fixture(autouse=True)
def small_demo(monkeypatch):
    """The preset `demo` of the simulator with less ground and fewer checkpoints."""
    less = {"checkpoints": 2, "shape": (80, 100)}
    presets = {**ensemble.PRESETS, "demo": replace(ensemble.PRESETS["demo"], **less)}
    monkeypatch.setattr(ensemble, "PRESETS", presets)


def test_a_million_fires(tmp_path, follow_page):
    append_fire(tmp_path / "ensemble.zarr", make_snapshots(fires=24, shape=(5, 6)))
    append_fire(tmp_path / "fires.zarr", make_snapshots(fires=40, shape=(5, 6), seed=5))
    write_landscape(tmp_path, (60, 80), 600.0)
    printed = follow_page("a-million-fires.md")
    assert "statistics of 160 snapshots of 40 fires" in printed
    assert printed.count("statistics of 24 snapshots of 12 fires") == 2
    one, other = (xr.load_dataset(tmp_path / name) for name in ("stats.nc", "again.nc"))
    np.testing.assert_allclose(other.mean_log_smoke, one.mean_log_smoke, rtol=1e-9)
    assert one.smoke_quantile.sizes["quantile"] == 3
    assert open_snapshots(tmp_path / "smoke.nc", fields=["smoke"]).sizes["snapshot"] == 160


def test_the_benchmark_sets_a_cluster_beside_one_process(tmp_path, monkeypatch):
    document, out = tmp_path / "benchmarks.md", tmp_path / "cluster.json"
    document.write_text("before\n")
    folder = REPOSITORY / "benchmarks"
    monkeypatch.syspath_prepend(folder)
    words = ("cluster.py", "--size", "tiny", "--workers", "2", "--docs", document, "--out", out)
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    runpy.run_path(str(folder / "cluster.py"), run_name="__main__")
    text = document.read_text()
    assert text.startswith("before\n\n## On a cluster\n\n<!-- cluster -->\n")
    assert text.count("| ensemble --simulate 2 |") == 2  # its time, and the cost of its tasks
    seconds = [record["seconds"] for record in json.loads(out.read_text()).values()]
    assert len(seconds) == 7
    assert all(set(ways) == {"no cluster", "2 workers"} for ways in seconds)
    costs = [line for line in text.splitlines() if "kB |" in line or "MB |" in line]
    assert [line.split()[1] for line in costs] == ["simulate", "ingest", "ensemble"]
    assert text.count("\n| 2 workers | ") == 1  # the empty task
