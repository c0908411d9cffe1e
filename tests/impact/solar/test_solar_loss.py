"""Energy that plants lose: limits, sums, bands, intervals."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

pytest.importorskip("pvlib")

import plumecast as pc
from plumecast.impact.loss import aod_nodes, energy_table
from plumecast.impact.optics import Air, Optics, spectrl2, tabulate
from plumecast.impact.plants import (
    Exposure,
    Panels,
    Plants,
    ac_power,
    read_ignition_time,
    sun_position,
)
from plumecast.impact.solar_loss import Uncertainty, Unrecorded
from support.calibrations import calibrate
from support.plants import NOON, smoky, write_plants

UNDATED = {
    "unrecorded": Unrecorded(latitude=39.0),
    "uncertainty": Uncertainty(optics_samples=8),
}
GIVEN = UNDATED | {"ignition_time": NOON}


def banded(lower: np.ndarray, upper: np.ndarray | None) -> dict[str, object]:
    """The arguments with bands of the smoke."""
    return GIVEN | {"uncertainty": Uncertainty(lower=lower, upper=upper, optics_samples=8)}


TABLE_ERROR = 1e-4  # of the clear energy; the docstring of EnergyTable promises it
ROUNDING = 1e-9


@pytest.fixture
def table(tmp_path):
    return write_plants(tmp_path / "plants.csv")


def test_no_smoke_loses_nothing(table):
    """The clear energy is that of the capacity."""
    found = pc.solar_loss(smoky(concentration=0.0), table, **GIVEN)
    np.testing.assert_array_equal(found.lost_energy, 0.0)
    np.testing.assert_array_equal(found.lost_percent, 0.0)
    np.testing.assert_array_equal(found.lost_energy_upper.sel(part="total"), 0.0)
    a, b, both = found.clear_energy.values
    assert a == pytest.approx(2.0 * b)
    assert both == pytest.approx(a + b)
    # One day in September: 5 to 9 hours at full power are usual for a clear sky.
    assert 5.0 < a / 100.0 < 9.0


def test_more_smoke_loses_more_but_less_than_in_proportion(table):
    lost = [
        float(pc.solar_loss(smoky(1, concentration=c), table, **GIVEN).lost_energy[0])
        for c in (2.0, 4.0, 8.0)
    ]
    assert (np.diff(lost) > 0.0).all()
    assert (np.array(lost[1:]) < 2.0 * np.array(lost[:-1])).all()


def test_the_table_is_the_chain_of_models():
    """Interpolated energy against spectrl2 and PVWatts at every step."""
    plants = Plants(
        ("a",), np.array([10.0]), np.array([39.0]), None, np.array([35.0]), np.array([180.0]),
        np.array([500.0]),
    )  # fmt: skip
    optics, panels, ignition = Optics(), Panels(), read_ignition_time(NOON)
    nodes = aod_nodes(optics.background, 6.0)
    sky = tabulate(
        "spectrl2", nodes, np.linspace(0.88, 0.97, 5), plants.pressure, optics,
        Air(day=ignition.day),
    )  # fmt: skip
    interval = np.array([[1.0, 5.0]])
    table = energy_table(interval, plants, ignition, sky, panels)
    hours = 1.25 + 0.5 * np.arange(8)
    zenith, azimuth = (item[:, 0] for item in sun_position(ignition, hours, plants.latitude, None))
    seen = Exposure(zenith, azimuth, np.full(8, 35.0), np.full(8, 180.0))
    air = Air(day=ignition.day, pressure=float(plants.pressure[0]))

    def energy(aod, ssa):
        beam, diffuse = spectrl2(zenith, np.full(8, aod), np.full(8, ssa), optics, air)
        power = ac_power(seen, beam, diffuse, extra=sky.extra, panels=panels)
        return 0.5 * 10.0 * power.sum()

    for ssa in (0.9, 0.93, 0.96):
        clear = energy(optics.background, ssa)
        assert table.clear(ssa)[0, 0] == pytest.approx(clear, rel=TABLE_ERROR)
        for aod in (0.013, 0.21, 0.77, 1.9, 4.4, 5.9):
            lost = table.lost(np.zeros(1, int), np.zeros(1, int), np.array([aod]), ssa)[0]
            exact = clear - energy(optics.background + aod, ssa)
            assert lost == pytest.approx(exact, abs=TABLE_ERROR * clear)


def test_fires_are_averaged_and_plants_added(table):
    data = smoky(fires=4)
    found = pc.solar_loss(data, table, **GIVEN)
    by_fire = found.fire_lost_energy
    np.testing.assert_allclose(found.lost_energy[:-1], by_fire.mean("fire"), rtol=ROUNDING)
    np.testing.assert_allclose(
        found.lost_energy[-1], by_fire.sum("plant").mean("fire"), rtol=ROUNDING
    )
    one = data.isel(snapshot=data.fire_id.values == str(by_fire.fire.values[2]))
    alone = pc.solar_loss(one, table, **GIVEN)
    # The nodes of the table reach up to the largest smoke, which is another one here.
    clear = float(found.clear_energy[0])
    np.testing.assert_allclose(alone.fire_lost_energy[0], by_fire[2], atol=TABLE_ERROR * clear)


def test_the_interval_is_split_into_its_causes(table):
    data = smoky(fires=12)
    places = pc.solar_loss(data, table, **GIVEN)
    lost, low, high = places.lost_energy, places.lost_energy_lower, places.lost_energy_upper
    for part in ("optics", "sampling", "total"):
        assert (low.sel(part=part) <= lost).all()
        assert (high.sel(part=part) >= lost).all()
    assert np.isnan(low.sel(part="surrogate")).all()
    squares = sum((high.sel(part=part) - lost) ** 2 for part in ("optics", "sampling"))
    np.testing.assert_allclose(high.sel(part="total"), lost + np.sqrt(squares), rtol=ROUNDING)


def test_bands_of_the_smoke_become_the_part_of_the_surrogate(table):
    data = smoky(fires=4, concentration=5.0)
    values = np.repeat(data.smoke.values[:, 0, :1], 2, axis=1)
    found = pc.solar_loss(data, table, **banded(0.5 * values, 1.5 * values))
    ends = [
        pc.solar_loss(smoky(fires=4, concentration=c), table, **GIVEN).lost_energy
        for c in (2.5, 7.5)
    ]
    clear = float(found.clear_energy[-1])
    for end, exact in zip((found.lost_energy_lower, found.lost_energy_upper), ends, strict=True):
        np.testing.assert_allclose(end.sel(part="surrogate"), exact, atol=TABLE_ERROR * clear)
    with pytest.raises(pc.PlumecastError, match="the band has shape"):
        pc.solar_loss(data, table, **banded(values[:3], values[:3]))
    with pytest.raises(pc.PlumecastError, match="both lower and upper"):
        pc.solar_loss(data, table, **banded(values, None))


def test_a_band_where_no_smoke_is_predicted_counts(table):
    data = smoky(fires=4, concentration=0.0)
    zero = np.zeros((data.sizes["snapshot"], 2))
    found = pc.solar_loss(data, table, **banded(zero, zero + 5.0))
    assert (found.lost_energy_upper.sel(part="surrogate") > 0.0).all()
    assert (found.lost_energy_lower.sel(part="surrogate") == 0.0).all()


def test_solis_is_compared_only_within_its_range(table):
    thick = pc.solar_loss(smoky(concentration=20.0), table, **GIVEN)  # optical depth 1.35
    assert float(thick.model_lost_energy.sel(model="simplified_solis")) == 0.0
    assert float(thick.reference_lost_energy.sel(model="simplified_solis")) == 0.0
    thin = pc.solar_loss(smoky(concentration=3.0), table, **GIVEN)
    assert float(thin.reference_lost_energy.sel(model="simplified_solis")) == pytest.approx(
        float(thin.lost_energy[-1])
    )
    assert float(thick.model_lost_energy.sel(model="bird")) > 0.0


def test_thick_smoke_and_long_intervals_warn(table):
    with pytest.warns(UserWarning, match=r"reaches 6\.75 .* beyond 3"):
        pc.solar_loss(smoky(1, concentration=100.0), table, **GIVEN)
    with pytest.warns(UserWarning, match="24 h lie between snapshots"):
        pc.solar_loss(pc.data.final_snapshots(smoky(1, concentration=3.0)), table, **GIVEN)


@pytest.mark.parametrize("calibrated", [False, True])
def test_predicted_fires_are_those_of_the_surrogate(table, calibrated):
    """Its predictions at every hour; its error bars become the part of the surrogate."""
    data = smoky(fires=12)
    surrogate = pc.fit_surrogate(data, "paper-linear")
    hourly = pc.workflows.at_hours(data, step=1.0)
    predicted, bands = surrogate.predict(hourly), {}
    if calibrated:
        surrogate = calibrate(surrogate, data)
        ends = surrogate.error_bars.interval(predicted.values.astype(np.float64), 0.9)
        bands = {"lower": predicted.copy(data=ends[0]), "upper": predicted.copy(data=ends[1])}
    found = pc.solar_loss(data, table, surrogate=surrogate, **GIVEN)
    assert found.attrs["column_depth_m"] == 15_000.0, "the surrogate keeps the depth"
    exact = pc.solar_loss(hourly.assign(smoke=predicted, **bands), table, **GIVEN)
    np.testing.assert_allclose(found.lost_energy, exact.lost_energy, rtol=1e-4)
    for name in ("lost_energy_lower", "lost_energy_upper"):
        part = found[name].sel(part="surrogate")
        assert np.isfinite(part).all() == calibrated
        np.testing.assert_allclose(part, exact[name].sel(part="surrogate"), rtol=1e-4)


CAPACITIES = "name,x,y,megawatts\n"


@pytest.mark.parametrize(
    ("table", "given", "message"),
    [
        ("name,x,y\na,9000,9000", GIVEN, "column megawatts .* is missing"),
        (f"{CAPACITIES}a,9000,9000,", GIVEN, "line 2, place 'a': megawatts is empty"),
        (f"{CAPACITIES}a,9000,9000,5", {"ignition_time": NOON}, "latitude is missing.*state that"),
    ],
)
def test_plants_that_cannot_be_used_are_refused(tmp_path, table, given, message):
    path = tmp_path / "plants.csv"
    path.write_text(f"{table}\n")
    with pytest.raises(pc.PlumecastError, match=message):
        pc.solar_loss(smoky(), path, **given)


def test_latitudes_of_the_grid_are_those_of_its_plants(table):
    data = smoky()
    y, x = xr.broadcast(data.y, data.x)
    data = data.assign_coords(lat=39.0 + 0.0 * y, lon=-120.0 + 0.0 * x)
    samples = Uncertainty(optics_samples=8)
    from_grid = pc.solar_loss(data, table, ignition_time=NOON, uncertainty=samples)
    stated = pc.solar_loss(smoky(), table, **GIVEN)
    np.testing.assert_allclose(from_grid.lost_energy, stated.lost_energy, rtol=ROUNDING)
    time = "2020-09-08T12:00-08:00"
    clock = pc.solar_loss(data, table, ignition_time=time, uncertainty=samples)
    # 120° west is the middle of the zone: the clock and the sun differ by the equation of time.
    np.testing.assert_allclose(clock.lost_energy, stated.lost_energy, rtol=0.02)


def test_panels_that_face_away_from_the_noon_sun_make_less(tmp_path):
    table = write_plants(
        tmp_path / "plants.csv",
        "south,9000,9000,10,,", "north,9000,9000,10,40,0", "flat,9000,9000,10,0,",
        columns="name,x,y,megawatts,tilt,azimuth",
    )  # fmt: skip
    south, north, flat, _ = pc.solar_loss(smoky(), table, **GIVEN).clear_energy.values
    assert south > flat > north


def recorded(fires: xr.Dataset, *times: str) -> xr.Dataset:
    """Fires that record their times of ignition, one after the other."""
    names = list(dict.fromkeys(fires.fire_id.values.tolist()))
    started = [times[names.index(name)] for name in fires.fire_id.values.tolist()]
    return fires.assign_coords(ignition_time=("snapshot", np.array(started)))


@pytest.mark.parametrize(
    ("times", "tolerance"),
    [
        ((NOON, NOON), ROUNDING),
        ((NOON, "2020-12-20T20:00"), 2.0 * TABLE_ERROR),
        ((NOON, "2020-09-05T06:00"), 6e-3),  # one distance to the sun for ten days
    ],
)
def test_each_fire_ignites_when_it_records(table, times, tolerance):
    """The loss is the mean of those of the single fires with their times stated."""
    fires = smoky(fires=2, concentration=6.0)
    found = pc.solar_loss(recorded(fires, *times), table, **UNDATED)
    alone = [
        pc.solar_loss(
            fires.isel(snapshot=fires.fire_id.values == name), table, ignition_time=time, **UNDATED
        )
        for name, time in zip(dict.fromkeys(fires.fire_id.values.tolist()), times, strict=True)
    ]
    for name in ("clear_energy", "lost_energy"):
        mean = 0.5 * (alone[0][name] + alone[1][name]).values
        np.testing.assert_allclose(found[name].values, mean, rtol=tolerance)
    assert found.attrs["ignition_time"].startswith(min(times))
    stated = pc.solar_loss(recorded(fires, *times), table, **GIVEN)  # a stated time is for all
    assert stated.attrs["ignition_time"] == f"{NOON}:00 local solar time"


def test_times_of_ignition_that_only_some_fires_record_are_refused(table):
    fires = recorded(smoky(fires=2), NOON, "")
    with pytest.raises(pc.PlumecastError, match="needs the time of ignition"):
        pc.solar_loss(fires, table, **UNDATED)
