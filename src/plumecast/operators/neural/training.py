"""Training of a network: loss, learning-rate schedule, random shifts, best weights. Needs torch.

The loss of a snapshot is close to the scores of an evaluation. For a field it is the relative
error, so that a small fire has the same weight as a large one:

    rms(ŷ − y) / (rms(y) + 0.01),    y in units of the training set's root mean square.

For an indicator (a target of zeros and ones) it is the binary cross-entropy of the output as a
log-odds, plus 1 − Σ py / Σ (p + y − py), where the quotient is the intersection over union with
probabilities p in place of a footprint. The optimiser is AdamW. The learning rate increases
linearly over 5 % of the training, then follows a cosine to zero. The weights of the epoch with the
smallest loss on the left-out rows are kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from plumecast.base.errors import PlumecastError
from plumecast.operators.neural.samples import Samples, StoredSamples

WARM_UP = 0.05
"""Share of the training in which the learning rate increases."""

DECAY = 0.1
"""Weight decay of AdamW."""

LARGEST_GRADIENT = 1.0
"""Norm at which gradients are clipped."""

FLOOR = 0.01
"""Added to the root mean square of a snapshot's field, in units of the training set's, because the
relative error is undefined without smoke."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Duration and learning rate of a training; `seconds` limits it and shortens the schedule."""

    epochs: int
    batch: int
    learning_rate: float
    shift: int  # largest random shift in cells
    seconds: float | None
    seed: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """The progress report after every pass over the training rows."""

    number: int
    of: int
    seconds: float
    training_loss: float
    left_out_loss: float


def join(lifted: Tensor, scalars: Tensor, positions: bool) -> Tensor:
    """(B, C, y, x) lifted input, (B, P) scalars as constant channels, and with `positions` the
    coordinates y and x, from −1 to 1."""
    count, _, rows, columns = lifted.shape
    parts = [lifted.float(), scalars[:, :, None, None].expand(-1, -1, rows, columns)]
    if positions:
        y = torch.linspace(-1.0, 1.0, rows, device=lifted.device)[:, None].expand(rows, columns)
        x = torch.linspace(-1.0, 1.0, columns, device=lifted.device).expand(rows, columns)
        parts.append(torch.stack([y, x]).expand(count, -1, -1, -1))
    return torch.cat(parts, dim=1)


def loss(output: Tensor, targets: Tensor, indicators: tuple[bool, ...], inside: Tensor) -> Tensor:
    """Sum over targets of the mean loss of a snapshot, over the cells where `inside` is 1."""
    total = output.new_zeros(())
    cells = inside.sum()
    for t, indicator in enumerate(indicators):
        guess, truth = output[:, t], targets[:, t].float()
        if indicator:
            entropy = functional.binary_cross_entropy_with_logits(guess, truth, reduction="none")
            share = torch.sigmoid(guess) * inside
            both = (share * truth).sum(dim=(1, 2))
            either = (share + truth * inside).sum(dim=(1, 2)) - both
            overlap = (both + 1.0) / (either + 1.0)  # 1 without smoke, observed or predicted
            total = total + (entropy * inside).sum() / (cells * guess.shape[0])
            total = total + (1.0 - overlap).mean()
        else:
            wrong = (((guess - truth) * inside) ** 2).sum(dim=(1, 2)) / cells
            size = ((truth * inside) ** 2).sum(dim=(1, 2)) / cells
            total = total + ((wrong + 1e-12).sqrt() / (size.sqrt() + FLOOR)).mean()
    return total


@dataclass(frozen=True, slots=True)
class Task:
    """A network and the snapshots it is trained on."""

    network: nn.Module
    samples: Samples | StoredSamples
    indicators: tuple[bool, ...]
    positions: bool

    def loss(self, some: Samples, by: tuple[int, int] = (0, 0)) -> Tensor:
        """Mean loss of some snapshots; fire and targets are shifted by whole cells along y and x.

        Cells that come from outside the grid are zero in the fire and are excluded from the loss.
        """
        lifted, targets = shifted(some.lifted, by), shifted(some.targets, by)
        inside = shifted(torch.ones(lifted.shape[-2:], device=lifted.device), by)
        with precision(lifted.device):
            output = self.network(join(lifted, some.scalars, self.positions))
        return loss(output, targets, self.indicators, inside)

    def mean_loss(self, rows: Tensor, batch: int) -> float:
        """Mean loss of left-out rows."""
        self.network.eval()
        total = torch.zeros((), device=rows.device)
        with torch.inference_mode():
            for part in self.samples.batches(rows, batch):
                total += self.loss(part) * part.targets.shape[0]
        return float(total) / int(rows.numel())


