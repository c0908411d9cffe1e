"""Fires with their own weather: the spectral family, a U-Net and baselines on one machine.

    export PYTHONPATH=src
    python benchmarks/weather.py export snapshots.nc snapshots.npz
    python benchmarks/weather.py score snapshots.npz --device cuda --seconds 20 --out weather.jsonl
    python benchmarks/weather.py score mountains.npz --folds 8 --device cuda --out mountains.jsonl
    python benchmarks/weather.py table weather.jsonl

`score` needs numpy, scipy, xarray, array-api-compat, threadpoolctl and perhaps torch, no store,
so that it runs on a machine that has a GPU and not much else. Without `--folds`, 60 fires (or a
third) are held out, and training sets of every size are drawn several times from the others; the
decision threshold comes from fires that are in neither. With `--folds`, consecutive fires (with
`--seed`, fires drawn at random) are left out together, and the threshold comes from the training
fires. Finished lines are not repeated.

A method is FRAME+PHYSICS of the preset `recommended` (as in wind+column; wind+column+1 has one
spectral layer), `unet` (wind+column),
`physics` (calibrated), `mean` or `nearest`. The line `chosen` is that of wind+calibrated,
wind+column, wind+layers and wind+none with the smallest out-of-fold error, as `physics="auto"`
chooses; its time is that of all four.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from families import limited, relative_errors
from plumecast.compute.arrays import map_arrays, to_numpy
from plumecast.compute.resources import Budget, Device, choose_device
from plumecast.operators.carried.calibration import calibrate
from plumecast.operators.carried.release import WeatherSeries
from plumecast.operators.carried.transport import plan_transport
from plumecast.operators.family import Conditions, TrainingSet
from plumecast.operators.lifted import fit_lifted_operator
from plumecast.operators.settings import FAMILIES, choose_settings
from plumecast.operators.wind_frame import fit_wind_frame
from plumecast.scores.footprint import smoke_threshold
from plumecast.scores.roc import decision_threshold_over, iou_at, roc_scores

COMPARED = ("wind+calibrated", "wind+column", "wind+layers", "wind+none")
METHODS = ",".join((*COMPARED, "map+column", "map+none", "unet", "physics", "mean", "nearest"))
BLOCK = 200

Predictor = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Rows of the snapshots → smoke and detection score."""


@dataclass(frozen=True)
class Snapshots:
    """Fires and smoke (M, y, x), the number of the fire of each, and their weather."""

    fire: np.ndarray
    smoke: np.ndarray
    number: np.ndarray
    weather: WeatherSeries
    wind: np.ndarray
    spacing: tuple[float, float]
    interval: float
    load: np.ndarray | None

    @property
    def fires(self) -> int:
        """Number of fires."""
        return int(self.number.max()) + 1

    def rows(self, fires: np.ndarray) -> np.ndarray:
        """The snapshots of some fires."""
        return np.flatnonzero(np.isin(self.number, fires))


def export(source: Path, out: Path) -> None:
    """Write a store with weather as `.npz`; needs the packages that read stores."""
    from plumecast.data.store import open_snapshots
    from plumecast.surrogate.weather import frame_interval, fuel_loads, weather_series

    data = open_snapshots(source).load()
    weather = weather_series(data)
    _, number = np.unique(data.ignition_id.values, return_inverse=True)
    angle = np.deg2rad(data.wind_from_direction.values)
    wind = -data.wind_speed.values * np.stack([np.sin(angle), np.cos(angle)])
    fuel = fuel_loads(data, ("y", "x"))
    np.savez_compressed(
        out,
        fire=data.time_since_ignition.values.astype(np.float32),
        smoke=data.smoke.values.astype(np.float32),
        number=number, wind=wind.T, hours=weather.hours, heights=weather.heights,
        u=weather.u.astype(np.float32), v=weather.v.astype(np.float32),
        depth=weather.depth.astype(np.float32), until=weather.until,
        spacing=[np.diff(data.y.values).mean(), np.diff(data.x.values).mean()],
        interval=frame_interval(data), load=np.empty(0) if fuel is None else fuel.mean(),
    )  # fmt: skip


def read(path: Path) -> Snapshots:
    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    names = ("hours", "heights", "u", "v", "depth", "until")
    series = WeatherSeries(*(data[name].astype(np.float64) for name in names))
    load = data["load"].astype(np.float32) if data["load"].size else None
    spacing = (float(data["spacing"][0]), float(data["spacing"][1]))
    known = (data["fire"], data["smoke"], data["number"], series, data["wind"], spacing)
    return Snapshots(*known, float(data["interval"]), load)


