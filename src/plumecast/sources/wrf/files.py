"""Find the wrfout files of a fire, put their frames in time order, and select the checkpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import netCDF4
import numpy as np

from plumecast.base import paths as named
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.integrity import check_complete
from plumecast.compute.arrays import Array
from plumecast.compute.processes import report_step
from plumecast.sources.wrf.integrity import (
    RANGES,
    check_size,
    check_variable,
    damage_reported,
    number_attribute,
    require_variables,
    unit_factor,
    unit_label,
)
from plumecast.sources.wrf.options import known_unit

_NAME = re.compile(r"_d(\d\d)_(\d{4}-\d\d-\d\d)_(\d\d)[:_](\d\d)[:_](\d\d)(?:\.nc)?$")
_MAX_CACHE_BYTES = 512 * 2**20  # chunk cache of one variable, for chunks that span many frames

_TOLERANCE = 0.1  # largest distance of a frame from its checkpoint, relative to `every`


class Frame(NamedTuple):
    """One output time: seconds since the start of the simulation, file and index in the file."""

    seconds: float
    path: Path
    number: int

    def __str__(self) -> str:
        return f"{self.path}: frame {self.number}"


class FileIndex(NamedTuple):
    """Domain, fire grid and frames of one file."""

    path: Path
    domain: int
    refinement: int  # fire cells per smoke cell along x; 0 without a fire grid
    start: str  # time stamp at the start of the simulation
    frames: tuple[Frame, ...]


class NameMismatch(Exception):
    """A file does not contain exactly the frame that its name states.

    The frames must then be found by opening every file.
    """


class FrameReader:
    """Reads one frame at a time and keeps the last file open; read the frames in file order."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._dataset: netCDF4.Dataset | None = None
        # By variable: the values that mean "missing", and the factor to WRF's own unit.
        self._ready: dict[str, tuple[tuple[float, ...], float]] = {}
        self._labels: dict[str, tuple[str, Path]] = {}  # of units that are not converted
        self._shapes: dict[str, tuple[tuple[int, ...], Path]] = {}  # of a frame, and its file
        self._complete: set[tuple[bytes, int]] = set()
        self._expected: dict[Path, FileIndex] = {}

    def close(self) -> None:
        """Close the open file, if any."""
        if self._dataset is not None:
            self._dataset.close()
        self._path, self._dataset, self._ready = None, None, {}

    def expect(self, files: Sequence[FileIndex]) -> None:
        """Set the expected content of files; `open` raises `NameMismatch` if one differs."""
        self._expected = {file.path: file for file in files}

    def open(self, path: Path) -> netCDF4.Dataset:
        """Open the file at `path`, unless it is still open."""
        if self._dataset is None or path != self._path:
            self.close()
            report_step(str(path))
            check_complete(path, self._complete)
            with damage_reported(path, "damaged or truncated NetCDF file"):
                self._dataset, self._path = netCDF4.Dataset(path), path
            expected = self._expected.get(path)
            if expected is not None and index_dataset(self._dataset, path) != expected:
                raise NameMismatch(path)
        return self._dataset

    def read(self, frame: Frame, name: str) -> Array:
        """One variable of one frame in WRF's own unit, without the Time dimension."""
        dataset = self.open(frame.path)
        report_step(str(frame.path))
        if name not in self._ready:
            missing_values = check_variable(dataset, frame.path, name)
            self._ready[name] = missing_values, unit_factor(dataset, frame.path, name)
            shape = tuple(dataset[name].shape[1:])
            first, where = self._shapes.setdefault(name, (shape, frame.path))
            if shape != first:
                raise PlumecastError(
                    f"{frame.path}: {name} has the size {shape}, but {first} in {where.name}; "
                    "give each fire its own directory or glob"
                )
            self._check_label(dataset, frame.path, name)
            dataset[name].set_auto_maskandscale(False)
            _fit_chunk_cache(dataset[name])
        with damage_reported(frame.path, f"frame {frame.number} cannot be read"):
            values: Array = dataset[name][frame.number]
        missing_values, to_own_unit = self._ready[name]
        for missing in missing_values:
            if (values == values.dtype.type(missing)).any():
                raise PlumecastError(
                    f"{frame.path}: frame {frame.number}: {name} has the value {missing:g}, which "
                    "stands for missing values; did the run stop early?"
                )
        return values if to_own_unit == 1.0 else values * values.dtype.type(to_own_unit)

    def _check_label(self, dataset: netCDF4.Dataset, path: Path, name: str) -> None:
        """Raise if a variable whose unit is not converted (smoke) has another label than before."""
        label = unit_label(dataset, name)
        first, where = self._labels.setdefault(name, (label, path))
        if name not in RANGES and (known_unit(label) or label) != (known_unit(first) or first):
            raise PlumecastError(
                f"{path}: {name} is labelled {label!r}, but {first!r} in {where.name}; convert the "
                "values to one unit"
            )


