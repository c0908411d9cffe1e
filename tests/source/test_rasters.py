"""Arrival-time rasters: formats, orientation, area-weighted aggregation, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast.constants import M2_PER_ACRE
from plumecast.errors import PlumecastError
from plumecast.source import rasters
from plumecast.source.rasters import iter_arrival_times, read_arrival_times

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "fire-rasters" / "farsite"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not here")

SIZE, NX, NY, LEFT, BOTTOM = 30.0, 20, 12, 1000.0, 5000.0
COARSE = xr.Dataset(coords={"x": 900.0 + 130 * np.arange(8), "y": 4900.0 + 110 * np.arange(7)})
NAN = np.nan


def fire(minutes_per_cell: float = 10.0) -> np.ndarray:
    """Arrival in minutes, north row first: an L whose long arm points east, short arm north."""
    arrival = np.full((NY, NX), NAN)
    arrival[8, 3:15] = minutes_per_cell * np.arange(12)
    arrival[5:8, 3] = minutes_per_cell * np.array([3, 2, 1])
    return arrival


def write_ascii(path: Path, arrival: np.ndarray, *, centre: bool = False, **header: object) -> Path:
    kind, shift = ("CENTER", SIZE / 2) if centre else ("CORNER", 0.0)
    lines = {"NCOLS": NX, "NROWS": NY, f"XLL{kind}": LEFT + shift, f"YLL{kind}": BOTTOM + shift,
             "CELLSIZE": SIZE, "NODATA_VALUE": -9999.0, **header}  # fmt: skip
    text = [f"{key} {value}" for key, value in lines.items() if value is not None]
    text += [" ".join(f"{v:g}" for v in row) for row in np.where(np.isnan(arrival), -9999, arrival)]
    path.write_text("\n".join(text) + "\n")
    return path


def write_tiff(path: Path, bands: np.ndarray, *, crs: str | None = None, **profile: object) -> Path:
    rasterio = pytest.importorskip("rasterio")
    bands = np.atleast_3d(bands.T).T.astype(np.float32)
    transform = rasterio.Affine(SIZE, 0, LEFT, 0, -SIZE, BOTTOM + NY * SIZE)
    options = {"transform": transform, "nodata": -9999.0, "crs": crs, **profile}
    with rasterio.open(path, "w", driver="GTiff", height=bands.shape[1], width=bands.shape[2],
                       count=bands.shape[0], dtype="float32", **options) as file:  # fmt: skip
        file.write(np.where(np.isnan(bands), -9999.0, bands))
    return path


def dataset(arrival: np.ndarray, **attrs: str) -> xr.Dataset:
    """South row first, as most NetCDF files are."""
    x = LEFT + (np.arange(NX) + 0.5) * SIZE
    y = BOTTOM + (np.arange(NY) + 0.5) * SIZE
    field = xr.DataArray(arrival[::-1], {"y": y, "x": x}, ("y", "x"), attrs=attrs)
    return xr.Dataset({"arrival": field})


# -- values and orientation


def test_final_field_is_the_age_at_the_latest_arrival(tmp_path):
    ds = read_arrival_times(write_ascii(tmp_path / "a.asc", fire()), format="farsite")
    expected = np.nan_to_num(np.maximum(110 - fire()[::-1], 0) / 60)
    np.testing.assert_allclose(ds.time_since_ignition[0], expected, rtol=1e-6)
    assert ds.hours.item() == pytest.approx(110 / 60)
    assert ds.burned_area.item() == pytest.approx(15 * SIZE**2 / M2_PER_ACRE)
    assert ds.fire_id.values.tolist() == ["a"]
    assert ds.is_final.values.tolist() == [True]
    assert ds.time_since_ignition.dtype == np.float32


def test_north_is_up(tmp_path):
    """The first row of the file is the northernmost; y grows with the row of the result."""
    ds = read_arrival_times(write_ascii(tmp_path / "a.asc", fire()), format="farsite")
    field = ds.time_since_ignition[0]
    assert (np.diff(ds.y) > 0).all()
    ignition = field.where(field == field.max(), drop=True)
    assert ignition.x.item() == LEFT + 3.5 * SIZE
    assert ignition.y.item() == BOTTOM + 3.5 * SIZE  # row 8 of 12 from the north
    burned = field > 0
    assert burned.any("x").where(lambda row: row, drop=True).y.max() == BOTTOM + 6.5 * SIZE
    assert burned.any("y").where(lambda column: column, drop=True).x.max() == LEFT + 13.5 * SIZE


def test_series_at_checkpoints(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    ds = read_arrival_times(path, format="farsite", hours=[0.5, 1, 3])
    assert ds.hours.values.tolist() == [0.5, 1, 3]
    assert ds.is_final.values.tolist() == [False, False, True]
    cells = [(fire() <= 60 * t).sum() for t in (0.5, 1, 3)]
    np.testing.assert_allclose(ds.burned_area, np.array(cells) * SIZE**2 / M2_PER_ACRE)
    assert (np.diff(ds.time_since_ignition, axis=0) >= 0).all()
    assert float(ds.time_since_ignition[2].max()) == pytest.approx(3.0)


def test_hours_count_from_the_earliest_arrival(tmp_path):
    late = read_arrival_times(write_ascii(tmp_path / "a.asc", fire() + 90), unit="min", hours=[1.0])
    soon = read_arrival_times(write_ascii(tmp_path / "b.asc", fire()), unit="min", hours=[1.0])
    np.testing.assert_allclose(late.time_since_ignition, soon.time_since_ignition, rtol=1e-6)


@pytest.mark.parametrize(("unit", "factor"), [("s", 60.0), ("min", 1.0), ("h", 1 / 60)])
def test_units(tmp_path, unit, factor):
    path = write_ascii(tmp_path / "a.asc", factor * fire())
    ds = read_arrival_times(path, unit=unit)
    assert ds.hours.item() == pytest.approx(110 / 60, rel=1e-4)


# -- file formats


def test_all_file_formats_agree(tmp_path):
    ascii_ds = read_arrival_times(write_ascii(tmp_path / "f.asc", fire()), format="farsite")
    centre = tmp_path / "centre"
    centre.mkdir()
    write_ascii(centre / "f.asc", fire(), centre=True, NODATA_VALUE=None)
    dataset(fire()).to_netcdf(tmp_path / "f.nc")
    dataset(fire()).isel(y=slice(None, None, -1)).transpose("x", "y").to_netcdf(centre / "f.nc")
    same = [
        read_arrival_times(centre / "f.asc", format="farsite"),
        read_arrival_times(tmp_path / "f.nc", format="pyretechnics"),
        read_arrival_times(centre / "f.nc", unit="min"),
    ]
    for ds in same:
        xr.testing.assert_allclose(ds, ascii_ds)


def test_geotiff_north_up_and_south_up_agree(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    plain = read_arrival_times(write_ascii(tmp_path / "f.asc", fire()), format="farsite")
    north = read_arrival_times(write_tiff(tmp_path / "f.tif", 60 * fire()), format="elmfire")
    xr.testing.assert_allclose(north, plain)
    south_up = rasterio.Affine(SIZE, 0, LEFT, 0, SIZE, BOTTOM)
    (tmp_path / "s").mkdir()
    south = write_tiff(tmp_path / "s" / "f.tif", 60 * fire()[::-1], transform=south_up)
    xr.testing.assert_allclose(read_arrival_times(south, format="elmfire"), plain)


def test_landis_day_of_fire_per_event(tmp_path):
    days = np.full((NY, NX), 999.0)
    days[:2] = 0  # inactive
    days[4, 3:8] = [200, 200, 201, 203, 203]
    days[9, 10:13] = [240, 241, 242]
    events = np.zeros((NY, NX))
    events[4, 3:8] = 7
    events[9, 10:13] = 12
    write_tiff(tmp_path / "event-ID-5.tif", events, nodata=None)
    path = write_tiff(tmp_path / "day-of-fire-5.tif", days, nodata=None)
    ds = read_arrival_times(path, format="landis")
    assert ds.fire_id.values.tolist() == ["day-of-fire-5-event-7", "day-of-fire-5-event-12"]
    # the last day counts as burned through: four days and three days
    assert ds.hours.values.tolist() == [96.0, 72.0]
    assert ds.time_since_ignition[0].values[NY - 5, 3:8].tolist() == [96, 96, 72, 24, 24]
    assert ds.time_since_ignition[1].values[NY - 10, 10:13].tolist() == [72, 48, 24]
    (tmp_path / "event-ID-5.tif").unlink()
    with pytest.raises(PlumecastError, match="no event-ID map beside it"):
        read_arrival_times(path, format="landis")


def test_landis_event_map_must_share_the_grid(tmp_path):
    path = write_tiff(tmp_path / "day-of-fire-5.tif", np.full((NY, NX), 200.0))
    write_tiff(tmp_path / "event-ID-5.tif", np.ones((NY, NX - 1)))
    with pytest.raises(PlumecastError, match="its grid differs"):
        read_arrival_times(path, format="landis")


def test_netcdf_variable_is_picked_by_name(tmp_path):
    two = dataset(fire()).assign(speed=lambda ds: ds.arrival * 0)
    two.to_netcdf(tmp_path / "f.nc")
    with pytest.raises(PlumecastError, match="state variable, one of arrival, speed"):
        read_arrival_times(tmp_path / "f.nc", unit="min")
    ds = read_arrival_times(tmp_path / "f.nc", unit="min", variable="arrival")
    assert ds.hours.item() == pytest.approx(110 / 60)


def test_a_time_unit_in_the_file_is_not_decoded(tmp_path):
    dataset(fire(), units="minutes").to_netcdf(tmp_path / "f.nc")
    assert read_arrival_times(tmp_path / "f.nc", unit="min").hours.item() == pytest.approx(110 / 60)


# -- aggregation


def integral(ds: xr.Dataset, cell: float) -> np.ndarray:
    return ds.time_since_ignition.astype(float).sum(("y", "x")).values * cell


def test_burned_area_and_integral_are_kept_on_the_coarse_grid(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    fine = read_arrival_times(path, format="farsite", hours=[1, 3])
    coarse = read_arrival_times(path, format="farsite", hours=[1, 3], like=COARSE)
    np.testing.assert_allclose(integral(coarse, 130 * 110), integral(fine, SIZE**2), rtol=1e-6)
    np.testing.assert_allclose(coarse.burned_area, fine.burned_area)
    xr.testing.assert_equal(coarse.x.drop_attrs(), COARSE.x)
    oldest = read_arrival_times(path, format="farsite", hours=[3], like=COARSE, aggregate="max")
    assert float(oldest.time_since_ignition.max()) == pytest.approx(3.0)
    assert (oldest.time_since_ignition >= coarse.time_since_ignition[1]).all()


def test_the_coarse_fire_lies_where_the_fine_one_does(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    fine = read_arrival_times(path, format="farsite").time_since_ignition[0]
    coarse = read_arrival_times(path, format="farsite", like=COARSE).time_since_ignition[0]
    for axis in "xy":
        centre = [float((f * f[axis]).sum() / f.sum()) for f in (fine, coarse)]
        assert centre[1] == pytest.approx(centre[0], abs=65.0)  # half a coarse cell


def test_a_data_array_serves_as_template(tmp_path):
    template = (COARSE.x * 0 + COARSE.y * 0).transpose("y", "x")
    path = write_ascii(tmp_path / "a.asc", fire())
    ds = read_arrival_times(path, format="farsite", like=template)
    xr.testing.assert_equal(ds, read_arrival_times(path, format="farsite", like=COARSE))
    with pytest.raises(PlumecastError, match="like has no coordinates y and x"):
        read_arrival_times(path, format="farsite", like=xr.Dataset(coords={"lat": [0.0, 1.0]}))


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
    fine = read_arrival_times(path, format="farsite")
    assert fine.crs.attrs["grid_mapping_name"] == "transverse_mercator"
    move = pyproj.Transformer.from_crs(UTM, ALBERS, always_xy=True).transform
    x, y = move(400_000.0, 4_149_640.0)
    like = template(ALBERS, x - 500, y - 500)
    coarse = read_arrival_times(path, format="farsite", like=like)
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
    coarse = read_arrival_times(path, format="farsite", like=like)
    fine = read_arrival_times(path, format="farsite")
    np.testing.assert_allclose(integral(coarse, 200.0**2), integral(fine, SIZE**2), rtol=1e-6)


def test_a_wrf_grid_mapping_is_a_template(tmp_path):
    pyproj = pytest.importorskip("pyproj")
    from plumecast.source.regrid import map_plane

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
            utm_tiff(tmp_path / "a.tif"), format="farsite", like=back.load()
        )
    assert float(coarse.time_since_ignition.max()) > 0


def test_crs_is_stated_for_files_that_carry_none(tmp_path):
    pytest.importorskip("pyproj")
    path = write_ascii(tmp_path / "a.asc", fire())
    like = template(UTM, 900.0, 4900.0)
    with pytest.raises(PlumecastError, match=r"a\.asc: no CRS, and the grid of `like` has one"):
        read_arrival_times(path, format="farsite", like=like)
    stated = read_arrival_times(path, format="farsite", like=like, crs=UTM)
    local = read_arrival_times(path, format="farsite", like=like, crs="local")
    xr.testing.assert_equal(stated, local)
    (tmp_path / "a.prj").write_text(rasters._crs(UTM, path).to_wkt())
    xr.testing.assert_equal(read_arrival_times(path, format="farsite", like=like), stated)
    with pytest.raises(PlumecastError, match="has a CRS of its own"):
        read_arrival_times(path, format="farsite", crs=ALBERS)
    with pytest.raises(PlumecastError, match=r'like` has none; crs="local"'):
        read_arrival_times(path, format="farsite", like=COARSE)
    local = read_arrival_times(path, format="farsite", like=COARSE, crs="local")
    assert float(local.time_since_ignition.max()) > 0
    with pytest.raises(PlumecastError, match="unknown CRS 'nowhere'"):
        read_arrival_times(write_ascii(tmp_path / "b.asc", fire()), format="farsite", crs="nowhere")


def test_degrees_have_an_area_on_the_sphere(tmp_path):
    pytest.importorskip("pyproj")
    ds = dataset(fire())
    ds = ds.assign_coords(x=-106 + 0.001 * np.arange(NX), y=37 + 0.001 * np.arange(NY))
    ds.x.attrs["units"] = "degrees_east"
    ds.to_netcdf(tmp_path / "f.nc")
    out = read_arrival_times(tmp_path / "f.nc", unit="min")
    cell = 6_371_008.8**2 * np.radians(0.001) ** 2 * np.cos(np.radians(37.005))
    assert out.burned_area.item() == pytest.approx(15 * cell / M2_PER_ACRE, rel=1e-3)
    assert out.x.attrs["units"] == "degrees_east"


def test_survey_feet_are_converted(tmp_path):
    pytest.importorskip("pyproj")
    path = write_ascii(tmp_path / "a.asc", fire())
    ds = read_arrival_times(path, format="farsite", crs="EPSG:2232")
    foot = 1200 / 3937
    assert ds.burned_area.item() == pytest.approx(15 * (SIZE * foot) ** 2 / M2_PER_ACRE)


def test_a_fire_without_an_image_in_the_plane_is_refused(tmp_path):
    ds = dataset(fire()).assign_coords(x=0.001 * np.arange(NX), y=89.99 + 0.01 * np.arange(NY))
    ds.x.attrs["units"] = "degrees_east"
    ds.to_netcdf(tmp_path / "f.nc")
    like = template("EPSG:3395", 0.0, 0.0)
    with pytest.raises(PlumecastError, match=r"f\.nc: burned cells have no image"):
        read_arrival_times(tmp_path / "f.nc", unit="min", like=like)


# -- many files


def test_files_stream_in_batches(tmp_path):
    for number in range(7):
        write_ascii(tmp_path / f"f{number}.asc", fire(10 + number))
    (tmp_path / "f3.asc").write_text("ncols 3\nnrows x\n")
    errors: list[str] = []
    batches = list(
        iter_arrival_times(
            str(tmp_path / "*.asc"),
            batch=3,
            on_error=lambda path, message: errors.append(path.name),
            format="farsite",
            like=COARSE,
        )
    )
    assert [batch.fire_id.values.tolist() for batch in batches] == [
        ["f0", "f1", "f2"], ["f4", "f5"], ["f6"]
    ]  # fmt: skip
    assert errors == ["f3.asc"]
    one = read_arrival_times(tmp_path / "f5.asc", format="farsite", like=COARSE)
    xr.testing.assert_equal(batches[1].isel(snapshot=[1]), one)
    with pytest.raises(PlumecastError, match=r"f3\.asc"):
        list(iter_arrival_times(tmp_path, format="farsite"))


def test_two_fires_with_one_id_are_refused(tmp_path):
    (tmp_path / "b").mkdir()
    paths = [write_ascii(tmp_path / "f.asc", fire()), write_ascii(tmp_path / "b" / "f.asc", fire())]
    with pytest.raises(PlumecastError, match=r"b/f\.asc: a fire named 'f' was read before"):
        read_arrival_times(paths, format="farsite")


def test_files_on_different_grids_need_a_template(tmp_path):
    paths = [write_ascii(tmp_path / "a.asc", fire()),
             write_ascii(tmp_path / "b.asc", fire(), XLLCORNER=LEFT + 10)]  # fmt: skip
    with pytest.raises(PlumecastError, match="b: its grid differs from that of a; give like"):
        read_arrival_times(paths, format="farsite")
    assert read_arrival_times(paths, format="farsite", like=COARSE).sizes["snapshot"] == 2


# -- refused


def test_the_unit_is_never_guessed(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    with pytest.raises(
        PlumecastError,
        match=r"a\.asc: the unit .* not stated; give unit \(s, min, h, d\) or a format",
    ):
        read_arrival_times(path)
    with pytest.raises(PlumecastError, match=r"a\.asc: unit='weeks'"):
        next(iter_arrival_times(path, unit="weeks", on_error=lambda *_: None))
    with pytest.raises(PlumecastError, match="format='spark'"):
        read_arrival_times(path, format="spark")
    with pytest.raises(PlumecastError, match="aggregate='sum'"):
        read_arrival_times(path, unit="min", aggregate="sum")
    for hours in ([], [2, 1], [0, 1], [[1, 2]]):
        with pytest.raises(PlumecastError, match="give increasing hours above 0"):
            read_arrival_times(path, unit="min", hours=hours)


def test_a_wrong_unit_exceeds_the_horizon(tmp_path):
    path = write_ascii(tmp_path / "a.asc", 100 * fire())
    with pytest.raises(
        PlumecastError, match=r"a\.asc: the latest arrival is 11000 h .*horizon=720"
    ):
        read_arrival_times(path, unit="h")
    with pytest.raises(PlumecastError, match="horizon=24"):
        read_arrival_times(path, unit="min", horizon=24)
    assert read_arrival_times(path, unit="h", horizon=12_000).hours.item() == 11_000


def test_a_fire_outside_the_domain_is_refused(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    with pytest.raises(PlumecastError, match=r"a\.asc: 100\.0% of the burned area is outside"):
        read_arrival_times(path, format="farsite", like=COARSE.assign_coords(x=COARSE.x + 1e5))
    # a domain that ends one cell short of the eastern tip
    grid = {"x": LEFT + SIZE * (np.arange(-7, 14) + 0.5), "y": COARSE.y}
    with pytest.raises(PlumecastError, match=r"6\.7% of the burned area is outside"):
        read_arrival_times(path, format="farsite", like=xr.Dataset(coords=grid))


def test_a_domain_smaller_than_the_raster_is_fine_where_nothing_burns(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    inner = COARSE.assign_coords(x=1100.0 + 50 * np.arange(8), y=5100.0 + 30 * np.arange(7))
    ds = read_arrival_times(path, format="farsite", like=inner)
    assert ds.sizes == {"snapshot": 1, "y": 7, "x": 8}


def test_negative_arrival_needs_a_stated_nodata(tmp_path):
    path = write_ascii(tmp_path / "a.asc", np.where(np.isnan(fire()), -1, fire()))
    with pytest.raises(PlumecastError, match="arrival time -1 is negative; state nodata"):
        read_arrival_times(path, unit="min")
    ds = read_arrival_times(path, unit="min", nodata=-1)
    assert ds.burned_area.item() == pytest.approx(15 * SIZE**2 / M2_PER_ACRE)


def bad(tmp_path: Path, name: str) -> Path:
    path = tmp_path / (name + (".nc" if name.startswith("nc") else ".asc"))
    if name == "nodata":
        return write_ascii(path, np.full((NY, NX), NAN))
    if name == "short":
        return write_ascii(path, fire()[:-1])
    if name == "word":
        write_ascii(path, fire())
        path.write_text(path.read_text().replace("110", "late"))
    elif name == "no_size":
        write_ascii(path, fire(), CELLSIZE=None)
    elif name == "nc_time":
        dataset(fire()).expand_dims(time=3).to_netcdf(path)
    elif name == "nc_bare":
        dataset(fire()).drop_vars(["x", "y"]).to_netcdf(path)
    elif name == "nc_uneven":
        ds = dataset(fire())
        ds.assign_coords(x=ds.x.values**1.1).to_netcdf(path)
    elif name == "nc_cut":
        dataset(fire()).to_netcdf(path)
        path.write_bytes(path.read_bytes()[:2000])
    elif name == "nc_none":
        xr.Dataset({"a": ("t", [1.0])}).to_netcdf(path)
    return path


MESSAGES = {
    "nodata": "no burned cell, all values are nodata",
    "short": r"220 values, its header says 12 × 20",
    "word": "not a readable ASCII grid",
    "no_size": "not a readable ASCII grid .*cellsize",
    "nc_time": r"dimensions \('time', 'y', 'x'\)",
    "nc_bare": "no coordinates along y, x",
    "nc_uneven": "x is not evenly spaced",
    "nc_cut": "damaged or truncated NetCDF",
    "nc_none": "state variable, one of none",
    "missing": "cannot be opened",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_bad_rasters_are_one_line_that_names_the_file(tmp_path, name):
    path = bad(tmp_path, name)
    with pytest.raises(PlumecastError, match=MESSAGES[name]) as info:
        read_arrival_times([path], unit="min")
    assert str(path) in str(info.value)
    assert "\n" not in str(info.value)


def test_bad_geotiffs_are_named(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    two = write_tiff(tmp_path / "two.tif", np.stack([fire(), fire()]))
    with pytest.raises(PlumecastError, match=r"two\.tif: 2 bands"):
        read_arrival_times(two, unit="min")
    tilted = write_tiff(tmp_path / "t.tif", fire(), transform=rasterio.Affine(30, 5, 0, 0, -30, 0))
    with pytest.raises(PlumecastError, match="not georeferenced, or rotated"):
        read_arrival_times(tilted, unit="min")
    nothing = tmp_path / "n.tif"
    nothing.write_text("hello")
    with pytest.raises(PlumecastError, match=r"n\.tif: not a readable raster"):
        read_arrival_times(nothing, unit="min")
    with pytest.raises(PlumecastError, match="no rasters here"):
        read_arrival_times(tmp_path / "*.bil", unit="min")


def test_ascii_grids_need_no_extra_library(tmp_path, monkeypatch):
    (tmp_path / "b.tif").write_bytes(b"II*\0" + bytes(20))

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(rasters, "import_module", absent)
    path = write_ascii(tmp_path / "a.asc", fire())
    assert read_arrival_times(path, format="farsite", like=COARSE).sizes["snapshot"] == 1
    with pytest.raises(
        PlumecastError, match=r'rasterio is needed; pip install "plumecast\[raster\]"'
    ):
        read_arrival_times(tmp_path / "b.tif", unit="s")
    with pytest.raises(PlumecastError, match="pyproj is needed"):
        read_arrival_times(path, format="farsite", crs=UTM)


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
    path = SHARED / "panther_test1177973_ArrivalTime.asc"
    fine = read_arrival_times(path, format="farsite")
    assert 60 * fine.hours.item() == pytest.approx(4799.7, abs=0.01)
    like = kilometres(fine)
    coarse = read_arrival_times(path, format="farsite", like=like)
    np.testing.assert_allclose(integral(coarse, 3000.0**2), integral(fine, 30.0**2), rtol=1e-5)
    raw = np.loadtxt(path, skiprows=6)[::-1]
    grid = rasters.read_raster(path).grid
    cells = np.flatnonzero(raw != -9999)
    weights = rasters.regrid.overlap_weights(grid, rasters._target(like).grid, cells)
    burned = weights.mean(np.ones(cells.size)).sum() * 3000.0**2
    assert burned == pytest.approx(cells.size * 900.0, rel=1e-3)
    assert coarse.burned_area.item() == pytest.approx(burned / M2_PER_ACRE, rel=1e-3)


@needs_shared
@pytest.mark.parametrize("wind", [60, 180, 300])
def test_flat_land_fires_run_before_the_wind(wind):
    """Wind from 60° drives the fire toward 240°, and so on: clockwise from north."""
    path = SHARED / f"flatland_3mph{wind}deg7hr_ArrivalTime.asc"
    field = read_arrival_times(path, format="farsite").time_since_ignition[0]
    start = field.where(field == field.max(), drop=True)
    burned = field > 0
    shift = [float((burned * field[axis]).sum() / burned.sum() - start[axis].mean())
             for axis in "xy"]  # fmt: skip
    toward = np.radians(wind + 180)
    along = np.dot(shift, [np.sin(toward), np.cos(toward)]) / np.hypot(*shift)
    assert along > np.cos(np.radians(3))