def fit_operator(
    data: Snapshots, rows: np.ndarray, method: str, resources: Budget
) -> tuple[Predictor, float]:
    """A lifted operator, and its out-of-fold error."""
    frame, physics, *layers = ("wind", "column") if method == "unet" else method.split("+")
    if method == "unet":
        settings = choose_settings(family="unet", epochs=400)
    else:
        own_layers = {"layers": int(layers[0])} if layers else {}
        settings = choose_settings("recommended", frame=frame, physics=physics, **own_layers)
    wind = data.wind[rows]
    own = None
    if frame == "wind":
        own = fit_wind_frame(data.fire.shape[1:], data.spacing, wind, stretch=False)
    weather = data.weather.at(rows)
    carrier = None
    if physics != "none":
        carrier = plan_transport(weather, data.spacing, data.interval, kind=physics, load=data.load)
        if physics == "calibrated":
            seen = data.fire[rows], data.smoke[rows], weather
            tau = smoke_threshold(data.smoke[rows])
            carrier = calibrate(carrier, *seen, threshold=tau, put=resources.device.put)
    given = Conditions(wind=wind, weather=weather)
    training = TrainingSet(data.fire[rows], data.smoke[rows], data.number[rows], given)
    operator, error, _ = fit_lifted_operator(
        training,
        settings,
        threshold=smoke_threshold(data.smoke[rows]),
        frame=own,
        physics=carrier,
        resources=resources,
    )
    placed = map_arrays(operator, resources.device.put)

    def predict(wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flat = resources.device.put(data.fire[wanted].reshape(wanted.size, -1))
        conditions = Conditions(wind=data.wind[wanted], weather=data.weather.at(wanted))
        smoke, score = placed.predict_both(flat, conditions)
        shape = (wanted.size, *data.fire.shape[1:])
        return to_numpy(smoke).reshape(shape), to_numpy(score).reshape(shape)

    return predict, error


def fit_plain(
    data: Snapshots, rows: np.ndarray, method: str, device: Device
) -> tuple[Predictor, float]:
    """Mean smoke, smoke of the nearest fire, or carried smoke times one factor."""
    fire, smoke = data.fire[rows], data.smoke[rows].astype(np.float64)
    if method == "mean":
        mean = smoke.mean(axis=0)
        return lambda wanted: (np.repeat(mean[None], wanted.size, axis=0),) * 2, np.nan
    if method == "nearest":
        flat = fire.reshape(rows.size, -1).astype(np.float64)
        sizes = np.square(flat).sum(axis=1)

        def nearest(wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            other = data.fire[wanted].reshape(wanted.size, -1)
            return (smoke[np.argmin(sizes - 2.0 * other @ flat.T, axis=1)],) * 2

        return nearest, np.nan
    weather = data.weather.at(rows)
    transport = plan_transport(weather, data.spacing, data.interval, load=data.load)
    tau = smoke_threshold(data.smoke[rows])
    transport = calibrate(transport, fire, smoke, weather, threshold=tau, put=device.put)

    def carried(wanted: np.ndarray) -> np.ndarray:
        put = device.put(data.fire[wanted])
        return to_numpy(transport.smoke(put, data.weather.at(wanted)))[:, 0].astype(np.float64)

    own = carried(rows)
    squares = np.square(own).sum(axis=(1, 2))
    known = squares > 0.0
    factor = np.median((own * smoke).sum(axis=(1, 2))[known] / squares[known])
    return lambda wanted: (factor * carried(wanted),) * 2, np.nan


def in_blocks(predict: Predictor, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parts = [predict(rows[start : start + BLOCK]) for start in range(0, rows.size, BLOCK)]
    smoke, score = zip(*parts, strict=True)
    return np.concatenate(smoke), np.concatenate(score)


def scores(
    smoke: np.ndarray, score: np.ndarray, observed: np.ndarray, tau: float, called: np.ndarray
) -> dict[str, float]:
    """Medians over snapshots; `called` is the footprint at the deployable threshold."""
    count = observed.shape[0]
    truth = (observed > tau).reshape(count, -1)
    swept = roc_scores(score.reshape(count, -1), truth)
    error, log_error = relative_errors(smoke, observed)
    return {
        "auc": float(np.nanmedian(swept.auc)),
        "iou": float(np.nanmedian(swept.iou)),
        "deployable": float(np.median(iou_at(called.reshape(count, -1), truth, 0.5))),
        "smoke_iou": float(np.median(iou_at(smoke.reshape(count, -1), truth, tau))),
        "rel": error,
        "rel_ln": log_error,
    }


def designs(data: Snapshots, options: argparse.Namespace) -> Iterator[tuple[str, list[Any]]]:
    """(label, folds) of every line; a fold has fires to train, for the threshold and to test."""
    every = np.arange(data.fires)
    if options.folds:
        label = f"{options.folds} folds"
        if options.seed is not None:
            every = np.random.default_rng(options.seed).permutation(every)
            label += f" seed {options.seed}"
        parts = np.array_split(every, options.folds)
        yield label, [(np.setdiff1d(every, part),) * 2 + (np.sort(part),) for part in parts]
        return
    order = np.random.default_rng(options.seed or 0).permutation(data.fires)
    tested = min(options.tested, data.fires // 3)
    test, pool = order[:tested], order[tested:]
    for count in map(int, options.counts.split(",")):
        for draw in range(options.draws):
            drawn = np.random.default_rng(draw).permutation(pool)
            if count < pool.size:
                yield f"{count} {draw}", [(drawn[:count], drawn[count:][:tested], test)]


def score_line(
    data: Snapshots, folds: list[Any], method: str, resources: Budget
) -> dict[str, float]:
    """Fit a method in every fold; scores of all held-out snapshots, seconds of a fit."""
    found, taus, seconds, errors = [], [], [], []
    for train, known, test in folds:
        rows, other, held_out = data.rows(train), data.rows(known), data.rows(test)
        tau = smoke_threshold(data.smoke[rows])
        start = time.perf_counter()
        fit = fit_operator if method == "unet" or "+" in method else fit_plain
        where: Any = resources if fit is fit_operator else resources.device
        predict, error = fit(data, rows, method, where)
        seconds.append(time.perf_counter() - start)
        _, score = in_blocks(predict, other)
        truth = (data.smoke[other] > tau).reshape(other.size, -1)
        pair = score.reshape(other.size, -1), truth
        alpha = decision_threshold_over(lambda function: [function(*pair)], ())  # noqa: B023
        smoke, score = in_blocks(predict, held_out)
        found.append((smoke, score, data.smoke[held_out], score > alpha))
        taus.append(tau)
        errors.append(error)
    smoke, score, observed, called = (np.concatenate(part) for part in zip(*found, strict=True))
    line = scores(smoke, score, observed, float(np.median(taus)), called.astype(np.float64))
    times = {"seconds": float(np.mean(seconds)), "out_of_fold": float(np.mean(errors))}
    return {name: round(value, 5) for name, value in (line | times).items()}


def chosen_line(lines: dict[str, dict[str, float]]) -> dict[str, float] | None:
    """The line with the smallest out-of-fold error, and the time of all that were compared."""
    known = [lines[name] for name in COMPARED if name in lines]
    if len(known) < len(COMPARED):
        return None
    best = min(known, key=lambda line: line["out_of_fold"])
    return best | {"seconds": round(sum(line["seconds"] for line in known), 5)}


def score(options: argparse.Namespace) -> None:
    data = read(options.data)
    resources = Budget(device=choose_device(options.device))
    FAMILIES["unet"] = limited(FAMILIES["unet"], options.seconds)
    done: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    if options.out.exists():
        for text in options.out.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            done[line.pop("design")][line.pop("method")] = line
    for label, folds in designs(data, options):
        for method in [*options.methods.split(","), "chosen"]:
            if method in done[label]:
                continue
            if method == "chosen":
                line = chosen_line(done[label])
            else:
                line = score_line(data, folds, method, resources)
            if line is None:
                continue
            done[label][method] = line
            text = json.dumps({"design": label, "method": method, **line})
            print(text, flush=True)
            with options.out.open("a", encoding="utf-8") as file:
                file.write(text + "\n")


def table(options: argparse.Namespace) -> None:
    """Print a table of Markdown: ranges over draws."""
    values: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for text in options.data.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        size = line.pop("design").split(" ")[0]
        mine = values[size, line.pop("method")]
        for name, value in line.items():
            mine[name].append(value)
    columns = ("iou", "deployable", "smoke_iou", "rel", "rel_ln", "seconds")
    print(f"| fires | method | {' | '.join(columns)} |\n|{' --- |' * (2 + len(columns))}")
    for (size, method), mine in values.items():
        shown = []
        for name in columns:
            low, high = min(mine[name]), max(mine[name])
            digits = 1 if name == "seconds" else 3
            both = f"{low:.{digits}f}", f"{high:.{digits}f}"
            shown.append(both[0] if both[0] == both[1] else "–".join(both))
        print(f"| {size} | {method} | {' | '.join(shown)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(required=True)
    step = steps.add_parser("export")
    step.add_argument("data", type=Path)
    step.add_argument("out", type=Path)
    step.set_defaults(run=lambda options: export(options.data, options.out))
    step = steps.add_parser("score")
    step.add_argument("data", type=Path)
    step.add_argument("--out", type=Path, required=True, help="file to append JSON lines to")
    step.add_argument("--methods", default=METHODS)
    step.add_argument("--counts", default="8,16,32,64,100", help="numbers of training fires")
    step.add_argument("--draws", type=int, default=3, help="random draws of the training fires")
    step.add_argument("--tested", type=int, default=60, help="largest number of held-out fires")
    step.add_argument("--folds", type=int, default=0, help="leave out folds of fires instead")
    step.add_argument(
        "--seed", type=int, help="seed of the held-out fires; without it, folds are consecutive"
    )
    step.add_argument("--seconds", type=float, help="time limit of the training of the U-Net")
    step.add_argument("--device", default="cpu", help="cpu, torch, cuda")
    step.set_defaults(run=score)
    step = steps.add_parser("table")
    step.add_argument("data", type=Path)
    step.set_defaults(run=table)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
