"""The spectral family and networks on one split of snapshots: scores and times, one JSON line each.

    PYTHONPATH=src python benchmarks/families.py snapshots.npz --threshold 0.185 \\
        --families spectral,unet,fno,deeponet --counts 8,16,32,64,all --seconds 80 \\
        --out families.jsonl
    PYTHONPATH=src python benchmarks/families.py ensemble.zarr --epochs 20 --out families.jsonl

Needs numpy, scipy, array-api-compat and torch only, so that it runs on a machine that has a GPU and
not much else. The file holds, for M snapshots: `fire` and `smoke` (M, y, x), and text (M,)
`ignition`, `drought` and `part` ("train", "validation" or "test"). A snapshot store is split by
ignition instead (60, 15 and 25 % of the snapshots), which needs plumecast's other dependencies.

The training ignitions are the first n of one seeded order, so that larger sets hold the smaller.
The decision threshold is chosen on validation. Scores are medians over the test snapshots.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from plumecast.compute.arrays import map_arrays, to_numpy
from plumecast.compute.resources import Budget, choose_device
from plumecast.operators.family import Conditions, Family, FittedMap, TrainingSet
from plumecast.operators.lift import fit_lift
from plumecast.operators.lifted import fit_lifted_operator
from plumecast.operators.neural.map import SIZES, Network, Schedule, fit_neural
from plumecast.operators.settings import FAMILIES, Settings, choose_settings
from plumecast.operators.targets import Targets
from plumecast.scores.roc import decision_threshold_over, iou_at, roc_scores

BLOCK = 256
MAPS = 5
FRACTIONS = (0.6, 0.15, 0.25)
"""Parts of a store: more for training than in the paper, because small stores have few fires."""
FLOOR = 0.01
"""Smallest smoke of a store that is kept, µg m⁻³."""


class FieldOperator(Protocol):
    """What is scored: a lifted operator, or another package's model with the same interface."""

    @property
    def targets(self) -> Targets:
        """The targets, which convert their fields to smoke."""
        ...

    def target_fields(self, inputs: Any, given: Conditions) -> Any:
        """(M, N) → (M, T, *grid), on the device of the inputs."""
        ...


def load(path: Path, split: int = 0, design: str | None = None) -> dict[str, np.ndarray]:
    """The snapshots, with fields in single precision.

    `split` 0 keeps the parts of the file. Another number is the seed of a new random assignment of
    ignitions to parts, with as many ignitions in each part. For a store it seeds the split.
    """
    if path.suffix != ".npz":
        return load_store(path, split, design)
    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    data |= {name: data[name].astype(np.float32) for name in ("fire", "smoke")}
    if split:
        _, first, where = np.unique(data["ignition"], return_index=True, return_inverse=True)
        parts = np.random.default_rng(split).permutation(data["part"][first])
        data["part"] = parts[where]
    return data


def load_store(path: Path, seed: int, design: str | None) -> dict[str, np.ndarray]:
    """The same from a snapshot store, with parts of whole ignitions; smoke below FLOOR is zero."""
    import plumecast as pc

    snapshots = pc.data.apply_smoke_floor(pc.open_snapshots(path).load(), FLOOR)
    if design is not None:
        snapshots = snapshots.isel(snapshot=np.flatnonzero(snapshots["ensemble"] == design))
    split = pc.split_by_fire(snapshots, FRACTIONS, seed)
    parts = {name: getattr(split, name) for name in ("train", "validation", "test")}
    names = {"fire": "time_since_ignition", "smoke": "smoke", "ignition": "ignition_id"}
    data = {
        key: np.concatenate([part[name].values for part in parts.values()])
        for key, name in (names | {"drought": "drought"}).items()
    }
    data |= {name: data[name].astype(np.float32) for name in ("fire", "smoke")}
    sizes = [part.sizes["snapshot"] for part in parts.values()]
    return data | {"part": np.repeat(list(parts), sizes)}


