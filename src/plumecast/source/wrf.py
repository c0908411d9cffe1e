"""wrfout files → the snapshots of one fire, in small named steps.

files → frames in time order → per frame: time since ignition on the fire grid, averaged to the
smoke grid; mixing ratio → µg m⁻³ → column mean → cumulative sum over the frames → one labelled
Dataset. One frame is in memory at a time.
"""

from __future__ import annotations

import json
import multiprocessing
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import netCDF4
import numpy as np
import xarray as xr

from plumecast._array import Array
from plumecast._version import __version__
from plumecast.constants import GRAVITY, M2_PER_ACRE
from plumecast.errors import PlumecastError
from plumecast.names import FIRE, SMOKE, SNAPSHOT, TABLE
from plumecast.source import regrid
from plumecast.source import wrf_checks as checks
from plumecast.source.column import actual_temperature, column_mean, mass_concentration

Paths: TypeAlias = str | Path | Sequence[str | Path]

SMOKE_FLOOR = 1e-3
"""Cumulative smoke below this is numerical diffusion and stored as 0, µg m⁻³."""

SMOKE_VARIABLES = {
    "fire_smoke": ("g/kg", ()),
    "tr17_1": ("ug/kg", ("dimensionless",)),
    "smoke": ("ug/m3", ()),
    "PM2_5_DRY": ("ug/m3", ()),
}
"""Unit of each known smoke variable, and labels in the files that do not contradict it."""

_MICROGRAMS = {"kg": 1e9, "g": 1e6, "mg": 1e3, "ug": 1.0}
_UNIT = re.compile(r"([kmu]?g)(?:_\w+?)?\s*/?\s*(?:(kg)(?:\^?-1)?(?:[_-][a-z_]+)?|m\^?-?3)")
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_THETA_BASE = 300.0  # K, subtracted from potential temperature in T
_UNWRITTEN = 1e30  # NetCDF fill values lie beyond, physics far below
_NEAR = 0.1  # a frame stands for a checkpoint within this share of `every`
_MOST_CACHE = 512 * 2**20  # bytes a variable may hold where chunks span many frames


class FireResult(NamedTuple):
    """What became of one fire: its snapshots or a one-line error, and what the checks found."""

    fire_id: str
    outcome: xr.Dataset | str
    quality: tuple[checks.Finding, ...]


def read_wrf(
    paths: Paths,
    *,
    smoke: str = "fire_smoke",
    smoke_unit: str | None = None,
    drought: str | None = None,
    fire_id: str | None = None,
    ignition_id: str | None = None,
    every: str | float | None = None,
    domain: int | str | None = None,
    aggregate: str = "mean",
    floor: float = SMOKE_FLOOR,
) -> xr.Dataset:
    """Snapshots of one fire from WRF-Fire output.

    `paths` is a directory with wrfout files, a glob, a file or a list of files of one simulation;
    `domain` defaults to the one with the finest fire grid. f is the block mean (or "max") of
    max(t − TIGN_G, 0) over fire cells with LFN < 0, in hours. g is the sum over all frames read,
    those before ignition included, of the column-mean smoke, µg m⁻³, and 0 below `floor`. `every`
    ("6h", "30min" or hours) keeps the frames at its multiples since the first frame, and the sum
    runs over the kept frames. `hours` counts from the earliest arrival of any burned cell, so
    f ≤ hours. Frames without a burned cell give no snapshot. Areas take the nominal cell size,
    without map factors. `attrs["quality"]` says what the checks found.
    """
    options = _Options(
        smoke=smoke,
        smoke_unit=smoke_unit,
        every=every,
        domain=domain,
        aggregate=aggregate,
        floor=floor,
    )
    name = fire_id or fire_name(paths)
    return _read_fire(paths, options, fire=(name, ignition_id or name, drought or "unknown"))[0]


