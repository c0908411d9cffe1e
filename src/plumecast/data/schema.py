"""The snapshot contract: the checks that every source must pass, and the paper's filters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import (
    COORDINATES,
    COVARIATES,
    FIELDS,
    GRID,
    GROUND,
    LARGEST_VALUE,
    SMOKE,
    SNAPSHOT,
    TABLE,
    WEATHER_AXES,
    Name,
    is_smoke,
)
from plumecast.compute.blocks import Runner, map_over, row_blocks
from plumecast.data.covariates import check_covariate, read_fuel_maps
from plumecast.data.lazy_store import check_unchanged, is_loaded, lazy_variable
from plumecast.weather.snapshots import check_weather_axes, check_weather_values

PAPER_MIN_ACRES = 1e5
"""The paper keeps snapshots with a burned area of at least 10⁵ acres."""

SMOKE_FLOOR = "smoke_floor"
"""Attribute of the smoke: smaller values were set to exactly zero."""

UNKNOWN = "unknown"
"""Drought label of fires that were read without one."""

FIELD_NAMES = tuple(entry.name for entry in FIELDS)
GROUPS = ("fire_id", "ignition_id")

_BLOCK = 256  # snapshots read at once when values are checked

_SPELLINGS = {
    "h": {"hour", "hours", "hr"},
    "ug m-3": {"ug/m3", "ug/m^3", "ug m^-3"}
    | {f"{micro}{rest}" for micro in "µμ" for rest in ("g m-3", "g/m3", "g m⁻³")},
    "acre": {"acres"},
    "m": {"meter", "metre", "meters", "metres"},
    "m s-1": {"m/s", "m s^-1", "m s**-1", "m s⁻¹"},
    "kg m-2": {"kg/m2", "kg/m^2", "kg m^-2", "kg m**-2", "kg m⁻²"},
}
_OF_OTHERS = {entry.name for entry in (*WEATHER_AXES, *GROUND)}
"""Names that a data set may have used for something else; its dimensions tell."""


def further_outputs(snapshots: xr.Dataset) -> list[str]:
    """The smoke variables of the contract in addition to `smoke`, by name: surface and tracers."""
    known = [str(name) for name, item in snapshots.data_vars.items() if SNAPSHOT in item.dims]
    return sorted(n for n in known if n != SMOKE and is_smoke(n, snapshots[n].attrs))


def validate_snapshots(snapshots: xr.Dataset, fields: Sequence[str] = FIELD_NAMES) -> xr.Dataset:
    """Check names, units, types and values; return the data set with normalised units.

    Raises a PlumecastError that names the variable, the fire and the value.
    """
    further = further_outputs(snapshots) if tuple(fields) == FIELD_NAMES else []
    checked = check_values(check_structure(snapshots, fields), [*fields, *further])
    check_weather_values(checked)
    check_ground(checked)
    return checked


def check_structure(snapshots: xr.Dataset, fields: Sequence[str] = FIELD_NAMES) -> xr.Dataset:
    """Check names, units and types without reading the fields; normalise the units' spelling.

    The contract's own fields need every coordinate of the contract. Other fields need only the
    coordinates that group snapshots by fire.
    """
    known = set(map(str, snapshots.variables))
    whole_contract = tuple(fields) == FIELD_NAMES
    coordinates = [entry for entry in COORDINATES if whole_contract or entry.name in GROUPS]
    for name in [*fields, *(entry.name for entry in coordinates)]:
        if name not in known:
            what = "variable" if name in fields else "coordinate"
            raise PlumecastError(f"{what} '{name}' is missing; found {', '.join(sorted(known))}")
    if SNAPSHOT not in snapshots.dims:
        raise PlumecastError(
            f"no dimension '{SNAPSHOT}'; found {', '.join(map(str, snapshots.dims))}"
        )
    if snapshots.sizes[SNAPSHOT] == 0:
        raise PlumecastError("the data set holds no snapshots")
    for name in dict.fromkeys([*fields, *further_outputs(snapshots)]):
        _check_field(snapshots[name])
    for entry in coordinates:
        array = snapshots[entry.name]
        if array.dims != (SNAPSHOT,):
            raise PlumecastError(
                f"coordinate '{entry.name}' has dimensions {array.dims}, expected ('{SNAPSHOT}',)"
            )
        if array.dtype.kind not in {"float": "fiu", "string": "UOST", "bool": "b"}[entry.kind]:
            raise PlumecastError(
                f"coordinate '{entry.name}' holds {array.dtype}, expected {entry.kind}"
            )
    check_axes(snapshots)
    check_weather_axes(snapshots)
    return _normalise_units(snapshots)


EVEN_TOLERANCE = 1e-3
"""Steps between cells may differ by this fraction of a step, beside the rounding to float32."""


def check_axes(snapshots: xr.Dataset) -> None:
    """Raise unless x and y, where they are given, rise or fall in even steps.

    Convolutions, gradients, the wind frame and areas assume one size for all cells.
    """
    for name in (entry.name for entry in GRID):
        if snapshots.sizes.get(name) == 0:
            raise PlumecastError(f"the grid has no cells: dimension '{name}' has length 0")
        if name not in snapshots.variables or name not in snapshots.dims:
            continue
        axis = snapshots[name]
        if axis.dims != (name,):
            raise PlumecastError(
                f"coordinate '{name}' has dimensions {axis.dims}, expected ('{name}',)"
            )
        if axis.dtype.kind not in "fiu":
            raise PlumecastError(f"'{name}' holds {axis.dtype}, not numbers")
        values = axis.values.astype(np.float64)
        if not np.isfinite(values).all():
            raise PlumecastError(f"'{name}' holds NaN or infinite values; give every cell a place")
        if values.size < 2:
            continue
        steps = np.diff(values)
        step = (values[-1] - values[0]) / steps.size
        slack = EVEN_TOLERANCE * abs(step)
        slack += 2.0 * float(np.finfo(np.float32).eps) * float(np.abs(values).max())
        apart = float(np.abs(steps - step).max())
        if step == 0.0 or (steps * step <= 0.0).any() or apart > slack:
            raise PlumecastError(
                f"'{name}' is not evenly spaced: its steps go from {steps.min():g} to "
                f"{steps.max():g} (tolerance {EVEN_TOLERANCE:g} of a step); sort the cells or "
                "resample the fields"
            )


def same_unit(one: str, other: str) -> bool:
    """Whether two texts spell the same unit; units are never converted."""
    return one == other or any({one, other} <= {unit, *known} for unit, known in _SPELLINGS.items())


def _check_field(array: xr.DataArray) -> None:
    if array.dims[:1] != (SNAPSHOT,):
        raise PlumecastError(
            f"variable '{array.name}' has dimensions {array.dims}; '{SNAPSHOT}' must be first"
        )
    if array.dtype.kind != "f":
        raise PlumecastError(
            f"variable '{array.name}' holds {array.dtype}, not floating-point numbers"
        )
    entry = _entry(array)
    if entry is not None and tuple(array.dims) != entry.dims:
        raise PlumecastError(
            f"variable '{array.name}' has dimensions {tuple(array.dims)}, expected {entry.dims}"
        )


def _entry(array: xr.DataArray) -> Name | None:
    """What the contract says of a variable; of every smoke variable the same as of smoke."""
    name = str(array.name)
    return TABLE.get(name) or (TABLE[SMOKE] if is_smoke(name, array.attrs) else None)


LARGEST_RATIO = 2.0
"""A ratio without units may be at most this; more is probably a percentage."""


def _normalise_units(snapshots: xr.Dataset) -> xr.Dataset:
    changed = snapshots.copy()
    for name, array in ((str(name), snapshots[name]) for name in snapshots.variables):
        entry = _entry(array)
        if entry is None or entry.units is None:
            continue
        if name in _OF_OTHERS:
            of_each = entry in GROUND and array.dims[:1] == (SNAPSHOT,)
            if (array.dims[1:] if of_each else array.dims) != entry.dims:
                continue
        units = array.attrs.get("units")
        if units is None:
            ratio = entry.units == "1" and array.size and float(array.max()) <= LARGEST_RATIO
            if not ratio:
                raise PlumecastError(
                    f"'{name}' has no units; set its attribute 'units' to '{entry.units}'"
                )
        elif not same_unit(str(units), entry.units):
            raise PlumecastError(f"'{name}' is in '{units}'; convert it to '{entry.units}'")
        changed[name].attrs["units"] = entry.units
    return changed


def check_ground(snapshots: xr.Dataset) -> None:
    """Raise if the fuel load, (y, x) or (snapshot, y, x), is NaN or negative where it is known."""
    for entry in GROUND:
        read_fuel_maps(snapshots, entry.dims)


def check_values(
    snapshots: xr.Dataset, fields: Sequence[str] = FIELD_NAMES, runner: Runner | None = None
) -> xr.Dataset:
    """Check every value of the fields and coordinates, in blocks of snapshots.

    With a `runner`, cluster workers check the blocks.
    """
    _check_coordinates(snapshots)
    for name in fields:
        field = snapshots[name]
        if field.dtype.kind not in "fiu":
            raise PlumecastError(f"variable '{name}' holds {field.dtype}, not numbers")
        blocks = row_blocks(snapshots.sizes[SNAPSHOT], _BLOCK)
        wrong = map_over(_first_wrong, (snapshots[[name]], name), blocks, runner)
        found = next((pair for pair in wrong if pair is not None), None)
        if found is not None:
            what, row = found
            same, where = np.array([row]), f"snapshot {row}"
            if "fire_id" in snapshots.variables:
                fires = snapshots.fire_id.values.astype(str)
                same, where = np.flatnonzero(fires == fires[row]), f"fire '{fires[row]}'"
            values, masks = _wrong_values(snapshots[name].isel({SNAPSHOT: same}))
            bad = values[masks[what]]
            raise PlumecastError(
                f"'{name}' holds {bad.size} {what} values in {where} (first: {bad[0]:g}); fix the "
                "source or drop that fire"
            )
    return snapshots


def _first_wrong(shared: tuple[xr.Dataset, str], rows: slice) -> tuple[str, int] | None:
    """The kind of the first invalid value in these rows, and its row; None if all are valid."""
    snapshots, name = shared
    if not is_loaded(snapshots[name].variable):  # read from its store
        check_unchanged(snapshots)
    _, masks = _wrong_values(snapshots[name].isel({SNAPSHOT: rows}))
    for what, wrong in masks.items():
        if wrong.any():
            return what, int(wrong.any(axis=1).argmax()) + rows.start
    return None


def _wrong_values(field: xr.DataArray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(M, N) values of some snapshots, and which of them are wrong, by what is wrong."""
    values = field.transpose(SNAPSHOT, ...).values
    values = values.reshape(values.shape[0], -1)
    masks = {"NaN or infinite": ~np.isfinite(values)}
    if field.name in FIELD_NAMES or is_smoke(str(field.name), field.attrs):
        masks["negative"] = values < 0.0
        masks["impossible"] = values >= LARGEST_VALUE
    return values, masks


