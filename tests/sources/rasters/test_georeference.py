"""Rasters on a target grid: area-weighted aggregation, coordinate systems, real fires."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import M2_PER_ACRE
from plumecast.compute.regrid import overlap_weights
from plumecast.data.crs import as_crs, in_metres, latitude_longitude
from plumecast.sources.rasters import RasterOptions, read_arrival_times
from plumecast.sources.rasters.files import read_raster
from plumecast.sources.rasters.georeference import target_grid
from support.places import SHARED
from support.raster_files import (
    COARSE,
    NX,
    NY,
    SIZE,
    dataset,
    fire,
    integral,
    write_ascii,
    write_tiff,
)

FARSITE = SHARED / "fire-rasters" / "farsite"
needs_shared = pytest.mark.skipif(not FARSITE.is_dir(), reason="../shared/data is not here")


# -- aggregation


def test_burned_area_and_integral_are_kept_on_the_coarse_grid(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    fine = read_arrival_times(path, RasterOptions(format="farsite", hours=[1, 3]))
    coarse = read_arrival_times(path, RasterOptions(format="farsite", hours=[1, 3], like=COARSE))
    np.testing.assert_allclose(integral(coarse, 130 * 110), integral(fine, SIZE**2), rtol=1e-6)
    np.testing.assert_allclose(coarse.burned_area, fine.burned_area)
    xr.testing.assert_equal(coarse.x.drop_attrs(), COARSE.x)
    oldest = read_arrival_times(
        path, RasterOptions(format="farsite", hours=[3], like=COARSE, aggregate="max")
    )
    assert float(oldest.time_since_ignition.max()) == pytest.approx(3.0)
    assert (oldest.time_since_ignition >= coarse.time_since_ignition[1]).all()


def test_the_coarse_fire_lies_where_the_fine_one_does(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    fine = read_arrival_times(path, RasterOptions(format="farsite")).time_since_ignition[0]
    coarse = read_arrival_times(
        path, RasterOptions(format="farsite", like=COARSE)
    ).time_since_ignition[0]
    for axis in "xy":
        centre = [float((f * f[axis]).sum() / f.sum()) for f in (fine, coarse)]
        assert centre[1] == pytest.approx(centre[0], abs=65.0)  # half a coarse cell


def test_a_data_array_serves_as_template(tmp_path):
    template = (COARSE.x * 0 + COARSE.y * 0).transpose("y", "x")
    path = write_ascii(tmp_path / "a.asc", fire())
    ds = read_arrival_times(path, RasterOptions(format="farsite", like=template))
    xr.testing.assert_equal(
        ds, read_arrival_times(path, RasterOptions(format="farsite", like=COARSE))
    )
    with pytest.raises(PlumecastError, match="like has no coordinates y and x"):
        read_arrival_times(
            path, RasterOptions(format="farsite", like=xr.Dataset(coords={"lat": [0.0, 1.0]}))
        )


# -- coordinate systems


UTM = "EPSG:32613"
ALBERS = "EPSG:5070"


def template(crs: str, x0: float, y0: float, step: float = 200.0) -> xr.Dataset:
    pyproj = pytest.importorskip("pyproj")
    return xr.Dataset(
        coords={"x": x0 + step * np.arange(12), "y": y0 + step * np.arange(9),
                "crs": ((), 0, pyproj.CRS(crs).to_cf())}
    )  # fmt: skip


def utm_tiff(path: Path) -> Path:
    rasterio = pytest.importorskip("rasterio")
    at = rasterio.Affine(SIZE, 0, 400_000.0, 0, -SIZE, 4_150_000.0)
    return write_tiff(path, fire(), crs=UTM, transform=at)


def test_reprojection_keeps_place_area_and_integral(tmp_path):
    pyproj = pytest.importorskip("pyproj")
    path = utm_tiff(tmp_path / "a.tif")
    fine = read_arrival_times(path, RasterOptions(format="farsite"))
    assert fine.crs.attrs["grid_mapping_name"] == "transverse_mercator"
    move = pyproj.Transformer.from_crs(UTM, ALBERS, always_xy=True).transform
    x, y = move(400_000.0, 4_149_640.0)
    like = template(ALBERS, x - 500, y - 500)
    coarse = read_arrival_times(path, RasterOptions(format="farsite", like=like))
    # Albers is equal-area, UTM is scaled by 0.9996²..., so the planes differ by less than 0.1 %
    np.testing.assert_allclose(integral(coarse, 200.0**2), integral(fine, SIZE**2), rtol=1e-3)
    assert coarse.crs.attrs["grid_mapping_name"] == "albers_conical_equal_area"
    f, c = fine.time_since_ignition[0], coarse.time_since_ignition[0]
    centre = move(float((f * f.x).sum() / f.sum()), float((f * f.y).sum() / f.sum()))
    assert float((c * c.x).sum() / c.sum()) == pytest.approx(centre[0], abs=100)
    assert float((c * c.y).sum() / c.sum()) == pytest.approx(centre[1], abs=100)


def test_the_same_crs_needs_no_reprojection(tmp_path):
    path = utm_tiff(tmp_path / "a.tif")
    like = template(UTM, 399_900.0, 4_149_500.0)
    coarse = read_arrival_times(path, RasterOptions(format="farsite", like=like))
    fine = read_arrival_times(path, RasterOptions(format="farsite"))
    np.testing.assert_allclose(integral(coarse, 200.0**2), integral(fine, SIZE**2), rtol=1e-6)


def test_a_wrf_grid_mapping_is_a_template(tmp_path):
    pyproj = pytest.importorskip("pyproj")
    from plumecast.sources.wrf.frame import map_plane

    attributes = {"MAP_PROJ": 1, "TRUELAT1": 36.0, "TRUELAT2": 39.0, "STAND_LON": -106.0,
                  "MOAD_CEN_LAT": 37.5}  # fmt: skip
    lon, lat = pyproj.Transformer.from_crs(UTM, "EPSG:4326", always_xy=True).transform(
        400_000.0, 4_149_640.0
    )
    mapping, (x, y) = map_plane(attributes, lat, lon)
    like = xr.Dataset(
        coords={"x": x - 500 + 200 * np.arange(12), "y": y - 500 + 200 * np.arange(9),
                "crs": ((), 0, mapping)}
    )  # fmt: skip
    like.to_netcdf(tmp_path / "like.nc")
    with xr.open_dataset(tmp_path / "like.nc") as back:
        coarse = read_arrival_times(
            utm_tiff(tmp_path / "a.tif"), RasterOptions(format="farsite", like=back.load())
        )
    assert float(coarse.time_since_ignition.max()) > 0


def test_crs_is_stated_for_files_that_carry_none(tmp_path):
    pytest.importorskip("pyproj")
    path = write_ascii(tmp_path / "a.asc", fire())
    like = template(UTM, 900.0, 4900.0)
    said = r"no CRS in .*a\.asc: assumed that of the target grid, WGS 84 .* \(EPSG:32613\); state"
    with pytest.warns(UserWarning, match=said):
        assumed = read_arrival_times(path, RasterOptions(format="farsite", like=like))
    stated = read_arrival_times(path, RasterOptions(format="farsite", like=like, crs=UTM))
    local = read_arrival_times(path, RasterOptions(format="farsite", like=like, crs="local"))
    xr.testing.assert_equal(stated, local)
    xr.testing.assert_equal(stated, assumed)
    elsewhere = (
        r"crs is missing: .*a\.asc: no CRS, and with that of the target grid, .*, 100\.0% of the "
        r"burned area is outside the target grid: the fire is at x 1090 … 1450, y 5090 … 5210, "
        r"the grid at x 800 … 3200, y 900800 … 902600; give the CRS of the file"
    )
    with pytest.raises(PlumecastError, match=elsewhere):
        read_arrival_times(
            path, RasterOptions(format="farsite", like=template(UTM, 900.0, 900_900.0))
        )
    (tmp_path / "a.prj").write_text(as_crs(UTM, path).to_wkt())
    xr.testing.assert_equal(
        read_arrival_times(path, RasterOptions(format="farsite", like=like)), stated
    )
    with pytest.raises(PlumecastError, match=r"crs='EPSG:5070': .*the file has another CRS"):
        read_arrival_times(path, RasterOptions(format="farsite", crs=ALBERS))
    with pytest.raises(PlumecastError, match="grid has none; the CRS 'local' uses"):
        read_arrival_times(path, RasterOptions(format="farsite", like=COARSE))
    local = read_arrival_times(path, RasterOptions(format="farsite", like=COARSE, crs="local"))
    assert float(local.time_since_ignition.max()) > 0
    with pytest.raises(PlumecastError, match="unknown CRS 'nowhere'"):
        read_arrival_times(
            write_ascii(tmp_path / "b.asc", fire()), RasterOptions(format="farsite", crs="nowhere")
        )


def test_cell_areas_of_a_grid_in_degrees_are_those_on_the_sphere(tmp_path):
    pytest.importorskip("pyproj")
    ds = dataset(fire())
    ds = ds.assign_coords(x=-106 + 0.001 * np.arange(NX), y=37 + 0.001 * np.arange(NY))
    ds.x.attrs["units"] = "degrees_east"
    ds.to_netcdf(tmp_path / "f.nc")
    out = read_arrival_times(tmp_path / "f.nc", RasterOptions(unit="min"))
    cell = 6_371_008.8**2 * np.radians(0.001) ** 2 * np.cos(np.radians(37.005))
    assert out.burned_area.item() == pytest.approx(15 * cell / M2_PER_ACRE, rel=1e-3)
    assert out.x.attrs["units"] == "degrees_east"


def test_fire_outside_the_grid_is_described_in_the_coordinates_of_the_grid(tmp_path):
    pyproj = pytest.importorskip("pyproj")
    x, _ = pyproj.Transformer.from_crs(UTM, ALBERS, always_xy=True).transform(4e5, 4.15e6)
    with pytest.raises(PlumecastError, match="the fire is at x") as told:
        read_arrival_times(
            utm_tiff(tmp_path / "a.tif"), RasterOptions(unit="min", like=template(ALBERS, 0, 0))
        )
    found = float(str(told.value).split("the fire is at x ")[1].split(" …")[0])
    assert found == pytest.approx(x, abs=500.0)  # the fire is within 20 cells of 30 m


@pytest.mark.parametrize("code", ["EPSG:2232", "EPSG:5070", "EPSG:2232+5703"])
def test_metres_of_another_unit_are_the_same_places(code):
    pyproj = pytest.importorskip("pyproj")
    crs = as_crs(code, "a.tif")
    x, y = 3_100_000.0, 1_600_000.0
    foot = crs.axis_info[0].unit_conversion_factor
    metres = in_metres(crs)
    assert {axis.unit_conversion_factor for axis in metres.axis_info} == {1.0}
    # a CF grid mapping keeps it
    back = as_crs(metres.to_cf(), "a.tif")
    lat, lon = latitude_longitude(back, np.array([y * foot]), np.array([x * foot]))
    move = pyproj.Transformer.from_crs(crs, crs.geodetic_crs, always_xy=True).transform
    np.testing.assert_allclose([lon.item(), lat.item()], move(x, y), rtol=0, atol=1e-7)  # 1 cm


def test_survey_feet_are_converted(tmp_path):
    pytest.importorskip("pyproj")
    path = write_ascii(tmp_path / "a.asc", fire())
    ds = read_arrival_times(path, RasterOptions(format="farsite", crs="EPSG:2232"))
    foot = 1200 / 3937
    assert ds.burned_area.item() == pytest.approx(15 * (SIZE * foot) ** 2 / M2_PER_ACRE)


def test_a_fire_without_an_image_in_the_plane_is_refused(tmp_path):
    ds = dataset(fire()).assign_coords(x=0.001 * np.arange(NX), y=89.99 + 0.01 * np.arange(NY))
    ds.x.attrs["units"] = "degrees_east"
    ds.to_netcdf(tmp_path / "f.nc")
    like = template("EPSG:3395", 0.0, 0.0)
    with pytest.raises(PlumecastError, match=r"f\.nc: burned cells have no image"):
        read_arrival_times(tmp_path / "f.nc", RasterOptions(unit="min", like=like))


# -- real FARSITE runs


def kilometres(fine: xr.Dataset) -> xr.Dataset:
    """A 3 km grid around a fire, at an odd offset."""
    x, y = fine.x.values, fine.y.values
    return xr.Dataset(
        coords={
            axis: np.arange(c[0] - 1234.5, c[-1] + 3000, 3000.0) for axis, c in (("x", x), ("y", y))
        }
    )


@needs_shared
def test_panther_run():
    path = FARSITE / "panther_test1177973_ArrivalTime.asc"
    fine = read_arrival_times(path, RasterOptions(format="farsite"))
    assert 60 * fine.hours.item() == pytest.approx(4799.7, abs=0.01)
    like = kilometres(fine)
    coarse = read_arrival_times(path, RasterOptions(format="farsite", like=like))
    np.testing.assert_allclose(integral(coarse, 3000.0**2), integral(fine, 30.0**2), rtol=1e-5)
    raw = np.loadtxt(path, skiprows=6)[::-1]
    grid = read_raster(path).grid
    cells = np.flatnonzero(raw != -9999)
    weights = overlap_weights(grid, target_grid(like).grid, cells)
    burned = weights.mean(np.ones(cells.size)).sum() * 3000.0**2
    assert burned == pytest.approx(cells.size * 900.0, rel=1e-3)
    assert coarse.burned_area.item() == pytest.approx(burned / M2_PER_ACRE, rel=1e-3)


@needs_shared
@pytest.mark.parametrize("wind", [60, 180, 300])
def test_fires_on_flat_land_spread_downwind(wind):
    """Wind from 60° drives the fire toward 240°, and so on: clockwise from north."""
    path = FARSITE / f"flatland_3mph{wind}deg7hr_ArrivalTime.asc"
    field = read_arrival_times(path, RasterOptions(format="farsite")).time_since_ignition[0]
    start = field.where(field == field.max(), drop=True)
    burned = field > 0
    shift = [float((burned * field[axis]).sum() / burned.sum() - start[axis].mean())
             for axis in "xy"]  # fmt: skip
    toward = np.radians(wind + 180)
    along = np.dot(shift, [np.sin(toward), np.cos(toward)]) / np.hypot(*shift)
    assert along > np.cos(np.radians(3))
