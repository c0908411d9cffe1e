"""Numbers and intervals as people read them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from plumecast.base.names import shown_units

NONE = "–"
MINUS = "−"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: the value, and its interval in small print."""

    text: str
    small: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption; the first cell of a row names it."""

    caption: str
    titles: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def number(value: float | None, sign: str = "") -> str:
    """Three digits without an exponent: 1.29, 2,100, < 0.001."""
    if value is None or not math.isfinite(value):
        return NONE
    if value and abs(value) < 1e-3:
        return "< 0.001" if value > 0 else f"> {MINUS}0.001"
    digits = f"{value:{sign},.0f}" if abs(value) >= 99.95 else f"{value:{sign}.3g}"
    return digits.replace("-", MINUS)


def percent(share: float | None, sign: str = "") -> str:
    """A share as percent with its unit."""
    if share is None or not math.isfinite(share):
        return NONE
    return f"{number(100.0 * share, sign)} %"


def chance(value: float | None) -> str:
    """A probability, never rounded to certainty."""
    if value is None or not math.isfinite(value):
        return NONE
    if value > 0.999:
        return "> 99.9 %"
    return "< 0.1 %" if value < 0.001 else f"{100.0 * value:.3g} %"


def between(low: float | None, high: float | None, sign: str = "", unit: str = "") -> str:
    """An interval; an end that is not known is said to be so."""
    low, high = (None if end is None or not math.isfinite(end) else end for end in (low, high))
    if low is None and high is None:
        return "interval unknown"
    if high is None:
        return f"{number(low, sign)}{unit} or more"
    if low is None:
        return f"{number(high, sign)}{unit} or less"
    return f"{number(low, sign)} to {number(high, sign)}{unit}"


def percents_between(low: float | None, high: float | None, sign: str = "") -> str:
    """An interval of a share, in percent."""
    return between(_hundred(low), _hundred(high), sign, " %")


def points_between(low: float | None, high: float | None) -> str:
    """An interval of a difference of shares, in percentage points."""
    return between(_hundred(low), _hundred(high), "+", " points")


def _hundred(share: float | None) -> float | None:
    return None if share is None else 100.0 * share


def unbroken_units(units: str) -> str:
    """Units for people, which stay on one line: "µg m⁻³"."""
    return shown_units(units).replace(" ", "\N{NO-BREAK SPACE}")


def counted(count: int, one: str) -> str:
    """A number of things: "1 fire", "1,200 fires"."""
    return f"{count:,} {one if count == 1 else one + 's'}"
