"""Networks: all learn a plume and predict the same after saving; torch is imported only on use."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import map_arrays
from plumecast.compute.resources import choose_device
from plumecast.operators.family import NOTHING, Conditions, TrainingSet
from plumecast.operators.lift import Lift, fit_lift
from plumecast.operators.neural.map import (
    SIZES,
    Network,
    NeuralMap,
    NeuralOutOfFold,
    Schedule,
    fit_neural,
)
from plumecast.surrogate.file import load_value, save_value

torch = pytest.importorskip("torch")

GRID = (24, 20)  # 20 is not a multiple of 8 or 16, the divisors of the networks
SMALL = {
    "unet": {"width": 8, "levels": 3},
    "fno": {"width": 12, "modes": 8, "layers": 3},
}
RATE = 4e-3
FIRES, FOLDS = 48, 6
LARGEST_ERROR, SMALLEST_IOU = 0.5, 0.8
"""Of fires that were not seen; the error is relative to that of the mean field."""


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


QUICK = {"network": Network("unet", SMALL["unet"]), "schedule": Schedule(1), "device": "cpu"}


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


def train(architecture: str, *, epochs: int = 30, **choices) -> tuple[NeuralMap, NeuralOutOfFold]:
    fire = fires(FIRES)
    network = Network(architecture, SMALL[architecture], choices.pop("positions", True))
    of_schedule = {
        name: choices.pop(name) for name in ("seed", "seconds", "shift") if name in choices
    }
    schedule = Schedule(epochs, 8, RATE, **of_schedule)
    return fit_neural(
        TrainingSet(fire, targets(fire), np.arange(FIRES) % FOLDS, NOTHING),
        fit_lift(fire),
        network=network,
        **{"schedule": schedule, "device": "cpu", **choices},
    )


@pytest.fixture(scope="module", params=sorted(SIZES))
def fitted(request) -> tuple[NeuralMap, NeuralOutOfFold]:
    return train(request.param)


def test_all_beat_the_mean_field_on_fires_they_have_not_seen(fitted):
    """The error of every target is smaller, and the footprint is found. The mean of the training
    smoke does not depend on where the fire is."""
    network, _ = fitted
    fire = fires(24, seed=1)
    truth = targets(fire)
    mean = targets(fires(FIRES)).mean(axis=0)
    predicted = network.predict(fire)
    for t in range(3):
        error, other = (
            np.linalg.norm(values - truth[:, t]) for values in (predicted[:, t], mean[t])
        )
        assert error < LARGEST_ERROR * other
    called, observed = predicted[:, 2] > 0.5, truth[:, 2] > 0.5
    shared = np.sum(called & observed) / np.sum(called | observed)
    assert shared > SMALLEST_IOU


def test_the_last_fold_is_left_out_and_predicted_by_the_network(fitted):
    network, predicted = fitted
    rows = predicted.rows
    np.testing.assert_array_equal(rows, np.flatnonzero(np.arange(FIRES) % FOLDS == FOLDS - 1))
    np.testing.assert_array_equal(predicted[:], network.predict(fires(FIRES)[rows]))
    some, tolerance = np.array([5, 2]), 1e-4 * network.limits.max()  # sums in another order
    np.testing.assert_allclose(predicted[some], predicted[:][some], atol=tolerance)


def test_saved_and_loaded_predicts_the_same_bit_for_bit(fitted, tmp_path):
    network, _ = fitted
    save_value(network, tmp_path / "network.plume")
    loaded = load_value(tmp_path / "network.plume", {"NeuralMap": NeuralMap, "Lift": Lift})
    fire = fires(5, seed=2)
    np.testing.assert_array_equal(loaded.predict(fire), network.predict(fire))


def test_predictions_stay_within_the_range_of_training(fitted):
    network, _ = fitted
    predicted = network.predict(20.0 * fires(6, seed=3))
    assert predicted.min() >= 0.0
    assert (predicted.max(axis=(0, 2, 3)) <= network.limits * (1 + 1e-6)).all()  # float32 rounding


def test_no_fire_no_smoke_and_no_snapshots(fitted):
    network, _ = fitted
    fire = np.concatenate([np.zeros((1, *GRID), np.float32), fires(1)])
    predicted = network.predict(fire)
    assert not predicted[0].any()
    assert predicted[1].any()
    assert network.predict(fire[:0]).shape == (0, 3, *GRID)


def test_a_network_computes_on_the_device_of_its_inputs(fitted):
    """Within 1e-5 of the largest value: the same sums in float32, rescaled in torch."""
    network, _ = fitted
    fire = np.concatenate([fires(3), np.zeros((1, *GRID), np.float32), fires(66, seed=4)])
    expected = network.predict(fire)
    put = choose_device("torch").put
    found = map_arrays(network, put).predict(put(fire))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_allclose(found, expected, atol=1e-5 * network.limits.max())


def test_a_snapshot_is_predicted_alike_alone_and_among_others_in_either_precision(fitted):
    """Within 1e-4 of the largest value: float32 sums in another order."""
    network, _ = fitted
    fire = fires(70, seed=4)  # more than one block
    together = network.predict(fire)
    tolerance = 1e-4 * network.limits.max()
    np.testing.assert_allclose(network.predict(fire[66:67]), together[66:67], atol=tolerance)
    np.testing.assert_allclose(
        network.predict(fire[:3].astype(np.float64)), together[:3], atol=tolerance
    )


def test_the_same_seed_gives_the_same_weights_and_another_others():
    first, second, other = (train("unet", epochs=2, seed=seed)[0] for seed in (5, 5, 6))
    for name, values in first.weights.items():
        np.testing.assert_array_equal(second.weights[name], values)
    assert any((other.weights[name] != values).any() for name, values in first.weights.items())


def test_training_leaves_the_random_state_of_torch_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    train("fno", epochs=1)
    assert torch.equal(torch.rand(3), expected)


def test_scalars_distinguish_scenarios():
    """The second scenario has a quarter of the smoke, and so has its prediction, roughly. A network
    without the scenario as an input could not distinguish them."""
    fire = np.repeat(fires(FIRES), 2, axis=0)
    scalars = np.tile(np.eye(2), (FIRES, 1))
    truth = targets(fire, np.where(scalars[:, 0] > 0, 1.0, 0.25))
    network, _ = fit_neural(
        TrainingSet(
            fire,
            truth,
            np.repeat(np.arange(FIRES) % FOLDS, 2),
            Conditions(covariates=scalars),
        ),
        fit_lift(fire),
        network=Network("unet", SMALL["unet"]),
        schedule=Schedule(15, learning_rate=RATE),
        device="cpu",
    )
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
    network, _ = train("unet", shift=3, epochs=10)
    assert network.predict(fires(2)).any()


def test_without_positions_a_fourier_operator_has_no_coordinates():
    network, _ = train("fno", positions=False, epochs=1)
    assert network.weights["lift.0.weight"].shape[1] == network.lift.channels


def test_mixed_precision_stays_near_full_precision():
    """bfloat16 keeps 8 bits: outputs of unit size agree within 0.1, and come in float32."""
    from plumecast.operators.neural.nets import build

    torch.manual_seed(0)
    for architecture, sizes in SMALL.items():
        network = build(architecture, sizes, inputs=4, targets=3, grid=GRID)
        fields = torch.randn(2, 4, *GRID)
        full = network(fields)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mixed = network(fields)
        assert mixed.dtype == torch.float32
        assert torch.allclose(mixed, full, atol=0.1)


@pytest.mark.parametrize("grid", [(24, 20), (7, 5), (33, 16)])
@pytest.mark.parametrize("architecture", sorted(SIZES))
def test_any_grid_goes_through(architecture, grid):
    from plumecast.operators.neural.nets import build

    network = build(architecture, SIZES[architecture], inputs=3, targets=2, grid=grid)
    assert network(torch.randn(1, 3, *grid)).shape == (1, 2, *grid)


@pytest.mark.parametrize(
    ("architecture", "lowest", "highest"),
    [("unet", 1.5, 2.5), ("fno", 2, 7)],
)
def test_the_number_of_weights_is_as_documented(architecture, lowest, highest):
    """Millions of weights, for the channels of three age bins, three droughts and positions."""
    from plumecast.operators.neural.nets import build

    network = build(architecture, SIZES[architecture], inputs=17, targets=3, grid=(80, 100))
    assert lowest * 1e6 < sum(p.numel() for p in network.parameters()) < highest * 1e6


def test_time_ends_a_training_and_progress_is_reported():
    seen = []
    train("unet", epochs=10_000, seconds=0.5, progress=seen.append)
    assert 1 <= len(seen) < 10_000
    assert seen[-1].of == 10_000
    assert np.isfinite([epoch.left_out_loss for epoch in seen]).all()
    assert seen[-1].number == len(seen)


def test_the_weights_kept_are_those_of_the_best_epoch():
    """Validation targets that contradict the others make every epoch after the first worse; the
    network ends with exactly the smallest loss reported."""
    from plumecast.operators.neural.nets import build
    from plumecast.operators.neural.training import Samples, Task, train

    torch.manual_seed(0)
    fire = torch.from_numpy(fires(12))[:, None]
    wanted = torch.cat([fire[:8], -fire[8:]])
    network = build("unet", SMALL["unet"], inputs=1, targets=1, grid=GRID)
    task = Task(network, Samples(fire, torch.empty(12, 0), wanted), (False,), False)
    seen = []
    schedule = Schedule(epochs=4, batch=4, learning_rate=1e-2, shift=0)
    train(task, torch.arange(8), torch.arange(8, 12), schedule, seen.append)
    losses = [epoch.left_out_loss for epoch in seen]
    assert min(losses) < losses[-1]
    assert task.mean_loss(torch.arange(8, 12), 16) == min(losses)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (
            {"network": Network("transformer")},
            "'transformer' is unknown; choose from unet, fno",
        ),
        (
            {"network": Network("unet", {"modes": 3})},
            "'modes' is not a size of a unet; it has width, levels",
        ),
        ({"device": "cuda:99"}, "device 'cuda:99' cannot be used here"),
        ({"device": "toaster"}, "device 'toaster' cannot be used here"),
        ({"scalars": np.zeros((3, 1))}, r"scalars have shape \(3, 1\)"),
        (
            {"schedule": Schedule(1, learning_rate=1e30)},
            "diverged with learning_rate=1e\\+30; lower it",
        ),
    ],
)
def test_bad_choices_name_the_next_step(choices, message):
    fire = fires(12)
    given = Conditions(covariates=choices.get("scalars"))
    choices = {name: value for name, value in choices.items() if name != "scalars"}
    with pytest.raises(PlumecastError, match=message):
        fit_neural(
            TrainingSet(fire, targets(fire), np.arange(12) % 2, given),
            fit_lift(fire),
            **{**QUICK, **choices},
        )


def test_one_ignition_cannot_be_left_out():
    fire = fires(3)
    with pytest.raises(PlumecastError, match="at least two ignitions"):
        fit_neural(TrainingSet(fire, targets(fire), np.zeros(3), NOTHING), fit_lift(fire))


def test_another_grid_is_refused(fitted):
    network, _ = fitted
    with pytest.raises(PlumecastError, match=r"trained on a grid \(24, 20\), got \(20, 24\)"):
        network.predict(np.ones((1, 20, 24), np.float32))


def test_without_torch_the_extra_is_named(fitted, monkeypatch):
    network, _ = fitted
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(PlumecastError, match=r"pip install 'plumecast\[neural\]'"):
        network.predict(fires(1))
    with pytest.raises(PlumecastError, match=r"pip install 'plumecast\[neural\]'"):
        train(network.architecture)


def test_importing_plumecast_and_describing_a_network_imports_no_torch():
    """Loading a saved surrogate must not cost the seconds torch takes."""
    code = (
        "import sys, plumecast.surrogate.fit, plumecast.operators.neural.map;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_all_zero_target_is_predicted_as_zero():
    fire = fires(12)
    empty = np.zeros((12, 1, *GRID), np.float32)
    network, _ = fit_neural(
        TrainingSet(fire, empty, np.arange(12) % 2, NOTHING),
        fit_lift(fire),
        **QUICK,
    )
    assert not network.predict(fire).any()
