"""The bridge between labelled fields and matrices: exact both ways; other grids are refused."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.data.layout import fit_layout, from_rows
from plumecast.surrogate.fit import fit_surrogate

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def fields(shape: tuple[int, ...], count: int = 5, **names: float) -> xr.Dataset:
    """Random variables on one grid of any number of dimensions, each with a mean of its own."""
    rng = np.random.default_rng(0)
    dims = ["z", "y", "x"][-len(shape) :]
    coords = {dim: np.arange(size) * 10.0 for dim, size in zip(dims, shape, strict=True)}
    return xr.Dataset(
        {
            name: (["snapshot", *dims], rng.normal(size=(count, *shape)) + mean, {"units": "K"})
            for name, mean in names.items()
        },
        coords,
    )


@given(shape=SHAPES)
def test_rows_are_snapshots_and_columns_are_cells_in_row_major_order(shape):
    data = fields(tuple(shape), a=1.0)
    layout = fit_layout(data, ["a"])
    matrix = layout.to_matrix(data)
    assert matrix.shape == (5, layout.size) == (5, int(np.prod(shape)))
    np.testing.assert_array_equal(matrix, data.a.values.reshape(5, -1))


@given(shape=SHAPES)
def test_matrix_and_back_is_exact(shape):
    data = fields(tuple(shape), a=1.0)
    layout = fit_layout(data, ["a"])
    (values,) = layout.split(layout.to_matrix(data))
    back = from_rows(values, layout.fields[0], data.a, ["snapshot"])
    xr.testing.assert_identical(back, data.a)


def test_order_of_the_dimensions_changes_nothing():
    data = fields((2, 3, 4), a=1.0)
    layout = fit_layout(data, ["a"])
    turned = data.transpose("x", "snapshot", "z", "y")
    np.testing.assert_array_equal(layout.to_matrix(turned), layout.to_matrix(data))


def test_stacked_variables_lie_side_by_side_each_of_root_mean_square_one():
    data = fields((3, 4), a=0.0, b=1e6)
    layout = fit_layout(data, ["a", "b"])
    assert layout.names == ("a", "b")
    matrix = layout.to_matrix(data)
    assert matrix.shape == (5, 24)
    sizes = np.sqrt(np.mean(matrix.reshape(5, 2, 12) ** 2, axis=(0, 2)))
    np.testing.assert_allclose(sizes, 1.0, rtol=1e-14)


def test_stacked_variables_come_back_in_their_own_units():
    data = fields((3, 4), a=0.0, b=1e6)
    layout = fit_layout(data, ["a", "b"])
    for name, values in zip("ab", layout.split(layout.to_matrix(data)), strict=True):
        # Divided by a number and multiplied by it again: one rounding each.
        np.testing.assert_allclose(values, data[name], rtol=4e-16)


def test_a_single_variable_is_taken_as_it_is():
    data = fields((3, 4), b=1e6)
    np.testing.assert_array_equal(
        fit_layout(data, ["b"]).to_matrix(data), data.b.values.reshape(5, 12)
    )


def test_a_stacked_variable_that_is_always_zero_is_refused_by_name():
    data = fields((3, 4), a=0.0, b=0.0)
    with pytest.raises(PlumecastError, match="'b' is zero in every snapshot; leave it out"):
        fit_layout(data.assign(b=0.0 * data.b), ["a", "b"])


def test_missing_variable_is_named_beside_what_was_found():
    data = fields((3, 4), a=0.0, b=1.0)
    with pytest.raises(PlumecastError, match=r"'c' is missing; found \['a', 'b'\]"):
        fit_layout(data, ["c"])
    with pytest.raises(PlumecastError, match=r"'a' is missing; found \['b'\]"):
        fit_layout(data, ["a"]).to_matrix({"b": data.b})


def test_variable_without_snapshots_is_refused():
    data = fields((3, 4), a=0.0)
    with pytest.raises(PlumecastError, match="'a' has no dimension 'snapshot'"):
        fit_layout(data.isel(snapshot=0), ["a"])


def test_missing_dimension_is_refused_with_both():
    data = fields((3, 4), a=0.0)
    with pytest.raises(PlumecastError, match=r"needs the dimensions \('y', 'x'\), but got"):
        fit_layout(data, ["a"]).to_matrix({"a": data.a.isel(x=0)})


def test_grid_of_another_size_is_refused_with_both_sizes():
    data = fields((3, 4), a=0.0)
    with pytest.raises(PlumecastError, match=r"= \(3, 2\), the surrogate has \(3, 4\); regrid"):
        fit_layout(data, ["a"]).to_matrix({"a": data.a.isel(x=slice(0, 2))})


@pytest.mark.parametrize(
    ("change", "apart"),
    [
        (lambda a: a.assign_coords(x=a.x + 5.0), 5),
        (lambda a: a.isel(x=slice(None, None, -1)), 30),
        (lambda a: a.assign_coords(x=a.x * np.nan), "nan"),
    ],
    ids=["shifted", "flipped", "undefined"],
)
def test_coordinate_with_other_values_is_refused_with_the_distance(change, apart):
    data = fields((3, 4), a=0.0)
    message = rf"'a' is on another grid: its coordinate 'x' differs by up to {apart} from the "
    with pytest.raises(PlumecastError, match=message):
        fit_layout(data, ["a"]).to_matrix({"a": change(data.a)})


def test_coordinates_rounded_to_float32_are_the_same_grid():
    data = fields((3, 4), a=0.0).assign_coords(x=4.1e6 + 3000.0 * np.arange(4) + 0.123)
    rounded = data.a.assign_coords(x=data.x.values.astype(np.float32))
    np.testing.assert_array_equal(
        fit_layout(data, ["a"]).to_matrix({"a": rounded}), data.a.values.reshape(5, 12)
    )


def test_other_units_are_refused_with_both():
    data = fields((3, 4), a=0.0)
    with pytest.raises(PlumecastError, match="'a' is in 'degC', the surrogate expects 'K'"):
        fit_layout(data, ["a"]).to_matrix({"a": data.a.assign_attrs(units="degC")})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_counted_with_their_row(value):
    data = fields((3, 4), a=0.0)
    layout = fit_layout(data, ["a"])
    data.a.values[2, 0, :2] = data.a.values[4, 0, 0] = value
    with pytest.raises(PlumecastError, match="'a' holds 3 NaN or infinite values, first in row 2"):
        layout.to_matrix(data)


def test_arrays_that_are_no_numbers_are_refused_with_their_type():
    data = fields((3, 4), a=0.0)
    with pytest.raises(PlumecastError, match="'a' holds bool, not numbers"):
        fit_layout(data, ["a"]).to_matrix({"a": data.a > 0.0})


def test_another_spelling_of_the_unit_is_the_same_unit(split):
    surrogate = fit_surrogate(split.train, "paper-linear")
    fires = split.test.time_since_ignition
    spelled = fires.assign_attrs(units="hours")
    np.testing.assert_array_equal(surrogate.predict(spelled), surrogate.predict(fires))
