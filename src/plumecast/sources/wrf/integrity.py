"""Check that a NetCDF file is complete and WRF's, and that its values are plausible.

Every value that is used is tested, because an unwritten variable may cancel in the column mean: its
fill value (9.97e36) divided by itself gives a number that looks like smoke.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import netCDF4
import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.base.names import GRAVITY, R_DRY
from plumecast.base.units import KINDS, factor, unit_named, units_of
from plumecast.compute.arrays import Array
from plumecast.sources.wrf.frame import LayerMeans, Layout
from plumecast.sources.wrf.options import micrograms

_MAX_NAMES = 40  # variables listed in an error message
_MAX_COMPRESSION = 4000  # bytes of a variable per byte of its file; zlib reaches 1030
_MAX_CELL = 1e6  # m; a larger DX or DY is damaged
_SMALL_BYTES = 64 * 2**20  # a frame of a variable up to this size is read in any case

# netCDF4 raises the first two for errors of its libraries, the others for damaged metadata: names
# that are no text, unknown types, dimensions that are not there, sizes beyond all memory.
_FAULTS = (OSError, RuntimeError, UnicodeError, LookupError, AttributeError, TypeError,
           OverflowError, MemoryError)  # fmt: skip


@contextlib.contextmanager
def damage_reported(path: Path, what: str) -> Iterator[None]:
    """An error of the NetCDF library in the block becomes one line: "PATH: WHAT (…); copy it"."""
    try:
        yield
    except _FAULTS as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise PlumecastError(f"{path}: {what} ({reason}); copy the file again") from error


def require_variables(dataset: netCDF4.Dataset, path: Path, names: Iterable[str]) -> None:
    """Raise if a name is not a variable of the file; the error lists the variables."""
    missing = [name for name in names if name not in dataset.variables]
    if missing:
        present = sorted(dataset.variables)
        more = f" … ({len(present)} in all)" if len(present) > _MAX_NAMES else ""
        names = ", ".join(present[:_MAX_NAMES]) + more
        raise PlumecastError(f"{path}: no variable {', '.join(missing)}; found {names or 'none'}")


def dimensions_of(name: str) -> tuple[str, ...]:
    """Dimensions of a WRF variable: on the fire grid, at the ground, on faces or within layers."""
    ground = ("south_north", "west_east")
    layered = {
        "U": ("bottom_top", "south_north", "west_east_stag"),
        "V": ("bottom_top", "south_north_stag", "west_east"),
        **dict.fromkeys(("PH", "PHB"), ("bottom_top_stag", *ground)),
        **dict.fromkeys(("LFN", "TIGN_G", "FGIP"), ("south_north_subgrid", "west_east_subgrid")),
        **dict.fromkeys(("U10", "V10", "PBLH", "XLAT", "XLONG"), ground),
    }
    return ("Time", *layered.get(name, ("bottom_top", *ground)))


def check_variable(dataset: netCDF4.Dataset, path: Path, name: str) -> tuple[float, ...]:
    """Raise unless a variable has WRF's dimensions and plain floating-point values.

    Returns the values that mean "missing" in the variable, other than NaN, which is refused anyway,
    and 0, which is a plausible value of every variable.
    """
    require_variables(dataset, path, [name])
    with damage_reported(path, f"{name} is damaged"):
        variable = dataset[name]
        attributes = {key: variable.getncattr(key) for key in variable.ncattrs()}
        dimensions, expected = variable.dimensions, dimensions_of(name)
        if dimensions != expected:
            raise PlumecastError(f"{path}: {name} has dimensions {dimensions}, expected {expected}")
        if not isinstance(variable.dtype, np.dtype) or variable.dtype.kind != "f":
            kind = getattr(variable.dtype, "name", "text")
            raise PlumecastError(
                f"{path}: {name} has values of type {kind}, not floating-point numbers; "
                "give the file as WRF wrote it"
            )
        check_size(path, name, variable.shape[1:], variable.dtype.itemsize)
        packed = sorted({"scale_factor", "add_offset"} & set(attributes))
        if packed:
            raise PlumecastError(
                f"{path}: {name} is packed (attribute {packed[0]}); unpack it, as by ncpdq -U"
            )
    return tuple(
        value
        for key in ("_FillValue", "missing_value")
        for value in _numbers(attributes.get(key, 0.0), f"{path}: attribute {key} of {name}")
        if value != 0.0 and np.isfinite(value)
    )


def _numbers(value: Any, what: str) -> list[float]:
    numbers = np.atleast_1d(value)
    if numbers.dtype.kind not in "iuf":
        raise PlumecastError(f"{what} is '{value}', not a number; give the file as WRF wrote it")
    return [float(number) for number in numbers.flat]


def check_size(path: Path, name: str, shape: Iterable[int], itemsize: int) -> None:
    """Raise before memory is allocated for more values than the file can contain."""
    size = itemsize * math.prod(map(int, shape))
    if size == 0:
        raise PlumecastError(f"{path}: {name} is empty, with lengths {tuple(shape)}; copy it again")
    if size > max(_SMALL_BYTES, _MAX_COMPRESSION * path.stat().st_size):
        raise PlumecastError(
            f"{path}: {name} would have {size / 2**30:.3g} GiB, more than the file can contain; "
            "copy it again"
        )


def number_attribute(dataset: Any, path: Path, name: str, default: float | None = None) -> float:
    """An attribute of the file that is one finite number; without a `default` it must be there."""
    with damage_reported(path, f"attribute {name} is damaged"):
        value = getattr(dataset, name, default)
    if value is None:
        raise PlumecastError(f"{path}: no attribute {name}; give the file as WRF wrote it")
    what = f"{path}: attribute {name}"
    numbers = _numbers(value, what)
    if len(numbers) == 1 and np.isfinite(numbers[0]):
        return numbers[0]
    raise PlumecastError(f"{what} is {value}, not one number; give the file as WRF wrote it")


def read_layout(dataset: netCDF4.Dataset, path: Path) -> Layout:
    """Sizes of both grids; no attribute has the refinement, subgrid length / staggered length."""
    size = {name: len(dim) for name, dim in dataset.dimensions.items()}
    ny, nx = size["south_north"], size["west_east"]
    fire = (size["south_north_subgrid"], size["west_east_subgrid"])
    if fire[0] % (ny + 1) or fire[1] % (nx + 1):
        raise PlumecastError(
            f"{path}: fire grid {fire} is no multiple of {(ny + 1, nx + 1)}, the staggered grid; "
            "is it WRF-Fire output?"
        )
    layers, faces = size.get("bottom_top", 0), size.get("bottom_top_stag", 1)
    if faces != layers + 1:
        raise PlumecastError(
            f"{path}: {layers} layers with {faces} faces (bottom_top_stag), not {layers + 1}; "
            "give the file as WRF wrote it"
        )
    dx, dy = (number_attribute(dataset, path, name) for name in ("DX", "DY"))
    if not (0.0 < dx <= _MAX_CELL and 0.0 < dy <= _MAX_CELL):
        raise PlumecastError(
            f"{path}: attributes DX={dx:g} and DY={dy:g} are no cell sizes in m (above 0, at most "
            f"{_MAX_CELL:g}); give the file as WRF wrote it"
        )
    return Layout(ny, nx, fire[0] // (ny + 1), fire[1] // (nx + 1), dx, dy)


class Range(NamedTuple):
    """The lowest and the highest plausible value, their unit, and where they come from."""

    lowest: float
    highest: float
    unit: str
    reason: str


RANGES: Mapping[str, Range] = {
    "LFN": Range(-1e7, 1e7, "m", "a distance to the fire front; no domain is 10,000 km wide"),
    "TIGN_G": Range(-60.0, 3.2e8, "s", "seconds since the start; no run lasts ten years"),
    "P": Range(-3e4, 3e4, "Pa", "perturbations of fires and storms are below 100 hPa"),
    "PB": Range(10.0, 1.2e5, "Pa", "from a model top of 0.1 hPa to below sea level"),
    "P + PB": Range(10.0, 1.2e5, "Pa", "from a model top of 0.1 hPa to below sea level"),
    "T": Range(-150.0, 3000.0, "K", "potential temperature − 300 K, at the ground and at 0.1 hPa"),
    "PH": Range(-2e5, 2e5, "m2 s-2", "layer faces move by less than 20 km"),
    "PHB": Range(-1e4, 1e6, "m2 s-2", "from 1 km below sea level to 100 km"),
    "U10": Range(-150.0, 150.0, "m s-1", "the strongest gust measured is 113 m s-1"),
    "V10": Range(-150.0, 150.0, "m s-1", "the strongest gust measured is 113 m s-1"),
    "U": Range(-250.0, 250.0, "m s-1", "the strongest jet streams have half of it"),
    "V": Range(-250.0, 250.0, "m s-1", "the strongest jet streams have half of it"),
    "PBLH": Range(0.0, 2e4, "m", "no boundary layer is deeper than the troposphere"),
    "FGIP": Range(0.0, 200.0, "kg m-2", "the heaviest slash has 13"),
    "XLAT": Range(-90.0, 90.0, "degrees", "a latitude"),
    "XLONG": Range(-360.0, 360.0, "degrees", "a longitude"),
}
"""By variable; that of the smoke follows from its unit (`smoke_range`)."""

_UNITLESS = {"LFN": "1", "FGIP": "-"}
"""Labels that WRF itself writes on variables that have a unit. Of LFN any unit will do: only its
sign and ratios of its values are used."""


def unit_factor(dataset: netCDF4.Dataset, path: Path, name: str) -> float:
    """What the values of a variable are multiplied by to be in WRF's own unit, that of `RANGES`.

    Without a label they are in it. T must be in K and PH and PHB in m² s⁻²: they are differences
    from a base state, and others write them without saying which. The unit of smoke and tracers is
    a choice of the user (`WrfOptions`).
    """
    label = unit_label(dataset, name)
    if name not in RANGES or name == "LFN" or label in ("", _UNITLESS.get(name)):
        return 1.0
    wanted = RANGES[name].unit
    kind = next(kind for kind in KINDS if unit_named(wanted, kind))
    unit, own = unit_named(label, kind), unit_named(wanted, kind)
    fixed = kind in ("temperature", "geopotential")
    if unit is None or own is None or (fixed and unit != own):
        known = wanted if fixed else units_of(kind)
        raise PlumecastError(
            f"{path}: {name} is labelled {label!r}, expected {known}; convert the values, or "
            f"correct the label (ncatted -a units,{name},o,c,'{wanted}')"
        )
    return factor(unit, kind) / factor(own, kind)


def unit_label(dataset: netCDF4.Dataset, name: str) -> str:
    """The attribute `units` of a variable; empty if it has none."""
    return str(getattr(dataset[name], "units", "")).strip()


MISSING = -9999.0
"""Stands for a missing value in many programs, unless computed values are near it too."""

_NEAR_MISSING = 100.0  # P of a float32 field that passes -9999 Pa is exactly that in some cells

AHEAD_SECONDS = 600.0
"""A burned cell may be lit this long after its frame: WRF's clock is one time step ahead."""

