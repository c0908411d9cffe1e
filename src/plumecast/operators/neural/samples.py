"""Snapshots on their way to a network: all on its device, or some at a time. Needs torch.

A network sees snapshots in batches, in an order drawn anew for every epoch. Where not all fit, the
next batches are read together, as many as the memory allows and in the order of the store; which
snapshots make a batch does not depend on that.
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
"""Snapshots read and lifted together."""

WEIGHT_COPIES = 7.0
"""Arrays of the weights' size: these, gradients, two of the optimiser, the best ones, and two on
their way."""

PASS = 2.0
"""Memory of a step, relative to what its forward pass keeps: gradients and the work of
convolutions. Up to 1.9 was measured on a CPU."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Snapshots as tensors on one device."""

    lifted: Tensor  # (M, C, y, x)
    scalars: Tensor  # (M, P)
    targets: Tensor  # (M, T, y, x), in units of their root mean square; indicators as they are

    def __getitem__(self, rows: Tensor) -> Samples:
        return Samples(self.lifted[rows], self.scalars[rows], self.targets[rows])

    def batches(self, rows: Tensor, size: int) -> Iterator[Samples]:
        """These rows in their order, `size` at a time."""
        for some in rows.split(size):
            yield self[some]


@dataclass(frozen=True, slots=True)
class StoredSamples:
    """Snapshots made into samples as they are read."""

    fire: Array  # (M, y, x), as the targets an array or what gives one of some rows
    scalars: Array  # (M, P)
    targets: Array  # (M, T, y, x)
    lift: Lift
    scales: Array  # (T,), divide the targets
    device: torch.device
    ahead: int  # snapshots held at a time

    def batches(self, rows: Tensor, size: int) -> Iterator[Samples]:
        """These rows in their order, `size` at a time, a divisor of `ahead`."""
        for part in rows.split(self.ahead):
            rising, order = part.sort()
            yield from self.read(rising.cpu().numpy()).batches(order.argsort(), size)

    def read(self, rows: Array) -> Samples:
        """Some rows on the device; the lifted input in half precision on a GPU."""
        grid = self.fire.shape[1:]
        there = {"device": self.device, "dtype": torch.float32}
        half = {"dtype": torch.float16} if self.device.type == "cuda" else {}
        lifted = torch.empty((rows.size, self.lift.channels, *grid), **{**there, **half})
        targets = torch.empty((rows.size, *self.targets.shape[1:]), **there)
        scales = self.scales.astype(np.float32)[:, None, None]
        for part in row_blocks(rows.size, READ_ROWS):
            some = rows[part]
            lifted[part] = torch.from_numpy(lifted_fields(self.lift, self.fire[some]))
            own = self.targets[some].astype(np.float32, copy=False) / scales
            targets[part] = torch.from_numpy(np.ascontiguousarray(own))
        return Samples(lifted, torch.from_numpy(self.scalars[rows]).to(self.device), targets)


def lifted_fields(lift: Lift, fire: Array) -> Array:
    """(M, y, x) → (M, C, y, x) in single precision."""
    return np.ascontiguousarray(lift(fire), dtype=np.float32)


def as_tensor(array: Array) -> Tensor:
    """A tensor as it is; an array of another kind by way of the host."""
    return array if isinstance(array, Tensor) else torch.from_numpy(to_numpy(array))


def samples_ahead(
    limit: int | None, network: nn.Module, inputs: int, shape: tuple[int, ...], batch: int
) -> int:
    """Snapshots held at a time while a network of so many `inputs` learns (M, T, y, x) targets in
    batches: whole batches, M or more snapshots where all may be held. Refuses a limit in bytes
    below what a step takes."""
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
    """Bytes that the forward pass of one snapshot keeps for the gradient, beside the weights."""
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
