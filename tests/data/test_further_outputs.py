"""Further smoke variables in the contract: checked, stored, exported and reported as smoke is."""

from __future__ import annotations

import numpy as np
import pytest

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.base.names import COLUMN, LEVEL
from plumecast.data.findings import check_fires
from plumecast.data.schema import further_outputs
from plumecast.data.split import SplitRecipe
from plumecast.data.store import append_fire, export_snapshots
from support.snapshots import fires_of, make_snapshots
from support.two_outputs import add_surface


@pytest.fixture
def data():
    plain = add_surface(make_snapshots(fires=4))
    tracer = 0.5 * plain.smoke
    return plain.assign(smoke_co=tracer.assign_attrs({**plain.smoke.attrs, LEVEL: COLUMN}))


def test_variables_with_a_level_are_further_outputs(data):
    assert further_outputs(data) == ["smoke_co", "surface_smoke"]
    other = data.assign(smoke_age=data.smoke.drop_attrs())  # a variable of the user's own
    assert further_outputs(other) == ["smoke_co", "surface_smoke"]


@pytest.mark.parametrize("name", ["smoke_co", "surface_smoke"])
def test_values_and_units_are_checked_as_those_of_smoke(data, name):
    negative = data.copy(deep=True)
    negative[name][3, 2, 1] = -1.0
    found = check_fires(negative)
    assert any(f"negative {name}" in str(item) for items in found.values() for item in items)
    with_units = {units: data[name].assign_attrs(units=units) for units in (None, "ppm")}
    del with_units[None].attrs["units"]
    for wrong, said in (
        (negative[name], "holds 1 negative values"),
        (with_units[None], "has no units"),
        (with_units["ppm"], "is in 'ppm'"),
        (data[name].transpose("snapshot", "x", "y"), "has dimensions"),
    ):
        with pytest.raises(pc.PlumecastError, match=f"'{name}' {said}"):
            pc.data.validate_snapshots(data.assign({name: wrong}))


@pytest.mark.parametrize("ending", [".zarr", ".nc"])
def test_stores_and_exports_keep_them(tmp_path, data, ending):
    for fire in fires_of(data):
        append_fire(tmp_path / "store.zarr", fire)
    stored = pc.open_snapshots(tmp_path / "store.zarr")
    assert further_outputs(stored) == ["smoke_co", "surface_smoke"]
    path = export_snapshots(stored, tmp_path / f"copy{ending}")
    copy = pc.open_snapshots(path)
    for name in ("smoke_co", "surface_smoke"):
        np.testing.assert_allclose(copy[name], data[name], rtol=1e-6)  # float32
        assert copy[name].attrs[INTERVAL] == data.smoke.attrs[INTERVAL]


def test_an_interval_that_differs_is_dropped_from_all_of_them(tmp_path, data):
    first, second = fires_of(data)[:2]
    second = second.assign_coords(hours=second.hours.copy(data=second.hours.values / 2.0))
    for name in ("smoke", "smoke_co", "surface_smoke"):
        second[name].attrs[INTERVAL] = 3.0
    for fire in (first, second):
        append_fire(tmp_path / "store.zarr", fire)
    stored = pc.open_snapshots(tmp_path / "store.zarr")
    assert all(INTERVAL not in stored[n].attrs for n in ("smoke", "smoke_co", "surface_smoke"))


def test_a_floor_applies_to_every_output(data):
    floor = 5.0
    kept = SplitRecipe(smoke_floor=floor).select(data, ["smoke", "surface_smoke"])
    for name in ("smoke", "surface_smoke"):
        values = kept[name].values
        assert ((values == 0.0) | (values >= floor)).all()
        assert ((data[name].values > 0.0) & (values == 0.0)).any()
