"""Fields that are no fires: arrays, signs, grids of any dimension, samples of another name."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.ndimage import gaussian_filter

import plumecast as pc
from plumecast.data.covariates import extrapolating
from plumecast.surrogate.fit import SignWarning
from support.convolved_fires import snapshots
from support.snapshots import make_snapshots

GRIDS = {1: (24,), 2: (10, 12), 3: (5, 6, 7)}
TRAIN = slice(0, 30)
TEST = slice(30, 40)


def signed_pair(grid: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Smooth random fields, and a convolution of each that treats the two signs differently."""
    rng = np.random.default_rng(0)
    x = np.stack([gaussian_filter(rng.normal(size=grid), 1.5, mode="constant") for _ in range(40)])
    x /= x.std()
    y = [gaussian_filter(v - 0.5 * np.minimum(v, 0.0), 0.7, mode="constant") for v in x]
    return x, np.stack(y)


def samples(grid: tuple[int, ...], dim: str = "member") -> xr.Dataset:
    dims = [dim, *"zyx"[-len(grid) :]]
    x, y = signed_pair(grid)
    return xr.Dataset({"vorticity": (dims, x), "stream": (dims, y)})


@pytest.mark.parametrize(
    ("preset", "axes"), [("recommended", 2), *(("quick", axes) for axes in GRIDS)]
)
def test_a_spectral_preset_learns_signed_fields_on_any_grid(axes, preset):
    x, y = signed_pair(GRIDS[axes])
    with pytest.warns(SignWarning, match="values down to -.*fitted with targets='smoke' alone"):
        fitted = pc.fit_surrogate((x[TRAIN], y[TRAIN]), preset, layers=2)
    predicted = fitted.predict(x[TEST])
    assert not fitted.nonnegative
    assert fitted.settings["preset"] == f"{preset}, changed"
    assert predicted.min() < 0.0
    error = pc.scores.relative_error(predicted, y[TEST])
    assert error < 0.2
    assert error < 0.5 * pc.scores.relative_error(np.maximum(y[TEST], 0.0), y[TEST])


def test_outputs_of_the_other_sign_give_predictions_of_the_other_sign(tmp_path):
    x, y = signed_pair(GRIDS[1])
    fits = [
        pc.fit_surrogate((x[TRAIN], sign * y[TRAIN]), "quick", layers=1, targets="smoke")
        for sign in (1.0, -1.0)
    ]
    plus, minus = (fit.predict(x[TEST]) for fit in fits)
    np.testing.assert_allclose(minus, -plus, atol=1e-4 * np.abs(plus).max())  # single precision
    loaded = pc.load_surrogate(fits[0].save(tmp_path / "signed.plume"))
    np.testing.assert_array_equal(loaded.predict(x[TEST]), plus)
    with pytest.warns(SignWarning, match="nonnegative=True sets negative predictions to zero, but"):
        clipped = pc.fit_surrogate((x, y), "paper-linear", nonnegative=True)
    with extrapolating():  # some predictions are zero everywhere
        assert clipped.predict(x).min() == 0.0


def test_another_sample_dimension_is_found_and_kept():
    data = samples(GRIDS[2])
    train, new = data.isel(member=TRAIN), data.isel(member=TEST)
    choices = {"preset": "quick", "layers": 1, "targets": "smoke"}
    names = {"inputs": "vorticity", "outputs": "stream"}
    predicted = pc.fit_surrogate(train, **choices, **names).predict(new)
    assert predicted.dims == ("member", "y", "x")
    last = train.transpose(..., "member")
    pairs = train.vorticity, train.stream
    for fit, fields in (
        (pc.fit_surrogate(last, sample_dim="member", **choices, **names), new),
        (pc.fit_surrogate(pairs, **choices), new.vorticity),
        (pc.fit_surrogate(tuple(pair.values for pair in pairs), **choices), new.vorticity.values),
    ):
        np.testing.assert_array_equal(fit.predict(fields), predicted)


