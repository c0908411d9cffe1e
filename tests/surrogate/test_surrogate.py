"""The surrogate on labelled data: predictions have the type and grid of the input, or raise."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.operators.pca import rank_for_std
from plumecast.scores.optical_depth import with_log_smoke
from plumecast.surrogate import surrogate as surrogate_module
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.load import load_surrogate
from support.snapshots import select_fire

BLOCK_ROUNDING = 1e-12
"""Relative to the largest value: a product of matrices of another height sums in another order."""

ORDER_ROUNDING = 1e-9
"""Relative to the largest value: shuffled rows change the last bits of the Gram matrices, and the
penalised systems (condition up to 1e7 here) amplify them."""

FITS = {
    "linear": {"preset": "paper-linear"},
    "primal quadratic": {"degree": 2, "fire_rank": 3},
    "dual quadratic": {"degree": 2, "fire_rank": 10},
    "dual cubic": {"degree": 3, "fire_rank": 8, "penalty": 1e4},
    "matern": {"kernel": "matern-5/2"},
    "trend and matern": {"kernel": "polynomial-1 + matern-5/2", "penalty": 0.01},
    "squared exponential": {"kernel": "squared-exponential", "length_scale": 2.0},
}


@pytest.fixture(scope="module")
def linear(split):
    return fit_surrogate(split.train, "paper-linear")


def assert_close(got, expected, share: float) -> None:
    np.testing.assert_allclose(got, expected, rtol=0.0, atol=share * float(np.max(expected)))


# Predictions have the type of the input: labels, arrays, dimensions, precision


def test_labelled_fires_give_labelled_smoke_and_arrays_give_arrays(linear, split):
    fires = split.test.time_since_ignition
    smoke = linear.predict(fires)
    assert isinstance(smoke, xr.DataArray)
    assert (smoke.name, smoke.dims) == ("smoke", ("snapshot", "y", "x"))
    assert smoke.attrs["units"] == "ug m-3"
    for name in split.test.coords:
        xr.testing.assert_identical(smoke.coords[name], split.test.smoke.coords[name])
    assert linear.predict(split.test).identical(smoke)
    assert linear.predict(fires.transpose("x", "snapshot", "y")).identical(smoke)
    values = linear.predict(fires.values)
    assert type(values) is np.ndarray
    np.testing.assert_array_equal(values, smoke.values)
    one = linear.predict(fires.isel(snapshot=3))
    assert one.dims == ("y", "x")
    assert (one.fire_id.item(), one.hours.item()) == (
        smoke.fire_id[3].item(),
        smoke.hours[3].item(),
    )
    assert_close(one, smoke[3], 1e-5)  # float32
    np.testing.assert_array_equal(linear.predict(fires.values[3]), one)
    assert linear.predict(split.test.isel(snapshot=slice(0, 0))).shape == (0, 8, 10)
    assert linear.predict(np.zeros((0, 8, 10))).shape == (0, 8, 10)


def test_leading_dimensions_are_kept(linear, split):
    fields = split.test.time_since_ignition.values  # 16 snapshots
    flat = linear.predict(fields)
    np.testing.assert_array_equal(
        linear.predict(fields.reshape(2, 4, 2, 8, 10)), flat.reshape(2, 4, 2, 8, 10)
    )
    labelled = xr.DataArray(
        fields.reshape(4, 4, 8, 10),
        dims=["scenario", "member", "y", "x"],
        coords={"scenario": list("abcd"), "member": [1, 2, 3, 4]},
    )
    smoke = linear.predict(labelled)
    assert smoke.dims == ("scenario", "member", "y", "x")
    assert smoke.scenario.values.tolist() == list("abcd")
    np.testing.assert_array_equal(smoke, flat.reshape(4, 4, 8, 10))


@pytest.mark.parametrize(
    ("kind", "result"), [("float32", "float32"), ("float64", "float64"), ("int16", "float64")]
)
def test_blocks_equal_the_whole_and_keep_the_type(linear, split, monkeypatch, kind, result):
    whole = np.round(split.test.time_since_ignition.values).astype(kind)
    smoke = linear.predict(whole)
    assert smoke.dtype == np.dtype(result)
    np.testing.assert_array_equal(smoke, linear.predict(whole.astype(result)))
    monkeypatch.setattr(surrogate_module, "PREDICT_BLOCK", 5)
    assert_close(linear.predict(whole), smoke, BLOCK_ROUNDING if result == "float64" else 1e-6)


def at_row_2(value: float):
    def spoil(data: xr.Dataset) -> xr.DataArray:
        fires = data.time_since_ignition.copy(deep=True)
        fires.values[2, 1, 1:4] = value
        return fires

    return spoil


NOT_FINITE = "holds 3 NaN or infinite values, first in row 2"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.isel(x=slice(0, 9)), r"\(8, 9\), the surrogate has \(8, 10\); regrid"),
        (lambda d: np.zeros((16, 8, 9)), r"expected an array \(…, 8, 10\), got shape \(16, 8"),
        (lambda d: np.zeros(10), r"expected an array \(…, 8, 10\), got shape \(10,\)"),
        (lambda d: d.assign_coords(y=d.y + 1500.0), "coordinate 'y' differs by up to 1500"),
        (lambda d: d.isel(y=slice(None, None, -1)), "coordinate 'y' differs by up to 21000"),
        (
            lambda d: d.time_since_ignition.assign_attrs(units="min"),
            "is in 'min', .* expects 'h'",
        ),
        (lambda d: d[["smoke"]], "variable 'time_since_ignition' is missing; found .*smoke"),
        *((at_row_2(value), NOT_FINITE) for value in (np.nan, np.inf, -np.inf)),
        (lambda d: at_row_2(np.nan)(d).values, NOT_FINITE),
        (at_row_2(-1.0), r"holds 3 negative values, first in row 2, cell \(1, 1\): -1"),
        (at_row_2(9.97e36), r"holds 3 values beyond ±1e\+18, first in row 2, cell \(1, 1\): 9.97e"),
        (lambda d: np.ma.masked_equal(d.smoke.values, 0.0), "data has .* masked values; fill them"),
        *(
            (lambda d, kind=kind: np.zeros((2, 8, 10), dtype=kind), "not numbers")
            for kind in (bool, complex, object, "datetime64[s]", "U3")
        ),
    ],
)
def test_wrong_fields_are_refused(linear, split, change, said):
    with pytest.raises(PlumecastError, match=said):
        linear.predict(change(split.test))


def test_an_empty_mask_is_none_and_no_prediction_is_infinite(linear, split):
    fires = split.test.time_since_ignition.values
    np.testing.assert_array_equal(linear.predict(np.ma.array(fires)), linear.predict(fires))
    cubic = fit_surrogate(split.train, degree=3, fire_rank=5)
    with pytest.raises(PlumecastError, match="prediction of snapshot 0 is not finite in float32"):
        cubic.predict(np.full((3, 8, 10), 1e17, dtype=np.float32))


def test_eight_threads_predict_the_same(split):
    surrogate = fit_surrogate(split.train, "quick", layers=1)
    expected = surrogate.predict(split.test)
    with ThreadPoolExecutor(8) as threads:
        smoke = list(threads.map(lambda _: surrogate.predict(split.test), range(16)))
    assert all(one.identical(expected) for one in smoke)


def test_quick_does_not_depend_on_the_unit_of_smoke(split):
    scaled = split.train.assign(smoke=(1e-3 * split.train.smoke).assign_attrs(units="ug m-3"))
    smoke = fit_surrogate(split.train, "quick").predict(split.test)
    other = fit_surrogate(scaled, "quick")
    assert_close(1e3 * other.predict(split.test), smoke, 1e-4)  # weights are float32
    assert other.training["log_scale"] == other.operator.targets.epsilon
    assert 0.0 < other.training["log_scale"] < float(scaled.smoke.max())


# Other variables, several of them, other grids


def stacked(part: xr.Dataset) -> xr.Dataset:
    """Snapshots with a second input: the burned area of each cell's neighbourhood."""
    fires = part.time_since_ignition
    nearby = (fires > 0.0).astype(np.float64).rolling(x=3, min_periods=1, center=True).mean()
    return with_log_smoke(part).assign(nearby=nearby.assign_attrs(units="1"))


