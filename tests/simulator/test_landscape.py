"""Landscapes: synthetic terrain and fuels, and the user's rasters."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.physics.fuels import FUEL_CODES, fuel_table
from plumecast.simulator.landscape import (
    Landscape,
    ignition_mask,
    square_block_mean,
    synthetic_landscape,
)
from plumecast.workflows.landscape import read_landscape
from support.places import SHARED

LANDFIRE = SHARED / "fire-rasters/landfire"
GRASS = FUEL_CODES["GR2"]


def grass(elevation, cell=300.0):
    elevation = np.asarray(elevation, dtype=float)
    return Landscape(elevation, np.full(elevation.shape, GRASS, dtype=np.int16), cell)


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


def test_slope_points_uphill():
    y, x = np.mgrid[:6, :8] * 300.0
    east, north = grass(0.1 * x - 0.2 * y).slope
    np.testing.assert_allclose(east, 0.1)
    np.testing.assert_allclose(north, -0.2)
    # central differences are exact for a parabola away from the edge
    east, _ = grass(1e-4 * x**2).slope
    np.testing.assert_allclose(east[:, 1:-1], (2e-4 * x)[:, 1:-1])


def test_impossible_landscapes_are_refused():
    with pytest.raises(PlumecastError, match=r"\(3, 4\) and fuel \(4, 3\)"):
        Landscape(np.zeros((3, 4)), np.full((4, 3), GRASS, dtype=np.int16), 300.0)
    with pytest.raises(PlumecastError, match="cell=0 m"):
        grass(np.zeros((3, 3)), cell=0.0)
    with pytest.raises(PlumecastError, match="1 cells without a value"):
        grass([[0.0, np.nan], [0.0, 0.0]])
    with pytest.raises(PlumecastError, match="unknown fuel 7"):
        Landscape(np.zeros((2, 2)), np.full((2, 2), 7, dtype=np.int16), 300.0)


def test_block_mean_by_hand():
    field = np.arange(16.0).reshape(4, 4)
    np.testing.assert_allclose(square_block_mean(field, 2), [[2.5, 4.5], [10.5, 12.5]])
    np.testing.assert_allclose(
        square_block_mean(np.stack([field, 2 * field]), 4), [[[7.5]], [[15.0]]]
    )
    with pytest.raises(PlumecastError, match="no blocks of 3 by 3"):
        square_block_mean(field, 3)


def test_synthetic_landscape_is_a_valley_between_mountains():
    ground = synthetic_landscape(0)
    assert ground.shape == (800, 1000)
    assert ground.elevation.min() == pytest.approx(2300, abs=30)
    assert ground.elevation.max() == pytest.approx(3900, abs=1)
    profile = ground.elevation.mean(axis=0)
    lowest = int(profile.argmin())
    assert 400 < lowest < 700
    assert profile[:300].mean() > profile[lowest] + 600
    assert profile[lowest + 150 : lowest + 250].mean() > profile[lowest] + 400
    east, north = ground.slope
    steep = np.hypot(east, north)[ground.elevation > 3000]
    assert 0.08 < np.median(steep) < 0.3
    assert np.quantile(steep, 0.99) < 0.8


def test_synthetic_fuels_follow_elevation():
    ground = synthetic_landscape(1)
    share = ground.burnable.mean()
    assert 0.8 < share < 0.97
    valley = ground.fuel[ground.elevation < 2400]
    slopes = ground.fuel[(ground.elevation > 2900) & (ground.elevation < 3300)]
    summits = ground.fuel[ground.elevation > 3800]
    herbs_and_fields = np.isin(valley, [91, 93, *range(101, 125)]).mean()
    assert herbs_and_fields > 0.8
    assert (slopes >= FUEL_CODES["SH1"]).mean() > 0.6
    assert (summits == FUEL_CODES["NB9"]).mean() > 0.6
    assert np.unique(ground.fuel).size > 20


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**31), year=st.integers(1, 50))
def test_years_change_some_woody_fuel_and_never_the_terrain(seed, year):
    shape = (60, 80)
    now, again, later = (synthetic_landscape(seed, shape, year=y) for y in (0, 0, year))
    np.testing.assert_array_equal(now.fuel, again.fuel)
    np.testing.assert_array_equal(now.elevation, later.elevation)
    changed = now.fuel != later.fuel
    assert 0.0 < changed.mean() < 0.5
    np.testing.assert_array_equal(now.burnable, later.burnable)
    assert fuel_table().known[now.fuel].all()


def test_ignitions_lie_in_burnable_forested_mountains_inside():
    ground = synthetic_landscape(2)
    mask = ignition_mask(ground)
    assert 0.1 < mask.mean() < 0.4
    assert ground.burnable[mask].all()
    assert not mask[:100].any()
    assert not mask[:, -100:].any()
    assert ground.elevation[mask].min() > 2600
    assert (ground.fuel[mask] >= FUEL_CODES["SH1"]).mean() > 0.75
    water = Landscape(np.zeros((30, 30)), np.full((30, 30), 98, dtype=np.int16), 300.0)
    assert not ignition_mask(water).any()


def test_a_synthetic_landscape_that_is_too_small_is_refused():
    with pytest.raises(PlumecastError, match=r"shape=\(5, 200\)"):
        synthetic_landscape(0, (5, 200))


def test_rasters_are_read_with_the_south_in_row_0(rasters):
    ground = read_landscape(*rasters)
    assert ground.cell == 30.0
    np.testing.assert_allclose(ground.elevation[:, 0], [100, 200, 300, 400])
    assert (ground.fuel[3] == 98).all()
    assert (ground.fuel[:3] == GRASS).all()
    np.testing.assert_allclose(ground.slope[1], 100 / 30)


def test_coarser_cells_hold_mean_elevation_and_most_frequent_fuel(rasters):
    ground = read_landscape(*rasters, cell=90.0)
    assert ground.shape == (1, 2)
    np.testing.assert_allclose(ground.elevation, 200.0)
    assert (ground.fuel == GRASS).all()
    with pytest.raises(PlumecastError, match="cell=10 m is finer than the 30 m of the rasters"):
        read_landscape(*rasters, cell=10.0)
    with pytest.raises(PlumecastError, match="smaller than one cell of cell=900 m"):
        read_landscape(*rasters, cell=900.0)


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


@pytest.mark.skipif(not LANDFIRE.exists(), reason=f"no LANDFIRE tile at {LANDFIRE}")
def test_a_real_landfire_tile():
    pytest.importorskip("rasterio")
    paths = LANDFIRE / "LC20_Elev_220.tif", LANDFIRE / "LC22_F40_230.tif"
    with pytest.raises(PlumecastError, match="108586 of 336537 cells without a value"):
        read_landscape(*paths)
    ground = read_landscape(*paths, cell=300.0, bare_where_missing=True)
    assert ground.shape == (61, 54)
    assert 200 < ground.elevation.min() < ground.elevation.max() < 1110
    assert FUEL_CODES["TL6"] in ground.fuel
    assert ignition_mask(ground).any()
