"""Fourier transforms of fields on a grid, padded with zeros and truncated to low frequencies.

The transforms are matrix products. A plume is smooth on the scale of its grid, so that a fraction
of the frequencies represents it. Multiplying by only these rows of the Fourier matrix costs less
than a fast Fourier transform, runs on any device, and gives the frequency as the first axis, as the
least squares need it. Arrays only, no labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, like, to_complex

PADDING = 2.0
"""Length of the padded grid relative to the grid; with 2, a convolution cannot wrap around."""

BUDGET = 6000
"""Largest number of frequencies that are kept, of the half that determines a real field."""


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The frequencies that are kept; along the first axis only the non-negative ones."""

    grid: tuple[int, ...]
    padded: tuple[int, ...]  # shape of the padded grid
    highest: tuple[int, ...]  # highest frequency along every axis

    @property
    def count(self) -> int:
        """Number of frequencies F."""
        return int(np.prod([len(axis) for axis in self.axes()]))

    def axes(self) -> list[np.ndarray]:
        """Integer wavenumbers on the padded grid, by axis."""
        first, *others = self.highest
        axes = [np.arange(first + 1)]
        for high, length in zip(others, self.padded[1:], strict=True):
            # At half the length, a wavenumber and its negative coincide; keep one of them.
            low = -high + 1 if 2 * high == length else -high
            axes.append(np.arange(low, high + 1))
        return axes

    def radius(self) -> np.ndarray:
        """(F,) magnitude of the frequency, in waves per cell."""
        waves = [axis / n for axis, n in zip(self.axes(), self.padded, strict=True)]
        squares = np.meshgrid(*[wave**2 for wave in waves], indexing="ij")
        total: np.ndarray = np.sqrt(sum(squares)).ravel()
        return total

    def weight(self) -> np.ndarray:
        """(F,) weight in sums over all frequencies: 2 where a kept one represents both signs."""
        first, *others = self.axes()
        once = (first == 0) | (2 * first == self.padded[0])
        return np.repeat(np.where(once, 1.0, 2.0), int(np.prod([len(axis) for axis in others])))


def choose_frequencies(grid: tuple[int, ...], budget: int = BUDGET) -> Frequencies:
    """All frequencies of the padded grid if the budget allows, else the lowest of every axis."""
    if min(grid) < 4:
        raise PlumecastError(
            f"a grid of {' × '.join(map(str, grid))} cells is too small for a spectral operator; "
            "it needs at least 4 cells along every axis; use preset='paper-quadratic'"
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
    """The matrices of a transform and of its inverse, one per axis, on one device."""

    grid: tuple[int, ...]
    forward: tuple[Array, ...]  # first (2K, n) real: cosines, then −sines; others (K, n) complex
    inverse: tuple[Array, ...]  # first (n, 2K) real; others (n, K) complex

    @property
    def frequencies(self) -> int:
        """Number of frequencies F."""
        rest = [matrix.shape[0] for matrix in self.forward[1:]]
        return int(np.prod([self.forward[0].shape[0] // 2, *rest]))

    def spectra(self, fields: Array) -> Array:
        """(*grid, …) real → (F, …) complex."""
        xp = array_namespace(fields)
        last = fields.shape[len(self.grid) :]
        out = self.forward[0] @ xp.reshape(fields, (self.grid[0], -1))
        half = out.shape[0] // 2
        out = to_complex(out[:half, :], out[half:, :])
        before = half
        for count, matrix in zip(self.grid[1:], self.forward[1:], strict=True):
            out = matrix @ xp.reshape(out, (before, count, -1))
            before *= matrix.shape[0]
        return xp.reshape(out, (before, *last))

    def fields(self, spectra: Array) -> Array:
        """(F, …) complex → (*grid, …) real."""
        xp = array_namespace(spectra)
        last = spectra.shape[1:]
        out = spectra
        after = 1
        kept = [matrix.shape[1] for matrix in self.inverse[1:]]
        for i in range(len(kept) - 1, -1, -1):
            before = (self.inverse[0].shape[1] // 2) * int(np.prod(kept[:i]))
            out = self.inverse[i + 1] @ xp.reshape(out, (before, kept[i], -1))
            after *= self.grid[i + 1]
        out = xp.reshape(out, (self.inverse[0].shape[1] // 2, -1))
        return xp.reshape(
            self.inverse[0] @ xp.concat([xp.real(out), xp.imag(out)], axis=0), (*self.grid, *last)
        )


def make_transform(frequencies: Frequencies, example: Array) -> Transform:
    """The matrices in single precision, in the namespace and on the device of an example array."""
    forward, inverse = [], []
    scale = 1.0 / float(np.prod(frequencies.padded))
    for number, axis in enumerate(frequencies.axes()):
        count, length = frequencies.grid[number], frequencies.padded[number]
        angle = 2.0 * np.pi * np.outer(axis, np.arange(count)) / length
        if number == 0:
            once = (axis == 0) | (2 * axis == length)
            times = scale * np.where(once, 1.0, 2.0)[:, None]
            to_spectrum = np.concatenate([np.cos(angle), -np.sin(angle)])
            to_field = np.concatenate([times * np.cos(angle), -times * np.sin(angle)]).T
            kind: type = np.float32
        else:
            to_spectrum, to_field = np.exp(-1j * angle), np.exp(1j * angle).T
            kind = np.complex64
        forward.append(like(np.ascontiguousarray(to_spectrum.astype(kind)), example))
        inverse.append(like(np.ascontiguousarray(to_field.astype(kind)), example))
    return Transform(frequencies.grid, tuple(forward), tuple(inverse))
