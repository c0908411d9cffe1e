"""The dose that a surrogate predicts, kept beside its smoke as a coordinate.

A predicted sum over frames does not tell its dose, so that both are predicted. The dose is that of
the smoke as it was predicted: smoke that is changed afterwards has none, which fingerprints of the
values tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import DOSE_OF
from plumecast.base.errors import PlumecastError

DOSE_ATTRIBUTES = {
    "long_name": "time integral of the column concentration of smoke since ignition",
    "units": "ug m-3 h",
}

_PREFIX = "dose_of_"


def with_dose(smoke: xr.DataArray, dose: np.ndarray) -> xr.DataArray:
    """Predicted smoke with its dose, of the same shape, as a coordinate.

    A second one tells whether the smoke has been changed since, of which the dose knows nothing.
    """
    name = f"{_PREFIX}{smoke.name}"
    known = {
        name: (smoke.dims, dose, DOSE_ATTRIBUTES),
        _mark(name): (smoke.dims, _fingerprints(smoke.values)),
    }
    return smoke.assign_coords(known).assign_attrs({DOSE_OF: name})


def predicted_dose(smoke: xr.DataArray) -> xr.DataArray | None:
    """What `with_dose` put beside smoke; None if there is none.

    Raises if it was lost, or if the smoke is no longer what was predicted.
    """
    name = smoke.attrs.get(DOSE_OF)
    if name is None:
        return None
    first = "take pc.scores.as_quantity(smoke, …) of the prediction first, and then compute with it"
    if name not in smoke.coords:
        raise PlumecastError(
            f"'{smoke.name}' has lost its predicted dose (coordinate '{name}'), as by a mean or a "
            f"sum; {first}"
        )
    mark = smoke.coords.get(_mark(name))
    if mark is not None and (
        set(mark.dims) != set(smoke.dims)
        or (mark.transpose(*smoke.dims).values != _fingerprints(smoke.values)).any()
    ):
        raise PlumecastError(
            f"'{smoke.name}' was changed after it was predicted, so that its predicted dose "
            f"(coordinate '{name}') is not that of these values; {first}"
        )
    dose: xr.DataArray = smoke.coords[name]
    return dose


def _mark(dose: str) -> str:
    """The coordinate with the fingerprints of the smoke that a dose belongs to."""
    return f"{dose}_mark"


def _fingerprints(values: np.ndarray) -> np.ndarray:
    """16 bits of every value, in single precision."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits >> 16) ^ bits).astype(np.uint16).reshape(values.shape)


def without_marks(data: xr.Dataset) -> xr.Dataset:
    """Predictions for files, without the fingerprints."""
    names = [_mark(str(name)) for name in data.coords]
    return data.drop_vars(names, errors="ignore")


def without_dose(smoke: xr.DataArray) -> xr.DataArray:
    """The smoke without what `with_dose` put beside it."""
    kept = {name: value for name, value in smoke.attrs.items() if name != DOSE_OF}
    name = str(smoke.attrs.get(DOSE_OF, DOSE_OF))
    plain = smoke.drop_vars([name, _mark(name)], errors="ignore")
    return plain.drop_attrs(deep=False).assign_attrs(kept)


def dose_coords(data: xr.Dataset) -> dict[str, xr.Variable]:
    """The coordinates that `with_dose` put beside the variables of a Dataset, by name."""
    names = {item.attrs.get(DOSE_OF) for item in data.data_vars.values()} & set(data.coords)
    return {str(name): data[name].variable for name in names}


def with_doses(fields: Sequence[xr.DataArray], doses: Sequence[np.ndarray]) -> list[xr.DataArray]:
    """Fields, the first of which get their doses, whose cells are in the order of theirs."""
    made = [
        with_dose(field, dose.reshape(field.shape).astype(field.dtype, copy=False))
        for field, dose in zip(fields, doses, strict=False)
    ]
    return made + list(fields[len(made) :])


def without_other_doses(field: xr.DataArray) -> xr.DataArray:
    """A field without the doses of smoke that stands beside it."""
    return field.drop_vars([name for name in field.coords if str(name).startswith(_PREFIX)])
