"""Print the table of docs/results/other-problems.md on fields that have nothing to do with smoke.

    python tools/docs/score_operators.py neuraloperator-0.3.0-py3-none-any.whl [NAME …]

The argument is the wheel or a folder it was unpacked to; names choose single rows. Only the data
files of the wheel are read, which needs torch. Rank, centring, length scale and penalty are chosen
by leaving one training sample out at a time; the test part is predicted with that choice. The
spectral operator chooses its lift, layers and penalties by eight folds. It needs fields that are
never negative: inputs and outputs are shifted by their smallest value in training.
"""

from __future__ import annotations

import io
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from plumecast.operators.baselines import MeanField, NearestFire
from plumecast.operators.coded.kernel_tuning import tune_kernel_map
from plumecast.operators.coded.polynomial_map import tune_polynomial_map
from plumecast.operators.family import NOTHING, TrainingSet
from plumecast.operators.lift import fit_lift
from plumecast.operators.pca import fit_basis
from plumecast.operators.spectral.fit import fit_spectral

FOLDER = "neuralop/datasets/data"
STD_FRACTIONS = (0.5, 0.8, 0.95, 1.0)
OUTPUT_STD = 0.999
BURGERS_TRAIN = 1000  # of 1,200; the rest is the test part

DEGREES = {"linear": 1, "quadratic": 2, "cubic": 3}
KERNELS = (
    "matern-5/2",
    "squared-exponential",
    "polynomial-1 + matern-5/2",
    "polynomial-1 + squared-exponential",
    "polynomial-2 + matern-5/2",
)
WHITENED = "matern-5/2, whitened codes"
SPECTRAL = "spectral"
LIFTS = (("identity", "burned"), ("age-bins", "burned"), ("age-bins", "burned", "position"))
LAYERS = (1, 3)

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Problem:
    """Input and output fields as rows, to train and to test."""

    inputs: np.ndarray
    outputs: np.ndarray
    new_inputs: np.ndarray
    new_outputs: np.ndarray
    grid: tuple[int, ...]  # of the input, and of each of the outputs


@dataclass(frozen=True)
class Fit:
    """What was chosen, its left-out error in the fields, and how it predicts."""

    choice: str
    left_out: float
    predict: Predict


def read(source: Path, name: str) -> dict[str, np.ndarray]:
    if source.is_dir():
        content = (source / FOLDER / name).read_bytes()
    else:
        with zipfile.ZipFile(source) as wheel:
            content = wheel.read(f"{FOLDER}/{name}")
    tensors = torch.load(io.BytesIO(content), weights_only=True)
    return {key: value.double().numpy() for key, value in tensors.items()}


