"""A DeepONet with the inputs, the targets and the training of plumecast's networks, as a peer.

`register` adds it to the families of this process, so that `fit_surrogate(…, family="deeponet")`
and the benchmarks `families.py` and `peers.py` can train it. Needs torch.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from plumecast.operators.neural.map import FNO, SIZES
from plumecast.operators.neural.nets import ON_ONE_GRID, Block, in_full_precision
from plumecast.operators.settings import FAMILIES

HARMONICS = 8
"""Sines and cosines of each coordinate in a trunk: whole and half waves across the grid. A network
on the bare coordinates learns steep edges slowly."""


class Branch(nn.Module):
    """Blocks on coarser and coarser grids, then two dense layers: fields → coefficients of modes.

    Level l has `width`·(l + 1) channels; before each the cells per side are halved (means of 2×2
    cells), after the grid was padded with zeros to a multiple of 2^levels.
    """

    def __init__(
        self, inputs: int, outputs: int, *, width: int, levels: int, grid: tuple[int, int]
    ) -> None:
        super().__init__()
        widths = [width * (level + 1) for level in range(levels)]
        before = [inputs, *widths[:-1]]
        self.step = 2**levels
        self.blocks = nn.ModuleList(
            Block(a, b, inputs) for a, b in zip(before, widths, strict=True)
        )
        cells = math.prod(-(-n // self.step) for n in grid)
        self.dense = nn.Linear(cells * widths[-1] + inputs, 8 * width)
        self.head = nn.Linear(8 * width, outputs)

    def forward(self, fields: Tensor) -> Tensor:
        """(B, C, y, x) → (B, outputs)."""
        rows, columns = fields.shape[-2:]
        context = fields.mean(dim=(2, 3))
        fields = functional.pad(fields, (0, -columns % self.step, 0, -rows % self.step))
        for block in self.blocks:
            fields = block(functional.avg_pool2d(fields, 2), context)
        seen = torch.cat([fields.flatten(1), context], dim=1)
        return in_full_precision(self.head, functional.gelu(self.dense(seen)))


class DeepONet(nn.Module):
    """Deep operator network: coefficients from the fields times modes of the coordinates.

        ŷ_t(y, x) = Σ_k b_tk(fields) · φ_k(y, x) / √modes + c_t,    k = 1 … modes

    The branch b is a convolutional network on the fields, the trunk φ a dense network of `layers`
    layers on the coordinates and their harmonics; all targets share the modes φ. A prediction is
    therefore a combination of `modes` fixed fields plus a constant.
    """

    def __init__(
        self,
        inputs: int,
        targets: int,
        *,
        width: int,
        levels: int,
        modes: int,
        layers: int,
        grid: tuple[int, int],
    ) -> None:
        super().__init__()
        self.targets, self.modes, self.grid = targets, modes, grid
        self.branch = Branch(inputs, targets * modes, width=width, levels=levels, grid=grid)
        before = [2 + 4 * HARMONICS, *[4 * width] * (layers - 1)]
        hidden = [layer for n in before for layer in (nn.Linear(n, 4 * width), nn.GELU())]
        self.trunk = nn.Sequential(*hidden, nn.Linear(4 * width, modes))
        self.bias = nn.Parameter(torch.zeros(targets))

    def forward(self, fields: Tensor) -> Tensor:
        """(B, C, y, x) → (B, T, y, x)."""
        coefficients = self.branch(fields).unflatten(1, (self.targets, self.modes))
        modes = in_full_precision(self.trunk, harmonics(self.grid, fields.device))
        with torch.autocast(fields.device.type, enabled=False):
            values = coefficients @ modes.T / self.modes**0.5 + self.bias[:, None]
        return values.unflatten(2, self.grid)


def harmonics(grid: tuple[int, int], device: torch.device) -> Tensor:
    """(y·x, 2 + 4·HARMONICS): the coordinates of the cells from −1 to 1, and sines and cosines of
    k π/2 times each, k = 1 … HARMONICS."""
    sides = [torch.linspace(-1.0, 1.0, n, device=device) for n in grid]
    points = torch.cartesian_prod(*sides)
    order = torch.arange(1, HARMONICS + 1, device=device)
    angles = (0.5 * math.pi * points[:, :, None] * order).flatten(1)
    return torch.cat([points, angles.sin(), angles.cos()], dim=1)


def register() -> None:
    """Make the family "deeponet" known in this process: about 2 million weights."""
    ON_ONE_GRID["deeponet"] = DeepONet
    SIZES["deeponet"] = {"width": 32, "levels": 4, "modes": 256, "layers": 3}
    FAMILIES["deeponet"] = replace(
        FNO,
        name="deeponet",
        title="DeepONet",
        summary="a deep operator network (DeepONet), trained with PyTorch",
    )
