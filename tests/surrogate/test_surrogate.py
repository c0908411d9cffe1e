"""The surrogate on labelled data: predictions have the type and grid of the input, or raise."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.data.split import split_by_fire
from plumecast.operators.coded.polynomial_map import DualMap, PrimalMap
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


def test_labelled_fires_give_labelled_smoke(linear, split):
    smoke = linear.predict(split.test.time_since_ignition)
    assert isinstance(smoke, xr.DataArray)
    assert smoke.name == "smoke"
    assert smoke.dims == ("snapshot", "y", "x")
    assert smoke.attrs["units"] == "ug m-3"
    for name in split.test.coords:
        xr.testing.assert_identical(smoke.coords[name], split.test.smoke.coords[name])


def test_data_set_and_data_array_give_the_same(linear, split):
    whole = linear.predict(split.test)
    assert whole.identical(linear.predict(split.test.time_since_ignition))


def test_array_gives_an_array_with_the_same_values(linear, split):
    smoke = linear.predict(split.test.time_since_ignition.values)
    assert type(smoke) is np.ndarray
    np.testing.assert_array_equal(smoke, linear.predict(split.test).values)


def test_single_field_gives_a_single_field(linear, split):
    fires = split.test.time_since_ignition.astype(np.float64)
    one = fires.isel(snapshot=3)
    smoke, values = linear.predict(one), linear.predict(one.values)
    assert smoke.dims == ("y", "x")
    assert values.shape == (8, 10)
    np.testing.assert_array_equal(smoke, values)
    assert_close(smoke, linear.predict(fires).isel(snapshot=3), BLOCK_ROUNDING)


def test_single_field_keeps_the_labels_of_its_snapshot(linear, split):
    one = split.test.time_since_ignition.isel(snapshot=3)
    smoke = linear.predict(one)
    assert smoke.fire_id.item() == one.fire_id.item()
    assert smoke.hours.item() == one.hours.item()


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


def test_no_snapshots_give_no_smoke_fields(linear, split):
    assert linear.predict(split.test.isel(snapshot=slice(0, 0))).shape == (0, 8, 10)
    assert linear.predict(np.zeros((0, 8, 10))).shape == (0, 8, 10)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floating_point_type_is_kept(linear, split, kind):
    fires = split.test.time_since_ignition.astype(kind)
    assert linear.predict(fires).dtype == kind
    assert linear.predict(fires.values).dtype == kind


def test_whole_numbers_give_float64(linear, split):
    whole = np.round(split.test.time_since_ignition.values).astype(np.int16)
    smoke = linear.predict(whole)
    assert smoke.dtype == np.float64
    np.testing.assert_array_equal(smoke, linear.predict(whole.astype(np.float64)))


def test_order_of_the_dimensions_changes_nothing(linear, split):
    turned = split.test.time_since_ignition.transpose("x", "snapshot", "y")
    assert linear.predict(turned).identical(linear.predict(split.test))


def test_blocks_of_a_long_prediction_equal_the_whole(linear, split, monkeypatch):
    fires = split.test.time_since_ignition.values.astype(np.float64)
    whole = linear.predict(fires)
    monkeypatch.setattr(surrogate_module, "PREDICT_BLOCK", 5)
    assert_close(linear.predict(fires), whole, BLOCK_ROUNDING)


def test_predicting_changes_neither_input_nor_surrogate(linear, split):
    before = split.test.copy(deep=True)
    first = linear.predict(split.test)
    first.values[...] = -1.0
    xr.testing.assert_identical(split.test, before)
    assert float(linear.predict(split.test).min()) >= 0.0


def test_geography_of_the_training_grid_labels_the_smoke(split):
    lat = (("y", "x"), np.linspace(30.0, 40.0, 80).reshape(8, 10), {"units": "degrees_north"})
    surrogate = fit_surrogate(split.train.assign_coords(lat=lat))
    smoke = surrogate.predict(split.test.time_since_ignition)
    np.testing.assert_array_equal(smoke.lat, lat[1])
    assert smoke.lat.attrs["units"] == "degrees_north"


def test_training_data_with_a_scalar_coordinate_predicts_as_without(linear, split):
    located = split.train.assign_coords(spatial_ref=0)  # what GIS tools attach to every field
    smoke = fit_surrogate(located, "paper-linear").predict(split.test)
    np.testing.assert_array_equal(smoke, linear.predict(split.test))


# What a prediction refuses


def test_field_of_another_size_is_refused_with_both_sizes(linear, split):
    cut = split.test.time_since_ignition.isel(x=slice(0, 9))
    with pytest.raises(PlumecastError, match=r"\(8, 9\), the surrogate has \(8, 10\); regrid"):
        linear.predict(cut)
    with pytest.raises(PlumecastError, match=r"expected an array \(…, 8, 10\), got shape \(16, 8"):
        linear.predict(cut.values)
    with pytest.raises(PlumecastError, match=r"expected an array \(…, 8, 10\), got shape \(10,\)"):
        linear.predict(np.zeros(10))


@pytest.mark.parametrize("dim", ["y", "x"])
def test_field_on_a_shifted_grid_is_refused_with_the_shift(linear, split, dim):
    moved = split.test.assign_coords({dim: split.test[dim] + 1500.0})
    with pytest.raises(PlumecastError, match=f"coordinate '{dim}' differs by up to 1500"):
        linear.predict(moved)


def test_field_upside_down_is_refused(linear, split):
    flipped = split.test.isel(y=slice(None, None, -1))
    with pytest.raises(PlumecastError, match="coordinate 'y' differs by up to 21000"):
        linear.predict(flipped)


def test_field_in_other_units_is_refused_with_both(linear, split):
    minutes = (60.0 * split.test.time_since_ignition).assign_attrs(units="min")
    with pytest.raises(PlumecastError, match="is in 'min', the surrogate expects 'h'"):
        linear.predict(minutes)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_input_that_is_not_finite_is_refused_with_count_and_row(linear, split, value):
    fires = split.test.time_since_ignition.copy(deep=True)
    fires.values[2, 1, 1:4] = value
    for data in (fires, fires.values):
        with pytest.raises(PlumecastError, match="holds 3 NaN or infinite values, first in row 2"):
            linear.predict(data)


def test_data_set_without_the_input_is_refused_with_what_it_holds(linear, split):
    message = "variable 'time_since_ignition' is missing; found .*smoke"
    with pytest.raises(PlumecastError, match=message):
        linear.predict(split.test[["smoke"]])


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
    predicted = several.predict(stacked(split.test))
    assert isinstance(predicted, xr.Dataset)
    assert {name: item.attrs["units"] for name, item in predicted.data_vars.items()} == {
        "smoke": "ug m-3",
        "log_smoke": "1",
    }
    for name in predicted.data_vars:
        assert predicted[name].dims == ("snapshot", "y", "x")
        np.testing.assert_array_equal(predicted.fire_id, split.test.fire_id)
    # ln(g + 1) of at most 1,500 µg m⁻³: the two outputs differ in size by a factor of 200.
    assert float(predicted.log_smoke.max()) < 20.0 < float(predicted.smoke.max())


def test_several_inputs_are_all_used(several, split):
    data = stacked(split.test)
    changed = several.predict(data.assign(nearby=0.5 * data.nearby.assign_attrs(units="1")))
    assert float(np.abs(changed.smoke - several.predict(data).smoke).max()) > 1.0


def test_several_inputs_need_a_data_set_with_all_of_them(several, split):
    data = stacked(split.test)
    with pytest.raises(PlumecastError, match=r"needs 2 inputs \(time_since_ignition, nearby\); pa"):
        several.predict(data.nearby)
    with pytest.raises(PlumecastError, match="variable 'nearby' is missing"):
        several.predict(split.test)
    with pytest.raises(PlumecastError, match="needs 2 inputs"):
        several.predict(data.nearby.values)


def test_several_outputs_of_an_array_are_refused(split):
    surrogate = fit_surrogate(with_log_smoke(split.train), outputs=["smoke", "log_smoke"])
    with pytest.raises(PlumecastError, match="outputs smoke, log_smoke; pass a Dataset"):
        surrogate.predict(split.test.time_since_ignition.values)


def test_inputs_whose_leading_dimensions_differ_in_order_are_aligned_by_name(several, split):
    data = stacked(split.test)[["time_since_ignition", "nearby"]].drop_vars(["x", "y"])
    folded = data.isel(snapshot=slice(0, 12)).coarsen(snapshot=4)
    cube = folded.construct(snapshot=("fire", "checkpoint"))
    turned = cube.assign(nearby=cube.nearby.transpose("checkpoint", "y", "x", "fire"))
    expected, got = several.predict(cube).smoke, several.predict(turned).smoke
    np.testing.assert_array_equal(got.transpose(*expected.dims), expected)


def test_inputs_without_common_leading_dimensions_are_refused(several, split):
    data = stacked(split.test)
    with pytest.raises(PlumecastError, match="nearby"):
        several.predict(data.assign(nearby=data.nearby.isel(snapshot=0, drop=True)))


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
def test_empty_fire_makes_exactly_no_smoke(split, name):
    surrogate = fit_surrogate(split.train, **FITS[name])
    empty = np.zeros((3, 8, 10))
    np.testing.assert_array_equal(surrogate.predict(empty), 0.0)


@pytest.mark.parametrize("name", FITS)
def test_smoke_is_never_negative_unless_asked_for(split, name):
    signed = fit_surrogate(split.train, nonnegative=False, **FITS[name]).predict(split.test)
    clipped = fit_surrogate(split.train, **FITS[name]).predict(split.test)
    assert float(signed.min()) < 0.0
    np.testing.assert_array_equal(clipped, np.maximum(signed, 0.0))


@pytest.mark.parametrize("name", FITS)
def test_order_of_the_training_snapshots_changes_nothing(split, name):
    order = np.random.default_rng(7).permutation(split.train.sizes["snapshot"])
    fires = split.test.time_since_ignition.astype(np.float64)
    first = fit_surrogate(split.train, **FITS[name])
    other = fit_surrogate(split.train.isel(snapshot=order), **FITS[name])
    assert other.training["fire_rank"] == first.training["fire_rank"]
    assert other.training["penalty"] == pytest.approx(first.training["penalty"], rel=1e-9)
    assert_close(other.predict(fires), first.predict(fires), ORDER_ROUNDING)


def test_centred_map_takes_the_mean_fire_to_the_mean_smoke(split):
    surrogate = fit_surrogate(split.train, degree=1, center=True)
    mean = split.train.astype(np.float64).mean("snapshot")
    # The codes of the mean are zero up to rounding, and the map has no constant term.
    assert_close(surrogate.predict(mean.time_since_ignition.values), mean.smoke, 1e-10)


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


def test_other_order_of_dimensions_in_training_changes_nothing(linear, split):
    turned = fit_surrogate(split.train.transpose("x", "y", "snapshot"), "paper-linear")
    fires = split.test.time_since_ignition.values.astype(np.float64)
    got = turned.predict(np.swapaxes(fires, 1, 2))
    assert_close(np.swapaxes(got, 1, 2), linear.predict(fires), ORDER_ROUNDING)


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


def test_paper_quadratic_chooses_its_penalty_by_leaving_ignitions_out(split):
    surrogate = fit_surrogate(split.train, "paper-quadratic", fire_rank=10)
    assert surrogate.settings["degree"] == 2
    assert surrogate.settings["fire"]["rank"] == 10
    assert surrogate.training["leave_out"] == "ignition_id"
    assert surrogate.training["penalty"] > 0.0
    assert 0.0 < surrogate.training["leave_out_error"] < 1.0


def test_paper_quadratic_keeps_the_modes_of_95_percent_of_std(split, linear):
    surrogate = fit_surrogate(split.train, "paper-quadratic")
    assert surrogate.training["fire_rank"] == linear.training["fire_rank"]


def test_paper_quadratic_keeps_at_most_200_modes():
    # White noise spreads over all modes: 95 % of Σσ needs far more than 200 of the 300.
    noise = np.random.default_rng(0).uniform(size=(300, 20, 16)).astype(np.float32)
    dims = ["snapshot", "y", "x"]
    data = xr.Dataset({"time_since_ignition": (dims, noise), "smoke": (dims, noise[::-1].copy())})
    surrogate = fit_surrogate(data, "paper-quadratic", penalty=1.0)
    assert surrogate.training["fire_rank"] == 200
    assert surrogate.training["smoke_rank"] > 200


def test_unknown_preset_is_refused_with_the_known_ones(split):
    message = "preset 'cubic' is unknown; choose from paper-linear, paper-quadratic"
    with pytest.raises(PlumecastError, match=message):
        fit_surrogate(split.train, "cubic")


def test_the_smaller_system_is_solved(split):
    few, many = (fit_surrogate(split.train, degree=2, fire_rank=rank) for rank in (3, 10))
    assert isinstance(few.operator.code_map, PrimalMap)  # 9 features, 24 snapshots
    assert isinstance(many.operator.code_map, DualMap)  # 65 features, 24 snapshots


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"degree": 5}, "degree=5 is not one of 1…4"),
        ({"degree": 0}, "degree=0 is not one of 1…4"),
        ({"penalty": -1.0}, "penalty=-1 must be ≥ 0"),
        ({"penalty": float("nan")}, "penalty=nan is not a finite number"),
        ({"fire_rank": 0}, "time_since_ignition: rank=0 must be at least 1"),
        ({"fire_std_fraction": 1.5}, r"std_fraction=1.5 is not within \(0, 1\]"),
        ({"smoke_variance_fraction": 0.0}, r"variance_fraction=0 is not within \(0, 1\]"),
        ({"fire_rank": 3, "fire_std_fraction": 0.9}, "give exactly one of rank, std_fraction"),
        ({"degree": 2, "penalty": 0.0, "fire_rank": 10}, "65 features .* for 24 snapshots are not"),
    ],
    ids=str,
)
def test_choices_that_cannot_be_met_are_refused_with_their_values(split, choices, message):
    with pytest.raises(PlumecastError, match=message):
        fit_surrogate(split.train, **choices)


@pytest.mark.parametrize("side", ["fire", "smoke"])
def test_rank_beyond_the_datas_is_refused_with_the_rank_of_the_data(split, side):
    name = {"fire": "time_since_ignition", "smoke": "smoke"}[side]
    known = np.linalg.matrix_rank(split.train[name].values.reshape(24, 80).astype(np.float64))
    fit_surrogate(split.train, penalty=1.0, **{f"{side}_rank": int(known)})
    for rank in (known + 1, 24 + 1, 900):
        message = f"^{name}: rank={rank} exceeds {known}, the rank of 24 snapshots on 80 cells; low"
        with pytest.raises(PlumecastError, match=message):
            fit_surrogate(split.train, penalty=1.0, **{f"{side}_rank": int(rank)})


def test_rank_beyond_that_of_repeated_snapshots_is_refused(split):
    few = select_fire(split.train, str(split.train.fire_id.values[0]))
    repeated = xr.concat([few] * 5, "snapshot").drop_vars(["hours", "fire_id"])
    with pytest.raises(PlumecastError, match="rank=10 exceeds 4, the rank of 20 snapshots"):
        fit_surrogate(repeated, penalty=1.0, fire_rank=10)


@pytest.mark.parametrize("name", ["time_since_ignition", "smoke"])
def test_all_zero_snapshots_are_refused_by_name(split, name):
    zero = split.train.assign({name: 0.0 * split.train[name]})
    with pytest.raises(PlumecastError, match=f"{name}: all 24 snapshots are zero"):
        fit_surrogate(zero)


def test_single_fire_needs_a_penalty(snapshots):
    fire = select_fire(snapshots, "fire-00-high")
    with pytest.raises(
        PlumecastError,
        match="are of one group; add fires or give the penalty",
    ):
        fit_surrogate(fire)
    surrogate = fit_surrogate(fire, penalty=0.0, fire_std_fraction=1.0, smoke_std_fraction=1.0)
    # As many modes as snapshots: least squares passes through all of them.
    assert_close(surrogate.predict(fire), fire.smoke, 1e-6)


def test_missing_group_coordinate_matters_only_when_the_penalty_is_chosen(split, linear):
    loose = split.train.drop_vars("ignition_id")
    with pytest.raises(PlumecastError, match="leaves one 'ignition_id' out at a time, but the tra"):
        fit_surrogate(loose)
    with pytest.raises(PlumecastError, match="leaves one 'season' out at a time"):
        fit_surrogate(split.train, group_by="season")
    again = fit_surrogate(loose, "paper-linear")
    np.testing.assert_array_equal(again.predict(split.test), linear.predict(split.test))


def test_what_is_left_out_decides_the_penalty(snapshots):
    by_fire = split_by_fire(snapshots, by="fire_id").train
    errors = [
        fit_surrogate(by_fire, group_by=group).training["leave_out_error"]
        for group in ("fire_id", "ignition_id")
    ]
    assert errors[0] < errors[1], "leaving out whole ignitions is the harder test"


def test_provenance_names_version_source_and_fires(split):
    versioned = split.train.assign_attrs(data_version="ABC", source="somewhere")
    training = fit_surrogate(versioned).training
    assert (training["data_version"], training["source"]) == ("ABC", "somewhere")
    assert training["snapshots"] == 24
    assert training["fire_id"] == sorted(set(split.train.fire_id.values.tolist()))
    assert training["ignition_id"] == sorted(set(split.train.ignition_id.values.tolist()))


# Training data that is refused


@pytest.mark.parametrize("dims", [("snapshot", "y", "x"), ("y", "x", "snapshot")])
@pytest.mark.parametrize("name", ["time_since_ignition", "smoke"])
def test_training_values_that_are_not_finite_name_variable_fire_and_count(split, name, dims):
    bad = split.train.copy(deep=True)
    bad[name].values[13, 0, :3] = np.nan
    fire = bad.fire_id.values[13]
    message = f"'{name}' holds 3 NaN or infinite values in fire '{fire}'"
    with pytest.raises(PlumecastError, match=message):
        fit_surrogate(bad.transpose(*dims))


def test_negative_smoke_is_not_trained_on(split):
    bad = split.train.assign(smoke=(split.train.smoke - 1.0).assign_attrs(split.train.smoke.attrs))
    with pytest.raises(PlumecastError, match=r"'smoke' holds \d+ negative values in fire"):
        fit_surrogate(bad)


def test_empty_training_part_is_refused(split):
    with pytest.raises(PlumecastError, match="there are no training snapshots"):
        fit_surrogate(split.train.isel(snapshot=slice(0, 0)))


def test_missing_training_variable_is_named(split):
    with pytest.raises(
        PlumecastError, match=r"'smoke' is missing; found \['time_since_ignition'\]"
    ):
        fit_surrogate(split.train.drop_vars("smoke"))


def test_text_is_not_trained_on(split):
    with pytest.raises(PlumecastError, match="'drought' holds <U4, not numbers"):
        fit_surrogate(split.train, inputs="drought")


@pytest.mark.parametrize("text", ["WRF-Fire run 3", "[1, 2]", "7"])
def test_an_attribute_named_like_the_simulators_is_no_record_of_it(split, text):
    named = split.train.assign_attrs(simulation=text)
    assert "simulation" not in fit_surrogate(named, "paper-linear").training
