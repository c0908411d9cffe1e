"""Covariates, the scalar inputs of an operator: reading, normalisation, checks of their range."""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import (
    COVARIATES,
    FILL_VALUES,
    GROUND,
    HEAVIEST_FUEL,
    LARGEST_VALUE,
    LIKELY,
    SNAPSHOT,
    TABLE,
    WIND,
)
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.weather.profile import components
from plumecast.weather.snapshots import STATE_WEATHER, has_weather

SCENARIO = "drought"
"""Label of the weather scenario: operators may have weights of their own for each label."""

ALIKE = (SCENARIO, "hours")
"""Snapshots that agree in these have the same weather, unless every fire has its own. Hours agree
if they round to the same number: those of WRF runs count from ignitions at different seconds."""

OWN_WEATHER = 0.1
"""Every fire has its own wind if the wind varies by more than this fraction of its mean speed among
snapshots that agree in drought and hours. The same holds for another covariate and this fraction of
its standard deviation in training."""


class ExtrapolationWarning(UserWarning):
    """A prediction lies beyond what the training fires cover."""


@dataclass(frozen=True, slots=True)
class Covariate:
    """One covariate as found in training: mean and scale, range, or the known texts.

    A direction in degrees becomes its sine and cosine; a text is encoded one-hot.
    """

    name: str
    kind: str  # "number", "direction" or "text"
    mean: float = 0.0
    scale: float = 1.0
    low: float = 0.0
    high: float = 0.0
    values: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """The number P of its columns."""
        return {"text": len(self.values), "direction": 2}.get(self.kind, 1)

    def columns(self, values: Array) -> Array:
        """(M,) values → (M, P) normalised columns."""
        if self.kind == "text":
            return (values.astype(str)[:, None] == np.array(self.values)).astype(np.float32)
        if self.kind == "direction":
            angle = np.deg2rad(values.astype(np.float64))
            return np.stack([np.sin(angle), np.cos(angle)], axis=1).astype(np.float32)
        return ((values.astype(np.float64) - self.mean) / self.scale)[:, None].astype(np.float32)

    def check(self, values: Array) -> None:
        """Raise on a text that training did not have; see `surrogate.guards` for numbers."""
        unknown = sorted(set(values.astype(str).tolist()) - set(self.values))
        if self.kind == "text" and unknown:
            raise PlumecastError(
                f"{self.name} '{unknown[0]}' was not in training; known are "
                f"{', '.join(self.values)}"
            )


def fit_covariates(train: xr.Dataset, names: Sequence[str]) -> tuple[Covariate, ...]:
    """Describe the named covariates of training snapshots; raises if one is constant."""
    found = []
    for name in names:
        values = read_scalar(train, name)
        if values.dtype.kind in "US":
            known = tuple(np.unique(values.astype(str)).tolist())
            constant = len(known) == 1
            covariate = Covariate(name, "text", values=known)
        else:
            low, high = float(values.min()), float(values.max())
            constant = not high - low > 1e-9 * max(abs(low), abs(high))
            direction = name in TABLE and TABLE[name].units == "degree"
            covariate = Covariate(
                name,
                "direction" if direction else "number",
                float(values.mean()),
                float(values.std()) or 1.0,
                low,
                high,
            )
        if constant:
            raise PlumecastError(
                f"covariate '{name}' is {values.ravel()[0]} in all training snapshots: nothing can "
                "be learned from it; leave it out, or train on snapshots where it differs"
            )
        found.append(covariate)
    return tuple(found)


def read_covariates(
    data: xr.Dataset, covariates: Sequence[Covariate], sizes: Mapping[Hashable, int] | None = None
) -> Array | None:
    """(M, P) normalised columns of all covariates; None if there are none."""
    if not covariates:
        return None
    columns = []
    for covariate in covariates:
        values = read_scalar(data, covariate.name, sizes)
        if values.size:
            covariate.check(values)
        columns.append(covariate.columns(values))
    return np.concatenate(columns, axis=1)