def read_wrf_fires(
    run_dirs: Sequence[str | Path],
    *,
    drought: str | Mapping[str, str] | None = None,
    ignition_id: Mapping[str, str] | None = None,
    workers: int = 1,
    done: Collection[str] = frozenset(),
    progress: Callable[[FireResult, int, int], None] | None = None,
    **options: Any,
) -> Iterator[FireResult]:
    """Read many fires, one per entry of `run_dirs`, in that order; a failing fire is reported.

    Fires are named after their directory; those in `done` are passed over. `drought` and
    `ignition_id` may map fire_id to a label; `options` are those of `read_wrf`. With `workers` > 1
    fires are read by processes, at most `workers` ahead of the one being yielded.
    `progress(result, finished, total)` is called as each fire ends.
    """
    settings = _Options(**options)
    jobs: list[_Job] = []
    first: dict[str, str | Path] = {}
    for paths in run_dirs:
        name = fire_name(paths)
        label = drought.get(name) if isinstance(drought, Mapping) else drought
        twin = first.setdefault(name, paths)
        clash = None if twin is paths else f"{paths}: fire_id {name!r} is also that of {twin}"
        fire = (name, (ignition_id or {}).get(name, name), label or "unknown")
        if name not in done:
            jobs.append(_Job(paths, settings, fire, clash))
    for count, result in enumerate(_in_order(jobs, workers), start=1):
        if progress is not None:
            progress(result, count, len(jobs))
        yield result


def fire_name(paths: Paths) -> str:
    """The directory that holds the files: WRF names the files of every run alike."""
    path = Path(paths) if isinstance(paths, str | Path) else Path(paths[0])
    return path.resolve().name if path.is_dir() else path.resolve().parent.name


# -- files and frames


class Frame(NamedTuple):
    """One output time: seconds since the simulation's start, and where it is stored."""

    seconds: float
    path: Path
    number: int


class FileIndex(NamedTuple):
    """What one file holds."""

    path: Path
    domain: int
    refinement: int  # fire cells per smoke cell in x; 0 without a fire grid
    start: str  # of the simulation
    frames: tuple[Frame, ...]


