"""Networks: all learn a plume and predict the same after saving; torch is imported only on use."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.operators.family import Conditions, TrainingSet
from plumecast.operators.lift import fit_lift
from plumecast.operators.neural.map import (
    SIZES,
    Network,
    NeuralMap,
    Schedule,
    fit_neural,
)

torch = pytest.importorskip("torch")

GRID = (24, 20)  # 20 is not a multiple of 8 or 16, the divisors of the networks
SMALL = {
    "unet": {"width": 8, "levels": 3},
    "fno": {"width": 12, "modes": 8, "layers": 3},
}
RATE = 4e-3
FIRES, FOLDS = 48, 6
LARGEST_ERROR, SMALLEST_IOU = 0.7, 0.7
"""Of fires that were not seen; the error is relative to that of the mean field."""


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def fires(count: int, seed: int = 0) -> np.ndarray:
    """Discs of random place, size and age."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: GRID[0], : GRID[1]]
    where = rng.uniform((5, 3, 1.0, 1.0), (18, 9, 3.0, 4.0), (count, 4))
    distance = [np.hypot(y - row, x - column) for row, column, _, _ in where]
    return np.stack(
        [np.maximum(r - d, 0.0) * age for d, (_, _, r, age) in zip(distance, where, strict=True)]
    ).astype(np.float32)


def targets(fire: np.ndarray, strength: np.ndarray | float = 1.0) -> np.ndarray:
    """ln(g + 1), g and g > 0.2 of smoke that drifts along x from what burned, thinning."""
    saturated = np.minimum(fire, 2.0)
    smoke = np.zeros_like(fire)
    for step in range(7):
        smoke[:, :, step:] += 0.7**step * saturated[:, :, : GRID[1] - step]
    smoke *= np.reshape(strength, (-1, 1, 1))
    return np.stack([np.log1p(smoke), smoke, smoke > 0.2], axis=1).astype(np.float32)


def fit(
    architecture: str = "unet", count: int = 12, strength=1.0, covariates=None, **change
) -> NeuralMap:
    """A small network of some fires, each with the same smoke under every row of covariates."""
    per = 1 if covariates is None else len(covariates)
    fire = np.repeat(fires(count), per, axis=0)
    given = Conditions(covariates=None if per == 1 else np.tile(covariates, (count, 1)))
    schedule = {name: change.pop(name) for name in ("seed", "seconds", "shift") if name in change}
    choices = {
        "network": Network(architecture, SMALL[architecture]),
        "schedule": Schedule(change.pop("epochs", 1), 8, RATE, **schedule),
        "device": "cpu",
    } | change
    groups = np.repeat(np.arange(count) % choices.pop("folds", FOLDS), per)
    smoke = targets(fire, np.tile(np.ravel(strength), count) if per > 1 else strength)
    return fit_neural(TrainingSet(fire, smoke, groups, given), fit_lift(fire), **choices).field_map


@pytest.fixture(scope="module", params=sorted(SIZES))
def network(request) -> NeuralMap:
    return fit(request.param, FIRES, epochs=15)


def test_all_beat_the_mean_field_on_fires_they_have_not_seen(network):
    """The error of every target is smaller, and the footprint is found. The mean of the training
    smoke does not depend on where the fire is."""
    fire = fires(24, seed=1)
    truth, predicted = targets(fire), network.predict(fire)
    mean = targets(fires(FIRES)).mean(axis=0)
    for t in range(3):
        error, other = (
            np.linalg.norm(values - truth[:, t]) for values in (predicted[:, t], mean[t])
        )
        assert error < LARGEST_ERROR * other
    called, observed = predicted[:, 2] > 0.5, truth[:, 2] > 0.5
    assert np.sum(called & observed) / np.sum(called | observed) > SMALLEST_IOU


def test_predictions_stay_within_the_range_and_on_the_grid_of_training(network):
    predicted = network.predict(20.0 * fires(6, seed=3))
    assert predicted.min() >= 0.0
    assert (predicted.max(axis=(0, 2, 3)) <= network.limits * (1 + 1e-6)).all()  # float32 rounding
    with pytest.raises(PlumecastError, match=r"trained on a grid \(24, 20\), got \(20, 24\)"):
        network.predict(np.ones((1, 20, 24), np.float32))


