"""Headers that state impossible sizes and places are refused before memory is allocated."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.compute.regrid import Grid, grid_from_centres, overlap_weights, projected_weights
from plumecast.sources.rasters import RasterOptions, iter_arrival_times, read_arrival_times
from support.raster_files import COARSE, NX, NY, dataset, fire, write_ascii, write_tiff

HEADERS = {
    "zero": ({"CELLSIZE": 0}, "cell size 0 along x"),
    "negative": ({"CELLSIZE": -30}, "cell size -30 along x"),
    "nan": ({"CELLSIZE": "nan"}, "cell size nan along x"),
    "infinite": ({"CELLSIZE": "inf"}, "cell size inf along x"),
    "huge": ({"CELLSIZE": "3e7"}, r"cell size 3e\+07 along x"),
    "tiny": ({"CELLSIZE": "1e-320"}, "cell size 9.99989e-321 along x"),
    "nan corner": ({"XLLCORNER": "nan"}, "x from nan to nan is nowhere on Earth"),
    "infinite corner": ({"YLLCORNER": "-inf"}, "y from -inf to -inf is nowhere on Earth"),
    "far corner": ({"YLLCORNER": "1e37"}, r"y from 1e\+37 to 1e\+37 is nowhere on Earth"),
    "fine cells": ({"CELLSIZE": "1e-4", "XLLCORNER": "1e8"}, "cannot be told apart"),
    "negative sizes": ({"NCOLS": -NX, "NROWS": -NY}, "nrows is -12; write a whole number above 0"),
    "no rows": ({"NROWS": 0}, "nrows is 0"),
    "infinite columns": ({"NCOLS": "inf"}, "ncols is inf"),
    "half a column": ({"NCOLS": 20.5}, "ncols is 20.5"),
    "many columns": ({"NCOLS": 3e7}, "12 × 30000000 cells, more than .* can hold|that are read"),
    "word": ({"NCOLS": "1_0"}, "NCOLS is '1_0'; write one number"),
    "two words": ({"NCOLS": "20 20"}, "NCOLS is '20 20'; write one number"),
    "two corners": ({"XLLCENTER": 5.0}, "give either xllcorner or xllcenter"),
}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("like", [None, COARSE], ids=["own grid", "like"])
def test_impossible_headers_are_refused_with_file_and_value(tmp_path, name, like):
    header, message = HEADERS[name]
    path = write_ascii(tmp_path / "a.asc", fire(), **header)
    tracemalloc.start()
    with pytest.raises(PlumecastError, match=message) as info:
        read_arrival_times(path, RasterOptions(unit="min", like=like))
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()
    assert str(info.value).startswith(str(path))
    assert "\n" not in str(info.value)


def test_a_bad_raster_does_not_end_the_batch(tmp_path):
    for name, (header, _) in HEADERS.items():
        write_ascii(tmp_path / f"bad {name}.asc", fire(), **header)
    (tmp_path / "bad empty.asc").touch()
    (tmp_path / "bad bytes.asc").write_bytes(b"ncols \xff\xfe\n" + bytes(range(256)))
    (tmp_path / "bad folder.asc").mkdir()
    os.mkfifo(tmp_path / "bad fifo.asc")
    write_ascii(tmp_path / "good.asc", fire())
    problems = []
    (read,) = iter_arrival_times(
        sorted(tmp_path.iterdir()),
        RasterOptions(unit="min"),
        on_error=lambda path, text: problems.append(text),
    )
    assert read.fire_id.values.tolist() == ["good"]
    assert len(problems) == len(HEADERS) + 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ncols 2\nncols 2\nnrows 1\n", "ncols is stated twice"),
        ("ncols 2\nnrows 1\n", "its header has no cellsize"),
        ("ncols 2\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2_0\n", "'2_0' is no number"),
        ("ncols 2\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2\0\n", "is no number"),
    ],
)
def test_odd_texts_are_refused(tmp_path, text, message):
    path = tmp_path / "a.asc"
    path.write_text(text)
    with pytest.raises(PlumecastError, match=message):
        read_arrival_times(path, RasterOptions(unit="min"))


def test_blank_lines_in_a_header_are_passed_over(tmp_path):
    path = write_ascii(tmp_path / "a.asc", fire())
    plain = read_arrival_times(path, RasterOptions(unit="min"))
    path.write_text(path.read_text().replace("\n", "\n\n"))
    assert read_arrival_times(path, RasterOptions(unit="min")).identical(plain)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * 200_000])
def test_an_odd_projection_is_refused(tmp_path, content):
    path = write_ascii(tmp_path / "a.asc", fire())
    path.with_suffix(".prj").write_bytes(content)
    with pytest.raises(PlumecastError, match=r"crs is missing: .*a\.prj: .*give EPSG"):
        read_arrival_times(path, RasterOptions(unit="min"))


def test_an_arrival_that_overflows_is_not_unburned(tmp_path):
    arrival = np.where(np.isnan(fire()), np.nan, 1e307)
    arrival[8, 3] = 0.0
    path = write_ascii(tmp_path / "a.asc", arrival)
    with pytest.raises(PlumecastError, match=r"arrival time 1e\+307 is too large"):
        read_arrival_times(path, RasterOptions(unit="d", nodata=1e306))


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_cell_centres_that_are_no_numbers_are_refused(axis, odd):
    centres = {"x": np.arange(5.0), "y": np.arange(5.0)}
    centres[axis][2] = odd
    with pytest.raises(PlumecastError, match=f"{axis} is not evenly spaced"):
        grid_from_centres(**centres, name="grid")


def test_netcdf_coordinates_must_be_numbers(tmp_path):
    named = dataset(fire()).assign_coords(x=[f"c{i}" for i in range(NX)])
    named.to_netcdf(tmp_path / "a.nc")
    with pytest.raises(PlumecastError, match="x has values of type"):
        read_arrival_times(tmp_path / "a.nc", RasterOptions(unit="min"))


def test_degrees_beyond_the_poles_are_refused(tmp_path):
    path = write_tiff(tmp_path / "a.tif", fire(), crs="EPSG:4326")
    with pytest.raises(PlumecastError, match="latitude 5000 … 5360"):
        read_arrival_times(path, RasterOptions(unit="min"))


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
