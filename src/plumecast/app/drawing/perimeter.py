"""Perimeters: the outline of the burned cells, along the edges of cells."""

from __future__ import annotations

import numpy as np

Ring = list[tuple[int, int]]
"""Closed line through corners (column, row) of cells; the first corner is not repeated."""


def outline(burned: np.ndarray) -> list[Ring]:
    """Rings around the burned cells of a (ny, nx) field, burned on the left of the way.

    Corner (i, j) is the lower left corner of cell (row j, column i). Only the corners at which a
    ring turns are kept.

    >>> outline(np.array([[True, True], [False, False]]))
    [[(0, 0), (2, 0), (2, 1), (0, 1)]]
    """
    follow = _edges(np.pad(np.asarray(burned, dtype=bool), 1))
    rings = []
    while follow:
        start = min(follow, key=lambda corner: (corner[1], corner[0]))
        rings.append(_turns(_walk(follow, start)))
    return rings


def _edges(padded: np.ndarray) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Directed edges between burned and unburned cells, by the corner where they begin."""
    follow: dict[tuple[int, int], list[tuple[int, int]]] = {}
    ways = (
        ((-1, 0), (0, 0), (1, 0)),  # unburned below: east along the lower edge
        ((0, 1), (1, 0), (1, 1)),  # unburned right: north
        ((1, 0), (1, 1), (0, 1)),  # unburned above: west
        ((0, -1), (0, 1), (0, 0)),  # unburned left: south
    )
    for (down, right), (x0, y0), (x1, y1) in ways:
        other = np.roll(padded, (-down, -right), axis=(0, 1))
        for row, column in np.argwhere(padded & ~other):
            j, i = int(row) - 1, int(column) - 1
            follow.setdefault((i + x0, j + y0), []).append((i + x1, j + y1))
    return follow


def _walk(
    follow: dict[tuple[int, int], list[tuple[int, int]]], start: tuple[int, int]
) -> list[tuple[int, int]]:
    """Corners of one ring, whose edges are taken away; cells that touch at a corner stay apart."""
    ring, here, way = [start], start, (0, 0)
    while True:
        choices = follow[here]
        left = (here[0] - way[1], here[1] + way[0])
        following = left if len(choices) > 1 and left in choices else choices[0]
        choices.remove(following)
        if not choices:
            del follow[here]
        way = (following[0] - here[0], following[1] - here[1])
        here = following
        if here == start:
            return ring
        ring.append(here)


def _turns(ring: list[tuple[int, int]]) -> Ring:
    around = zip(ring[-1:] + ring[:-1], ring, ring[1:] + ring[:1], strict=True)
    return [
        here
        for before, here, after in around
        if not (before[0] == here[0] == after[0] or before[1] == here[1] == after[1])
    ]
