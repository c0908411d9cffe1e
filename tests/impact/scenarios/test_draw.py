"""Scenarios of the simulator burn from the same ignitions, whatever their fuels."""

from __future__ import annotations

import numpy as np
import pytest

import plumecast as pc
from plumecast.workflows.fires.draw_fires import Change, draw_scenarios
from support.raster_files import write_landscape

SHAPE, CELL = (60, 80), 600.0
FEW = {"weathers": 1, "checkpoints": 1, "with_smoke": True}


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    """A hill of timber, the same mostly thinned, and the same with a bare strip."""
    rasterio = pytest.importorskip("rasterio")
    pytest.importorskip("numba")
    folder = tmp_path_factory.mktemp("ground")
    paths = write_landscape(folder, SHAPE, CELL)
    with rasterio.open(paths["fuels"]) as file:
        profile, band = file.profile, file.read(1)
    for name, code, columns in (("thinned", 181, slice(10, 70)), ("bare", 99, slice(35, 42))):
        strip = band.copy()
        strip[:, columns] = code
        paths[name] = folder / f"{name}.tif"
        with rasterio.open(paths[name], "w", **profile) as file:
            file.write(strip, 1)
    return paths


def origins(fires) -> np.ndarray:
    """The oldest cell of every fire."""
    field = fires.make(fires.plans).time_since_ignition.values
    return field.reshape(field.shape[0], -1).argmax(axis=1)


def test_the_same_ignitions_burn_other_fuels(ground):
    changes = {name: Change(ground[name]) for name in ("fuels", "thinned", "bare")}
    drawn = draw_scenarios(6, changes, ground=pc.workflows.Ground(dem=ground["dem"]), **FEW)
    first, *others = (origins(fires) for fires in drawn.values())
    for other in others:
        np.testing.assert_array_equal(other, first)
    alone = pc.draw_fires(
        6, ground=pc.workflows.Ground(dem=ground["dem"], fuels=ground["bare"]), **FEW
    )
    assert (origins(alone) != first).any(), "by themselves, other fuels ignite elsewhere"


def test_droughts_on_one_landscape(run, refused, ground):
    words = ["compare", "--simulate", 3, "--dem", ground["dem"], "--fuels", ground["fuels"]]
    result = run(*words, "--checkpoints", 1, "low", "dry=high")
    assert result.code == 0, result.err
    assert "dry − low: 3 pairs of 3 ignitions" in result.out
    assert "'one' and 'two' are both low" in refused(*words, "one=low", "two=low")