@pytest.fixture(scope="module")
def several(split):
    return fit_surrogate(
        stacked(split.train),
        inputs=["time_since_ignition", "nearby"],
        outputs=["smoke", "log_smoke"],
    )


def test_several_outputs_come_as_a_data_set_each_in_its_units(several, split):
    data = stacked(split.test)
    predicted = several.predict(data)
    units = {name: item.attrs["units"] for name, item in predicted.data_vars.items()}
    assert units == {"smoke": "ug m-3", "log_smoke": "1"}
    for name in predicted.data_vars:
        assert predicted[name].dims == ("snapshot", "y", "x")
        np.testing.assert_array_equal(predicted.fire_id, split.test.fire_id)
    # ln(g + 1) of at most 1,500 µg m⁻³: the two outputs differ in size by a factor of 200.
    assert float(predicted.log_smoke.max()) < 20.0 < float(predicted.smoke.max())
    changed = several.predict(data.assign(nearby=0.5 * data.nearby.assign_attrs(units="1")))
    assert float(np.abs(changed.smoke - predicted.smoke).max()) > 1.0, "all inputs are used"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.nearby, r"needs 2 inputs \(time_since_ignition, nearby\); pa"),
        (lambda d: d.nearby.values, "needs 2 inputs"),
        (lambda d: d.drop_vars("nearby"), "variable 'nearby' is missing"),
        (lambda d: d.assign(nearby=d.nearby.isel(snapshot=0, drop=True)), "nearby"),
    ],
)
def test_several_inputs_need_a_data_set_with_all_of_them(several, split, change, said):
    with pytest.raises(PlumecastError, match=said):
        several.predict(change(stacked(split.test)))
    both = fit_surrogate(with_log_smoke(split.train), outputs=["smoke", "log_smoke"])
    with pytest.raises(PlumecastError, match="outputs smoke, log_smoke; pass a Dataset"):
        both.predict(split.test.time_since_ignition.values)


