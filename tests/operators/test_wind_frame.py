"""The wind frame: whole blocks are rotated as single cells would be, on any array namespace."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.data.covariates import wind_vector
from plumecast.operators import wind_frame
from plumecast.operators.wind_frame import STRETCH, WindFrame, fit_wind_frame

GRID = (9, 12)
SINGLE = 1e-6
"""Absolute, for values of size one: weighted sums of four float32 numbers in another order."""


def winds(count: int) -> np.ndarray:
    wind = np.random.default_rng(1).normal(size=(count, 2)) * 6.0
    wind[1] = 0.0  # calm
    return wind


def at(field: np.ndarray, row: float, column: float) -> float:
    """The field between its cells: Σ (1 − |row − i|)(1 − |column − j|) f(i, j) over neighbours."""
    total = 0.0
    for i in (int(np.floor(row)), int(np.floor(row)) + 1):
        for j in (int(np.floor(column)), int(np.floor(column)) + 1):
            if 0 <= i < field.shape[0] and 0 <= j < field.shape[1]:
                total += (1.0 - abs(row - i)) * (1.0 - abs(column - j)) * field[i, j]
    return total


def cell_by_cell(frame: WindFrame, field: np.ndarray, wind: np.ndarray, *, back: bool):
    """One field rotated into the frame, or `back` to the map, by the definition of the rotation."""
    strength = np.hypot(*wind)
    cos, sin = wind / strength if strength else (1.0, 0.0)
    factor = 1.0
    if strength and frame.speed is not None:
        factor = np.clip(frame.speed / strength, 1.0 / STRETCH, STRETCH)
    source, goal = (frame.canvas, frame.grid) if back else (frame.grid, frame.canvas)
    cell = min(map(abs, frame.spacing))
    own, other = (frame.spacing, (cell, cell)) if back else ((cell, cell), frame.spacing)
    out = np.zeros(goal)
    for i, j in np.ndindex(goal):
        y, x = (i - 0.5 * (goal[0] - 1)) * own[0], (j - 0.5 * (goal[1] - 1)) * own[1]
        if back:
            x, y = (cos * x + sin * y) * factor, (cos * y - sin * x) * factor
        else:
            x, y = (cos * x - sin * y) / factor, (sin * x + cos * y) / factor
        row, column = y / other[0] + 0.5 * (source[0] - 1), x / other[1] + 0.5 * (source[1] - 1)
        out[i, j] = at(field, row, column)
    return out


@pytest.mark.parametrize("stretch", [False, True])
@pytest.mark.parametrize("spacing", [(1.0, 1.0), (-3.0, 2.0)])
def test_a_block_is_rotated_as_its_cells_are(stretch, spacing, monkeypatch):
    rng, wind = np.random.default_rng(0), winds(4)
    frame = fit_wind_frame(GRID, spacing, wind, stretch=stretch)
    on_map = rng.normal(size=(4, *GRID)).astype(np.float32)
    in_wind = rng.normal(size=(4, 3, *frame.canvas)).astype(np.float32)
    monkeypatch.setattr(wind_frame, "HOST_POINTS", 2 * GRID[0] * GRID[1])  # several blocks
    there, back = frame.to_wind(on_map, wind), frame.to_map(in_wind, wind)
    assert there.dtype == back.dtype == np.float32
    for row in range(4):
        expected = cell_by_cell(frame, on_map[row], wind[row], back=False)
        np.testing.assert_allclose(there[row], expected, atol=SINGLE)
        for kind in range(3):
            expected = cell_by_cell(frame, in_wind[row, kind], wind[row], back=True)
            np.testing.assert_allclose(back[row, kind], expected, atol=SINGLE)


def test_a_wind_along_x_moves_whole_cells_and_the_rest_of_the_canvas_is_zero():
    wind = np.array([[5.0, 0.0], [0.0, 0.0]])
    frame = fit_wind_frame(GRID, (1.0, 1.0), wind, stretch=False)
    fields = np.random.default_rng(0).normal(size=(2, *GRID)).astype(np.float32)
    there = frame.to_wind(fields, wind)
    y, x = ((big - small) // 2 for big, small in zip(frame.canvas, GRID, strict=True))
    inside = (slice(None), slice(y, y + GRID[0]), slice(x, x + GRID[1]))
    np.testing.assert_array_equal(there[inside], fields)
    there[inside] = 0.0
    assert not there.any()
    np.testing.assert_array_equal(frame.to_map(frame.to_wind(fields, wind), wind), fields)


@pytest.mark.parametrize("namespace", ["torch", "array_api_strict"])
def test_other_arrays_give_the_same(namespace):
    xp, wind = pytest.importorskip(namespace), winds(4)
    frame = fit_wind_frame(GRID, (1.0, 1.0), wind, stretch=True)
    fields = np.random.default_rng(0).normal(size=(4, 2, *frame.canvas)).astype(np.float32)
    found = np.asarray(frame.to_map(xp.asarray(fields), wind))
    np.testing.assert_allclose(found, frame.to_map(fields, wind), atol=SINGLE)


def test_the_wind_blows_along_x_in_its_frame():
    """A wind from the north carries towards smaller y; in the frame that is towards +x."""
    field = np.zeros((1, *GRID), dtype=np.float32)
    field[0, 0:3, 6] = 1.0  # south of the middle
    wind = wind_vector(np.array([5.0]), np.array([0.0]))
    frame = fit_wind_frame(GRID, (1.0, 1.0), wind, stretch=False)
    turned = frame.to_wind(field, wind)[0]
    columns = (turned.sum(axis=0) * np.arange(frame.canvas[1])).sum() / turned.sum()
    assert columns - 0.5 * (frame.canvas[1] - 1) == pytest.approx(4.0 - 1.0, abs=0.2)


def test_the_canvas_covers_the_grid_for_winds_outside_training():
    wind = wind_vector(np.full(2, 5.0), np.array([0.0, 270.0]))
    frame = fit_wind_frame(GRID, (1.0, 1.0), wind, stretch=False)
    full = np.ones((1, *GRID), dtype=np.float32)
    other = wind_vector(np.array([5.0]), np.array([225.0]))
    back = frame.to_map(frame.to_wind(full, other)[:, None], other)[0, 0]
    assert back[1:-1, 1:-1].min() > 0.5  # the rim is interpolated with zeros outside
    with pytest.raises(PlumecastError, match="not \\(1, 2\\)"):
        frame.to_wind(full, np.zeros((3, 2)))
