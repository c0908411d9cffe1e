"""A device changes where the arithmetic runs, not what comes out."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import array_api_strict as strict
import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute import resources as resources_module
from plumecast.compute.arrays import arrays_in
from plumecast.compute.resources import LOCAL, Resources, choose_device, naming_memory
from plumecast.data.store import export_snapshots
from plumecast.operators.coded.kernels import KernelMap
from plumecast.operators.coded.operator import CodedOperator, folded
from plumecast.operators.coded.polynomial_map import fit_linear_map, tune_polynomial_map
from plumecast.operators.pca import fit_basis
from plumecast.scores.roc import roc_scores
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.load import load_surrogate
from plumecast.workflows.evaluate import evaluate, fit_thresholds
from support.convolved_fires import parts, rough
from support.snapshots import make_snapshots

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

TORCH = Resources("torch")
AGREE = 1e-8  # relative: another factorisation, the same mathematics in float64
SINGLE = 1e-4  # relative: float32 rounds at 6e-8, and weights of either sign cancel

CHOICES = {
    "centred": {"preset": "paper-linear", "center": True},
    "dual": {"preset": "paper-quadratic"},
    "primal": {"degree": 2, "fire_rank": 3, "smoke_rank": 4},
    "kernel": {"kernel": "polynomial-1 + matern-5/2", "fire_rank": 8, "smoke_rank": 4},
    "lifted": {"degree": 2, "lift": ("identity", "burned"), "targets": ("smoke", "log")},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_fit_and_prediction_on_torch_equal_numpy(split, choice):
    ours = fit_surrogate(split.train, **CHOICES[choice])
    theirs = fit_surrogate(split.train, resources=Resources(device="torch"), **CHOICES[choice])
    assert all(isinstance(array, np.ndarray) for array in arrays_in(theirs.operator))
    assert theirs.training.get("fire_rank") == ours.training.get("fire_rank")
    fires = split.test.astype(np.float64)
    expected = ours.predict(fires).values
    for surrogate in (theirs, theirs.on_device("torch")):
        found = surrogate.predict(fires).values
        np.testing.assert_allclose(found, expected, atol=AGREE * np.abs(expected).max())


def test_a_surrogate_on_a_device_predicts_there_and_is_saved_as_any_other(split, tmp_path):
    surrogate = fit_surrogate(split.train, "paper-linear")
    placed = surrogate.on_device("torch")
    rows = split.test.time_since_ignition.values.reshape(split.test.sizes["snapshot"], -1)
    assert isinstance(placed.predict_rows(rows), torch.Tensor)
    assert isinstance(placed.predict(split.test), xr.DataArray)
    loaded = load_surrogate(placed.save(tmp_path / "a.plume"))
    xr.testing.assert_identical(loaded.predict(split.test), surrogate.predict(split.test))


def test_scores_on_torch_equal_numpy(split):
    surrogate = fit_surrogate(split.train, "paper-quadratic")
    ours = evaluate({"a": surrogate}, split.validation, split.test)
    theirs = evaluate({"a": surrogate}, split.validation, split.test, resources=TORCH)
    for name in ("auc", "iou", "deployable_iou", "relative_error"):
        np.testing.assert_allclose(theirs.details["a"][name], ours.details["a"][name], rtol=AGREE)
    assert theirs.smoke_threshold == ours.smoke_threshold
    one, other = (
        fit_thresholds(surrogate, split.validation, resources=where) for where in (LOCAL, TORCH)
    )
    assert other.decision == pytest.approx(one.decision, rel=AGREE)


def test_single_precision_is_near_and_folds_the_linear_operator(split):
    for preset in ("paper-linear", "paper-quadratic"):
        surrogate = fit_surrogate(split.train, preset)
        expected = surrogate.predict(split.test).values
        found = surrogate.on_device("cpu", "float32").predict(split.test).values
        np.testing.assert_allclose(found, expected, atol=SINGLE * np.abs(expected).max())


@pytest.mark.parametrize("ranks", [(8, 5), (4, 7)])
def test_folding_a_linear_operator_changes_nothing(ranks):
    rng = np.random.default_rng(0)
    fire, smoke = rng.normal(size=(20, 30)), rng.normal(size=(20, 25))
    bases = fit_basis(fire, rank=ranks[0], center=True), fit_basis(smoke, rank=ranks[1])
    codes, targets = bases[0].encode(fire), bases[1].encode(smoke)
    code_map = fit_linear_map(codes, bases[0].singular_values, targets)
    operator = CodedOperator(bases[0], code_map, bases[1])
    assert folded(operator).left.shape[1] == min(ranks)
    np.testing.assert_allclose(folded(operator).predict(fire), operator.predict(fire), atol=1e-12)


def test_no_array_is_made_on_another_device():
    """array-api-strict has several devices and refuses to mix them, as a GPU would."""
    rng = np.random.default_rng(1)
    fire, smoke = rng.normal(size=(16, 20)), np.abs(rng.normal(size=(16, 22)))
    away = strict.Device("device1")

    def there(array):
        return strict.asarray(array, device=away)

    groups = np.split(np.arange(16), [3, 8, 12])
    for rank, degree in ((2, 2), (6, 2), (6, 3)):
        fire_basis = fit_basis(there(fire), rank=rank, center=True)
        smoke_basis = fit_basis(there(smoke), rank=4)
        code_map, _ = tune_polynomial_map(
            fire_basis.encode(there(fire)),
            smoke_basis.encode(there(smoke)),
            degree=degree,
            groups=groups,
            penalties=None,
        )
        predicted = CodedOperator(fire_basis, code_map, smoke_basis).predict(there(fire))
        scores = roc_scores(predicted, there(smoke) > 0.5)
        assert {array.device for array in arrays_in((predicted, scores))} == {away}


def test_read_only_arrays_can_be_put_on_a_device():
    host = np.arange(3.0)
    host.flags.writeable = False
    placed = choose_device("torch").put(host)
    placed += 1.0
    np.testing.assert_array_equal(host, np.arange(3.0))


@pytest.mark.parametrize(
    ("device", "missing", "message"),
    [
        ("tpu", None, "'tpu' is unknown; choose from cpu, cuda"),
        ("cuda", "torch", "needs PyTorch[,;]"),
        ("cupy", "cupy", "needs CuPy[,;]"),
        pytest.param(
            "cuda", None, rf"device 'cuda' needs a GPU, but PyTorch {torch.__version__[:3]}",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU"),
        ),
    ],
)  # fmt: skip
def test_a_device_that_is_not_there_is_named(monkeypatch, device, missing, message):
    if missing is not None:
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(PlumecastError, match=message):
        choose_device(device)


def test_running_out_of_device_memory_says_what_to_do():
    device = choose_device("torch")
    with (
        pytest.raises(PlumecastError, match=r"'torch' ran out of memory .*; take fewer"),
        naming_memory(device, lambda: "take fewer"),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory")
    with pytest.raises(RuntimeError, match="something else"), naming_memory(device, str):
        raise RuntimeError("something else")


def test_torch_is_not_imported_without_a_request():
    code = (
        "import sys, numpy as np, plumecast.surrogate.fit, plumecast.cli;"
        "from plumecast.operators.pca import fit_basis; fit_basis(np.eye(3), rank=1);"
        "from plumecast.compute.resources import choose_device; choose_device('cpu');"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_does_not_fit_a_device_is_fitted_there_by_blocks(split, monkeypatch):
    """A device with little memory of its own, its free bytes stated in place of a GPU's."""
    choices = {"degree": 2, "fire_rank": 3, "smoke_rank": 4}
    rows = np.random.default_rng(0).permutation(split.train.sizes["snapshot"])
    train = split.train.isel(snapshot=rows)
    expected = fit_surrogate(train, **choices)
    read = []

    def put(array):
        read.append(array.shape[0])
        return torch.from_numpy(np.array(array))

    small = replace(choose_device("torch"), put=put, free_bytes=lambda: 150_000)
    monkeypatch.setattr(resources_module, "choose_device", lambda name: small)
    found = fit_surrogate(train, resources=Resources(device="cuda"), **choices)
    assert min(read) < rows.size / 2
    fires = split.test.astype(np.float64)
    one, other = expected.predict(fires).values, found.predict(fires).values
    np.testing.assert_allclose(other, one, atol=AGREE * one.max())


