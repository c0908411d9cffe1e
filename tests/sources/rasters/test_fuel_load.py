"""Fuel rasters → fuel load on a grid: area means, missing fuels, other map planes, wrong input."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.physics.fuels import FUEL_CODES, fuel_table
from plumecast.sources.rasters import georeference as load_module
from plumecast.sources.rasters.georeference import read_fuel_load
from support.raster_files import BOTTOM, LEFT, NX, NY, SIZE, write_ascii, write_tiff

GR1, SB4, BARE = (FUEL_CODES[name] for name in ("GR1", "SB4", "NB9"))
LIGHT, HEAVY = fuel_table().total_load[[GR1, SB4]]
ROUNDING = 1e-6
"""Relative: loads are float32."""


def blocks(rows: int = 4, columns: int = 5) -> xr.Dataset:
    """A grid of blocks of raster cells."""
    return xr.Dataset(
        coords={
            "x": LEFT + SIZE * columns * (np.arange(NX // columns) + 0.5),
            "y": BOTTOM + SIZE * rows * (np.arange(NY // rows) + 0.5),
        }
    )


def test_the_load_of_a_cell_is_the_mean_over_its_area(tmp_path, monkeypatch):
    monkeypatch.setattr(load_module, "_TOGETHER", 7)
    codes = np.full((NY, NX), GR1)
    codes[-1, :5] = SB4  # a quarter of the south-west cell
    codes[:4, -5:] = BARE
    found = read_fuel_load(write_ascii(tmp_path / "fuels.asc", codes), blocks())
    expected = np.full((3, 4), LIGHT)
    expected[0, 0] = 0.75 * LIGHT + 0.25 * HEAVY
    expected[2, 3] = 0.0
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)


def test_cells_without_a_fuel_do_not_count(tmp_path):
    codes = np.full((NY, NX), SB4, dtype=float)
    codes[-1, :5] = np.nan  # a quarter is missing: the mean of the others
    codes[:3, :5] = np.nan  # three quarters: unknown
    found = read_fuel_load(write_ascii(tmp_path / "fuels.asc", codes), blocks())
    expected = np.full((3, 4), HEAVY)
    expected[2, 0] = np.nan
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)


def test_a_raster_in_another_plane_is_projected(tmp_path):
    pyproj = pytest.importorskip("pyproj")
    path = write_tiff(tmp_path / "fuels.tif", np.full((NY, NX), SB4), crs="EPSG:5070")
    move = pyproj.Transformer.from_crs("EPSG:5070", "EPSG:32614", always_xy=True).transform
    x, y = move(LEFT + SIZE * NX / 2, BOTTOM + SIZE * NY / 2)
    steps = 60.0 * np.arange(-6, 7)
    grid = xr.Dataset(coords={"x": x + steps, "y": y + steps}, attrs={"crs": "EPSG:32614"})
    found = read_fuel_load(path, grid)
    area = np.isfinite(found).sum() * 60.0**2
    assert area == pytest.approx(NX * NY * SIZE**2, rel=0.1)  # cells at the edge count or not
    np.testing.assert_allclose(found[np.isfinite(found)], HEAVY, rtol=ROUNDING)


def test_a_crs_on_a_grid_without_one_is_refused_unless_local(tmp_path):
    path = write_tiff(tmp_path / "fuels.tif", np.full((NY, NX), SB4), crs="EPSG:5070")
    with pytest.raises(PlumecastError, match=r"fuels\.tif: has a CRS, the target grid has none"):
        read_fuel_load(path, blocks())
    np.testing.assert_allclose(read_fuel_load(path, blocks(), crs="local"), HEAVY, rtol=ROUNDING)


def test_wrong_rasters_are_named(tmp_path):
    other = write_ascii(tmp_path / "thirteen.asc", np.full((NY, NX), 5))
    with pytest.raises(PlumecastError, match=r"thirteen\.asc: unknown fuel 5; known are"):
        read_fuel_load(other, blocks())
    empty = write_ascii(tmp_path / "empty.asc", np.full((NY, NX), np.nan))
    with pytest.raises(PlumecastError, match=r"empty\.asc: no cell has a fuel"):
        read_fuel_load(empty, blocks())
    far = write_ascii(tmp_path / "far.asc", np.full((NY, NX), GR1), XLLCORNER=9e5)
    with pytest.raises(PlumecastError, match=r"far\.asc covers no cell of the grid \(x from 1000"):
        read_fuel_load(far, blocks())
