"""Damaged ASCII grids: read as what their text says, or refused.

Another number in a text is another raster. So the text is parsed here a second time, strictly, and
the field that was read must be the one that the text states.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.names import M2_PER_ACRE
from plumecast.sources.rasters import RasterOptions, read_arrival_times
from tools.fuzz.commands import is_one_line, run_command
from tools.fuzz.mutations import mutate_bytes, mutate_text
from tools.fuzz.trials import CHANGED, LEGITIMATE, REFUSED, TRACEBACK, UNCHANGED, Target

_TEXT = """NCOLS 6
NROWS 5
XLLCORNER 1000.0
YLLCORNER 5000.0
CELLSIZE 30.0
NODATA_VALUE -9999.0
-9999 -9999 120.5 130 -9999 -9999
-9999 60 70.25 80 90 -9999
-9999 30 40 50 -9999 -9999
-9999 0 10 20 -9999 -9999
-9999 -9999 -9999 -9999 -9999 -9999
"""

_LIKE = xr.Dataset(coords={"x": 900.0 + 130 * np.arange(8), "y": 4900.0 + 110 * np.arange(7)})
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I)
_BY_COMMAND = 0.02  # share of the trials


class Stated(NamedTuple):
    """What a raster states: arrival times (ny, nx) in minutes, south row first, and its grid."""

    arrival: np.ndarray  # NaN where unburned
    left: float
    bottom: float
    dx: float
    dy: float

    def field(self) -> np.ndarray:
        """Time since ignition in hours at the latest arrival."""
        first, last = np.nanmin(self.arrival), np.nanmax(self.arrival)
        hours = (last / 60 - first / 60) - (self.arrival / 60 - first / 60)
        return np.nan_to_num(np.maximum(hours, 0.0))

    def is_in(self, read: xr.Dataset) -> bool:
        """Whether a Dataset on the raster's own grid has these values at these places."""
        ny, nx = self.arrival.shape
        x = self.left + (np.arange(nx) + 0.5) * self.dx
        y = self.bottom + (np.arange(ny) + 0.5) * self.dy
        got = read.time_since_ignition.values[0]
        return (
            got.shape == (ny, nx)
            and np.allclose(read.x, x, rtol=1e-9, atol=1e-9)
            and np.allclose(read.y, y, rtol=1e-9, atol=1e-9)
            and np.allclose(got, self.field(), rtol=1e-5, atol=1e-5)
        )

    def is_spread_over(self, read: xr.Dataset) -> bool:
        """Whether a Dataset on another grid has this burned area and this integral."""
        cell = self.dx * self.dy
        area = np.isfinite(self.arrival).sum() * cell / M2_PER_ACRE
        steps = [float(read[axis][1] - read[axis][0]) for axis in "xy"]
        integral = float(read.time_since_ignition.astype(float).sum()) * steps[0] * steps[1]
        return bool(
            np.isclose(read.burned_area.item(), area, rtol=1e-6)
            and np.isclose(integral, self.field().sum() * cell, rtol=2e-3, atol=1e-3)
        )


def unburned_to_nan(arrival: np.ndarray, nodata: float | None) -> np.ndarray:
    """NaN where a value is nodata or no finite number."""
    return np.where(np.isfinite(arrival) & (arrival != nodata), arrival, np.nan)


def parse(text: str) -> Stated | None:
    """The raster that a text states; None if it states none."""
    header: dict[str, float] = {}
    words: list[str] = []
    for line in text.splitlines():
        found = line.split()
        if not words and len(found) == 2 and re.fullmatch(r"[a-zA-Z_]+", found[0]):
            if found[0].lower() in header or not _NUMBER.fullmatch(found[1]):
                return None
            header[found[0].lower()] = float(found[1])
        else:
            words += found
    if not {"ncols", "nrows", "xllcorner", "yllcorner", "cellsize"} <= set(header):
        return None
    shape = header["nrows"], header["ncols"]
    if len(words) != shape[0] * shape[1] or not all(map(_NUMBER.fullmatch, words)):
        return None
    size = header["cellsize"]
    if not (0 < size < np.inf) or not all(np.isfinite(list(header.values())[:5])):
        return None
    values = np.array([float(word) for word in words]).reshape(int(shape[0]), int(shape[1]))
    arrival = unburned_to_nan(values[::-1], header.get("nodata_value"))
    return Stated(arrival, header["xllcorner"], header["yllcorner"], size, size)


def prepare(folder: Path) -> None:
    """One grid of 30 cells."""
    (folder / "fire.asc").write_text(_TEXT)


def attempt(originals: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    """Read a damaged copy, on its own grid, on another, or by `plumecast ingest`."""
    text = (originals / "fire.asc").read_text()
    path = scratch / "fire.asc"
    if rng.random() < 0.6:
        path.write_bytes(mutate_text(text, rng).encode("latin-1", "replace"))
    else:
        path.write_bytes(mutate_bytes(text.encode(), rng))
    if rng.random() < _BY_COMMAND:
        return _ingest(path, scratch / "out.zarr")
    other = rng.random() < 0.3
    read = read_arrival_times(path, RasterOptions(unit="min", like=_LIKE if other else None))
    damaged = path.read_bytes().decode("ascii", "replace")
    for stated, verdict in ((parse(text), UNCHANGED), (parse(damaged), LEGITIMATE)):
        if stated is not None and (stated.is_spread_over(read) if other else stated.is_in(read)):
            return verdict
    return CHANGED, damaged


def _ingest(path: Path, out: Path) -> tuple[str, str]:
    """A raster that cannot be read is one line, and the command ends with 1 or 2."""
    code, printed = run_command(["ingest", "rasters", path, "--unit", "min", "-o", out])
    if "Traceback" in printed or code not in (0, 1, 2):
        return TRACEBACK, printed
    if code == 0:
        return LEGITIMATE, printed
    named = is_one_line(printed) and path.name in printed
    return (REFUSED if named else TRACEBACK), printed


TARGET = Target("rasters", prepare, attempt, trials=2000)
