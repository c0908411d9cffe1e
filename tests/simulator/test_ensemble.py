"""Simulated fires and ensembles: plausible physics, snapshot contract, reproducibility."""

import numpy as np
import pytest
import xarray as xr

from plumecast.base import names
from plumecast.base.checkpoints import DEPTH, INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.base.names import M2_PER_ACRE
from plumecast.compute.resources import Resources
from plumecast.physics.fuels import fuel_table
from plumecast.simulator.ensemble import (
    DROUGHTS,
    PRESETS,
    World,
    call_together,
    plan_fires,
    run_fires,
    simulate,
)
from plumecast.simulator.fire import (
    BLOCK,
    SMOKE_FLOOR,
    block_age,
    burned_acres,
    simulate_fire,
    smoke_columns,
    terrain,
)
from plumecast.simulator.landscape import Landscape
from plumecast.simulator.weather import weather

GS2, WATER = 122, 98


def hills(shape=(80, 100), cell=300.0):
    """A small landscape: gentle ridges, one fuel, a lake in a corner."""
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]] * cell
    elevation = 2000.0 + 150.0 * np.sin(x / 2500.0) * np.cos(y / 4000.0)
    fuel = np.full(shape, GS2, dtype=np.int16)
    fuel[:20, :20] = WATER
    return Landscape(elevation=elevation, fuel=fuel, cell=cell)


@pytest.fixture(scope="module")
def landscape():
    return hills()


@pytest.fixture(scope="module")
def ground(landscape):
    return terrain(landscape)


@pytest.fixture(scope="module")
def fires(landscape, ground):
    """The same ignition under each drought, 24 h."""
    return {
        drought: simulate_fire(landscape, weather(drought), (30, 40), 4, ground=ground)
        for drought in DROUGHTS
    }


def test_a_fire_follows_the_snapshot_contract(fires):
    fire = fires["medium"]
    assert fire.sizes == {
        names.SNAPSHOT: 4, "y": 8, "x": 10, "weather_hour": 25, "height": 10, "history": 3,
    }  # fmt: skip
    weather_names = (*names.WEATHER, *names.WEATHER_AXES)
    for entry in (
        *names.FIELDS,
        *names.COORDINATES,
        *names.GRID,
        *names.COVARIATES,
        *weather_names,
    ):
        assert fire[entry.name].dims == entry.dims
        attrs = dict(fire[entry.name].attrs)
        assert attrs.pop(INTERVAL, None) == (6.0 if entry.name == names.SMOKE else None)
        assert attrs.pop(DEPTH, None) == (15_000.0 if entry.name == names.SMOKE else None)
        assert attrs == entry.attrs
    assert fire.time_since_ignition.dtype == fire.smoke.dtype == np.float32
    np.testing.assert_array_equal(fire.x, 1500.0 + 3000.0 * np.arange(10))
    np.testing.assert_array_equal(fire.hours, [6.0, 12.0, 18.0, 24.0])
    np.testing.assert_array_equal(fire.is_final, [False, False, False, True])
    assert set(fire.drought.values) == {"medium"}
    assert set(fire.fuel_moisture.values) == {0.05}


def test_smoke_and_age_never_decrease_and_smoke_is_zero_or_above_the_floor(fires):
    for fire in fires.values():
        assert (fire.smoke.diff(names.SNAPSHOT) >= 0.0).all()
        assert (fire.time_since_ignition.diff(names.SNAPSHOT) >= 0.0).all()
        assert (fire.burned_area.diff(names.SNAPSHOT) > 0.0).all()
        assert fire.attrs["smoke_floor"] == SMOKE_FLOOR
        smoke = fire.smoke.values
        assert ((smoke == 0.0) | (smoke >= np.float32(SMOKE_FLOOR))).all()
        assert (smoke[0] == 0.0).any()


def test_drier_and_windier_weather_makes_larger_fires_and_more_smoke(fires):
    low, medium, high = (fires[drought] for drought in ("low", "medium", "high"))
    areas = [float(fire.burned_area[-1]) for fire in (low, medium, high)]
    first = [float(fire.smoke[0].sum()) for fire in (low, medium, high)]
    assert areas == sorted(areas)
    assert areas[0] < areas[-1]
    assert first == sorted(first)


