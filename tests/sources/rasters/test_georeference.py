"""Rasters on a target grid: area-weighted aggregation, coordinate systems, real fires, fuels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import M2_PER_ACRE
from plumecast.compute.regrid import overlap_weights
from plumecast.data.crs import as_crs, in_metres, latitude_longitude
from plumecast.physics.fuels import FUEL_CODES, fuel_table
from plumecast.sources.rasters import georeference
from plumecast.sources.rasters.files import read_raster
from plumecast.sources.rasters.georeference import read_fuel_load, target_grid
from plumecast.sources.wrf.frame import map_plane
from support.places import SHARED
from support.raster_files import (
    BOTTOM,
    COARSE,
    LEFT,
    NX,
    NY,
    SIZE,
    dataset,
    fire,
    integral,
    read,
    write_ascii,
    write_tiff,
)

pyproj = pytest.importorskip("pyproj")
rasterio = pytest.importorskip("rasterio")

FARSITE = SHARED / "fire-rasters" / "farsite"
needs_shared = pytest.mark.skipif(not FARSITE.is_dir(), reason="../shared/data is not here")


def centre(field: xr.DataArray) -> tuple[float, float]:
    """x and y of the centre of mass."""
    return tuple(float((field * field[axis]).sum() / field.sum()) for axis in "xy")


def transform(source: str, target: str, x: float, y: float) -> tuple[float, float]:
    return pyproj.Transformer.from_crs(source, target, always_xy=True).transform(x, y)


# -- aggregation


def test_place_burned_area_and_integral_are_kept_on_the_coarse_grid(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    fine, coarse = (read(path, hours=[1, 3], like=like) for like in (None, COARSE))
    np.testing.assert_allclose(integral(coarse, 130 * 110), integral(fine, SIZE**2), rtol=1e-6)
    np.testing.assert_allclose(coarse.burned_area, fine.burned_area)
    xr.testing.assert_equal(coarse.x.drop_attrs(), COARSE.x)
    last = [centre(ds.time_since_ignition[1]) for ds in (fine, coarse)]
    np.testing.assert_allclose(*last, rtol=0, atol=65.0)  # half a coarse cell
    oldest = read(path, hours=[3], like=COARSE, aggregate="max")
    assert float(oldest.time_since_ignition.max()) == pytest.approx(3.0)
    assert (oldest.time_since_ignition >= coarse.time_since_ignition[1]).all()


def test_a_data_array_and_a_smaller_domain_serve_as_template(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    field = (COARSE.x * 0 + COARSE.y * 0).transpose("y", "x")
    xr.testing.assert_equal(read(path, like=field), read(path, like=COARSE))
    inner = COARSE.assign_coords(x=1100.0 + 50 * np.arange(8), y=5100.0 + 30 * np.arange(7))
    assert read(path, like=inner).time_since_ignition.sizes == {"snapshot": 1, "y": 7, "x": 8}


# -- coordinate systems


UTM = "EPSG:32613"
ALBERS = "EPSG:5070"


def template(crs: object, x0: float, y0: float, step: float = 200.0) -> xr.Dataset:
    mapping = crs if isinstance(crs, dict) else pyproj.CRS(crs).to_cf()
    return xr.Dataset(
        coords={"x": x0 + step * np.arange(12), "y": y0 + step * np.arange(9),
                "crs": ((), 0, mapping)}
    )  # fmt: skip


def utm_tiff(path: Path) -> Path:
    at = rasterio.Affine(SIZE, 0, 400_000.0, 0, -SIZE, 4_150_000.0)
    return write_tiff(path, fire(), crs=UTM, transform=at)


def test_reprojection_keeps_place_area_and_integral(tmp_path):
    path = utm_tiff(tmp_path / "a.tif")
    fine = read(path)
    assert fine.crs.attrs["grid_mapping_name"] == "transverse_mercator"
    x, y = transform(UTM, ALBERS, 400_000.0, 4_149_640.0)
    coarse = read(path, like=template(ALBERS, x - 500, y - 500))
    # Albers is equal-area, UTM is scaled by 0.9996²..., so the planes differ by less than 0.1 %
    np.testing.assert_allclose(integral(coarse, 200.0**2), integral(fine, SIZE**2), rtol=1e-3)
    assert coarse.crs.attrs["grid_mapping_name"] == "albers_conical_equal_area"
    expected = transform(UTM, ALBERS, *centre(fine.time_since_ignition[0]))
    assert centre(coarse.time_since_ignition[0]) == pytest.approx(expected, abs=100)
    same = read(path, like=template(UTM, 399_900.0, 4_149_500.0))
    np.testing.assert_allclose(integral(same, 200.0**2), integral(fine, SIZE**2), rtol=1e-6)


def test_a_wrf_grid_mapping_is_a_template(tmp_path):
    attributes = {"MAP_PROJ": 1, "TRUELAT1": 36.0, "TRUELAT2": 39.0, "STAND_LON": -106.0,
                  "MOAD_CEN_LAT": 37.5}  # fmt: skip
    lon, lat = transform(UTM, "EPSG:4326", 400_000.0, 4_149_640.0)
    mapping, (x, y) = map_plane(attributes, lat, lon)
    template(mapping, x - 500, y - 500).to_netcdf(tmp_path / "like.nc")
    with xr.open_dataset(tmp_path / "like.nc") as like:
        coarse = read(utm_tiff(tmp_path / "a.tif"), like=like.load())
    assert float(coarse.time_since_ignition.max()) > 0


def test_crs_is_stated_for_files_that_carry_none(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    like = template(UTM, 900.0, 4900.0)
    note = r"no CRS in .*a\.asc: assumed that of the target grid, WGS 84 .* \(EPSG:32613\); state"
    with pytest.warns(UserWarning, match=note):
        assumed = read(path, like=like)
    named = read(path, like=like, crs=UTM)
    xr.testing.assert_equal(named, assumed)
    xr.testing.assert_equal(named, read(path, like=like, crs="local"))
    elsewhere = (
        r"crs is missing: .*a\.asc: no CRS, and with that of the target grid, .*, 100\.0% of the "
        r"burned area is outside the target grid: the fire is at x 1090 … 1450, y 5090 … 5210, "
        r"the grid at x 800 … 3200, y 900800 … 902600; give the CRS of the file"
    )
    with pytest.raises(PlumecastError, match=elsewhere):
        read(path, like=template(UTM, 900.0, 900_900.0))
    (tmp_path / "a.prj").write_text(as_crs(UTM, path).to_wkt())
    xr.testing.assert_equal(read(path, like=like), named)
    with pytest.raises(PlumecastError, match=r"crs='EPSG:5070': .*the file has another CRS"):
        read(path, crs=ALBERS)
    with pytest.raises(PlumecastError, match="grid has none; the CRS 'local' uses"):
        read(path, like=COARSE)
    assert float(read(path, like=COARSE, crs="local").time_since_ignition.max()) > 0


def test_a_fire_outside_the_grid_is_described_in_the_coordinates_of_the_grid(tmp_path):
    x, _ = transform(UTM, ALBERS, 4e5, 4.15e6)
    with pytest.raises(PlumecastError, match="the fire is at x") as error:
        read(utm_tiff(tmp_path / "a.tif"), like=template(ALBERS, 0, 0))
    left = float(str(error.value).split("the fire is at x ")[1].split(" …")[0])
    assert left == pytest.approx(x, abs=500.0)  # the fire is within 20 cells of 30 m


def degrees(lon: np.ndarray, lat: np.ndarray, path: Path) -> Path:
    ds = dataset(fire()).assign_coords(x=lon, y=lat)
    ds.x.attrs["units"] = "degrees_east"
    ds.to_netcdf(path)
    return path


def test_cell_areas_of_a_grid_in_degrees_are_those_on_the_sphere(tmp_path):
    out = read(degrees(-106 + 0.001 * np.arange(NX), 37 + 0.001 * np.arange(NY), tmp_path / "f.nc"))
    cell = 6_371_008.8**2 * np.radians(0.001) ** 2 * np.cos(np.radians(37.005))
    assert out.burned_area.item() == pytest.approx(15 * cell / M2_PER_ACRE, rel=1e-3)
    assert out.x.attrs["units"] == "degrees_east"


def test_a_fire_without_an_image_in_the_plane_is_refused(tmp_path):
    path = degrees(0.001 * np.arange(NX), 89.99 + 0.01 * np.arange(NY), tmp_path / "f.nc")
    with pytest.raises(PlumecastError, match=r"f\.nc: burned cells have no image"):
        read(path, like=template("EPSG:3395", 0.0, 0.0))


@pytest.mark.parametrize("code", ["EPSG:2232", "EPSG:5070", "EPSG:2232+5703"])
def test_metres_of_another_unit_are_the_same_places(code):
    crs = as_crs(code, "a.tif")
    x, y = 3_100_000.0, 1_600_000.0
    foot = crs.axis_info[0].unit_conversion_factor
    metres = in_metres(crs)
    assert {axis.unit_conversion_factor for axis in metres.axis_info} == {1.0}
    # a CF grid mapping keeps it
    back = as_crs(metres.to_cf(), "a.tif")
    lat, lon = latitude_longitude(back, np.array([y * foot]), np.array([x * foot]))
    expected = transform(crs, crs.geodetic_crs, x, y)
    np.testing.assert_allclose([lon.item(), lat.item()], expected, rtol=0, atol=1e-7)  # 1 cm


def test_survey_feet_are_converted(tmp_path):
    ds = read(write_ascii(tmp_path / "a.asc", fire()), crs="EPSG:2232")
    foot = 1200 / 3937
    assert ds.burned_area.item() == pytest.approx(15 * (SIZE * foot) ** 2 / M2_PER_ACRE)


# -- real FARSITE runs


@needs_shared
def test_panther_run():
    path = FARSITE / "panther_test1177973_ArrivalTime.asc"
    fine = read(path)
    assert 60 * fine.hours.item() == pytest.approx(4799.7, abs=0.01)
    like = xr.Dataset(  # a 3 km grid around the fire, at an odd offset
        coords={axis: np.arange(fine[axis][0] - 1234.5, fine[axis][-1] + 3000, 3000.0)
                for axis in "xy"}
    )  # fmt: skip
    coarse = read(path, like=like)
    np.testing.assert_allclose(integral(coarse, 3000.0**2), integral(fine, 30.0**2), rtol=1e-5)
    cells = np.flatnonzero(np.loadtxt(path, skiprows=6)[::-1] != -9999)
    weights = overlap_weights(read_raster(path).grid, target_grid(like).grid, cells)
    burned = weights.mean(np.ones(cells.size)).sum() * 3000.0**2
    assert burned == pytest.approx(cells.size * 900.0, rel=1e-3)
    assert coarse.burned_area.item() == pytest.approx(burned / M2_PER_ACRE, rel=1e-3)


@needs_shared
@pytest.mark.parametrize("wind", [60, 180, 300])
def test_fires_on_flat_land_spread_downwind(wind):
    """Wind from 60° drives the fire toward 240°, and so on: clockwise from north."""
    field = read(FARSITE / f"flatland_3mph{wind}deg7hr_ArrivalTime.asc").time_since_ignition[0]
    start = field.where(field == field.max(), drop=True)
    burned = field > 0
    shift = [float((burned * field[axis]).sum() / burned.sum() - start[axis].mean())
             for axis in "xy"]  # fmt: skip
    toward = np.radians(wind + 180)
    along = np.dot(shift, [np.sin(toward), np.cos(toward)]) / np.hypot(*shift)
    assert along > np.cos(np.radians(3))


# -- fuel rasters: the load of a grid cell

GR1, SB4, BARE = (FUEL_CODES[name] for name in ("GR1", "SB4", "NB9"))
LIGHT, HEAVY = fuel_table().total_load[[GR1, SB4]]
ROUNDING = 1e-6
"""Relative: loads are float32."""

BLOCKS = xr.Dataset(coords={"x": LEFT + SIZE * 5 * (np.arange(NX // 5) + 0.5),
                            "y": BOTTOM + SIZE * 4 * (np.arange(NY // 4) + 0.5)})  # fmt: skip
"""A grid of blocks of 4 × 5 raster cells."""


def test_the_load_of_a_cell_is_the_mean_over_the_cells_with_a_fuel(tmp_path, monkeypatch):
    monkeypatch.setattr(georeference, "_TOGETHER", 7)
    codes = np.full((NY, NX), float(GR1))
    codes[-1, :5] = SB4  # a quarter of the south-west cell
    codes[:4, -5:] = BARE
    codes[:1, :5] = np.nan  # a quarter is missing: the mean of the others
    codes[:3, 5:10] = np.nan  # three quarters: unknown
    expected = np.full((3, 4), LIGHT)
    expected[0, 0] = 0.75 * LIGHT + 0.25 * HEAVY
    expected[2, 1:] = np.nan, LIGHT, 0.0
    load = read_fuel_load(write_ascii(tmp_path / "fuels.asc", codes), BLOCKS)
    np.testing.assert_allclose(load, expected, rtol=ROUNDING)


def test_a_fuel_raster_in_another_plane_is_projected(tmp_path):
    path = write_tiff(tmp_path / "fuels.tif", np.full((NY, NX), SB4), crs=ALBERS)
    x, y = transform(ALBERS, "EPSG:32614", LEFT + SIZE * NX / 2, BOTTOM + SIZE * NY / 2)
    steps = 60.0 * np.arange(-6, 7)
    grid = xr.Dataset(coords={"x": x + steps, "y": y + steps}, attrs={"crs": "EPSG:32614"})
    load = read_fuel_load(path, grid)
    area = np.isfinite(load).sum() * 60.0**2
    assert area == pytest.approx(NX * NY * SIZE**2, rel=0.1)  # cells at the edge count or not
    np.testing.assert_allclose(load[np.isfinite(load)], HEAVY, rtol=ROUNDING)
    with pytest.raises(PlumecastError, match=r"fuels\.tif: has a CRS, the target grid has none"):
        read_fuel_load(path, BLOCKS)
    np.testing.assert_allclose(read_fuel_load(path, BLOCKS, crs="local"), HEAVY, rtol=ROUNDING)


@pytest.mark.parametrize(
    ("code", "header", "message"),
    [
        (5, {}, r"a\.asc: unknown fuel 5; known are"),
        (np.nan, {}, r"a\.asc: no cell has a fuel"),
        (GR1, {"XLLCORNER": 9e5}, r"a\.asc covers no cell of the grid \(x from 1000"),
    ],
)
def test_wrong_fuel_rasters_are_named(tmp_path, code, header, message):
    path = write_ascii(tmp_path / "a.asc", np.full((NY, NX), code), **header)
    with pytest.raises(PlumecastError, match=message):
        read_fuel_load(path, BLOCKS)
