"""The bridge between labelled fields and matrices: exact both ways; other grids are refused."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from plumecast.base.errors import PlumecastError
from plumecast.data.layout import fit_layout, from_rows


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


@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_rows_are_snapshots_columns_are_cells_and_back_is_exact(shape):
    data = fields(tuple(shape), a=1.0)
    layout = fit_layout(data, ["a"])
    matrix = layout.to_matrix(data)
    np.testing.assert_array_equal(matrix, data.a.values.reshape(5, layout.size))
    (values,) = layout.split(matrix)
    xr.testing.assert_identical(from_rows(values, layout.fields[0], data.a, ["snapshot"]), data.a)
    turned = data.transpose(*data.a.dims[::-1])
    np.testing.assert_array_equal(layout.to_matrix(turned), matrix)


def test_stacked_variables_lie_side_by_side_each_of_root_mean_square_one():
    data = fields((3, 4), a=0.0, b=1e6)
    layout = fit_layout(data, ["a", "b"])
    assert layout.names == ("a", "b")
    matrix = layout.to_matrix(data)
    assert matrix.shape == (5, 24)
    sizes = np.sqrt(np.mean(matrix.reshape(5, 2, 12) ** 2, axis=(0, 2)))
    np.testing.assert_allclose(sizes, 1.0, rtol=1e-14)
    for name, values in zip("ab", layout.split(matrix), strict=True):
        # Divided by a number and multiplied by it again: one rounding each.
        np.testing.assert_allclose(values, data[name], rtol=4e-16)


@pytest.mark.parametrize(
    ("change", "names", "said"),
    [
        (lambda d: d.assign(b=0.0 * d.b), "ab", "'b' is zero in every snapshot; leave it out"),
        (lambda d: d, "c", r"'c' is missing; found \['a', 'b'\]"),
        (lambda d: d.isel(snapshot=0), "a", "'a' has no dimension 'snapshot'"),
    ],
)
def test_what_has_no_layout_is_named(change, names, said):
    with pytest.raises(PlumecastError, match=said):
        fit_layout(change(fields((3, 4), a=0.0, b=1.0)), list(names))


def on_another_grid(apart: object) -> str:
    return rf"'a' is on another grid: its coordinate 'x' differs by up to {apart} from the "


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: a.isel(x=0), r"needs the dimensions \('y', 'x'\), but got"),
        (lambda a: a.isel(x=slice(0, 2)), r"= \(3, 2\), the surrogate has \(3, 4\); regrid"),
        (lambda a: a.assign_coords(x=a.x + 5.0), on_another_grid(5)),
        (lambda a: a.isel(x=slice(None, None, -1)), on_another_grid(30)),
        (lambda a: a.assign_coords(x=a.x * np.nan), on_another_grid("nan")),
        (lambda a: a.assign_attrs(units="degC"), "'a' is in 'degC', the surrogate expects 'K'"),
        (lambda a: a > 0.0, "'a' holds bool, not numbers"),
        (lambda a: a.where(a != a[2, 0, 0]), "'a' holds 1 NaN or infinite values, first in row 2"),
        (lambda a: a.where(a != a[4, 0, 0], np.inf), "'a' holds 1 NaN .*, first in row 4"),
    ],
)
def test_fields_of_another_kind_are_refused(change, said):
    data = fields((3, 4), a=0.0)
    layout = fit_layout(data, ["a"])
    with pytest.raises(PlumecastError, match=said):
        layout.to_matrix({"a": change(data.a)})
    with pytest.raises(PlumecastError, match=r"'a' is missing; found \['b'\]"):
        layout.to_matrix({"b": data.a})


def test_rounded_coordinates_and_other_spellings_of_a_unit_are_the_same():
    data = fields((3, 4), a=0.0).assign_coords(x=4.1e6 + 3000.0 * np.arange(4) + 0.123)
    data.a.attrs["units"] = "h"
    rounded = data.a.assign_coords(x=data.x.values.astype(np.float32)).assign_attrs(units="hours")
    matrix = fit_layout(data, ["a"]).to_matrix({"a": rounded})
    np.testing.assert_array_equal(matrix, data.a.values.reshape(5, 12))
