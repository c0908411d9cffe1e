"""Colours of maps, readable with any colour vision; the page and the figures use the same table."""

from __future__ import annotations

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
    anchors = np.array([_bytes(colour) for colour in PALETTES[name]], dtype=np.float64)
    places = np.linspace(0.0, anchors.shape[0] - 1.0, count)
    parts = [np.interp(places, np.arange(anchors.shape[0]), anchors[:, k]) for k in range(3)]
    return np.rint(np.stack(parts, axis=1)).astype(np.uint8)


def _bytes(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))