def rows(fields: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(fields.reshape(fields.shape[0], -1))


def darcy(source: Path) -> Problem:
    """Permeability (two values) to pressure, 16 × 16."""
    train, test = (read(source, f"darcy_{part}_16.pt") for part in ("train", "test"))
    sides = (rows(train["x"]), rows(train["y"]), rows(test["x"]), rows(test["y"]))
    return Problem(*sides, grid=(16, 16))


def burgers(source: Path) -> Problem:
    """Initial velocity on 16 points to the 16 later times, each an output on those points; the time
    0 of the file, which is the input again, is left out."""
    data = read(source, "burgers_lowres.pt")
    inputs, outputs = rows(data["input"]), rows(data["output"][:, 1:])
    n = BURGERS_TRAIN
    return Problem(inputs[:n], outputs[:n], inputs[n:], outputs[n:], grid=(16,))


def fit_problem(problem: Problem, parts: tuple[str, ...], layers: int) -> Fit:
    low_in, low_out = problem.inputs.min(), problem.outputs.min()

    def on_grid(inputs: np.ndarray) -> np.ndarray:
        return (inputs - low_in).clip(0.0).reshape(-1, *problem.grid)

    fire, count = on_grid(problem.inputs), len(problem.inputs)
    targets = (problem.outputs - low_out).reshape(count, -1, *problem.grid).astype(np.float32)
    lift = fit_lift(fire, parts, ())
    training = TrainingSet(fire, targets, np.arange(count), NOTHING)
    fitted, out_of_fold, _ = fit_spectral(training, lift, layers=layers)
    wrong = np.sum((out_of_fold[:] - targets) ** 2, dtype=np.float64)
    return Fit(
        f"{layers} layer{'s' if layers > 1 else ''}, {', '.join(parts)}",
        float(np.sqrt(wrong / np.sum(problem.outputs**2))),
        lambda new: rows(fitted.predict(on_grid(new))) + low_out,
    )


def fit(problem: Problem, name: str, center: bool, share: float) -> Fit:
    input_basis = fit_basis(problem.inputs, std_fraction=share, center=center)
    output_basis = fit_basis(problem.outputs, std_fraction=OUTPUT_STD, center=center)
    codes, targets = input_basis.encode(problem.inputs), output_basis.encode(problem.outputs)
    sizes = np.sqrt(np.mean(codes**2, axis=0)) if name == WHITENED else np.ones(codes.shape[1])
    groups = [np.array([i]) for i in range(codes.shape[0])]
    choice = f"rank {input_basis.rank}{', centred' if center else ''}"
    if name in DEGREES:
        fitted, scan = tune_polynomial_map(
            codes, targets, degree=DEGREES[name], groups=groups, penalties=None
        )
        error = min(scan.errors)
    else:
        kernel = name.split(",")[0]
        fitted, scan = tune_kernel_map(
            codes / sizes, targets, kernel=kernel, groups=groups, anchored=not center
        )
        error = scan.error
        choice += f", length {scan.length_scale:.2g}"
    outside = np.sum((problem.outputs - output_basis.decode(targets)) ** 2)
    total = error**2 * np.sum(targets**2) + outside
    return Fit(
        choice,
        float(np.sqrt(total / np.sum(problem.outputs**2))),
        lambda new: output_basis.decode(fitted.predict(input_basis.encode(new) / sizes)),
    )


def relative_error(predicted: np.ndarray, observed: np.ndarray) -> float:
    wrong = np.linalg.norm(predicted - observed, axis=1)
    return float(np.mean(wrong / np.linalg.norm(observed, axis=1)))


def score(problem: Problem, title: str, wanted: Sequence[str]) -> None:
    print(f"\n{title}: {len(problem.inputs)} to train, {len(problem.new_inputs)} to test\n")
    print("| | chosen | left out | test | seconds |\n| --- | --- | --- | --- | --- |")
    baselines = {
        "mean field": MeanField(problem.outputs.mean(axis=0)),
        "nearest sample": NearestFire(problem.inputs, problem.outputs),
    }
    for name, baseline in baselines.items():
        error = relative_error(baseline.predict(problem.new_inputs), problem.new_outputs)
        print(f"| {name} | | | {error:.4f} | |")
    for name in wanted:
        begin = time.perf_counter()
        if name == SPECTRAL:
            tried = [fit_problem(problem, parts, layers) for parts in LIFTS for layers in LAYERS]
        else:
            tried = [fit(problem, name, c, share) for c in (False, True) for share in STD_FRACTIONS]
        best = min(tried, key=lambda found: found.left_out)
        seconds = time.perf_counter() - begin
        error = relative_error(best.predict(problem.new_inputs), problem.new_outputs)
        print(
            f"| {name} | {best.choice} | {best.left_out:.4f} | {error:.4f} | {seconds:.0f} |",
            flush=True,
        )


def main() -> None:
    source = Path(sys.argv[1])
    wanted = sys.argv[2:] or (*DEGREES, *KERNELS, WHITENED, SPECTRAL)
    score(darcy(source), "Darcy", wanted)
    score(burgers(source), "Burgers", wanted)


if __name__ == "__main__":
    main()
