"""Layers of a map: what a field is called and which scale its values have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumecast.app.drawing.scale import Scale, amount_scale, difference_scale, even_scale
from plumecast.base.names import FIRE, SMOKE, shown_units
from plumecast.workflows.export import FOOTPRINT

PREDICTED, DIFFERENCE, LOWER, UPPER = "predicted", "difference", "lower", "upper"

TITLES = {
    SMOKE: "Smoke",
    f"{SMOKE}_mean": "Smoke, time mean",
    PREDICTED: "Predicted smoke",
    LOWER: "Lower end of the error bar",
    UPPER: "Upper end of the error bar",
    FOOTPRINT: "Footprint: smoke is present",
    "certain_smoke": "Smoke is certain",
    "possible_smoke": "Smoke is possible",
    FIRE: "Time since ignition",
    "mean_smoke": "Mean smoke",
    "exceedance": "Chance of more smoke",
    "smoke_quantile": "Smoke of many fires",
    "mean_log_smoke": "Mean of ln(smoke + 1)",
}
"""Titles of fields by name; the others are called by their long name."""

PARTS = {
    "_lower": "lower end of the interval",
    "_upper": "upper end of the interval",
    "_surrogate": "predictions alone",
    "_error": "standard error",
}
"""What endings of the names of statistics mean."""

_LONGEST = 70  # characters of a title


@dataclass(frozen=True, slots=True)
class Layer:
    """A field of a map."""

    name: str
    title: str  # short, for a list
    meaning: str  # the quantity in words, without its unit
    units: str  # for people: "µg m⁻³"
    scale: str  # key of its scale
    kind: str  # "amount", "difference", "share", "set" or "number"


def describe_layer(name: str, attrs: Mapping[str, Any], fields: Iterable[np.ndarray]) -> Layer:
    """The layer of fields with these attributes; its kind follows from names, units and values."""
    units = str(attrs.get("units", ""))
    meaning = str(attrs.get("long_name", name))
    kind = _kind(name, attrs, fields)
    # Fields of a comparison have names of statistics, and are differences of them.
    known = None if DIFFERENCE in meaning else _title(name)
    title = known or (meaning if len(meaning) <= _LONGEST else _as_words(name))
    title = title[:1].upper() + title[1:]
    own = f" {name}" if kind in ("number", "set") else ""
    shown = "" if units.strip() == "1" else shown_units(units)
    return Layer(name, title, meaning, shown, f"{kind} {units}{own}", kind)


def _title(name: str) -> str | None:
    """The title of a known field, with its part and its threshold or quantile; None for others.

    >>> _title("exceedance_upper threshold=35")
    'Chance of more smoke, upper end of the interval, threshold 35'
    """
    stem, _, level = name.partition(" ")
    ending = next((end for end in PARTS if stem.endswith(end)), "")
    known = TITLES.get(stem.removesuffix(ending))
    if known is None:
        return None
    return ", ".join([known, *([PARTS[ending]] if ending else []),
                      *([_as_words(level)] if level else [])])  # fmt: skip


def _as_words(name: str) -> str:
    return name.replace("_", " ").replace("=", " ")


def _kind(name: str, attrs: Mapping[str, Any], fields: Iterable[np.ndarray]) -> str:
    if name == FIRE:
        return "number"
    if "flag_values" in attrs or name == FOOTPRINT:
        return "set"
    low, high = value_range(fields)
    if low < 0.0 or DIFFERENCE in name:
        return "difference"
    if attrs.get("units") == "1":
        return "share" if high <= 1.0 else "number"
    return "amount"


def value_range(fields: Iterable[np.ndarray]) -> tuple[float, float]:
    """Smallest and largest of the known values; (0, 0) if there is none."""
    low, high = np.inf, -np.inf
    for field in fields:
        known = field[np.isfinite(field)]
        if known.size:
            low, high = min(low, float(known.min())), max(high, float(known.max()))
    return (low, high) if low <= high else (0.0, 0.0)


def scale_of(kind: str, fields: Iterable[np.ndarray]) -> Scale:
    """The scale that all fields of a kind and unit share."""
    kept = list(fields)
    if kind == "set":
        return even_scale(0.0, 1.0, "set")
    if kind == "share":
        return even_scale(0.0, 1.0)
    low, high = value_range(kept)
    if kind == "difference":
        return difference_scale(max(-low, high))
    if kind == "number":
        return even_scale(min(low, 0.0), high)
    positive = [field[np.isfinite(field) & (field > 0.0)] for field in kept]
    smallest = min((float(part.min()) for part in positive if part.size), default=0.0)
    return amount_scale(high, smallest)
