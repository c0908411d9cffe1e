"""Fourier transforms of fields on a grid, padded with zeros and cut at a highest frequency.

By matrix products: a plume is smooth beside its grid, so that a fraction of the frequencies carries
it, and a product with only the wanted rows of the Fourier matrix costs less than a fast transform
of all of them, runs on any device, and leaves the frequencies where the least squares need them:
first. Arrays only, no labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, like, to_complex

PADDING = 2.0
"""Length of the padded grid relative to the grid: at 2 a convolution cannot wrap around."""

BUDGET = 6000
"""Frequencies kept at most, of the half that a real field needs."""


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Which frequencies of which padded grid; of the first axis only those not negative."""

    grid: tuple[int, ...]
    padded: tuple[int, ...]
    highest: tuple[int, ...]  # along every axis

    @property
    def count(self) -> int:
        """Number of frequencies F."""
        return int(np.prod([len(axis) for axis in self.axes()]))

    def axes(self) -> list[np.ndarray]:
        """Whole numbers of waves in the padded grid, by axis."""
        first, *others = self.highest
        axes = [np.arange(first + 1)]
        for high, length in zip(others, self.padded[1:], strict=True):
            # At half the length a wave and its negative are the same: keep one.
            low = -high + 1 if 2 * high == length else -high
            axes.append(np.arange(low, high + 1))
        return axes

    def radius(self) -> np.ndarray:
        """(F,) waves per cell, in any direction."""
        waves = [axis / n for axis, n in zip(self.axes(), self.padded, strict=True)]
        squares = np.meshgrid(*[wave**2 for wave in waves], indexing="ij")
        total: np.ndarray = np.sqrt(sum(squares)).ravel()
        return total

    def weight(self) -> np.ndarray:
        """(F,) how often a frequency counts: the half that is kept stands for both signs."""
        first, *others = self.axes()
        once = (first == 0) | (2 * first == self.padded[0])
        return np.repeat(np.where(once, 1.0, 2.0), int(np.prod([len(axis) for axis in others])))


def choose_frequencies(grid: tuple[int, ...], budget: int = BUDGET) -> Frequencies:
    """All frequencies of the padded grid where the budget allows, else the lowest of every axis."""
    if min(grid) < 4:
        raise PlumecastError(
            f"a grid of {' × '.join(map(str, grid))} cells is too small for a spectral operator; "
            "it needs at least 4 cells along every axis"
        )
    padded = tuple(2 * int(np.ceil(PADDING * n / 2)) for n in grid)
    share = 1.0
    while True:
        highest = tuple(max(1, int(share * (n // 2))) for n in padded)
        chosen = Frequencies(tuple(int(n) for n in grid), padded, highest)
        if chosen.count <= budget or max(highest) == 1:
            return chosen
        share *= 0.98


@dataclass(frozen=True, slots=True)
class Transform:
    """The matrices of a transform and of its inverse, on one device."""

    grid: tuple[int, ...]
    there: tuple[Array, ...]  # (2K, n) real, cosines over minus sines; then (K, n) complex
    back: tuple[Array, ...]  # (n, 2K) real; then (n, K) complex

    @property
    def frequencies(self) -> int:
        """Number of frequencies F."""
        rest = [matrix.shape[0] for matrix in self.there[1:]]
        return int(np.prod([self.there[0].shape[0] // 2, *rest]))

    def spectra(self, fields: Array) -> Array:
        """(*grid, …) real → (F, …) complex."""
        xp = array_namespace(fields)
        last = fields.shape[len(self.grid) :]
        out = self.there[0] @ xp.reshape(fields, (self.grid[0], -1))
        half = out.shape[0] // 2
        out = to_complex(out[:half, :], out[half:, :])
        before = half
        for count, matrix in zip(self.grid[1:], self.there[1:], strict=True):
            out = matrix @ xp.reshape(out, (before, count, -1))
            before *= matrix.shape[0]
        return xp.reshape(out, (before, *last))

    def fields(self, spectra: Array) -> Array:
        """(F, …) complex → (*grid, …) real."""
        xp = array_namespace(spectra)
        last = spectra.shape[1:]
        out = spectra
        after = 1
        kept = [matrix.shape[1] for matrix in self.back[1:]]
        for i in range(len(kept) - 1, -1, -1):
            before = (self.back[0].shape[1] // 2) * int(np.prod(kept[:i]))
            out = self.back[i + 1] @ xp.reshape(out, (before, kept[i], -1))
            after *= self.grid[i + 1]
        out = xp.reshape(out, (self.back[0].shape[1] // 2, -1))
        return xp.reshape(
            self.back[0] @ xp.concat([xp.real(out), xp.imag(out)], axis=0), (*self.grid, *last)
        )


def make_transform(frequencies: Frequencies, example: Array) -> Transform:
    """The transform's matrices in float32, beside an example array."""
    there, back = [], []
    scale = 1.0 / float(np.prod(frequencies.padded))
    for number, axis in enumerate(frequencies.axes()):
        count, length = frequencies.grid[number], frequencies.padded[number]
        angle = 2.0 * np.pi * np.outer(axis, np.arange(count)) / length
        if number == 0:
            once = (axis == 0) | (2 * axis == length)
            times = scale * np.where(once, 1.0, 2.0)[:, None]
            forth = np.concatenate([np.cos(angle), -np.sin(angle)])
            return_ = np.concatenate([times * np.cos(angle), -times * np.sin(angle)]).T
            kind: type = np.float32
        else:
            forth, return_ = np.exp(-1j * angle), np.exp(1j * angle).T
            kind = np.complex64
        there.append(like(np.ascontiguousarray(forth.astype(kind)), example))
        back.append(like(np.ascontiguousarray(return_.astype(kind)), example))
    return Transform(frequencies.grid, tuple(there), tuple(back))