_LAYER_DEPTH = 2e4  # m; the deepest layers of models are a few km
_LAYER_TEMPERATURE = (120.0, 450.0)  # K, mean of a layer; the air has 130 (mesopause) to 330 K
_IMBALANCE = 1.3  # largest ratio of the pressure difference to the weight of the air in between


def smoke_range(unit: str) -> Range:
    """At most 1 kg of smoke per kg or m³ of air, 1e6 ppmv; advection may leave negative values."""
    largest = 1e6 if unit.startswith("ppmv") else 1e9 / micrograms(unit)[0]
    return Range(-largest, largest, unit, "there is no more smoke than air")


def check_values(values: Array, name: str, expected: Range, where: str) -> tuple[float, float]:
    """Extremes of a variable; raises if one of its values is NaN or outside its range."""
    lowest, highest = float(values.min()), float(values.max())
    missing = np.False_
    if lowest <= MISSING <= highest:
        missing = values == MISSING
        if ((abs(values - MISSING) < _NEAR_MISSING) & ~missing).any():
            missing = np.False_  # one of the computed values
    if expected.lowest <= lowest and highest <= expected.highest and not missing.any():
        return lowest, highest
    bad = values[~((values >= expected.lowest) & (values <= expected.highest)) | missing]
    raise PlumecastError(
        f"{where}: {bad.size} of {values.size} values of {name} are unwritten, NaN or implausible, "
        f"such as {bad.flat[0]:.6g}; expected {expected.lowest:g} to {expected.highest:g} "
        f"{expected.unit} ({expected.reason}); did the run stop early?"
    )


