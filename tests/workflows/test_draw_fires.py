"""Fires drawn on a user's landscape equal those of `simulate`; other grids are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.simulator import ensemble as simulator
from plumecast.workflows.fires.draw_fires import Change, draw_scenarios
from support.raster_files import write_landscape

SHAPE, CELL = (65, 83), 600.0  # what does not fill a smoke cell of ten is cut off
CHOSEN = {"seed": 4, "checkpoints": 2}
STEERING = 0.5
DROUGHTS = ("high",)
ROUNDING = 1e-12  # relative: sums in another order


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return write_landscape(tmp_path_factory.mktemp("ground"), SHAPE, CELL)


@pytest.fixture(scope="module")
def steered(ground):
    return pc.workflows.Ground(**ground, steering=STEERING)


@pytest.fixture(scope="module")
def stored(steered, tmp_path_factory):
    path = tmp_path_factory.mktemp("simulated") / "ensemble.zarr"
    pc.simulate(path, ignitions=6, droughts=DROUGHTS, **CHOSEN, ground=steered)
    return path


@pytest.fixture(scope="module")
def surrogate(stored):
    return pc.fit_surrogate(pc.open_snapshots(stored).load(), "paper-linear")


@pytest.fixture(scope="module")
def drawn(surrogate, steered):
    return pc.draw_fires(2, like=surrogate.grid, droughts=DROUGHTS, **CHOSEN, ground=steered)


@pytest.fixture
def model(surrogate, tmp_path):
    surrogate.save(tmp_path / "smoke.plume")
    return tmp_path / "smoke.plume"


def test_drawn_fires_burn_as_those_of_the_store(stored, drawn):
    """The simulator that draws gives the store's fires for the store's ignitions."""
    plan = simulator.plan_fires(1, DROUGHTS, CHOSEN["seed"])[0]
    expected = pc.open_snapshots(stored).isel(snapshot=slice(CHOSEN["checkpoints"])).load()
    found = drawn.simulator.fire(plan, with_smoke=False)
    assert expected.fire_id.values.tolist() == found.fire_id.values.tolist()
    for name in ("time_since_ignition", "burned_area", "wind_speed"):
        xr.testing.assert_equal(found[name].variable, expected[name].variable)
    assert not {plan.number for plan in drawn.plans} & set(range(6))


def test_command_draws_as_the_training_fires_were_simulated(
    run, model, surrogate, ground, drawn, tmp_path
):
    assert surrogate.training["simulation"]["steering"] == STEERING
    rasters = ("--dem", ground["dem"], "--fuels", ground["fuels"])
    common = ("ensemble", model, "--simulate", 2, "--drought", "high", *rasters)
    result = run(*common, "-o", tmp_path / "a.nc")
    assert result.code == 0, result.err
    assert result.err.count("\n") == 1  # nothing of the ground or the weather, as in training
    written = xr.load_dataset(tmp_path / "a.nc")
    expected = pc.ensemble_statistics(surrogate, drawn).reset_coords("crs")
    xr.testing.assert_allclose(written, expected, rtol=ROUNDING)
    result = run(*common, "--steering", 0, "--checkpoints", 1, "-o", tmp_path / "b.nc")
    assert result.code == 0
    assert "statistics of 2 snapshots of 2 fires" in result.out
    for said in ("steering=0.5, these with 0.0", "checkpoints=2, these with 1"):
        assert f"note: the training fires were simulated with {said}: the surrogate" in result.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fuels": None}, "a landscape needs both an elevation and a fuel raster"),
        ({"dem": "none.tif"}, "none.tif: cannot be opened"),
        (
            {"dem": None, "fuels": None},
            "6 × 8 cells of 6000 m; no preset has it, give elevation and fuel rasters",
        ),
        (
            {"dem": None, "fuels": None, "preset": "demo"},
            "preset 'demo' is not on the surrogate's grid of 6 × 8 cells",
        ),
    ],
)
def test_ground_that_cannot_be_used_is_refused(surrogate, steered, change, message):
    land = {name: change[name] for name in ("dem", "fuels", "steering") if name in change}
    others = {name: value for name, value in change.items() if name not in land}
    with pytest.raises(PlumecastError, match=message):
        pc.draw_fires(
            2, like=surrogate.grid, ground=replace(steered, **land), **{**CHOSEN, **others}
        )


def test_rasters_on_another_grid_are_refused(surrogate, tmp_path):
    ground = pc.workflows.Ground(**write_landscape(tmp_path, SHAPE, 300.0))
    with pytest.raises(PlumecastError, match="6 × 8 cells of 3000 m, not the surrogate's grid"):
        pc.draw_fires(2, like=surrogate.grid, ground=ground)


def test_fires_are_drawn_with_weathers_of_their_own(steered):
    drawn = pc.draw_fires(3, weathers=2, **CHOSEN, ground=steered)
    ignitions = [f"s4-i{1_000_000 + number}" for number in (0, 0, 1)]
    names = [f"{ignition}-w{w}" for ignition, w in zip(ignitions, (0, 1, 0), strict=True)]
    assert [plan.fire_id for plan in drawn.plans] == names
    assert drawn.settings["weather"] == "own"
    fires = drawn.make(drawn.plans)
    assert set(fires.drought.values) == {"own"}
    assert fires.wind_u.sizes == {"snapshot": 6, "weather_hour": 13, "height": 10}
    simulated = pc.simulate(ignitions=1, weathers=1, **CHOSEN, ground=steered)
    plan = simulator.plan_fires(1, (), CHOSEN["seed"], weathers=1)[0]
    again = drawn.simulator.fire(plan, with_smoke=False)
    for name in ("time_since_ignition", "wind_u", "boundary_layer_depth", "fuel_load"):
        xr.testing.assert_equal(again[name].variable, simulated[name].variable)


def test_the_preset_of_weathers_draws_them_by_itself():
    assert [plan.weather for plan in pc.draw_fires(2, preset="weathers").plans] == [0, 0]
    shared = pc.draw_fires(2, preset="weathers", droughts=("low",))
    assert [plan.drought for plan in shared.plans] == ["low", "low"]


def test_a_surrogate_of_own_weathers_gets_such_fires(ground, steered, tmp_path, run):
    store, model = tmp_path / "own.zarr", tmp_path / "own.plume"
    fires = pc.simulate(store, ignitions=4, weathers=1, **CHOSEN, ground=steered)
    pc.fit_surrogate(fires.load(), "paper-linear").save(model)
    words = ("ensemble", model, "--simulate", 2, "--dem", ground["dem"], "--fuels", ground["fuels"])
    result = run(*words, "-o", tmp_path / "a.nc")
    assert (result.code, "simulated with" in result.err) == (0, False)
    result = run(*words, "--drought", "low", "-o", tmp_path / "b.nc")
    assert "simulated with weather=own, these with drought: the surrogate" in result.err


def origins(fires) -> np.ndarray:
    """The oldest cell of every fire."""
    field = fires.make(fires.plans).time_since_ignition.values
    return field.reshape(field.shape[0], -1).argmax(axis=1)


def test_scenarios_of_other_fuels_burn_from_the_same_ignitions(ground, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    changes = {"timber": Change(ground["fuels"])}
    for name, code, columns in (("thinned", 181, slice(10, 70)), ("bare", 99, slice(35, 42))):
        changes[name] = Change(tmp_path / f"{name}.tif")
        with rasterio.open(ground["fuels"]) as file:
            profile, band = file.profile, file.read(1)
        band[:, columns] = code
        with rasterio.open(changes[name].fuels, "w", **profile) as file:
            file.write(band, 1)
    few = {"weathers": 1, "checkpoints": 1}
    drawn = draw_scenarios(6, changes, ground=pc.workflows.Ground(dem=ground["dem"]), **few)
    first, *others = (origins(fires) for fires in drawn.values())
    for other in others:
        np.testing.assert_array_equal(other, first)
    bare = pc.workflows.Ground(dem=ground["dem"], fuels=changes["bare"].fuels)
    alone = origins(pc.draw_fires(6, ground=bare, **few))
    assert (alone != first).any(), "by themselves, other fuels ignite elsewhere"


def test_droughts_are_compared_on_one_landscape(run, refused, ground):
    words = ["compare", "--simulate", 3, "--dem", ground["dem"], "--fuels", ground["fuels"]]
    result = run(*words, "--checkpoints", 1, "low", "dry=high")
    assert result.code == 0, result.err
    assert "dry − low: 3 pairs of 3 ignitions" in result.out
    assert "'one' and 'two' are both low" in refused(*words, "one=low", "two=low")
