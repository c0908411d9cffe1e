"""Which fires are worth a run: what a surrogate sees of them, the choice, and bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from plumecast import PlumecastError, design_runs
from plumecast.operators.settings import choose_settings
from plumecast.weather.snapshots import without_weather
from plumecast.workflows.design import kernel
from plumecast.workflows.design.candidates import read_candidates
from plumecast.workflows.design.kernel import (
    METHODS,
    Choice,
    by_variance,
    draw_groups,
    mean_variances,
)
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
    with pytest.raises(PlumecastError, match="is among the given runs already; leave it out"):
        design_runs(fires, 2, given=given, must_have=chosen.chosen[:1])


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


# -- the choice: exact algebra against brute force, and what every method promises


ROUNDING = 1e-10  # of sums of a dozen numbers of order 1 in double precision
NOISE = 0.3


def gaussian(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    squares = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-0.5 * squares)


def make_choice(seed: int = 0, groups: int = 7, given: int = 2) -> Choice:
    """Groups of one to three random points, and some known points."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=groups)
    rows = rng.normal(size=(int(sizes.sum()) + given, 3))
    members = np.split(np.arange(given, rows.shape[0]), np.cumsum(sizes)[:-1])
    weights = rng.uniform(0.5, 1.5, size=groups)
    costs = rng.uniform(0.5, 2.0, size=groups)
    allowed = np.ones(groups, dtype=bool)
    return Choice(rows, members, gaussian, NOISE, weights / weights.sum(), costs, allowed)


def brute_variances(choice: Choice, rows: np.ndarray) -> np.ndarray:
    """diag(K − K_S (K_SS + λ I)⁻¹ K_Sᵀ), with a dense inverse."""
    kernel = gaussian(choice.rows, choice.rows)
    block = kernel[np.ix_(rows, rows)] + NOISE * np.eye(rows.size)
    return np.diag(kernel - kernel[:, rows] @ np.linalg.inv(block) @ kernel[rows])


def rows_of(choice: Choice, numbers) -> np.ndarray:
    return np.concatenate([choice.known_rows(), *(choice.groups[n] for n in numbers)])


@pytest.mark.parametrize("seed", range(3))
def test_variances_are_those_of_a_dense_inverse(seed):
    choice = make_choice(seed)
    order = [3, 0, 5]
    found = mean_variances(choice, order)
    weights = choice.row_weights()
    expected = [
        weights @ brute_variances(choice, rows_of(choice, order[:count])) for count in range(4)
    ]
    np.testing.assert_allclose(found, expected, atol=ROUNDING)
    assert (np.diff(found) < 0.0).all(), "every run lowers the variance"


@pytest.mark.parametrize("seed", range(3))
def test_the_variance_method_lowers_the_mean_variance_most(seed):
    choice = replace(make_choice(seed), costs=np.ones(7))
    first, second = by_variance(choice, 2, ())
    alone = [mean_variances(choice, [number])[-1] for number in range(7)]
    assert first == int(np.argmin(alone))
    after = {n: mean_variances(choice, [first, n])[-1] for n in range(7) if n != first}
    assert second == min(after, key=after.__getitem__)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_chooses_allowed_groups_once_and_must_haves_first(method):
    choice = make_choice(5, groups=9)
    choice.allowed[[2, 6]] = False
    chosen = METHODS[method](choice, 6, [6, 4])
    assert len(chosen) == len(set(chosen)) == 6
    assert chosen[:2] == [6, 4], "also one that is not allowed otherwise"
    assert 2 not in chosen
    assert METHODS[method](choice, 6, [6, 4]) == chosen, "repeatable"
    assert len(METHODS[method](replace(choice, rows=choice.rows), 7, [])) == 7, "all allowed ones"


def test_one_of_every_cluster_is_chosen():
    rng = np.random.default_rng(1)
    centres = 20.0 * np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    rows = np.concatenate([centre + 0.1 * rng.normal(size=(5, 3)) for centre in centres])
    groups = [np.array([number]) for number in range(15)]
    equal = np.full(15, 1.0 / 15.0)
    choice = Choice(rows, groups, gaussian, NOISE, equal, np.ones(15), np.ones(15, dtype=bool))
    chosen = by_variance(choice, 3, [])
    assert sorted(number // 5 for number in chosen) == [0, 1, 2]


def points(places: list[float], groups: int, costs: np.ndarray) -> Choice:
    """Groups of one point each on a line; the points beyond them are known."""
    members = [np.array([number]) for number in range(groups)]
    equal, allowed = np.full(groups, 1.0 / groups), np.ones(groups, dtype=bool)
    return Choice(np.array(places)[:, None], members, gaussian, NOISE, equal, costs, allowed)


def test_a_known_cluster_is_not_chosen_again_and_a_cheaper_equal_is_preferred():
    known = points([0.0, 0.1, 0.2, 9.0, 9.1, 0.15], 5, np.ones(5))
    assert by_variance(known, 1, [])[0] in (3, 4)
    assert by_variance(points([0.0, 5.0, 10.0], 3, np.array([2.0, 1.0, 2.0])), 1, [])[0] == 1


def test_random_groups_follow_their_weights():
    rng = np.random.default_rng(0)
    weights = np.array([0.7, 0.3, 0.0])
    first = [draw_groups(weights, np.ones(3, dtype=bool), rng)[0] for _ in range(2000)]
    shares = np.bincount(first, minlength=3) / 2000
    np.testing.assert_allclose(shares, weights, atol=0.05)  # five standard deviations
