"""Fill values and impossible values of a store: `info --check` lists them, `train` refuses them."""

from __future__ import annotations

import numpy as np
import pytest

from support.snapshots import add_weather, make_snapshots

FILL = 9.96921e36


@pytest.fixture(scope="module")
def sound():
    """Six fires with weather, a fuel map and covariates."""
    fires = add_weather(make_snapshots(fires=6))
    count, shape = fires.sizes["snapshot"], fires.smoke.shape[1:]
    scalars = {
        "wind_speed": (np.linspace(3.0, 9.0, count), "m s-1"),
        "wind_from_direction": (np.linspace(200.0, 290.0, count), "degree"),
        "fuel_moisture": (np.linspace(0.05, 0.1, count), "1"),
        "slope": (np.linspace(1.0, 20.0, count), "degree"),
    }
    load = ("snapshot", "y", "x"), np.full((count, *shape), 1.2, np.float32), {"units": "kg m-2"}
    return fires.assign(fuel_load=load).assign_coords(
        {name: ("snapshot", values, {"units": unit}) for name, (values, unit) in scalars.items()}
    )


def spoiled(fires, name, value):
    """The snapshots with one value of the fire of their fifth row."""
    fires = fires.copy(deep=True)
    fires[name].values[(4, *[0] * (fires[name].ndim - 1))] = value
    return fires


@pytest.mark.parametrize(("name", "value", "said"), [
    ("wind_speed", FILL, "9.96921e+36"), ("wind_speed", 720.0, "720"), ("wind_speed", -9999.0, ""),
    ("wind_from_direction", -9999.0, "-9999"), ("wind_from_direction", 720.0, "720"),
    ("fuel_moisture", FILL, "9.96921e+36"), ("fuel_moisture", -999.0, "-999"),
    ("fuel_load", 1e20, "1e+20"), ("hours", FILL, "9.96921e+36"), ("burned_area", 1e20, "1e+20"),
    ("boundary_layer_depth", FILL, "9.96921e+36 m at"), ("wind_u", 720.0, "720 m/s"),
    ("wind_v", FILL, "9.969e+36 m/s"), ("wind_u", -9999.0, "9999 m/s"),
    ("smoke", FILL, "e+36"),
])  # fmt: skip
def test_train_refuses_and_check_lists(sound, run, refused, tmp_path, name, value, said):
    store, fire = tmp_path / "fires.nc", str(sound.fire_id.values[4])
    spoiled(sound, name, value).to_netcdf(store)
    checked = run("info", store, "--check")
    assert checked.code != 0
    told = refused("train", store, "-o", tmp_path / "m.plume", "--preset", "paper-linear")
    for text in (checked.out + checked.err, told):
        assert fire in text
        assert said in text


def test_a_further_covariate_is_checked_where_it_is_used(sound, run, refused, succeed, tmp_path):
    store, model = tmp_path / "fires.nc", tmp_path / "m.plume"
    spoiled(sound, "slope", -9999.0).to_netcdf(store)
    assert "'slope' of fire" in run("info", store, "--check").out
    train = ("train", store, "-o", model, "--preset", "paper-linear")
    assert "'slope' of fire" in refused(*train, "--covariates", "slope")
    succeed(*train)


def test_sound_fires_have_no_such_finding(sound, run, tmp_path):
    sound.to_netcdf(tmp_path / "fires.nc")
    out = run("info", tmp_path / "fires.nc", "--check").out
    assert "fill value" not in out
    assert "impossible" not in out
