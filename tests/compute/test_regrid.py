"""Aggregation preserves integrals; map projections agree with an independent library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.compute import regrid
from plumecast.compute.regrid import Grid

number = st.floats(0.0, 1.0)


@given(rows=st.integers(1, 5), columns=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_block_mean_keeps_the_mean_and_block_max_the_maximum(rows, columns, seed):
    field = np.random.default_rng(seed).random((3 * rows, 4 * columns))
    mean, top = (block(field, rows, columns) for block in (regrid.block_mean, regrid.block_max))
    assert mean.shape == top.shape == (3, 4)
    assert mean.mean() == pytest.approx(field.mean())
    assert top.max() == field.max()
    assert (mean <= top).all()
    np.testing.assert_allclose(mean[1, 2], field[rows : 2 * rows, 2 * columns : 3 * columns].mean())


@settings(deadline=None)
@given(
    shift=st.tuples(number, number),
    size=st.tuples(st.floats(0.3, 40.0), st.floats(0.3, 40.0)),
    seed=st.integers(0, 2**32 - 1),
)
def test_area_mean_keeps_burned_area_and_integral(shift, size, seed):
    source = Grid(-20 + 10 * shift[0], 3 + 10 * shift[1], size[0], size[1], 7, 5)
    target = Grid(-40.0, -20.0, 11.0, 9.0, 40, 40)
    values = np.random.default_rng(seed).random(35)
    cells = np.arange(35)
    weights = regrid.overlap_weights(source, target, cells)
    assert weights.outside == pytest.approx(0, abs=1e-9)
    covered = weights.mean(np.ones(35))
    assert covered.max() <= 1 + 1e-9
    assert covered.sum() * target.cell_area == pytest.approx(35 * source.cell_area)
    integral = weights.mean(values).sum() * target.cell_area
    assert integral == pytest.approx(values.sum() * source.cell_area)


def test_overlap_by_hand():
    # one 2 × 2 cell on four unit cells shifted by a quarter
    source, target = Grid(0.25, 0.5, 2.0, 1.0, 1, 1), Grid(0.0, 0.0, 1.0, 1.0, 3, 2)
    weights = regrid.overlap_weights(source, target, np.array([0]))
    mean = weights.mean(np.array([8.0])).reshape(2, 3)
    np.testing.assert_allclose(mean, [[3.0, 4.0, 1.0], [3.0, 4.0, 1.0]])
    np.testing.assert_array_equal(weights.max(np.array([8.0])), np.full(6, 8.0))


def test_touching_cells_do_not_overlap_and_the_share_outside_is_recorded():
    source, target = Grid(0.0, 0.0, 0.1, 0.1, 30, 30), Grid(0.0, 0.0, 1.0, 1.0, 3, 3)
    left = np.flatnonzero(np.arange(900) % 30 == 9)  # the column that ends at x = 1
    top = regrid.overlap_weights(source, target, left).max(np.ones(30)).reshape(3, 3)
    np.testing.assert_array_equal(top, [[1, 0, 0]] * 3)
    source, target = Grid(0.0, 0.0, 1.0, 1.0, 4, 1), Grid(0.0, 0.0, 1.0, 1.0, 3, 1)
    assert regrid.overlap_weights(source, target, np.arange(4)).outside == pytest.approx(0.25)


def rotate(x, y):
    return 0.8 * x - 0.6 * y, 0.6 * x + 0.8 * y


def test_projected_weights_keep_the_integral_and_the_place():
    source = Grid(-50.0, -50.0, 1.0, 1.0, 100, 100)
    target = Grid(-100.0, -100.0, 20.0, 20.0, 10, 10)
    x, y = np.meshgrid(source.x, source.y)
    cells = np.flatnonzero((np.hypot(x - 5, y + 11) < 30).ravel())
    values = 1 + 0.1 * x.ravel()[cells]
    weights = regrid.projected_weights(source, target, cells, to_target=rotate)
    mean = weights.mean(values)
    assert mean.sum() * target.cell_area == pytest.approx(values.sum())
    centre = (weights.mean(np.ones(cells.size)).reshape(10, 10) * target.x).sum() / (
        cells.size / target.cell_area
    )
    assert centre == pytest.approx(0.8 * 5 + 0.6 * 11, abs=0.5)
    covered = weights.mean(np.ones(cells.size))
    assert covered.max() == pytest.approx(1.0, abs=5e-3)


def test_projection_to_the_same_plane_is_near_the_exact_overlap():
    source, target = Grid(3.3, 1.7, 1.0, 1.0, 60, 50), Grid(0.0, 0.0, 10.0, 10.0, 8, 7)
    cells = np.arange(3000)
    values = np.random.default_rng(0).random(3000)
    exact = regrid.overlap_weights(source, target, cells).mean(values)
    near = regrid.projected_weights(source, target, cells, to_target=lambda x, y: (x, y))
    np.testing.assert_allclose(near.mean(values), exact, atol=0.02)


def test_cells_without_an_image_are_refused():
    source = Grid(0.0, 0.0, 1.0, 1.0, 2, 2)
    with pytest.raises(PlumecastError, match="no image"):
        regrid.projected_weights(
            source, source, np.arange(4), to_target=lambda x, y: (np.where(x > 1, np.inf, x), y)
        )


@pytest.mark.parametrize(
    ("x", "message"),
    [([0.0], "at least two"), ([0.0, 1.0, 3.0], "not evenly"), ([2.0, 1.0, 0.0], "increasing")],
)
def test_a_grid_is_recovered_from_even_cell_centres(x, message):
    grid = Grid(-3.0, 2.0, 0.5, 2.0, 4, 3)
    assert regrid.grid_from_centres(grid.x, grid.y, "grid") == grid
    with pytest.raises(PlumecastError, match=message):
        regrid.grid_from_centres(np.array(x), np.array([0.0, 1.0]), "like")


def test_spherical_cells_cover_the_sphere():
    grid = Grid(-180.0, -90.0, 3.0, 3.0, 120, 60)
    total = regrid.spherical_cell_area(grid, np.arange(7200)).sum()
    assert total == pytest.approx(4 * np.pi * 6_371_008.8**2)
