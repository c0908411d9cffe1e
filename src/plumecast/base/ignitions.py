"""Names of ignitions that say where a fire began, and which of them are one ignition.

Fires are independent if their ignitions are, whatever their files are called. A reader that knows
where a fire began names its ignition after the place (`ignition_name`). Fires that began within a
cell of each other, and fires whose fields are equal, are then one ignition (`one_ignition`).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

BLOCK = 16
"""Cells of a block whose ignitions are always in one random group (`group_name`)."""

EXTENT = 2
"""Cells over which the places of one ignition extend at most, so that dense fires form no chain."""

ROUNDING = 1.1
"""A distance of one cell, with what the rounding of two names adds."""

_PLACE = re.compile(r"x(-?\d+(?:\.\d+)?)_y(-?\d+(?:\.\d+)?)_cell(\d+(?:\.\d+)?)")


def ignition_name(x: float, y: float, cell: float) -> str:
    """The name of an ignition in a raster cell with this centre and size, in the CRS of the raster.

    >>> ignition_name(541365.0, 4268385.0, 30.0)
    'x541365_y4268385_cell30'
    """
    digits = max(0, 1 - math.floor(math.log10(cell)))
    return f"x{x:.{digits}f}_y{y:.{digits}f}_cell{cell:.{digits}f}"


def _place(name: str) -> tuple[float, float, float] | None:
    """x, y and the size of the cell; None of a name that says no place."""
    match = _PLACE.fullmatch(name)
    if match is None:
        return None
    x, y, cell = map(float, match.groups())
    return x, y, max(cell, 1e-12)


def group_name(name: str) -> str:
    """A name that ignitions of one block of cells share, so that near ones stay together."""
    place = _place(name)
    if place is None:
        return name
    x, y, cell = place
    return f"block {math.floor(x / (BLOCK * cell))} {math.floor(y / (BLOCK * cell))}"


@dataclass(slots=True)
class _Group:
    """Places of one ignition: its name, and the corners of the box around them."""

    name: str
    low: np.ndarray
    high: np.ndarray


def one_ignition(names: Iterable[str], copies: Iterable[tuple[str, str]] = ()) -> Mapping[str, str]:
    """The first name of the ignition of every name.

    Places within a cell of each other are one ignition, as long as it extends over at most EXTENT
    cells. `copies` are pairs of the digest of a field and a name: equal fields are one ignition.

    >>> one_ignition(["x0_y0_cell30", "x30_y30_cell30", "x300_y0_cell30", "a"])["x30_y30_cell30"]
    'x0_y0_cell30'
    """
    every = sorted(set(names))
    first = {name: name for name in every}
    placed = sorted((*place, name) for name in every if (place := _place(name)) is not None)
    size = max((cell for *_, cell, _ in placed), default=1.0) * ROUNDING
    near: dict[tuple[int, int], list[tuple[np.ndarray, _Group]]] = defaultdict(list)
    for x, y, _, name in placed:
        at = np.array([x, y])
        row, column = (math.floor(value / size) for value in (x, y))
        group = next(
            (
                group
                for step in np.ndindex(3, 3)
                for other, group in near.get((row + step[0] - 1, column + step[1] - 1), ())
                if (np.abs(other - at) <= size).all()
                and (np.maximum(group.high, at) - np.minimum(group.low, at) <= EXTENT * size).all()
            ),
            _Group(name, at, at),
        )
        group.low, group.high = np.minimum(group.low, at), np.maximum(group.high, at)
        near[row, column].append((at, group))
        first[name] = group.name
    by_field: dict[str, str] = {}
    parent = {name: name for name in first.values()}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for digest, name in sorted(set(copies)):
        own = root(first[name])
        other = root(by_field.setdefault(digest, own))
        parent[max(own, other)] = min(own, other)
    return {name: root(group) for name, group in first.items()}
