"""The same run with other checkpoints: sums differ, what people read does not."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.data.split import split_by_fire
from plumecast.scores.reading import Reading
from plumecast.simulator.fire import simulate_fire, terrain
from plumecast.simulator.landscape import Landscape
from plumecast.simulator.weather import weather
from plumecast.workflows.held_out.record import recorded_evaluation
from support.quantities import time_mean
from support.snapshots import CHECKPOINT, make_snapshots

LEVELS = (0.05, 0.2)
GS2 = 122


def hourly(snapshots: xr.Dataset) -> xr.Dataset:
    """The same fires with a checkpoint every hour: a concentration that is steady in each interval
    of six hours is counted six times."""
    changed = snapshots.copy()
    changed["smoke"] = (snapshots.smoke * CHECKPOINT).assign_attrs(snapshots.smoke.attrs)
    changed["smoke"].attrs[INTERVAL] = 1.0
    return changed


@pytest.fixture(scope="module")
def simulated() -> dict[float, xr.Dataset]:
    """One simulated fire of 24 h with a checkpoint every 1 h and every 6 h."""
    y, x = np.mgrid[0:80, 0:100] * 300.0
    elevation = 2000.0 + 150.0 * np.sin(x / 2500.0) * np.cos(y / 4000.0)
    land = Landscape(elevation, np.full((80, 100), GS2, dtype=np.int16), cell=300.0)
    ground = terrain(land)
    return {
        every: simulate_fire(
            land, weather("high"), (30, 40), int(24 / every), interval=every, ground=ground
        )
        for every in (1.0, 6.0)
    }


@pytest.mark.parametrize("quantity", ["mean", "dose"])
def test_a_simulated_run_reads_the_same_with_every_interval(simulated, quantity):
    """The total over the cells is that of all steps of the simulator; within a cell, the frames
    say how it is spread, and a plume that is seen every six hours may pass between two of them."""
    often, seldom = (simulated[every].smoke for every in (1.0, 6.0))
    read = [pc.scores.as_quantity(field, quantity).values for field in (often, seldom)]
    hourly, sparse = (field.sum(axis=(1, 2)) for field in read)
    np.testing.assert_allclose(sparse, hourly[5::6], rtol=1e-3)  # the floor of each store
    apart = np.abs(read[1][-1] - read[0][-1]).sum() / read[0][-1].sum()
    assert apart < 0.35  # 0.2 when this was written
    assert often.values[-1].sum() / seldom.values[-1].sum() > 3.0


@pytest.fixture(scope="module")
def ensembles() -> dict[float, xr.Dataset]:
    snapshots = make_snapshots(fires=24)
    return {CHECKPOINT: snapshots, 1.0: hourly(snapshots)}


def evaluated(snapshots: xr.Dataset, reading: Reading) -> tuple:
    """The scores of a linear surrogate, the surrogate and the test part."""
    parts = split_by_fire(snapshots)
    surrogate = pc.fit_surrogate(parts.train, "paper-linear")
    result = pc.evaluate({"a": surrogate}, parts.validation, parts.test, reading=reading)
    return result, surrogate, parts.test


def exceedances(
    snapshots: xr.Dataset, quantity: str = "mean", interval: float | None = None
) -> list[tuple[float, ...]]:
    result, _, _ = evaluated(snapshots, Reading(quantity, LEVELS, interval=interval))
    assert result.quantity == quantity
    first, *others = result.scores[0].exceedances
    assert first.quantity == "sum"
    assert {item.quantity for item in others} == {quantity}
    return [(item.hit_rate, item.false_alarm_ratio, item.bias, item.iou) for item in others]


def test_exceedances_of_the_sum_depend_on_the_interval(ensembles):
    one, other = (exceedances(data, quantity="sum") for data in ensembles.values())
    assert one != other


def test_the_mean_is_the_default_and_is_what_its_formula_says(ensembles):
    result, surrogate, test = evaluated(ensembles[CHECKPOINT], Reading(None, LEVELS))
    called, present = time_mean(surrogate.predict(test)), pc.scores.as_quantity(test.smoke, "mean")
    for item in result.scores[0].exceedances[1:]:
        bias = (called > item.threshold).sum() / (present > item.threshold).sum()
        assert item.bias == pytest.approx(bias)
    record = result.record()
    assert recorded_evaluation(record).quantity == "mean"
    # Records of earlier versions have no quantity: they are of the sum.
    del record["quantity"]
    for item in record["scores"][0]["exceedances"]:
        del item["quantity"]
    earlier = recorded_evaluation(record)
    assert earlier.quantity == earlier.scores[0].exceedances[0].quantity == "sum"


def test_smoke_without_an_interval_needs_it_stated(ensembles):
    unknown = ensembles[CHECKPOINT].copy()
    unknown["smoke"] = unknown.smoke.copy().drop_attrs().assign_attrs(units="ug m-3")
    with pytest.raises(pc.PlumecastError, match=r"checkpoint_interval is missing: .*not record"):
        exceedances(unknown)
    with pytest.raises(pc.PlumecastError, match=r"does not record"):
        pc.train_surrogate(unknown, "paper-linear", reading=Reading(thresholds=[1.0]))
    stated = exceedances(unknown, interval=CHECKPOINT)
    # Without a recorded interval, training knows no doses: smoke is taken to grow evenly.
    np.testing.assert_allclose(stated, exceedances(ensembles[CHECKPOINT]), rtol=0.15)


def test_an_interval_that_contradicts_the_data_is_refused(ensembles):
    words = "^checkpoint_interval=1 contradicts the 6 h that 'smoke' records; leave it out$"
    with pytest.raises(pc.PlumecastError, match=words):
        exceedances(ensembles[CHECKPOINT], interval=1.0)
