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
    words = ("cluster.py", "--size", "tiny", "--docs", document, "--out", out)
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    runpy.run_path(str(folder / "cluster.py"), run_name="__main__")
    text = document.read_text()
    assert text.startswith("before\n\n## On a cluster\n\n<!-- cluster -->\n")
    assert text.count("| ensemble --simulate 2 |") == 1
    seconds = [record["seconds"] for record in json.loads(out.read_text()).values()]
    assert len(seconds) == 6
    assert all(set(ways) == {"no cluster", "one worker", "two workers"} for ways in seconds)
