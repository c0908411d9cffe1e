"""Networks on one split of snapshots: scores, times and learning curves, one JSON line per run.

    PYTHONPATH=src python benchmarks/neural.py snapshots.npz --threshold 0.185 \\
        --counts 8,16,32,64,all --seconds 80 --out neural.jsonl --maps neural-maps.npz

Needs numpy, scipy, array-api-compat and torch only, so that it runs on a machine that has a GPU and
not much else. The file holds, for M snapshots: `fire` and `smoke` (M, y, x), and text (M,)
`ignition`, `drought` and `part` ("train", "validation" or "test"); optionally `scalars` (M, P),
normalised covariates, and `name` (M,), what to call a snapshot in the maps.

The training ignitions are the first n of one seeded order, so that larger sets hold the smaller.
Early stopping and the blend use a fold of them (or, with `--left-out validation`, the validation
snapshots: then none is lost to training, and more fires are used than the count says). The decision
threshold is chosen on validation. Scores are medians over the test snapshots.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from plumecast.lift import fit_age_lift
from plumecast.neural import SHIFT, SIZES, NeuralMap, fit_neural
from plumecast.plume import BLENDS, FOLDS, FOOTPRINT, blended
from plumecast.roc import best_decision_threshold, iou_at, roc_scores
from plumecast.spectral import fold_numbers

BLOCK = 256
MAPS = 5


@dataclass(frozen=True)
class Snapshots:
    """The file's arrays, with the drought and any covariates as scalars."""

    fire: np.ndarray
    smoke: np.ndarray
    scalars: np.ndarray
    ignition: np.ndarray
    part: np.ndarray
    name: np.ndarray

    def rows(self, part: str) -> np.ndarray:
        """Numbers of the snapshots of a part, rising."""
        return np.flatnonzero(self.part == part)


def read(path: Path) -> Snapshots:
    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    drought = data["drought"].astype(str)
    scalars = (drought[:, None] == np.unique(drought)).astype(np.float32)
    if "scalars" in data:
        scalars = np.concatenate([scalars, data["scalars"]], axis=1).astype(np.float32)
    numbers = np.arange(drought.size).astype(str)
    labels = [data["ignition"].astype(str), drought, numbers]
    return Snapshots(
        fire=data["fire"].astype(np.float32),
        smoke=data["smoke"].astype(np.float32),
        scalars=scalars,
        ignition=labels[0],
        part=data["part"].astype(str),
        name=data.get("name", np.array([" ".join(row) for row in zip(*labels, strict=True)])),
    )


def training_rows(snapshots: Snapshots, count: str, seed: int) -> np.ndarray:
    """Rows of the first `count` training ignitions ("all": of all) in one seeded order."""
    train = snapshots.rows("train")
    known = np.random.default_rng(seed).permutation(np.unique(snapshots.ignition[train]))
    if count != "all" and not 2 <= int(count) <= known.size:
        raise SystemExit(f"--counts {count}: the file has {known.size} training ignitions")
    chosen = known if count == "all" else known[: int(count)]
    return train[np.isin(snapshots.ignition[train], chosen)]


def fit(
    snapshots: Snapshots, rows: np.ndarray, architecture: str, options: argparse.Namespace
) -> tuple[NeuralMap, tuple[float, float], dict[str, Any]]:
    """The network, its blend and largest smoke, and what the training cost.

    The blend is chosen on the rows that were left out of the training.
    """
    folds = fold_numbers(snapshots.ignition[rows], FOLDS)
    lift = fit_age_lift(snapshots.fire[rows], options.bins)
    smoke = snapshots.smoke[rows]
    size, largest = float(np.sqrt(np.mean(np.square(smoke, dtype=np.float64)))), float(smoke.max())
    if options.left_out == "validation":
        extra = snapshots.rows("validation")
        folds = np.concatenate([np.zeros_like(folds), np.ones(extra.size, dtype=folds.dtype)])
        rows = np.concatenate([rows, extra])
        smoke = snapshots.smoke[rows]
    targets = np.stack([np.log1p(smoke), smoke, smoke > options.threshold], axis=1)
    epochs: list[Any] = []
    start = time.perf_counter()
    fitted, left_out, predicted = fit_neural(
        snapshots.fire[rows],
        targets.astype(np.float32),
        folds,
        lift=lift,
        scalars=snapshots.scalars[rows],
        architecture=architecture,
        positions=options.positions,
        shift=options.shift,
        epochs=options.epochs,
        batch=options.batch,
        learning_rate=options.learning_rate,
        seconds=options.seconds,
        device=options.device,
        seed=options.seed,
        progress=epochs.append,
    )
    seconds = time.perf_counter() - start
    errors = {
        share * size: sum(
            relative_errors(blended(predicted, share * size, largest), smoke[left_out])
        )
        for share in BLENDS
    }
    best = min(epochs, key=lambda epoch: epoch.left_out_loss)
    cost = {
        "seconds": round(seconds, 2),
        "epochs": len(epochs),
        "best_epoch": best.number,
        "left_out_loss": round(best.left_out_loss, 5),
        "training_loss": round(best.training_loss, 5),
        "weights": sum(values.size for values in fitted.weights.values()),
    }
    return fitted, (min(errors, key=errors.__getitem__), largest), cost


def relative_errors(predicted: np.ndarray, smoke: np.ndarray) -> tuple[float, float]:
    """Medians over snapshots of the relative l² error of g and of ln(g + 1)."""

    def median(guess: np.ndarray, truth: np.ndarray) -> float:
        rows = (truth.reshape(truth.shape[0], -1), (guess - truth).reshape(truth.shape[0], -1))
        size, wrong = (np.linalg.norm(values.astype(np.float64), axis=1) for values in rows)
        return float(np.median(wrong[size > 0.0] / size[size > 0.0]))

    return median(predicted, smoke), median(np.log1p(predicted), np.log1p(smoke))


