"""Read one fire frame by frame; each frame gives one snapshot on the smoke grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import netCDF4
import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.base.findings import Finding
from plumecast.base.paths import Paths
from plumecast.compute.arrays import Array
from plumecast.sources import regrid
from plumecast.sources.wrf import checks, files
from plumecast.sources.wrf.files import Frame, FrameReader, NameMismatch
from plumecast.sources.wrf.frame import (
    FILL_VALUE_LIMIT,
    FireState,
    Layout,
    LevelSet,
    advance_arrival,
    changed_cells,
    domain_wind,
    fire_age,
    smoke_column,
)
from plumecast.sources.wrf.integrity import require_variables
from plumecast.sources.wrf.thinning import interval_seconds, thin
from plumecast.sources.wrf.units import smoke_unit

SMOKE_FLOOR = 1e-3
"""Cumulative smoke below this value, µg m⁻³, is numerical diffusion and is set to 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of `read_wrf`, which explains them."""

    smoke: str = "fire_smoke"
    smoke_unit: str | None = None
    every: str | float | None = None
    domain: int | str | None = None
    aggregate: str = "mean"
    floor: float = SMOKE_FLOOR

    def __post_init__(self) -> None:
        if self.aggregate not in regrid.AGGREGATES:
            raise PlumecastError(regrid.unknown_aggregate(self.aggregate))
        if not self.floor >= 0.0:
            raise PlumecastError(f"floor={self.floor} must be ≥ 0 µg m⁻³")
        if self.smoke_unit is not None:
            smoke_unit(self.smoke, "", self.smoke_unit)
        interval_seconds(self.every)


@dataclass(frozen=True, slots=True)
class Run:
    """Properties of a run that do not change with time, and its frames."""

    names: list[str]  # variables to read
    frames: list[Frame]
    kept: list[Frame]  # frames at the checkpoints
    layout: Layout
    unit: str  # of the smoke
    attributes: Mapping[str, Any]
    latlon: tuple[Array, Array] | None  # degrees; None for idealised runs
    has_wind: bool  # whether U10 and V10 were written
    options: Options


class FrameResult(NamedTuple):
    """Snapshot of one frame on the smoke grid."""

    summary: checks.FrameSummary
    age: Array  # time since ignition, h
    smoke: Array  # cumulative, µg m⁻³
    earliest: float  # arrival time of any burned cell, s
    wind: tuple[float, float] | None = None  # at 10 m, domain mean towards +x and +y, m s⁻¹


class WrfFire(NamedTuple):
    """Result of reading a fire: its burning frames and the findings of the checks."""

    run: Run
    frames: list[FrameResult]
    findings: tuple[Finding, ...]


def read_fire(paths: Paths, options: Options) -> WrfFire:
    """Read the frames of one fire and check them."""
    found = files.find_files(paths)
    with closing(FrameReader()) as reader:
        try:
            run = prepare(found, options, reader, by_names=True)
            frames = list(read_frames(run, reader))
        except NameMismatch:
            run = prepare(found, options, reader, by_names=False)
            frames = list(read_frames(run, reader))
    findings = checks.check_fire(
        [frame.summary for frame in frames],
        floor=options.floor,
        step=interval_seconds(options.every),
        version=checks.wrf_version(str(run.attributes.get("TITLE", ""))),
        has_arrival="TIGN_G" in run.names,
    )
    burning = [frame for frame in frames if frame.summary.burned_cells]
    if not burning:
        raise PlumecastError(
            f"{run.kept[-1].path}: no cell burns in {len(frames)} frames; was the fire ignited?"
        )
    return WrfFire(run, burning, findings)


def prepare(paths: list[Path], options: Options, reader: FrameReader, *, by_names: bool) -> Run:
    """Find and sort the frames, and read what does not change with time.

    `by_names` allows the frames to be found from the file names, without opening every file.
    """
    reader.expect([])
    indexed = files.index_by_names(paths, reader) if by_names else None
    indexed = indexed or files.index_files(paths, reader)
    chosen = [file for file in files.choose_domain(indexed, options.domain) if file.frames]
    if not chosen:
        raise PlumecastError(f"{indexed[0].path}: it contains no frames; did the run stop early?")
    path = chosen[0].path
    dataset = reader.open(path)
    names, unit = _required_variables(dataset, path, options)
    layout, attributes = _layout(dataset, path), dict(dataset.__dict__)
    latlon, has_wind = _latlon(dataset, path), _has_wind(dataset)
    frames = files.merge_overlaps(
        [frame for file in chosen for frame in file.frames], reader, names
    )
    return Run(
        names=names,
        frames=frames,
        kept=thin(frames, interval_seconds(options.every)),
        layout=layout,
        unit=unit,
        attributes=attributes,
        latlon=latlon,
        has_wind=has_wind,
        options=options,
    )


def _required_variables(
    dataset: netCDF4.Dataset, path: Path, options: Options
) -> tuple[list[str], str]:
    """Names of the variables to read, and the unit of the smoke."""
    require_variables(dataset, path, ["LFN", options.smoke])
    label = str(getattr(dataset[options.smoke], "units", "")).strip()
    try:
        unit = smoke_unit(options.smoke, label, options.smoke_unit)
    except PlumecastError as error:
        raise PlumecastError(f"{path}: {error}") from None
    names = ["LFN", *(["TIGN_G"] if "TIGN_G" in dataset.variables else []), options.smoke]
    names += ["PH", "PHB", *(["P", "PB", "T"] if unit.endswith("/kg") else [])]
    require_variables(dataset, path, names)
    for name in names:
        found, expected = dataset[name].dimensions, _dims(name)
        if found != expected:
            raise PlumecastError(f"{path}: {name} has dimensions {found}, expected {expected}")
    return names, unit


def _dims(name: str) -> tuple[str, ...]:
    """Dimensions of a WRF variable: on the fire grid, on layer faces, or in layers."""
    if name in ("LFN", "TIGN_G"):
        return ("Time", "south_north_subgrid", "west_east_subgrid")
    layers = "bottom_top_stag" if name in ("PH", "PHB") else "bottom_top"
    return ("Time", layers, "south_north", "west_east")


def _has_wind(dataset: netCDF4.Dataset) -> bool:
    """Whether the file has U10 and V10; they are on the smoke grid, not on its faces."""
    dims = ("Time", "south_north", "west_east")
    return all(
        name in dataset.variables and dataset[name].dimensions == dims for name in ("U10", "V10")
    )


def _layout(dataset: netCDF4.Dataset, path: Path) -> Layout:
    """Sizes of both grids; no attribute has the refinement, subgrid length / staggered length."""
    size = {name: len(dim) for name, dim in dataset.dimensions.items()}
    ny, nx = size["south_north"], size["west_east"]
    fire = (size["south_north_subgrid"], size["west_east_subgrid"])
    if fire[0] % (ny + 1) or fire[1] % (nx + 1):
        raise PlumecastError(
            f"{path}: fire grid {fire} is no multiple of {(ny + 1, nx + 1)}, the staggered grid; "
            "is it WRF-Fire output?"
        )
    spacing = float(dataset.DX), float(dataset.DY)
    return Layout(ny, nx, fire[0] // (ny + 1), fire[1] // (nx + 1), *spacing)


def _latlon(dataset: netCDF4.Dataset, path: Path) -> tuple[Array, Array] | None:
    """XLAT, XLONG (ny, nx) of a real domain; in idealised runs (MAP_PROJ 0) they are metres."""
    if int(getattr(dataset, "MAP_PROJ", 0)) == 0:
        return None
    require_variables(dataset, path, ["XLAT", "XLONG"])
    return np.asarray(dataset["XLAT"][0]), np.asarray(dataset["XLONG"][0])


def read_frames(run: Run, reader: FrameReader) -> Iterator[FrameResult]:
    """Results of the kept frames, in one pass.

    A run without TIGN_G also needs the level set of the frames in between.
    """
    has_arrival = "TIGN_G" in run.names
    level_set: LevelSet | None = None
    before: FireState | None = None
    total = np.zeros((run.layout.ny, run.layout.nx))
    kept = set(run.kept)
    for frame in run.kept if has_arrival else run.frames:
        if has_arrival:
            state = _fire_state(run, frame, reader)
        else:
            level = _level(run, frame, reader)
            level_set = advance_arrival(level_set, level, frame.seconds)
            state = FireState(frame.seconds, level < 0, level_set.arrival[level < 0])
        if frame in kept:
            column, mass, extremes = _checked_column(run, frame, reader)
            total = total + column
            summary = _summary(state, before, column=column, mass=mass, extremes=extremes)
            result = _frame_result(run, state, summary=summary, total=total)
            yield result._replace(wind=_wind(run, frame, reader))
        before = state


def _level(run: Run, frame: Frame, reader: FrameReader) -> Array:
    """LFN without its padding; raises if it was not written."""
    level = run.layout.cut_padding(reader.read(frame, "LFN"))
    if not (level.min() > -FILL_VALUE_LIMIT and level.max() < FILL_VALUE_LIMIT):
        raise PlumecastError(
            f"{frame.path}: NaN or unwritten LFN in frame {frame.number}; did the run stop early?"
        )
    return level


def _fire_state(run: Run, frame: Frame, reader: FrameReader) -> FireState:
    """Burned cells and their TIGN_G; the two large fields are released, which limits memory."""
    burned = _level(run, frame, reader) < 0
    arrival = run.layout.cut_padding(reader.read(frame, "TIGN_G"))[burned]
    return FireState(frame.seconds, burned, arrival)


def _checked_column(
    run: Run, frame: Frame, reader: FrameReader
) -> tuple[Array, float, tuple[float, float]]:
    """Column mean in µg m⁻³, smoke mass of the domain in kg, extremes of the smoke variable.

    Raises if a column is not finite.
    """
    extremes = (0.0, 0.0)

    def read(name: str) -> Array:
        nonlocal extremes
        values = reader.read(frame, name)
        if name == run.options.smoke:
            extremes = float(values.min()), float(values.max())
        return values

    column, depth = smoke_column(read, run.options.smoke, run.unit)
    bad = ~(np.abs(column) < FILL_VALUE_LIMIT)
    if bad.any():
        raise PlumecastError(
            f"{frame.path}: {int(bad.sum())} columns are NaN or unwritten in frame {frame.number}; "
            f"check {', '.join(name for name in run.names if name not in ('LFN', 'TIGN_G'))}"
        )
    mass = float((column * depth).sum() * run.layout.dx * run.layout.dy * 1e-9)
    return column, mass, extremes


def _wind(run: Run, frame: Frame, reader: FrameReader) -> tuple[float, float] | None:
    if not run.has_wind:
        return None
    return domain_wind(reader.read(frame, "U10"), reader.read(frame, "V10"))


def _summary(
    state: FireState,
    before: FireState | None,
    *,
    column: Array,
    mass: float,
    extremes: tuple[float, float],
) -> checks.FrameSummary:
    lost, moved = changed_cells(before, state, checks.ARRIVAL_TOLERANCE) if before else (0, 0)
    return checks.FrameSummary(
        seconds=state.seconds,
        burned_cells=int(np.count_nonzero(state.burned)),
        lost_cells=lost,
        moved_cells=moved,
        smoke_mass=mass,
        peak=float(column.max()),
        edge_share=checks.edge_share(column),
        lowest=extremes[0],
        highest=extremes[1],
    )


def _frame_result(
    run: Run, state: FireState, *, summary: checks.FrameSummary, total: Array
) -> FrameResult:
    age = run.layout.to_smoke_grid(fire_age(state), run.options.aggregate)
    smoke = np.where(total < run.options.floor, 0.0, total)
    earliest = float(state.arrival.min(initial=np.inf))
    return FrameResult(summary, age.astype(np.float32), smoke.astype(np.float32), earliest)
