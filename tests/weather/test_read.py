"""Weather as users give it: files, one wind, text; true and grid north."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import plumecast as pc
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import WIND
from plumecast.weather.fires import true_north, with_weather
from plumecast.weather.profile import components, direction_from, mean_wind
from plumecast.weather.read import as_weather
from support.snapshots import make_snapshots

SPEEDS = st.floats(0.1, 30.0)
DIRECTIONS = st.floats(0.0, 360.0, exclude_max=True)
ALBERS = "EPSG:5070"


def fires(**coordinates: object) -> xr.Dataset:
    """Three fires of two hours, without a weather."""
    made = make_snapshots(fires=3, checkpoints=2, shape=(6, 5))
    return made.drop_vars(list(WIND), errors="ignore").assign_coords(coordinates)


def winds(data: xr.Dataset) -> list[tuple[float, float]]:
    return list(zip(*(data[name].values.tolist() for name in WIND), strict=True))


def projected(lon: float, lat: float, crs: str = ALBERS, spread: float = 1.0) -> xr.Dataset:
    """Fires on a grid of a projection around a place, `spread` times as wide."""
    pyproj = pytest.importorskip("pyproj")
    data = fires()
    x, y = pyproj.Transformer.from_crs(4326, crs, always_xy=True).transform(lon, lat)
    x = x + spread * (data.x - data.x.mean())
    data = data.assign_coords(x=x, y=y + data.y - data.y.mean())
    back = pyproj.Transformer.from_crs(crs, 4326, always_xy=True)
    lons, lats = back.transform(*np.meshgrid(data.x, data.y))
    return data.assign_coords(
        lon=(("y", "x"), lons, {"units": "degrees_east"}),
        lat=(("y", "x"), lats, {"units": "degrees_north"}),
    )


@given(SPEEDS, DIRECTIONS)
def test_a_direction_is_read_back_from_its_components(speed, direction):
    u, v = components(np.array([speed]), np.array([direction]))
    apart = (direction_from(u, v) - direction + 180.0) % 360.0 - 180.0
    np.testing.assert_allclose(apart, 0.0, atol=1e-9)
    np.testing.assert_allclose(np.hypot(u, v), speed, rtol=1e-12)


@given(SPEEDS, DIRECTIONS, st.floats(0.0, 20.0))
def test_the_mean_of_a_constant_wind_is_that_wind(speed, direction, until):
    u, v = components(np.full(9, speed), np.full(9, direction))
    (mean,), (mean_from,) = mean_wind(np.arange(9.0), u, v, [until])
    assert mean == pytest.approx(speed, rel=1e-9)
    assert (mean_from - direction + 180.0) % 360.0 - 180.0 == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    "weather",
    [(5.0, 225.0), ("5 m/s", "SW"), ("18 km/h", 225), "5 m/s from SW", "18 km/h from the southwest",
     "5 mps 225", "5 m s-1 from 225 deg"],
)  # fmt: skip
def test_one_wind_in_many_words(weather):
    """It is the mean wind of every snapshot, exactly as it was given."""
    made = pc.weather.with_weather(fires(), weather)
    np.testing.assert_allclose(winds(made), [(5.0, 225.0)] * made.sizes["snapshot"], rtol=1e-12)
    assert "wind_u" not in made


@pytest.mark.parametrize(
    ("weather", "argument", "words"),
    [
        ("12 from SW", "weather", "no unit"),
        ("12 mhp from SW", "weather", "'mhp'"),
        ("12 mph from nowhere", "weather", "compass point"),
        ((-1.0, 90.0), "wind_speed", "0 or more"),
        ((float("nan"), 90.0), "wind_speed", "'nan' is no speed"),
        ((5.0, 400.0), "wind_from", "0 to 360"),
        (5.0, "weather", "a file, a Dataset"),
        ((90.0, 0.0), None, "90 m/s; check its unit"),
    ],
)
def test_what_is_no_wind_is_refused(weather, argument, words):
    with pytest.raises(PlumecastError, match=words) as error:
        as_weather(weather)
    assert getattr(error.value, "argument", None) == argument


@pytest.mark.parametrize(
    ("header", "row", "wind"),
    [
        ("fire_id,wind_speed (m/s),wind_from_direction", "6,270", (6.0, 270.0)),
        ("fire,Wind Speed [mph],wind_dir", "10,NNW", (4.4704, 337.5)),
        ("fire;speed_kn;to", "10;90", (5.144444, 270.0)),
        ("fire,u (m/s),v (m/s)", "3,-4", (5.0, 323.130102)),
        ("fire,height (ft),speed (m/s),from", "20,5,180", (5.6020998, 180.0)),
    ],
)
def test_a_table_without_hours_has_one_wind_for_every_fire(tmp_path, header, row, wind):
    mark = ";" if ";" in header else ","
    data = fires()
    names = np.unique(data.fire_id.values)
    path = tmp_path / "winds.csv"
    path.write_text("\n".join([header, *(f"{name}{mark}{row}" for name in names)]) + "\n")
    direction_is = "to" if header.endswith("to") else None
    made = pc.weather.with_weather(data, pc.read_weather(path, direction_is=direction_is))
    np.testing.assert_allclose(winds(made), [wind] * data.sizes["snapshot"], rtol=1e-6)


def test_a_wind_is_the_mean_wind_of_the_hourly_table_that_repeats_it(tmp_path):
    path = tmp_path / "hours.csv"
    hours = range(0, 25, 6)
    path.write_text("hour,height,speed (mph),dir\n" + "".join(f"{h},10,12,SW\n" for h in hours))
    hourly, constant = (pc.weather.with_weather(fires(), w) for w in (path, "12 mph from SW"))
    np.testing.assert_allclose(winds(hourly), winds(constant), rtol=1e-6)
    assert hourly.sizes["height"] == 10


def test_an_hourly_dataset_with_other_heights_has_the_same_mean_wind_as_its_file(tmp_path):
    """The wind at 10 m, not that of the nearest height."""
    weather = pc.weather.constant_weather(3.0, 270.0, 12.0).sel(height=[50.0, 500.0, 3000.0])
    weather.to_netcdf(tmp_path / "w.nc")
    made, read = (pc.weather.with_weather(fires(), w) for w in (weather, tmp_path / "w.nc"))
    np.testing.assert_array_equal(winds(made), winds(read))
    np.testing.assert_allclose(made.wind_speed, 3.0, rtol=1e-5)


def test_the_old_argument_winds_takes_speeds_without_a_unit_as_metres_per_second(tmp_path):
    path = tmp_path / "winds.csv"
    data = fires()
    names = np.unique(data.fire_id.values)
    path.write_text("fire_id,wind_speed,wind_from_direction\n"
                    + "".join(f"{name},5,270\n" for name in names))  # fmt: skip
    for old in (path, (5.0, 270.0)):
        with pytest.warns(DeprecationWarning, match="with_weather"):
            made = pc.weather.with_winds(data, old)
        assert set(winds(made)) == {(5.0, 270.0)}
    with pytest.raises(ArgumentError, match="speed_unit is missing"):
        pc.weather.with_weather(data, path)


@pytest.mark.parametrize(
    ("lon", "lat", "crs"),
    [(-121.0, 38.0, ALBERS), (-75.0, 41.0, ALBERS), (148.0, -36.0, "EPSG:32755"),
     (179.99, 60.0, "EPSG:3413")],
)  # fmt: skip
def test_true_north_is_the_convergence_of_the_projection(lon, lat, crs):
    pyproj = pytest.importorskip("pyproj")
    data = projected(lon, lat, crs)
    north = true_north(data)
    row, column = (size // 2 for size in north.shape)
    factors = pyproj.Proj(crs).get_factors(
        float(data.lon[row, column]), float(data.lat[row, column])
    )
    assert north[row, column] == pytest.approx(-factors.meridian_convergence, abs=0.02)


def test_a_wind_from_true_north_is_turned_to_the_grid():
    """West of the central meridian, true north lies to the right of the grid's y axis."""
    data = projected(-121.0, 38.0)
    angle = float(true_north(data).mean())
    assert 13.0 < angle < 17.0
    (_, turned), *_ = winds(pc.weather.with_weather(data, (5.0, 350.0)))
    assert turned == pytest.approx((350.0 + angle) % 360.0, abs=0.1)
    hourly = pc.weather.with_weather(data, pc.weather.constant_weather(5.0, 350.0, 48.0))
    assert winds(hourly)[0][1] == pytest.approx(turned, abs=1e-3)
    of_the_grid = pc.weather.constant_weather(5.0, 350.0, 48.0, north="grid")
    kept = pc.weather.with_weather(data, of_the_grid)
    assert winds(kept)[0][1] == pytest.approx(350.0, abs=1e-3)
    plane = pc.weather.with_weather(fires(), (5.0, 350.0))  # without a place
    assert winds(plane)[0][1] == 350.0


def test_each_fire_has_the_north_of_its_place():
    """On a grid as wide as a state, fires in the west are turned further than those in the east."""
    wide = projected(-110.0, 40.0, spread=100.0)
    burned = xr.zeros_like(wide.time_since_ignition)
    west = wide.fire_id == wide.fire_id[0]
    burned[{"x": 0, "y": 2}] = xr.where(west, 5.0, 0.0)
    burned[{"x": -1, "y": 2}] = xr.where(west, 0.0, 5.0)
    made = with_weather(wide.assign(time_since_ignition=burned), (5.0, 90.0))
    turned = made.wind_from_direction
    assert float(turned[west].min()) > float(turned[~west].max()) + 1.0