def threshold_of(data: dict[str, np.ndarray], given: float | None) -> float:
    """The given smoke threshold τ, or that of the validation part, which needs xarray."""
    if given is not None:
        return given
    from plumecast.scores.footprint import smoke_threshold

    return smoke_threshold(data["smoke"][data["part"] == "validation"])


def training_rows(data: dict[str, np.ndarray], count: str, seed: int) -> np.ndarray:
    """Rows of the first `count` training ignitions (or of "all") in a seeded random order."""
    train = np.flatnonzero(data["part"] == "train")
    known = np.random.default_rng(seed).permutation(np.unique(data["ignition"][train]))
    if count != "all" and not 2 <= int(count) <= known.size:
        raise SystemExit(f"--counts {count}: the file has {known.size} training ignitions")
    chosen = known if count == "all" else known[: int(count)]
    return train[np.isin(data["ignition"][train], chosen)]


def relative_errors(predicted: np.ndarray, smoke: np.ndarray) -> tuple[float, float]:
    """Medians over snapshots of the relative l² error of g and of ln(g + 1)."""

    def median(guess: np.ndarray, truth: np.ndarray) -> float:
        rows = (truth.reshape(truth.shape[0], -1), (guess - truth).reshape(truth.shape[0], -1))
        size, wrong = (np.linalg.norm(values.astype(np.float64), axis=1) for values in rows)
        return float(np.median(wrong[size > 0.0] / size[size > 0.0]))

    return median(predicted, smoke), median(np.log1p(predicted), np.log1p(smoke))


def footprint_scores(
    score: np.ndarray, footprint: np.ndarray, alpha: float, put: Any
) -> dict[str, float]:
    """Medians over snapshots of footprint scores, block by block on the device.

    `score` and `footprint` are (M, N).
    """
    found: dict[str, list[np.ndarray]] = {"auc": [], "iou": [], "deployable_iou": []}
    for start in range(0, score.shape[0], BLOCK):
        pair = [put(values[start : start + BLOCK]) for values in (score, footprint)]
        swept = roc_scores(*pair)
        found["auc"].append(to_numpy(swept.auc))
        found["iou"].append(to_numpy(swept.iou))
        found["deployable_iou"].append(to_numpy(iou_at(*pair, alpha)))
    return {name: float(np.nanmedian(np.concatenate(parts))) for name, parts in found.items()}


