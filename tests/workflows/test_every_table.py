"""Every table that people give is read by one reader: the same files are understood and refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastWarning
from plumecast.impact.plants import plants_of
from plumecast.workflows.design.design import read_values
from plumecast.workflows.ingest import read_labels

GRID = xr.Dataset(
    {"surface_altitude": (("y", "x"), np.zeros((9, 9)))},
    coords={"x": 1000.0 * np.arange(9), "y": 1000.0 * np.arange(9)},
)


@dataclass(frozen=True)
class Reader:
    """A public reader, and a table that it understands: text first, a number last."""

    read: Callable[[Path], Any]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row: str  # what messages call a line
    needed: str = ""  # a column that it cannot do without, if that is not the first


def plants(path: Path) -> Any:
    return plants_of(pc.read_places(path, GRID), GRID, latitude=40.0)


PLACES = (("A", "10", "20", "1.5"), ("B", "1000", "4000", "2"))
VALUES = (("f00", "1.5"), ("f01", "2"))
READERS = {
    "places": Reader(
        lambda path: pc.read_places(path, GRID), ("name", "x", "y", "population"), PLACES, "place"
    ),
    "plants": Reader(plants, ("name", "x", "y", "megawatts"), PLACES, "place"),
    "labels": Reader(
        read_labels,
        ("fire_id", "drought", "wind_from_direction", "wind_speed"),
        (("a", "low", "270", "1.5"), ("b", "high", "90", "2")),
        "fire",
    ),
    "weights": Reader(
        lambda path: read_values(path, "weight"), ("ignition_id", "weight"), VALUES, "ignition"
    ),
    "costs": Reader(
        lambda path: read_values(path, "cost"), ("ignition_id", "cost"), VALUES, "ignition"
    ),
    "winds": Reader(
        lambda path: pc.read_weather(path, speed_unit="m/s"),
        ("fire", "direction", "speed"),
        (("a", "270", "1.5"), ("b", "90", "2")),
        "fire",
        needed="speed",
    ),
    "weather": Reader(
        lambda path: pc.read_weather(path, speed_unit="m/s"),
        ("fire", "hour", "height", "direction", "speed"),
        (("a", "0", "10", "270", "1.5"), ("b", "0", "10", "90", "2")),
        "fire",
        needed="speed",
    ),
}


@pytest.fixture(params=READERS)
def reader(request) -> Reader:
    return READERS[request.param]


def text_of(reader: Reader, delimiter: str = ",", end: str = "\n") -> str:
    return end.join(map(delimiter.join, (reader.header, *reader.rows))) + end


UNDERSTOOD: dict[str, Callable[[Reader], str]] = {
    "byte order mark": lambda reader: "\ufeff" + text_of(reader),
    "semicolons": lambda reader: text_of(reader, ";"),
    "tabs and Windows lines": lambda reader: text_of(reader, "\t", "\r\n"),
    "old Mac lines": lambda reader: text_of(reader, end="\r"),
    "spaces": lambda reader: text_of(reader, " , "),
    "quotes": lambda reader: '"' + text_of(reader, '","', '"\n"').removesuffix('"'),
    "case": lambda reader: text_of(reader).replace(
        ",".join(reader.header), ",".join(reader.header).title().replace("_", " ")
    ),
    "comments and empty lines": lambda reader: text_of(reader) + "\n# mine, by hand\n\n",
    "empty cells at the end": lambda reader: text_of(reader, end=",\n") + ",,\n",
}


@pytest.mark.parametrize("way", UNDERSTOOD)
def test_every_reader_understands_the_same_files(reader, way, tmp_path):
    results = []
    for text in (text_of(reader), UNDERSTOOD[way](reader)):
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode())
        results.append(repr(reader.read(path)))
    assert results[0] == results[1]


def test_every_reader_names_columns_that_it_does_not_read(reader, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text_of(reader, end=",?\n").replace("?", "budget", 1))
    with pytest.warns(PlumecastWarning, match=r"table.csv: the column is not read: 'budget'"):
        reader.read(path)


def lines_of(reader: Reader, change: Callable[[list[str]], list[str]]) -> str:
    """The table with other cells in its third line."""
    first, last = reader.rows
    return "\n".join(map(",".join, (reader.header, first, change([*last])))) + "\n"


REFUSED: dict[str, tuple[Callable[[Reader], str | bytes], str]] = {
    "empty": (lambda reader: "", "the (table|file) is empty"),
    "header alone": (lambda reader: ",".join(reader.header), "the table has no {row}"),
    "column missing": (
        lambda reader: text_of(reader).replace(reader.needed or reader.header[0], "id", 1),
        "the column {needed} is missing; expected {needed}.*found .*id",
    ),
    "column twice": (
        lambda reader: text_of(reader, end=",9\n").replace(",9", f",{reader.header[-1]}", 1),
        "the columns '{last}' and '{last}' are both the {last}; keep one",
    ),
    "unknown unit": (
        lambda reader: text_of(reader).replace(reader.header[-1], reader.header[-1] + " (bar)", 1),
        r"'bar' in the header '{last} \(bar\)' is no unit of {last}",
    ),
    "cell missing": (
        lambda reader: lines_of(reader, lambda cells: cells[:-1]),
        "line 3 has {fewer} cells?, but the header names {width} columns",
    ),
    "decimal comma": (
        lambda reader: lines_of(reader, lambda cells: [*cells[:-1], "2,5"]),
        "line 3 has {more} cells, but .*; write decimals with a point",
    ),
    "decimal comma between semicolons": (
        lambda reader: text_of(reader, ";").replace("1.5", "1,5"),
        "line 2, {row} '.*': {last} '1,5' is not a number; write decimals with a point",
    ),
    "no number": (
        lambda reader: lines_of(reader, lambda cells: [*cells[:-1], "many"]),
        "line 3, {row} '.*': {last} 'many' is not a number",
    ),
    "not finite": (
        lambda reader: lines_of(reader, lambda cells: [*cells[:-1], "nan"]),
        "line 3, {row} '.*': {last} 'nan' is not a number",
    ),
    "name empty": (
        lambda reader: lines_of(reader, lambda cells: ["", *cells[1:]]),
        "line 3: {name} is empty; every {row} needs one",
    ),
    "quote not closed": (
        lambda reader: lines_of(reader, lambda cells: [f'"{cells[0]}', *cells[1:]]),
        "line 3: its cells cannot be told apart .*; close every quote",
    ),
    "not UTF-8": (
        lambda reader: lines_of(reader, lambda cells: ["Malmö", *cells[1:]]).encode("latin-1"),
        "line 3 has the byte 0xf6, which is not UTF-8; save the table as CSV in UTF-8",
    ),
}


@pytest.mark.filterwarnings("ignore:.* not read")
@pytest.mark.parametrize("mistake", REFUSED)
def test_every_reader_refuses_the_same_files_in_the_same_words(reader, mistake, tmp_path):
    make, words = REFUSED[mistake]
    content = make(reader)
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    width = len(reader.header)
    message = words.format(
        row=reader.row, name=reader.header[0], last=reader.header[-1], width=width,
        fewer=width - 1, more=width + 1, needed=reader.needed or reader.header[0],
    )  # fmt: skip
    with pytest.raises(pc.PlumecastError, match=f"table.csv: {message}"):
        reader.read(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [("none.csv", "[Nn]o such file.*; give a "), ("", "not a readable table|[Ii]s a directory")],
)
def test_every_reader_needs_a_file(reader, name, message, tmp_path):
    with pytest.raises(pc.PlumecastError, match=message):
        reader.read(tmp_path / name)