def find_files(paths: named.Paths) -> list[Path]:
    """The wrfout files of one fire, sorted by name."""
    files = named.find_files(
        paths,
        belongs=_is_wrfout,
        nothing=_why_nothing(Path(paths)) if isinstance(paths, str | Path) else "no file is named",
    )
    for path in files:
        if not path.exists():
            raise PlumecastError(f"{path}: no such file; check the path")
        if not path.is_file():
            raise PlumecastError(f"{path}: not a file; give each fire its own directory or glob")
    return files


def find_runs(paths: Sequence[str | Path]) -> list[str | Path]:
    """The runs that `paths` name: a flat folder of NetCDF files becomes one run per file.

    A folder with wrfout files is one run. The files of a flat folder have names of their own, such
    as fire_001.nc.
    """
    runs: list[str | Path] = []
    for path in paths:
        folder = Path(path)
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        # Restart, input and boundary files are no output.
        flat = [entry for entry in entries if entry.suffix == ".nc"
                and not entry.name.startswith(("wrfrst", "wrfinput", "wrfbdy"))]  # fmt: skip
        runs += [path] if not flat or any(map(_is_wrfout, entries)) else flat
    return runs


def _is_wrfout(path: Path) -> bool:
    return path.name.startswith("wrfout")


def _why_nothing(path: Path) -> str:
    """Why a path names no wrfout files, and what to give instead."""
    if not path.is_dir():
        is_glob = set(path.name) & set("*?[")
        return "no file matches this glob" if is_glob else "no such folder; check the path"
    entries = sorted(path.iterdir())
    if not entries:
        return "the folder is empty; give the folder with the wrfout files of a fire"
    restarts = [entry.name for entry in entries if entry.name.startswith("wrfrst")]
    if restarts:
        return (
            f"only restart files ({restarts[0]} …), which hold the state of a run and not its "
            "output; give the folder with the wrfout files"
        )
    inside = [entry for entry in entries if entry.is_dir() and any(entry.glob("wrfout*"))]
    if inside:
        return f"no wrfout* files here, but in {len(inside)} of its folders; give {path}/*"
    return f"no wrfout* files here (found {entries[0].name}); give a directory, glob or file"


def index_by_names(paths: Sequence[Path], reader: FrameReader) -> list[FileIndex] | None:
    """Index runs with one frame per file from WRF's file names; None if the names do not suffice.

    Opening such a file costs as much as reading it, so only the first file of each domain is opened
    here. The reader checks every other file when it opens it, and raises `NameMismatch` if the
    content differs from the name.
    """
    stamps = [_NAME.search(path.name) for path in paths]
    whens = [(int(s[1]), f"{s[2]}_{s[3]}:{s[4]}:{s[5]}") for s in stamps if s is not None]
    if len(paths) < 2 or len(set(whens)) < len(paths):
        return None
    first: dict[int, FileIndex] = {}
    for path, (domain, _) in zip(paths, whens, strict=True):
        if domain not in first:
            first[domain] = index_dataset(reader.open(path), path)
    if any(len(file.frames) != 1 for file in first.values()):
        return None
    files = []
    for path, (domain, when) in zip(paths, whens, strict=True):
        alike = first[domain]
        try:
            seconds = _seconds(when, path) - _seconds(alike.start, path)
        except PlumecastError:
            return None
        files.append(alike._replace(path=path, frames=(Frame(seconds, path, 0),)))
    if not set(first.values()) <= set(files):
        return None
    reader.expect(files)
    return files


def index_dataset(dataset: netCDF4.Dataset, path: Path) -> FileIndex:
    """Index of an open file; of its variables only `Times` is read."""
    require_variables(dataset, path, ["Times"])
    with damage_reported(path, "the times are damaged"):
        times = _times(dataset["Times"], path)
        size = {name: len(dim) for name, dim in dataset.dimensions.items()}
        start = str(getattr(dataset, "SIMULATION_START_DATE", "")) or str(
            getattr(dataset, "START_DATE", (times or [""])[0])
        )
    by_name = (re.findall(r"_d(\d\d)", path.name) or ["1"])[0]
    return FileIndex(
        path=path,
        domain=int(number_attribute(dataset, path, "GRID_ID", float(by_name))),
        refinement=size.get("west_east_subgrid", 0) // (size.get("west_east", 0) + 1),
        start=start,
        frames=tuple(
            Frame(_seconds(time, path) - _seconds(start, path), path, number)
            for number, time in enumerate(times)
        ),
    )


