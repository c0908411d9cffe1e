"""Labelled error bars of a prediction, and what is promised of them, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.scores.predicted_dose import predicted_dose, with_dose, without_dose
from plumecast.scores.quantities import checkpoint_hours, dose_attributes
from plumecast.surrogate.error_bars.calibration import (
    FEWEST,
    Calibration,
    groups_in_words,
)

if TYPE_CHECKING:
    from plumecast.surrogate.thresholds import OutputRecord

LOWER, UPPER, CERTAIN, POSSIBLE = "lower", "upper", "certain_smoke", "possible_smoke"
INTERVAL_FIELDS = (LOWER, UPPER, CERTAIN, POSSIBLE)

NO_ERROR_BARS = "no_error_bars"
"""Entry of a training record: why the surrogate has no error bars."""


def require_calibration(record: OutputRecord) -> Calibration:
    """The calibration of an output; raises with the reason and the next step if it has none."""
    if record.error_bars is not None:
        return record.error_bars
    known = record.no_error_bars or record.problem
    reason = f" ({known})" if known else ""
    raise PlumecastError(
        f"this surrogate has no error bars{reason}; train it on all fires of at least {FEWEST} "
        "ignitions, with pc.train_surrogate(data, split=None) or `plumecast train STORE --all`, "
        "without --folds 0"
    )


def output_intervals(
    calibrations: Sequence[Calibration | None],
    smoke: Sequence[xr.DataArray],
    scores: Sequence[xr.DataArray],
    coverage: float,
) -> xr.Dataset:
    """`interval_fields` of every output that has a calibration.

    The fields of outputs after the first are named after their output (`interval_name`).
    """
    found: dict[str, xr.DataArray] = {}
    for number, (table, field, score) in enumerate(zip(calibrations, smoke, scores, strict=True)):
        if table is not None:
            output = str(field.name) if number else None
            found |= interval_fields(table, field, score, coverage, output)
    return xr.Dataset(found)


def interval_name(field: str, output: str | None) -> str:
    """The variable with a field of the error bars; `output` is None for the first output."""
    return field if output is None else f"{field}_{output}"


def interval_fields(
    calibration: Calibration,
    smoke: xr.DataArray,
    score: xr.DataArray,
    coverage: float,
    output: str | None = None,
) -> dict[str, xr.DataArray]:
    """Lower and upper smoke, and where smoke is certain and possible, by `interval_name`.

    The ends of a dose are those of a sum as large as dose / Δ.
    """
    hours = _leading_hours(smoke)
    low, high = calibration.interval(smoke.values.astype(np.float64), coverage, hours)
    dose, smoke = predicted_dose(smoke), without_dose(smoke)
    doses = (low, high)
    if dose is not None:
        spacing = checkpoint_hours(smoke)
        doses = calibration.interval(dose.values.astype(np.float64) / spacing, coverage, hours)
    known = interval_attributes(calibration, coverage)
    kept = {name: smoke.attrs[name] for name in ("units", "grid_mapping") if name in smoke.attrs}
    of_dose = dose_attributes(smoke.attrs)
    what = str(smoke.attrs.get("long_name", smoke.name))
    fields: list[xr.DataArray] = []
    ends = ((LOWER, low, doses[0], np.minimum), (UPPER, high, doses[1], np.maximum))
    for name, values, own_dose, bound in ends:
        rounded = bound(values.astype(smoke.dtype), smoke.values)  # rounding may cross the smoke
        attrs = kept | of_dose | {"long_name": f"{name} end of the error bar of {what}"} | known
        made = smoke.copy(data=rounded).drop_attrs(deep=False).assign_attrs(attrs)
        fields.append(made.rename(interval_name(name, output)))
        if dose is not None:
            rounded = bound((spacing * own_dose).astype(smoke.dtype), dose.values)
            fields[-1] = with_dose(fields[-1], rounded)
    thresholds = calibration.footprint_thresholds(coverage)
    promises = calibration.promised_footprint(coverage)
    for name, threshold, promise in zip((CERTAIN, POSSIBLE), thresholds, promises, strict=True):
        meaning = f"{_meaning(name, coverage)}, {_how_often(coverage)}"
        own = known | {"promised_coverage": round(promise, 4), "comment": meaning}
        present = (score.values > threshold).astype(np.int8)
        field = smoke.copy(data=present).drop_attrs(deep=False)
        made = field.assign_attrs(_set_attributes(name, threshold, kept, own))
        fields.append(made.rename(interval_name(name, output)))
    return {str(field.name): field for field in fields}


def _leading_hours(smoke: xr.DataArray) -> np.ndarray | None:
    """(M,) hours of the first dimension of smoke; None if they are unknown."""
    if "hours" not in smoke.coords or smoke["hours"].dims != smoke.dims[:1]:
        return None
    hours = smoke["hours"].values
    return hours.astype(np.float64) if hours.dtype.kind in "fiu" else None


def interval_attributes(calibration: Calibration, coverage: float) -> dict[str, Any]:
    """Coverage, the promised coverage, and the number of groups it rests on."""
    return {
        "coverage": float(coverage),
        "promised_coverage": round(calibration.promised(coverage), 4),
        "calibration_groups": calibration.smoky_groups,
        "calibrated_by": calibration.by,
    }


def _set_attributes(
    name: str, threshold: float, kept: Mapping[str, Any], known: Mapping[str, Any]
) -> dict[str, Any]:
    """Attributes of a set of cells; an infinite threshold, of an empty set, is left out."""
    attrs = {key: value for key, value in kept.items() if key == "grid_mapping"}
    attrs |= {
        "long_name": f"smoke is {name.removesuffix('_smoke')}",
        "units": "1",
        "flag_values": np.array([0, 1], dtype=np.int8),
        "flag_meanings": "no yes",
    }
    if np.isfinite(threshold):
        attrs["decision_threshold"] = threshold
    return attrs | dict(known)


def promise_text(calibration: Calibration, coverage: float) -> str:
    """What error bars of this coverage promise, in words."""
    count = calibration.smoky_groups
    promised = np.floor(100.0 * calibration.promised(coverage) + 1e-9) / 100.0
    groups = groups_in_words(calibration.by)
    text = (
        f"error bars calibrated on {count} {groups}, to contain {_percent(coverage)} of the smoky "
        f"cells of new fires like these in the mean; {_percent(promised)} can be promised"
    )
    if calibration.most_promised() < coverage:
        return f"{text}; no error bars from {count} {groups} can promise {_percent(coverage)}"
    return text


def sets_text(calibration: Calibration, coverage: float) -> str:
    """What certain and possible smoke mean, in one line."""
    meanings = "; ".join(f"{name}: {_meaning(name, coverage)}" for name in (CERTAIN, POSSIBLE))
    promise = np.floor(100.0 * min(calibration.promised_footprint(coverage)) + 1e-9) / 100.0
    return f"{meanings}; each {_how_often(coverage)} ({_percent(promise)} can be promised)"


def _meaning(name: str, coverage: float) -> str:
    most = f"at most {_percent(1.0 - coverage)}"
    return {
        CERTAIN: f"{most} of its cells have no smoke",
        POSSIBLE: f"{most} of the smoky cells lie outside",
    }[name]


def _how_often(coverage: float) -> str:
    return f"in {_percent(coverage)} of new fires like those of training"


def _percent(share: float) -> str:
    return f"{100.0 * share:.4g} %"
