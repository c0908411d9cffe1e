"""Coverage of error bars on fires that were never used, against the number of training ignitions.

    export PYTHONPATH=src
    python benchmarks/error_bars.py draws w180.nc --out bars.jsonl --sizes 8,16,32,64 --draws 5
    python benchmarks/error_bars.py folds wrf.nc --out wrf.jsonl
    python benchmarks/error_bars.py table bars.jsonl

`draws` trains on some ignitions and scores on `--test` others, each time drawn anew. `folds` leaves
out `--leave` ignitions at a time. A line has, for each nominal coverage, means over test fires: the
share of scored cells within the band (predicted or observed smoke above the smoke threshold), the
share of all cells, the share at 20 random places (scored cells there), and where smoke was observed
(the same cells for all methods) the share within the band and its mean width; the shares of certain
cells with smoke and of smoky cells that are possible, and the shares of fires in which these are at
least the nominal coverage; the same for the mean field with a band of its own, whose scored cells
are nearly all cells. Finished lines are not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.data.store import open_snapshots
from plumecast.surrogate.baselines import fit_baseline
from plumecast.surrogate.error_bars.calibration import Calibration, make_calibration
from plumecast.surrogate.error_bars.interval import (
    CERTAIN,
    LOWER,
    POSSIBLE,
    UPPER,
    interval_fields,
)
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.evaluate import score_out_of_fold
from plumecast.workflows.train import train_surrogate

NOMINAL = (0.9, 0.8)
PLACES = 20


def mean_field(train: xr.Dataset) -> Surrogate:
    """The mean field with error bars of its own, calibrated as those of a surrogate."""
    fit = partial(fit_baseline, "mean-field")
    cells = score_out_of_fold(train, {"mean-field": fit})["smoke"].evaluation.cells
    assert cells is not None
    return replace(fit(train), error_bars=make_calibration(cells))


def by_fire(values: np.ndarray, where: np.ndarray, fires: np.ndarray) -> np.ndarray:
    """Mean of (M, …) values over the cells `where`, for every fire; NaN without such cells."""
    number = np.unique(fires, return_inverse=True)[1]
    axes = tuple(range(1, values.ndim))
    total = np.bincount(number, (values * where).sum(axis=axes))
    count = np.bincount(number, where.sum(axis=axes))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def shares(surrogate: Surrogate, test: xr.Dataset, rng: np.random.Generator) -> dict[str, Any]:
    """Coverage and width for every nominal coverage, as means over the fires of `test`."""
    table = surrogate.error_bars
    assert isinstance(table, Calibration)
    observed, fires = test.smoke.values, test.fire_id.values.astype(str)
    places = np.zeros(observed.shape[1:], dtype=bool)
    smoky = np.flatnonzero((observed > table.tau).any(axis=0).ravel())
    places.flat[rng.choice(smoky, min(PLACES, smoky.size), replace=False)] = True
    (smoke, score), _ = surrogate.predict_checked(test, score=True)
    scored = (observed > table.tau) | (smoke.values > table.tau)
    found: dict[str, Any] = {"ignitions": len(table.groups), "tau": table.tau}
    for nominal in NOMINAL:
        bars = interval_fields(table, smoke, score, nominal)
        names = (LOWER, UPPER, CERTAIN, POSSIBLE)
        low, high, certain, possible = (bars[name].values for name in names)
        inside = (low <= observed) & (observed <= high)
        width = high.astype(np.float64) - low
        certain, possible = certain > 0, possible > 0
        real = observed > table.tau
        each = {
            "scored": by_fire(inside, scored, fires),
            "all": by_fire(inside, np.ones_like(scored), fires),
            "places": by_fire(inside, scored & places, fires),
            "smoky": by_fire(inside, real, fires),
            "width": by_fire(width, real, fires),
            "observed": by_fire(observed.astype(np.float64), real, fires),
            "certain": np.nan_to_num(by_fire(real, certain, fires), nan=1.0),
            "possible": np.nan_to_num(by_fire(possible, real, fires), nan=1.0),
            "certain_share": by_fire(certain, real, fires),
        }
        means = {name: float(np.nanmean(values)) for name, values in each.items()}
        for name in ("certain", "possible"):
            means[f"{name}_fires"] = float(np.mean(each[name] >= nominal))
        means["spread"] = float(np.nanstd(each["scored"]))
        means["promised"] = table.promised(nominal)
        found[f"{nominal:g}"] = means
    return found


def line(train: xr.Dataset, test: xr.Dataset, seed: int, choices: dict[str, Any]) -> dict[str, Any]:
    """One fit with its error bars, and the mean field's, on the same test fires."""
    surrogate = train_surrogate(train, split=None, **choices)
    if surrogate.error_bars is None:
        raise SystemExit(f"no error bars: {surrogate.training}")
    result = shares(surrogate, test, np.random.default_rng(seed))
    result["mean field"] = shares(mean_field(train), test, np.random.default_rng(seed))
    return result