def test_age_and_area_by_hand():
    arrival = np.array([[0.0, 2.0, np.inf, np.inf], [4.0, np.inf, np.inf, np.inf]])
    hours = np.array([3.0, 6.0])
    np.testing.assert_allclose(
        block_age(arrival, hours, 2), [[[1.0, 0.0]], [[3.0, 0.0]]]
    )  # (3 + 1)/4 and (6 + 4 + 2)/4
    np.testing.assert_allclose(
        burned_acres(arrival, hours, 300.0), np.array([2, 3]) * 300.0**2 / M2_PER_ACRE
    )


def test_fire_is_oldest_where_it_started_and_inside_its_burned_cells(fires, landscape):
    for fire in fires.values():
        age = fire.time_since_ignition.values[-1]
        assert age.max() <= 24.0
        cells = float(fire.burned_area[-1]) * M2_PER_ACRE / landscape.cell**2
        assert cells <= 100.0 * np.count_nonzero(age)
        assert age[3, 4] > 0.0  # the ignition's own block


def test_no_fire_gives_exactly_no_smoke(landscape, ground):
    unburned = np.full(landscape.fuel.shape, np.inf)
    smoke = smoke_columns(landscape, weather("high"), unburned, np.array([6.0, 12.0]), ground).means
    assert smoke.shape == (2, 8, 10)
    assert not smoke.any()


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"cell": (5, 5)}, "does not burn"),
        ({"checkpoints": 0}, "checkpoints=0"),
        ({"hours": 12.0, "checkpoints": 3}, "ends after 12 h, the last checkpoint is at 18 h"),
    ],
)
def test_impossible_fires_are_refused(landscape, ground, choices, message):
    with pytest.raises(PlumecastError, match=message):
        simulate_fire(
            landscape,
            weather("low", hours=choices.get("hours", 96.0)),
            choices.get("cell", (30, 40)),
            choices.get("checkpoints", 1),
            ground=ground,
        )


def test_terrain_must_divide_into_smoke_cells():
    with pytest.raises(PlumecastError, match="85 by 100 cells does not divide"):
        terrain(hills((85, 100)))


def small(
    landscape,
    *,
    ignitions=2,
    droughts=("low", "high"),
    weathers=0,
    checkpoints=2,
    seed=0,
    region=None,
    **choices,
):
    """The fires of a small ensemble."""
    if region is None:
        region = np.zeros(landscape.fuel.shape, dtype=bool)
        region[25:60, 25:75] = True
    world = World(seed, checkpoints, landscape=landscape, region=region)
    return simulate(world, plan_fires(ignitions, droughts, seed, weathers=weathers), **choices)


@pytest.fixture(scope="module")
def whole(landscape):
    """Two ignitions under two droughts."""
    return small(landscape)


def test_every_ignition_burns_under_its_own_drawn_weathers(landscape):
    made, rest = small(landscape, weathers=2, checkpoints=1), []
    assert made.fire_id.values.tolist() == [f"s0-i000{i}-w{w}" for i in range(2) for w in range(2)]
    assert set(made.drought.values) == {"own"}
    assert np.unique(made.wind_u.values, axis=0).shape[0] == 4
    assert np.unique(made.wind_from_direction.values).size == 4
    first, second = made.time_since_ignition.values[:2]
    assert not np.array_equal(first, second)
    assert np.minimum(first, second).any()  # both burn the cell of their ignition
    done = made.fire_id.values[:3].tolist()
    small(landscape, weathers=2, checkpoints=1, done=done, append=rest.append)
    xr.testing.assert_identical(rest[0], made.isel(snapshot=slice(3, 4)))


def test_one_fuel_map_is_stored_as_the_load_of_every_cell(landscape):
    load = small(landscape, ignitions=1, checkpoints=1).fuel_load
    (entry,) = names.GROUND
    assert (load.dims, load.attrs, load.dtype) == (entry.dims, entry.attrs, np.float32)
    assert load.values[0, 0] == 0.0  # the lake
    total = fuel_table().total_load[GS2]
    np.testing.assert_allclose(load.values[4:, 4:], total, rtol=1e-6)  # rounding to float32


