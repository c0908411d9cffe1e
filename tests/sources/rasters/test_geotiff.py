"""GeoTIFFs: no other file is read, no network is used, and odd geotransforms are refused."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.sources.rasters import RasterOptions, iter_arrival_times, read_arrival_times
from plumecast.sources.rasters.files import open_geotiff
from plumecast.workflows.simulate import read_landscape
from support.raster_files import BOTTOM, LEFT, NX, NY, SIZE, fire, write_ascii, write_tiff

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
        read_arrival_times(path, RasterOptions(unit="min"))
    with pytest.raises(PlumecastError, match=r"a\.tif: a virtual raster \(VRT\)"):
        read_landscape(path, path)


@pytest.mark.parametrize("prefix", ["/vsicurl/http://", "http://", "/vsicurl_streaming/http://"])
def test_nothing_calls_out(tmp_path, prefix):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        address = f"{prefix}127.0.0.1:{server.getsockname()[1]}/a.tif"
        (tmp_path / "a.tif").write_text(VRT.replace("SOURCE", address))
        with pytest.raises(PlumecastError, match="virtual raster"):
            read_arrival_times(tmp_path / "a.tif", RasterOptions(unit="min"))
        with pytest.raises(PlumecastError):
            read_arrival_times([address], RasterOptions(unit="min"))
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
    alone = read_arrival_times(path, RasterOptions(unit="min"))
    other = write_tiff(tmp_path / "b.tif", np.zeros((NY, NX)))
    (tmp_path / "a.tif.aux.xml").write_text(
        "<PAMDataset><GeoTransform>0, 1, 0, 0, 0, -1</GeoTransform><PAMRasterBand band='1'>"
        "<NoDataValue>0</NoDataValue><Scale>7</Scale></PAMRasterBand></PAMDataset>"
    )
    for ending in (".msk", ".ovr"):
        (tmp_path / f"a.tif{ending}").write_bytes(other.read_bytes())
    (tmp_path / "a.tfw").write_text("1\n0\n0\n-1\n0\n0\n")
    assert read_arrival_times(path, RasterOptions(unit="min")).identical(alone)


def affine(*numbers: float) -> object:
    return rasterio.Affine(*numbers)


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
    path = write_tiff(tmp_path / "a.tif", fire(), transform=affine(*transform))
    with pytest.raises(PlumecastError, match=message) as info:
        read_arrival_times(path, RasterOptions(unit="min"))
    assert str(path) in str(info.value)


def test_cells_need_not_be_square(tmp_path):
    path = write_tiff(
        tmp_path / "a.tif", fire(), transform=affine(SIZE, 0, LEFT, 0, -2 * SIZE, BOTTOM)
    )
    read = read_arrival_times(path, RasterOptions(unit="min"))
    square = read_arrival_times(write_tiff(tmp_path / "b.tif", fire()), RasterOptions(unit="min"))
    assert read.burned_area.item() == pytest.approx(2 * square.burned_area.item())


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
    (read,) = iter_arrival_times(
        tmp_path,
        RasterOptions(unit="min"),
        on_error=lambda path, text: problems.update({path.stem: text}),
    )
    assert read.fire_id.values.tolist() == ["good"]
    assert set(problems) == {"wide", "tall"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scales": (2.0,)}, r"a scale \(2\)"),
        ({"offsets": (1.0,)}, r"an offset \(1\)"),
    ],
)
def test_scaled_values_are_not_taken_for_arrival_times(tmp_path, change, message):
    path = write_tiff(tmp_path / "a.tif", fire())
    with rasterio.open(path, "r+") as file:
        for name, value in change.items():
            setattr(file, name, value)
    with pytest.raises(PlumecastError, match=message):
        read_arrival_times(path, RasterOptions(unit="min"))


def test_cells_masked_within_the_file_are_unburned(tmp_path):
    burned = np.isfinite(fire())
    path = tmp_path / "a.tif"
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK="YES"):
        write_tiff(path, np.nan_to_num(fire()), nodata=None)
        with rasterio.open(path, "r+") as file:
            file.write_mask(burned)
    assert not list(tmp_path.glob("*.msk"))
    read = read_arrival_times(path, RasterOptions(unit="min"))
    expected = read_arrival_times(
        write_ascii(tmp_path / "a.asc", fire()), RasterOptions(unit="min")
    )
    np.testing.assert_array_equal(read.time_since_ignition, expected.time_since_ignition)


def test_an_imagine_file_must_hold_its_values(tmp_path):
    path = tmp_path / "a.img"
    options = {"height": NY, "width": NX, "count": 1, "dtype": "float32", "nodata": -9999.0,
               "transform": affine(SIZE, 0, LEFT, 0, -SIZE, BOTTOM + NY * SIZE)}  # fmt: skip
    values = np.where(np.isnan(fire()), -9999.0, fire()).astype(np.float32)
    with rasterio.open(path, "w", driver="HFA", **options) as file:
        file.write(values, 1)
    assert read_arrival_times(path, RasterOptions(unit="min")).hours.item() == pytest.approx(
        110 / 60
    )
    with rasterio.open(tmp_path / "b.img", "w", driver="HFA", USE_SPILL="YES", **options) as file:
        file.write(values, 1)
    with pytest.raises(PlumecastError, match=r"b\.img: its values are in another file"):
        read_arrival_times(tmp_path / "b.img", RasterOptions(unit="min"))


def test_a_damaged_block_is_never_read_as_memory(tmp_path):
    """GDAL returns uninitialised memory for a DEFLATE block with a damaged end."""
    path = write_tiff(tmp_path / "a.tif", fire(), compress="deflate")
    read_arrival_times(path, RasterOptions(unit="min"))
    data = bytearray(path.read_bytes())
    data[-26:] = b"\xff" * 26
    path.write_bytes(data)
    with rasterio.open(path) as file:
        assert file.read(1).shape == (NY, NX)  # without a word
    with pytest.raises(PlumecastError, match=r"a\.tif: not a readable raster: damaged GeoTIFF"):
        read_arrival_times(path, RasterOptions(unit="min"))


def test_a_missing_value_that_is_no_text_is_refused(tmp_path):
    """GDAL would read the file as one without missing values."""
    path = write_tiff(tmp_path / "a.tif", fire(), nodata=-9999.0)
    data = path.read_bytes()
    assert data.count(b"-9999\0") == 1
    path.write_bytes(data.replace(b"-9999\0", b"-99\xc69\0"))
    with pytest.raises(PlumecastError, match="damaged GeoTIFF, its missing value is no text"):
        read_arrival_times(path, RasterOptions(unit="min"))


@pytest.mark.parametrize(
    ("tag", "value", "message"),
    [
        (257, 600, "its directory lists 1 blocks with 1 sizes, but 600 × 20 cells need 50"),
        (278, 2, "its directory lists 1 blocks with 1 sizes, but 12 × 20 cells need 6"),
        (279, 40, "block 0 has 40 bytes instead of 960"),
        (273, 100_000, "block 0 ends beyond the end of the file"),
    ],
)
def test_a_directory_that_contradicts_itself_is_refused(tmp_path, tag, value, message):
    path = patched(write_tiff(tmp_path / "a.tif", fire()), tag, value)
    with pytest.raises(PlumecastError, match=message):
        read_arrival_times(path, RasterOptions(unit="min"))


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
    plain = read_arrival_times(write_tiff(tmp_path / "a.tif", fire()), RasterOptions(unit="min"))
    (tmp_path / "b").mkdir()
    path = write_tiff(tmp_path / "b" / "a.tif", fire(), **profile)
    assert read_arrival_times(path, RasterOptions(unit="min")).identical(plain)