def evaluate(
    operator: FieldOperator, data: dict[str, np.ndarray], tau: float, put: Any
) -> tuple[dict[str, float], np.ndarray, np.ndarray]:
    """Scores on the test snapshots, and their predicted smoke and detection scores."""

    placed = map_arrays(operator, put)

    def predict(part: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = np.flatnonzero(data["part"] == part)
        flat = put(data["fire"][rows].reshape(rows.size, -1))
        fields = placed.target_fields(flat, Conditions(labels=data["drought"][rows]))
        way = placed.targets
        return rows, to_numpy(way.smoke(fields)), to_numpy(way.score(fields))

    rows, _, score = predict("validation")
    pair = (score, data["smoke"][rows] > tau)
    flat = [put(values.reshape(rows.size, -1)) for values in pair]  # read twice
    alpha = decision_threshold_over(lambda function: [function(*flat)], ())
    start = time.perf_counter()
    rows, smoke, score = predict("test")
    seconds = time.perf_counter() - start
    truth = data["smoke"][rows]
    flat_pair = (values.reshape(rows.size, -1) for values in (score, truth > tau))
    error, log_error = relative_errors(smoke, truth)
    found = footprint_scores(*flat_pair, alpha, put) | {
        "relative_error": error,
        "relative_error_log": log_error,
        "predict_ms": 1e3 * seconds / rows.size,
    }
    return {name: round(value, 5) for name, value in found.items()}, smoke, score


def limited(family: Family, seconds: float | None) -> Family:
    """A family of networks whose training ends after some seconds."""

    def fit(training: TrainingSet, settings: Settings, resources: Budget) -> FittedMap:
        lift = fit_lift(
            training.fire,
            settings.lift,
            settings.products,
            bins=settings.age_bins,
            physics=training.given.physics,
        )
        return fit_neural(
            training,
            lift,
            network=Network(family.name),
            schedule=Schedule(settings.family_settings.epochs, seconds=seconds),
            device="cuda" if "cuda" in resources.device.name else "cpu",
        )

    return replace(family, fit=fit)


def choices_of(family: str, given: dict[str, Any], epochs: int) -> dict[str, Any]:
    """What `choose_settings` is given for a family or for the preset `thorough`."""
    if family in SIZES:
        return {"family": family, "epochs": epochs}
    preset = "thorough" if family == "thorough" else "recommended"
    return {"preset": preset, "frame": "map", **given}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--threshold", type=float, help="smoke threshold τ, µg m⁻³; default: from validation"
    )
    parser.add_argument("--out", type=Path, required=True, help="file to append JSON lines to")
    parser.add_argument("--maps", type=Path, help="predictions of five test snapshots, .npz")
    parser.add_argument("--families", default="spectral,unet,fno,deeponet")
    parser.add_argument("--counts", default="all", help="training ignitions, as in 8,16,all")
    parser.add_argument("--choices", default="{}", help='other choices, as in {"layers": 2}')
    parser.add_argument(
        "--seconds",
        help="time limit of the training of a network: one for all counts, or one per count",
    )
    parser.add_argument("--epochs", type=int, default=400, help="most epochs of a network")
    parser.add_argument("--seed", type=int, default=0, help="seed of the order of ignitions")
    parser.add_argument(
        "--split", type=int, default=0, help="0: parts of the file; else the seed of a new split"
    )
    parser.add_argument("--design", help="only snapshots of a store whose `ensemble` is this")
    parser.add_argument("--device", default="cpu", help="cpu, torch, cuda")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    data = load(options.data, options.split, options.design)
    tau = threshold_of(data, options.threshold)
    device = choose_device(options.device)
    test = np.flatnonzero(data["part"] == "test")
    order = np.argsort(data["smoke"][test].sum(axis=(1, 2)), kind="stable")
    shown = order[(np.linspace(0.1, 0.9, MAPS) * (order.size - 1)).astype(int)]
    maps = {
        "fire": data["fire"][test[shown]].astype(np.float16),
        "truth": data["smoke"][test[shown]].astype(np.float16),
    }
    counts = options.counts.split(",")
    limits = [float(text) for text in options.seconds.split(",")] if options.seconds else [None]
    limits *= len(counts) if len(limits) == 1 else 1
    if "deeponet" in options.families.split(","):
        import deeponet

        deeponet.register()
    for count, limit in zip(counts, limits, strict=True):
        for family in options.families.split(","):
            rows = training_rows(data, count, options.seed)
            own = choices_of(family, json.loads(options.choices), options.epochs)
            if family in SIZES:
                FAMILIES[family] = limited(FAMILIES[family], limit)
            start, cpu = time.perf_counter(), time.process_time()
            operator, *_ = fit_lifted_operator(
                TrainingSet(
                    data["fire"][rows],
                    data["smoke"][rows],
                    data["ignition"][rows],
                    Conditions(labels=data["drought"][rows]),
                ),
                choose_settings(**own),
                threshold=tau,
                resources=Budget(device),
            )
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            scores, smoke, score = evaluate(operator, data, tau, device.put)
            line = {
                "family": family,
                "ignitions": int(np.unique(data["ignition"][rows]).size),
                "snapshots": int(rows.size),
                "fit_seconds": round(seconds, 2),
                "cpu_seconds": round(cpu, 2),
                **scores,
                "choices": own | ({"seconds": limit} if family in SIZES else {}),
                "split": options.split,
                "device": options.device,
                "machine": platform.machine(),
            }
            with options.out.open("a") as file:
                print(json.dumps(line), file=file, flush=True)
            print(json.dumps(line), flush=True)
            maps[f"{family}-{count}-smoke"] = smoke[shown].astype(np.float16)
            maps[f"{family}-{count}-score"] = score[shown].astype(np.float16)
            if options.maps is not None:
                np.savez_compressed(options.maps, **maps)


if __name__ == "__main__":
    main()
