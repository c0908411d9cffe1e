"""The benchmark of designs with WRF-Fire runs, on a few small runs."""

from __future__ import annotations

import importlib.util
import json

import pytest

from plumecast import export_snapshots, read_wrf
from plumecast.sources.wrf import WrfOptions
from support.places import REPOSITORY
from support.wrf_files import Circle, blowing, write_wrfout

HOURS = [3600.0 * hour for hour in range(4)]


@pytest.fixture(scope="module")
def benchmark():
    place = importlib.util.spec_from_file_location("b", REPOSITORY / "benchmarks/design_wrf.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two folders of three runs each, and a store of one other fire."""
    place = tmp_path_factory.mktemp("designs")
    for folder in ("random", "chosen"):
        (place / folder).mkdir()
        for number in range(3):
            fire = Circle(x=2100.0 + 500.0 * number, speed=0.15 + 0.03 * number)
            write_wrfout(place / folder / f"run_{number:03d}.nc", HOURS, fire=fire, edit=blowing())
    write_wrfout(place / "other.nc", HOURS, fire=Circle(x=2400.0), edit=blowing())
    test = read_wrf(
        place / "other.nc", WrfOptions(every="1h", floor=0.01), fire_id="other", drought="own"
    )
    ones = test.time_since_ignition[0] * 0.0 + 1.0
    load = ones.drop_vars(set(ones.coords) - {"y", "x"}).assign_attrs(units="kg m-2")
    export_snapshots(test.assign(fuel_load=load), place / "test.nc")
    return place


def test_runs_are_read_in_the_order_of_the_design(benchmark, runs):
    test = benchmark.pc.open_snapshots(runs / "test.nc").load()
    fires = benchmark.read_runs(runs / "random", test)
    names = list(dict.fromkeys(fires.fire_id.values))
    assert names == [f"random-run_{number:03d}" for number in range(3)]
    assert set(fires.drought.values) == {"own"}
    assert (fires.fuel_load == 1.0).all()


def test_designs_are_scored_once(benchmark, runs, monkeypatch, tmp_path):
    """A finished line is not repeated, and only the random runs are drawn again."""
    asked = []

    def score(train, test, tau):
        asked.append(list(dict.fromkeys(train.fire_id.values)))
        return dict.fromkeys(benchmark.COLUMNS, 0.5)

    monkeypatch.setattr(benchmark, "score", score)
    test = benchmark.pc.open_snapshots(runs / "test.nc").load()
    out = tmp_path / "scores.jsonl"
    for _ in range(2):
        benchmark.measure([runs / "random", runs / "chosen"], test, [2, 3], 3, out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    counted = [(line["folder"], line["runs"], line["draw"]) for line in lines]
    random = [("random", 2, draw) for draw in range(3)]
    assert counted == [*random, ("random", 3, 0), ("chosen", 2, 0), ("chosen", 3, 0)]
    assert asked[0] == ["random-run_000", "random-run_001"]
    assert all(len(names) == line["runs"] for names, line in zip(asked, lines, strict=True))
    assert benchmark.table(lines).splitlines()[3].startswith("| 2 | random | 0.500 (0.500 to ")
