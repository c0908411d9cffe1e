"""Labelled error bars of a prediction, and what is promised of them, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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


def _in_words(name: str, coverage: float) -> tuple[str, str]:
    """What a set of cells means, and how often it holds."""
    wrong = f"at most {100.0 * (1.0 - coverage):.4g} %"
    meaning = {
        CERTAIN: f"{wrong} of its cells have no smoke",
        POSSIBLE: f"{wrong} of the smoky cells lie outside",
    }[name]
    return meaning, f"in {100.0 * coverage:.4g} % of new fires like those of training"


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
    hours = None
    if "hours" in smoke.coords and smoke["hours"].dims == smoke.dims[:1]:
        labels = smoke["hours"].values
        hours = labels.astype(np.float64) if labels.dtype.kind in "fiu" else None
    ends = calibration.interval(smoke.values.astype(np.float64), coverage, hours)
    dose, smoke = predicted_dose(smoke), without_dose(smoke)
    doses = ends
    if dose is not None:
        spacing = checkpoint_hours(smoke)
        doses = calibration.interval(dose.values.astype(np.float64) / spacing, coverage, hours)
    promise = {
        "coverage": float(coverage),
        "promised_coverage": round(calibration.promised(coverage), 4),
        "calibration_groups": calibration.smoky_groups,
        "calibrated_by": calibration.by,
    }
    kept = {name: smoke.attrs[name] for name in ("units", "grid_mapping") if name in smoke.attrs}
    what = str(smoke.attrs.get("long_name", smoke.name))
    fields: list[xr.DataArray] = []
    bounds = (np.minimum, np.maximum)
    for name, values, of_dose, bound in zip((LOWER, UPPER), ends, doses, bounds, strict=True):
        rounded = bound(values.astype(smoke.dtype), smoke.values)  # rounding may cross the smoke
        attrs = kept | dose_attributes(smoke.attrs)
        attrs |= {"long_name": f"{name} end of the error bar of {what}"} | promise
        made = smoke.copy(data=rounded).drop_attrs(deep=False).assign_attrs(attrs)
        fields.append(made.rename(interval_name(name, output)))
        if dose is not None:
            rounded = bound((spacing * of_dose).astype(smoke.dtype), dose.values)
            fields[-1] = with_dose(fields[-1], rounded)
    thresholds = calibration.footprint_thresholds(coverage)
    promises = calibration.promised_footprint(coverage)
    for name, threshold, promised in zip((CERTAIN, POSSIBLE), thresholds, promises, strict=True):
        attrs = {key: value for key, value in kept.items() if key == "grid_mapping"}
        attrs |= {
            "long_name": f"smoke is {name.removesuffix('_smoke')}",
            "units": "1",
            "flag_values": np.array([0, 1], dtype=np.int8),
            "flag_meanings": "no yes",
        }
        if np.isfinite(threshold):  # that of an empty set is not
            attrs["decision_threshold"] = threshold
        attrs |= promise | {"promised_coverage": round(promised, 4)}
        attrs["comment"] = ", ".join(_in_words(name, coverage))
        field = smoke.copy(data=(score.values > threshold).astype(np.int8))
        made = field.drop_attrs(deep=False).assign_attrs(attrs)
        fields.append(made.rename(interval_name(name, output)))
    return {str(field.name): field for field in fields}


def promise_text(calibration: Calibration, coverage: float) -> str:
    """What error bars of this coverage promise, in words."""
    wanted = f"{100.0 * coverage:.4g} %"
    groups = f"{calibration.smoky_groups} {groups_in_words(calibration.by)}"
    text = (
        f"error bars calibrated on {groups}, to contain {wanted} of the smoky cells of new fires "
        f"like these in the mean; {_promised(calibration.promised(coverage))}"
    )
    if calibration.most_promised() < coverage:
        return f"{text}; no error bars from {groups} can promise {wanted}"
    return text


def _promised(share: float) -> str:
    return f"{np.floor(100.0 * share + 1e-9):.4g} % can be promised"


def sets_text(calibration: Calibration, coverage: float) -> str:
    """What certain and possible smoke mean, in one line."""
    certain, possible = (_in_words(name, coverage) for name in (CERTAIN, POSSIBLE))
    promise = _promised(min(calibration.promised_footprint(coverage)))
    meanings = f"{CERTAIN}: {certain[0]}; {POSSIBLE}: {possible[0]}"
    return f"{meanings}; each {certain[1]} ({promise})"
