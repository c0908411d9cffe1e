"""What lies around the smoke: perimeters of burned cells, borders in their place, a hillshade."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from plumecast.app.maps.colours import encode_png
from plumecast.app.maps.ground import borders, outline, relief, resample, shade
from plumecast.base.errors import PlumecastError
from plumecast.compute.regrid import Grid
from support.raster_files import write_ascii

pyproj = pytest.importorskip("pyproj")

UTM = "EPSG:32610"  # UTM zone 10 north
TAHOE = Grid(730_000.0, 4_300_000.0, 3000.0, 3000.0, 20, 20)
ATLAS = 2_000.0  # m, resolution of the borders


def header(values: np.ndarray) -> dict[str, object]:
    """Cells of 100 m from the origin."""
    return {"NROWS": values.shape[0], "NCOLS": values.shape[1], "XLLCORNER": 0.0,
            "YLLCORNER": 0.0, "CELLSIZE": 100.0}  # fmt: skip


def test_the_corner_of_nevada_is_in_lake_tahoe():
    """California and Nevada meet at 39° N, 120° W, where their border turns."""
    x, y = pyproj.Transformer.from_crs(4326, UTM, always_xy=True).transform(-120.0, 39.0)
    states = np.concatenate(borders(TAHOE, UTM)["state"])
    assert np.hypot(states[:, 0] - x, states[:, 1] - y).min() < ATLAS


def test_small_grids_have_counties_large_ones_states_and_others_countries():
    assert "county" in borders(TAHOE, UTM)
    wide = Grid(300_000.0, 3_900_000.0, 20_000.0, 20_000.0, 40, 40)
    assert "county" not in borders(wide, UTM)
    assert "state" in borders(wide, UTM)
    alps = Grid(300_000.0, 5_050_000.0, 5000.0, 5000.0, 40, 40)
    assert list(borders(alps, "EPSG:32632")) == ["country"]


def test_slopes_towards_the_north_west_are_bright():
    y, x = np.mgrid[0:20, 0:20] * 100.0
    towards = shade(0.2 * (x - y), 100.0, 100.0)  # falls to the north-west
    away = shade(0.2 * (y - x), 100.0, 100.0)
    flat = shade(np.zeros((20, 20)), 100.0, 100.0)
    assert towards.min() > flat.max() > away.max()
    np.testing.assert_allclose(flat, np.cos(np.pi / 4))


def test_an_elevation_model_is_sampled_where_it_is(tmp_path):
    """Heights that are linear in x and y are interpolated exactly."""
    rows, columns = np.mgrid[0:40, 0:50]
    values = 3.0 * (columns + 0.5) + 2.0 * (rows + 0.5)  # south row first
    path = write_ascii(tmp_path / "dem.asc", values[::-1], **header(values))
    grid = Grid(1000.0, 1000.0, 500.0, 500.0, 4, 3)
    heights, dx, dy = resample(path, grid, None)
    y, x = np.mgrid[0 : heights.shape[0], 0 : heights.shape[1]]
    expected = 3.0 * (10.0 + (x + 0.5) * dx / 100.0) + 2.0 * (10.0 + (y + 0.5) * dy / 100.0)
    np.testing.assert_allclose(heights, expected, rtol=1e-6)
    assert relief(heights, dx, dy).shape == (*heights.shape, 4)
    with pytest.raises(PlumecastError, match="does not cover the grid"):
        resample(path, Grid(1e6, 1e6, 500.0, 500.0, 4, 3), None)


def test_png_files_hold_the_picture():
    picture = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    data = encode_png(picture)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (3, 2)
    start = data.index(b"IDAT") + 4
    length = struct.unpack(">I", data[start - 8 : start - 4])[0]
    rows = np.frombuffer(zlib.decompress(data[start : start + length]), np.uint8).reshape(2, 13)
    np.testing.assert_array_equal(rows[:, 1:].reshape(2, 3, 4), picture)


def area(ring: list[tuple[int, int]]) -> float:
    """Signed area by the shoelace formula; positive if the inside is on the left."""
    x, y = np.array(ring, dtype=float).T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


@given(arrays(bool, st.tuples(st.integers(1, 6), st.integers(1, 6))))
def test_rings_enclose_the_burned_area(burned):
    assert sum(area(ring) for ring in outline(burned)) == burned.sum()


HOLE = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], dtype=bool)


@pytest.mark.parametrize(
    ("burned", "areas"), [(HOLE, [-1.0, 9.0]), (np.eye(2, dtype=bool), [1.0, 1.0])]
)
def test_a_hole_is_a_ring_of_its_own_and_cells_that_touch_stay_apart(burned, areas):
    assert sorted(map(area, outline(burned))) == areas


def test_only_turns_are_kept():
    assert outline(np.ones((1, 50), dtype=bool)) == [[(0, 0), (50, 0), (50, 1), (0, 1)]]
    assert outline(np.zeros((2, 2), dtype=bool)) == []
