"""Every source gives the same kind of Dataset: the snapshot contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.names import COORDINATES, FIRE, GRID, SMOKE, SNAPSHOT, TABLE
from plumecast.data.clock import Histories
from plumecast.data.schema import validate_snapshots
from support.raster_files import COARSE, fire, write_ascii, write_landscape
from support.wrf_files import write_run


def wrf(folder: Path) -> xr.Dataset:
    return pc.read_wrf(write_run(folder / "fire_a", range(4)), drought="low", ignition_id="ridge")


def rasters(folder: Path) -> xr.Dataset:
    path = write_ascii(folder / "fire_a.asc", fire())
    return pc.read_arrival_times(
        path, pc.sources.RasterOptions(format="farsite", like=COARSE, hours=[0.5, 1.0, 1.5])
    )


def simulator(folder: Path) -> xr.Dataset:
    ground = write_landscape(folder, (40, 50), 600.0)
    return pc.simulate(
        ignitions=1, droughts=["high"], checkpoints=2, ground=pc.workflows.Ground(**ground)
    )


SOURCES = {"wrf": (wrf, [FIRE, SMOKE]), "rasters": (rasters, [FIRE]),
           "simulator": (simulator, [FIRE, SMOKE])}  # fmt: skip
"""A small fire of each source, and the fields that the source knows."""


@pytest.fixture(scope="module", params=SOURCES)
def made(request, tmp_path_factory) -> tuple[xr.Dataset, list[str]]:
    make: Callable[[Path], xr.Dataset]
    make, fields = SOURCES[request.param]
    return make(tmp_path_factory.mktemp(request.param)), fields


def test_the_snapshots_are_valid(made):
    snapshots, fields = made
    validate_snapshots(snapshots, fields)
    assert all(float(snapshots[name].max()) > 0.0 for name in fields)


def test_fields_and_labels_have_their_types_units_and_names(made):
    snapshots, fields = made
    for name in fields:
        assert snapshots[name].dtype == np.float32
        assert snapshots[name].dims == (SNAPSHOT, "y", "x")
    for name in (*fields, *(entry.name for entry in (*COORDINATES, *GRID))):
        if TABLE[name].units:
            assert snapshots[name].attrs["units"] == TABLE[name].units, name
    for name in ("fire_id", "ignition_id"):
        assert snapshots[name].dims == (SNAPSHOT,)
        assert all(snapshots[name].values)
    assert len(set(snapshots.fire_id.values)) == 1


def test_hours_increase_and_only_the_last_is_final(made):
    snapshots, _ = made
    assert (np.diff(snapshots.hours.values) > 0.0).all()
    final = [False] * (snapshots.sizes[SNAPSHOT] - 1) + [True]
    assert snapshots.is_final.values.tolist() == final
    assert (np.diff(snapshots.burned_area.values) >= 0.0).all()


def test_the_grid_is_evenly_spaced_in_metres(made):
    snapshots, _ = made
    for axis in "yx":
        steps = np.diff(snapshots[axis].values.astype(np.float64))
        assert (steps != 0.0).all()
        np.testing.assert_allclose(steps, steps[0], rtol=1e-6)


def test_burned_shares_give_the_ages_of_every_snapshot(made):
    """f is the integral of the burned share: both are of the same arrival times.

    The shares are known at a few hours, which misplaces a few hundredths of the hours of a fire.
    """
    snapshots, _ = made
    histories = Histories.of(snapshots)
    (numbers, *_) = histories.of_fire(np.arange(snapshots.sizes[SNAPSHOT]))
    assert numbers[0] >= snapshots.sizes[SNAPSHOT], "shares tell it, not maps"
    history = histories.read(numbers)
    assert (np.diff(history.hours) > 0.0).all()
    assert (np.diff(history.shares, axis=1) >= -1e-6).all()
    ages = history.ages(snapshots.hours.values[:, None])[:, 0]
    expected = snapshots[FIRE].values
    wrong = np.abs(ages - expected).sum(axis=(1, 2))
    assert (wrong <= 0.03 * expected.sum(axis=(1, 2)) + 0.03).all()
