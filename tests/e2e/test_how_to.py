"""The how-to pages: their commands are run as they stand, in order, in an empty folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import plumecast as pc
from plumecast import export_snapshots, open_snapshots
from plumecast.data import stored_fires
from plumecast.data.store import append_fire
from plumecast.paper.results import STUDIES
from support.plants import smoky
from support.raster_files import write_ascii, write_landscape
from support.snapshots import CELL, fires_of, make_snapshots
from support.study_runs import SMALL, three_droughts
from support.weather_fires import weather_fires
from support.windy_fires import windy, write_windy_rasters
from support.wrf_files import Circle, blowing, write_run

WINDY_SMOKE = ("each.nc", "smoke.nc")
FIRES = ("fire_003_complete", "fire_006", "fire_018", "fire_019", "fire_020", "fire_021")


def test_from_wrf_runs_to_a_surrogate(tmp_path, follow_page):
    for number, name in enumerate(FIRES):
        fire = Circle(x=2100.0 + 600.0 * number, speed=0.15 + 0.03 * number)
        write_run(tmp_path / "runs" / name, range(6), fire=fire)
    printed = follow_page("wrf-runs-to-a-surrogate.md")
    assert "6 fires: 6 read, 0 skipped, 0 failed" in printed
    assert "6 fires: 0 read, 6 skipped, 0 failed" in printed
    assert stored_fires(tmp_path / "ensemble.zarr") == set(FIRES)
    ensemble = open_snapshots(tmp_path / "ensemble.zarr")
    assert set(ensemble.ignition_id.values) == {"ridge", "valley", "slope", "mesa"}
    surrogate = pc.load_surrogate(tmp_path / "smoke.plume")
    assert surrogate.settings["preset"] == "recommended"
    assert surrogate.training["out_of_fold"]["folds"] == 4
    assert "each predicted by a fit without it" in printed
    predicted = open_snapshots(tmp_path / "predicted.nc", fields=["smoke"])
    assert predicted.sizes.items() <= ensemble.sizes.items()  # without the axes of the weather
    assert (predicted.smoke.max(("y", "x")) > 0.0).mean() > 0.9, "fires have smoke"


def test_fires_with_winds_of_their_own(tmp_path, follow_page):
    shape = (12, 13)
    export_snapshots(windy(12, shape=shape), tmp_path / "windy.nc")
    write_windy_rasters(tmp_path / "farsite", ("ridge", "valley"), shape)
    for name in ("fire_1", "fire_2"):
        write_run(tmp_path / "runs" / name, range(3), edit=blowing())
    printed = follow_page("fires-with-winds-of-their-own.md")
    assert [frame for frame in ("wind", "map") if f"frame {frame}" in printed] == ["wind", "map"]
    speeds = {
        name: open_snapshots(tmp_path / f"{name}.zarr").wind_speed.values.round(4).tolist()
        for name in ("ensemble", "stated", "labelled")
    }
    assert speeds == {"ensemble": [5.0] * 4, "stated": [6.5] * 4, "labelled": [6.5, 6.5, 5.0, 5.0]}
    each, smoke = (open_snapshots(tmp_path / name, fields=["smoke"]) for name in WINDY_SMOKE)
    np.testing.assert_allclose(each.smoke, smoke.smoke, rtol=1e-4)  # of float32
    assert (each.smoke.max(("y", "x")) > 0.5).all()


def test_smoke_for_farsite_fires(tmp_path, follow_page):
    """An ensemble, three fires on its grid and one beyond it."""
    export_snapshots(make_snapshots(fires=24), tmp_path / "ensemble.nc")
    (tmp_path / "farsite").mkdir()
    size = {"NCOLS": 20, "NROWS": 12, "CELLSIZE": CELL / 5}
    for number, wind in enumerate((60, 180, 300)):
        arrival = np.full((12, 20), np.nan)
        arrival[3 + number, 2:18] = 30.0 * np.arange(16)
        path = tmp_path / "farsite" / f"flatland_3mph{wind}deg7hr_ArrivalTime.asc"
        write_ascii(path, arrival, XLLCORNER=6000.0, YLLCORNER=6000.0, **size)
    away = tmp_path / "farsite" / "panther_test1177973_ArrivalTime.asc"
    write_ascii(away, np.ones((12, 20)), XLLCORNER=-1e5, YLLCORNER=0.0, **size)
    printed = follow_page("smoke-for-farsite-fires.md")
    assert "exit code 1" in printed
    smoke = open_snapshots(tmp_path / "smoke.nc", fields=["smoke"])
    assert smoke.sizes["snapshot"] == 6
    assert sorted(set(smoke.hours.values)) == [3.0, 7.0]
    assert pc.load_surrogate(tmp_path / "smoke.plume").settings["preset"].startswith("recommended")
    assert (smoke.smoke.max(("y", "x")) > 1.0).all(), "a fire has smoke"
    assert (smoke.smoke > 0.0).mean() < 0.9, "and not everywhere"
    assert len(list((tmp_path / "maps").glob("smoke_flatland_*_007h.tif"))) == 3
    assert len(list((tmp_path / "maps").glob("smoke_flatland_*_007h_footprint.tif"))) == 3
    assert open_snapshots(tmp_path / "final.nc", fields=["smoke"]).sizes["snapshot"] == 3
    assert open_snapshots(tmp_path / "all.nc", fields=["smoke"]).sizes["snapshot"] == 3


def test_take_in_new_fires(tmp_path, follow_page):
    data = make_snapshots(fires=10, checkpoints=2, shape=(6, 8), droughts=("high",))
    for fire in fires_of(data):
        append_fire(tmp_path / "ensemble.zarr", fire)
    export_snapshots(data.isel(snapshot=slice(0, 12)), tmp_path / "first.zarr")
    printed = follow_page("take-in-new-fires.md")
    assert printed.count("predicted before, IoU") == 8, "four new ignitions, twice"
    assert printed.count("fitted again to all fires") == 2
    assert "kept: knots of the lift" in printed
    for name in ("updated", "fitted"):
        assert len(pc.load_surrogate(tmp_path / f"{name}.plume").training["ignition_id"]) == 10


def test_choose_a_surrogate(tmp_path, follow_page):
    few = make_snapshots(fires=6, checkpoints=3, shape=(5, 6), droughts=("high",))
    export_snapshots(few, tmp_path / "ensemble.nc")
    printed = follow_page("choose-a-surrogate.md")
    tuned = json.loads((tmp_path / "tuned.json").read_text())
    assert f"the settings of '{tuned['candidates'][0]['name']}' to tuned.json" in printed
    assert {c["family"] for c in tuned["candidates"]} == {"coded", "lifted", "spectral"}
    coded = json.loads((tmp_path / "coded.json").read_text())
    assert {c["family"] for c in coded["candidates"]} == {"coded"}
    assert (tmp_path / "tuned.plume").exists()


def test_the_papers_case_on_my_data(tmp_path, follow_page, monkeypatch):
    monkeypatch.setattr("plumecast.cli.commands.study.StudyLimits", lambda **options: SMALL)
    export_snapshots(three_droughts(ignitions=18), tmp_path / "ensemble.zarr")
    printed = follow_page("the-papers-case-on-my-data.md")
    assert printed.count(" done ") == printed.count(" reused ") == len(STUDIES)
    assert "wrote the report to report.html" in printed
    assert re.search(r"^[A-Z].* 0\.\d+$", printed, re.MULTILINE), "the best and its score"
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_does_the_treatment_pay(tmp_path, follow_page):
    pytest.importorskip("numba")
    write_landscape(tmp_path, (50, 60), 600.0)
    towns = "name,x,y,population\nAsh,15000,15000,4000\nElm,27000,21000,1500\n"
    (tmp_path / "towns.csv").write_text(towns)
    printed = follow_page("does-the-treatment-pay.md")
    assert "treated − untreated: 8 pairs of 8 ignitions" in printed
    assert "treated − untreated: 20 pairs of 20 ignitions" in printed
    assert "high − low: 4 pairs of 4 ignitions" in printed
    assert "not the error of the surrogate" in printed
    assert "scenario 'treated': the training fires were simulated with fuels=fuels.tif" in printed
    assert "scenario 'untreated': the training" not in printed
    assert (tmp_path / "diff_treated_difference.tif").exists()
    assert "(population-weighted)" in (tmp_path / "diff.csv").read_text()
    assert "treated against untreated" in shown_page(tmp_path / "treatment.html")


def test_how_sure_is_it(tmp_path, follow_page):
    ensemble = make_snapshots(fires=28)
    export_snapshots(ensemble.isel(snapshot=slice(0, 80)), tmp_path / "fires.zarr")
    new = ensemble.isel(snapshot=slice(80, None)).drop_vars("smoke")
    export_snapshots(new, tmp_path / "new.zarr")
    printed = follow_page("how-sure-is-it.md")
    assert "error bars calibrated on 10 ignitions, to contain 90 % of the smoky cells" in printed
    assert "lower_mean, upper_mean: the ends of its error bars" in printed
    low, high = map(float, re.search(r"error bar (\S+) to (\S+)", printed).groups())
    assert 0.0 <= low < high
    certain, possible = map(int, re.search(r"on (\d+)% and possible on (\d+)%", printed).groups())
    assert 0 < certain < possible <= 100


@pytest.mark.filterwarnings("error")
def test_fields_of_your_own(follow_page):
    printed = follow_page("fields-of-your-own.md")
    assert "input (grid_0: 48) → output (grid_0: 48)" in printed
    assert float(re.search(r"relative error ([\d.]+)", printed)[1]) < 0.3
    assert "<plumecast.workflows.CrossValidation: 4 folds" in printed
    assert "('member', 'lat', 'lon')" in printed


def test_solar_plants(tmp_path, follow_page):
    pytest.importorskip("pvlib")
    export_snapshots(smoky(fires=12, shape=(20, 25)), tmp_path / "fires.zarr")
    printed = follow_page("solar-plants.md")
    assert printed.count("mean of 12 fires (6 ignitions)") == 5
    rows = (tmp_path / "loss.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["Ranch", "Ridge", "all plants"]
    assert json.loads((tmp_path / "loss.json").read_text())["plants"][0]["lost_mwh"] > 0.0
    assert "0.675" in printed
    assert "all plants together lose" in shown_page(tmp_path / "energy.html")


def test_smoke_at_my_towns(tmp_path, follow_page):
    ensemble = make_snapshots(fires=60, checkpoints=3, seed=1)
    parts = [ensemble.isel(snapshot=slice(*rows)) for rows in ((0, 60), (60, 108), (108, 180))]
    trained = pc.train_surrogate(parts[0], preset="paper-linear", split=None)
    trained.save(tmp_path / "smoke.plume")
    export_snapshots(parts[1], tmp_path / "truth.zarr")
    export_snapshots(parts[2].drop_vars("smoke"), tmp_path / "fires.zarr")
    printed = follow_page("smoke-at-my-towns.md")
    assert "contain the sampling of fires and the surrogate's error, calibrated on" in printed
    assert "and 8 with true smoke" in printed
    rows = (tmp_path / "each-fire.csv").read_text().splitlines()
    assert len(rows) == 1 + 24 * 4
    assert sum(row.startswith("fire-") and "outside the grid" in row for row in rows) == 24
    assert "correlation of true and predicted smoke" in printed
    assert (tmp_path / "towns-smoke.csv").read_text().count("\n") == 6
    names = {path.name for path in tmp_path.glob("maps_*.tif")}
    assert {"maps_exceedance_upper_35.tif", "maps_mean_smoke_correlation.tif"} <= names
    assert "µg m⁻³ per person" in printed
    assert "of 8 ignitions that the model had not seen" in shown_page(tmp_path / "towns.html")


def shown_page(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_a_page_for_the_boss(tmp_path, follow_page):
    pytest.importorskip("pvlib")
    fires = smoky(fires=12, shape=(20, 25))
    export_snapshots(fires, tmp_path / "fires.zarr")
    pc.fit_surrogate(fires, "paper-linear").save(tmp_path / "smoke.plume")
    (tmp_path / "towns.csv").write_text("name,x,y,population\nAsh,15000,15000,4000\n")
    (tmp_path / "plants.csv").write_text("name,x,y,megawatts\nRanch,31000,25000,250\n")
    printed = follow_page("a-page-for-the-boss.md")
    assert "wrote the page to decision.html" in printed
    assert "not on the page" not in printed
    assert "95th percentile" in shown_page(tmp_path / "decision.html")


def test_see_my_fires(tmp_path, follow_page):
    export_snapshots(make_snapshots(fires=12), tmp_path / "ensemble.zarr")
    printed = follow_page("see-my-fires.md")
    assert "drew 12 of 12 fires" in printed
    assert "from-python.html shows Observed smoke, Predicted smoke" in printed
    for name in ("map", "compared", "compared-again", "statistics", "towns", "from-python"):
        assert (tmp_path / f"{name}.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (tmp_path / "figure.png").stat().st_size > 0


def test_which_fire_next(tmp_path, follow_page):
    fires = weather_fires(12)
    known = np.isin(fires.ignition_id.values, ["f10", "f11"])
    for name, kept in (("cheap", ~known), ("done", known)):
        part = fires.isel(snapshot=np.flatnonzero(kept))
        export_snapshots(part, tmp_path / f"{name}.zarr")
    printed = follow_page("which-fire-next.md")
    assert "4 of 10 ignitions by" in printed
    assert "expected error, relative to the given runs alone: " in printed
    mine = (tmp_path / "mine.csv").read_text().splitlines()
    assert mine[1].startswith("1,f03,must-have,")
    assert (tmp_path / "runs.png").stat().st_size > 10_000
    assert len(list((tmp_path / "wrf").glob("*/namelist.input"))) == 6, "the hold-out too"


def test_train_and_score(tmp_path, follow_page):
    export_snapshots(make_snapshots(fires=24, checkpoints=2), tmp_path / "ensemble.zarr")
    printed = follow_page("train-and-score.md")
    assert "24 of 24 fires are clean" in printed
    assert "false alarms" in printed
    auc, iou = map(float, printed.splitlines()[-1].split())
    assert 0.0 <= iou <= auc <= 1.0
    assert open_snapshots(tmp_path / "predicted.nc", fields=["smoke"]).sizes["snapshot"] == 48


def test_keep_stores_safe(tmp_path, follow_page):
    fires = make_snapshots(fires=2, checkpoints=2, shape=(4, 5))
    for rows in (slice(0, 2), slice(2, 4)):
        pc.data.append_fire(tmp_path / "ensemble.zarr", fires.isel(snapshot=rows))
    follow_page("keep-stores-safe.md")
    assert len(stored_fires(tmp_path / "ensemble.zarr")) == 2


def test_surrogates_of_wrf_runs(tmp_path, follow_page):
    export_snapshots(make_snapshots(fires=24), tmp_path / "ensemble.nc")
    printed = follow_page("../results/wrf.md")
    assert "nearest-fire" in printed


def test_readme(tmp_path, follow_page):
    few = make_snapshots(fires=14, checkpoints=2, shape=(5, 6), droughts=("high",))
    export_snapshots(few, tmp_path / "ensemble.zarr")
    printed = follow_page("../../README.md")
    assert "µg m⁻³, time mean" in printed
    assert (tmp_path / "map.html").stat().st_size > 0


def test_give_the_weather(follow_page):
    printed = follow_page("give-the-weather.md")
    assert "[7.7" in printed  # 8 m/s from 255 degrees
    assert "['north' 'south'] ('fire', 'weather_hour', 'height')" in printed
    assert "log law (times 1.120)" in printed
    assert "grid point 40.500 N, 239.000 E; ground at 850 m, as stated" in printed
    assert "default cycle: 250 m at night, 2500 m at 15 h local time" in printed
    assert "('snapshot', 'weather_hour', 'height')" in printed