class FrameReader:
    """Reads one frame at a time; keeps the last file open, so read frames in file order."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._dataset: netCDF4.Dataset | None = None
        self._ready: set[str] = set()
        self._whole: set[Path] = set()

    def close(self) -> None:
        """Close the open file, if any."""
        if self._dataset is not None:
            self._dataset.close()
        self._path, self._dataset, self._ready = None, None, set()

    def open(self, path: Path) -> netCDF4.Dataset:
        """The file at `path`."""
        if self._dataset is None or path != self._path:
            self.close()
            if path not in self._whole:
                checks.check_whole(path)
                self._whole.add(path)
            self._dataset, self._path = checks.open_wrf(path), path
        return self._dataset

    def read(self, frame: Frame, names: Sequence[str]) -> dict[str, Array]:
        """The named variables of one frame, without the Time dimension."""
        dataset = self.open(frame.path)
        checks.require(dataset, frame.path, names)
        for name in set(names) - self._ready:
            dataset[name].set_auto_maskandscale(False)
            _fit_chunk_cache(dataset[name])
            self._ready.add(name)
        try:
            return {name: dataset[name][frame.number] for name in names}
        except (OSError, RuntimeError, IndexError) as error:
            message = f"{frame.path}: frame {frame.number} cannot be read ({error})"
            raise PlumecastError(message) from error


def find_files(paths: Paths) -> list[Path]:
    """The wrfout files of one fire, sorted by name."""
    if not isinstance(paths, str | Path):
        found = [Path(path) for path in paths]
    elif Path(paths).is_dir():
        found = sorted(Path(paths).glob("wrfout*"))
    elif Path(paths).exists():
        found = [Path(paths)]
    else:
        pattern = Path(paths)
        found = sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
    if not found:
        raise PlumecastError(f"{paths}: no wrfout* files here; give a directory, glob or file")
    for path in found:
        if not path.is_file():
            raise PlumecastError(f"{path}: not a file; give each fire its own directory or glob")
    return found


def index_file(path: Path, reader: FrameReader) -> FileIndex:
    """Domain, fire grid and output times of one file; only `Times` is read."""
    dataset = reader.open(path)
    checks.require(dataset, path, ["Times"])
    text = dataset["Times"][:].tobytes().decode("ascii", "replace")
    width = dataset["Times"].shape[1]
    times = [text[i : i + width].strip("\0 ") for i in range(0, len(text), width)]
    size = {name: len(dim) for name, dim in dataset.dimensions.items()}
    attributes = dataset.__dict__
    start = attributes.get(
        "SIMULATION_START_DATE", attributes.get("START_DATE", (times or [""])[0])
    )
    named = re.findall(r"_d(\d\d)", path.name) or ["1"]
    return FileIndex(
        path=path,
        domain=int(attributes.get("GRID_ID", named[0])),
        refinement=size.get("west_east_subgrid", 0) // (size.get("west_east", 0) + 1),
        start=str(start),
        frames=tuple(
            Frame(_seconds(time, path) - _seconds(start, path), path, number)
            for number, time in enumerate(times)
        ),
    )


def choose_domain(files: Sequence[FileIndex], domain: int | str | None) -> list[FileIndex]:
    """The files of one domain; by default the one with the finest fire grid, then the innermost."""
    domains = {file.domain: file.refinement for file in files}
    wanted = max(domains, key=lambda number: (domains[number], number))
    if domain is not None:
        stated = re.fullmatch(r"d?(\d+)", str(domain))
        if not stated:
            raise PlumecastError(f'domain={domain!r}; give e.g. 2 or "d02"')
        wanted = int(stated[1])
    names = ", ".join(f"d{number:02d}" for number in sorted(domains))
    where = files[0].path
    if wanted not in domains:
        raise PlumecastError(f"{where.parent}: no files of d{wanted:02d}; found {names}")
    if domains[wanted] == 0:
        raise PlumecastError(f"{where}: no fire grid (dimension west_east_subgrid) in {names}")
    chosen = [file for file in files if file.domain == wanted]
    for file in chosen:
        if file.start != chosen[0].start:
            raise PlumecastError(
                f"{file.path}: simulation starts {file.start}, that of {chosen[0].path.name} "
                f"{chosen[0].start}; give each fire its own directory or glob"
            )
    return chosen


def merge_overlaps(
    frames: Sequence[Frame], reader: FrameReader, names: Sequence[str]
) -> list[Frame]:
    """Frames in time order, each time once.

    A time stored twice (restarts that overlap, a file given twice) is kept once where every named
    variable is identical, and refused where any differs.
    """
    ordered = sorted(frames, key=lambda frame: (frame.seconds, frame.path, frame.number))
    kept = ordered[:1]
    for frame in ordered[1:]:
        if frame.seconds > kept[-1].seconds:
            kept.append(frame)
            continue
        one, two = reader.read(kept[-1], names), reader.read(frame, names)
        differ = [name for name in names if not np.array_equal(one[name], two[name], True)]
        if differ:
            raise PlumecastError(
                f"{frame.path}: {frame.seconds / 3600:g} h is stored twice, with other "
                f"{', '.join(differ)} in {kept[-1].path.name}; remove what a restart superseded"
            )
    return kept


def thin(frames: Sequence[Frame], every: float | None) -> list[Frame]:
    """The frame nearest each multiple of `every` seconds after the first, within a tenth of it."""
    if every is None or len(frames) < 2:
        return list(frames)
    seconds = np.array([frame.seconds for frame in frames])
    spacing = float(np.diff(seconds).min())
    if every < (1 - _NEAR) * spacing:
        raise PlumecastError(
            f"{frames[0].path}: every={every / 3600:g} h is finer than the frames' "
            f"{spacing / 3600:g} h"
        )
    targets = np.arange(seconds[0], seconds[-1] + _NEAR * every, every)
    nearest = np.abs(seconds - targets[:, None]).argmin(axis=1)
    close = np.abs(seconds[nearest] - targets) <= _NEAR * every
    return [frames[number] for number in nearest[close]]


def _fit_chunk_cache(variable: Any) -> None:
    """Hold one row of chunks, so that none is decompressed twice and none outlives its frames."""
    chunks = variable.chunking()
    if isinstance(chunks, list):
        padded = [-(-n // c) * c for n, c in zip(variable.shape[1:], chunks[1:], strict=True)]
        size = variable.dtype.itemsize * chunks[0] * int(np.prod(padded))
        variable.set_var_chunk_cache(size=min(size, _MOST_CACHE))


def _seconds(time: str, path: Path) -> float:
    try:
        stamp = np.array(time.replace("_", "T"), dtype="datetime64[s]")
        if not np.isnat(stamp):
            return float(stamp.astype(np.int64))
    except ValueError:
        pass
    raise PlumecastError(f"{path}: unreadable time {time!r}; was the run cut short?")


def _interval(every: str | float | None) -> float | None:
    """Seconds of "6h", "30min", "1d" or a number of hours."""
    if every is None:
        return None
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*(s|min|h|d)?\s*", str(every))
    if not found or float(found[1]) <= 0:
        raise PlumecastError(f'every={every!r}; give e.g. "6h", "30min", "1d" or hours')
    return float(found[1]) * _SECONDS[found[2] or "h"]


# -- one frame


@dataclass(frozen=True, slots=True)
class Layout:
    """The smoke grid (ny, nx) of dx × dy metres; each cell holds refine_y × refine_x fire cells."""

    ny: int
    nx: int
    refine_y: int
    refine_x: int
    dx: float
    dy: float

    @property
    def fire_cell_acres(self) -> float:
        """Area of one fire cell, acres."""
        return self.dx * self.dy / (self.refine_x * self.refine_y) / M2_PER_ACRE

    def cut_padding(self, fire_field: Array) -> Array:
        """The valid n·sr of the (n + 1)·sr rows and columns that WRF stores."""
        return fire_field[: self.ny * self.refine_y, : self.nx * self.refine_x]

    def to_smoke_grid(self, fire_field: Array, aggregate: str) -> Array:
        """Mean or maximum over the fire cells of each smoke cell."""
        block = regrid.block_mean if aggregate == "mean" else regrid.block_max
        return block(fire_field, self.refine_y, self.refine_x)


class FireState(NamedTuple):
    """The fire at one time, on the fire grid."""

    seconds: float
    level: Array  # LFN
    burned: Array  # LFN < 0
    arrival: Array  # s since the simulation's start; meaningless where unburned


def fire_age(state: FireState) -> Array:
    """max(t − arrival, 0) where burned, else 0, hours; a cell just lit may lie in the future."""
    age = np.zeros(state.level.shape, dtype=state.arrival.dtype)
    age[state.burned] = np.maximum(state.seconds - state.arrival[state.burned], 0.0) / 3600.0
    return age


def advance_arrival(before: FireState | None, level: Array, seconds: float) -> Array:
    """Arrival times from LFN alone: where it crosses zero between two frames, linear in time.

    t = t₀ + (t₁ − t₀) L₀ / (L₀ − L₁) for cells with L₀ ≥ 0 > L₁; t₁ where nothing came before;
    ∞ where unburned. Once set, an arrival stays.
    """
    if before is None:
        return np.where(level < 0, seconds, np.inf)
    new = (level < 0) & np.isinf(before.arrival)
    arrival = before.arrival.copy()
    ahead = np.maximum(before.level[new], 0.0).astype(np.float64)
    share = ahead / (ahead - level[new])
    arrival[new] = before.seconds + (seconds - before.seconds) * share
    return arrival


def smoke_column(fields: Mapping[str, Array], smoke: str, unit: str) -> tuple[Array, Array]:
    """Column-mean concentration (ny, nx), µg m⁻³, and the column's depth (ny, nx), m.

    Layer depths are differences of (PH + PHB)/g; a mixing ratio is multiplied by the air density
    p/(R Tₐ) with p = P + PB and θ = T + 300 K. Negative values are set to 0. Layer depths, small
    differences of large numbers, take float64; the rest keeps the file's float32, good to 1e-6.
    """
    mass, per = unit.split("/")
    height = np.add(fields["PH"], fields["PHB"], dtype=np.float64) / GRAVITY
    with np.errstate(all="ignore"):  # unwritten columns are refused by the caller
        amount = np.maximum(fields[smoke], 0.0) * _MICROGRAMS[mass]
        if per == "kg":
            pressure = fields["P"] + fields["PB"]
            temperature = actual_temperature(fields["T"] + _THETA_BASE, pressure)
            amount = mass_concentration(amount, pressure, temperature)
        return column_mean(amount, np.diff(height, axis=0)), height[-1] - height[0]


def known_unit(label: str) -> str | None:
    """ "g_smoke/kg_air" → "g/kg", "ug m^-3" → "ug/m3"; None where the label is no such unit."""
    found = _UNIT.fullmatch(label.strip().lower().replace("µ", "u").replace("μ", "u"))
    return f"{found[1]}/{found[2] or 'm3'}" if found else None


def smoke_unit_of(dataset: netCDF4.Dataset, path: Path, options: _Options) -> str:
    """The stated unit, else the table's where the file's own label does not contradict it."""
    name, stated = options.smoke, options.smoke_unit
    if stated is not None:
        unit = known_unit(stated)
        if unit is None:
            raise PlumecastError(f"smoke_unit={stated!r}; give e.g. g/kg, ug/kg or ug/m3")
        return unit
    if name not in SMOKE_VARIABLES:
        known = ", ".join(f"{key} {value[0]}" for key, value in SMOKE_VARIABLES.items())
        raise PlumecastError(
            f"{path}: the unit of {name} is unknown; state smoke_unit (known: {known})"
        )
    unit, labels = SMOKE_VARIABLES[name]
    label = str(getattr(dataset[name], "units", "")).strip()
    if label and known_unit(label) != unit and label.lower() not in labels:
        raise PlumecastError(f"{path}: {name} is labelled {label!r}, not {unit}; state smoke_unit")
    return unit


# -- one fire


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    smoke: str = "fire_smoke"
    smoke_unit: str | None = None
    every: str | float | None = None
    domain: int | str | None = None
    aggregate: str = "mean"
    floor: float = SMOKE_FLOOR

    def __post_init__(self) -> None:
        if self.aggregate not in regrid.AGGREGATES:
            raise PlumecastError(f"aggregate={self.aggregate!r}; choose one of {regrid.AGGREGATES}")


@dataclass(frozen=True, slots=True)
class _Run:
    """All that is known of a fire before its frames are read."""

    names: list[str]
    frames: list[Frame]
    kept: list[Frame]
    layout: Layout
    unit: str
    attributes: Mapping[str, Any]
    latlon: tuple[Array, Array] | None
    options: _Options


class _Row(NamedTuple):
    """What one frame leaves behind; the fields are on the smoke grid."""

    summary: checks.FrameSummary
    age: Array
    smoke: Array
    earliest: float  # arrival of the burned cells, s


def _read_fire(
    paths: Paths, options: _Options, *, fire: tuple[str, str, str]
) -> tuple[xr.Dataset, tuple[checks.Finding, ...]]:
    """Snapshots and findings of one fire; `fire` = (fire_id, ignition_id, drought)."""
    with closing(FrameReader()) as reader:
        run = _prepare(paths, options, reader)
        rows = list(_read_rows(run, reader))
    findings = checks.check_fire(
        [row.summary for row in rows],
        floor=options.floor,
        step=_interval(options.every),
        version=checks.wrf_version(str(run.attributes.get("TITLE", ""))),
    )
    burning = [row for row in rows if row.summary.burned_cells]
    if not burning:
        raise PlumecastError(f"{run.kept[-1].path}: no cell burns in {len(rows)} frames")
    return _to_dataset(run, burning, fire=fire, findings=findings), findings


def _prepare(paths: Paths, options: _Options, reader: FrameReader) -> _Run:
    """Find and order the frames, and read what does not change in time."""
    indexed = [index_file(path, reader) for path in find_files(paths)]
    files = [file for file in choose_domain(indexed, options.domain) if file.frames]
    if not files:
        raise PlumecastError(f"{indexed[0].path}: no frames in it; was the run cut short?")
    path = files[0].path
    dataset = reader.open(path)
    checks.require(dataset, path, ["LFN", options.smoke])
    unit = smoke_unit_of(dataset, path, options)
    names = ["LFN", *(["TIGN_G"] if "TIGN_G" in dataset.variables else []), options.smoke]
    names += ["PH", "PHB", *(["P", "PB", "T"] if unit.endswith("/kg") else [])]
    layout, attributes = _layout(dataset, path), dict(dataset.__dict__)
    latlon = _latlon(dataset, path)
    frames = merge_overlaps([frame for file in files for frame in file.frames], reader, names)
    return _Run(
        names=names,
        frames=frames,
        kept=thin(frames, _interval(options.every)),
        layout=layout,
        unit=unit,
        attributes=attributes,
        latlon=latlon,
        options=options,
    )


def _layout(dataset: netCDF4.Dataset, path: Path) -> Layout:
    """Sizes; the refinement is in no attribute, it is subgrid length / staggered length."""
    size = {name: len(dim) for name, dim in dataset.dimensions.items()}
    ny, nx = size["south_north"], size["west_east"]
    fire = (size["south_north_subgrid"], size["west_east_subgrid"])
    if fire[0] % (ny + 1) or fire[1] % (nx + 1):
        raise PlumecastError(f"{path}: fire grid {fire} is no multiple of {(ny + 1, nx + 1)}")
    spacing = float(dataset.DX), float(dataset.DY)
    return Layout(ny, nx, fire[0] // (ny + 1), fire[1] // (nx + 1), *spacing)


def _read_rows(run: _Run, reader: FrameReader) -> Iterator[_Row]:
    """Go through the frames once; only a run without TIGN_G needs the level set of all of them."""
    has_arrival = "TIGN_G" in run.names
    before: FireState | None = None
    total = np.zeros((run.layout.ny, run.layout.nx))
    kept = set(run.kept)
    for frame in run.kept if has_arrival else run.frames:
        fields = reader.read(frame, run.names if frame in kept else ["LFN"])
        level = run.layout.cut_padding(fields["LFN"])
        if not (level.min() > -_UNWRITTEN and level.max() < _UNWRITTEN):
            raise PlumecastError(f"{frame.path}: NaN or unwritten LFN in frame {frame.number}")
        arrival = (
            run.layout.cut_padding(fields["TIGN_G"])
            if has_arrival
            else advance_arrival(before, level, frame.seconds)
        )
        state = FireState(frame.seconds, level, level < 0, arrival)
        if frame in kept:
            column, mass = _checked_column(run, frame, fields)
            total = total + column
            summary = _summary(state, before, column=column, mass=mass)
            yield _row(run, state, summary=summary, total=total)
        before = state


def _checked_column(run: _Run, frame: Frame, fields: Mapping[str, Array]) -> tuple[Array, float]:
    """Column mean, µg m⁻³, and smoke mass in the domain, kg; every column must be finite."""
    column, depth = smoke_column(fields, run.options.smoke, run.unit)
    bad = ~(np.abs(column) < _UNWRITTEN)
    if bad.any():
        raise PlumecastError(
            f"{frame.path}: {int(bad.sum())} columns are NaN or unwritten in frame {frame.number}; "
            f"look at {', '.join(name for name in run.names if name not in ('LFN', 'TIGN_G'))}"
        )
    return column, float((column * depth).sum() * run.layout.dx * run.layout.dy * 1e-9)


def _summary(
    state: FireState, before: FireState | None, *, column: Array, mass: float
) -> checks.FrameSummary:
    lost = moved = 0
    if before is not None:
        both = before.burned & state.burned
        lost = int(np.count_nonzero(before.burned)) - int(np.count_nonzero(both))
        shift = np.abs(state.arrival[both] - before.arrival[both])
        moved = int(np.count_nonzero(shift > checks.MOVED_SECONDS))
    return checks.FrameSummary(
        seconds=state.seconds,
        burned_cells=int(np.count_nonzero(state.burned)),
        lost_cells=lost,
        moved_cells=moved,
        smoke_mass=mass,
        peak=float(column.max()),
        edge_share=checks.edge_share(column),
    )


def _row(run: _Run, state: FireState, *, summary: checks.FrameSummary, total: Array) -> _Row:
    age = run.layout.to_smoke_grid(fire_age(state), run.options.aggregate)
    smoke = np.where(total < run.options.floor, 0.0, total)
    earliest = float(state.arrival[state.burned].min(initial=np.inf))
    return _Row(summary, age.astype(np.float32), smoke.astype(np.float32), earliest)


# -- labels


def _to_dataset(
    run: _Run,
    rows: Sequence[_Row],
    *,
    fire: tuple[str, str, str],
    findings: tuple[checks.Finding, ...],
) -> xr.Dataset:
    ignition = min(row.earliest for row in rows)
    seconds = np.array([row.summary.seconds for row in rows])
    cells = np.array([row.summary.burned_cells for row in rows])
    columns = {
        **{
            name: np.full(len(rows), label)
            for name, label in zip(("fire_id", "ignition_id", "drought"), fire, strict=True)
        },
        "hours": np.maximum(seconds - ignition, 0.0) / 3600.0,
        "burned_area": cells * run.layout.fire_cell_acres,
        "is_final": np.arange(len(rows)) == len(rows) - 1,
    }
    place = georeference(run.layout, run.attributes, run.latlon)
    mapping = {"grid_mapping": "crs"} if "crs" in place else {}
    fields = {FIRE: [row.age for row in rows], SMOKE: [row.smoke for row in rows]}
    return xr.Dataset(
        {
            name: ((SNAPSHOT, "y", "x"), np.stack(values), {**TABLE[name].attrs, **mapping})
            for name, values in fields.items()
        },
        coords={
            **{name: (SNAPSHOT, values, TABLE[name].attrs) for name, values in columns.items()},
            **place,
        },
        attrs={
            "Conventions": "CF-1.11",
            "source": str(run.attributes.get("TITLE", "WRF")).strip(),
            "plumecast_version": __version__,
            "settings": json.dumps({**asdict(run.options), "smoke_unit": run.unit}),
            "smoke_floor": run.options.floor,
            "quality": "; ".join(map(str, findings)) or "passed",
        },
    )


def _latlon(dataset: netCDF4.Dataset, path: Path) -> tuple[Array, Array] | None:
    """XLAT, XLONG (ny, nx) of a real domain; idealised runs (MAP_PROJ 0) hold metres there."""
    if int(getattr(dataset, "MAP_PROJ", 0)) == 0:
        return None
    checks.require(dataset, path, ["XLAT", "XLONG"])
    return np.asarray(dataset["XLAT"][0]), np.asarray(dataset["XLONG"][0])


def georeference(
    layout: Layout, attributes: Mapping[str, Any], latlon: tuple[Array, Array] | None
) -> dict[str, Any]:
    """Coordinates x, y (cell centres, m) and, for real domains, lat, lon and the grid mapping.

    Idealised domains, and projections without a plane in metres, have their corner at x = y = 0.
    """
    out: dict[str, Any] = {}
    left = bottom = 0.0
    if latlon is not None:
        lat, lon = latlon
        mapping, (x, y) = regrid.map_plane(attributes, float(lat[0, 0]), float(lon[0, 0]))
        out = {"lat": (("y", "x"), lat, TABLE["lat"].attrs)}
        out["lon"] = (("y", "x"), lon, TABLE["lon"].attrs)
        if mapping:
            left, bottom = x - layout.dx / 2, y - layout.dy / 2
            out["crs"] = ((), 0, mapping)
    grid = regrid.Grid(left, bottom, layout.dx, layout.dy, layout.nx, layout.ny)
    out["y"] = ("y", grid.y, TABLE["y"].attrs)
    out["x"] = ("x", grid.x, TABLE["x"].attrs)
    return out


# -- many fires


class _Job(NamedTuple):
    paths: str | Path
    options: _Options
    fire: tuple[str, str, str]
    clash: str | None


def _read_job(job: _Job) -> FireResult:
    name = job.fire[0]
    if job.clash:
        return FireResult(name, job.clash, ())
    try:
        return FireResult(name, *_read_fire(job.paths, job.options, fire=job.fire))
    except PlumecastError as error:
        return FireResult(name, str(error), ())
    except Exception as error:  # one fire's surprise must not cost the others
        return FireResult(name, f"{job.paths}: {type(error).__name__}: {error}", ())


def _in_order(jobs: Sequence[_Job], workers: int) -> Iterator[FireResult]:
    """Results in the jobs' order; a worker holds one job, so one that dies names its fire."""
    if workers <= 1:
        yield from map(_read_job, jobs)
        return
    context = multiprocessing.get_context("spawn")
    slots = [ProcessPoolExecutor(1, mp_context=context) for _ in jobs[:workers]]
    try:
        running = [slot.submit(_read_job, job) for slot, job in zip(slots, jobs, strict=False)]
        for number, job in enumerate(jobs):
            slot = number % len(slots)
            try:
                result = running[slot].result()
            except BrokenProcessPool:
                message = f"{job.paths}: its reading process died (out of memory?)"
                result = FireResult(job.fire[0], message, ())
                slots[slot] = ProcessPoolExecutor(1, mp_context=context)
            if number + len(slots) < len(jobs):
                running[slot] = slots[slot].submit(_read_job, jobs[number + len(slots)])
            yield result
    finally:
        for executor in slots:
            executor.shutdown(cancel_futures=True)
