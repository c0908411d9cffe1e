"""Damaged WRF files: bytes, and values, dimensions, types and attributes that make no sense."""

from __future__ import annotations

import functools
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr

from plumecast.compute.processes import DiedError, HungError, LimitedProcess
from plumecast.sources.wrf.options import WrfOptions
from plumecast.sources.wrf.run import read_fire
from plumecast.sources.wrf.snapshots import FireLabels, to_dataset
from tools.fuzz.mutations import damage_file
from tools.fuzz.trials import CHANGED, FOUND, LEGITIMATE, REFUSED, UNCHANGED, Target

_FORMATS = ("NETCDF4", "NETCDF3_64BIT_OFFSET")
_READ = ("LFN", "TIGN_G", "fire_smoke", "P", "PB", "T", "PH", "PHB", "U10", "V10", "XLAT", "XLONG")
_VALUES = (netCDF4.default_fillvals["f4"], -netCDF4.default_fillvals["f4"], np.nan, np.inf, -np.inf,
           1e20, -9999.0, 3.4e38)  # fmt: skip
_ODD: tuple[Any, ...] = (None, "", "odd", "0001-01-01_00:00:00", 0.0, -1.0, np.nan, np.inf, 1e30,
                         np.array([1.0, 2.0]), np.int32(2**31 - 1), np.int32(-1))  # fmt: skip
_ATTRIBUTES = ("DX", "DY", "MAP_PROJ", "GRID_ID", "START_DATE", "SIMULATION_START_DATE", "TITLE",
               "TRUELAT1", "TRUELAT2", "STAND_LON", "MOAD_CEN_LAT")  # fmt: skip
_LIMIT = 15.0  # s for one file, whose reading takes 20 ms on a machine that is not busy


def prepare(folder: Path) -> None:
    """A run of three frames on a map, in each format, and what is read from it."""
    sys.path.insert(0, "tests")
    from support.wrf_files import FILE, NX, NY, blowing, write_wrfout

    lon, lat = np.meshgrid(-106.0 + 0.01 * np.arange(NX), 37.5 + 0.009 * np.arange(NY))
    attributes = {"TRUELAT1": 36.0, "TRUELAT2": 39.0, "STAND_LON": -106.0, "MOAD_CEN_LAT": 37.5,
                  "MAP_PROJ": np.int32(1)}  # fmt: skip
    for kind in _FORMATS:
        path = write_wrfout(
            folder / kind / FILE,
            [0.0, 3600.0, 7200.0],
            attributes=attributes,
            places=(lat, lon),
            edit=blowing(),
            format=kind,
        )
        read(path).to_netcdf(folder / f"{kind}.nc")


def read(path: Path) -> xr.Dataset:
    """The snapshots of a run, as an ingest reads them; unexpected exceptions escape."""
    return to_dataset(read_fire(path, WrfOptions()), FireLabels("fire", "fire", "low"))