def train(
    task: Task,
    learn: Tensor,
    left_out: Tensor,
    schedule: Schedule,
    progress: Callable[[Epoch], None] | None = None,
) -> None:
    """Train in place on the rows `learn`; the network gets the best weights on `left_out`."""
    start = time.perf_counter()
    generator = torch.Generator().manual_seed(schedule.seed)
    network = task.network
    optimiser = torch.optim.AdamW(
        network.parameters(), weight_decay=DECAY, fused=learn.device.type == "cuda"
    )
    best, kept, fraction = math.inf, network.state_dict(), 0.0
    for epoch in range(schedule.epochs):
        network.train()
        order = learn[torch.randperm(learn.numel(), generator=generator).to(learn.device)]
        planned = -(-learn.numel() // schedule.batch)
        total, steps = torch.zeros((), device=learn.device), 0
        for some in task.samples.batches(order, schedule.batch):
            done = (epoch + steps / planned) / schedule.epochs
            fraction = max(done, _spent(start, schedule))
            if fraction >= 1.0:
                break
            for group in optimiser.param_groups:
                group["lr"] = schedule.learning_rate * rate(fraction)
            total += _step(task, some, optimiser, _random_shift(schedule.shift, generator))
            steps += 1
        error = task.mean_loss(left_out, schedule.batch)
        if error < best:
            best = error
            kept = {name: value.detach().clone() for name, value in network.state_dict().items()}
        if progress is not None:
            spent, mean = time.perf_counter() - start, float(total) / max(steps, 1)
            progress(Epoch(epoch + 1, schedule.epochs, spent, mean, error))
        if fraction >= 1.0:
            break
    if not math.isfinite(best):
        raise PlumecastError(
            f"the training diverged with learning_rate={schedule.learning_rate:g}; lower it"
        )
    network.load_state_dict(kept)


def rate(fraction: float) -> float:
    """The learning rate after a fraction of the training, relative to its largest value."""
    if fraction < WARM_UP:
        return (fraction + 0.01) / (WARM_UP + 0.01)
    return 0.5 + 0.5 * math.cos(math.pi * (fraction - WARM_UP) / (1.0 - WARM_UP))


def _spent(start: float, schedule: Schedule) -> float:
    return 0.0 if schedule.seconds is None else (time.perf_counter() - start) / schedule.seconds


def _random_shift(largest: int, generator: torch.Generator) -> tuple[int, int]:
    if largest == 0:
        return 0, 0
    down, right = torch.randint(-largest, largest + 1, (2,), generator=generator).tolist()
    return down, right


def _step(
    task: Task, some: Samples, optimiser: torch.optim.Optimizer, by: tuple[int, int]
) -> Tensor:
    value = task.loss(some, by)
    optimiser.zero_grad(set_to_none=True)
    value.backward()
    nn.utils.clip_grad_norm_(task.network.parameters(), LARGEST_GRADIENT)
    optimiser.step()
    return value.detach()


def shifted(fields: Tensor, by: tuple[int, int]) -> Tensor:
    """(…, y, x) fields shifted by whole cells along y and x, and filled with zeros."""
    if by == (0, 0):
        return fields
    rows, columns = fields.shape[-2:]
    down, right = by
    padded = functional.pad(fields, (max(right, 0), max(-right, 0), max(down, 0), max(-down, 0)))
    top, left = max(-down, 0), max(-right, 0)
    return padded[..., top : top + rows, left : left + columns]


def precision(device: torch.device) -> torch.autocast:
    """Mixed precision (bfloat16) on a GPU that supports it, float32 elsewhere."""
    mixed = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=mixed)
