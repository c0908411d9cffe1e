"""Which fires to run next: designs against random choice, on fires whose smoke is known.

    export PYTHONPATH=src
    python benchmarks/design.py score weathers.nc --test 60 --pool 100 --coarsen 2 \
        --out design.jsonl
    python benchmarks/design.py score mountains.nc ensemble.nc --test 0 --left-out 12 \
        --ensemble mountains,diverse-weather --every 2 --until 8 --coarsen 2 \
        --sizes 4,8,12,16 --out design-wrf.jsonl
    python benchmarks/design.py table design.jsonl

The last `--test` ignitions by name are never chosen from; with `--test 0`, every seed leaves out
`--left-out` random ones. Of the others, every seed draws a pool of `--pool`, and every method
chooses from it. The surrogate is a cheap `recommended`: one spectral layer in the wind frame with
carried smoke, fitted to ln(1 + g/ε), with every k-th checkpoint; smoke is compared in the wind
frame, on cells that are `--coarsen` times as wide. The score of a fire is the mean over its
snapshots. ε, the scales of channels and the plan of the transport are those of all fires, the same
for every method. Finished seeds are not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.compute.resources import DEFAULT_BUDGET
from plumecast.data.covariates import read_wind
from plumecast.data.layout import fit_layout
from plumecast.data.store import open_snapshots
from plumecast.operators.carried.transport import plan_transport
from plumecast.operators.family import Conditions, TrainingSet, in_memory
from plumecast.operators.settings import FAMILIES, choose_settings
from plumecast.operators.wind_frame import carried_fields, encoded_fields
from plumecast.scores.footprint import smoke_threshold
from plumecast.surrogate.fit_lifted import grid_spacing, wind_frame_of
from plumecast.surrogate.weather import fire_history, frame_interval, weather_series
from plumecast.weather.snapshots import without_weather
from plumecast.workflows.design.candidates import read_candidates
from plumecast.workflows.design.kernel import METHODS, NOISE, Choice, fit_kernel, surrogate_features

SETTINGS = choose_settings(
    "recommended", layers=1, targets=("log",), frame="wind", physics="column"
)
DRAWS = 1  # random choices per seed


@dataclass(frozen=True)
class Fires:
    """All fires in the wind frame, and their features for a design."""

    fire: np.ndarray  # (M, *canvas)
    carried: np.ndarray  # (M, 1, *canvas)
    log: np.ndarray  # (M, *canvas), ln(1 + g/ε)
    level: float  # of that, at the smoke threshold
    ignition: np.ndarray  # (M,)
    names: tuple[str, ...]
    groups: list[np.ndarray]  # rows of `features` of every ignition
    features: np.ndarray

    def rows(self, names: Sequence[str]) -> np.ndarray:
        """Rows of the snapshots of some ignitions."""
        return np.flatnonzero(np.isin(self.ignition, names))

    def training(self, rows: np.ndarray) -> TrainingSet:
        """Some snapshots with their carried smoke."""
        _, groups = np.unique(self.ignition[rows], return_inverse=True)
        given = Conditions(physics=self.carried[rows])
        return TrainingSet(self.fire[rows], self.log[rows][:, None], groups, given, ("f", "g"))


def read(arguments: argparse.Namespace) -> Fires:
    """The fires of one or several stores, in the wind frame."""
    parts = [
        _part(path, arguments.ensemble, arguments.every, arguments.until) for path in arguments.data
    ]
    if len(parts) > 1:  # not all have hourly weather: mean winds for all
        shared = set.intersection(*(set(part.variables) for part in parts))
        parts = [without_weather(part[sorted(map(str, shared))]) for part in parts]
    data = xr.concat(parts, "snapshot", data_vars="minimal", coords="minimal", join="exact")
    field = fit_layout(data, ["time_since_ignition"]).fields[0]
    wind, weather = read_wind(data), weather_series(data)
    frame = wind_frame_of(data, field, wind, "wind")
    carrier = plan_transport(weather, grid_spacing(data, field), frame_interval(data))
    fire, smoke = (data[name].values for name in ("time_since_ignition", "smoke"))
    level = smoke_threshold(smoke)
    log = np.log1p(smoke / level).astype(np.float32)
    pool = read_candidates(data)
    (features,) = surrogate_features([pool.snapshots], pool.member)
    given = Conditions(wind=wind, weather=weather, history=fire_history(data, fire))
    carried = in_memory(carried_fields(fire, carrier, given, frame))
    fields = [in_memory(encoded_fields(own, field.shape, (), frame, wind)) for own in (fire, log)]
    return Fires(
        _coarse(fields[0], arguments.coarsen),
        _coarse(carried, arguments.coarsen),
        _coarse(fields[1], arguments.coarsen),
        float(np.log(2.0)),
        data["ignition_id"].values.astype(str),
        pool.names,
        pool.groups(),
        features,
    )


def _coarse(fields: np.ndarray, times: int) -> np.ndarray:
    """Means over blocks of cells; rows and columns beyond the last whole block are cut off."""
    rows, columns = (size // times * times for size in fields.shape[-2:])
    blocks = (rows // times, times, columns // times, times)
    cut = fields[..., :rows, :columns]
    return cut.reshape(*fields.shape[:-2], *blocks).mean(axis=(-3, -1))


def _part(path: Path, ensembles: Sequence[str], every: int, until: float) -> xr.Dataset:
    data = open_snapshots(path)
    hours = data["hours"].values
    order = np.searchsorted(np.unique(hours), hours) + 1
    kept = (order % every == 0) & (hours <= until)
    if ensembles and "ensemble" in data.variables:
        kept &= np.isin(data["ensemble"].values.astype(str), ensembles)
    return data.isel(snapshot=np.flatnonzero(kept)).load()


def scores(fires: Fires, chosen: Sequence[str], test: Sequence[str]) -> dict[str, float]:
    """Median IoU, mean and worst relative error of ln(1 + g/ε), over test fires."""
    rows = fires.rows(test)
    fitted = FAMILIES["spectral"].fit(fires.training(fires.rows(chosen)), SETTINGS, DEFAULT_BUDGET)
    given = Conditions(physics=fires.carried[rows])
    predicted = np.asarray(fitted.field_map.predict(fires.fire[rows], given))[:, 0]
    observed = fires.log[rows]
    size = np.linalg.norm(observed.reshape(rows.size, -1), axis=1)
    errors = np.linalg.norm((predicted - observed).reshape(rows.size, -1), axis=1)
    errors /= np.where(size > 0.0, size, 1.0)
    here, there = predicted > fires.level, observed > fires.level
    both, either = ((part).sum(axis=(1, 2)) for part in (here & there, here | there))
    iou = both / np.maximum(either, 1)
    own = fires.ignition[rows]
    by_fire = np.array([[iou[own == name].mean(), errors[own == name].mean()] for name in test])
    return {
        "iou": float(np.median(by_fire[:, 0])),
        "median": float(np.median(by_fire[:, 1])),
        "mean": float(by_fire[:, 1].mean()),
        "worst": float(by_fire[:, 1].max()),
    }


def choice(fires: Fires, pool: Sequence[str], seed: int) -> Choice:
    """The choice from a pool; the features of no other fire are used."""
    groups = [fires.groups[fires.names.index(name)] for name in pool]
    features = fires.features[np.concatenate(groups)]
    ends = np.cumsum([group.size for group in groups])
    kernel, rows = fit_kernel(features, features)
    numbers = np.split(np.arange(rows.shape[0]), ends[:-1])
    count = len(pool)
    equal = np.full(count, 1.0 / count)
    return Choice(
        rows, numbers, kernel, NOISE, equal, np.ones(count), np.ones(count, dtype=bool), seed
    )


def score(arguments: argparse.Namespace) -> None:
    fires = read(arguments)
    out: Path = arguments.out
    done = (
        {json.loads(line)["seed"] for line in out.read_text().splitlines()}
        if out.exists()
        else set()
    )
    kept = fires.names[: len(fires.names) - arguments.test]
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        if seed in done:
            continue
        rng = np.random.default_rng([seed, 7])
        mixed = [str(name) for name in rng.permutation(kept)]
        test = list(fires.names[len(kept) :]) or mixed[: arguments.left_out]
        rest = mixed if arguments.test else mixed[arguments.left_out :]
        pool = sorted(rest[: arguments.pool] if arguments.pool else rest)
        record: dict[str, Any] = {"seed": seed, "pool": len(pool), "test": len(test), "scores": {}}
        for method in arguments.methods:
            draws = DRAWS if method == "random" else 1
            for draw in range(draws):
                offered = choice(fires, pool, DRAWS * seed + draw)
                nested = METHODS[method](offered, max(arguments.sizes), ())
                for size in arguments.sizes:
                    names = [pool[number] for number in nested[:size]]
                    found = scores(fires, names, test)
                    record["scores"].setdefault(f"{method} {size}", []).append(found)
        with out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(f"seed {seed}", flush=True)


def table(arguments: argparse.Namespace) -> None:
    """Means over seeds; runs that a method needs for the error of random choice of n runs."""
    found: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    lines = [json.loads(line) for line in arguments.results.read_text().splitlines()]
    for line in lines:
        for key, values in line["scores"].items():
            method, size = key.split()
            for name in values[0]:
                mean = float(np.mean([value[name] for value in values]))
                found[method, int(size)][name].append(mean)
    methods = list(dict.fromkeys(method for method, _ in found))
    sizes = sorted({size for _, size in found})
    print(f"{len(lines)} seeds, pool {lines[0]['pool']}, test {lines[0]['test']}")
    print("| runs | " + " | ".join(methods) + " |\n" + "| --- " * (len(methods) + 1) + "|")
    for size in sizes:
        cells = []
        for method in methods:
            own = found[method, size]
            values = [np.mean(own[name]) for name in ("iou", "median", "mean", "worst")]
            cells.append("{:.3f}, {:.3f}, {:.3f}, {:.2f}".format(*values))
        print(f"| {size} | " + " | ".join(cells) + " |")
    print("spread of random over seeds (std of the mean rel ln):", end=" ")
    print(", ".join(f"{size}: {np.std(found['random', size]['mean']):.3f}" for size in sizes))
    for method in methods:
        if method != "random":
            _needed(found, method, sizes)


def _needed(found: Any, method: str, sizes: Sequence[int]) -> None:
    """Runs that reach the mean rel ln of random choice, and the share of seeds that are better."""
    own, random = ([float(np.mean(found[m, n]["mean"])) for n in sizes] for m in (method, "random"))
    falling = np.minimum.accumulate(own)
    cells = []
    for number, (size, goal) in enumerate(zip(sizes, random, strict=True)):
        below = np.flatnonzero(falling <= goal)
        if below.size == 0:
            text = f"> {sizes[-1]}"
        elif below[0] == 0:
            text = f"≤ {sizes[0]}"
        else:
            i = int(below[0])
            share = (falling[i - 1] - goal) / (falling[i - 1] - falling[i])
            logs = np.log(sizes[i - 1]), np.log(sizes[i])
            text = f"{np.exp(logs[0] + share * (logs[1] - logs[0])):.1f}"
        pairs = zip(found[method, size]["mean"], found["random", size]["mean"], strict=True)
        wins = np.mean([mine <= other for mine, other in pairs])
        ratio = own[number] / random[number]
        cells.append(f"{size} → {text} (error × {ratio:.3f}, better in {wins:.0%} of seeds)")
    print(f"{method}: runs for the error of random: " + "; ".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("score")
    one.add_argument("data", type=Path, nargs="+")
    one.add_argument("--ensemble", type=lambda text: text.split(","), default=[])
    one.add_argument("--every", type=int, default=3)
    one.add_argument("--until", type=float, default=np.inf)
    one.add_argument("--coarsen", type=int, default=1)
    one.add_argument("--test", type=int, default=60)
    one.add_argument("--left-out", type=int, default=12)
    one.add_argument("--pool", type=int, default=0)
    one.add_argument("--first", type=int, default=0)
    one.add_argument("--seeds", type=int, default=20)
    one.add_argument(
        "--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[8, 12, 16, 24, 32]
    )
    one.add_argument("--methods", type=lambda text: text.split(","), default=list(METHODS))
    one.add_argument("--out", type=Path, required=True)
    one.set_defaults(run=score)
    two = commands.add_parser("table")
    two.add_argument("results", type=Path)
    two.set_defaults(run=table)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
