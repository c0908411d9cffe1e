"""Places of a table on a grid: the right cell, and places that have none by their line."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastWarning

X, Y = 1000.0 * np.arange(5), 2000.0 * np.arange(4)


def grid(*, descending: bool = False, **more) -> xr.Dataset:
    return xr.Dataset(coords={"y": Y[::-1] if descending else Y, "x": X, **more})


def table(tmp_path, text: str):
    path = tmp_path / "towns.csv"
    path.write_text(text)
    return path


def test_units_and_other_names_of_columns_are_understood(tmp_path):
    path = table(tmp_path, "Plant;X [km];y (ft);Capacity_kW;azimuth\nEast;3.9;6889.764;500;SW\n")
    places = pc.read_places(path, grid())
    assert places.cells.tolist() == [5 + 4]
    assert places.numbers["megawatts"] == 0.5
    assert places.numbers["azimuth"] == 225.0


@pytest.mark.parametrize("descending", [False, True])
def test_a_place_has_the_value_of_the_cell_it_lies_in(tmp_path, descending):
    path = table(tmp_path, "name,x,y,population\nEast,3900,2100,500\nCorner,-500,-1000,\n")
    like = grid(descending=descending)
    places = pc.read_places(path, like)
    fields = xr.DataArray(
        like.y.values[:, None] + 1e-3 * like.x.values, dims=["y", "x"], coords=like.coords
    )
    np.testing.assert_allclose(places.at(fields).values, [2004.0, 0.0])
    np.testing.assert_allclose(fields.values.ravel()[places.cells], [2004.0, 0.0])
    np.testing.assert_array_equal(places.numbers["population"], [500.0, np.nan])


def test_latitudes_find_the_cell_by_projection_and_by_the_grids_own_latitudes(tmp_path):
    pyproj = pytest.importorskip("pyproj")
    crs = pyproj.CRS(5070)
    x, y = -2.0e6 + X, 1.9e6 + Y
    lon, lat = pyproj.Transformer.from_crs(crs, 4326, always_xy=True).transform(*np.meshgrid(x, y))
    path = table(tmp_path, f"name,lat,lon\nTown,{lat[2, 3]},{lon[2, 3]}\n")
    plane = xr.Dataset(coords={"y": y, "x": x, "crs": ((), 0, crs.to_cf())})
    located = xr.Dataset(
        coords={"y": y, "x": x, "lat": (("y", "x"), lat), "lon": (("y", "x"), lon)}
    )
    for like in (plane, located):
        assert pc.read_places(path, like).cells.tolist() == [2 * 5 + 3]


def test_places_in_kilometres_are_told(tmp_path):
    with pytest.warns(PlumecastWarning, match="all 2 places lie in the cell at the lower left"):
        pc.read_places(table(tmp_path, "name,x,y\nA,0.2,0.1\nB,0.4,0.3\n"), grid())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,x,y,megawatts\nA,1,2,-5\n", "line 2, place 'A': megawatts is '-5'.*at least 0 MW"),
        ("name,x,y,capacity\nA,1,2,5\n", "the unit of the column 'capacity' is not stated"),
        ("name,x\nA,1\n", "need the columns lat and lon, or x and y"),
        ("name,x,y,lat,lon\nA,1,2,3,4\n", "and not both"),
        ("name,lat,lon\nA,40,-120\n", "neither a projection nor latitudes; give x and y"),
        (
            "name,x,y\nA,1,2\nFar,9000,2\nOut,1,9e9\n",
            r"line 3, place 'Far': x 9000, y 2 lies outside the grid \(x -500 … 4500, "
            r"y -1000 … 7000\); 1 more of the places do too",
        ),
    ],
)
def test_places_that_are_not_on_the_grid_are_named_with_their_line(tmp_path, text, words):
    with pytest.raises(pc.PlumecastError, match=words):
        pc.read_places(table(tmp_path, text), grid())


def test_latitudes_outside_the_grid_are_refused(tmp_path):
    lat, lon = 40.0 + Y / 111e3, -120.0 + X / 85e3
    more = {
        "lat": (("y", "x"), np.repeat(lat[:, None], 5, 1)),
        "lon": (("y", "x"), np.repeat(lon[None], 4, 0)),
    }
    with pytest.raises(pc.PlumecastError, match="line 2, place 'A': lat 41, lon -120 lies outside"):
        pc.read_places(table(tmp_path, "name,lat,lon\nA,41,-120\n"), grid(**more))
