"""The benchmarks run: their smallest sizes, to a file that is whole."""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys

import numpy as np
import pytest

from plumecast import export_snapshots
from plumecast.data import append_fire
from support.places import REPOSITORY
from support.snapshots import make_snapshots
from support.study_runs import three_droughts
from support.weather_fires import weather_fires

# What a bare machine with a GPU lacks; None in sys.modules makes an import fail.
BARE = """
import runpy, sys
for name in ("scipy", "xarray", "zarr", "icechunk", "typer", "rich", "matplotlib", "netCDF4"):
    sys.modules[name] = None
sys.argv = ["device.py", *sys.argv[1:]]
runpy.run_path({path!r}, run_name="__main__")
"""


pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def run_benchmark(monkeypatch, capsys):
    """Run a benchmark in this process; returns what it printed."""
    folder = REPOSITORY / "benchmarks"
    monkeypatch.syspath_prepend(folder)

    def call(name: str, *options: object) -> str:
        monkeypatch.setattr(sys, "argv", [name, *map(str, options)])
        runpy.run_path(str(folder / name), run_name="__main__")
        return capsys.readouterr().out

    return call


def test_limits_write_their_section_and_figure(run_benchmark, tmp_path):
    document = tmp_path / "benchmarks.md"
    document.write_text("before\n<!-- limits -->\nold\n<!-- /limits -->\nafter\n")
    (tmp_path / "figures").mkdir()
    printed = run_benchmark("limits.py", "--size", "tiny", "--docs", document)
    text = document.read_text()
    assert text.startswith("before\n<!-- limits -->\nM = 200")
    assert text.endswith("<!-- /limits -->\nafter\n")
    assert "old" not in text
    assert "| encode: Gram matrix |" in printed
    assert (tmp_path / "figures" / "scaling.png").stat().st_size > 10_000


def test_peers_stand_beside_plumecast(run_benchmark, tmp_path):
    snapshots = make_snapshots(fires=16, shape=(5, 6))
    acres = snapshots.burned_area
    snapshots["burned_area"] = (acres + 1e5).assign_attrs(acres.attrs)
    append_fire(tmp_path / "ensemble.zarr", snapshots)
    out = tmp_path / "peers.json"
    run_benchmark("peers.py", tmp_path / "ensemble.zarr", "--out", out, "--seconds", 0.1)
    found = {record["name"]: record for record in json.loads(out.read_text())}
    assert {"plumecast, quadratic", "plumecast, recommended"} <= set(found)
    assert all(0.0 <= record["iou"] <= 1.0 for record in found.values())
    if importlib.util.find_spec("torch") is not None:
        assert {"DeepONet", "plumecast, FNO"} <= set(found)
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


@pytest.fixture(scope="module")
def discs(tmp_path_factory):
    """Growing discs with their smoke three cells away, as families.py reads them."""
    y, x = np.mgrid[:10, :12]
    rng = np.random.default_rng(0)
    centre = rng.uniform([3, 3], [7, 6], size=(14, 2)).repeat(3, axis=0)
    radius = np.tile([1.5, 2.5, 3.5], 14)[:, None, None]
    distance = np.hypot(y - centre[:, 0, None, None], x - centre[:, 1, None, None])
    fire = np.clip(radius - distance, 0.0, None).astype(np.float16)
    path = tmp_path_factory.mktemp("families") / "discs.npz"
    np.savez(
        path,
        fire=fire,
        smoke=np.roll(fire, 3, axis=2),
        ignition=np.array([f"ignition{i}" for i in range(14)]).repeat(3),
        drought=np.full(42, "medium"),
        part=np.array(["train"] * 8 + ["validation"] * 3 + ["test"] * 3).repeat(3),
    )
    return path


def test_families_are_scored_on_the_files_split_and_on_another(run_benchmark, discs, tmp_path):
    out = tmp_path / "families.jsonl"
    common = (discs, "--threshold", 0.05, "--families", "spectral", "--out", out)
    run_benchmark("families.py", *common, "--counts", "4,all")
    run_benchmark("families.py", *common, "--split", 1)
    few, all_, dealt = (json.loads(line) for line in out.read_text().splitlines())
    assert [line["ignitions"] for line in (few, all_, dealt)] == [4, 8, 8]
    assert all_["relative_error"] < 0.5  # a shift is what a convolution is made for
    assert dealt["relative_error"] != all_["relative_error"]


def test_weather_scores_draws_and_folds_and_continues_a_file(run_benchmark, tmp_path):
    three_droughts().to_netcdf(tmp_path / "fires.nc")
    data, out = tmp_path / "fires.npz", tmp_path / "scores.jsonl"
    run_benchmark("weather.py", "export", tmp_path / "fires.nc", data)
    few = ("--counts", "3", "--draws", "2", "--tested", "3", "--out", out)
    run_benchmark("weather.py", "score", data, *few, "--methods", "physics,mean")
    run_benchmark("weather.py", "score", data, *few, "--methods", "physics,mean,map+none")
    folds = ("--folds", 2, "--out", out, "--methods")
    run_benchmark("weather.py", "score", data, *folds, "mean,map+none,map+none+1")
    run_benchmark("weather.py", "score", data, *folds, "mean", "--seed", 1)
    lines = [json.loads(text) for text in out.read_text().splitlines()]
    scores = {(line["design"], line["method"]): line["rel"] for line in lines}
    methods = ("map+none", "mean", "physics")
    drawn = [(f"3 {draw}", name) for draw in (0, 1) for name in methods]
    assert sorted(key for key in scores if "folds" not in key[0]) == drawn
    assert all(0.0 <= line[name] <= 1.0 for line in lines for name in ("iou", "deployable"))
    assert scores["2 folds", "map+none"] != scores["2 folds", "map+none+1"]
    assert scores["2 folds", "mean"] != scores["2 folds seed 1", "mean"]
    assert len(run_benchmark("weather.py", "table", out).splitlines()) > 2 + 3


def test_designs_stand_beside_random_choice(run_benchmark, tmp_path):
    store, out = tmp_path / "fires.nc", tmp_path / "design.jsonl"
    export_snapshots(weather_fires(9), store)
    options = ["--test", 3, "--every", 1, "--sizes", "2,3", "--seeds", 1, "--out", out]
    run_benchmark("design.py", "score", store, "--methods", "variance,random", *options)
    record = json.loads(out.read_text())
    assert (record["pool"], record["test"]) == (6, 3)
    assert set(record["scores"]) == {f"{m} {n}" for m in ("variance", "random") for n in (2, 3)}
    printed = run_benchmark("design.py", "table", out)
    assert "variance: runs for the error of random: 2 → " in printed