def low_rank(shape: tuple[int, ...], degree: int, count: int = 80, rank: int = 3) -> xr.Dataset:
    """Fields spanned by `rank` patterns, and targets that are a polynomial of the weights."""
    rng = np.random.default_rng(len(shape))
    weights = rng.uniform(0.2, 1.0, size=(count, rank))
    products = weights[:, :, None] * weights[:, None, :]
    features = weights if degree == 1 else np.hstack([weights, products.reshape(count, -1)])
    cells = int(np.prod(shape))
    dims = ["snapshot", *("level", "row", "column")[: len(shape)]]

    def field(columns: np.ndarray) -> np.ndarray:
        patterns = rng.uniform(0.5, 1.0, size=(columns.shape[1], cells))
        return (columns @ patterns).reshape(count, *shape)

    return xr.Dataset(
        {"burned": (dims, field(weights)), "heat": (dims, field(features))},
        {"ignition_id": ("snapshot", [f"i{k // 4}" for k in range(count)])},
    )


@pytest.mark.parametrize("shape", [(30,), (6, 5), (3, 4, 5)], ids=["1-D", "2-D", "3-D"])
@pytest.mark.parametrize("degree", [1, 2])
def test_polynomial_map_between_other_variables_is_recovered_on_any_grid(shape, degree):
    data = low_rank(shape, degree)
    train, test = data.isel(snapshot=slice(0, 60)), data.isel(snapshot=slice(60, None))
    surrogate = fit_surrogate(
        train,
        degree=degree,
        penalty=1e-10,
        fire_rank=3,
        smoke_std_fraction=1.0 - 1e-12,
        inputs="burned",
        outputs="heat",
    )
    predicted = surrogate.predict(test)
    assert predicted.name == "heat"
    assert predicted.dims == test.heat.dims
    # The penalty of 1e-10 biases weights of order one in a system with eigenvalues above 1e-3.
    np.testing.assert_allclose(predicted, test.heat, rtol=1e-6)


# Physics and invariance


