"""Fourier transforms of fields on a grid, padded with zeros and truncated to low frequencies.

The transforms are matrix products. A plume is smooth on the scale of its grid, so that a fraction
of the frequencies represents it. Multiplying by only these rows of the Fourier matrix costs less
than a fast Fourier transform, runs on any device, and gives the frequency as the first axis, as the
least squares need it. Arrays only, no labels.

All products are real. Phases are measured from the centre of the grid, where a cosine is even and a
sine is odd: cosines are multiplied by the even part of a field and sines by its odd part, each on
half of the cells, and the frequencies k and −k along an axis share these products. This takes a
third of the operations of complex products. A convolution ŷ(k) = x̂(k) W(k) does not depend on the
origin of the phases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import (
    Array,
    array_namespace,
    device_of,
    is_numpy_array,
    like,
    write_difference,
    write_sum,
)
from plumecast.compute.blocks import row_blocks

PADDING = 2.0
"""Length of the padded grid relative to the grid; with 2, a convolution cannot wrap around."""

BUDGET = 6000
"""Largest number of frequencies that are kept, of the half that determines a real field."""


CACHED = 160_000
"""Values that the transform along a further axis takes at a time on the host, for its cache."""


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
            "it needs at least 4 cells along every axis; use the preset 'paper-quadratic'"
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
class Waves:
    """Cosines and sines of K frequencies k ≥ 0 along one axis of n cells, about its centre.

    Only the first half of the cells is stored, with the middle one among the cosines.
    """

    cosines: Array  # (K, ⌈n/2⌉), cos θ
    sines: Array  # (K, ⌊n/2⌋), −sin θ
    negative: int  # number of frequencies k > 0 whose −k is kept too; 0 along the first axis

    @property
    def cells(self) -> int:
        """Number of cells n."""
        return int(self.cosines.shape[1] + self.sines.shape[1])

    @property
    def kept(self) -> int:
        """Number of frequencies of both signs."""
        return int(self.cosines.shape[0]) + self.negative


@dataclass(frozen=True, slots=True)
class Transform:
    """The waves along every axis of a grid, on one device; those of the inverse are scaled."""

    forward: tuple[Waves, ...]
    inverse: tuple[Waves, ...]

    @property
    def grid(self) -> tuple[int, ...]:
        """Shape of the grid."""
        return tuple(waves.cells for waves in self.forward)

    @property
    def frequencies(self) -> int:
        """Number of frequencies F."""
        return math.prod(waves.kept for waves in self.forward)

    @property
    def example(self) -> Array:
        """An array on the device of the transform."""
        return self.forward[0].cosines

    def spectra(self, fields: Array) -> Array:
        """(*grid, …) real → (F, 2, …): real and imaginary part of Σ f e^(−iθ)."""
        xp = array_namespace(fields)
        first, *others = self.forward
        even, odd = _halves(xp.reshape(fields, (1, first.cells, -1)))
        parts = [first.cosines @ even[0, ...], first.sines @ odd[0, ...]]
        if not others:
            return xp.reshape(xp.stack(parts, axis=1), (first.kept, 2, *fields.shape[1:]))
        before = first.kept
        for waves in others:
            parts = [xp.reshape(part, (before, waves.cells, -1)) for part in parts]
            out = _along(waves, parts)
            before *= waves.kept
            out = xp.reshape(out, (before, 2, -1))
            parts = [out[:, 0, :], out[:, 1, :]]
        return xp.reshape(out, (before, 2, *fields.shape[len(self.forward) :]))

    def fields(self, spectra: Array) -> Array:
        """(F, 2, …) → (*grid, …) real: Σ Re(ŷ e^(iθ)) over kept frequencies and their mirrors."""
        xp = array_namespace(spectra)
        first, *others = self.inverse
        out, before = spectra, self.frequencies
        for waves in reversed(others):
            before //= waves.kept
            out = xp.reshape(out, (before, waves.kept, 2, -1))
            out = _back_along(waves, out)
        out = xp.reshape(out, (first.kept, 2, -1))
        even = xp.matrix_transpose(first.cosines) @ out[:, 0, :]
        odd = xp.matrix_transpose(first.sines) @ out[:, 1, :]
        whole = _empty((first.cells, even.shape[1]), even)
        _write_whole(even, odd, whole)
        return xp.reshape(whole, (*self.grid, *spectra.shape[2:]))


def _along(waves: Waves, parts: list[Array]) -> Array:
    """Real and imaginary parts, (b, n, a) each → (b, k, 2, a), one more axis transformed.

    With c = Σ z cos θ and s = −Σ z sin θ the spectrum is c + i s at k and c − i s at −k.
    """
    before, _, after = parts[0].shape
    out = _empty((before, waves.kept, 2, after), parts[0])
    for rows in _cached_rows(parts[0]):
        _write_along(waves, [part[rows, ...] for part in parts], out[rows, ...])
    return out


def _write_along(waves: Waves, parts: list[Array], out: Array) -> None:
    xp = array_namespace(out)
    halves = [_halves(part) for part in parts]
    (re_c, im_c), (re_s, im_s) = (
        [matrix @ pair[kind] for pair in halves]
        for kind, matrix in enumerate((waves.cosines, waves.sines))
    )
    minus, plus = slice(0, waves.negative), slice(waves.negative, None)
    write_difference(out[:, plus, 0, :], re_c, im_s)
    write_sum(out[:, plus, 1, :], im_c, re_s)
    mirrored = slice(1, 1 + waves.negative)
    re_c, im_c, re_s, im_s = (
        xp.flip(part[:, mirrored, :], axis=1) for part in (re_c, im_c, re_s, im_s)
    )
    write_sum(out[:, minus, 0, :], re_c, im_s)
    write_difference(out[:, minus, 1, :], im_c, re_s)


def _back_along(waves: Waves, spectra: Array) -> Array:
    """(b, k, 2, a) → (b, 2, n, a): the inverse of `_along`.

    The sum over k and −k is (ẑ(k) + ẑ(−k)) cos θ + i (ẑ(k) − ẑ(−k)) sin θ.
    """
    before, _, _, after = spectra.shape
    out = _empty((before, 2, waves.cells, after), spectra)
    for rows in _cached_rows(spectra):
        even, odd = _back_halves(waves, spectra[rows, ...])
        _write_whole(even, odd, out[rows, ...])
    return out


def _back_halves(waves: Waves, spectra: Array) -> tuple[Array, Array]:
    xp = array_namespace(spectra)
    before, _, _, after = spectra.shape
    real, imaginary = spectra[:, :, 0, :], spectra[:, :, 1, :]
    count = waves.negative
    sums = _empty((before, 2, waves.cosines.shape[0], after), real)
    turned = _empty((before, 2, waves.cosines.shape[0], after), real)
    for number, part in enumerate((real, imaginary)):
        plus, minus = part[:, count:, :], xp.flip(part[:, :count, :], axis=1)
        both = slice(1, 1 + count)
        own = sums[:, number, ...], turned[:, 1 - number, ...]
        # i · (a + i b) · sin θ = (b + i (−a)) · (−sin θ): the parts change places.
        write_sum(own[0][:, both, :], plus[:, both, :], minus)
        if number == 0:
            write_difference(own[1][:, both, :], minus, plus[:, both, :])
        else:
            write_difference(own[1][:, both, :], plus[:, both, :], minus)
        for alone in (slice(0, 1), slice(1 + count, None)):  # no −k; at k = 0 the sine is zero
            own[0][:, alone, :] = plus[:, alone, :]
            own[1][:, alone, :] = plus[:, alone, :] if number else -plus[:, alone, :]
    odd = xp.matrix_transpose(waves.sines) @ turned
    return xp.matrix_transpose(waves.cosines) @ sums, odd


def _halves(fields: Array) -> tuple[Array, Array]:
    """(b, n, a) → even part (b, ⌈n/2⌉, a) and odd part (b, ⌊n/2⌋, a), as sums of two cells."""
    xp = array_namespace(fields)
    before, count, after = fields.shape
    half = count // 2
    first, last = fields[:, :half, :], xp.flip(fields[:, count - half :, :], axis=1)
    odd = first - last
    if count % 2 == 0:
        return first + last, odd
    even = _empty((before, half + 1, after), fields)
    write_sum(even[:, :half, :], first, last)
    even[:, half:, :] = fields[:, half : half + 1, :]
    return even, odd


def _write_whole(even: Array, odd: Array, out: Array) -> None:
    """(…, ⌈n/2⌉, a) and (…, ⌊n/2⌋, a) → (…, n, a): even + odd, then mirrored even − odd."""
    xp = array_namespace(even)
    half, count = odd.shape[-2], out.shape[-2]
    write_sum(out[..., :half, :], even[..., :half, :], odd)
    if count % 2:
        out[..., half : half + 1, :] = even[..., half:, :]
    mirrored = xp.flip(even[..., :half, :], axis=-2), xp.flip(odd, axis=-2)
    write_difference(out[..., count - half :, :], *mirrored)


def _cached_rows(fields: Array) -> Iterator[slice]:
    """Slices of the first axis whose steps stay in the cache of the host; one slice on a GPU."""
    count = int(fields.shape[0])
    per_row = max(1, math.prod(fields.shape[1:]))
    return row_blocks(count, CACHED // per_row if is_numpy_array(fields) else None)


def _empty(shape: tuple[int, ...], other: Array) -> Array:
    return array_namespace(other).empty(shape, dtype=other.dtype, device=device_of(other))


def make_transform(frequencies: Frequencies, example: Array) -> Transform:
    """The matrices in single precision, in the namespace and on the device of an example array."""
    forward, inverse = (
        tuple(
            Waves(like(axis.cosines, example), like(axis.sines, example), axis.negative)
            for axis in waves
        )
        for waves in _waves(frequencies)
    )
    return Transform(forward, inverse)


@lru_cache(maxsize=8)
def _waves(frequencies: Frequencies) -> tuple[tuple[Waves, ...], tuple[Waves, ...]]:
    """The waves of a transform and of its inverse, by axis, on the host."""
    forward: list[Waves] = []
    inverse: list[Waves] = []
    scale = 1.0 / math.prod(frequencies.padded)
    for number, axis in enumerate(frequencies.axes()):
        count, length = frequencies.grid[number], frequencies.padded[number]
        positive = axis[axis >= 0]
        places = np.arange((count + 1) // 2) - 0.5 * (count - 1)
        angle = 2.0 * np.pi * np.outer(positive, places) / length
        times = np.ones((positive.size, 1))
        if number == 0:
            once = (positive == 0) | (2 * positive == length)
            times = scale * np.where(once, 1.0, 2.0)[:, None]
        cosines, sines = np.cos(angle), -np.sin(angle[:, : count // 2])
        negative = axis.size - positive.size
        for own, factor in ((forward, 1.0), (inverse, times)):
            even, odd = ((factor * part).astype(np.float32) for part in (cosines, sines))
            own.append(Waves(even, odd, negative))
    return tuple(forward), tuple(inverse)
