"""Landscapes from the user's rasters."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.physics.fuels import FUEL_CODES
from plumecast.workflows.simulate import read_landscape

GRASS = np.full((4, 6), FUEL_CODES["GR2"], dtype=np.int16)
MISSING = 32767


@pytest.fixture
def write(tmp_path):
    """Write a raster of 30 m cells; returns its path."""
    rasterio = pytest.importorskip("rasterio")

    def call(name, values, *, crs="EPSG:5070", left=1000.0, cell=30.0):
        options = {"driver": "GTiff", "count": 1, "dtype": values.dtype, "crs": crs}
        options |= {"height": values.shape[0], "width": values.shape[1], "nodata": MISSING}
        transform = rasterio.Affine(cell, 0.0, left, 0.0, -cell, 5000.0)
        with rasterio.open(tmp_path / name, "w", transform=transform, **options) as target:
            target.write(values, 1)
        return tmp_path / name

    return call


@pytest.fixture
def dem(write):
    """Ground that falls to the south, 4 by 6 cells."""
    heights = np.array([400, 300, 200, 100], dtype=np.int16)
    return write("dem.tif", np.repeat(heights[:, None], 6, axis=1))


def test_rasters_are_read_with_the_south_in_row_0(dem, write):
    fuel = GRASS.copy()
    fuel[0] = FUEL_CODES["NB8"]  # water in the north
    ground = read_landscape(dem, write("fuel.tif", fuel))
    assert ground.cell == 30.0
    np.testing.assert_allclose(ground.elevation[:, 0], [100, 200, 300, 400])
    assert (ground.fuel[3] == 98).all()
    assert (ground.fuel[:3] == GRASS[0, 0]).all()
    np.testing.assert_allclose(ground.slope[1], 100 / 30)


def test_holes_are_counted_or_become_bare_ground(dem, write):
    fuel = GRASS.copy()
    fuel[1, 2:4] = MISSING
    holed = write("holed.tif", fuel)
    with pytest.raises(PlumecastError, match=r"holed\.tif has 2 of 24 cells without a value"):
        read_landscape(dem, holed)
    ground = read_landscape(dem, holed, bare_where_missing=True)
    assert (ground.fuel[2, 2:4] == FUEL_CODES["NB9"]).all()
    assert ground.burnable.sum() == 22
    with pytest.raises(PlumecastError, match=r"holed\.tif has 2 of 24"):
        read_landscape(holed, dem, bare_where_missing=True)


@pytest.mark.parametrize(
    ("values", "change", "message"),
    [
        (GRASS, {"left": 1030.0}, r"dem\.tif \(EPSG:5070.*fuel\.tif \(EPSG:5070"),
        (GRASS, {"crs": "EPSG:32613"}, r"EPSG:5070.*EPSG:32613.*one grid and CRS"),
        (GRASS, {"crs": "EPSG:4326", "cell": 0.001}, r"EPSG:4326; reproject"),
        (np.full_like(GRASS, 55), {}, "unknown fuel 55"),
    ],
)
def test_fuels_that_do_not_fit_are_refused(dem, write, values, change, message):
    with pytest.raises(PlumecastError, match=message):
        read_landscape(dem, write("fuel.tif", values, **change))


def test_unreadable_files_and_missing_libraries_are_named(dem, monkeypatch):
    with pytest.raises(PlumecastError, match=r"absent\.tif: cannot be opened"):
        read_landscape("absent.tif", dem)
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(PlumecastError, match=r"pip install 'plumecast\[raster\]'"):
        read_landscape("dem.tif", "fuel.tif")
