"""neuraloperator's own FNO on the split of families.py: one JSON line per length of training.

    pip install neuraloperator
    PYTHONPATH=src python benchmarks/fno_peer.py snapshots.npz --threshold 0.185 \\
        --epochs 10,20,40,80,160 --device cuda --out fno_peer.jsonl

The package's model, trainer, optimiser (AdamW) and loss (LpLoss, the relative l² error of every
field of every snapshot) are used with the schedule of its examples. That is a cosine that falls to
zero: a training cannot be cut short, so each length is a run of its own. Inputs and targets are
those of plumecast's networks: the lifted fire, the drought as constant channels, the position (the
package's grid embedding), and three targets, each in units of its root mean square. All training
snapshots are used. The weights are those of the epoch with the smallest error on the validation
part, which also decides the blend of the targets and the decision threshold. Data are copied to the
device once; seconds include that, and for the first length also the start of the GPU.
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import json
import math
import platform
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO
from neuralop.training import AdamW, Trainer

from families import evaluate, load, threshold_of, training_rows
from plumecast.compute.resources import choose_device
from plumecast.operators.family import Conditions
from plumecast.operators.lift import Lift, fit_lift
from plumecast.operators.targets import Targets, choose_inverse, fit_targets

BLOCK = 256
CURVE_POINTS = 60
CHOICES = ("modes", "width", "layers", "padding", "lift", "products", "loss", "rate", "decay")
CHOICES += ("batch", "seed")


class Batches:
    """Batches of snapshots on the device, shuffled in every epoch or in order.

    A DataLoader would give the same batches, but would split and stack the snapshots one by one.
    """

    def __init__(self, inputs: Any, targets: Any, size: int, shuffle: bool) -> None:
        self.dataset = range(inputs.shape[0])  # the trainer asks for its length
        self.inputs, self.targets, self.size, self.shuffle = inputs, targets, size, shuffle

    def __len__(self) -> int:
        return math.ceil(len(self.dataset) / self.size)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        count = len(self.dataset)
        order = torch.randperm(count) if self.shuffle else torch.arange(count)
        for rows in order.to(self.inputs.device).split(self.size):
            yield {"x": self.inputs[rows], "y": self.targets[rows]}


class Recorder(Trainer):
    """The package's trainer, which reads the clock after every epoch and keeps the best weights."""

    def __init__(self, clock: float, **options: Any) -> None:
        super().__init__(**options)
        self.clock, self.best = clock, math.inf
        self.curve: list[tuple[float, float]] = []
        self.kept: dict[str, Any] = {}

    def evaluate_all(self, *args: Any, **options: Any) -> dict[str, Any]:
        """The package's evaluation of an epoch, recorded."""
        errors = super().evaluate_all(*args, **options)
        error = float(errors["validation_l2"])
        self.curve.append((time.perf_counter() - self.clock, error))
        if error < self.best:
            self.best = error
            self.kept = copy.deepcopy(self.model.state_dict())
        return errors


@dataclass(frozen=True)
class FittedFNO:
    """A trained model with the interface of a lifted operator."""

    model: Any
    lift: Lift
    droughts: tuple[str, ...]
    targets: Targets
    scales: np.ndarray  # (T,), root mean square of every target in training
    shape: tuple[int, ...]
    device: str

    def inputs(self, fire: Any, drought: np.ndarray) -> Any:
        """(M, *grid) ages and (M,) names → (M, C, *grid), lifted on the device."""
        parts = []
        for start in range(0, fire.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            ages = torch.as_tensor(fire[rows]).to(self.device).movedim(0, -1)
            fields = self.lift.fields(ages)[..., None, :] * self.lift.factors(ages)
            lifted = fields.flatten(-2).movedim((-2, -1), (0, 1))
            one_hot = drought[rows, None] == np.array(self.droughts)
            scalars = torch.from_numpy(one_hot.astype(np.float32)).to(self.device)
            constant = scalars[:, :, None, None].expand(-1, -1, *self.shape)
            parts.append(torch.cat([lifted, constant], dim=1))
        return torch.cat(parts)

    def target_fields(self, inputs: Any, given: Conditions) -> Any:
        """(M, N) → (M, T, *grid), as `LiftedOperator.target_fields`."""
        fire = inputs.reshape(-1, *self.shape)
        scales = torch.as_tensor(self.scales).to(self.device)[:, None, None]
        parts = []
        self.model.eval()
        with torch.inference_mode():
            for start in range(0, fire.shape[0], BLOCK):
                rows = slice(start, start + BLOCK)
                parts.append(self.model(self.inputs(fire[rows], given.labels[rows])) * scales)
        return torch.cat(parts)


def untrained(
    options: argparse.Namespace, data: dict[str, np.ndarray], rows: np.ndarray
) -> FittedFNO:
    """The untrained model with its lift and targets."""
    products = tuple(filter(None, options.products.split(",")))
    lift = fit_lift(data["fire"][rows], options.lift.split(","), products)
    droughts = tuple(str(name) for name in np.unique(data["drought"][rows]))
    names = ("log", "smoke", "footprint")
    targets = fit_targets(data["smoke"][rows], names, threshold=options.threshold)
    torch.manual_seed(options.seed)
    model = FNO(
        n_modes=(options.modes, options.modes),
        in_channels=lift.channels + len(droughts),
        out_channels=len(names),
        hidden_channels=options.width,
        n_layers=options.layers,
        domain_padding=options.padding or None,
    ).to(options.device)
    shape, ones = data["fire"].shape[1:], np.ones(len(names), dtype=np.float32)
    return FittedFNO(model, lift, droughts, targets, ones, shape, options.device)


def prepare(
    model: FittedFNO, data: dict[str, np.ndarray], rows: np.ndarray, batch: int
) -> tuple[FittedFNO, dict[str, Batches]]:
    """The scales of the targets, and the training and validation parts on the device."""

    def encoded(chosen: np.ndarray) -> Any:
        return torch.from_numpy(model.targets.encode(data["smoke"][chosen])).to(model.device)

    targets = encoded(rows)
    size = targets.square().mean(dim=(2, 3)).mean(dim=0).sqrt()
    validation = np.flatnonzero(data["part"] == "validation")
    pairs = {
        "train": (rows, targets / size[:, None, None], batch),
        "validation": (validation, encoded(validation) / size[:, None, None], BLOCK),
    }
    batches = {
        name: Batches(
            model.inputs(data["fire"][chosen], data["drought"][chosen]),
            scaled,
            at_once,
            shuffle=name == "train",
        )
        for name, (chosen, scaled, at_once) in pairs.items()
    }
    return replace(model, scales=size.cpu().numpy()), batches


def train(
    model: Any, batches: dict[str, Batches], epochs: int, options: argparse.Namespace, clock: float
) -> list[tuple[float, float]]:
    """Train in place, keep the best weights on validation; returns (seconds, validation error)."""
    optimiser = AdamW(model.parameters(), lr=options.rate, weight_decay=options.decay)
    trainer = Recorder(clock, model=model, n_epochs=epochs, device=options.device)
    trainer.train(
        train_loader=batches["train"],
        test_loaders={"validation": batches["validation"]},
        optimizer=optimiser,
        scheduler=torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=epochs),
        training_loss=LpLoss(d=2) if options.loss == "l2" else H1Loss(d=2),
        eval_losses={"l2": LpLoss(d=2)},
    )
    model.load_state_dict(trainer.kept)
    return trainer.curve


