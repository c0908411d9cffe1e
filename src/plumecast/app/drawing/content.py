"""The content of a map: scenes with their fields, layers, scales, grid and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from plumecast.app.drawing.borders import Lines
from plumecast.app.drawing.layers import PREDICTED, Layer, describe_layer, scale_of
from plumecast.app.drawing.scale import Scale
from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.regrid import Grid
from plumecast.sources.places import Places


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
    notes: Sequence[str] = field(default_factory=tuple)

    def layer(self, name: str) -> Layer:
        """The layer of a name."""
        return next(item for item in self.layers if item.name == name)


def describe_layers(
    scenes: Sequence[Scene], attrs: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Layer], dict[str, Scale]]:
    """Layers of the fields of scenes, and the scales that layers of one kind and unit share."""
    layers = [
        describe_layer(name, known, [scene.fields[name] for scene in scenes])
        for name, known in attrs.items()
    ]
    if any(layer.name == PREDICTED for layer in layers):
        layers = [
            replace(layer, title="Observed smoke") if layer.name == SMOKE else layer
            for layer in layers
        ]
    scales = {}
    for layer in layers:
        if layer.scale not in scales:
            alike = [item.name for item in layers if item.scale == layer.scale]
            shown = [scene.fields[name] for scene in scenes for name in alike]
            scales[layer.scale] = scale_of(layer.kind, shown)
    return layers, scales
