"""Column transport: conservation, displacement, release within a step, any array namespace."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumecast.operators.carried.release import (
    FireHistory,
    FuelLoads,
    WeatherSeries,
    partial_release_of,
    release_of,
)
from plumecast.operators.carried.transport import (
    CARRIED,
    ColumnTransport,
    plan_transport,
    shift_matrices,
)

CELL = 3000.0
SHAPE = (30, 40)
SINGLE = 1e-5
"""Relative: sums of float32 in another order."""


def weather(u: float, v: float, until: float, count: int = 1, depth: float = 1000.0):
    hours, heights = np.arange(np.ceil(until) + 1.0), np.array([10.0, 1000.0, 6000.0])
    shape = (count, hours.size, heights.size)
    return WeatherSeries(
        hours, heights, np.full(shape, u), np.full(shape, v),
        np.full(shape[:2], depth), np.full(count, until),
    )  # fmt: skip


def transport(**change) -> ColumnTransport:
    plain = ColumnTransport((CELL, CELL), 1.0, 0.5, 4, CARRIED["column"].groups)
    return replace(plain, **change)


def two_cells(age: float) -> np.ndarray:
    """Two neighbours that lit at the same time, so that both burn in LEAST_CROSSING hours."""
    fire = np.zeros((1, *SHAPE), np.float32)
    fire[0, 15, 10:12] = age
    return fire


def centre(field: np.ndarray) -> tuple[float, float]:
    y, x = np.mgrid[: field.shape[0], : field.shape[1]]
    return (y * field).sum() / field.sum(), (x * field).sum() / field.sum()


def test_smoke_moves_with_the_wind():
    """Released evenly from 0.25 h before its mean age to 0.25 h after."""
    hours, age = 4.0, 3.0
    smoke = transport(interval=hours).smoke(two_cells(age), weather(2.0, 1.0, hours))[0, 0]
    row, column = centre(smoke)
    cells = age * 3600.0 / CELL
    assert row - 15.0 == pytest.approx(1.0 * cells, abs=0.15)
    assert column - 10.5 == pytest.approx(2.0 * cells, abs=0.3)  # within a step of half an hour


def test_a_descending_axis_turns_the_northward_wind():
    fire = two_cells(3.5)
    up = transport(interval=4.0).smoke(fire, weather(1.0, 1.0, 4.0))
    down = transport(interval=4.0, spacing=(-CELL, CELL)).smoke(
        fire[:, ::-1].copy(), weather(1.0, 1.0, 4.0)
    )
    np.testing.assert_allclose(down[:, :, ::-1], up, atol=SINGLE * up.max())


def test_smoke_released_during_a_step_is_a_line_without_gaps():
    """12 cells an hour: the row of the plume has no cell without smoke between the ends."""
    fire = two_cells(0.9)
    smoke = transport(step=1.0).smoke(fire, weather(10.0, 0.0, 1.0))[0, 0]
    row = smoke[15]
    reached = np.flatnonzero(row > 1e-3 * row.max())
    assert reached.size >= 9
    assert np.array_equal(reached, np.arange(reached[0], reached[-1] + 1))


def test_parts_of_the_column_add_up_to_it():
    fire, air = two_cells(5.0), weather(3.0, -1.0, 6.0)
    whole = transport().smoke(fire, air)
    parts = transport(groups=CARRIED["layers"].groups).smoke(fire, air)
    assert parts.shape[1] == 3
    np.testing.assert_allclose(parts.sum(1), whole[:, 0], rtol=SINGLE, atol=SINGLE * whole.max())


def test_a_front_releases_each_cell_as_it_crosses_it():
    """A front of 1 cell per 2 h: ages s²/(2D) while it crosses and s − D/2 afterwards."""
    entry = 2.0 * np.arange(6.0)
    since = np.maximum(7.0 - entry, 0.0)
    ages = np.where(since < 2.0, since**2 / 4.0, since - 1.0)
    fire = np.tile(ages, (1, 3, 1))
    burned = release_of(fire, np.array([[[7.0]]])).by(np.array([[7.0]]))[0, 0, 1]
    np.testing.assert_allclose(burned[:3], 1.0)
    assert 0.3 < burned[3] < 0.8  # half of it
    np.testing.assert_array_equal(burned[4:], 0.0)


@pytest.mark.parametrize("release", [release_of, partial_release_of])
def test_the_release_never_runs_backwards(release):
    rng = np.random.default_rng(1)
    fire = np.maximum(rng.normal(size=(2, 8, 9)), 0.0) * 4.0
    until = np.array([12.0, 20.0])[:, None, None]
    hours = np.repeat(np.linspace(0.0, 25.0, 60)[:, None], 2, axis=1)
    shares = release(fire, until).by(hours)
    assert (np.diff(shares, axis=0) >= 0.0).all()
    assert ((shares >= 0.0) & (shares <= 1.0)).all()


def test_a_cell_that_burns_in_part_releases_its_part_since_the_ignition():
    """A fifth of two cells burned in half an hour: their mean age is .2 · 7.75 h after 8 h."""
    until = np.array([[[8.0]]])
    fire = np.zeros((1, 3, 3))
    fire[0, 1, 1:] = 0.2 * 7.75
    release = partial_release_of(fire, until)
    share = 0.2 * 7.75 / 8.0
    early, late = release.by(np.array([[1.0], [8.0]]))[:, 0, 1, 1]
    np.testing.assert_allclose([early, late], share)
    assert (
        release_of(fire, until).by(np.array([[6.0]]))[0, 0, 1, 1] == 0.0
    )  # as a whole cell: in hour 7
    np.testing.assert_allclose(share, 0.2, rtol=0.05)  # φ takes the oldest cell as lit at hour 0


def test_whole_cells_since_the_ignition_release_as_before():
    until = np.array([[[6.0]]])
    fire = np.zeros((1, 4, 5))
    fire[0, 1:3, 1:3] = [[6.0, 5.0], [4.0, 2.5]]
    hours = np.array([[1.0], [3.0], [6.0]])
    whole, partial = (f(fire, until).by(hours) for f in (release_of, partial_release_of))
    np.testing.assert_array_equal(whole, partial)


def test_a_new_transport_lets_cells_burn_in_part_and_a_stored_one_stays_as_it_was():
    air, fire = weather(3.0, 0.0, 6.0), two_cells(1.0)
    plan = plan_transport(air, (CELL, CELL), 1.0)
    assert plan.partial
    assert not transport().partial  # what a file without the field loads as
    # Two cells with a mean age of 1 h after 6 h: a sixth of them has burned since the ignition.
    moved = [centre(replace(plan, partial=own).smoke(fire, air)[0, 0])[1] for own in (False, True)]
    assert moved[1] > moved[0] + 3.0  # 18 km an hour of 3 km cells, five hours longer


@pytest.mark.parametrize("spread", [[1.0], [0.1, 0.8, 0.1], [0.05, 0.2, 0.5, 0.2, 0.05]])
def test_shifts_conserve_smoke_and_move_its_centre_exactly(spread):
    moves = np.array([[0.0, 0.3, -2.7]])
    matrices = shift_matrices(20, moves, np.array(spread))[0, :, :, 10]
    np.testing.assert_allclose(matrices.sum(-1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(matrices @ np.arange(20.0) - 10.0, moves[0], atol=1e-5)
    assert (matrices >= 0.0).all()


def test_diffusion_adds_its_variance_on_any_cell_size():
    for cell in (3000.0, 300.0):
        air = weather(0.0, 0.0, 2.0)
        smoke = transport(interval=2.0, spacing=(cell, cell)).smoke(two_cells(1.75), air)[0, 0]
        rows = np.arange(SHAPE[0])
        share = smoke.sum(axis=1) / smoke.sum()
        spread = (share * (rows - 15.0) ** 2).sum() * cell**2
        # Released from hour 0 to 0.5 and moved in whole steps: 1.5 h of diffusion.
        assert spread == pytest.approx(2.0 * 100.0 * 1.5 * 3600.0, rel=0.05)


def test_the_plan_follows_the_fires():
    short, long = weather(8.0, 0.0, 8.0), weather(8.0, 0.0, 72.0)
    plan = plan_transport(short, (CELL, -CELL), 1.0, kind="layers")
    assert (plan.step, plan.groups) == (0.5, CARRIED["layers"].groups)
    assert plan_transport(long, (CELL, CELL), 6.0).step == 1.0
    assert plan_transport(long, (CELL, CELL), 6.0).halvings == 3  # 9.6 cells an hour, at most 3
    assert plan_transport(weather(0.5, 0.0, 72.0), (CELL, CELL), 6.0).halvings == 1


@pytest.mark.parametrize("rows", [1, 5])
def test_steps_whose_matrices_are_made_together_change_nothing(rows, monkeypatch):
    fires = np.concatenate([two_cells(age) for age in (2.0, 5.5)])
    air = weather(4.0, -3.0, 6.0, 2)
    expected = transport().smoke(fires, air)
    monkeypatch.setattr("plumecast.operators.carried.transport.STEP_ROWS", rows)
    found = transport().smoke(fires, air)
    np.testing.assert_allclose(found, expected, rtol=SINGLE, atol=SINGLE * expected.max())


@pytest.mark.parametrize("free", [1, 10**12])
def test_blocks_on_a_device_change_nothing(free, monkeypatch):
    """With one free byte blocks are those of the host, with a terabyte there is a single one."""
    fires = np.concatenate([two_cells(0.5 + 0.4 * n) for n in range(12)])
    air = weather(4.0, -3.0, 6.0, 12)
    expected = transport().smoke(fires, air)
    monkeypatch.setattr("plumecast.operators.carried.transport.free_bytes", lambda _: free)
    np.testing.assert_allclose(transport().smoke(fires, air), expected, rtol=SINGLE, atol=1e-9)


@given(until=st.floats(0.3, 7.0), interval=st.sampled_from([0.5, 1.0, 3.0]))
@settings(max_examples=20, deadline=None)
def test_frames_are_counted_backwards_from_the_hour_of_a_snapshot(until, interval):
    """The sum is over frames `interval` apart that end at the hour, whatever the hour is."""
    hours = np.array([2.0, 8.0])
    maps = np.concatenate([two_cells(1.0), two_cells(7.0)])

    def carried(hour: float, apart: float) -> np.ndarray:
        history = FireHistory(maps, hours, np.array([[0, 1]]))
        plain = transport(interval=apart, partial=True)
        return plain.smoke(two_cells(0.5), weather(1.0, 0.5, hour), None, history)

    whole = carried(until, interval)
    # Frames so far apart that only the last one is after ignition.
    parts = sum(carried(float(hour), 100.0) for hour in np.arange(until, 1e-9, -interval))
    np.testing.assert_allclose(whole, parts, rtol=1e-4, atol=1e-5 * whole.max())


@pytest.mark.parametrize(("steps", "later"), [(1, 1e-3), (2, 0.1), (5, 0.02)])
def test_thin_smoke_does_not_run_ahead_just_after_a_whole_number_of_steps(steps, later):
    """What burned in the part of a step after ignition has moved for that part alone.

    It was spread along a whole step before: a thin plume that reached 9 km farther .001 h later.
    """
    plain = transport(partial=True)
    speed = 10.0  # m/s
    reach = []
    for until in (plain.step * steps, plain.step * steps + later):
        maps = two_cells(until)
        history = FireHistory(maps, np.array([until]), np.array([[0]]))
        field = plain.smoke(maps, weather(speed, 0.0, until), None, history)[0, 0]
        reach.append(np.flatnonzero(field.sum(axis=0) > 1e-6 * field.max()).max())
    farther = speed * 3600.0 * later / CELL  # cells
    # One more step interpolates and diffuses once more: a cell each.
    assert reach[0] <= reach[1] <= reach[0] + np.ceil(farther) + 2


@pytest.mark.parametrize("steps", [1, 5])
def test_the_integral_is_the_trapezoid_of_the_smoke_at_every_step(steps):
    """By three transports: the sums over frames, over all steps, and of the last step alone."""
    coarse = transport(interval=2.0, partial=True)
    until = steps * coarse.step
    fires, air = two_cells(until), weather(3.0, 1.0, until)
    sums, integral = coarse.summed(fires, air)[0]
    every, last = (
        replace(coarse, interval=own).smoke(fires, air)[0]
        for own in (coarse.step, 100.0 * coarse.step)
    )
    np.testing.assert_array_equal(sums, coarse.smoke(fires, air)[0])
    expected = coarse.step * (every - 0.5 * last) / coarse.interval
    np.testing.assert_allclose(integral, expected, rtol=SINGLE, atol=SINGLE * expected.max())


def load(value: float) -> np.ndarray:
    return np.full(SHAPE, value, np.float32)


def fires(count: int) -> np.ndarray:
    made = np.zeros((count, *SHAPE), np.float32)
    made[:, 15, 10:12] = np.linspace(3.0, 5.5, count)[:, None]
    return made


@pytest.fixture
def loads() -> FuelLoads:
    """Of five snapshots, on two of three maps."""
    return FuelLoads(np.stack([load(1.0), load(9.0), load(2.0)]), np.array([0, 2, 2, 0, 2]))


def test_twice_the_fuel_makes_twice_the_smoke():
    """Nearly: more heat makes smoke rise higher, so that less of it is deposited."""
    own = transport(load=load(1.0))
    once = own.smoke(fires(2), weather(3.0, -3.0, 6.0, 2))
    twice = own.smoke(
        fires(2), weather(3.0, -3.0, 6.0, 2), FuelLoads(load(2.0)[None], np.zeros(2, int))
    )
    assert twice.sum() == pytest.approx(2.0 * once.sum(), rel=0.03)


def test_the_map_of_training_gives_the_same_bits():
    own = transport(load=load(1.7))
    same = FuelLoads(load(1.7)[None], np.zeros(3, int))
    each = FuelLoads(np.stack([load(1.7)] * 3), np.arange(3))
    expected = own.smoke(fires(3), weather(3.0, -3.0, 6.0, 3))
    for fuel in (same, each):
        np.testing.assert_array_equal(
            own.smoke(fires(3), weather(3.0, -3.0, 6.0, 3), fuel), expected
        )


def test_every_snapshot_burns_its_own_fuel(loads):
    together = transport(load=load(1.0)).smoke(fires(5), weather(3.0, -3.0, 6.0, 5), loads)
    for row, value in enumerate((1.0, 2.0, 2.0, 1.0, 2.0)):
        rows = slice(row, row + 1)
        alone = transport(load=load(value)).smoke(fires(5)[rows], weather(3.0, -3.0, 6.0, 1))
        np.testing.assert_allclose(together[rows], alone, rtol=1e-5, atol=1e-9)  # float32


@pytest.mark.parametrize("namespace", ["torch", "array_api_strict"])
def test_other_arrays_give_the_same(namespace, loads):
    xp = pytest.importorskip(namespace)
    """Without a load of its own, a transport takes none."""
    plain = transport().smoke(fires(5), weather(3.0, -3.0, 6.0, 5), loads)
    np.testing.assert_array_equal(plain, transport().smoke(fires(5), weather(3.0, -3.0, 6.0, 5)))
    own = transport(load=load(1.0))
    there = own.smoke(xp.asarray(fires(5)), weather(3.0, -3.0, 6.0, 5), loads)
    here = own.smoke(fires(5), weather(3.0, -3.0, 6.0, 5), loads)
    np.testing.assert_allclose(np.asarray(there), here, rtol=1e-4, atol=1e-9)  # float32


def test_the_mean_counts_every_snapshot(loads):
    np.testing.assert_allclose(loads.mean(), 1.6)
    one = replace(loads, maps=load(0.1)[None], number=np.zeros(3, int))
    np.testing.assert_array_equal(one.mean(), load(0.1))


def test_smoke_is_conserved_but_for_deposition_and_the_rim():
    """2 kg of fuel burn within the first hours; after four a few percent are deposited."""
    still = transport(interval=4.0).smoke(two_cells(3.5), weather(0.0, 0.0, 4.0))
    assert 0.95 * 2.0 < still.sum() < 2.0
    assert centre(still[0, 0]) == pytest.approx((15.0, 10.5), abs=1e-3)
    gone = transport(interval=12.0).smoke(two_cells(11.0), weather(15.0, 0.0, 12.0))
    assert gone.sum() < 1e-4
    empty = transport().smoke(np.zeros((2, *SHAPE), np.float32), weather(5.0, 2.0, 6.0, 2))
    assert not empty.any()
