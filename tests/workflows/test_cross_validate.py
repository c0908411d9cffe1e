"""Cross-validation: no fit sees the group it predicts, and every snapshot is predicted once."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from support.convolved_fires import snapshots


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return snapshots(ignitions=8)


def linear(train: xr.Dataset) -> pc.Surrogate:
    return pc.fit_surrogate(train, "paper-linear")


def test_every_snapshot_is_predicted_by_a_fit_without_its_ignition(data):
    seen = []

    def fit(train):
        seen.append(set(train.ignition_id.values.tolist()))
        return linear(train)

    result = pc.cross_validate(data, fit, folds=4)
    assert result.predicted.dims == data.smoke.dims
    assert result.predicted.attrs == data.smoke.attrs
    fold = result.scores.fold.values
    for number, ignitions in enumerate(seen):
        rows = np.flatnonzero(fold == number)
        assert not ignitions & set(data.ignition_id.values[rows].tolist())
        train = data.isel(snapshot=np.isin(data.ignition_id.values, sorted(ignitions)))
        expected = linear(train).predict(data.isel(snapshot=rows))
        np.testing.assert_array_equal(result.predicted.values[rows], expected.values)
        error = pc.scores.relative_error(expected, data.smoke.isel(snapshot=rows))
        assert float(result.folds.relative_error[number]) == error
    assert result.scores.ignition_id.values.tolist() == data.ignition_id.values.tolist()
    assert ((result.scores.iou >= 0.0) & (result.scores.iou <= 1.0)).all()
    assert len(repr(result).splitlines()) == 3


def test_any_function_that_predicts(data):
    result = pc.cross_validate(
        data, lambda train: lambda test: test.smoke.values, by="fire_id", folds=None
    )
    assert result.folds.sizes["fold"] == 16
    assert float(result.scores.relative_error.max()) == 0.0
    assert float(result.scores.iou.min()) == 1.0


def test_several_outputs_along_another_dimension(data):
    both = data.assign(lift=-data.smoke)[["time_since_ignition", "smoke", "lift"]]
    both = both.drop_vars(list(both.coords)).rename(snapshot="member")
    names = ["smoke", "lift"]
    result = pc.cross_validate(
        both, lambda train: lambda test: test[names] * 0.5, outputs=names, folds=3
    )
    assert set(result.predicted.data_vars) == set(names)
    np.testing.assert_allclose(result.folds.relative_error_lift, 0.5, rtol=1e-6)
    np.testing.assert_allclose(result.scores.relative_error_smoke, 0.5, rtol=1e-6)
    assert result.scores.fold.dims == ("member",)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"by": "place"}, "by='place' is not a coordinate of the data; name one, or 'snap"),
        ({"outputs": "dust"}, "outputs='dust' is not in the data; found time_since_ignition"),
        ({"folds": 1}, "folds=1 leaves nothing out"),
        ({"folds": 9}, r"8 ignition_id\(s\) in training cannot make 9 folds"),
        ({"fit": lambda train: 3.0}, "returned a float; it must return an object with predict"),
        ({"fit": lambda train: lambda test: np.zeros(3)}, r"'smoke' has shape \(3,\), not \("),
    ],
)
def test_wrong_choices_are_named(data, choices, message):
    with pytest.raises(pc.PlumecastError, match=message):
        pc.cross_validate(data, **{"fit": linear, "folds": 4} | choices)
