"""`plumecast demo`: from nothing to a scored surrogate and its maps."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path

import typer
import xarray as xr

from plumecast.baselines import BASELINES, fit_baseline
from plumecast.cli.evaluate import show_scores
from plumecast.cli.show import counted, progress, say, write_json, wrote
from plumecast.evaluation import Evaluation, evaluate
from plumecast.fit import fit_surrogate
from plumecast.generation import simulate
from plumecast.names import SNAPSHOT
from plumecast.report.maps import compare_maps, percentile_rows, save_figure
from plumecast.settings import PRESETS
from plumecast.snapshots import PAPER_MIN_ACRES, drop_small_fires
from plumecast.split import Split, split_by_fire
from plumecast.surrogate import Surrogate

PERCENTILES = (10, 50, 90)


def command(
    out: Path = typer.Option(Path("plumecast-demo"), "--out", "-o", help="Where results go."),
    preset: str = typer.Option("demo", help="Ensemble to simulate: demo or paper."),
    seed: int = typer.Option(0, help="Seed of the ensemble."),
    workers: int = typer.Option(os.cpu_count() or 1, help="Processes for the simulation."),
) -> None:
    """Simulate fires, train every preset, score them beside the baselines, draw maps.

    An ensemble that is already there is used again.

    Example: `plumecast demo`
    """
    store = out / "ensemble.zarr"
    with counted("simulating fires") as step:
        snapshots = simulate(store, preset=preset, seed=seed, workers=workers, progress=step)
    large = drop_small_fires(snapshots, PAPER_MIN_ACRES)
    say(
        f"{snapshots.sizes[SNAPSHOT]} snapshots of {len(set(snapshots.fire_id.values))} fires, "
        f"{large.sizes[SNAPSHOT]} with at least {PAPER_MIN_ACRES:,.0f} burned acres"
    )
    split = split_by_fire(large.load())
    surrogates = _train(split, out)
    with progress("scoring", total=len(surrogates)) as begin:
        result = evaluate(surrogates, split.validation, split.test, progress=begin)
    show_scores(result)
    say("A surrogate that does not beat the mean field and the nearest fire is worth nothing.")
    wrote(store, "the ensemble")
    content = {"scores": [asdict(score) for score in result.scores]}
    write_json(out / "scores.json", content, "the scores")
    wrote(_maps(split.test, surrogates, result, out / "maps.png"), "maps, observed and predicted")


def _train(split: Split, out: Path) -> dict[str, Surrogate]:
    surrogates: dict[str, Surrogate] = {}
    with progress("training", total=len(PRESETS) + len(BASELINES)) as begin:
        for name in PRESETS:
            begin(name)
            start = time.perf_counter()
            surrogates[name] = fit_surrogate(split.train, name)
            seconds = time.perf_counter() - start
            where = surrogates[name].save(out / f"{name}.plume")
            say(f"trained {name} on {split.train.sizes[SNAPSHOT]} snapshots in {seconds:.2f} s")
            wrote(where, "the surrogate")
        for name in BASELINES:
            begin(name)
            surrogates[name] = fit_baseline(name, split.train)
    return surrogates


def _maps(
    test: xr.Dataset, surrogates: dict[str, Surrogate], result: Evaluation, path: Path
) -> Path:
    shown = ["paper-linear", "paper-quadratic", "recommended"]
    scores = result.details["recommended"].iou
    rows = percentile_rows(scores, PERCENTILES)
    chosen = test.isel({SNAPSHOT: rows}).load()
    predictions = {}
    for name in shown:
        predicted = surrogates[name].predict(chosen)
        assert isinstance(predicted, xr.DataArray)
        predictions[name] = predicted
    titles = [
        f"{percentile}th percentile, IoU {scores.values[row]:.2f}\n"
        f"{test.fire_id.values[row]} at {test.hours.values[row]:g} h"
        for percentile, row in zip(PERCENTILES, rows, strict=True)
    ]
    figure = compare_maps(
        chosen, predictions, range(len(rows)), titles, threshold=result.smoke_threshold
    )
    return save_figure(figure, path)
