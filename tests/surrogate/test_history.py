"""The history of a fire is one function of time, however its snapshots are taken."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import plumecast as pc
from plumecast.base.names import FIRE
from plumecast.data.assembly import (
    PER_FIRE,
    PER_SNAPSHOT,
    block_parts,
    burned_shares,
    concat_snapshots,
    with_burned_shares,
)
from plumecast.data.clock import AGE_TOLERANCE, NODE_TOLERANCE, record_interval, take_final
from plumecast.operators.carried.release import partial_release_of
from plumecast.surrogate.weather import fire_history
from plumecast.workflows.statistics.cell_sums import open_truth
from support.weather_fires import weather_fires

BLOCKS, FINE = 8, 6  # cells on each side, and fine cells in each
HOURS = np.arange(3.0, 25.0, 3.0)


def spreading(seed: int, name: str = "", hours=HOURS, *, whole: bool = False) -> xr.Dataset:
    """Snapshots of a fire that spreads at changing speed, with the burned shares of a reader."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: BLOCKS * FINE, : BLOCKS * FINE] - rng.uniform(15.0, 30.0, (2, 1, 1))
    angle = rng.uniform(0.0, np.pi)
    along, across = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    times = np.linspace(0.0, 24.0, 97)
    reached = np.cumsum(rng.uniform(0.0, 1.0, 97) ** 3)
    far = np.hypot(along, rng.uniform(1.0, 2.0) * across)
    arrival = np.interp(far, rng.uniform(12.0, 25.0) * reached / reached[-1], times, right=np.inf)
    hours, burned = np.asarray(hours, dtype=np.float64), np.isfinite(arrival)
    parts = block_parts(burned, FINE, FINE)
    ends, most = (hours[-1:], PER_FIRE) if whole else (hours, PER_SNAPSHOT)
    kept, shares = burned_shares(arrival[burned], parts, ends, most=most)
    before = hours.size - ends.size  # of rasters, the last snapshot holds all
    kept = np.pad(kept, ((before, 0), (0, 0)), constant_values=np.nan)
    shares = np.pad(shares, ((before, 0), (0, 0), (0, 0)))
    ages = np.maximum(hours[:, None, None] - arrival, 0.0)
    ages = ages.reshape(-1, BLOCKS, FINE, BLOCKS, FINE).mean(axis=(2, 4))
    made = xr.Dataset(
        {FIRE: (("snapshot", "y", "x"), np.float32(ages), {"units": "h"})},
        coords={
            "fire_id": ("snapshot", [name or f"s{seed}"] * hours.size),
            "hours": ("snapshot", hours, {"units": "h"}),
            "is_final": ("snapshot", hours == hours[-1]),
        },
    )
    return with_burned_shares(made, (kept, shares))


def bare(fires: xr.Dataset) -> xr.Dataset:
    return fires.drop_dims("history")


def together(*fires: xr.Dataset) -> xr.Dataset:
    return xr.concat(fires, "snapshot", data_vars="all", coords="different", compat="equals")


def released(fires: xr.Dataset) -> np.ndarray:
    """(snapshot, hour, y, x): the burned shares by twelve hours up to that of each snapshot."""
    maps, until = fires[FIRE].values, fires.hours.values
    times = np.linspace(0.05, 1.0, 12)[:, None] * until
    history = fire_history(fires, maps).loaded()
    told = np.asarray(history.release(maps).by(times))
    alone = np.asarray(partial_release_of(maps, until[:, None, None]).by(times))
    return np.where(history.known()[:, None, None], told, alone).swapaxes(0, 1)


def assert_same(found: xr.Dataset, expected: np.ndarray) -> None:
    np.testing.assert_allclose(released(found), expected, atol=2e-5)


FIRES = {
    "a young map": bare(together(*(spreading(seed, hours=[3.0]) for seed in (1, 2)))),
    "an old map": bare(together(*(spreading(seed, hours=[9.0]) for seed in (1, 2)))),
    "several maps": bare(together(spreading(1), spreading(2))),
    "shares": together(spreading(1), spreading(2)),
    "shares of the whole fire": spreading(3, whole=True),
    "shares, a map, maps": together(
        spreading(1), bare(spreading(2, hours=[3.0])), bare(spreading(3, hours=[4.0, 24.0]))
    ),
    "two fires of one name": together(
        spreading(1, "q", [3.0, 9.0, 15.0]), spreading(2, "q", [4.0, 8.0, 16.0])
    ),
    "two fires of one name, without shares": bare(
        together(spreading(1, "q", [3.0, 9.0, 15.0]), spreading(2, "q", [4.0, 8.0, 16.0]))
    ),
}


