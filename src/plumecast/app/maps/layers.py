"""What a map is made of: its layers, each an entry of `LAYERS`, and scenes with their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.maps.colours import Scale, amount_scale, difference_scale, even_scale
from plumecast.app.maps.ground import Lines
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE, shown_units
from plumecast.compute.regrid import Grid
from plumecast.sources.places import Places
from plumecast.surrogate.error_bars.interval import CERTAIN, LOWER, POSSIBLE, UPPER
from plumecast.workflows.export import FOOTPRINT

PREDICTED, DIFFERENCE = "predicted", "difference"


def _predicted_minus_observed(data: xr.Dataset) -> xr.DataArray | None:
    if SMOKE not in data or PREDICTED not in data:
        return None
    observed, predicted = (str(data[name].attrs.get("units")) for name in (SMOKE, PREDICTED))
    if observed != predicted:
        raise PlumecastError(
            f"the prediction is in {predicted}, the observed smoke in {observed}; choose the "
            "quantity of the prediction"
        )
    meaning = {"long_name": "predicted − observed smoke", "units": observed}
    return (data[PREDICTED] - data[SMOKE]).assign_attrs(meaning)


@dataclass(frozen=True, slots=True)
class MapLayer:
    """How maps show the field of a name. Fields without an entry go by their attributes."""

    title: str = ""  # short, for a list; empty: the long name of the field
    rank: int = 5  # place in a list, the lowest first
    kind: str | None = None  # a name of `SCALES`; None: as its units and values say
    is_sum: bool = False  # smoke summed over checkpoints, which is read as a quantity
    in_figures: bool = False  # whether a figure that names no layers has it
    live: str | None = None  # its name on the live page
    compute: Callable[[xr.Dataset], xr.DataArray | None] | None = None
    """The field from others of snapshots, where a source does not have it; None without them."""


LAYERS = {
    SMOKE: MapLayer("Smoke", rank=0, is_sum=True, in_figures=True, live="smoke"),
    f"{SMOKE}_mean": MapLayer("Smoke, time mean", rank=0, in_figures=True),
    PREDICTED: MapLayer("Predicted smoke", rank=1, is_sum=True, in_figures=True),
    DIFFERENCE: MapLayer(rank=2, in_figures=True, compute=_predicted_minus_observed),
    LOWER: MapLayer("Lower end of the error bar", rank=3, is_sum=True, live="lower"),
    UPPER: MapLayer("Upper end of the error bar", rank=4, is_sum=True, live="upper"),
    FOOTPRINT: MapLayer("Footprint: smoke is present", kind="set", live="footprint"),
    CERTAIN: MapLayer("Smoke is certain", kind="set", live="certain"),
    POSSIBLE: MapLayer("Smoke is possible", kind="set", live="possible"),
    FIRE: MapLayer("Time since ignition", rank=9, kind="number", live="fire"),
    "mean_smoke": MapLayer("Mean smoke", rank=2),
    "exceedance": MapLayer("Chance of more smoke"),
    "smoke_quantile": MapLayer("Smoke of many fires"),
    "mean_log_smoke": MapLayer("Mean of ln(smoke + 1)"),
}
"""The layers by the name of their field."""

PARTS = {
    "_lower": "lower end of the interval",
    "_upper": "upper end of the interval",
    "_surrogate": "predictions alone",
    "_error": "standard error",
}
"""What endings of the names of statistics mean."""

SCALES: dict[str, Callable[[float, float, float], Scale]] = {
    "amount": lambda low, high, least: amount_scale(high, least),
    "difference": lambda low, high, least: difference_scale(max(-low, high)),
    "share": lambda low, high, least: even_scale(0.0, 1.0),
    "set": lambda low, high, least: even_scale(0.0, 1.0, "set"),
    "number": lambda low, high, least: even_scale(min(low, 0.0), high),
}
"""Scales by kind: of the smallest, the largest and the least positive value."""

_OTHER = MapLayer()
_LONGEST = 70  # characters of a title


def in_order(names: Iterable[str]) -> list[str]:
    """Fields in the order of a list: smoke, what is predicted, differences, the rest, the fire."""
    return sorted(names, key=lambda name: LAYERS.get(name, _OTHER).rank)


def with_computed(data: xr.Dataset) -> xr.Dataset:
    """Snapshots with the layers that are computed from their fields."""
    for name, layer in LAYERS.items():
        if name not in data and layer.compute is not None:
            computed = layer.compute(data)
            data = data if computed is None else data.assign({name: computed})
    return data


@dataclass(frozen=True, slots=True)
class Layer:
    """A field of one map."""

    name: str
    title: str  # short, for a list
    meaning: str  # the quantity in words, without its unit
    units: str  # for people: "µg m⁻³"
    scale: str  # key of its scale
    kind: str  # a name of `SCALES`


@dataclass(frozen=True, slots=True)
class Scene:
    """What one fire, or one scenario, shows: fields (T, ny, nx) at T times, south row first."""

    name: str
    hours: np.ndarray | None  # (T,) since ignition; None for one field without a time
    fields: Mapping[str, np.ndarray]
    ignition_time: str | None = None  # where the fire records it

    @property
    def burned(self) -> np.ndarray | None:
        """(T, ny, nx) cells that burn or have burned; None if the fire is unknown."""
        return self.fields[FIRE] > 0.0 if FIRE in self.fields else None


@dataclass(frozen=True, slots=True)
class Content:
    """Everything that a writer draws."""

    title: str
    grid: Grid
    crs: Any  # None if the plane has no coordinate system
    scenes: Sequence[Scene]
    layers: Sequence[Layer]  # the first is shown first
    scales: Mapping[str, Scale]
    scene_word: str = "Fire"
    places: Places | None = None
    heights: tuple[np.ndarray, float, float] | None = None  # ground, and the size of its pixels
    borders: Lines = field(default_factory=dict)
    notes: Sequence[str] = ()

    def layer(self, name: str) -> Layer:
        """The layer of a name."""
        return next(item for item in self.layers if item.name == name)


def describe_layers(
    scenes: Sequence[Scene], attrs: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Layer], dict[str, Scale]]:
    """Layers of the fields of scenes, and the scales that layers of one kind and unit share."""
    layers = [
        describe_layer(name, about, [scene.fields[name] for scene in scenes])
        for name, about in attrs.items()
    ]
    if PREDICTED in attrs:
        layers = [
            replace(layer, title="Observed smoke") if layer.name == SMOKE else layer
            for layer in layers
        ]
    scales = {}
    for layer in layers:
        if layer.scale not in scales:
            alike = [item.name for item in layers if item.scale == layer.scale]
            shown = [scene.fields[name] for scene in scenes for name in alike]
            low, high, least = _value_range(shown)
            scales[layer.scale] = SCALES[layer.kind](low, high, least)
    return layers, scales


def describe_layer(name: str, attrs: Mapping[str, Any], fields: Sequence[np.ndarray]) -> Layer:
    """The layer of fields with these attributes; its kind follows from names, units and values."""
    units = str(attrs.get("units", ""))
    meaning = str(attrs.get("long_name", name))
    kind = LAYERS.get(name, _OTHER).kind or _kind(name, attrs, fields)
    # Fields of a comparison have names of statistics, and are differences of them.
    title = "" if DIFFERENCE in meaning else _title(name)
    title = title or (meaning if len(meaning) <= _LONGEST else _as_words(name))
    title = title[:1].upper() + title[1:]
    apart = f" {name}" if kind in ("number", "set") else ""
    shown = "" if units.strip() == "1" else shown_units(units)
    return Layer(name, title, meaning, shown, f"{kind} {units}{apart}", kind)


def _title(name: str) -> str:
    """The title of a known field, with its part and its threshold or quantile; "" for others.

    >>> _title("exceedance_upper threshold=35")
    'Chance of more smoke, upper end of the interval, threshold 35'
    """
    stem, _, level = name.partition(" ")
    ending = next((end for end in PARTS if stem.endswith(end)), "")
    title = LAYERS.get(stem.removesuffix(ending), _OTHER).title
    if not title:
        return ""
    return ", ".join([title, *([PARTS[ending]] if ending else []),
                      *([_as_words(level)] if level else [])])  # fmt: skip


def _as_words(name: str) -> str:
    return name.replace("_", " ").replace("=", " ")


def _kind(name: str, attrs: Mapping[str, Any], fields: Sequence[np.ndarray]) -> str:
    if "flag_values" in attrs:
        return "set"
    low, high, _ = _value_range(fields)
    if low < 0.0 or DIFFERENCE in name:
        return "difference"
    if attrs.get("units") == "1":
        return "share" if high <= 1.0 else "number"
    return "amount"


def _value_range(fields: Iterable[np.ndarray]) -> tuple[float, float, float]:
    """Smallest, largest and least positive of the finite values; 0 if there is none."""
    low, high, least = np.inf, -np.inf, np.inf
    for values in fields:
        finite = values[np.isfinite(values)]
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
        positive = finite[finite > 0.0]
        if positive.size:
            least = min(least, float(positive.min()))
    return (low, high, least if least < np.inf else 0.0) if low <= high else (0.0, 0.0, 0.0)
