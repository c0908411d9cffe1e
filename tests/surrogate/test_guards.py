"""Predictions beyond the training fires: recorded ranges, flags, warnings, and the command line."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.compute.resources import Resources
from plumecast.data.covariates import ExtrapolationWarning, extrapolating
from plumecast.surrogate.guards import EXTRAPOLATES, FLAGS, flag_meanings, limits
from support.raster_files import write_ascii
from support.snapshots import CELL, make_snapshots, select_fire
from support.windy_fires import windy

SHARE = 1e-12  # squared norms of projections, in float64


@pytest.fixture(scope="module")
def world() -> xr.Dataset:
    """Many fires in the west of a wide domain, up to 24 h old."""
    made = make_snapshots(fires=40, shape=(8, 10))
    wide = made.pad(x=(0, 10), constant_values=0.0)
    return wide.assign_coords(x=("x", CELL * np.arange(20.0), made.x.attrs))


@pytest.fixture(scope="module")
def coded(world) -> pc.Surrogate:
    return pc.fit_surrogate(world, "paper-linear")


@pytest.fixture(scope="module")
def spectral(world) -> pc.Surrogate:
    return pc.fit_surrogate(world, "quick", layers=1)


def moved(fires: xr.Dataset, cells: int) -> xr.Dataset:
    """The same fires, shifted east."""
    return fires.assign(time_since_ignition=fires.time_since_ignition.roll(x=cells))


def bits(flags) -> set[str]:
    return set(flag_meanings(int(np.bitwise_or.reduce(np.ravel(flags)))).split()) - {"no"}


def flags_of(surrogate, fires) -> np.ndarray:
    return surrogate.predict_checked(fires)[1].flags(limits(surrogate))


def warned(surrogate, fires) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        surrogate.predict(fires)
    return [str(item.message) for item in caught if item.category is ExtrapolationWarning]


# -- what training covers


def test_ranges_are_those_of_the_training_fires(world, coded):
    ranges = coded.training["ranges"]
    fire = world.time_since_ignition.values
    burned = fire > 0.0
    assert ranges["hours"] == [fire.max(axis=(1, 2)).min(), 24.0]
    assert ranges["burned_cells"] == [burned.sum(axis=(1, 2)).min(), burned.sum(axis=(1, 2)).max()]
    rows, columns = np.nonzero(burned.any(axis=0))
    assert ranges["region"] == [[rows.min(), rows.max()], [columns.min(), columns.max()]]
    basis = coded.operator.input_basis
    flat = fire.reshape(fire.shape[0], -1).astype(np.float64)
    share = np.sum(basis.encode(flat) ** 2, axis=1) / np.sum(flat**2, axis=1)
    assert ranges["represented"] == pytest.approx([share.min(), share.max()], abs=SHARE)
    assert "wind_speed" not in ranges


def test_ranges_from_a_store_and_from_a_file_are_the_same(world, coded, tmp_path):
    store = pc.export_snapshots(world, tmp_path / "w.nc")
    stored = pc.fit_surrogate(
        pc.open_snapshots(store), "paper-linear", resources=Resources(memory="2MB")
    )
    ours, theirs = coded.training["ranges"], stored.training["ranges"]
    assert ours.keys() == theirs.keys()
    for name in ("region", "hours", "burned_cells", "peak"):
        assert theirs[name] == ours[name]
    assert pc.load_surrogate(coded.save(tmp_path / "m.plume")).training["ranges"] == ours


# -- flags


@pytest.mark.parametrize("kind", ["coded", "spectral"])
def test_neither_training_fires_nor_no_fire_are_flagged(request, world, kind):
    surrogate = request.getfixturevalue(kind)
    surrogate.predict(world).to_dataset()
    assert not flags_of(surrogate, world).any()
    assert warned(surrogate, world) == []
    assert warned(surrogate, world.isel(snapshot=[0]) * 0.0) == []


def test_a_fire_elsewhere_is_flagged_as_empty_outside_and_far(world, coded, spectral):
    fires = moved(world, 10)
    with extrapolating():
        smoke = coded.predict(fires).to_dataset()
    flags = bits(flags_of(coded, fires))
    assert flags == {"empty_prediction", "outside_training_region", "far_from_training_fires"}
    assert float(smoke.smoke.max()) == 0.0
    said = warned(coded, fires)
    assert len(said) == 3
    assert all(text.startswith("fire fire-00-low at 6 h and 159 more snapshots: ") for text in said)
    assert "zero everywhere" in said[0]
    assert "100% of the burned cells lie outside the training region (y 0 … 21000, x 0" in said[1]
    # An equivariant surrogate flags another place, and does not warn.
    smoke = spectral.predict(fires).to_dataset()
    assert bits(flags_of(spectral, fires)) == {"outside_training_region"}
    assert warned(spectral, fires) == []


@pytest.mark.parametrize("kind", ["coded", "spectral"])
def test_old_fires_and_large_fires_are_named_with_value_and_range(request, world, kind):
    surrogate = request.getfixturevalue(kind)
    last = select_fire(world, "fire-03-low").isel(snapshot=[3])
    old = last.assign(time_since_ignition=4.0 * last.time_since_ignition)
    *ends, text = warned(surrogate, old)
    limited = bits(flags_of(surrogate, old)) == {"hours_beyond_training", "at_training_maximum"}
    assert limited == (kind == "spectral") == ("ends at the largest value" in "".join(ends))
    assert text.startswith("fire fire-03-low at 24 h: 90.01 h since ignition are 3.8 times the")
    everywhere = xr.full_like(last.time_since_ignition, 3.0)
    said = warned(surrogate, last.assign(time_since_ignition=everywhere))
    assert any("the fire burns 160 cells" in text for text in said)


def test_arrays_and_other_dimensions_are_checked_too(world, coded):
    old = 4.0 * world.time_since_ignition.values[:4]  # at 6, 12, 18 and 24 h
    (text,) = warned(coded, old.reshape(2, 2, 8, 20))
    assert text.startswith("snapshot 1 and 2 more snapshots: ")
    assert "h since ignition are" in text


def test_small_fires_count_their_hours_and_their_mean_ages(world, coded):
    """A fire within a cell has as many burned cells as a larger one, but small mean ages."""
    young = world.isel(snapshot=[0])
    (text,) = warned(coded, young.assign_coords(hours=("snapshot", [100.0])))
    assert "100 h since ignition are 4.2 times the 24 h" in text
    last = world.isel(snapshot=[int(np.argmax(world.hours.values))])
    small = last.assign(time_since_ignition=0.002 * last.time_since_ignition)
    flags = [bits(flags_of(coded, fires)) for fires in (last, small)]
    assert flags[0] == set()
    assert "burned_area_beyond_training" in flags[1]
    assert any("of the slowest training fire" in text for text in warned(coded, small))


def test_strong_wind_is_flagged_where_the_surrogate_uses_the_wind(run, tmp_path):
    data = windy(6)
    rotated = pc.fit_surrogate(data, "quick", layers=1, frame="wind")
    low, high = rotated.training["ranges"]["wind_speed"]
    assert [low, high] == pytest.approx(np.percentile(data.wind_speed, [0, 100]))
    gale = data.assign_coords(wind_speed=("snapshot", np.full(6, 20.0), {"units": "m s-1"}))
    assert warned(rotated, data) == []
    ends, text = warned(rotated, gale)
    assert "ends at the largest value of training in" in ends
    assert f"a wind of 20 m/s lies outside the {low:.3g} … {high:.3g} m/s of training" in text
    assert text.startswith("fire i00 at 6 h and 5 more snapshots: ")
    assert warned(pc.fit_surrogate(data, "quick", layers=1, frame="map"), gale) == []
    model = rotated.save(tmp_path / "w.plume")
    store = pc.export_snapshots(gale, tmp_path / "gale.nc")
    result = run("predict", model, store, "-o", tmp_path / "s.nc")
    assert warnings_in(result.err) == [f"warning: {ends}", f"warning: {text}"]
    assert "all 6 snapshots lie beyond the training fires (wind_beyond_training 6" in result.out
    with xr.open_dataset(tmp_path / "s.nc") as written:
        assert (written[EXTRAPOLATES] & FLAGS["wind_beyond_training"] > 0).all()


def test_a_covariate_beyond_training_is_flagged_and_warned_of_once(world):
    rng = np.random.default_rng(0)
    moisture = ("snapshot", rng.uniform(0.04, 0.1, world.sizes["snapshot"]), {"units": "1"})
    data = world.assign_coords(fuel_moisture=moisture)
    fitted = pc.fit_surrogate(data, "quick", layers=1, covariates="fuel_moisture")
    assert warned(fitted, data) == []
    dry = data.assign_coords(fuel_moisture=0.0 * data.fuel_moisture)
    assert len(warned(fitted, dry)) == 1
    with extrapolating():
        flags = flags_of(fitted, dry)
    assert set(flags.tolist()) == {FLAGS["covariate_beyond_training"]}


# -- the command line


@pytest.fixture(scope="module")
def model(coded, tmp_path_factory) -> Path:
    return coded.save(tmp_path_factory.mktemp("model") / "m.plume")


@pytest.fixture(scope="module")
def other(spectral, tmp_path_factory) -> Path:
    return spectral.save(tmp_path_factory.mktemp("model") / "s.plume")


@pytest.fixture
def arrival(tmp_path) -> Path:
    """A fire in the training region that burns for seven hours; arrival times in minutes."""
    times = np.full((80, 200), np.nan)
    times[30:50, 40:60] = np.linspace(0.0, 420.0, 20)
    size = {"NCOLS": 200, "NROWS": 80, "CELLSIZE": CELL / 10, "XLLCORNER": -CELL / 2,
            "YLLCORNER": -CELL / 2}  # fmt: skip
    return write_ascii(tmp_path / "west.asc", times, **size)


def warnings_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("warning: ")]


def test_predict_warns_once_of_a_run_and_flags_every_snapshot(run, world, model, tmp_path):
    store = pc.export_snapshots(world, tmp_path / "west.nc")
    result = run("predict", model, store, "-o", tmp_path / "w.nc")
    (trained,) = result.err.splitlines()
    assert trained.startswith("note: 20 of the ignitions are those of training")
    store = pc.export_snapshots(moved(world, 10), tmp_path / "east.nc")
    result = run("predict", model, store, "-o", tmp_path / "s.nc", "--memory", "5MB")
    assert result.code == 0
    said = warnings_in(result.err)
    assert result.err.splitlines() == [*said, trained]
    assert len(said) == 3
    assert "the predicted smoke is zero everywhere" in said[0]
    for name, flagged in (("w.nc", {0}), ("s.nc", {1 + 2 + 64})):
        with xr.open_dataset(tmp_path / name) as written:
            flags = written[EXTRAPOLATES]
            assert (flags.dims, flags.dtype) == (("snapshot",), np.int16)
            assert set(np.unique(flags)) == flagged
            assert flags.attrs["flag_masks"].tolist() == list(FLAGS.values())
            assert flags.attrs["flag_meanings"].split() == list(FLAGS)
            assert list(written.data_vars) == ["smoke_mean", "smoke"]


@pytest.mark.parametrize(
    ("options", "hours"),
    [
        (("--format", "farsite", "--hours", 7), None),
        (("--format", "farsite", "--hours", 100), 100),
        (("--unit", "h", "--hours", 420), 420),
    ],
)
def test_too_many_hours_and_minutes_declared_as_hours(
    run, other, arrival, tmp_path, options, hours
):
    command = ("predict", other, arrival, *options, "--drought", "low", "-o", tmp_path / "s.nc")
    result = run(*command)
    assert result.code == 0, result.err
    if hours is None:
        assert result.err == ""
        return
    (said,) = [text for text in warnings_in(result.err) if "h since ignition" in text]
    assert f"fire west at {hours} h: {hours} h since ignition are" in said
    assert "24 h of the longest training fire" in said
    with xr.open_dataset(tmp_path / "s.nc") as written:
        assert "hours_beyond_training" in bits(written[EXTRAPOLATES])


def test_another_place_is_a_note_for_an_equivariant_surrogate_and_a_tag(
    run, world, other, tmp_path
):
    rasterio = pytest.importorskip("rasterio")
    two = moved(world, 10).isel(snapshot=[0, 1])
    store = pc.export_snapshots(two, tmp_path / "east.nc")
    result = run("predict", other, store, "-o", tmp_path / "s.tif")
    told = "note: fire fire-00-low at 6 h and 1 more snapshots: 100% of the burned cells"
    assert told in result.err
    assert warnings_in(result.err) == []
    with rasterio.open(tmp_path / "s_fire-00-low_006h.tif") as file:
        assert file.tags()[EXTRAPOLATES] == "outside_training_region"


# -- hourly weather


@pytest.fixture(scope="module")
def breezy(world) -> xr.Dataset:
    """The fires with winds of 5 m/s near the ground and 10 m/s above, and a depth that grows."""
    count = world.sizes["snapshot"]
    speed = np.broadcast_to(np.array([5.0, 10.0]), (count, 25, 2))
    depth = np.broadcast_to(np.linspace(200.0, 1400.0, 25), (count, 25))
    profile = ("snapshot", "weather_hour", "height")
    made = world.assign(
        wind_u=(profile, speed, {"units": "m s-1"}),
        wind_v=(profile, 0.0 * speed, {"units": "m s-1"}),
        boundary_layer_depth=(profile[:2], depth, {"units": "m"}),
    )
    return made.assign_coords(
        weather_hour=("weather_hour", np.arange(25.0), {"units": "h"}),
        height=("height", [10.0, 1000.0], {"units": "m"}),
    )


@pytest.fixture(scope="module")
def weathered(breezy) -> pc.Surrogate:
    return pc.fit_surrogate(breezy, "paper-linear")


def test_ranges_of_weather_are_those_of_the_hours_of_the_fires(breezy, weathered, tmp_path):
    ranges = weathered.training["ranges"]
    assert ranges["profile_wind"] == [[10.0, 5.0], [1000.0, 10.0]]
    assert ranges["weakest_wind"] == ranges["profile_wind"]
    assert ranges["boundary_layer_depth"] == [500.0, 1400.0]  # at 6 h and at 24 h
    store = pc.export_snapshots(breezy, tmp_path / "b.nc")
    lazy = pc.fit_surrogate(
        pc.open_snapshots(store), "paper-linear", resources=Resources(memory="5MB")
    )
    assert lazy.training["ranges"]["profile_wind"] == ranges["profile_wind"]
    loaded = pc.load_surrogate(weathered.save(tmp_path / "b.plume"))
    assert loaded.training["ranges"] == ranges


def shear(breezy, factor):
    aloft = xr.where(breezy.height > 500.0, factor, 1.0)
    return breezy.assign(wind_v=breezy.wind_u * aloft)


def later(breezy):
    after = breezy.weather_hour > breezy.hours
    return breezy.assign(wind_u=breezy.wind_u * xr.where(after, 9.0, 1.0))


def between(breezy, factor):
    """At a height between those of training, whose interpolated wind is 7.5 m/s."""
    one = breezy.isel(height=[0]).assign_coords(height=[505.0])
    return one.assign(wind_u=factor * one.wind_u)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d, None),
        (later, None),
        (lambda d: d.drop_dims("weather_hour"), None),
        (lambda d: between(d, 1.6), None),
        (lambda d: d.assign(wind_u=0.9 * d.wind_u), None),
        (
            lambda d: d.assign(wind_u=0.5 * d.wind_u),
            "every height at most 0.5 times the weakest",
        ),
        (lambda d: between(d, 1.8), "the wind is 1.2 times"),
        (lambda d: shear(d, 3.0), "at some height the wind is 3.16 times the strongest of the tr"),
        (
            lambda d: d.assign(boundary_layer_depth=2.0 * d.boundary_layer_depth),
            "the largest boundary_layer_depth, 2800 m, lies outside the 500 … 1400 m",
        ),
    ],
)
def test_weather_beyond_training_is_flagged(breezy, weathered, change, said):
    fires = change(breezy)
    texts = warned(weathered, fires)
    assert len(texts) == (said is not None)
    if said is not None:
        assert said in texts[0]
        with extrapolating():
            flags = flags_of(weathered, fires)
        assert len(bits(flags)) == 1