def with_inverse(fitted: FittedFNO, data: dict[str, np.ndarray]) -> tuple[FittedFNO, float]:
    """The targets with blend and gate chosen on validation, and the error there."""
    rows = np.flatnonzero(data["part"] == "validation")
    fields = fitted.target_fields(data["fire"][rows], Conditions(labels=data["drought"][rows]))
    targets, error = choose_inverse(fitted.targets, fields, data["smoke"][rows])
    return replace(fitted, targets=targets), error


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="snapshots as families.py reads them")
    parser.add_argument(
        "--threshold", type=float, help="smoke threshold τ, µg m⁻³; default: from validation"
    )
    parser.add_argument("--out", type=Path, required=True, help="file to append JSON lines to")
    parser.add_argument("--epochs", default="10,20,40,80,160", help="lengths of training")
    parser.add_argument("--split", type=int, default=0, help="as in families.py")
    parser.add_argument("--design", help="as in families.py")
    parser.add_argument("--count", default="all", help="training ignitions")
    parser.add_argument("--modes", type=int, default=40, help="frequencies along every side")
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--padding", type=float, default=0.25, help="share of a side; 0: none")
    parser.add_argument("--lift", default="age-bins,burned", help="parts of the lifted fire")
    parser.add_argument("--products", default="hours")
    parser.add_argument("--loss", choices=("l2", "h1"), default="l2")
    parser.add_argument("--rate", type=float, default=5e-3, help="largest learning rate")
    parser.add_argument("--decay", type=float, default=1e-4, help="weight decay")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    # The trainer passes the whole batch to model and loss, which warn of unused entries.
    warnings.filterwarnings("ignore", message=".*received unexpected keyword arguments")
    data = load(options.data, options.split, options.design)
    options.threshold = threshold_of(data, options.threshold)
    rows = training_rows(data, options.count, 0)
    put = choose_device(options.device).put
    for epochs in map(int, options.epochs.split(",")):
        start, cpu = time.perf_counter(), time.process_time()
        built, batches = prepare(untrained(options, data, rows), data, rows, options.batch)
        prepared = time.perf_counter() - start
        curve = train(built.model, batches, epochs, options, start)
        fitted, error = with_inverse(built, data)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        scores, _, _ = evaluate(fitted, data, options.threshold, put)
        step = max(1, len(curve) // CURVE_POINTS)
        line = {
            "family": f"neuraloperator {importlib.metadata.version('neuraloperator')} FNO",
            "ignitions": int(np.unique(data["ignition"][rows]).size),
            "snapshots": int(rows.size),
            "epochs": epochs,
            "fit_seconds": round(seconds, 2),
            "cpu_seconds": round(cpu, 2),
            "prepare_seconds": round(prepared, 2),
            "validation_error": round(error, 5),
            "best_epoch": int(np.argmin([point[1] for point in curve])) + 1,
            **scores,
            "weights": sum(
                p.numel() * (2 if p.is_complex() else 1) for p in fitted.model.parameters()
            ),
            "choices": {name: getattr(options, name) for name in CHOICES},
            "curve": [[round(s, 2), round(e, 5)] for s, e in curve[step - 1 :: step]],
            "device": options.device,
            "machine": platform.machine(),
        }
        with options.out.open("a") as file:
            print(json.dumps(line), file=file, flush=True)
        print(json.dumps({k: v for k, v in line.items() if k != "curve"}), flush=True)


if __name__ == "__main__":
    main()
