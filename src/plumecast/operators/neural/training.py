"""Training of a network: samples, loss, learning-rate schedule, random shifts. Needs torch.

A network is trained on batches in a random order, which changes with every epoch. If not all
snapshots fit into memory, as many of the next batches as fit are read together, in the order of the
store. This does not change which snapshots form a batch.

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, to_numpy
from plumecast.compute.blocks import row_blocks
from plumecast.compute.resources import rows_within
from plumecast.operators.lift import Lift
from plumecast.operators.neural.map import Epoch, Schedule

READ_ROWS = 64
"""Snapshots read and lifted at a time."""

WEIGHT_COPIES = 7.0
"""Arrays of the size of the weights: the weights, their gradients, two of the optimiser, the best
weights so far, and two temporary copies."""

PASS = 2.0
"""Memory of a training step, relative to the activations that its forward pass stores: it includes
gradients and work arrays of convolutions. Up to 1.9 was measured on a CPU."""


@dataclass(frozen=True, slots=True)
class NetworkSamples:
    """Snapshots as tensors on one device."""

    lifted: Tensor  # (M, C, y, x)
    scalars: Tensor  # (M, P)
    targets: Tensor  # (M, T, y, x), in units of their root mean square; indicators are 0 or 1

    def __getitem__(self, rows: Tensor) -> NetworkSamples:
        return NetworkSamples(self.lifted[rows], self.scalars[rows], self.targets[rows])

    def batches(self, rows: Tensor, size: int) -> Iterator[NetworkSamples]:
        """These rows in their order, `size` at a time."""
        for some in rows.split(size):
            yield self[some]


@dataclass(frozen=True, slots=True)
class StoredSamples:
    """Snapshots that are converted to samples when they are read."""

    fire: Array  # (M, y, x); fire and targets are arrays, or objects that give one by rows
    scalars: Array  # (M, P)
    targets: Array  # (M, T, y, x)
    lift: Lift
    scales: Array  # (T,), divide the targets
    device: torch.device
    ahead: int  # snapshots in memory at a time
    physics: Array | None = None  # (M, K, y, x), like the fire

    def batches(self, rows: Tensor, size: int) -> Iterator[NetworkSamples]:
        """These rows in their order, `size` at a time, a divisor of `ahead`."""
        for part in rows.split(self.ahead):
            ascending, order = part.sort()
            yield from self.read(ascending.cpu().numpy()).batches(order.argsort(), size)

    def read(self, rows: Array) -> NetworkSamples:
        """Some rows on the device; the lifted input in half precision on a GPU."""
        grid = self.fire.shape[1:]
        single = {"device": self.device, "dtype": torch.float32}
        half = {"dtype": torch.float16} if self.device.type == "cuda" else {}
        lifted = torch.empty((rows.size, self.lift.channels, *grid), **{**single, **half})
        targets = torch.empty((rows.size, *self.targets.shape[1:]), **single)
        scales = self.scales.astype(np.float32)[:, None, None]
        for part in row_blocks(rows.size, READ_ROWS):
            some = rows[part]
            carried = None if self.physics is None else self.physics[some]
            channels = self.lift(self.fire[some], physics=carried)
            lifted[part] = torch.from_numpy(np.ascontiguousarray(channels, dtype=np.float32))
            own = self.targets[some].astype(np.float32, copy=False) / scales
            targets[part] = torch.from_numpy(np.ascontiguousarray(own))
        return NetworkSamples(lifted, torch.from_numpy(self.scalars[rows]).to(self.device), targets)


def as_tensor(array: Array) -> Tensor:
    """A tensor unchanged; any other array copied to the host and converted."""
    return array if isinstance(array, Tensor) else torch.from_numpy(to_numpy(array))


def samples_ahead(
    limit: int | None, network: nn.Module, inputs: int, shape: tuple[int, ...], batch: int
) -> int:
    """Number of snapshots that are in memory at a time in training, a multiple of `batch`.

    `inputs` is the number of input channels, `shape` the (M, T, y, x) of the targets. The result is
    at least M if all snapshots fit. Raises if `limit` bytes are too few for one training step.
    """
    count, kinds, *grid = shape
    batches = -(-count // batch)
    if limit is not None:
        cells = math.prod(grid)
        weights = sum(parameter.numel() for parameter in network.parameters())
        reading = READ_ROWS * cells * (12.0 * inputs + 8.0 * kinds + 100.0)
        passing = PASS * batch * kept_bytes(network, inputs, (grid[0], grid[1]))
        batches = rows_within(
            limit,
            fixed=4.0 * WEIGHT_COPIES * weights + passing + reading,
            per_row=4.0 * batch * cells * (inputs + kinds),
            what=f"a network of {weights} weights on {grid[0]} × {grid[1]} cells",
            most=batches,
        )
    return batches * batch


def kept_bytes(network: nn.Module, inputs: int, grid: tuple[int, int]) -> int:
    """Bytes of activations that the forward pass of one snapshot stores for the gradient."""
    known = {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    device = next(network.parameters()).device
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        network(torch.zeros(1, inputs, *grid, device=device))
    return sum(kept.values())


WARM_UP = 0.05
"""Share of the training in which the learning rate increases."""

DECAY = 0.1
"""Weight decay of AdamW."""

LARGEST_GRADIENT = 1.0
"""Norm at which gradients are clipped."""

FLOOR = 0.01
"""Added to the root mean square of a snapshot's field, in units of the training set's, because the
relative error is undefined without smoke."""


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
class NetworkTask:
    """A network and the snapshots it is trained on."""

    network: nn.Module
    samples: NetworkSamples | StoredSamples
    indicators: tuple[bool, ...]
    positions: bool = True  # whether the network sees the coordinates of the cells

    def loss(self, some: NetworkSamples, by: tuple[int, int] = (0, 0)) -> Tensor:
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
    task: NetworkTask,
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
            spent = time.perf_counter() - start
            fraction = done if schedule.seconds is None else max(done, spent / schedule.seconds)
            if fraction >= 1.0:
                break
            for group in optimiser.param_groups:
                group["lr"] = schedule.learning_rate * rate(fraction)
            by, reach = (0, 0), schedule.shift or 0
            if reach:
                by = tuple(torch.randint(-reach, reach + 1, (2,), generator=generator).tolist())
            total += _step(task, some, optimiser, by)
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


def _step(
    task: NetworkTask, some: NetworkSamples, optimiser: torch.optim.Optimizer, by: tuple[int, int]
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
