"""The benchmark that needs a cluster, in this process."""

from __future__ import annotations

import json
import runpy
import sys

import pytest

from support.places import REPOSITORY

pytest.importorskip("distributed", reason="Dask distributed is not installed")


def test_a_cluster_stands_beside_one_process(tmp_path, monkeypatch):
    document, out = tmp_path / "benchmarks.md", tmp_path / "cluster.json"
    document.write_text("before\n")
    folder = REPOSITORY / "benchmarks"
    monkeypatch.syspath_prepend(folder)
    words = ("cluster.py", "--size", "tiny", "--workers", "1,2", "--docs", document, "--out", out)
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    runpy.run_path(str(folder / "cluster.py"), run_name="__main__")
    text = document.read_text()
    assert text.startswith("before\n\n## On a cluster\n\n<!-- cluster -->\n")
    assert text.count("| ensemble --simulate 2 |") == 2  # its time, and the cost of its tasks
    seconds = [record["seconds"] for record in json.loads(out.read_text()).values()]
    assert len(seconds) == 7
    assert all(set(ways) == {"no cluster", "1 worker", "2 workers"} for ways in seconds)
    costs = [line for line in text.splitlines() if "kB |" in line or "MB |" in line]
    assert [line.split()[1] for line in costs] == ["simulate", "ingest", "ensemble"]
    assert text.count("\n| 2 workers | ") == 1  # the empty task