def in_blocks(
    score: Callable[[np.ndarray, np.ndarray], np.ndarray], guess: np.ndarray, truth: np.ndarray
) -> np.ndarray:
    """A score per snapshot, without sorting all snapshots at once."""
    flat = (guess.reshape(guess.shape[0], -1), truth.reshape(truth.shape[0], -1))
    starts = range(0, guess.shape[0], BLOCK)
    return np.concatenate([score(*(values[i : i + BLOCK] for values in flat)) for i in starts])


def evaluate(
    fitted: NeuralMap,
    blend: tuple[float, float],
    snapshots: Snapshots,
    shown: list[int],
    options: argparse.Namespace,
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Scores on the test snapshots, and the maps of those shown."""

    def predict(part: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = snapshots.rows(part)
        targets = fitted.predict(snapshots.fire[rows], snapshots.scalars[rows], options.device)
        return rows, targets, snapshots.smoke[rows] > options.threshold

    _, targets, footprint = predict("validation")
    flat = (values.reshape(values.shape[0], -1) for values in (targets[:, FOOTPRINT], footprint))
    alpha = best_decision_threshold(*flat, np.empty(0))
    start = time.perf_counter()
    rows, targets, footprint = predict("test")
    seconds = time.perf_counter() - start
    truth, score = snapshots.smoke[rows], targets[:, FOOTPRINT]
    smoke = blended(targets, *blend)
    error, log_error = relative_errors(smoke, truth)
    found = {
        "auc": np.nanmedian(in_blocks(lambda a, b: roc_scores(a, b).auc, score, footprint)),
        "iou": np.median(in_blocks(lambda a, b: roc_scores(a, b).iou, score, footprint)),
        "deployable_iou": np.median(in_blocks(lambda a, b: iou_at(a, b, alpha), score, footprint)),
        "relative_error": error,
        "relative_error_log": log_error,
        "decision_threshold": alpha,
        "blend": blend[0],
        "predict_ms": 1e3 * seconds / rows.size,
    }
    drawn = np.searchsorted(rows, shown)
    maps = {"smoke": smoke[drawn].astype(np.float16), "score": score[drawn].astype(np.float16)}
    return {name: round(float(value), 5) for name, value in found.items()}, maps


def shown_rows(snapshots: Snapshots, wanted: str | None) -> list[int]:
    """Test snapshots to map: those named, or five from little smoke to much."""
    rows = snapshots.rows("test")
    if wanted is None:
        order = np.argsort(snapshots.smoke[rows].sum(axis=(1, 2)), kind="stable")
        spread = np.linspace(0.1, 0.9, MAPS) * (order.size - 1)
        return [int(row) for row in rows[order[spread.astype(int)]]]
    by_name = {str(snapshots.name[row]): int(row) for row in rows}
    unknown = [name for name in wanted.split(",") if name not in by_name]
    if unknown:
        raise SystemExit(f"--shown {unknown[0]}: no such test snapshot")
    return [by_name[name] for name in wanted.split(",")]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--threshold", type=float, required=True, help="smoke threshold τ, µg m⁻³")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, appended to")
    parser.add_argument("--maps", type=Path, help="predictions of a few test snapshots, .npz")
    parser.add_argument("--shown", help="their names, by commas")
    parser.add_argument("--counts", default="all", help="training ignitions, as in 8,16,all")
    parser.add_argument("--architectures", default=",".join(SIZES))
    parser.add_argument("--seconds", type=float, help="limit of one training")
    parser.add_argument("--epochs", type=int, default=400, help="limit of one training")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument(
        "--shift", type=int, help="largest random shift, cells; default a tenth of the side"
    )
    parser.add_argument("--no-positions", dest="positions", action="store_false")
    parser.add_argument("--left-out", choices=["fold", "validation"], default="fold")
    parser.add_argument("--bins", type=int, default=3, help="age bins of the lift")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    snapshots = read(options.data)
    if options.shift is None:
        options.shift = round(SHIFT * min(snapshots.fire.shape[1:]))
    shown = shown_rows(snapshots, options.shown)
    maps: dict[str, np.ndarray] = {
        "names": snapshots.name[shown],
        "fire": snapshots.fire[shown].astype(np.float16),
        "truth": snapshots.smoke[shown].astype(np.float16),
    }
    kind = torch.cuda.get_device_name() if "cuda" in options.device else platform.machine()
    for count in options.counts.split(","):
        for architecture in options.architectures.split(","):
            rows = training_rows(snapshots, count, options.seed)
            fitted, blend, cost = fit(snapshots, rows, architecture, options)
            scores, drawn = evaluate(fitted, blend, snapshots, shown, options)
            line = {
                "architecture": architecture,
                "ignitions": int(np.unique(snapshots.ignition[rows]).size),
                "snapshots": int(rows.size),
                **cost,
                **scores,
                "left_out": options.left_out,
                "shift": options.shift,
                "positions": options.positions,
                "seed": options.seed,
                "device": kind,
                "torch": torch.__version__,
            }
            with options.out.open("a") as file:
                print(json.dumps(line), file=file, flush=True)
            print(json.dumps(line), flush=True)
            maps |= {f"{architecture}-{count}-{name}": values for name, values in drawn.items()}
            if options.maps is not None:
                np.savez_compressed(options.maps, **maps)


if __name__ == "__main__":
    main()