def thinned(data: xr.Dataset, keep: int) -> xr.Dataset:
    """Every `keep`-th checkpoint of every fire, the last one included."""
    fires = data.fire_id.values.astype(str)
    rows = [np.flatnonzero(fires == fire)[::-1][::keep] for fire in np.unique(fires)]
    return data.isel(snapshot=np.sort(np.concatenate(rows)))


def rows_of(data: xr.Dataset, ignitions: np.ndarray) -> xr.Dataset:
    own = np.isin(data.ignition_id.values.astype(str), ignitions)
    return data.isel(snapshot=np.flatnonzero(own))


def draws(data: xr.Dataset, given: argparse.Namespace, choices: dict[str, Any]) -> None:
    ignitions = np.unique(data.ignition_id.values.astype(str))
    for draw in range(given.first, given.first + given.draws):
        order = np.random.default_rng(draw).permutation(ignitions)
        test = rows_of(data, order[: given.test])
        for size in map(int, given.sizes.split(",")):
            key = {"draw": draw, "size": size}
            if not known(given.out, key):
                train = rows_of(data, order[given.test : given.test + size])
                write(given.out, key | line(train, test, draw, choices))


def folds(data: xr.Dataset, given: argparse.Namespace, choices: dict[str, Any]) -> None:
    ignitions = np.unique(data.ignition_id.values.astype(str))
    parts = np.array_split(ignitions, -(-ignitions.size // given.leave))
    for draw, left_out in enumerate(parts):
        rest = np.setdiff1d(ignitions, left_out)
        key = {"draw": draw, "size": int(rest.size)}
        if not known(given.out, key):
            train, test = rows_of(data, rest), rows_of(data, left_out)
            write(given.out, key | line(train, test, draw, choices))


def known(path: Path, key: dict[str, Any]) -> bool:
    return any(key.items() <= item.items() for item in read(path))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def write(path: Path, item: dict[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(item) + "\n")
    print({name: item[name] for name in ("draw", "size")}, item["0.9"], flush=True)


def table(path: Path) -> None:
    """Means over draws as a Markdown table."""
    sizes = defaultdict(list)
    for item in read(path):
        sizes[item["size"]].append(item)
    print("| ignitions | draws | nominal | promised | scored cells (draws) | places | all cells |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for size, items in sorted(sizes.items()):
        for nominal in (f"{value:g}" for value in NOMINAL):
            own = {name: [i[nominal][name] for i in items] for name in items[0][nominal]}
            low, high = min(own["scored"]), max(own["scored"])
            mean = {name: float(np.mean(values)) for name, values in own.items()}
            print(
                f"| {size} | {len(items)} | {nominal} | {mean['promised']:.2f} | "
                f"{mean['scored']:.3f} ({low:.2f}–{high:.2f}) | {mean['places']:.3f} | "
                f"{mean['all']:.3f} |"
            )
    print()
    print(
        "| ignitions | nominal | observed smoke: width / smoke, coverage | mean field's | "
        "certain has smoke (fires) | possible has the smoke (fires) |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for size, items in sorted(sizes.items()):
        for nominal in (f"{value:g}" for value in NOMINAL):
            own = [item[nominal] for item in items]
            other = [item["mean field"][nominal] for item in items]
            print(
                f"| {size} | {nominal} | {_ratio(own)}, {_smoky(own)} | {_ratio(other)}, "
                f"{_smoky(other)} | {_set(own, 'certain')} | {_set(own, 'possible')} |"
            )


def _set(items: list[dict[str, float]], name: str) -> str:
    """Mean share of the cells of a set that are right, and share of fires with the nominal one."""
    share, fires = (np.mean([i[key] for i in items]) for key in (name, f"{name}_fires"))
    return f"{share:.3f} ({fires:.2f})"


def _smoky(items: list[dict[str, float]]) -> str:
    return f"{np.mean([i['smoky'] for i in items]):.3f}"


def _ratio(items: list[dict[str, float]]) -> str:
    return f"{np.sum([i['width'] for i in items]) / np.sum([i['observed'] for i in items]):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("draws", "folds", "table"))
    parser.add_argument("source", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sizes", default="8,16,32,64")
    parser.add_argument("--test", type=int, default=80)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--leave", type=int, default=1, help="ignitions left out at a time")
    parser.add_argument("--every", type=int, default=3, help="keep every n-th checkpoint")
    parser.add_argument("--physics", default="none")
    parser.add_argument("--preset", default="recommended")
    parser.add_argument("--smoke-floor", type=float, default=0.0)
    given = parser.parse_args()
    if given.what == "table":
        table(given.source)
        return
    data = thinned(open_snapshots(given.source), given.every).load()
    if given.smoke_floor:
        data = data.assign(smoke=data.smoke.where(data.smoke > given.smoke_floor, 0.0))
    choices = {"preset": given.preset, "layers": 1, "physics": given.physics, "correction": False}
    {"draws": draws, "folds": folds}[given.what](data, given, choices)


if __name__ == "__main__":
    main()
