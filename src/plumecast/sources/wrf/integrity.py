"""Check that a NetCDF file is complete and contains the required variables, as WRF writes them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.base.paths import check_complete
from plumecast.sources.wrf.frame import Layout

_MAX_NAMES = 40  # variables listed in an error message
_MAX_COMPRESSION = 4000  # bytes of a variable per byte of its file; zlib reaches 1030
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


def open_complete(path: Path, known: set[tuple[bytes, int]]) -> netCDF4.Dataset:
    """Open a file that passes `check_complete`, with the same `known`."""
    check_complete(path, known)
    with damage_reported(path, "damaged or truncated NetCDF file"):
        return netCDF4.Dataset(path)


def require_variables(dataset: netCDF4.Dataset, path: Path, names: Iterable[str]) -> None:
    """Raise if a name is not a variable of the file; the error lists the variables."""
    missing = [name for name in names if name not in dataset.variables]
    if missing:
        present = sorted(dataset.variables)
        more = f" … ({len(present)} in all)" if len(present) > _MAX_NAMES else ""
        found = ", ".join(present[:_MAX_NAMES]) + more
        raise PlumecastError(f"{path}: no variable {', '.join(missing)}; found {found or 'none'}")


def dimensions_of(name: str) -> tuple[str, ...]:
    """Dimensions of a WRF variable: on the fire grid, at the ground, on faces or within layers."""
    if name in ("LFN", "TIGN_G", "FGIP"):
        return ("Time", "south_north_subgrid", "west_east_subgrid")
    if name in ("U10", "V10", "PBLH", "XLAT", "XLONG"):
        return ("Time", "south_north", "west_east")
    if name == "U":
        return ("Time", "bottom_top", "south_north", "west_east_stag")
    if name == "V":
        return ("Time", "bottom_top", "south_north_stag", "west_east")
    layers = "bottom_top_stag" if name in ("PH", "PHB") else "bottom_top"
    return ("Time", layers, "south_north", "west_east")


def check_variable(dataset: netCDF4.Dataset, path: Path, name: str) -> tuple[float, ...]:
    """Raise unless a variable has WRF's dimensions and plain floating-point values.

    Returns the values that mean "missing" in the variable, other than NaN, which is refused anyway,
    and 0, which is a plausible value of every variable.
    """
    require_variables(dataset, path, [name])
    with damage_reported(path, f"{name} is damaged"):
        variable = dataset[name]
        attributes = {key: variable.getncattr(key) for key in variable.ncattrs()}
        found, expected = variable.dimensions, dimensions_of(name)
        if found != expected:
            raise PlumecastError(f"{path}: {name} has dimensions {found}, expected {expected}")
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
    size = itemsize
    for length in shape:
        size *= int(length)
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


_MAX_CELL = 1e6  # m; a larger DX or DY is damaged


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
