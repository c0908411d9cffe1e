"""Smoke at places is the smoke of the predicted or stored fields in their cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import plumecast as pc
from plumecast.sources.places import read_places
from plumecast.workflows.statistics.request import Statistics
from plumecast.workflows.statistics.samples import Sampled, predicted_at, stored_at
from support.snapshots import CELL, make_snapshots


@pytest.fixture(scope="module")
def fires():
    return make_snapshots(fires=8, checkpoints=3, seed=4)


@pytest.fixture
def places(tmp_path, fires):
    path = tmp_path / "towns.csv"
    path.write_text(f"name,x,y\nA,{2 * CELL},{3 * CELL}\nB,{5.3 * CELL},{4 * CELL}\n")
    return read_places(path, fires)


def test_predicted_samples_are_the_fields_at_the_cells(split, fires, places):
    surrogate = pc.fit_surrogate(split.train, "paper-linear")
    found = predicted_at(places, surrogate, fires)
    fields = surrogate.predict(fires.astype(np.float64)).values
    np.testing.assert_allclose(found.values, fields[:, [3, 4], [2, 5]], rtol=1e-12)  # rounding
    assert found.interval == 6.0
    final = predicted_at(places, surrogate, fires, statistics=Statistics(final=True))
    np.testing.assert_array_equal(final.hours, 18.0)
    assert sorted(final.fires) == sorted(set(found.fires))


def test_stored_samples_are_the_smoke_of_the_store(tmp_path, fires, places):
    store = tmp_path / "fires.zarr"
    pc.data.append_fire(store, fires)
    found = stored_at(places, store)
    np.testing.assert_array_equal(found.values, fires.smoke.values[:, [3, 4], [2, 5]])
    # Snapshots alone, at 18 h: the column mean is taken to grow evenly.
    np.testing.assert_allclose(found.quantity("mean")[2], found.values[2] * 0.75 * 6.0 / 18.0)
    halves = slice(0, 6), slice(6, None)
    both = Sampled(tuple(stored_at(places, fires.isel(snapshot=r)) for r in halves)).joined()
    np.testing.assert_array_equal(both.values, found.values)
    np.testing.assert_array_equal(both.ignitions, found.ignitions)


def test_increments_of_a_fire_add_up_to_its_dose(fires, places):
    """Frames 6 h apart, of which the newest counts half."""
    found = stored_at(places, fires)
    mine = found.fires == found.fires[0]
    sums = found.values[mine]
    dose = 6.0 * 0.5 * (sums[-1] + sums[-2])
    np.testing.assert_allclose(6.0 * found.between()[mine].sum(axis=0), dose)


def test_increments_of_a_predicted_fire_depend_on_no_later_hour(fires, places):
    """They are the growth of the largest dose so far, also where a predicted dose falls."""
    found = stored_at(places, fires.isel(snapshot=slice(0, 3)))
    falling = np.array([[1.0, 4.0], [3.0, 1.0], [2.0, 6.0]])
    samples = replace(found, values=falling, attrs={**found.attrs, "integrated": 1})
    np.testing.assert_allclose(samples.between(), [[1.0, 4.0], [2.0, 0.0], [0.0, 2.0]])
    np.testing.assert_allclose(samples.at(np.arange(2)).between(), samples.between()[:2])
    twice = replace(samples, hours=np.full(3, 6.0))
    with pytest.raises(pc.PlumecastError, match="two snapshots at 6 h"):
        twice.between()