@pytest.mark.parametrize("name", FITS)
def test_smoke_is_never_negative_unless_asked_for_and_no_fire_makes_none(split, name):
    clipped = fit_surrogate(split.train, **FITS[name])
    np.testing.assert_array_equal(clipped.predict(np.zeros((3, 8, 10))), 0.0)
    signed = fit_surrogate(split.train, nonnegative=False, **FITS[name]).predict(split.test)
    assert float(signed.min()) < 0.0
    np.testing.assert_array_equal(clipped.predict(split.test), np.maximum(signed, 0.0))


@pytest.mark.parametrize("name", FITS)
def test_order_of_the_training_snapshots_and_dimensions_changes_nothing(split, name):
    order = np.random.default_rng(7).permutation(split.train.sizes["snapshot"])
    fires = split.test.time_since_ignition.values.astype(np.float64)
    first = fit_surrogate(split.train, **FITS[name])
    located = split.train.assign_coords(spatial_ref=0)  # what GIS tools attach to every field
    turned = located.isel(snapshot=order).transpose("x", "y", "snapshot")
    other = fit_surrogate(turned, **FITS[name])
    assert other.training["fire_rank"] == first.training["fire_rank"]
    assert other.training["penalty"] == pytest.approx(first.training["penalty"], rel=1e-9)
    got = np.swapaxes(other.predict(np.swapaxes(fires, 1, 2)), 1, 2)
    assert_close(got, first.predict(fires), ORDER_ROUNDING)


@pytest.mark.parametrize("rank", [4, 12])  # 14 features: primal; 90: dual
def test_a_centred_quadratic_keeps_the_mean_smoke(split, tmp_path, rank):
    """Least squares with an intercept leaves residuals whose mean is zero."""
    surrogate = fit_surrogate(split.train, degree=2, center=True, fire_rank=rank, penalty=1e4)
    fires, smoke = (split.train[name].values for name in ("time_since_ignition", "smoke"))
    flat = fires.reshape(fires.shape[0], -1).astype(np.float64)
    predicted = surrogate.operator.predict(flat).reshape(smoke.shape)  # not clipped at zero
    size = np.abs(smoke - smoke.mean(axis=0)).max()
    # The intercept is penalised a little: see `intercept_constant`.
    assert np.abs((predicted - smoke).mean(axis=0)).max() < 1e-4 * size
    surrogate.save(tmp_path / "a.plume")
    loaded = load_surrogate(tmp_path / "a.plume")
    np.testing.assert_array_equal(loaded.predict(fires), surrogate.predict(fires))


# Presets, choices and provenance


def test_paper_linear_is_least_squares_on_95_percent_of_std(split):
    surrogate = fit_surrogate(split.train, "paper-linear")
    assert surrogate.settings["preset"] == "paper-linear"
    assert (surrogate.settings["degree"], surrogate.settings["center"]) == (1, False)
    assert surrogate.training["penalty"] == 0.0
    for side, name in (("fire", "time_since_ignition"), ("smoke", "smoke")):
        values = split.train[name].values.reshape(24, 80).astype(np.float64)
        rank = rank_for_std(np.linalg.svd(values, compute_uv=False), 0.95)
        assert surrogate.training[f"{side}_rank"] == rank
        assert surrogate.settings[side]["std_fraction"] == 0.95