def test_the_spectral_family_runs_on_a_device(split, tmp_path):
    """The same to single precision, one layer deep; deeper, sums in another order may choose
    another of two penalties that serve left-out fires as well."""
    here, there = (
        fit_surrogate(split.train, "recommended", layers=1, resources=Resources(device=device))
        for device in ("cpu", "torch")
    )
    errors = [fitted.training["leave_out_error"] for fitted in (here, there)]
    assert errors[1] == pytest.approx(errors[0], rel=1e-3)
    expected = here.predict(split.test)
    placed = here.on_device("torch")
    close = 1e-4 * float(abs(expected).max())
    np.testing.assert_allclose(placed.predict(split.test), expected, atol=close)
    footprints = [fitted.predict_footprint(split.test) for fitted in (placed, here)]
    np.testing.assert_allclose(*footprints, atol=1e-4)
    loaded = load_surrogate(placed.save(tmp_path / "placed.plume"))
    np.testing.assert_array_equal(loaded.predict(split.test), expected)


@pytest.fixture(scope="module")
def world():
    """Training snapshots whose smoke depends on the place, and others."""
    return parts(rough())


@pytest.fixture(scope="module")
def corrected(world):
    return fit_surrogate(world[0], "recommended", layers=1, correction=True)


def test_a_corrected_surrogate_is_fitted_predicts_and_is_scored_on_a_device(
    world, corrected, tmp_path
):
    train, test = world
    choices = {"layers": 1, "correction": True}
    there = fit_surrogate(train, "recommended", **choices, resources=TORCH)
    assert there.training["corrected"]
    assert all(isinstance(array, np.ndarray) for array in arrays_in(there.operator))
    expected = corrected.predict(test).values
    atol = 10 * SINGLE * expected.max()  # systems of float32 sums lose a digit more
    np.testing.assert_allclose(there.predict(test).values, expected, atol=atol)
    placed = corrected.on_device("torch")
    for rows in placed.predict_both_rows(*placed.read_rows(test)):
        assert isinstance(rows, torch.Tensor)
    pairs = zip(placed.predict_both(test), corrected.predict_both(test), strict=True)
    for predicted, expected in pairs:
        np.testing.assert_allclose(predicted, expected, atol=SINGLE * float(expected.max()))
    validation, scored = test.isel(snapshot=slice(0, 12)), test.isel(snapshot=slice(12, None))
    ours, theirs = (
        evaluate({"a": corrected}, validation, scored, resources=where).scores[0]
        for where in (LOCAL, TORCH)
    )
    for name in ("auc", "deployable_iou", "relative_error", "snapshot_error"):
        assert getattr(theirs, name) == pytest.approx(getattr(ours, name), rel=SINGLE)
    loaded = load_surrogate(placed.save(tmp_path / "placed.plume"))
    xr.testing.assert_identical(loaded.predict(test), corrected.predict(test))


