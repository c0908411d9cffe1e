"""One reader of tables: what people write is understood, what is wrong is named by its line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.tables import (
    DIRECTION,
    NUMBER,
    Column,
    TableFormat,
    parse_table,
    read_table,
    write_table,
)

TOWNS = TableFormat(
    columns=(
        Column("name", "place town"),
        Column("lat", "latitude", "angle", -90.0, 90.0),
        Column("wind_speed", "speed ws", "speed", low=0.0, required=False),
        Column("wind_from", "", DIRECTION, 0.0, 360.0, required=False),
        Column("mw", "", "power", low=0.0, required=False, filled=False, no_unit="power capacity"),
        Column("people", "population", NUMBER, low=0.0, required=False, filled=False),
    ),
    row="town",
    row_name="name",
    unique=("name",),
)


@pytest.mark.parametrize(
    ("text", "column", "numbers"),
    [
        ("name,lat\nA,40.5\nB,-3e1\n", "lat", [40.5, -30.0]),
        ("NAME , Latitude (degrees_north)\nA, 40.5\nB,.5\n", "lat", [40.5, 0.5]),
        ("\ufefftown;LAT;people\r\nA;1;\r\n\r\nB;2;7\r\n", "people", [np.nan, 7.0]),
        ("Place\tlat\tWind Speed [mph]\nA\t1\t10\nB\t1\t0\n", "wind_speed", [4.4704, 0.0]),
        ("name,lat,wind_speed_mph\nA,1,10\nB,1,0\n", "wind_speed", [4.4704, 0.0]),
        ("name,lat,ws-km/h\nA,1,36\nB,1,0\n", "wind_speed", [10.0, 0.0]),
        ("name,lat,speed\nA,1,36\nB,1,0\n", "wind_speed", [36.0, 0.0]),
        ("name,lat,Wind From (deg)\nA,1,SW\nB,1,270\n", "wind_from", [225.0, 270.0]),
        ("name,lat,capacity_kw\nA,1,500\nB,1,\n", "mw", [0.5, np.nan]),
        ("# made by hand\nname,lat,Power (MW)\nA,1,500\n# no power\nB,1,2\n", "mw", [500, 2]),
        ('"name","lat","people"\r"A, north","1","5"\r"B ""x""",2,6', "people", [5.0, 6.0]),
        ("name,lat,\nA,1,\nB,2,\n,,\n", "lat", [1.0, 2.0]),
    ],
)
def test_headers_units_and_delimiters_are_understood(text, column, numbers):
    table = parse_table(text, TOWNS)
    np.testing.assert_allclose(table.numbers[column], numbers, rtol=1e-14)
    assert len(table) == 2
    assert table.texts["name"][0][0] == "A"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("# nothing\n\n", "the table is empty"),
        ("lat,people\n1,2\n", "column name is missing; expected name, lat and, optionally, wind_s"),
        ("name lat\nA 1\n", "found name lat; separate the columns by commas"),
        ("name,lat,latitude\nA,1,2\n", "'lat' and 'latitude' are both the lat; keep one"),
        ("name,lat,note,note\nA,1,2,3\n", "column 'note' occurs twice"),
        ("name,lat,\nA,1,2\n", "line 2, town 'A': a cell is in a column without a name"),
        (
            "name,lat (m/s)\nA,1\n",
            r"'m/s' in the header 'lat \(m/s\)' is no unit of lat; convert it to degree",
        ),
        ("name,lat,people (thousands)\nA,1,2\n", "'thousands' in the header.*; leave it out"),
        ("name,lat,power\nA,1,2\n", r"'power' is not stated; write it .* 'power \(MW\)'"),
        ("name,lat\n\nA,1,5\n", "line 3 has 3 cells, .*; write decimals with a point"),
        (
            'name,lat\n"A,1\nB,2\n',
            r'line 2: its cells cannot be told apart .*close every quote \("',
        ),
        ('name,lat\n"A"B,1\n', "line 2: its cells cannot be told apart"),
        ("name,lat\nA,1\n#1 Mine,2\n", "line 3 begins with # .*put quotes around its first cell"),
        ("name,lat,ws\nA,1,\n", "line 2, town 'A': ws is empty"),
        ("name,lat\nA,1_0\n", "lat '1_0' is not a number"),
        ("name,lat\nA,91\n", "line 2, town 'A': lat is '91'; give a number from -90 to 90 degree"),
        ("name,lat,speed\nA,1,-2\n", "speed is '-2'; give a number of at least 0 m/s"),
        ("name,lat,speed\nA,1,1e999\n", "speed '1e999' is not a number"),
        ("name,lat\nA,1\nB,1\nA,2\n", "lines 2 and 4 both have name 'A'; keep one"),
        ("name,lat\nA,1\n".encode("utf-16-be"), "not a text file; save the table as CSV"),
        (b"PK\x03\x04sheet", "a spreadsheet or an archive; save the table as CSV"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path, content, words):
    path = tmp_path / "towns.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(PlumecastError, match=f"towns.csv: .*{words}"):
        read_table(path, TOWNS)


@settings(max_examples=300, deadline=None)
@given(
    header=st.sampled_from(["name,lat", "name;lat;ws (mph)", "name\tlat\tmw"]),
    body=st.text('AB,;\t"\n\r#-+.1e°\u2028 ', max_size=40),
)
@example("name,lat", '"A,1\nB",2')
def test_any_text_is_a_table_or_a_plain_error(header, body):
    try:
        table = parse_table(f"{header}\n{body}", TOWNS)
    except PlumecastError:
        return
    assert np.isfinite(table.numbers["lat"]).all()
    assert len(set(table.texts["name"])) == len(table)


def test_columns_that_are_not_understood_are_kept_and_named():
    with pytest.warns(
        PlumecastWarning, match="not read: 'county', 'people_2020'; a table of towns has"
    ):
        table = parse_table("name,lat,county,people_2020\nA,1,Lake,5\n", TOWNS)
    assert table.extra == {"county": ("Lake",), "people_2020": ("5",)}
    assert "people" not in table


def test_what_is_written_reads_back(tmp_path):
    path = tmp_path / "towns.csv"
    rows = [('A, "north"', 1.0 / 3.0, 0.123456789, None), ("B;2", -1.0, np.float32(2.0), 7)]
    header = ("name", "lat", "mw", "people")
    write_table(path, header, rows, formats={"mw": ".2f"}, overwrite=False)
    assert path.read_bytes().splitlines()[-1] == b"B;2,-1.0,2.00,7"
    table = read_table(path, TOWNS)
    assert table.texts["name"] == ('A, "north"', "B;2")
    np.testing.assert_array_equal(table.numbers["lat"], [1.0 / 3.0, -1.0])
    np.testing.assert_array_equal(table.numbers["mw"], [0.12, 2.0])
    np.testing.assert_array_equal(table.numbers["people"], [np.nan, 7.0])
    with pytest.raises(PlumecastError, match="exists"):
        write_table(path, header, rows, overwrite=False)
