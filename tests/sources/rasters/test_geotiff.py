"""GeoTIFFs: no other file is read, no network is used, and odd geotransforms are refused."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.sources.rasters import RasterOptions, iter_arrival_times
from plumecast.sources.rasters.files import open_geotiff
from plumecast.workflows.simulate import read_landscape
from support.raster_files import BOTTOM, LEFT, NX, NY, SIZE, fire, read, write_ascii, write_tiff

rasterio = pytest.importorskip("rasterio")

VRT = f"""<VRTDataset rasterXSize="{NX}" rasterYSize="{NY}">
  <GeoTransform>1000, 30, 0, 5360, 0, -30</GeoTransform>
  <VRTRasterBand dataType="Float32" band="1">
    <SimpleSource><SourceFilename relativeToVRT="0">SOURCE</SourceFilename>
    <SourceBand>1</SourceBand></SimpleSource>
  </VRTRasterBand>
</VRTDataset>
"""


@pytest.mark.parametrize("beginning", ["", "  \n", "\ufeff", '<?xml version="1.0"?>\n'])
def test_a_virtual_raster_in_disguise_reads_no_other_file(tmp_path, beginning):
    secret = write_tiff(tmp_path / "secret.tif", fire())
    path = tmp_path / "a.tif"
    path.write_text(beginning + VRT.replace("SOURCE", str(secret)))
    with pytest.raises(PlumecastError, match=r"a\.tif: a virtual raster \(VRT\)"):
        read(path)
    with pytest.raises(PlumecastError, match=r"a\.tif: a virtual raster \(VRT\)"):
        read_landscape(path, path)


@pytest.mark.parametrize("prefix", ["/vsicurl/http://", "http://", "/vsicurl_streaming/http://"])
def test_nothing_calls_out(tmp_path, prefix):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        address = f"{prefix}127.0.0.1:{server.getsockname()[1]}/a.tif"
        (tmp_path / "a.tif").write_text(VRT.replace("SOURCE", address))
        with pytest.raises(PlumecastError, match="virtual raster"):
            read(tmp_path / "a.tif")
        with pytest.raises(PlumecastError):
            read([address])
        with pytest.raises(PlumecastError), open_geotiff(address):
            pass
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize("name", ["/vsizip/a.zip/a.tif", "/vsimem/a.tif", "GTIFF_DIR:1:a.tif"])
def test_names_of_virtual_files_mean_nothing(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    write_tiff(tmp_path / "a.tif", fire())
    refused = pytest.raises(PlumecastError, match=r"virtual file system|cannot be opened")
    with refused, open_geotiff(name):
        pass


def test_files_beside_a_raster_change_nothing(tmp_path):
    path = write_tiff(tmp_path / "a.tif", fire())
    alone = read(path)
    other = write_tiff(tmp_path / "b.tif", np.zeros((NY, NX)))
    (tmp_path / "a.tif.aux.xml").write_text(
        "<PAMDataset><GeoTransform>0, 1, 0, 0, 0, -1</GeoTransform><PAMRasterBand band='1'>"
        "<NoDataValue>0</NoDataValue><Scale>7</Scale></PAMRasterBand></PAMDataset>"
    )
    for ending in (".msk", ".ovr"):
        (tmp_path / f"a.tif{ending}").write_bytes(other.read_bytes())
    (tmp_path / "a.tfw").write_text("1\n0\n0\n-1\n0\n0\n")
    assert read(path).identical(alone)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ((30, 5, LEFT, 0, -30, BOTTOM), "not georeferenced, or rotated"),
        ((-30, 0, LEFT, 0, -30, BOTTOM), "not georeferenced, or rotated"),
        ((30, 0, LEFT, 0, 0, BOTTOM), "not georeferenced, or rotated|cell size 0 along y"),
        ((3e7, 0, LEFT, 0, -30, BOTTOM), r"cell size 3e\+07 along x"),
        ((30, 0, np.nan, 0, -30, BOTTOM), "x from nan"),
        ((30, 0, LEFT, 0, -30, 1e30), "y from 1e"),
    ],
)
def test_odd_geotransforms_are_refused(tmp_path, transform, message):
    path = write_tiff(tmp_path / "a.tif", fire(), transform=rasterio.Affine(*transform))
    with pytest.raises(PlumecastError, match=message) as info:
        read(path)
    assert str(path) in str(info.value)


def test_cells_need_not_be_square(tmp_path):
    transform = rasterio.Affine(SIZE, 0, LEFT, 0, -2 * SIZE, BOTTOM)
    path = write_tiff(tmp_path / "a.tif", fire(), transform=transform)
    square = read(write_tiff(tmp_path / "b.tif", fire()))
    assert read(path).burned_area.item() == pytest.approx(2 * square.burned_area.item())


def patched(path: Path, tag: int, value: int) -> Path:
    """Change the number in an entry of the first directory of a little-endian TIFF."""
    data = bytearray(path.read_bytes())
    (start,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, start)
    for entry in range(start + 2, start + 2 + 12 * count, 12):
        if struct.unpack_from("<H", data, entry)[0] == tag:
            struct.pack_into("<HII", data, entry + 2, 4, 1, value)
    path.write_bytes(data)
    return path


def test_a_header_of_many_cells_allocates_nothing_and_stops_no_other(tmp_path):
    write_tiff(tmp_path / "good.tif", fire())
    patched(write_tiff(tmp_path / "wide.tif", fire()), 256, 2_000_000_000)
    patched(write_tiff(tmp_path / "tall.tif", fire()), 257, 5_000_000)
    problems = {}
    (fires,) = iter_arrival_times(
        tmp_path,
        RasterOptions(unit="min"),
        on_error=lambda path, text: problems.update({path.stem: text}),
    )
    assert fires.fire_id.values.tolist() == ["good"]
    assert set(problems) == {"wide", "tall"}


@pytest.mark.parametrize(("attribute", "value"), [("scales", 2.0), ("offsets", 1.0)])
def test_scaled_values_are_not_taken_for_arrival_times(tmp_path, attribute, value):
    path = write_tiff(tmp_path / "a.tif", fire())
    with rasterio.open(path, "r+") as file:
        setattr(file, attribute, (value,))
    with pytest.raises(PlumecastError, match=rf"with a scale .*{value:g}.*gdal_translate"):
        read(path)


def test_cells_masked_within_the_file_are_unburned(tmp_path):
    burned = np.isfinite(fire())
    path = tmp_path / "a.tif"
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK="YES"):
        write_tiff(path, np.nan_to_num(fire()), nodata=None)
        with rasterio.open(path, "r+") as file:
            file.write_mask(burned)
    assert not list(tmp_path.glob("*.msk"))
    expected = read(write_ascii(tmp_path / "a.asc", fire())).time_since_ignition
    np.testing.assert_array_equal(read(path).time_since_ignition, expected)


def test_an_imagine_file_must_hold_its_values(tmp_path):
    path = tmp_path / "a.img"
    place = rasterio.Affine(SIZE, 0, LEFT, 0, -SIZE, BOTTOM + NY * SIZE)
    options = {"height": NY, "width": NX, "count": 1, "dtype": "float32", "nodata": -9999.0,
               "transform": place}  # fmt: skip
    values = np.where(np.isnan(fire()), -9999.0, fire()).astype(np.float32)
    with rasterio.open(path, "w", driver="HFA", **options) as file:
        file.write(values, 1)
    assert read(path).hours.item() == pytest.approx(110 / 60)
    with rasterio.open(tmp_path / "b.img", "w", driver="HFA", USE_SPILL="YES", **options) as file:
        file.write(values, 1)
    with pytest.raises(PlumecastError, match=r"b\.img: its values are in another file"):
        read(tmp_path / "b.img")


def cut_block(path: Path) -> Path:
    """Damage the end of a DEFLATE block, for which GDAL returns uninitialised memory."""
    data = path.read_bytes()
    path.write_bytes(data[:-26] + b"\xff" * 26)
    with rasterio.open(path) as file:
        assert file.read(1).shape == (NY, NX)  # without a word
    return path


def odd_nodata(path: Path) -> Path:
    """GDAL would read the file as one without missing values."""
    path.write_bytes(path.read_bytes().replace(b"-9999\0", b"-99\xc69\0"))
    return path


@pytest.mark.parametrize(
    ("profile", "damage", "message"),
    [
        ({"compress": "deflate"}, cut_block, r"a\.tif: not a readable raster: damaged GeoTIFF"),
        ({"nodata": -9999.0}, odd_nodata, "damaged GeoTIFF, its missing value is no text"),
        ({}, lambda p: patched(p, 257, 600), "lists 1 blocks with 1 sizes, but 600 × 20 cells"),
        ({}, lambda p: patched(p, 278, 2), "1 sizes, but 12 × 20 cells need 6"),
        ({}, lambda p: patched(p, 279, 40), "block 0 has 40 bytes instead of 960"),
        ({}, lambda p: patched(p, 273, 100_000), "block 0 ends beyond the end of the file"),
        ({"count": 2}, None, r"a\.tif: 2 bands"),
        ({}, lambda p: p.write_text("hello"), r"a\.tif: not a readable raster"),
    ],
)
def test_damaged_and_odd_files_are_refused(tmp_path, profile, damage, message):
    bands = np.stack([fire()] * profile.pop("count", 1))
    path = write_tiff(tmp_path / "a.tif", bands, **profile)
    if damage:
        damage(path)
    with pytest.raises(PlumecastError, match=message):
        read(path)


def test_a_folder_without_rasters_is_named(tmp_path):
    with pytest.raises(PlumecastError, match="no rasters here"):
        read(tmp_path / "*.bil")


@pytest.mark.parametrize(
    "profile",
    [
        {"BIGTIFF": "YES"},
        {"ENDIANNESS": "BIG", "compress": "deflate", "predictor": 3},
        {"tiled": True, "blockxsize": 16, "blockysize": 16, "compress": "deflate"},
        {"compress": "lzw"},
        {"tiled": True, "blockxsize": 16, "blockysize": 16, "SPARSE_OK": "TRUE"},
        {"blockysize": 5},
    ],
)
def test_every_layout_of_blocks_is_read(tmp_path, profile):
    plain = read(write_tiff(tmp_path / "a.tif", fire()))
    (tmp_path / "b").mkdir()
    path = write_tiff(tmp_path / "b" / "a.tif", fire(), **profile)
    assert read(path).identical(plain)
