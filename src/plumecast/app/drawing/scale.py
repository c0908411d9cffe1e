"""Colour scales: values of a field as 256 levels, each with a colour and a value.

Level 0 is exactly nothing and transparent, level 255 is missing. The levels between are spaced

- "log": by equal ratios from `low` to `high`; level 1 is more than 0 and less than `low`;
- "linear": evenly from `low` to `high`;
- "signed": by equal ratios from −high to −low and from low to high; nearer to 0 is level 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.app.drawing.palettes import palette

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
        known = np.isfinite(values)
        size = np.abs(np.where(known, values, 0.0))
        if self.kind == "linear":
            share = (np.where(known, values, 0.0) - self.low) / (self.high - self.low)
            found = FIRST + np.rint(np.clip(share, 0.0, 1.0) * (LAST - FIRST))
            found = np.where(size == 0.0, NOTHING, found)
        else:
            share = np.log(np.maximum(size, self.low) / self.low) / np.log(self.high / self.low)
            share = np.clip(share, 0.0, 1.0)
            if self.kind == "log":
                found = FIRST + 1 + np.rint(share * (LAST - FIRST - 1))
                found = np.where(size < self.low, FIRST, found)
                found = np.where(np.where(known, values, 0.0) <= 0.0, NOTHING, found)
            else:
                step = np.rint(share * (LAST - _MIDDLE))
                found = np.where(values > 0.0, _MIDDLE + step, _MIDDLE - 1 - step)
                found = np.where(size < self.low, NOTHING, found)
        return np.where(known, found, MISSING).astype(np.uint8)

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
            step = _round_step((self.high - self.low) / (_MOST_TICKS - 1))
            first = np.ceil(self.low / step - 1e-9) + 0.0  # never −0
            return [float(step * k) for k in np.arange(first, self.high / step + 1e-9)]
        powers = np.arange(np.ceil(np.log10(self.low) - 1e-9), np.log10(self.high) + 1e-9)
        found = [float(10.0**power) for power in powers]
        if self.kind == "log":
            return found if len(found) > 1 else [self.low, self.high]
        found = found or [self.high]
        return [-value for value in reversed(found)] + found


def tick_text(value: float) -> str:
    """A number of a legend.

    >>> tick_text(-0.1), tick_text(10000.0), tick_text(1e-6)
    ('−0.1', '10000', '1e−06')
    """
    plain = f"{value:.3g}" if abs(value) < 1e3 else f"{value:.6g}"
    return plain.replace("-", "−")


def _round_step(step: float) -> float:
    """The next of 1, 2, 5, 10, … times a power of ten."""
    power = 10.0 ** np.floor(np.log10(step))
    return float(power * next(k for k in (1.0, 2.0, 5.0, 10.0) if k * power >= step * (1 - 1e-9)))


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
