"""Landscapes from the user's rasters."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.physics.fuels import FUEL_CODES
from plumecast.workflows.simulate import read_landscape

GRASS = FUEL_CODES["GR2"]


def write_raster(path, values, *, crs="EPSG:5070", nodata=None, origin=(1000.0, 5000.0), cell=30.0):
    rasterio = pytest.importorskip("rasterio")
    values = np.asarray(values)
    transform = rasterio.Affine(cell, 0.0, origin[0], 0.0, -cell, origin[1])
    with rasterio.open(
        path, "w", driver="GTiff", height=values.shape[0], width=values.shape[1], count=1,
        dtype=values.dtype, crs=crs, transform=transform, nodata=nodata,
    ) as target:  # fmt: skip
        target.write(values, 1)
    return path


@pytest.fixture
def rasters(tmp_path):
    """A DEM that falls to the south and a fuel map with water in the northern row, 4 by 6 cells."""
    dem = np.repeat(np.array([400, 300, 200, 100], dtype=np.int16)[:, None], 6, axis=1)
    fuel = np.full((4, 6), GRASS, dtype=np.int16)
    fuel[0] = FUEL_CODES["NB8"]
    return (
        write_raster(tmp_path / "dem.tif", dem, nodata=32767),
        write_raster(tmp_path / "fuel.tif", fuel, nodata=32767),
    )


def test_rasters_are_read_with_the_south_in_row_0(rasters):
    ground = read_landscape(*rasters)
    assert ground.cell == 30.0
    np.testing.assert_allclose(ground.elevation[:, 0], [100, 200, 300, 400])
    assert (ground.fuel[3] == 98).all()
    assert (ground.fuel[:3] == GRASS).all()
    np.testing.assert_allclose(ground.slope[1], 100 / 30)


def test_rasters_on_different_grids_are_both_named(rasters, tmp_path):
    dem, _ = rasters
    values = np.full((4, 6), GRASS, dtype=np.int16)
    moved = write_raster(tmp_path / "moved.tif", values, origin=(1030.0, 5000.0))
    with pytest.raises(PlumecastError, match=r"dem\.tif \(EPSG:5070.*moved\.tif \(EPSG:5070"):
        read_landscape(dem, moved)
    other = write_raster(tmp_path / "other.tif", values, crs="EPSG:32613")
    with pytest.raises(PlumecastError, match=r"EPSG:5070.*EPSG:32613.*one grid and CRS"):
        read_landscape(dem, other)
    degrees = write_raster(tmp_path / "degrees.tif", values, crs="EPSG:4326", cell=0.001)
    with pytest.raises(PlumecastError, match=r"EPSG:4326; reproject"):
        read_landscape(dem, degrees)


def test_holes_are_counted_or_become_bare_ground(rasters, tmp_path):
    dem, _ = rasters
    values = np.full((4, 6), GRASS, dtype=np.int16)
    values[1, 2:4] = 32767
    holed = write_raster(tmp_path / "holed.tif", values, nodata=32767)
    with pytest.raises(PlumecastError, match=r"holed\.tif has 2 of 24 cells without a value"):
        read_landscape(dem, holed)
    ground = read_landscape(dem, holed, bare_where_missing=True)
    assert (ground.fuel[2, 2:4] == FUEL_CODES["NB9"]).all()
    assert ground.burnable.sum() == 22
    with pytest.raises(PlumecastError, match=r"holed\.tif has 2 of 24"):
        read_landscape(holed, dem, bare_where_missing=True)


def test_unknown_fuel_code_and_unreadable_files_are_named(rasters, tmp_path):
    dem, fuel = rasters
    odd = write_raster(tmp_path / "odd.tif", np.full((4, 6), 55, dtype=np.int16))
    with pytest.raises(PlumecastError, match="unknown fuel 55"):
        read_landscape(dem, odd)
    with pytest.raises(PlumecastError, match=r"absent\.tif: cannot be opened"):
        read_landscape(tmp_path / "absent.tif", fuel)


def test_without_rasterio_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(PlumecastError, match=r"pip install 'plumecast\[raster\]'"):
        read_landscape("dem.tif", "fuel.tif")