def _check_coordinates(snapshots: xr.Dataset) -> None:
    if not set(GROUPS) <= set(snapshots.variables):
        return
    fires, ignitions = (snapshots[name].values.astype(str) for name in GROUPS)
    pairs = set(zip(fires.tolist(), ignitions.tolist(), strict=True))
    seen: dict[str, str] = {}
    for fire, ignition in sorted(pairs):
        if seen.setdefault(fire, ignition) != ignition:
            raise PlumecastError(
                f"fire '{fire}' has two ignitions, '{seen[fire]}' and '{ignition}'"
            )
    for name in ("hours", "burned_area"):
        if name not in snapshots.variables:
            continue
        values = snapshots[name].values
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)))
        if wrong.size:
            first = int(wrong[0])
            raise PlumecastError(
                f"coordinate '{name}' is {values[first]:g} in fire '{fires[first]}'; expected ≥ 0"
            )
    for name in ("hours", "burned_area", *(entry.name for entry in COVARIATES)):
        if name in snapshots.variables:
            check_covariate(snapshots, name)
    if "hours" in snapshots.variables:
        checkpoints = list(zip(fires.tolist(), snapshots.hours.values.tolist(), strict=True))
        if len(set(checkpoints)) < len(checkpoints):
            twice = next(pair for pair in checkpoints if checkpoints.count(pair) > 1)
            raise PlumecastError(f"fire '{twice[0]}' has two snapshots at {twice[1]:g} h")


