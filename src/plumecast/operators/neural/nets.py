"""Networks from channels to targets: a U-Net and a Fourier operator. Needs torch.

Importing this module imports torch; `neural.map` does so only when a network is fitted or applied.
All networks map (B, C, y, x) to (B, T, y, x); the U-Net for any y and x, the Fourier operator on
the grid that it was built for. The last layer is computed in float32, whatever the precision before
it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

GROUPS = 8
"""Number of channel groups in a normalisation; the widths of blocks are multiples of it."""


class Block(nn.Module):
    """Two 3×3 convolutions, each normalised over groups of channels, with a shortcut around both.

    The normalisation removes the magnitude of a field. The context (the mean of every input channel
    over the grid) restores it, as a scale and a shift of the second convolution.
    """

    def __init__(self, inputs: int, outputs: int, context: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.first_norm = nn.GroupNorm(GROUPS, outputs)
        self.second_norm = nn.GroupNorm(GROUPS, outputs)
        self.modulation = nn.Linear(context, 2 * outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1)

    def forward(self, fields: Tensor, context: Tensor) -> Tensor:
        """(B, inputs, y, x) → (B, outputs, y, x)."""
        inner = functional.gelu(self.first_norm(self.first(fields)))
        scale, shift = self.modulation(context)[:, :, None, None].chunk(2, dim=1)
        inner = self.second_norm(self.second(inner)) * (1.0 + scale) + shift
        return functional.gelu(inner + self.shortcut(fields))


class UNet(nn.Module):
    """Blocks on coarser and coarser grids, then on finer ones, with skip connections.

    Level l has `width`·(l + 1) channels and half the cells per side of the previous level (means of
    2×2 cells); on the way up every cell is repeated 2×2. The grid is padded with zeros to a
    multiple of 2^levels. With four levels the receptive field extends 92 cells to every side.
    """

    def __init__(self, inputs: int, targets: int, *, width: int, levels: int) -> None:
        super().__init__()
        widths = [width * (level + 1) for level in range(levels + 1)]
        before = [inputs, *widths[:-1]]
        self.levels = levels
        self.down = nn.ModuleList(Block(a, b, inputs) for a, b in zip(before, widths, strict=True))
        self.up = nn.ModuleList(
            Block(widths[level] + widths[level + 1], widths[level], inputs)
            for level in reversed(range(levels))
        )
        self.head = nn.Conv2d(width, targets, 1)

    def forward(self, fields: Tensor) -> Tensor:
        """(B, C, y, x) → (B, T, y, x)."""
        rows, columns = fields.shape[-2:]
        context = fields.mean(dim=(2, 3))
        step = 2**self.levels
        fields = functional.pad(fields, (0, -columns % step, 0, -rows % step))
        passed = []
        for level, block in enumerate(self.down):
            if level:
                passed.append(fields)
                fields = functional.avg_pool2d(fields, 2)
            fields = block(fields, context)
        for block in self.up:
            finer = functional.interpolate(fields, scale_factor=2.0, mode="nearest")
            fields = block(torch.cat([finer, passed.pop()], dim=1), context)
        return in_full_precision(self.head, fields[..., :rows, :columns])


class SpectralConvolution(nn.Module):
    """A convolution defined by weights at the lowest frequencies; higher ones are dropped.

    `weights` are real and imaginary parts, for frequencies along y that are ≥ 0 and < 0.
    """

    def __init__(self, width: int, modes: tuple[int, int]) -> None:
        super().__init__()
        self.modes = modes
        self.weights = nn.Parameter(torch.randn(2, width, width, *modes, 2) / (2.0 * width) ** 0.5)

    def forward(self, fields: Tensor) -> Tensor:
        """(B, width, y, x) → (B, width, y, x)."""
        rows, columns = self.modes
        spectrum = torch.fft.rfft2(fields)
        above, below = torch.view_as_complex(self.weights)
        out = torch.zeros_like(spectrum)
        for part, weights in ((slice(0, rows), above), (slice(-rows, None), below)):
            out[:, :, part, :columns] = torch.einsum(
                "bcyx,cdyx->bdyx", spectrum[:, :, part, :columns], weights
            )
        return torch.fft.irfft2(out, s=fields.shape[-2:])


class FourierOperator(nn.Module):
    """Fourier neural operator: layers that add a truncated spectral and a pointwise convolution.

    The grid is padded with zeros by a quarter of its sides.
    """

    def __init__(
        self,
        inputs: int,
        targets: int,
        *,
        width: int,
        modes: int,
        layers: int,
        grid: tuple[int, int],
    ) -> None:
        super().__init__()
        self.padding = tuple(-(-n // 4) for n in grid)
        padded = [n + extra for n, extra in zip(grid, self.padding, strict=True)]
        kept = (min(modes, padded[0] // 2), min(modes, padded[1] // 2 + 1))
        self.lift = nn.Sequential(nn.Conv2d(inputs, 2 * width, 1), nn.GELU())
        self.narrow = nn.Conv2d(2 * width, width, 1)
        self.spectral = nn.ModuleList(SpectralConvolution(width, kept) for _ in range(layers))
        self.pointwise = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(layers))
        self.widen = nn.Sequential(nn.Conv2d(width, 4 * width, 1), nn.GELU())
        self.head = nn.Conv2d(4 * width, targets, 1)

    def forward(self, fields: Tensor) -> Tensor:
        """(B, C, y, x) → (B, T, y, x)."""
        rows, columns = fields.shape[-2:]
        fields = self.narrow(self.lift(fields))
        fields = functional.pad(fields, (0, self.padding[1], 0, self.padding[0]))
        for spectral, pointwise in zip(self.spectral, self.pointwise, strict=True):
            change = in_full_precision(spectral, fields) + pointwise(fields)
            fields = fields + functional.gelu(change)
        return in_full_precision(self.head, self.widen(fields[..., :rows, :columns]))


def in_full_precision(module: nn.Module, fields: Tensor) -> Tensor:
    """Apply a module in float32 inside a region of mixed precision."""
    with torch.autocast(fields.device.type, enabled=False):
        return module(fields.float())


ON_ONE_GRID: dict[str, type[nn.Module]] = {"fno": FourierOperator}
"""Networks that are built for one grid, by architecture."""


def build(
    architecture: str, sizes: Mapping[str, int], *, inputs: int, targets: int, grid: tuple[int, int]
) -> nn.Module:
    """A network with randomly initialised weights."""
    if architecture == "unet":
        return UNet(inputs, targets, **sizes)
    return ON_ONE_GRID[architecture](inputs, targets, **sizes, grid=grid)
