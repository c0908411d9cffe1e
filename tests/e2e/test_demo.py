"""`plumecast demo` end to end on a small ensemble, and the figures it draws."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
import plumecast.cli.commands.demo
from plumecast.cli import main
from plumecast.paper.figures import compare_maps, percentile_rows, save_figure
from plumecast.workflows import Ground
from support.raster_files import write_landscape


def test_demo_writes_ensemble_surrogates_scores_and_maps(monkeypatch, tmp_path, capsys):
    """The demo's own steps on few short fires on little ground, small ones kept."""
    whole = plumecast.cli.commands.demo.simulate
    less = {"ignitions": 6, "checkpoints": 2, "workers": 1}
    less["ground"] = Ground(**write_landscape(tmp_path, (40, 50), 900.0))

    def simulate(out, **options):
        return whole(out, **(options | less))

    monkeypatch.setattr(plumecast.cli.commands.demo, "simulate", simulate)
    monkeypatch.setattr(plumecast.cli.commands.demo, "PAPER_MIN_ACRES", 100.0)
    out = tmp_path / "demo"
    with pytest.raises(SystemExit) as stop:
        main(["demo", "-o", str(out)])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    shown = (
        "paper-linear.plume", "recommended.plume", "scores.json", "maps.png", "report.html",
        "map.html",
    )  # fmt: skip
    for name in shown:
        assert (out / name).stat().st_size > 0
        assert str(out / name) in said
    scores = {row["name"]: row for row in json.loads((out / "scores.json").read_text())["scores"]}
    assert set(scores) == {
        "paper-linear", "paper-quadratic", "recommended",
        "mean-field", "nearest-fire", "gp-images", "gp-codes",
    }  # fmt: skip
    assert all(0.0 <= row["iou"] <= 1.0 for row in scores.values())
    for name in ("paper-linear", "recommended"):
        recorded = pc.load_surrogate(out / f"{name}.plume").training
        assert recorded["thresholds"]["decision"] == scores[name]["decision_threshold"]
        predicted = str(tmp_path / f"{name}.nc")
        store, model = str(out / "ensemble.zarr"), str(out / f"{name}.plume")
        for words in (
            ["predict", model, store, "-o", predicted, "--footprint"],
            ["evaluate", model, store, "--baselines", "none"],
        ):
            with pytest.raises(SystemExit) as stop:
                main(words)
            assert stop.value.code == 0
        own = json.loads((out / f"{name}.scores.json").read_text())["scores"][0]
        assert own["iou"] == pytest.approx(scores[name]["iou"])
    for name, row in scores.items():
        assert f"{row['iou']:.3f}" in next(line for line in said.splitlines() if name in line[:18])


def test_rows_at_percentiles_are_different_snapshots():
    scores = xr.DataArray([0.9, np.nan, 0.1, 0.5, 0.3], dims="snapshot")
    assert percentile_rows(scores, [0, 34, 100]) == {0: 2, 34: 4, 100: 0}
    ties = xr.DataArray(np.zeros(20), dims="snapshot")
    assert len(set(percentile_rows(ties, [5, 25, 50, 75, 95]).values())) == 5
    assert percentile_rows(ties[:2], [5, 25, 50, 75, 95]) == {5: 0, 75: 1}
    assert percentile_rows(np.nan * ties, [0, 100]) == {0: 0, 100: 19}


def test_maps_have_one_row_per_field_and_one_scale(snapshots, tmp_path):
    figure = compare_maps(
        snapshots, {"again": snapshots.smoke}, rows=[3, 7], titles=["a", "b"], threshold=0.01
    )
    drawn = [ax for ax in figure.axes if ax.get_xlabel() or ax.collections]
    norms = {ax.collections[0].norm for ax in figure.axes[:4]}
    [norm] = norms
    assert norm.vmax == pytest.approx(max(float(snapshots.smoke[[3, 7]].max()), 0.1))
    assert len(drawn) >= 4
    assert save_figure(figure, tmp_path / "new" / "maps.png").stat().st_size > 0
