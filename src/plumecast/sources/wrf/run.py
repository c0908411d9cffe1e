"""Read one fire frame by frame; each frame gives one snapshot on the smoke grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import netCDF4
import numpy as np
import xarray as xr

from plumecast.base.checkpoints import equal_interval, typical_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import Finding
from plumecast.base.names import SURFACE_SMOKE, tracer_output
from plumecast.base.paths import Paths
from plumecast.compute.arrays import Array
from plumecast.sources.wrf import checks, files
from plumecast.sources.wrf.files import Frame, FrameReader, NameMismatch, thin
from plumecast.sources.wrf.frame import (
    Amount,
    Columns,
    FireState,
    Layout,
    LevelSet,
    advance_arrival,
    changed_cells,
    domain_wind,
    fire_age,
    map_plane,
    smoke_columns,
)
from plumecast.sources.wrf.integrity import (
    RANGES,
    check_air,
    check_arrival,
    check_plausible,
    check_values,
    check_variable,
    damage_reported,
    dimensions_of,
    number_attribute,
    read_layout,
    require_variables,
    smoke_range,
)
from plumecast.sources.wrf.options import WrfOptions, interval_seconds, smoke_unit, tracer_unit
from plumecast.sources.wrf.profile import (
    FrameProfile,
    read_frame_profile,
    weather_frames,
    weather_of,
    weather_variables,
)


@dataclass(frozen=True, slots=True)
class Run:
    """Properties of a run that do not change with time, and its frames."""

    names: list[str]  # variables to read
    start: str  # time stamp of the start of the simulation
    frames: list[Frame]
    kept: list[Frame]  # frames at the checkpoints
    layout: Layout
    units: dict[str, str]  # of the smoke and the tracers, by variable; the smoke first
    attributes: Mapping[str, Any]
    latlon: tuple[Array, Array] | None  # degrees; None for idealised runs
    air: frozenset[str]  # variables of the ambient weather that were written
    fuel: Array | None  # load (ny, nx) kg m⁻²; None if the files do not have it
    options: WrfOptions

    @property
    def gaps(self) -> list[float]:
        """Hours between the kept frames."""
        seconds = [frame.seconds for frame in self.kept]
        return [(b - a) / 3600.0 for a, b in pairwise(seconds)]

    @property
    def is_even(self) -> bool:
        """Whether the kept frames are equally far apart, to a tenth."""
        return len(self.kept) < 2 or equal_interval(self.gaps) is not None

    @property
    def interval(self) -> float | None:
        """Hours Δ between the kept frames; their median if they differ. None of a single frame."""
        return typical_interval(self.gaps)

    def weights(self) -> dict[Frame, float]:
        """What the kept frames count in the sum of smoke (`compute.dose`)."""
        interval = self.interval
        if interval is None or self.is_even:
            return dict.fromkeys(self.kept, 1.0)
        shares = [1.0, *(gap / interval for gap in self.gaps)]
        return dict(zip(self.kept, shares, strict=True))

    def further(self, amounts: Mapping[str, Amount]) -> dict[str, Array]:
        """The further outputs of a frame by name: lowest layer, and tracers."""
        own = {SURFACE_SMOKE: amounts[self.options.smoke].lowest} if self.options.surface else {}
        for name in self.units:
            if name != self.options.smoke:
                own[tracer_output(name)] = amounts[name].mean
                if self.options.surface:
                    own[tracer_output(name, surface=True)] = amounts[name].lowest
        return own


class FrameResult(NamedTuple):
    """Snapshot of one frame on the smoke grid."""

    summary: checks.FrameSummary
    age: Array  # time since ignition, h
    smoke: Array  # cumulative, µg m⁻³
    further: dict[str, Array]  # further outputs by name, cumulative, µg m⁻³
    earliest: float  # arrival time of any burned cell, s
    wind: tuple[float, float] | None = None  # at 10 m, domain mean towards +x and +y, m s⁻¹


class Total(NamedTuple):
    """Sum over the cells of the column-mean smoke of one frame, µg m⁻³."""

    seconds: float
    smoke: float


class WrfFire(NamedTuple):
    """Result of reading a fire: its burning frames, weather, and the findings of the checks."""

    run: Run
    frames: list[FrameResult]
    findings: tuple[Finding, ...]
    weather: xr.Dataset | None = None  # hourly since ignition; None if it is not known
    totals: tuple[Total, ...] = ()  # of all frames, also of those that are no checkpoints
    last: FireState | None = None  # of the last frame

    @property
    def ignition(self) -> float:
        """Earliest arrival of any burned cell, s since the start of the simulation."""
        return min(frame.earliest for frame in self.frames)


def read_fire(paths: Paths, options: WrfOptions, *, columns: str = "median") -> WrfFire:
    """Read the frames of one fire and check them; `columns` as for `read_wrf_profile`."""
    found = files.find_files(paths)
    with closing(FrameReader()) as reader:
        try:
            run = prepare(found, options, reader, by_names=True)
            beside = Beside()
            frames = list(read_frames(run, reader, beside, columns))
        except NameMismatch:
            run, beside = prepare(found, options, reader, by_names=False), Beside()
            frames = list(read_frames(run, reader, beside, columns))
    findings = checks.check_fire(
        [frame.summary for frame in frames],
        floor=options.floor,
        step=interval_seconds(options.every),
        version=checks.wrf_version(str(run.attributes.get("TITLE", ""))),
        has_arrival="TIGN_G" in run.names,
    )
    burning = [frame for frame in frames if frame.summary.burned_cells]
    if not burning:
        of = "" if options.every is None else f" of every {options.every}"
        raise PlumecastError(
            f"{run.kept[-1].path}: no cell burns in {len(frames)} frames{of}; was the fire ignited?"
        )
    if (cut := run.frames[-1].seconds - run.kept[-1].seconds) > 0.0:
        text = f"every={options.every} leaves out the last {cut / 3600.0:.3g} h of the run"
        findings = (*findings, Finding("end left out", text))
    fire = WrfFire(run, burning, findings, totals=tuple(beside.totals), last=beside.last)
    weather, problems = weather_of(
        beside.profiles,
        ignition=fire.ignition,
        source=run.frames[0].path.parent,
        columns=columns,
        attributes=run.attributes,
    )
    return fire._replace(weather=weather, findings=findings + problems)


def prepare(paths: list[Path], options: WrfOptions, reader: FrameReader, *, by_names: bool) -> Run:
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
    names, units = _required_variables(dataset, path, options)
    layout = read_layout(dataset, path)
    with damage_reported(path, "an attribute is damaged"):
        attributes = dict(dataset.__dict__)
    latlon = _latlon(dataset, path, reader)
    air, fuel = weather_variables(dataset), _fuel(path, layout, reader)
    frames = files.merge_overlaps(
        [frame for file in chosen for frame in file.frames], reader, names
    )
    return Run(
        names=names,
        start=chosen[0].start,
        frames=frames,
        kept=thin(frames, interval_seconds(options.every)),
        layout=layout,
        units=units,
        attributes=attributes,
        latlon=latlon,
        air=air,
        fuel=fuel,
        options=options,
    )


def _required_variables(
    dataset: netCDF4.Dataset, path: Path, options: WrfOptions
) -> tuple[list[str], dict[str, str]]:
    """Names of the variables to read, and the units of the smoke and the tracers."""
    tracers = options.tracer_units
    require_variables(dataset, path, ["LFN", options.smoke, *tracers])

    def label(name: str) -> str:
        return str(getattr(dataset[name], "units", "")).strip()

    try:
        units = {
            options.smoke: smoke_unit(options.smoke, label(options.smoke), options.smoke_unit),
            **{name: tracer_unit(name, label(name), unit) for name, unit in tracers.items()},
        }
    except PlumecastError as error:
        raise PlumecastError(f"{path}: {error}") from None
    names = ["LFN", *(["TIGN_G"] if "TIGN_G" in dataset.variables else []), *units]
    per_kg = any(not unit.endswith("/m3") for unit in units.values())
    names += ["PH", "PHB", *(["P", "PB", "T"] if per_kg else [])]
    require_variables(dataset, path, names)
    for name in names:
        check_variable(dataset, path, name)
    return names, units


def _latlon(
    dataset: netCDF4.Dataset, path: Path, reader: FrameReader
) -> tuple[Array, Array] | None:
    """XLAT, XLONG (ny, nx) of a real domain; in idealised runs (MAP_PROJ 0) they are metres."""
    projection = number_attribute(dataset, path, "MAP_PROJ", 0.0)
    if projection == 0.0:
        return None
    first = Frame(0.0, path, 0)
    lat, lon = (
        check_plausible(reader.read(first, name), name, str(first)) for name in ("XLAT", "XLONG")
    )
    names = ("TRUELAT1", "TRUELAT2", "STAND_LON", *(["MOAD_CEN_LAT"] if projection == 1 else []))
    numbers = {name: number_attribute(dataset, path, name) for name in names}
    _, place = map_plane({**numbers, "MAP_PROJ": projection}, float(lat[0, 0]), float(lon[0, 0]))
    if not np.isfinite(place).all():
        stated = ", ".join(f"{name}={value:g}" for name, value in numbers.items())
        raise PlumecastError(f"{path}: the map projection has no place for this domain ({stated})")
    return lat, lon


def _fuel(path: Path, layout: Layout, reader: FrameReader) -> Array | None:
    """FGIP, which does not change in time, as fuel load of the smoke cells, if the file has it.

    NFUEL_CAT alone is not enough: the loads of its categories are in the run's namelist.fire.
    """
    variables = reader.open(path).variables
    if "FGIP" not in variables or variables["FGIP"].dimensions != dimensions_of("FGIP"):
        return None
    load = layout.cut_padding(reader.read(Frame(0.0, path, 0), "FGIP")).astype(np.float64)
    likely = (load >= RANGES["FGIP"].lowest) & (load <= RANGES["FGIP"].highest)
    if not (likely.all() and load.any()):
        return None
    return layout.to_smoke_grid(load, "mean").astype(np.float32)


@dataclass(slots=True)
class Beside:
    """What is read of frames in addition to the snapshots."""

    profiles: list[FrameProfile] = field(default_factory=list)  # hourly ambient weather
    totals: list[Total] = field(default_factory=list)
    last: FireState | None = None


def read_frames(
    run: Run, reader: FrameReader, beside: Beside, columns: str
) -> Iterator[FrameResult]:
    """Results of the kept frames, in one pass; `beside` receives what the others tell.

    A run without TIGN_G also needs the level set of the frames in between, the weather a frame of
    every hour, and the dose of smoke the amount in all frames.
    """
    has_arrival = "TIGN_G" in run.names
    level_set: LevelSet | None = None
    before: FireState | None = None
    total = np.zeros((run.layout.ny, run.layout.nx))
    further: dict[str, Array] = {}
    kept, hourly = run.weights(), weather_frames(run.frames, run.kept, run.air)
    for frame in run.frames:
        if frame in hourly:
            beside.profiles.append(_profile(run, frame, reader, columns))
        if frame not in kept:
            amount = _checked_columns(run, frame, reader)[0].amounts[run.options.smoke].mean
            beside.totals.append(Total(frame.seconds, float(amount.sum())))
        if has_arrival and frame not in kept:
            continue
        if has_arrival:
            state = _fire_state(run, frame, reader)
        else:
            level = _level(run, frame, reader)
            level_set = advance_arrival(level_set, level, frame.seconds)
            state = FireState(frame.seconds, level < 0, level_set.arrival[level < 0])
        if frame in kept:
            found, mass, extremes = _checked_columns(run, frame, reader)
            mean = found.amounts[run.options.smoke].mean
            beside.totals.append(Total(frame.seconds, float(mean.sum())))
            weight = kept[frame]
            total = total + weight * mean
            own = run.further(found.amounts)
            further = {
                name: further.get(name, 0.0) + weight * values for name, values in own.items()
            }
            summary = _summary(run, state, before, columns=found, mass=mass, extremes=extremes)
            result = _frame_result(run, state, summary=summary, total=total, further=further)
            yield result._replace(wind=_wind(run, frame, reader))
        before = beside.last = state


def _profile(run: Run, frame: Frame, reader: FrameReader, columns: str) -> FrameProfile:
    """Ambient weather of a frame."""

    def read(name: str) -> Array:
        values = reader.read(frame, name)
        return check_plausible(values, name, str(frame)) if name in RANGES else values

    smoke = run.options.smoke
    return read_frame_profile(read, frame.seconds, run.air, columns=columns, smoke=smoke)


def _level(run: Run, frame: Frame, reader: FrameReader) -> Array:
    """LFN without its padding."""
    level = run.layout.cut_padding(reader.read(frame, "LFN"))
    return check_plausible(level, "LFN", str(frame))


def _fire_state(run: Run, frame: Frame, reader: FrameReader) -> FireState:
    """Burned cells and their TIGN_G; the two large fields are released, which limits memory."""
    burned = _level(run, frame, reader) < 0
    arrival = run.layout.cut_padding(reader.read(frame, "TIGN_G"))[burned]
    check_arrival(arrival, frame.seconds, str(frame))
    return FireState(frame.seconds, burned, arrival)


def _checked_columns(
    run: Run, frame: Frame, reader: FrameReader
) -> tuple[Columns, float, tuple[float, float]]:
    """Smoke and tracers in µg m⁻³, smoke mass of the domain in kg, extremes of the smoke variable.

    Raises if a value that it is computed from is not plausible.
    """
    extremes: dict[str, tuple[float, float]] = {}

    def read(name: str) -> Array:
        values = reader.read(frame, name)
        if name in run.units:
            extremes[name] = check_values(values, name, smoke_range(run.units[name]), str(frame))
            return values
        return check_plausible(values, name, str(frame))

    found = smoke_columns(read, run.units)
    check_air(found.layers, str(frame))
    smoke = run.options.smoke
    mean = found.amounts[smoke].mean
    mass = float((mean * found.depth).sum() * run.layout.dx * run.layout.dy * 1e-9)
    return found, mass, extremes[smoke]


def _wind(run: Run, frame: Frame, reader: FrameReader) -> tuple[float, float] | None:
    if "U10" not in run.air:
        return None
    u, v = (check_plausible(reader.read(frame, name), name, str(frame)) for name in ("U10", "V10"))
    return domain_wind(u, v)


def _summary(
    run: Run,
    state: FireState,
    before: FireState | None,
    *,
    columns: Columns,
    mass: float,
    extremes: tuple[float, float],
) -> checks.FrameSummary:
    lost, moved = changed_cells(before, state, checks.ARRIVAL_TOLERANCE) if before else (0, 0)
    mean = columns.amounts[run.options.smoke].mean
    return checks.FrameSummary(
        seconds=state.seconds,
        burned_cells=int(np.count_nonzero(state.burned)),
        lost_cells=lost,
        moved_cells=moved,
        smoke_mass=mass,
        peak=float(mean.max()),
        edge_share=checks.edge_share(mean),
        depth=float(columns.depth.mean()),
        lowest=extremes[0],
        highest=extremes[1],
    )


def _frame_result(
    run: Run,
    state: FireState,
    *,
    summary: checks.FrameSummary,
    total: Array,
    further: Mapping[str, Array],
) -> FrameResult:
    def stored(values: Array) -> Array:
        return np.where(values < run.options.floor, 0.0, values).astype(np.float32)

    age = run.layout.to_smoke_grid(fire_age(state), run.options.aggregate)
    others = {name: stored(values) for name, values in further.items()}
    earliest = float(state.arrival.min(initial=np.inf))
    return FrameResult(summary, age.astype(np.float32), stored(total), others, earliest)
