"""The snapshot contract: errors for what violates it, and the paper's filters."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.base.names import COLUMN, COORDINATES, FIELDS, LEVEL
from plumecast.data import covariates
from plumecast.data.covariates import read_fuel_maps
from plumecast.data.findings import check_fires
from plumecast.data.schema import (
    apply_smoke_floor,
    drop_small_fires,
    final_snapshots,
    further_outputs,
    select_drought,
    validate_snapshots,
)
from plumecast.data.split import SplitRecipe
from plumecast.data.store import append_fire, export_snapshots, open_snapshots
from support.snapshots import fires_of, make_snapshots
from support.two_outputs import add_surface


def with_values(snapshots: xr.Dataset, name: str, values: dict[tuple[int, ...], float]):
    """A copy whose variable `name` holds other values at some indices."""
    changed = snapshots.copy(deep=True)
    for index, value in values.items():
        changed[name].values[index] = value
    return changed


def with_units(snapshots: xr.Dataset, name: str, units: str | None):
    changed = snapshots.copy(deep=True)
    changed[name].attrs.pop("units")
    if units is not None:
        changed[name].attrs["units"] = units
    return changed


def labelled(name: str, values: np.ndarray) -> Callable[[xr.Dataset], xr.Dataset]:
    return lambda data: data.assign_coords({name: ("snapshot", values, data[name].attrs)})


def refused() -> Iterator[tuple[Callable[[xr.Dataset], xr.Dataset], str]]:
    """What is done to good snapshots, and what the message must say."""
    fields, units = ("time_since_ignition", "smoke"), ("smoke", "time_since_ignition", "hours", "y")
    for name, bad in itertools.product(fields, (np.nan, np.inf, -np.inf)):
        # Rows 4…7 are the second fire; the bad value of row 30 belongs to another one.
        values = {(4, 0, 0): bad, (6, 3, 3): bad, (30, 1, 1): bad}
        said = f"'{name}' holds 2 NaN or infinite values in fire 'fire-00-high' (first: {bad:g});"
        yield partial(with_values, name=name, values=values), said
    for name in fields:
        negative = {(8, 0, 0): -0.25, (8, 0, 1): -3.0}
        said = f"'{name}' holds 2 negative values in fire 'fire-01-low' (first: -0.25)"
        yield partial(with_values, name=name, values=negative), said
        for kind in ("int32", "uint8", "bool", "complex64"):
            said = f"'{name}' holds {kind}, not floating-point numbers"
            yield lambda data, n=name, k=kind: data.assign({n: data[n].astype(k)}), said
    for name in [entry.name for entry in (*FIELDS, *COORDINATES)]:
        what = "variable" if name in fields else "coordinate"
        yield lambda data, n=name: data.drop_vars(n), f"{what} '{name}' is missing; found "
    for name, unit, expected in (
        ("smoke", "kg m-3", "ug m-3"),
        ("time_since_ignition", "s", "h"),
        ("hours", "min", "h"),
        ("hours", [1, 2], "h"),
        ("burned_area", "ha", "acre"),
        ("x", "km", "m"),
    ):
        said = f"'{name}' is in '{unit}'; convert it to '{expected}'"
        yield partial(with_units, name=name, units=unit), said
    for name in units:
        said = f"'{name}' has no units; set its attribute 'units' to "
        yield partial(with_units, name=name, units=None), said
    yield labelled("fire_id", np.arange(48)), "'fire_id' holds int64, expected string"
    yield labelled("is_final", np.zeros(48)), "'is_final' holds float64, expected bool"
    yield labelled("hours", np.full(48, "six")), "'hours' holds <U3, expected float"
    percent = ("snapshot", np.full(48, 8.0))
    said = "'fuel_moisture' has no units"
    yield lambda data: data.assign_coords(fuel_moisture=percent), said
    yield lambda data: data.rename(snapshot="sample"), "no dimension 'snapshot'; found sample, y, x"
    yield lambda data: data.isel(snapshot=slice(0, 0)), "holds no snapshots"
    yield lambda data: data.transpose("y", "x", "snapshot"), "'snapshot' must be first"
    swapped = "has dimensions ('snapshot', 'x', 'y'), expected ('snapshot', 'y', 'x')"
    yield lambda data: data.transpose("snapshot", "x", "y"), swapped
    two = "fire 'fire-00-low' has two ignitions, 'elsewhere' and 'ignition-00'"
    elsewhere = partial(with_values, name="ignition_id", values={(1,): "elsewhere"})
    yield elsewhere, two
    twice = "fire 'fire-00-high' has two snapshots at 6 h"
    yield partial(with_values, name="hours", values={(5,): 6.0}), twice
    for name, value in (("hours", -1.0), ("burned_area", np.nan)):
        said = f"'{name}' is {value:g} in fire 'fire-01-low'"
        yield partial(with_values, name=name, values={(9,): value}), said


@pytest.mark.parametrize(("change", "said"), list(refused()))
def test_what_violates_the_contract_is_named(snapshots, change, said):
    with pytest.raises(PlumecastError, match=re.escape(said)):
        validate_snapshots(change(snapshots))


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("smoke", "ug m-3"),  # as it is
        ("smoke", "µg m⁻³"),  # micro sign
        ("smoke", "μg m-3"),  # Greek mu
        ("smoke", "ug/m3"),
        ("time_since_ignition", "hours"),
        ("hours", "hr"),
        ("burned_area", "acres"),
        ("x", "metres"),
    ],
)
def test_other_spellings_of_a_unit_become_the_spelling_of_the_table(snapshots, name, spelling):
    spelled = with_units(snapshots, name, spelling)
    xr.testing.assert_identical(validate_snapshots(spelled), snapshots)
    assert spelled[name].attrs["units"] == spelling, "the caller's data set was changed"


def test_other_variables_need_only_the_coordinates_that_group_them(snapshots):
    other = xr.Dataset(
        {name: snapshots[name].drop_vars(["hours", "drought"]) for name in snapshots.data_vars}
    ).rename(time_since_ignition="burned", smoke="heat")
    kept = other[["burned", "heat"]]
    for name in kept.data_vars:
        kept[name].attrs.clear()
    xr.testing.assert_identical(validate_snapshots(kept, ["burned", "heat"]), kept)
    with pytest.raises(PlumecastError, match="coordinate 'ignition_id' is missing"):
        validate_snapshots(kept.drop_vars("ignition_id"), ["burned", "heat"])


def test_smoke_below_the_floor_becomes_zero_and_the_floor_is_recorded(snapshots):
    floored = apply_smoke_floor(snapshots, 5.0)
    before, after = snapshots.smoke.values, floored.smoke.values
    np.testing.assert_array_equal(after, np.where(before < 5.0, 0.0, before))
    assert after.dtype == before.dtype
    assert floored.smoke.attrs == {**snapshots.smoke.attrs, "smoke_floor": 5.0}
    assert "smoke_floor" not in snapshots.smoke.attrs


def test_small_fires_are_dropped_snapshot_by_snapshot(snapshots):
    kept = drop_small_fires(snapshots, min_acres=5e4)
    assert kept.sizes["snapshot"] == np.count_nonzero(snapshots.burned_area >= 5e4) > 0
    assert float(kept.burned_area.min()) >= 5e4


@pytest.mark.parametrize(
    ("choose", "said"),
    [
        (lambda data: apply_smoke_floor(data, -1.0), "smoke floor -1.0 must be ≥ 0"),
        (lambda data: apply_smoke_floor(data, np.nan), "smoke floor nan must be ≥ 0"),
        (lambda data: drop_small_fires(data, min_acres=1e9), r"1e\+09 acres or more \(largest "),
        (lambda data: select_drought(data, ["low", "severe"]), "'severe' is not .* high, low"),
        (
            lambda data: final_snapshots(data.drop_vars(["hours", "is_final"])),
            "neither 'hours' nor 'is_final' tells which",
        ),
    ],
)
def test_filters_say_what_they_cannot_do(snapshots, choose, said):
    with pytest.raises(PlumecastError, match=said):
        choose(snapshots)


def test_a_fire_ends_at_its_mark_or_at_its_last_hour(snapshots):
    """The last snapshot of a fire may be left out; it counts like the others."""
    fires, last = snapshots.fire_id.values, snapshots.is_final.values
    first = last & (fires == fires[0])
    for kept, hours in ((~first | ~last, [18.0, 24.0]), (~last, [18.0]), (last | ~last, [24.0])):
        final = final_snapshots(snapshots.isel(snapshot=np.flatnonzero(kept)))
        assert sorted(final.fire_id.values) == sorted(set(fires))
        assert sorted(set(final.hours.values.tolist())) == hours


def test_droughts_are_selected_by_label(snapshots):
    high = select_drought(snapshots, "high")
    assert set(high.drought.values.tolist()) == {"high"}
    assert high.sizes["snapshot"] == 24
    xr.testing.assert_identical(select_drought(snapshots, ["high", "low"]), snapshots)


@pytest.mark.parametrize("name", ["fires.nc", "fires.zarr"])
def test_what_was_loaded_needs_its_store_no_more(snapshots, tmp_path, name):
    path = export_snapshots(snapshots, tmp_path / name)
    loaded, lazy = open_snapshots(path).load(), open_snapshots(path)
    path.rename(tmp_path / f"moved-{name}")
    validate_snapshots(loaded)
    with pytest.raises(PlumecastError, match="is not there"):
        validate_snapshots(lazy)


# Fuel loads: one map, a map of each snapshot, and what is wrong with them


GRID = ("y", "x")
MAPS = np.arange(40, dtype=np.float32).reshape(2, 4, 5)


@pytest.fixture
def fuelled() -> xr.Dataset:
    return make_snapshots(fires=3, shape=(4, 5))


def each(fuelled: xr.Dataset, number: np.ndarray) -> xr.Dataset:
    return fuelled.assign(fuel_load=(("snapshot", *GRID), MAPS[number], {"units": "kg/m2"}))


def test_different_maps_are_kept_once(fuelled, monkeypatch):
    monkeypatch.setattr(covariates, "_BLOCK", 2)
    number = np.arange(fuelled.sizes["snapshot"]) % 2
    maps, rows = read_fuel_maps(each(fuelled, number), GRID)
    np.testing.assert_array_equal(maps, MAPS)
    np.testing.assert_array_equal(rows, number)
    maps, rows = read_fuel_maps(fuelled.assign(fuel_load=(GRID, MAPS[1])), GRID)
    np.testing.assert_array_equal(maps, MAPS[1:])
    np.testing.assert_array_equal(rows, 0 * number)
    assert read_fuel_maps(fuelled, GRID) is None
    other_axes = fuelled.assign(fuel_load=(("a", "b"), MAPS[0]))  # means something else
    assert read_fuel_maps(other_axes, GRID) is None


def test_axes_may_come_in_any_order_and_rows_have_more_of_them(fuelled):
    swapped = fuelled.assign(fuel_load=(("x", "scenario", "y"), MAPS.transpose(2, 0, 1)))
    maps, number = read_fuel_maps(swapped, GRID, {"scenario": 2, "snapshot": 3})
    np.testing.assert_array_equal(maps, MAPS)
    np.testing.assert_array_equal(number, [0, 0, 0, 1, 1, 1])


def test_the_contract_takes_a_map_of_every_snapshot_and_names_the_fire_of_a_wrong_load(fuelled):
    made = each(fuelled, np.zeros(fuelled.sizes["snapshot"], int))
    assert validate_snapshots(made).fuel_load.attrs["units"] == "kg m-2"
    for value in (-1.0, np.nan):
        made.fuel_load[-1, 2, 3] = value
        named = f"'fuel_load' of fire '{made.fire_id.values[-1]}' is {value:g} in 1 of"
        with pytest.raises(PlumecastError, match=named):
            validate_snapshots(made)
    made.fuel_load.attrs["units"] = "t/acre"
    with pytest.raises(PlumecastError, match="'fuel_load' is in 't/acre'; convert it"):
        validate_snapshots(made)


# Further smoke variables: checked, stored, exported and reported as smoke is


@pytest.fixture
def tracers():
    plain = add_surface(make_snapshots(fires=4))
    tracer = 0.5 * plain.smoke
    return plain.assign(smoke_co=tracer.assign_attrs({**plain.smoke.attrs, LEVEL: COLUMN}))


def test_variables_with_a_level_are_further_outputs(tracers):
    assert further_outputs(tracers) == ["smoke_co", "surface_smoke"]
    other = tracers.assign(smoke_age=tracers.smoke.drop_attrs())  # a variable of the user's own
    assert further_outputs(other) == ["smoke_co", "surface_smoke"]


@pytest.mark.parametrize("name", ["smoke_co", "surface_smoke"])
def test_values_and_units_are_checked_as_those_of_smoke(tracers, name):
    negative = tracers.copy(deep=True)
    negative[name][3, 2, 1] = -1.0
    found = check_fires(negative)
    assert any(f"negative {name}" in str(item) for items in found.values() for item in items)
    with_units = {units: tracers[name].assign_attrs(units=units) for units in (None, "ppm")}
    del with_units[None].attrs["units"]
    for wrong, said in (
        (negative[name], "holds 1 negative values"),
        (with_units[None], "has no units"),
        (with_units["ppm"], "is in 'ppm'"),
        (tracers[name].transpose("snapshot", "x", "y"), "has dimensions"),
    ):
        with pytest.raises(pc.PlumecastError, match=f"'{name}' {said}"):
            pc.data.validate_snapshots(tracers.assign({name: wrong}))


@pytest.mark.parametrize("ending", [".zarr", ".nc"])
def test_stores_and_exports_keep_them(tmp_path, tracers, ending):
    for fire in fires_of(tracers):
        append_fire(tmp_path / "store.zarr", fire)
    stored = pc.open_snapshots(tmp_path / "store.zarr")
    assert further_outputs(stored) == ["smoke_co", "surface_smoke"]
    path = export_snapshots(stored, tmp_path / f"copy{ending}")
    copy = pc.open_snapshots(path)
    for name in ("smoke_co", "surface_smoke"):
        np.testing.assert_allclose(copy[name], tracers[name], rtol=1e-6)  # float32
        assert copy[name].attrs[INTERVAL] == tracers.smoke.attrs[INTERVAL]


def test_an_interval_that_differs_is_dropped_from_all_of_them(tmp_path, tracers):
    first, second = fires_of(tracers)[:2]
    second = second.assign_coords(hours=second.hours.copy(data=second.hours.values / 2.0))
    for name in ("smoke", "smoke_co", "surface_smoke"):
        second[name].attrs[INTERVAL] = 3.0
    for fire in (first, second):
        append_fire(tmp_path / "store.zarr", fire)
    stored = pc.open_snapshots(tmp_path / "store.zarr")
    assert all(INTERVAL not in stored[n].attrs for n in ("smoke", "smoke_co", "surface_smoke"))


def test_a_floor_applies_to_every_output(tracers):
    floor = 5.0
    kept = SplitRecipe(smoke_floor=floor).select(tracers, ["smoke", "surface_smoke"])
    for name in ("smoke", "surface_smoke"):
        values = kept[name].values
        assert ((values == 0.0) | (values >= floor)).all()
        assert ((tracers[name].values > 0.0) & (values == 0.0)).any()