@pytest.mark.parametrize("kind", FIRES)
def test_a_fire_has_one_history_however_it_is_taken(kind):
    """Predicted as it is, by its last snapshot alone, and at the hours that are stored."""
    fires = FIRES[kind]
    expected = released(fires)
    rows = np.flatnonzero(fires.is_final.values)
    assert_same(take_final(fires, rows, history=True), expected[rows])
    every = np.arange(fires.sizes["snapshot"])
    assert_same(take_final(fires, every, history=True), expected)
    for own in fires.fire_id.to_index().unique():
        mine = np.flatnonzero(fires.fire_id.values == own)
        one = fires.isel(snapshot=mine[np.argsort(fires.hours.values[mine])])
        hours = one.hours.values
        again = pc.workflows.at_hours(one, hours)
        np.testing.assert_allclose(again[FIRE], one[FIRE], atol=1e-4)
        if kind != "two fires of one name":  # what lies between their maps has no meaning
            assert_same(again, released(one))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**16), rows=st.sets(st.integers(0, 7), min_size=1, max_size=8).map(sorted)
)
def test_some_snapshots_of_a_fire_give_the_ages_of_each(seed, rows):
    """What the shares of those that are missing told follows from the maps."""
    some = spreading(seed).isel(snapshot=rows)
    maps = some[FIRE].values
    history = fire_history(some, maps)
    assert (history.rows[:, -1] >= history.ages).all(), "shares tell it, not maps"
    told, hours = history.release(maps), some.hours.values[None]
    wrong = np.abs(told.ages(hours)[0] - maps).sum(axis=(1, 2))
    slack = AGE_TOLERANCE * maps + NODE_TOLERANCE * 3.0 * told.by(hours)[0]
    assert (wrong <= slack.sum(axis=(1, 2))).all()


def test_early_ages_of_the_last_snapshot_are_nearer_than_by_its_map():
    """Ages at hours before the first that it holds; they were 4 to 21 times too large."""
    hours = [6.0, 9.0, 12.0, 18.0]
    wrong = {"shares": 0.0, "map": 0.0}
    for seed in range(5):
        whole = spreading(seed)
        right = pc.workflows.at_hours(whole, hours)[FIRE]
        last = whole.isel(snapshot=[-1])
        for name, fire in (("shares", last), ("map", bare(last))):
            wrong[name] += float(np.abs(pc.workflows.at_hours(fire, hours)[FIRE] - right).sum())
    assert wrong["shares"] < 0.5 * wrong["map"]


@pytest.mark.parametrize("cells", [1, 3])
@pytest.mark.parametrize("rows", [slice(None), [-1]])
def test_an_edited_map_is_not_overruled_by_its_old_history(cells, rows):
    fires = spreading(5).isel(snapshot=rows)
    moved = fires.assign({FIRE: fires[FIRE].roll(x=cells)})
    assert_same(moved, released(bare(moved)))
    np.testing.assert_array_equal(
        pc.workflows.at_hours(moved, [5.0])[FIRE], pc.workflows.at_hours(bare(moved), [5.0])[FIRE]
    )


def test_last_snapshots_of_true_smoke_keep_their_history():
    fires = record_interval(weather_fires(12))
    train, truth = fires.isel(snapshot=slice(0, 30)), fires.isel(snapshot=slice(30, None))
    surrogate = pc.fit_surrogate(train, preset="quick", physics="column", frame="map")
    last = np.flatnonzero(truth.is_final.values)
    expected = surrogate.predict(truth).isel(snapshot=last)
    found = surrogate.predict(take_final(open_truth(surrogate, truth), last, history=True))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5 * float(expected.max()))


def test_joined_snapshots_keep_the_lists_of_all_parts():
    """Such as the ignitions of training, which predictions of rasters name by groups of files."""
    parts = [spreading(seed).assign_attrs(names=[f"s{seed}"], crs=seed) for seed in (2, 1)]
    joined = concat_snapshots(parts, combine_attrs="override")
    assert joined.attrs["names"] == ["s1", "s2"]
    assert joined.attrs["crs"] == 2