def test_fuel_maps_of_several_years_are_not_stored_as_one():
    world = World(seed=0, checkpoints=1, years=2, shape=(80, 100), cell=600.0)
    (fire,) = run_fires(world, plan_fires(1, ("low",), 0))
    assert "fuel_load" not in fire.variables
    assert "wind_u" in fire.variables


def test_any_number_of_workers_gives_the_same_bytes(landscape, whole):
    pair = small(landscape, workers=2)
    for name in whole.variables:
        assert whole[name].values.tobytes() == pair[name].values.tobytes(), name
    xr.testing.assert_identical(whole, pair)


def test_resuming_skips_finished_fires_and_changes_nothing(landscape, whole):
    rest, reports = [], []
    done = set(whole.fire_id.values[:6])
    assert len(done) == 3
    result = small(
        landscape, done=done, append=rest.append,
        resources=Resources(progress=lambda *news: reports.append(news)),
    )  # fmt: skip
    assert result is None
    assert [str(fire.fire_id.values[0]) for fire in rest] == ["s0-i0001-high"]
    assert reports == [(4, 4, "s0-i0001-high")]
    xr.testing.assert_identical(rest[0], whole.isel(snapshot=slice(6, 8)))


def test_fires_come_in_order_and_share_their_ignition(whole):
    ids = [plan.fire_id for plan in plan_fires(2, ("low", "high"), 0)]
    assert whole.fire_id.values.tolist() == [name for name in ids for _ in range(2)]
    first, second = whole.time_since_ignition.values[[0, 2]]
    assert first.argmax() == second.argmax()
    assert whole.ignition_id.values[0] == whole.ignition_id.values[2]


def test_another_seed_moves_the_ignitions(landscape, whole):
    other = small(landscape, ignitions=1, droughts=("low",), seed=1)
    assert not np.array_equal(other.time_since_ignition, whole.time_since_ignition[:2])


def test_a_region_that_cannot_burn_is_refused(landscape):
    lake = np.zeros(landscape.fuel.shape, dtype=bool)
    lake[:10, :10] = True
    with pytest.raises(PlumecastError, match="none of the 100 cells"):
        small(landscape, region=lake)
    with pytest.raises(PlumecastError, match=r"region has shape \(4, 5\)"):
        small(landscape, region=np.ones((4, 5), dtype=bool))


def test_fires_are_simulated_lazily(landscape):
    everywhere = np.ones(landscape.fuel.shape, dtype=bool)
    world = World(seed=0, checkpoints=1, landscape=landscape, region=everywhere)
    fires = run_fires(world, plan_fires(1, ("low",), 0), workers=1)
    assert next(fires).sizes[names.SNAPSHOT] == 1
    assert next(fires, None) is None


def test_presets_have_the_sizes_of_the_paper_and_of_the_accuracy_tables():
    paper, size = PRESETS["paper"], PRESETS["weathers"]
    assert paper.ignitions * len(DROUGHTS) * paper.checkpoints >= 7339
    assert (size.ignitions * size.weathers, size.checkpoints, size.years) == (400, 12, 1)
    assert [cells // BLOCK for cells in size.shape] == [40, 50]
    assert size.cell * BLOCK == 3000.0


@pytest.mark.parametrize(
    ("wait", "call", "expected"),
    [
        (1.0, 0.5, [1] * 100),
        (0.125, 0.625, [1, *[5] * 19, 4]),  # five are waited for as long as a call takes
        (0.0, 1.0, [1, 32, 32, 32, 3]),
    ],
)
def test_fires_are_handed_over_together_if_calls_take_longer(whole, wait, call, expected):
    """`wait` s to simulate a fire, `call` s to write; fires before a failure are written."""
    fire, now, calls = whole.isel(snapshot=[0]), 0.0, []

    def fires():
        nonlocal now
        for _ in range(100):
            now += wait
            yield fire
        raise PlumecastError("a worker was killed")

    def write(several):
        nonlocal now
        now += call
        calls.append(len(several))

    with pytest.raises(PlumecastError, match="a worker was killed"):
        call_together(write, fires(), clock=lambda: now)
    assert calls == expected