def apply_smoke_floor(snapshots: xr.Dataset, floor: float, name: str = SMOKE) -> xr.Dataset:
    """Set smoke below `floor` (in the unit of the smoke) to exactly zero and record the floor.

    Numerical diffusion leaves traces of smoke in every cell. Without a floor, the smoke threshold
    would be as small as these traces. A field that is read lazily is set as it is read.
    """
    if not floor >= 0.0:
        raise PlumecastError(f"smoke floor {floor} must be ≥ 0")
    smoke = snapshots[name].variable
    floored = lazy_variable(smoke, _Floored(smoke, floor))
    floored.attrs = {**smoke.attrs, SMOKE_FLOOR: floor}
    return snapshots.assign({name: floored.load() if is_loaded(smoke) else floored})


@dataclass(frozen=True, slots=True)
class _Floored:
    """Reads a variable and sets values below a floor to zero; NaN stays NaN."""

    variable: xr.Variable
    floor: float

    def __call__(self, key: tuple[Any, ...]) -> np.ndarray:
        values = np.asarray(self.variable[key].values)
        return np.where(values < self.floor, 0.0, values).astype(values.dtype, copy=False)


def drop_small_fires(snapshots: xr.Dataset, min_acres: float = PAPER_MIN_ACRES) -> xr.Dataset:
    """Keep snapshots with a burned area of at least `min_acres`, as the paper does."""
    kept = snapshots.isel({SNAPSHOT: np.flatnonzero(snapshots.burned_area.values >= min_acres)})
    if kept.sizes[SNAPSHOT] == 0:
        largest = float(snapshots.burned_area.max())
        raise PlumecastError(
            f"no snapshot has a burned area of {min_acres:g} acres or more (largest {largest:g}); "
            "lower min_acres"
        )
    return kept


