"""Colours of maps: palettes, scales of 256 levels, and pictures as PNG.

A scale turns the values of a field into levels, each with a colour and a value. Level 0 is exactly
nothing and transparent, level 255 is missing. The levels between are spaced

- "log": by equal ratios from `low` to `high`; level 1 is more than 0 and less than `low`;
- "linear": evenly from `low` to `high`;
- "signed": by equal ratios from −high to −low and from low to high; nearer to 0 is level 0.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np

_MAGMA_REVERSED = (
    "#fcfdbf", "#fde0a1", "#fec287", "#fea571", "#fb8761", "#f4695c", "#e55064", "#cf4070",
    "#b5367a", "#9b2e7f", "#812581", "#681c81", "#4f127b", "#341069", "#1c1044", "#090720",
    "#000004",
)  # fmt: skip
_CIVIDIS_REVERSED = (
    "#fee838", "#f0d846", "#dec958", "#cdbb63", "#bcae6c", "#aba072", "#9b9476", "#8c8878",
    "#7d7c78", "#6f7073", "#61656f", "#535a6d", "#434e6c", "#32436d", "#1a386f", "#002e6a",
    "#00224e",
)  # fmt: skip
_BLUE_TO_RED = (
    "#053061", "#2065ab", "#4393c3", "#90c4dd", "#d1e5f0", "#f7f6f6", "#fddbc7", "#f3a481",
    "#d6604d", "#b1182b", "#67001f",
)  # fmt: skip
_BURNING = ("#ffd27a", "#f28e2b", "#c1440e", "#5a1a06")
_ONE = ("#7b3294", "#7b3294")

PALETTES = {
    "amount": _MAGMA_REVERSED,
    "share": _CIVIDIS_REVERSED,
    "difference": _BLUE_TO_RED,
    "set": _ONE,
    "burning": _BURNING,
}
"""Anchors by name: magma, cividis and RdBu, sampled evenly; dark is much, as on paper."""

FIRE_COLOUR = "#d7301f"


def palette(name: str, count: int) -> np.ndarray:
    """(count, 3) bytes of red, green and blue, interpolated between the anchors."""
    anchors = np.array(
        [tuple(bytes.fromhex(colour[1:])) for colour in PALETTES[name]], dtype=np.float64
    )
    places = np.linspace(0.0, anchors.shape[0] - 1.0, count)
    parts = [np.interp(places, np.arange(anchors.shape[0]), anchors[:, k]) for k in range(3)]
    return np.rint(np.stack(parts, axis=1)).astype(np.uint8)


NOTHING, FIRST, LAST, MISSING = 0, 1, 254, 255
DECADES = {"log": 4.0, "signed": 3.0}
"""Span of a scale below its largest value, in powers of ten."""

_MIDDLE = 128  # first positive level of a signed scale
_MOST_TICKS = 7


@dataclass(frozen=True, slots=True)
class Scale:
    """Values of one quantity as levels; `kind` is "log", "linear" or "signed"."""

    kind: str
    low: float
    high: float
    colours: str  # name of a palette

    @property
    def values(self) -> np.ndarray:
        """(256,) value of every level; NaN where there is none."""
        made = np.full(256, np.nan)
        made[NOTHING] = 0.0
        if self.kind == "linear":
            made[FIRST:MISSING] = np.linspace(self.low, self.high, LAST)
        elif self.kind == "log":
            made[FIRST] = self.low
            made[FIRST + 1 : MISSING] = np.geomspace(self.low, self.high, LAST - 1)
        else:
            half = np.geomspace(self.low, self.high, MISSING - _MIDDLE)
            made[_MIDDLE:MISSING] = half
            made[FIRST:_MIDDLE] = -half[::-1]
        return made

    def levels(self, field: np.ndarray) -> np.ndarray:
        """The nearest level of every value, as bytes; values beyond the ends get the last."""
        values = np.asarray(field, dtype=np.float64)
        finite = np.isfinite(values)
        values = np.where(finite, values, 0.0)
        size = np.abs(values)
        if self.kind == "linear":
            share = np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0)
            levels = FIRST + np.rint(share * (LAST - FIRST))
            levels = np.where(size == 0.0, NOTHING, levels)
        else:
            share = np.log(np.maximum(size, self.low) / self.low) / np.log(self.high / self.low)
            share = np.clip(share, 0.0, 1.0)
            if self.kind == "log":
                levels = FIRST + 1 + np.rint(share * (LAST - FIRST - 1))
                levels = np.where(size < self.low, FIRST, levels)
                levels = np.where(values <= 0.0, NOTHING, levels)
            else:
                step = np.rint(share * (LAST - _MIDDLE))
                levels = np.where(values > 0.0, _MIDDLE + step, _MIDDLE - 1 - step)
                levels = np.where(size < self.low, NOTHING, levels)
        return np.where(finite, levels, MISSING).astype(np.uint8)

    @property
    def resolution(self) -> float:
        """Largest error of a level: relative for ratios, absolute for a linear scale."""
        if self.kind == "linear":
            return 0.5 * (self.high - self.low) / (LAST - FIRST)
        steps = LAST - FIRST - 1 if self.kind == "log" else LAST - _MIDDLE
        return float((self.high / self.low) ** (0.5 / steps) - 1.0)

    @property
    def rgba(self) -> np.ndarray:
        """(256, 4) bytes of red, green, blue and opacity."""
        made = np.zeros((256, 4), dtype=np.uint8)
        made[FIRST:MISSING, :3] = palette(self.colours, LAST)
        made[FIRST:MISSING, 3] = 255
        return made

    def position(self, value: float) -> float:
        """Where a value stands on the colour bar, 0 (first colour) to 1 (last)."""
        values = self.values[FIRST:MISSING]
        return float(np.interp(value, values[1:], np.linspace(0.0, 1.0, LAST)[1:]))

    def ticks(self) -> list[float]:
        """Round values along the bar."""
        if self.kind == "linear":
            least = (self.high - self.low) / (_MOST_TICKS - 1)
            power = 10.0 ** np.floor(np.log10(least))
            step = power * next(k for k in (1.0, 2.0, 5.0, 10.0) if k * power >= least * (1 - 1e-9))
            first = np.ceil(self.low / step - 1e-9) + 0.0  # never −0
            return [float(step * k) for k in np.arange(first, self.high / step + 1e-9)]
        powers = np.arange(np.ceil(np.log10(self.low) - 1e-9), np.log10(self.high) + 1e-9)
        ticks = [float(10.0**power) for power in powers]
        if self.kind == "log":
            return ticks if len(ticks) > 1 else [self.low, self.high]
        ticks = ticks or [self.high]
        return [-value for value in reversed(ticks)] + ticks


def tick_text(value: float) -> str:
    """A number of a legend.

    >>> tick_text(-0.1), tick_text(10000.0), tick_text(1e-6)
    ('−0.1', '10000', '1e−06')
    """
    plain = f"{value:.3g}" if abs(value) < 1e3 else f"{value:.6g}"
    return plain.replace("-", "−")


def amount_scale(largest: float, smallest: float = 0.0) -> Scale:
    """Ratios up to the largest value, over at most four decades, and to the smallest one."""
    high = largest if largest > 0.0 else 1.0
    low = max(high * 10.0 ** -DECADES["log"], min(smallest, 0.1 * high))
    return Scale("log", low, high, "amount")


def difference_scale(largest: float) -> Scale:
    """Ratios on both sides of 0, the same on both."""
    high = largest if largest > 0.0 else 1.0
    return Scale("signed", high * 10.0 ** -DECADES["signed"], high, "difference")


def even_scale(low: float, high: float, colours: str = "share") -> Scale:
    """Evenly spaced values."""
    return Scale("linear", low, high if high > low else low + 1.0, colours)


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TRUE_COLOUR_WITH_ALPHA = 6


def encode_png(rgba: np.ndarray) -> bytes:
    """PNG file of an (ny, nx, 4) picture of bytes, top row first."""
    ny, nx = rgba.shape[:2]
    rows = np.ascontiguousarray(rgba, dtype=np.uint8).reshape(ny, 4 * nx)
    unfiltered = np.zeros((ny, 1), dtype=np.uint8)
    header = struct.pack(">IIBBBBB", nx, ny, 8, _TRUE_COLOUR_WITH_ALPHA, 0, 0, 0)
    data = zlib.compress(np.hstack([unfiltered, rows]).tobytes(), 9)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