@contextlib.contextmanager
def extrapolating() -> Iterator[None]:
    """Suppress ExtrapolationWarning, for studies that measure extrapolation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        yield


def own_winds(
    snapshots: xr.Dataset, groups: Array, wind: Array | None, alike: Sequence[str] = ALIKE
) -> bool:
    """Whether the (M, 2) wind differs between fires whose snapshots agree in the variables `alike`.

    False if the wind is unknown.
    """
    if wind is None:
        return False
    speed = float(np.mean(np.hypot(*wind.T)))
    return _spread(snapshots, groups, wind, alike) > OWN_WEATHER * speed


def own_covariates(snapshots: xr.Dataset, groups: Array) -> tuple[str, ...]:
    """The known covariates that differ between fires at the same drought and hours.

    These covariates tell more than the drought label does.
    """
    found = []
    for entry in COVARIATES:
        try:
            (covariate,) = fit_covariates(snapshots, (entry.name,))
        except PlumecastError:  # missing, or constant
            continue
        columns = covariate.columns(read_scalar(snapshots, entry.name))
        if _spread(snapshots, groups, columns, ALIKE) > OWN_WEATHER:
            found.append(entry.name)
    return tuple(found)


def _spread(snapshots: xr.Dataset, groups: Array, columns: Array, alike: Sequence[str]) -> float:
    """Root mean square deviation of (M, P) columns among snapshots that agree in `alike`.

    The median over all combinations of values that occur in several groups; 0 if there are none.
    """
    count = columns.shape[0]
    labels = [np.zeros(count, dtype=str)]
    for values in (snapshots[name].values for name in alike if name in snapshots.variables):
        rounded = np.round(values) if values.dtype.kind == "f" else values
        labels.append(np.broadcast_to(rounded.astype(str), (count,)))
    kinds = np.unique(np.stack(labels), axis=1, return_inverse=True)[1]
    spread = []
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        if np.unique(groups[rows]).size > 1:
            spread.append(float(np.sqrt(np.var(columns[rows], axis=0).sum())))
    return float(np.median(spread)) if spread else 0.0


def weather_known(data: xr.Dataset) -> bool:
    """Whether fires can be carried: hours are known, and hourly weather or at least a mean wind."""
    return "hours" in data.variables and (
        has_weather(data) or all(name in data.variables for name in WIND)
    )


def read_wind(snapshots: xr.Dataset) -> Array | None:
    """(M, 2) wind components towards east and north; None if the snapshots have no wind."""
    if any(name not in snapshots.variables for name in WIND):
        return None
    return wind_vector(*(read_scalar(snapshots, name) for name in WIND))


def wind_vector(speed: Array, from_direction: Array) -> Array:
    """(M, 2) components towards east and north, from speed and the direction it comes from (°)."""
    slowest = float(np.min(speed, initial=0.0))
    if slowest < 0.0:
        raise PlumecastError(
            f"wind_speed has negative values, such as {slowest:g}; give the speed, and in "
            "wind_from_direction where the wind comes from"
        )
    winds = (np.asarray(part, dtype=np.float64) for part in (speed, from_direction))
    return np.stack(components(*winds), axis=1)


def read_scalar(data: xr.Dataset, name: str, sizes: Mapping[Hashable, int] | None = None) -> Array:
    """(M,) finite values of a scalar variable, one per row.

    Rows are all combinations of the dimensions in `sizes`, in C order; by default the snapshots. A
    scalar is repeated along the dimensions that it lacks.
    """
    if name not in data.variables:
        step = "pass a Dataset that has it as a coordinate of every snapshot"
        other = f", or {STATE_WEATHER}" if name in WIND else ""
        raise PlumecastError(f"covariate '{name}' is missing; {step}{other}")
    rows = {SNAPSHOT: data.sizes[SNAPSHOT]} if sizes is None else dict(sizes)
    variable = data[name].variable
    beyond = [str(dim) for dim in variable.dims if dim not in rows]
    if beyond:
        known = ", ".join(map(str, rows)) or "none"
        raise PlumecastError(
            f"covariate '{name}' has dimension '{beyond[0]}', which the input lacks (it has "
            f"{known}); drop that dimension"
        )
    ones = xr.Variable(list(rows), np.empty(list(rows.values())))
    (broadcast, _) = xr.broadcast(xr.DataArray(variable), xr.DataArray(ones))
    values = broadcast.transpose(*rows).values.ravel()
    if values.dtype.kind == "O":
        text = any(isinstance(value, str) for value in values)
        values = values.astype(str if text else np.float64)
    if values.dtype.kind not in "US" and not np.isfinite(values.astype(np.float64)).all():
        raise PlumecastError(
            f"covariate '{name}' has values that are NaN or infinite; fill them in"
        )
    check_covariate(data, name)
    return values


def check_covariate(data: xr.Dataset, name: str) -> None:
    """Raise if a scalar of the snapshots has a fill value, or one that cannot be true.

    NaN, for a value that is not known, is refused where the scalar is used.
    """
    values = data[name].values
    if values.dtype.kind not in "fiu":
        return
    low, high = LIKELY.get(name, (-LARGEST_VALUE, LARGEST_VALUE))
    wrong = np.isin(values, FILL_VALUES) | (values < low) | (values > high) | np.isinf(values)
    if not wrong.any():
        return
    row = int(np.argmax(wrong.ravel()))
    who = ""
    if data[name].dims == (SNAPSHOT,) and "fire_id" in data.variables:
        who = f" of fire '{data['fire_id'].values[row]}'"
    expected = f" (expected {low:g} to {high:g} {TABLE[name].units})" if name in LIKELY else ""
    raise PlumecastError(
        f"'{name}'{who} is {values.ravel()[row]:.6g} in {int(wrong.sum())} of {wrong.size} "
        f"snapshots, a fill value or impossible{expected}; correct it or drop that fire"
    )


# -- fuels

FUEL_LOAD = GROUND[0].name

_BLOCK = 256  # maps read at once


def read_fuel_maps(
    data: xr.Dataset,
    grid: Sequence[Hashable],
    sizes: Mapping[Hashable, int] | None = None,
) -> tuple[Array, Array] | None:
    """(U, *grid) different maps of fuel load, float32, and (M,) the number of the map of each row.

    Rows are all combinations of the dimensions in `sizes`, in C order; by default the snapshots. A
    map is that of all rows along the dimensions that it lacks. None where there is no fuel load on
    the dimensions `grid`. Memory is needed for the different maps alone.
    """
    if FUEL_LOAD not in data.variables:
        return None
    rows = {SNAPSHOT: data.sizes[SNAPSHOT]} if sizes is None else dict(sizes)
    variable = data[FUEL_LOAD].variable
    lead = [dim for dim in rows if dim in variable.dims]
    if set(variable.dims) != {*lead, *grid}:
        return None
    variable = variable.transpose(*lead, *grid)
    blocks = xr.DataArray(variable)
    blocks = blocks if lead else blocks.expand_dims(SNAPSHOT)
    fires = data["fire_id"] if lead == [SNAPSHOT] and "fire_id" in data.variables else None
    shape = tuple(variable.sizes[dim] for dim in grid)
    maps: list[Array] = []
    known: dict[bytes, int] = {}
    numbers: list[int] = []
    for part in row_blocks(blocks.shape[0], _BLOCK):
        values = np.ascontiguousarray(blocks[part].values, dtype=np.float32)
        for load in values.reshape(-1, *shape):
            key = hashlib.blake2b(load).digest()
            wrong = ~((load >= 0.0) & (load <= HEAVIEST_FUEL))
            if key not in known and wrong.any():
                row = len(numbers)
                of = "" if lead != [SNAPSHOT] else f" of snapshot {row}"
                if fires is not None and fires.dims == (SNAPSHOT,):
                    of = f" of fire '{fires.values[row]}'"
                raise PlumecastError(
                    f"'{FUEL_LOAD}'{of} is {load[wrong][0]:g} in {int(wrong.sum())} of "
                    f"{wrong.size} cells; give 0 where nothing burns"
                )
            if key not in known:
                known[key] = len(maps)
                maps.append(load.copy())
            numbers.append(known[key])
    lengths = [size if dim in lead else 1 for dim, size in rows.items()]
    wide = np.broadcast_to(np.array(numbers, np.intp).reshape(lengths), list(rows.values()))
    return (np.stack(maps) if maps else np.empty((0, *shape), np.float32)), wide.reshape(-1)
