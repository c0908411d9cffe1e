"""Perimeters: rings along the edges of cells that enclose exactly the burned cells."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plumecast.app.drawing.perimeter import outline


def area(ring: list[tuple[int, int]]) -> float:
    """Signed area by the shoelace formula; positive if the inside is on the left."""
    x, y = np.array(ring, dtype=float).T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


@given(arrays(bool, st.tuples(st.integers(1, 6), st.integers(1, 6))))
def test_rings_enclose_the_burned_area(burned):
    assert sum(area(ring) for ring in outline(burned)) == burned.sum()


def test_a_hole_is_a_ring_of_its_own():
    burned = np.ones((3, 3), dtype=bool)
    burned[1, 1] = False
    assert sorted(area(ring) for ring in outline(burned)) == [-1.0, 9.0]


def test_cells_that_touch_at_a_corner_stay_apart():
    assert sorted(map(area, outline(np.eye(2, dtype=bool)))) == [1.0, 1.0]


def test_only_turns_are_kept():
    assert outline(np.ones((1, 50), dtype=bool)) == [[(0, 0), (50, 0), (50, 1), (0, 1)]]
    assert outline(np.zeros((2, 2), dtype=bool)) == []
