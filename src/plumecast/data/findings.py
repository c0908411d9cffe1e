"""Checks of a store: of its values, fire by fire, and of what training needs of it as a whole.

Every finding is listed; none stops the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import RESTORE, DamagedError, Finding, read_findings
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT, TABLE
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.data.checksums import changed_attributes
from plumecast.data.covariates import check_covariate, read_wind
from plumecast.data.lazy_store import check_unchanged, is_loaded
from plumecast.data.schema import (
    FIELD_NAMES,
    check_axes,
    check_ground,
    check_values,
    further_outputs,
)
from plumecast.data.split import find_duplicates
from plumecast.data.training import check_group_count
from plumecast.weather.snapshots import weather_findings

QUALITY = "quality"
"""Findings of the checks: an attribute of the data set that a reader returns, a coordinate in a
store."""

LARGEST_SMOKE = 1e8
"""Largest credible smoke, µg m⁻³: a tenth of the density of air, as the mean of a column."""

_UNLIKE_OTHERS = 1e6  # factor between a fire's peak smoke and the median of all fires
_HOURS_TOLERANCE = 0.01  # h, rounding of float32 ages
_DECREASE = 1e-3  # of the total smoke between checkpoints, relative
_GROUP = "ignition_id"
_BLOCK = 256  # snapshots read at once
_COUNTED = ("damaged", "bad", "negative", "cells", "lowest", "highest", "total")

Summary = dict[str, Array]
"""Numbers of each snapshot, by name: (M,) each."""


def check_store(snapshots: xr.Dataset) -> dict[str, tuple[Finding, ...]]:
    """The findings of every fire: those recorded when it was read and those of its values now.

    Findings that concern no single fire have the name "". Fires without findings have ().
    """
    found = check_fires(snapshots)
    if QUALITY in snapshots.variables:
        texts = zip(snapshots.fire_id.values, snapshots[QUALITY].values, strict=True)
        for fire, text in {str(fire): str(text) for fire, text in texts}.items():
            now = {item.check for item in found[fire]}
            recorded = (item for item in read_findings(text) if item.check not in now)
            found[fire] = (*recorded, *found[fire])
    damaged = [
        fire
        for fire, items in found.items()
        if any(item.check.startswith("damaged") for item in items)
    ]
    rows = np.flatnonzero(~np.isin(snapshots.fire_id.values.astype(str), damaged))
    groups = find_duplicates(snapshots.isel({SNAPSHOT: rows}))
    for group in groups:
        for fire in group:
            if all(item.check != "duplicate run" for item in found[fire]):
                found[fire] += (duplicate_run(set(group) - {fire}),)
    changed = (f"those of '{name}'" if name else "those of the store"
               for name in changed_attributes(snapshots))  # fmt: skip
    attributes = (
        Finding("attributes", f"{what} were changed after they were written; check them")
        for what in changed
    )
    found[""] = (*attributes, *refusals(snapshots, groups))
    return found


def check_fires(snapshots: xr.Dataset) -> dict[str, tuple[Finding, ...]]:
    """The findings in the fields and the weather of every fire, by `fire_id`."""
    names = [name for name in (*FIELD_NAMES, *further_outputs(snapshots)) if name in snapshots]
    numbers = {name: _summary(snapshots, name) for name in names}
    fires = snapshots.fire_id.values.astype(str)
    peaks = {}
    found: dict[str, tuple[Finding, ...]] = {}
    for fire in dict.fromkeys(fires.tolist()):
        rows = np.flatnonzero(fires == fire)
        rows = rows[np.argsort(snapshots.hours.values[rows])] if "hours" in snapshots else rows
        items: list[Finding] = []
        for name, summary in numbers.items():
            of_fire = {key: values[rows] for key, values in summary.items()}
            items += _field_findings(snapshots, rows, name, of_fire)
            if name == SMOKE and not of_fire["damaged"].any():
                peaks[fire] = float(of_fire["highest"].max())
        found[fire] = tuple(items)
    smoky = [peak for peak in peaks.values() if peak > 0.0]
    median = float(np.median(smoky)) if len(smoky) >= 3 else np.nan
    for fire, peak in peaks.items():
        check = "too much smoke" if peak > median else "too little smoke"
        unlike = peak > 0.0 and max(peak / median, median / peak) > _UNLIKE_OTHERS
        if unlike and all(item.check != check for item in found[fire]):
            message = f"peak {peak:.3g} µg m⁻³, the median of the fires is {median:.3g}"
            found[fire] += (Finding(check, f"{message}; is the unit right?"),)
    for fire, finding in weather_findings(snapshots):
        found[fire] += (finding,)
    return found


def _field_findings(
    snapshots: xr.Dataset, rows: Array, name: str, of_fire: Summary
) -> Iterator[Finding]:
    """The findings in one field of a fire, whose snapshots are `rows`."""
    damaged, bad, negative = (int(of_fire[key].sum()) for key in _COUNTED[:3])
    cells = int(of_fire["cells"].sum())
    if damaged:
        told = f"{damaged} of {rows.size} snapshots cannot be read or are not what was written"
        yield Finding(f"damaged {name}", f"{told}; {RESTORE}")
        return
    if bad:
        yield Finding(f"NaN in {name}", f"{bad} of {cells} values are not finite")
    if negative:
        some = "all" if negative == cells else f"{negative} of {cells}"
        lowest = float(of_fire["lowest"].min())
        message = f"{some} values are negative, the lowest {lowest:.4g}"
        yield Finding(f"negative {name}", message)
    hours = snapshots.hours.values[rows] if "hours" in snapshots.variables else None
    if name == FIRE:
        yield from _fire_findings(snapshots, rows, hours, of_fire["highest"])
    else:
        which = "" if name == SMOKE else f" ({name})"
        yield from _smoke_findings(hours, of_fire, which)


def _fire_findings(
    snapshots: xr.Dataset, rows: Array, hours: Array | None, oldest: Array
) -> Iterator[Finding]:
    if "burned_area" in snapshots.variables:
        area = snapshots.burned_area.values[rows]
        empty = (area > 0.0) & (oldest <= 0.0) & (area >= 0.5 * area.max())
        if empty.any():
            message = f"{area[empty].max():,.0f} acres burn, but {FIRE} is 0 everywhere"
            yield Finding("no fire", message)
    if hours is not None and (oldest - hours).max() > _HOURS_TOLERANCE:
        row = int((oldest - hours).argmax())
        message = (
            f"a cell has burned for {oldest[row]:.3g} h in the snapshot at {hours[row]:.3g} h; "
            f"hours are off by {oldest[row] - hours[row]:.2g} h or more"
        )
        yield Finding("hours", message)


def _smoke_findings(hours: Array | None, of_fire: Summary, which: str) -> Iterator[Finding]:
    peak, total = float(of_fire["highest"].max()), of_fire["total"]
    if peak <= 0.0:
        yield Finding(f"no smoke{which}", f"no value above 0 in {total.size} snapshots")
        return
    if peak > LARGEST_SMOKE:
        message = f"peak {peak:.3g} µg m⁻³, above {LARGEST_SMOKE:.0e}; is the unit right?"
        yield Finding(f"too much smoke{which}", message)
    falls = np.diff(total) < -_DECREASE * np.abs(total[:-1])
    if falls.any() and hours is not None:
        row = int(falls.argmax()) + 1
        message = (
            f"the total falls from {total[row - 1]:.4g} to {total[row]:.4g} at "
            f"{hours[row]:.3g} h; cumulative smoke never decreases"
        )
        yield Finding(f"decreasing smoke{which}", message)


def duplicate_run(others: set[str]) -> Finding:
    """A fire that is stored under other names too."""
    names = ", ".join(sorted(others))
    return Finding("duplicate run", f"same hours, burned area and fire as {names}; keep one")


def _summary(snapshots: xr.Dataset, name: str) -> Summary:
    """Counts of invalid values, extremes and totals of a field, in one pass over its blocks.

    Snapshots that cannot be read have damaged = 1, and 0 for everything else.
    """
    field, parts = snapshots[name], []
    for rows in row_blocks(snapshots.sizes[SNAPSHOT], _BLOCK):
        if not is_loaded(field.variable):
            check_unchanged(snapshots)
        try:
            parts.append(_numbers(field.isel({SNAPSHOT: rows})))
            continue
        except DamagedError:
            pass  # read one by one
        for row in range(rows.start, rows.stop):
            try:
                parts.append(_numbers(field.isel({SNAPSHOT: [row]})))
            except DamagedError:
                parts.append({key: np.full(1, float(key == "damaged")) for key in _COUNTED})
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _numbers(field: xr.DataArray) -> Summary:
    values = field.transpose(SNAPSHOT, ...).values
    values = values.reshape(values.shape[0], math.prod(values.shape[1:]))
    finite = np.isfinite(values)
    known = np.where(finite, values, 0.0).astype(np.float64)
    numbers = (
        np.zeros(values.shape[0]),
        (~finite).sum(axis=1),
        (known < 0.0).sum(axis=1),
        np.full(values.shape[0], values.shape[1]),
        known.min(axis=1),
        known.max(axis=1),
        known.sum(axis=1),
    )
    return dict(zip(_COUNTED, numbers, strict=True))


def refusals(snapshots: xr.Dataset, duplicates: Sequence[Sequence[str]] = ()) -> Iterator[Finding]:
    """What `plumecast train` refuses beside the values of the fields.

    `duplicates` are the fires that count as one. A store without smoke is not for training.
    """
    checks: dict[str, Callable[[], object]] = {
        "labels": lambda: check_values(snapshots, ()),
        "covariates": lambda: check_further_covariates(snapshots),
        "grid": lambda: check_axes(snapshots),
        "wind": lambda: read_wind(snapshots),
        "ground": lambda: check_ground(snapshots),
    }
    if SMOKE in snapshots:
        checks["groups"] = lambda: check_group_count(_groups(snapshots, duplicates), _GROUP)
    said: set[str] = set()
    for name, check in checks.items():
        try:
            check()
        except PlumecastError as error:
            if str(error) not in said:  # what one check finds, another may need
                yield Finding(name, str(error))
            said.add(str(error))


def check_further_covariates(snapshots: xr.Dataset) -> None:
    """Raise if a scalar of the snapshots that is none of the contract has a fill value."""
    for name in map(str, snapshots.variables):
        if name not in TABLE and snapshots[name].dims == (SNAPSHOT,):
            check_covariate(snapshots, name)


def _groups(snapshots: xr.Dataset, duplicates: Sequence[Sequence[str]]) -> int:
    """The number of ignitions, with those of duplicate runs as one."""
    fires, labels = (snapshots[name].values.astype(str) for name in ("fire_id", _GROUP))
    joined = {label: {label} for label in np.unique(labels).tolist()}
    for group in duplicates:
        linked = np.unique(labels[np.isin(fires, list(group))]).tolist()
        together = set().union(*(joined[label] for label in linked))
        joined |= dict.fromkeys(together, together)
    return len({min(group) for group in joined.values()})