def test_the_same_seed_gives_the_same_weights_and_another_others():
    """And the random state of torch is left alone."""
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first, second, other = (fit(seed=seed).weights for seed in (5, 5, 6))
    assert torch.equal(torch.rand(3), expected)
    for name, values in first.items():
        np.testing.assert_array_equal(second[name], values)
    assert any((other[name] != values).any() for name, values in first.items())


def test_scalars_distinguish_scenarios():
    """The second scenario has a quarter of the smoke, and so has its prediction, roughly. A network
    without the scenario as an input could not distinguish them."""
    network = fit(count=FIRES, strength=(1.0, 0.25), covariates=np.eye(2), epochs=10)
    new = fires(12, seed=8)
    strong, weak = (
        network.predict(new, Conditions(covariates=np.tile(row, (12, 1))))[:, 1].sum()
        for row in np.eye(2)
    )
    assert 0.15 < weak / strong < 0.375
    with pytest.raises(PlumecastError, match=r"scalars have shape \(12, 0\), not \(12, 2\)"):
        network.predict(new)


def test_shifts_move_fire_and_targets_alike_and_fill_with_zeros():
    from plumecast.operators.neural.training import shifted

    field = torch.arange(12.0).reshape(3, 4) + 1.0
    moved = shifted(field, (1, -2))
    assert torch.equal(moved[1:, :2], field[:-1, 2:])
    assert not moved[0].any()
    assert not moved[:, 2:].any()


@pytest.mark.parametrize("architecture", sorted(SIZES))
def test_any_grid_goes_through_in_any_precision(architecture):
    """bfloat16 keeps 8 bits: outputs of unit size agree within 0.1, and come in float32."""
    from plumecast.operators.neural.nets import build

    torch.manual_seed(0)
    for grid in (GRID, (7, 5), (33, 16)):
        network = build(architecture, SMALL[architecture], inputs=3, targets=2, grid=grid)
        fields = torch.randn(2, 3, *grid)
        full = network(fields)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mixed = network(fields)
        assert (mixed.shape, mixed.dtype) == ((2, 2, *grid), torch.float32)
        assert torch.allclose(mixed, full, atol=0.1)


def test_time_ends_a_training_and_progress_is_reported():
    seen = []
    fit(epochs=10_000, seconds=0.5, progress=seen.append)
    assert 1 <= len(seen) < 10_000
    assert (seen[-1].of, seen[-1].number) == (10_000, len(seen))
    assert np.isfinite([epoch.left_out_loss for epoch in seen]).all()


def test_the_weights_kept_are_those_of_the_best_epoch():
    """Validation targets that contradict the others make every epoch after the first worse; the
    network ends with exactly the smallest loss reported."""
    from plumecast.operators.neural.nets import build
    from plumecast.operators.neural.training import NetworkSamples, NetworkTask, train

    torch.manual_seed(0)
    fire = torch.from_numpy(fires(12))[:, None]
    wanted = torch.cat([fire[:8], -fire[8:]])
    network = build("unet", SMALL["unet"], inputs=1, targets=1, grid=GRID)
    task = NetworkTask(network, NetworkSamples(fire, torch.empty(12, 0), wanted), (False,), False)
    seen = []
    schedule = Schedule(epochs=4, batch=4, learning_rate=1e-2, shift=0)
    train(task, torch.arange(8), torch.arange(8, 12), schedule, seen.append)
    losses = [epoch.left_out_loss for epoch in seen]
    assert min(losses) < losses[-1]
    assert task.mean_loss(torch.arange(8, 12), 16) == min(losses)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"network": Network("transformer")}, "'transformer' is unknown; choose from unet, fno"),
        ({"network": Network("unet", {"modes": 3})}, "'modes' is not a size of a unet; it has"),
        ({"device": "toaster"}, "device 'toaster' cannot be used here"),
        ({"schedule": Schedule(1, learning_rate=1e30)}, r"learning_rate=1e\+30; lower it"),
        ({"folds": 1}, "at least two ignitions"),
    ],
)
def test_bad_choices_name_the_next_step(choices, message):
    with pytest.raises(PlumecastError, match=message):
        fit(**choices)


def test_without_torch_the_extra_is_named(network, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (lambda: network.predict(fires(1)), fit):
        with pytest.raises(PlumecastError, match=r"pip install 'plumecast\[neural\]'"):
            call()


def test_an_all_zero_target_is_predicted_as_zero():
    assert not fit(strength=0.0).predict(fires(12)).any()