def test_groups_of_arrays_are_samples_or_given_labels():
    x, y = signed_pair(GRIDS[1])
    alone = pc.fit_surrogate((x, y), degree=1)
    assert alone.training["leave_out"] == "sample"
    pairs = pc.fit_surrogate((x, y), degree=1, group_by=np.arange(40) // 2)
    assert pairs.training["leave_out"] == "group"
    assert pairs.training["leave_out_error"] != alone.training["leave_out_error"]
    with pytest.raises(pc.PlumecastError, match=r"group_by has shape \(3,\); give one label"):
        pc.fit_surrogate((x, y), degree=1, group_by=[1, 2, 3])


def test_tensors_in_tensor_out():
    torch = pytest.importorskip("torch")
    x, y = signed_pair(GRIDS[2])
    fitted = pc.fit_surrogate((torch.tensor(x), torch.tensor(y)), "paper-linear")
    inputs = torch.tensor(x[TEST], dtype=torch.float32, requires_grad=True)
    predicted = fitted.predict(inputs)
    assert isinstance(predicted, torch.Tensor)
    assert predicted.dtype == torch.float32
    expected = fitted.predict(x[TEST].astype(np.float32))
    np.testing.assert_array_equal(predicted.numpy(), expected)


def test_errors_of_several_outputs_are_by_name():
    data = snapshots(6).assign(half=lambda d: 0.5 * d.smoke - 1.0)
    outputs = ["smoke", "half"]
    predicted = pc.fit_surrogate(data, "paper-linear", outputs=outputs).predict(data)
    errors = pc.scores.relative_error(predicted, data)
    assert errors == {
        name: pc.scores.relative_error(predicted[name], data[name].values) for name in outputs
    }
    assert pc.scores.relative_error(predicted.half, data) == errors["half"]
    single = pc.scores.snapshot_relative_errors(predicted, data)
    assert single["half"].shape == (12,)
    with pytest.raises(pc.PlumecastError, match="'half' is not among the observed smoke"):
        pc.scores.relative_error(predicted, data[["smoke"]])


def test_a_surrogate_is_shown_in_a_few_lines():
    shown = repr(pc.fit_surrogate(snapshots(4), "quick", layers=1))
    assert shown.splitlines() == [
        "<plumecast.Surrogate: time_since_ignition (y: 16, x: 20) → smoke (y: 16, x: 20)",
        " quick, changed, spectral; 8 training snapshots; predictions are not negative",
        " needs the coordinates drought>",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"inputs": ["vorticity", "more"]},
            r"one input, not 2 \(vorticity, more\); use the preset",
        ),
        ({"sample_dim": "z"}, "sample_dim='z' is not a dimension of 'vorticity'"),
        ({"family": "unet", "targets": "smoke"}, "a network predicts non-negative fields, but"),
    ],
)
@pytest.mark.filterwarnings("ignore::plumecast.surrogate.fit.SignWarning")
def test_what_a_lift_cannot_do_is_said_in_one_line(change, message):
    pytest.importorskip("torch")
    data = samples(GRIDS[2]).assign(more=lambda d: d.stream)
    names = {"inputs": "vorticity", "outputs": "stream", "preset": "recommended"}
    with pytest.raises(pc.PlumecastError, match=message) as raised:
        pc.fit_surrogate(data, **names | change)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((np.ones((4, 6)),), "y is missing; give inputs and outputs"),
        (((np.ones((4, 6)), np.ones((5, 6))),), r"inputs \(4, 6\) and outputs \(5, 6\) must be"),
        (((np.ones((4, 3, 40)), np.ones((4, 3, 40))), "recommended"), "3 × 40 cells is too small"),
        (((snapshots(4), np.ones(8)),), "y is for arrays; a Dataset names its outputs"),
        ((snapshots(4).isel(snapshot=0), "quick"), "no dimension 'snapshot' among"),
    ],
)
def test_wrong_data_is_named(given, message):
    with pytest.raises(pc.PlumecastError, match=message):
        pc.fit_surrogate(*given)


def test_the_commands_keep_the_sign(tmp_path, succeed):
    data = make_snapshots(fires=24)
    deviation = (data.smoke - data.smoke.mean("snapshot")).transpose(*data.smoke.dims)
    data["deviation"] = deviation.astype(np.float32).assign_attrs(units="ug m-3")
    store, model, out = (tmp_path / name for name in ("data.nc", "model.plume", "out.nc"))
    data.to_netcdf(store)
    choices = ["--preset", "paper-linear", "--outputs", "deviation"]
    succeed("train", store, "-o", model, *choices)
    succeed("predict", model, store, "-o", out)
    with xr.open_dataset(out) as predicted:
        assert float(predicted.deviation.min()) < 0.25 * float(data.deviation.min())