def check_plausible(values: Array, name: str, where: str) -> Array:
    """The values; raises if one is NaN, unwritten or implausible."""
    check_values(values, name, RANGES[name], where)
    return values


def check_arrival(arrival: Array, seconds: float, where: str) -> None:
    """Raise unless burned cells were lit between the start and shortly after their frame."""
    if arrival.size:
        reason = f"burned cells were lit before the frame at {seconds:g} s"
        latest = RANGES["TIGN_G"]._replace(highest=seconds + AHEAD_SECONDS, reason=reason)
        check_values(arrival, "TIGN_G", latest, where)


def check_air(layers: LayerMeans, where: str) -> None:
    """Raise unless height increases and pressure decreases from layer to layer, as in air at rest.

    The mean pressure difference between the lowest and the highest layer is the weight of the air
    in between, Δp = g Σ ρ Δz, within a factor of 1.3. Other units or exchanged variables violate
    this.
    """
    for what, names in _faults_of_air(layers):
        raise PlumecastError(f"{where}: {what}; check {names}")


def _faults_of_air(layers: LayerMeans) -> Iterator[tuple[str, str]]:
    """What is wrong with the air, and the variables to check."""
    thinnest, deepest = layers.depth_extremes
    if not 0.0 < thinnest <= deepest <= _LAYER_DEPTH:
        yield f"layers are {thinnest:.4g} to {deepest:.4g} m deep", "PH and PHB"
    if layers.pressure is None or layers.temperature is None:
        return
    lowest, highest = layers.pressure_extremes or (0.0, 0.0)
    total = RANGES["P + PB"]
    if not total.lowest <= lowest <= highest <= total.highest:
        yield f"P + PB is {lowest:.4g} to {highest:.4g} Pa", "P and PB"
    pressure, temperature = layers.pressure.astype(float), layers.temperature.astype(float)
    low, high = float(temperature.min()), float(temperature.max())
    if not _LAYER_TEMPERATURE[0] <= low <= high <= _LAYER_TEMPERATURE[1]:
        yield f"layers have mean temperatures of {low:.4g} to {high:.4g} K", "T, P and PB"
    if not (np.diff(pressure) < 0.0).all():
        yield "the mean pressure does not decrease with height", "P and PB"
    if pressure.size > 1:
        weight = GRAVITY * layers.depth.astype(float) * pressure / (R_DRY * temperature)
        between = weight.sum() - 0.5 * (weight[0] + weight[-1])
        ratio = float((pressure[0] - pressure[-1]) / between)
        if not 1.0 / _IMBALANCE <= ratio <= _IMBALANCE:
            what = f"the pressure falls {ratio:.3g} times as fast with height as air does"
            yield what, "the units of P, PB, T, PH and PHB"