def final_snapshots(snapshots: xr.Dataset) -> xr.Dataset:
    """Keep the last checkpoint of every fire."""
    return snapshots.isel({SNAPSHOT: final_rows(snapshots)})


def final_rows(snapshots: xr.Dataset) -> np.ndarray:
    """Rows of the last checkpoint of every fire: as marked by `is_final`, or by its hours."""
    count = snapshots.sizes[SNAPSHOT]
    marked = np.zeros(count, dtype=bool)
    if "is_final" in snapshots.variables:
        marked = snapshots.is_final.values.astype(bool)
    if "fire_id" not in snapshots.variables:
        return np.flatnonzero(marked)
    fires = snapshots.fire_id.values.astype(str)
    others = np.flatnonzero(~np.isin(fires, fires[marked]))
    if not others.size:
        return np.flatnonzero(marked)
    names, counts = np.unique(fires[others], return_counts=True)
    hours = np.zeros(count)
    if "hours" in snapshots.variables:
        hours = snapshots.hours.values.astype(np.float64)
    elif (counts > 1).any():
        raise PlumecastError(
            f"fire '{names[counts > 1][0]}' has {counts.max()} snapshots, but neither 'hours' nor "
            "'is_final' tells which is the last; add one of them"
        )
    order = others[np.lexsort((hours[others], fires[others]))]
    last = np.append(fires[order][1:] != fires[order][:-1], True)
    marked[order[last]] = True
    return np.flatnonzero(marked)


def select_drought(snapshots: xr.Dataset, drought: str | Iterable[str]) -> xr.Dataset:
    """Keep the snapshots of one or several drought scenarios."""
    wanted = [drought] if isinstance(drought, str) else list(drought)
    labels = snapshots.drought.values.astype(str)
    known = sorted(set(labels.tolist()))
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        raise PlumecastError(f"drought '{unknown[0]}' is not in the data; found {', '.join(known)}")
    return snapshots.isel({SNAPSHOT: np.flatnonzero(np.isin(labels, wanted))})


def label_drought(snapshots: xr.Dataset, drought: str) -> xr.Dataset:
    """Give the drought label to snapshots that have none, or the label 'unknown'.

    A label of the snapshots' own is never changed: raises if it is another one.
    """
    if "drought" in snapshots.variables:
        labels = snapshots.drought.values.astype(str)
        other = np.flatnonzero(~np.isin(labels, [drought, UNKNOWN]))
        if other.size:
            fire, own = snapshots.fire_id.values[other[0]], labels[other[0]]
            raise PlumecastError(
                f"fire '{fire}' is stored with drought '{own}', which is not changed by "
                f"'{drought}'; leave that out to use the stored label, or change it "
                "with plumecast ingest wrf --relabel"
            )
    values = np.full(snapshots.sizes[SNAPSHOT], drought)
    return snapshots.assign_coords(drought=(SNAPSHOT, values, TABLE["drought"].attrs))