def stated(path: Path) -> dict[str, Any]:
    """The numbers and attributes that a file states, read without plumecast."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        there = [name for name in (*_READ, "Times") if name in file.variables]
        values = {name: np.asarray(file[name][:]).tobytes() for name in there}
        texts = {name: str(file.__dict__.get(name)) for name in _ATTRIBUTES}
        return {**values, **texts, "smoke": str(file["fire_smoke"].__dict__)}


@functools.cache
def _process() -> LimitedProcess:
    return LimitedProcess(_LIMIT)


@functools.cache
def _original(path: Path) -> tuple[xr.Dataset, dict[str, Any]]:
    return read(path), stated(path)


def attempt(originals: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    """Damage a copy of a run and read it in a process with a time limit.

    WRF writes no checksums. Plausible other numbers in a file are other data, which nobody can tell
    from damage: "legitimate".
    """
    (original,) = (originals / rng.choice(_FORMATS)).iterdir()
    path = scratch / original.name
    shutil.copyfile(original, path)
    edit = damage_file if rng.random() < 0.5 else rng.choice(_EDITS)
    edit(path, rng)
    try:
        found = _process().call(read, path)
        before, content = _original(original)
        names = [
            str(name)
            for name in before.variables
            if name not in found.variables or not np.array_equal(found[name], before[name])
        ]
        if not names:
            return UNCHANGED
        if found.attrs["quality"] != before.attrs["quality"]:
            return FOUND, found.attrs["quality"]
        other = _process().call(stated, path) != content and edit is not _spoil_values
        return LEGITIMATE if other else CHANGED, f"{edit.__name__}, {original.parent.name}: {names}"
    except HungError:
        return REFUSED, "no progress within the limit"
    except DiedError as error:
        return REFUSED, f"the process died with code {error.code}"


# -- edits of a file


def _spoil_values(path: Path, rng: random.Random) -> None:
    """One variable of one frame, or a part of it, gets fill values or such."""
    with netCDF4.Dataset(path, "a") as file:
        variable = file[rng.choice(_READ)]
        variable.set_auto_maskandscale(False)
        frame = rng.randrange(len(variable))
        values = variable[frame]
        value = rng.choice(_VALUES)
        if rng.random() < 0.5:
            values[...] = value
        else:
            values[..., rng.randrange(values.shape[-2]), rng.randrange(values.shape[-1])] = value
        variable[frame] = values


def _scale_values(path: Path, rng: random.Random) -> None:
    """A variable in another unit; the smoke and the fire may be such in another run."""
    with netCDF4.Dataset(path, "a") as file:
        name = rng.choice(_READ)
        file[name].set_auto_maskandscale(False)
        file[name][:] = file[name][:] * rng.choice((1 / 9.81, 100.0, 0.01, 1e-3, 1e3, -1.0))


def _set_attribute(path: Path, rng: random.Random) -> None:
    """An attribute of the file is removed or odd."""
    with netCDF4.Dataset(path, "a") as file:
        name, value = rng.choice(_ATTRIBUTES), rng.choice(_ODD)
        if value is None:
            file.delncattr(name)
        else:
            file.setncattr(name, value)


def _set_own_attribute(path: Path, rng: random.Random) -> None:
    """An attribute of a variable that changes what its numbers mean."""
    name = rng.choice(("scale_factor", "add_offset", "missing_value", "units"))
    with netCDF4.Dataset(path, "a") as file:
        file[rng.choice(_READ)].setncattr(name, rng.choice(_ODD[1:]))


def _rewrite(path: Path, rng: random.Random) -> None:
    """The file again, with a variable of another type or with permuted, cut or empty dimensions."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        sizes = {name: len(dim) for name, dim in file.dimensions.items()}
        attributes = dict(file.__dict__)
        items = {name: (item.dimensions, item[:]) for name, item in file.variables.items()}
    name, kind = rng.choice(_READ), rng.choice(("type", "permute", "cut", "empty", "drop", "flip"))
    dims, values = items[name]
    if kind == "type":
        items[name] = (dims, values.astype(rng.choice(("f8", "i4", "i1", ">f4", "S1", "O"))))
    elif kind == "permute":
        order = rng.sample(range(len(dims)), len(dims))
        items[name] = (tuple(dims[i] for i in order), values.transpose(order))
    elif kind in ("cut", "empty"):
        cut = rng.choice(dims)
        sizes[cut] = sizes[cut] - 1 if kind == "cut" else 0
        for other, (own, all_values) in items.items():
            keep = tuple(slice(sizes[dim]) for dim in own)
            items[other] = (own, all_values[keep])
    elif kind == "drop":
        del items[name]
    else:
        items[name] = (dims, np.flip(values, rng.randrange(1, len(dims))))
    path.unlink()
    with netCDF4.Dataset(path, "w") as file:
        file.setncatts(attributes)
        unlimited = rng.choice((("Time",), (), ("Time", "south_north"), ("west_east_subgrid",)))
        for dim, size in sizes.items():
            file.createDimension(dim, None if dim in unlimited else size)
        for other, (own, all_values) in items.items():
            text = all_values.dtype.kind == "O"
            item = file.createVariable(other, str if text else all_values.dtype, own)
            if all_values.size:
                item[:] = all_values.astype(str).astype(object) if text else all_values


def _set_times(path: Path, rng: random.Random) -> None:
    """A time stamp that is odd, repeated or not in order."""
    stamps = ("2020-08-01_12:00:00", "2020-08-01_13:30:00", "2020-08-01_99:00:00", "9999-99-99_",
              "1969-01-01_00:00:00", "", "\0" * 19, "2020-08-01T14:00:00",
              "292277026596-01-01_")  # fmt: skip
    with netCDF4.Dataset(path, "a") as file:
        text = rng.choice(stamps)[:19].ljust(19)
        file["Times"][rng.randrange(3)] = np.array(list(text), dtype="S1")


_EDITS = (_spoil_values, _spoil_values, _scale_values, _set_attribute, _set_own_attribute, _rewrite,
          _set_times)  # fmt: skip

TARGET = Target("wrf", prepare, attempt, trials=2000, limit=60.0)