def _times(variable: Any, path: Path) -> list[str]:
    """The time stamps of a file, from the characters of `Times`."""
    if variable.dtype != np.dtype("S1") or variable.ndim != 2 or variable.shape[1] == 0:
        raise PlumecastError(
            f"{path}: Times has type {getattr(variable.dtype, 'name', 'text')} and dimensions "
            f"{variable.dimensions}, not characters (Time, DateStrLen); is it WRF output?"
        )
    if variable.shape[0]:
        check_size(path, "Times", variable.shape, 1)
    variable.set_auto_mask(False)
    text = variable[:].tobytes().decode("ascii", "replace")
    width = variable.shape[1]
    return [text[i : i + width].strip("\0 ") for i in range(0, len(text), width)]


def choose_domain(files: Sequence[FileIndex], domain: int | str | None) -> list[FileIndex]:
    """Files of one domain; by default the one with the finest fire grid, then the innermost."""
    domains = {file.domain: file.refinement for file in files}
    wanted = max(domains, key=lambda number: (domains[number], number))
    if domain is not None:
        number = re.fullmatch(r"d?(\d+)", str(domain))
        if not number:
            raise ArgumentError("domain", domain, 'give e.g. 2 or "d02"', problem="is not a domain")
        wanted = int(number[1])
    names = ", ".join(f"d{number:02d}" for number in sorted(domains))
    where = files[0].path
    if wanted not in domains:
        raise PlumecastError(
            f"{where.parent}: no files of d{wanted:02d}; found {names}; give one of them as domain"
        )
    if domains[wanted] == 0:
        raise PlumecastError(
            f"{where}: no fire grid (dimension west_east_subgrid) in d{wanted:02d}; found {names}"
        )
    chosen = [file for file in files if file.domain == wanted]
    for file in chosen:
        if file.start != chosen[0].start:
            raise PlumecastError(
                f"{file.path}: simulation starts {file.start}, but that of {chosen[0].path.name} "
                f"starts {chosen[0].start}; give each fire its own directory or glob"
            )
    return chosen


def merge_overlaps(
    frames: Sequence[Frame], reader: FrameReader, names: Sequence[str]
) -> list[Frame]:
    """Frames in time order without duplicates.

    A time may be stored twice, by restarts that overlap or by a file given twice. It is kept once
    if every variable in `names` is identical; otherwise it raises.
    """
    ordered = sorted(frames, key=lambda frame: (frame.seconds, frame.path, frame.number))
    kept = ordered[:1]
    for frame in ordered[1:]:
        if frame.seconds > kept[-1].seconds:
            kept.append(frame)
            continue
        one = {name: reader.read(kept[-1], name) for name in names}
        differ = [
            name for name in names if not np.array_equal(one[name], reader.read(frame, name), True)
        ]
        if differ:
            raise PlumecastError(
                f"{frame.path}: {frame.seconds / 3600:g} h is stored twice, with other "
                f"{', '.join(differ)} in {kept[-1].path.name}; remove the output that a restart "
                "replaced"
            )
    return kept


def _fit_chunk_cache(variable: Any) -> None:
    """Size the cache for the chunks of one frame, so that no chunk is decompressed twice."""
    chunks = variable.chunking()
    if isinstance(chunks, list):
        padded = [-(-n // c) * c for n, c in zip(variable.shape[1:], chunks[1:], strict=True)]
        size = variable.dtype.itemsize * chunks[0] * int(np.prod(padded))
        variable.set_var_chunk_cache(size=min(size, _MAX_CACHE_BYTES))


def _seconds(time: str, path: Path) -> float:
    """Seconds since 1970 of a WRF time stamp such as 2020-08-01_12:00:00."""
    try:
        stamp = np.array(time.replace("_", "T"), dtype="datetime64[s]")
        if not np.isnat(stamp):
            return float(stamp.astype(np.int64))
    except ValueError:
        pass
    raise PlumecastError(f"{path}: unreadable time {time!r}; did the run stop early?")


def thin(frames: Sequence[Frame], every: float | None) -> list[Frame]:
    """The frame nearest each multiple of `every` seconds after the first, within a tenth of it."""
    if every is None or len(frames) < 2:
        return list(frames)
    seconds = np.array([frame.seconds for frame in frames])
    spacing = float(np.diff(seconds).min())
    if every < (1 - _TOLERANCE) * spacing:
        raise PlumecastError(
            f"{frames[0].path}: every={every / 3600:g} h is finer than the frames, which are "
            f"{spacing / 3600:g} h apart; give at least that"
        )
    even = float(np.diff(seconds).max()) < (1 + _TOLERANCE) * spacing
    if even and abs(every / spacing - round(every / spacing)) > _TOLERANCE:
        raise PlumecastError(
            f"{frames[0].path}: every={every / 3600:g} h is no multiple of the "
            f"{spacing / 3600:g} h between the frames; give one"
        )
    targets = np.arange(seconds[0], seconds[-1] + _TOLERANCE * every, every)
    nearest = np.abs(seconds - targets[:, None]).argmin(axis=1)
    close = np.abs(seconds[nearest] - targets) <= _TOLERANCE * every
    return [frames[number] for number in nearest[close]]
