"""Rasters that are refused with one line: odd options, headers, values and places."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.regrid import Grid, grid_from_centres, overlap_weights, projected_weights
from plumecast.sources.rasters import RasterOptions, iter_arrival_times
from support.raster_files import (
    COARSE,
    LEFT,
    NAN,
    NX,
    NY,
    SIZE,
    dataset,
    fire,
    read,
    write_ascii,
    write_tiff,
)

HEADERS = [
    ({"CELLSIZE": 0}, "cell size 0 along x"),
    ({"CELLSIZE": -30}, "cell size -30 along x"),
    ({"CELLSIZE": "nan"}, "cell size nan along x"),
    ({"CELLSIZE": "3e7"}, r"cell size 3e\+07 along x"),
    ({"CELLSIZE": "1e-320"}, "cell size 9.99989e-321 along x"),
    ({"CELLSIZE": None}, "not a readable ASCII grid: .*cellsize"),
    ({"XLLCORNER": "nan"}, "x from nan to nan is nowhere on Earth"),
    ({"YLLCORNER": "-inf"}, "y from -inf to -inf is nowhere on Earth"),
    ({"YLLCORNER": "1e37"}, r"y from 1e\+37 to 1e\+37 is nowhere on Earth"),
    ({"CELLSIZE": "1e-4", "XLLCORNER": "1e8"}, "cannot be told apart"),
    ({"NCOLS": -NX, "NROWS": -NY}, "nrows is -12; write a whole number above 0"),
    ({"NCOLS": "inf"}, "ncols is inf"),
    ({"NCOLS": 20.5}, "ncols is 20.5"),
    ({"NCOLS": 3e7}, "12 × 30000000 cells, more than .* can hold|that are read"),
    ({"NCOLS": "1_0"}, "NCOLS is '1_0'; write one number"),
    ({"NCOLS": "20 20"}, "NCOLS is '20 20'; write one number"),
    ({"XLLCENTER": 5.0}, "give either xllcorner or xllcenter"),
]


@pytest.mark.parametrize(("header", "message"), HEADERS)
def test_impossible_headers_are_refused_before_memory_is_taken(tmp_path, header, message):
    path = write_ascii(tmp_path / "a.asc", fire(), **header)
    tracemalloc.start()
    with pytest.raises(PlumecastError, match=message) as info:
        read(path, like=COARSE)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()
    assert str(info.value).startswith(str(path))
    assert "\n" not in str(info.value)


def test_a_bad_raster_does_not_end_the_batch(tmp_path):
    for number, (header, _) in enumerate(HEADERS):
        write_ascii(tmp_path / f"bad {number}.asc", fire(), **header)
    (tmp_path / "bad empty.asc").touch()
    (tmp_path / "bad bytes.asc").write_bytes(b"ncols \xff\xfe\n" + bytes(range(256)))
    (tmp_path / "bad folder.asc").mkdir()
    os.mkfifo(tmp_path / "bad fifo.asc")
    write_ascii(tmp_path / "good.asc", fire())
    problems = []
    (fires,) = iter_arrival_times(
        sorted(tmp_path.iterdir()),
        RasterOptions(unit="min"),
        on_error=lambda path, text: problems.append(text),
    )
    assert fires.fire_id.values.tolist() == ["good"]
    assert len(problems) == len(HEADERS) + 4


SHORT = xr.Dataset(coords={"x": LEFT + SIZE * (np.arange(-7, 14) + 0.5), "y": COARSE.y})
"""A domain that ends one cell short of the eastern tip of the fire."""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": None}, r"unit is missing: .*a\.asc: .*; give one of s, min, h, d, or a format"),
        ({"unit": "weeks"}, r"unit='weeks': .*a\.asc: unknown"),
        ({"format": "spark"}, "format='spark'"),
        ({"aggregate": "sum"}, "aggregate='sum'"),
        *(({"hours": hours}, "give increasing hours above 0") for hours in ([], [2, 1], [0, 1])),
        ({"unit": "d"}, r"horizon=720: .*a\.asc: the latest arrival is 2640 h"),
        ({"horizon": 1}, "horizon=1: "),
        ({"crs": "nowhere"}, "unknown CRS 'nowhere'"),
        ({"like": xr.Dataset(coords={"lat": [0.0, 1.0]})}, "like has no coordinates y and x"),
        (
            {"like": COARSE.assign_coords(x=COARSE.x + 1e5)},
            r"a\.asc: 100\.0% of the burned area is outside",
        ),
        ({"like": SHORT}, r"6\.7% of the burned area is outside"),
    ],
)
def test_odd_options_are_refused(tmp_path, options, message):
    with pytest.raises(PlumecastError, match=message):
        read(write_ascii(tmp_path / "a.asc", fire()), **options)


ODD_TEXTS = [
    ("ncols 2\nncols 2\nnrows 1\n", "ncols is stated twice"),
    ("ncols 2\nnrows 1\n", "its header has no cellsize"),
    ("ncols 2\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2_0\n", "'2_0' is no number"),
    ("ncols 2\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2\0\n", "is no number"),
]
MINUS = np.where(np.isnan(fire()), -1, fire())


def bare(ds):
    return ds.drop_vars(["x", "y"])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: write_ascii(p, np.full((NY, NX), NAN)), "no burned cell, all values are nodata"),
        (lambda p: write_ascii(p, fire()[:-1]), r"220 values, but its header says 12 × 20"),
        (lambda p: write_ascii(p, MINUS), r"nodata is missing: .* -1 is negative; .* give -1"),
        (lambda p: dataset(fire()).expand_dims(time=3).to_netcdf(p), r"dimensions \('time', 'y'"),
        (lambda p: bare(dataset(fire())).to_netcdf(p), "no coordinates along y, x"),
        (
            lambda p: dataset(fire()).assign_coords(x=np.arange(NX) ** 1.1).to_netcdf(p),
            "x is not evenly spaced",
        ),
        (
            lambda p: dataset(fire()).assign_coords(x=[f"c{i}" for i in range(NX)]).to_netcdf(p),
            "x has values of type",
        ),
        (lambda p: xr.Dataset({"a": ("t", [1.0])}).to_netcdf(p), "it has no 2-D variable"),
        (lambda p: p.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(2000)), "damaged or truncated"),
        (lambda p: None, "cannot be opened"),
        *((lambda p, text=text: p.write_text(text), message) for text, message in ODD_TEXTS),
    ],
)
def test_bad_rasters_are_one_line_that_names_the_file(tmp_path, write, message):
    path: Path = tmp_path / "a.asc"
    write(path)
    with pytest.raises(PlumecastError, match=message) as info:
        read([path])
    assert str(path) in str(info.value)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * 200_000])
def test_an_odd_projection_is_refused(tmp_path, content):
    path = write_ascii(tmp_path / "a.asc", fire())
    path.with_suffix(".prj").write_bytes(content)
    with pytest.raises(PlumecastError, match=r"crs is missing: .*a\.prj: .*give EPSG"):
        read(path)


def background(value):
    return np.where(np.isnan(fire()), value, fire())


@pytest.mark.parametrize("write", [write_ascii, write_tiff])
@pytest.mark.parametrize("value", [0.0, 9999.0])
def test_a_background_that_is_no_missing_value_is_refused(tmp_path, write, value):
    path = write(tmp_path / ("a.asc" if write is write_ascii else "a.tif"), background(value))
    message = (
        f"nodata is missing: .*94% of the cells.* the arrival time {value:g} .* give {value:g}"
    )
    with pytest.raises(PlumecastError, match=message):
        read(path)
    marked = read(path, nodata=value)
    sound = read(write_ascii(tmp_path / "sound.asc", np.where(fire() == value, NAN, fire())))
    np.testing.assert_allclose(marked.time_since_ignition, sound.time_since_ignition)


def test_a_fire_that_starts_from_a_perimeter_is_read(tmp_path):
    arrival = fire()
    arrival[2:11, 1:18] = 0.0
    arrival[1:-1, 18] = 10.0
    assert read(write_ascii(tmp_path / "a.asc", arrival)).hours.item() == pytest.approx(1 / 6)


DEGREES = {"XLLCORNER": -120.5, "YLLCORNER": 38.2, "CELLSIZE": 0.0003}


def test_degrees_without_a_crs_are_refused(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire(), **DEGREES)
    for like in (None, COARSE):
        with pytest.raises(PlumecastError, match=r"crs is missing: .*degrees .*; give EPSG:4326"):
            read(path, like=like)
    acres = read(path, crs="EPSG:4326").burned_area.item()
    assert acres == pytest.approx(15 * 33.4 * 26.2 / 4046.86, rel=0.01)
    assert read(path, crs="local").x.size == NX


@pytest.mark.parametrize("cells", [1, 2])
def test_stray_cells_are_named(tmp_path, cells):
    arrival = fire()
    arrival[0, 18 : 18 + cells] = 600.0 + np.arange(cells)
    path = write_ascii(tmp_path / "a.asc", arrival)
    with pytest.warns(
        UserWarning, match=r"a\.asc: .* apart from the fire \(x .*\) burns at 10"
    ) as told:
        read(path)
    assert len(told) == 1
    read(write_ascii(path, fire()))  # no other warning


@pytest.mark.parametrize(("label", "given", "message"), [
    ("hours", {"unit": "min"}, r"unit='min': .*labels its values 'hours', not min; give h"),
    ("s", {"format": "farsite"}, r"unit='min': .*not min of the format farsite; give s"),
    ("days since 2020-08-01", {"unit": "h"}, r"unit='h': .*; give d"),
    ("minutes", {"unit": "min"}, None),
    ("arrival", {"unit": "min"}, None),
])  # fmt: skip
def test_a_label_of_another_unit_is_refused(tmp_path, label, given, message):
    netcdf, tiff = tmp_path / "a.nc", write_tiff(tmp_path / "a.tif", fire())
    dataset(fire(), units=label).to_netcdf(netcdf)
    with pytest.importorskip("rasterio").open(tiff, "r+") as file:
        file.units = [label]
    for path in (netcdf, tiff):
        if message is None:
            read(path, **given)
            continue
        with pytest.raises(PlumecastError, match=message):
            read(path, **given)


def test_an_arrival_that_overflows_is_not_unburned(tmp_path):
    path = write_ascii(tmp_path / "a.asc", np.where(fire() > 0, 1e307, fire()))
    with pytest.raises(PlumecastError, match=r"arrival time 1e\+307 is too large"):
        read(path, unit="d")


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_cell_centres_that_are_no_numbers_are_refused(axis, odd):
    centres = {"x": np.arange(5.0), "y": np.arange(5.0)}
    centres[axis][2] = odd
    with pytest.raises(PlumecastError, match=f"{axis} is not evenly spaced"):
        grid_from_centres(**centres, name="grid")


def test_degrees_beyond_the_poles_are_refused(tmp_path):
    with pytest.raises(PlumecastError, match="latitude 5000 … 5360"):
        read(write_tiff(tmp_path / "a.tif", fire(), crs="EPSG:4326"))


def test_large_source_cells_need_no_more_memory_than_the_target_grid():
    """One cell of 30,000 km on a grid of 3 km: 10⁸ pairs, of which 8,000 are inside."""
    source, target = Grid(-1e9, -1e9, 3e7, 3e7, 100, 100), Grid(0.0, 0.0, 3e3, 3e3, 100, 80)
    tracemalloc.start()
    weights = overlap_weights(source, target, np.arange(10_000))
    far = projected_weights(
        source, target, np.arange(10_000), to_target=lambda x, y: (x + 1e5, y + 1e5)
    )
    assert tracemalloc.get_traced_memory()[1] < 1e8
    tracemalloc.stop()
    assert weights.share.sum() == pytest.approx(8000.0)
    assert weights.outside == pytest.approx(1.0, abs=1e-4)
    assert far.outside == pytest.approx(1.0, abs=1e-4)