def test_the_commands_take_a_corrected_surrogate_to_the_device(succeed, tmp_path, monkeypatch):
    """What the kernel of the correction is given says where it computes."""
    data = make_snapshots(fires=40, checkpoints=2)
    places = (data.time_since_ignition * (data.x + 2.0 * data.y)).sum(("y", "x"))
    places = places / data.time_since_ignition.sum(("y", "x"))
    data["smoke"] *= (1.0 + 0.8 * np.sin(places / 3000.0)).astype(np.float32)
    export_snapshots(data, tmp_path / "fires.nc")
    given = []
    predict = KernelMap.predict
    monkeypatch.setattr(
        KernelMap, "predict", lambda self, codes: given.append(codes) or predict(self, codes)
    )
    model = tmp_path / "thorough.plume"
    device = ("--device", "torch")
    chosen = ("--preset", "thorough", "--layers", 1, "-o", model)
    succeed("train", tmp_path / "fires.nc", *chosen, *device)
    assert load_surrogate(model).training["corrected"]
    written = ("--json", tmp_path / "scores.json", "--baselines", "mean-field")
    succeed("evaluate", model, tmp_path / "fires.nc", *device, *written)
    succeed("predict", model, tmp_path / "fires.nc", *device, "-o", tmp_path / "smoke.nc")
    # Without the trial when a file is loaded, one empty fire for each of three droughts.
    fires = [codes for codes in given if codes.shape[0] > 3]
    assert fires
    assert all(isinstance(codes, torch.Tensor) for codes in fires)