def test_paper_quadratic_chooses_its_penalty_by_leaving_ignitions_out(split, linear):
    versioned = split.train.assign_attrs(data_version="ABC", source="somewhere", simulation="7")
    surrogate = fit_surrogate(versioned, "paper-quadratic")
    assert surrogate.settings["degree"] == 2
    record = surrogate.training
    assert record["fire_rank"] == linear.training["fire_rank"]
    assert record["leave_out"] == "ignition_id"
    assert record["penalty"] > 0.0
    assert 0.0 < record["leave_out_error"] < 1.0
    assert (record["data_version"], record["source"]) == ("ABC", "somewhere")
    assert "simulation" not in record, "it is no record of the simulator"
    assert record["snapshots"] == 24
    for name in ("fire_id", "ignition_id"):
        assert record[name] == sorted(set(split.train[name].values.tolist()))
    by_fire = [
        fit_surrogate(split.train, group_by=group).training["leave_out_error"]
        for group in ("fire_id", "ignition_id")
    ]
    assert by_fire[0] < by_fire[1], "leaving out whole ignitions is the harder test"


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"preset": "cubic"}, "preset 'cubic' is unknown; choose from paper-linear, paper-quad"),
        ({"degree": 5}, "degree=5 is not one of 1…4"),
        ({"degree": 0}, "degree=0 is not one of 1…4"),
        ({"penalty": -1.0}, "penalty=-1 must be ≥ 0"),
        ({"penalty": float("nan")}, "penalty=nan is not a finite number"),
        ({"fire_rank": 0}, "time_since_ignition: rank=0 must be at least 1"),
        ({"fire_std_fraction": 1.5}, r"std_fraction=1.5 is not within \(0, 1\]"),
        ({"smoke_variance_fraction": 0.0}, r"variance_fraction=0 is not within \(0, 1\]"),
        ({"fire_rank": 3, "fire_std_fraction": 0.9}, "give exactly one of rank, std_fraction"),
        ({"degree": 2, "penalty": 0.0, "fire_rank": 10}, "65 features .* for 24 snapshots are not"),
        ({"group_by": "season"}, "leaves one 'season' out at a time"),
        ({"inputs": "drought"}, "'drought' holds <U4, not numbers"),
        ({"outputs": "heat"}, r"'heat' is missing; found \['smoke', 'time_since_ign"),
    ],
    ids=str,
)
def test_choices_that_cannot_be_met_are_refused_with_their_values(split, choices, message):
    with pytest.raises(PlumecastError, match=message):
        fit_surrogate(split.train, **choices)


def with_nan(name: str):
    def spoil(data: xr.Dataset) -> xr.Dataset:
        bad = data.copy(deep=True)
        bad[name].values[13, 0, :3] = np.nan
        return bad

    return spoil


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.isel(snapshot=slice(0, 0)), "there are no training snapshots"),
        (lambda d: d.assign(smoke=d.smoke - 1.0), r"'smoke' holds \d+ negative values in fire"),
        (lambda d: d.assign(smoke=0.0 * d.smoke), "smoke: all 24 snapshots are zero"),
        (
            lambda d: d.assign(time_since_ignition=0.0 * d.time_since_ignition),
            "time_since_ignition: all 24 snapshots are zero",
        ),
        (lambda d: d.drop_vars("ignition_id"), "leaves one 'ignition_id' out .*, but the tra"),
        (with_nan("smoke"), "'smoke' holds 3 NaN or infinite values in fire 'fire-0"),
        (
            lambda d: with_nan("time_since_ignition")(d).transpose("y", "x", "snapshot"),
            "'time_since_ignition' holds 3 NaN or infinite values in fire 'fire-0",
        ),
    ],
)
def test_training_data_that_cannot_be_fitted_are_refused(split, change, message):
    with pytest.raises(PlumecastError, match=message):
        fit_surrogate(change(split.train))


@pytest.mark.parametrize("side", ["fire", "smoke"])
def test_rank_beyond_the_datas_is_refused_with_the_rank_of_the_data(split, side):
    name = {"fire": "time_since_ignition", "smoke": "smoke"}[side]
    most = np.linalg.matrix_rank(split.train[name].values.reshape(24, 80).astype(np.float64))
    fit_surrogate(split.train, penalty=1.0, **{f"{side}_rank": int(most)})
    for rank in (most + 1, 24 + 1, 900):
        message = f"^{name}: rank={rank} exceeds {most}, the rank of 24 snapshots on 80 cells; low"
        with pytest.raises(PlumecastError, match=message):
            fit_surrogate(split.train, penalty=1.0, **{f"{side}_rank": int(rank)})


def test_single_fire_needs_a_penalty(snapshots):
    fire = select_fire(snapshots, "fire-00-high")
    with pytest.raises(PlumecastError, match="are of one group; add fires or give the penalty"):
        fit_surrogate(fire)
    surrogate = fit_surrogate(fire, penalty=0.0, fire_std_fraction=1.0, smoke_std_fraction=1.0)
    # As many modes as snapshots: least squares passes through all of them.
    assert_close(surrogate.predict(fire), fire.smoke, 1e-6)


# Training data that is refused
