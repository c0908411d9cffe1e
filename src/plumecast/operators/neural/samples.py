"""Training samples of a network: all on its device, or a few batches at a time. Needs torch.

A network is trained on batches in a random order, which changes with every epoch. If not all
snapshots fit into memory, as many of the next batches as fit are read together, in the order of the
store. This does not change which snapshots form a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from plumecast.compute.arrays import Array, to_numpy
from plumecast.compute.blocks import row_blocks
from plumecast.compute.memory import rows_within
from plumecast.operators.fields.lift import Lift

READ_ROWS = 64
"""Snapshots read and lifted at a time."""

WEIGHT_COPIES = 7.0
"""Arrays of the size of the weights: the weights, their gradients, two of the optimiser, the best
weights so far, and two temporary copies."""

PASS = 2.0
"""Memory of a training step, relative to the activations that its forward pass stores: it includes
gradients and work arrays of convolutions. Up to 1.9 was measured on a CPU."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Snapshots as tensors on one device."""

    lifted: Tensor  # (M, C, y, x)
    scalars: Tensor  # (M, P)
    targets: Tensor  # (M, T, y, x), in units of their root mean square; indicators are 0 or 1

    def __getitem__(self, rows: Tensor) -> Samples:
        return Samples(self.lifted[rows], self.scalars[rows], self.targets[rows])

    def batches(self, rows: Tensor, size: int) -> Iterator[Samples]:
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

    def batches(self, rows: Tensor, size: int) -> Iterator[Samples]:
        """These rows in their order, `size` at a time, a divisor of `ahead`."""
        for part in rows.split(self.ahead):
            ascending, order = part.sort()
            yield from self.read(ascending.cpu().numpy()).batches(order.argsort(), size)

    def read(self, rows: Array) -> Samples:
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
            lifted[part] = torch.from_numpy(lifted_fields(self.lift, self.fire[some], carried))
            own = self.targets[some].astype(np.float32, copy=False) / scales
            targets[part] = torch.from_numpy(np.ascontiguousarray(own))
        return Samples(lifted, torch.from_numpy(self.scalars[rows]).to(self.device), targets)


def lifted_fields(lift: Lift, fire: Array, physics: Array | None = None) -> Array:
    """(M, y, x) → (M, C, y, x) in single precision."""
    return np.ascontiguousarray(lift(fire, physics=physics), dtype=np.float32)


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
