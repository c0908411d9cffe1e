"""Which fires are worth a run: what a surrogate sees of them, the choice, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast import PlumecastError, design_runs
from plumecast.operators.settings import choose_settings
from plumecast.weather.snapshots import without_weather
from plumecast.workflows.design import kernel
from plumecast.workflows.design.candidates import read_candidates
from plumecast.workflows.design.design import read_values, write_runs
from support.snapshots import make_snapshots
from support.weather_fires import weather_fires

SINGLE = 1e-5  # rounding of transforms in single precision, relative to the largest value


@pytest.fixture(scope="module")
def fires() -> xr.Dataset:
    return weather_fires(9).drop_vars("smoke")


@pytest.fixture(scope="module")
def chosen(fires):
    return design_runs(fires, 4, hold_out=2, must_have=["f03"])


def named(fires: xr.Dataset, names) -> xr.Dataset:
    return fires.isel(snapshot=np.flatnonzero(np.isin(fires.ignition_id.values, list(names))))


def features_of(fires: xr.Dataset) -> np.ndarray:
    pool = read_candidates(fires)
    return kernel.surrogate_features([pool.snapshots], pool.member)[0]


def test_two_snapshots_of_every_fire_are_enough(fires):
    pool = read_candidates(fires)
    assert pool.names == tuple(f"f{number:02d}" for number in range(9))
    hours = pool.snapshots.hours.values.reshape(9, 2)
    assert (hours == [3.0, 9.0]).all(), "that nearest to half of nine hours, and the last"


def calm(fires: xr.Dataset) -> xr.Dataset:
    """The fires without their winds: fields stay on the map, and no smoke is carried."""
    return without_weather(fires).drop_vars(["wind_speed", "wind_from_direction"])


def test_a_fire_elsewhere_has_the_same_features(fires):
    """A spectral surrogate is equivariant: it knows the same fire at another place."""
    moved = calm(fires).copy(deep=True)
    field = moved["time_since_ignition"]
    field.values[:] = np.roll(field.values, (1, -2), axis=(1, 2))
    assert not np.array_equal(field.values, fires["time_since_ignition"].values)
    here, there = features_of(calm(fires)), features_of(moved)
    np.testing.assert_allclose(here, there, atol=SINGLE * np.abs(here).max())


def test_inner_products_are_those_of_the_channels(fires, monkeypatch):
    """Parseval's theorem, if all scales are kept and no fire is moved to another's place."""
    monkeypatch.setattr(kernel, "WAVELENGTH", 2.0)
    pool = read_candidates(calm(fires))
    burned = pool.snapshots.time_since_ignition.values
    settings = choose_settings("recommended", lift=["identity"], products=[])
    (rows,) = kernel.surrogate_features([pool.snapshots], pool.member, settings)
    sizes = np.square(burned, dtype=np.float64).sum(axis=(1, 2))
    found = np.square(rows, dtype=np.float64).sum(axis=1)
    np.testing.assert_allclose(found / found[0], sizes / sizes[0], rtol=10 * SINGLE)


def test_the_kernel_is_the_inner_product_of_the_features(fires):
    rows = features_of(fires).astype(np.float64)
    inner, codes = kernel.fit_kernel(rows, rows)
    expected = rows @ rows.T / np.square(rows).sum(axis=1).mean()
    # Components with 1e-4 of the variance are left out.
    np.testing.assert_allclose(inner(codes, codes), expected, atol=1e-3)
    # Fires that were not in the pool are compared with it.
    first, every = (kernel.fit_kernel(rows[:10], some)[1] for some in (rows[:10], rows))
    np.testing.assert_allclose(every[:10], first, atol=SINGLE)
    assert every.shape[0] == rows.shape[0]


def test_roles_and_order(fires, chosen):
    assert [run.rank for run in chosen.runs] == [1, 2, 3, 4, 5, 6]
    roles = [run.role for run in chosen.runs]
    assert roles == ["must-have", "chosen", "chosen", "chosen", "hold-out", "hold-out"]
    assert chosen.chosen[0] == "f03"
    assert len({run.ignition_id for run in chosen.runs}) == 6
    errors = [run.expected_error for run in chosen.runs]
    other = design_runs(fires, 4, hold_out=2, must_have=["f03"], method="random")
    assert other.held_out == chosen.held_out, "drawn before the choice"
    assert errors[4:] == [None, None]
    assert 1.0 > errors[0] > errors[1] > errors[2] > errors[3] > 0.0


def test_places_and_winds_are_those_of_the_fires(fires, chosen):
    for run in chosen.runs:
        last = named(fires, [run.ignition_id]).isel(snapshot=-1)
        field = last.time_since_ignition
        assert float(field.sel(x=run.x, y=run.y)) == float(field.max())
        assert run.wind_speed == pytest.approx(float(last.wind_speed))
        turn = (run.wind_from_direction - float(last.wind_from_direction)) % 360.0
        assert min(turn, 360.0 - turn) < 1e-6
    burned = chosen.places.burned.isel(run=0).values
    assert np.array_equal(burned, named(fires, ["f03"]).time_since_ignition.values[-1] > 0.0)


def test_given_runs_are_known_and_not_chosen_again(fires, chosen):
    given = named(fires, chosen.chosen[:2])
    others = named(fires, set(fires.ignition_id.values) - set(chosen.chosen[:2]))
    alone = design_runs(others, 2)
    after = design_runs(fires, 2, given=given)
    assert not set(after.chosen) & set(chosen.chosen[:2])
    assert after.runs[0].expected_error < 1.0
    assert alone.runs[0].expected_error != after.runs[0].expected_error


def test_weights_and_costs_steer(fires):
    fires = calm(fires)
    weights = dict.fromkeys((f"f{number:02d}" for number in range(9)), 0.0) | {
        "f01": 1.0,
        "f07": 1.0,
    }
    assert set(design_runs(fires, 2, weights=weights).chosen) == {"f01", "f07"}
    free = design_runs(fires, 1)
    costs = [100.0 if name == free.chosen[0] else 1.0 for name in sorted(weights)]
    dear = design_runs(fires, 1, costs=costs)
    assert dear.chosen != free.chosen


@pytest.mark.parametrize("method", kernel.METHODS)
def test_fires_without_weather_can_be_chosen(method):
    calm = make_snapshots(fires=12, shape=(8, 10))
    found = design_runs(calm, 3, method=method)
    assert len(found.chosen) == 3
    assert found.runs[0].wind_speed is None


def empty(fires: xr.Dataset) -> xr.Dataset:
    bare = fires.copy(deep=True)
    bare["time_since_ignition"].values[fires.ignition_id.values == "f02"] = 0.0
    return bare


def twice(fires: xr.Dataset) -> xr.Dataset:
    return xr.concat([fires, named(fires, ["f00"])], "snapshot", data_vars="minimal")


BAD = {
    "n=10 is more than the 9 candidate": {"n": 10},
    "n=6 with 4 to hold out is more than the 9": {"n": 6, "hold_out": 4},
    "n=0 must be at least 1": {"n": 0},
    "must_have='x' is not among the 9": {"must_have": ["x"]},
    "must_have='f01' is named twice": {"must_have": ["f01", "f01"]},
    "n=2 is less than the 3 ignitions": {"must_have": ["f01", "f02", "f03"]},
    "method='best' is unknown; choose from variance": {"method": "best"},
    "weights of ignition 'f00' is -1": {"weights": [-1.0] + [1.0] * 8},
    "weights are all 0": {"weights": [0.0] * 9},
    "weights has 2 values": {"weights": [1.0, 2.0]},
    "weights='drought' holds": {"weights": "drought"},
    "weights='area' is no coordinate": {"weights": "area"},
    "weights: ignition 'f01' and 7 more has no value": {"weights": {"f00": 1.0}},
    "costs of ignition 'f08' is 0; give a cost above 0": {"costs": [1.0] * 8 + [0.0]},
    "costs='q' is not among the 9": {"costs": {"q": 1.0}},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments_are_named(fires, message):
    with pytest.raises(PlumecastError, match=message.replace("(", r"\(")):
        design_runs(fires, **({"n": 2} | BAD[message]))


def same(fires: xr.Dataset) -> xr.Dataset:
    return fires


@pytest.mark.parametrize(
    ("of_pool", "of_given", "message"),
    [
        (empty, None, "ignition 'f02' has no burned cell"),
        (twice, None, "fire 'f00' has two snapshots at 3 h"),
        (same, lambda fires: fires.isel(x=slice(0, -1)),
         "given: the runs are on another grid .17 × 16 cells"),
        (same, without_weather,
         "the given runs have no hourly weather, which the candidates have"),
        (same, empty, "given: ignition 'f02' has no burned cell"),
        (without_weather, same, "the candidates have no hourly weather"),
    ],
)  # fmt: skip
def test_bad_candidates_and_given_runs_are_named(fires, of_pool, of_given, message):
    given = None if of_given is None else of_given(fires)
    with pytest.raises(PlumecastError, match=message):
        design_runs(of_pool(fires), 2, given=given)


def test_tables(tmp_path, chosen):
    path = tmp_path / "runs.csv"
    write_runs(chosen, path)
    lines = path.read_text().splitlines()
    assert lines[0].startswith("rank,ignition_id,role,x,y,wind_speed,wind_from_direction,cost,")
    assert len(lines) == 7
    assert lines[-1].endswith(",1,"), "no expected error of the hold-out"
    weights = tmp_path / "weights.csv"
    weights.write_text("ignition_id,weight\nf00, 2.5\nf01,1\n")
    assert read_values(weights, "weight") == {"f00": 2.5, "f01": 1.0}
