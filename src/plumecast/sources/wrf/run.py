"""Read one fire frame by frame; each frame gives one snapshot on the smoke grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
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
from plumecast.sources.wrf import checks, files, integrity
from plumecast.sources.wrf.files import Frame, FrameReader, NameMismatch, thin
from plumecast.sources.wrf.frame import (
    PROJECTIONS,
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
from plumecast.sources.wrf.options import WrfOptions, interval_seconds, smoke_unit, tracer_unit
from plumecast.sources.wrf.profile import (
    FrameProfile,
    read_frame_profile,
    weather_frames,
    weather_of,
    weather_variables,
)


@dataclass(frozen=True, slots=True)
class WrfRun:
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
    def has_plane(self) -> bool:
        """Whether x and y lie in a plane in metres: a known projection, or an idealised run."""
        return self.latlon is None or float(self.attributes["MAP_PROJ"]) in PROJECTIONS

    @property
    def gaps(self) -> list[float]:
        """Hours between the kept frames."""
        return [(b.seconds - a.seconds) / 3600.0 for a, b in pairwise(self.kept)]

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
        smoke, *tracers = self.units
        outputs = {SURFACE_SMOKE: amounts[smoke].lowest} if self.options.surface else {}
        for name in tracers:
            outputs[tracer_output(name)] = amounts[name].mean
            if self.options.surface:
                outputs[tracer_output(name, surface=True)] = amounts[name].lowest
        return outputs


class FrameResult(NamedTuple):
    """Snapshot of one frame on the smoke grid."""

    summary: checks.FrameSummary
    age: Array  # time since ignition, h
    smoke: Array  # cumulative, µg m⁻³
    further: dict[str, Array]  # further outputs by name, cumulative, µg m⁻³
    earliest: float  # arrival time of any burned cell, s
    wind: tuple[float, float] | None  # at 10 m, domain mean towards +x and +y, m s⁻¹


class WrfFire(NamedTuple):
    """Result of reading a fire: its burning frames, weather, and the findings of the checks."""

    run: WrfRun
    frames: list[FrameResult]
    findings: tuple[Finding, ...]
    weather: xr.Dataset | None  # hourly since ignition; None if it is not known
    totals: list[tuple[float, float]]  # (s, Σ column-mean smoke of the cells) of every frame
    last: FireState  # of the last frame
    ignition: float  # earliest arrival of any burned cell, s since the start of the simulation


def read_fire(paths: Paths, options: WrfOptions) -> WrfFire:
    """Read the frames of one fire and check them."""
    named = files.find_files(paths)
    with closing(FrameReader()) as reader:
        try:
            run = prepare(named, options, reader, by_names=True)
            fire = _Reading(run, reader)
            frames = list(fire.frames())
        except NameMismatch:
            run = prepare(named, options, reader, by_names=False)
            fire = _Reading(run, reader)
            frames = list(fire.frames())
        without_clock = fire.clock_stands_still
        if without_clock:
            run = replace(run, names=[name for name in run.names if name != "TIGN_G"])
            fire = _Reading(run, reader)
            frames = list(fire.frames())
    findings = checks.check_fire(
        [frame.summary for frame in frames],
        floor=options.floor,
        step=interval_seconds(options.every),
        version=checks.wrf_version(str(run.attributes.get("TITLE", ""))),
        has_arrival="TIGN_G" in run.names,
    )
    burning = [frame for frame in frames if frame.summary.burned_cells]
    if not burning or fire.last is None:
        of = "" if options.every is None else f" of every {options.every}"
        raise PlumecastError(
            f"{run.kept[-1].path}: no cell burns in {len(frames)} frames{of}; was the fire ignited?"
        )
    findings += checks.check_projection(run.attributes, has_plane=run.has_plane)
    if without_clock:
        findings = (checks.check_clock(frames[-1].summary.burned_cells), *findings)
    if (cut := run.frames[-1].seconds - run.kept[-1].seconds) > 0.0:
        text = f"every={options.every} leaves out the last {cut / 3600.0:.3g} h of the run"
        findings = (*findings, Finding("end left out", text))
    ignition = min(frame.earliest for frame in burning)
    weather, problems = weather_of(
        fire.profiles,
        ignition=ignition,
        source=run.frames[0].path.parent,
        attributes=run.attributes,
    )
    return WrfFire(run, burning, findings + problems, weather, fire.totals, fire.last, ignition)


def prepare(
    paths: list[Path], options: WrfOptions, reader: FrameReader, *, by_names: bool
) -> WrfRun:
    """Find and sort the frames, and read what does not change with time.

    `by_names` allows the frames to be found from the file names, without opening every file.
    """
    reader.expect([])
    indexed = files.index_by_names(paths, reader) if by_names else None
    indexed = indexed or [files.index_dataset(reader.open(path), path) for path in paths]
    chosen = [file for file in files.choose_domain(indexed, options.domain) if file.frames]
    if not chosen:
        raise PlumecastError(f"{indexed[0].path}: it contains no frames; did the run stop early?")
    path = chosen[0].path
    dataset = reader.open(path)
    names, units = _required_variables(dataset, path, options)
    layout = integrity.read_layout(dataset, path)
    with integrity.damage_reported(path, "an attribute is damaged"):
        attributes = dict(dataset.__dict__)
    latlon = _latlon(dataset, path, reader)
    air, fuel = weather_variables(dataset), _fuel(path, layout, reader)
    frames = files.merge_overlaps(
        [frame for file in chosen for frame in file.frames], reader, names
    )
    return WrfRun(
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
    integrity.require_variables(dataset, path, ["LFN", options.smoke, *tracers])
    label = partial(integrity.unit_label, dataset)
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
    integrity.require_variables(dataset, path, names)
    for name in names:
        integrity.check_variable(dataset, path, name)
    return names, units


def _latlon(
    dataset: netCDF4.Dataset, path: Path, reader: FrameReader
) -> tuple[Array, Array] | None:
    """XLAT, XLONG (ny, nx) of a real domain; in idealised runs (MAP_PROJ 0) they are metres."""
    projection = integrity.number_attribute(dataset, path, "MAP_PROJ", 0.0)
    if projection == 0.0:
        return None
    first = Frame(0.0, path, 0)
    lat, lon = (
        integrity.check_plausible(reader.read(first, name), name, str(first))
        for name in ("XLAT", "XLONG")
    )
    if projection not in PROJECTIONS:
        return lat, lon
    names = ("TRUELAT1", "TRUELAT2", "STAND_LON", *(["MOAD_CEN_LAT"] if projection == 1 else []))
    numbers = {name: integrity.number_attribute(dataset, path, name) for name in names}
    _, place = map_plane({**numbers, "MAP_PROJ": projection}, float(lat[0, 0]), float(lon[0, 0]))
    if not np.isfinite(place).all():
        values = ", ".join(f"{name}={value:g}" for name, value in numbers.items())
        raise PlumecastError(f"{path}: the map projection has no place for this domain ({values})")
    return lat, lon


def _fuel(path: Path, layout: Layout, reader: FrameReader) -> Array | None:
    """FGIP, which does not change in time, as fuel load of the smoke cells, if the file has it.

    NFUEL_CAT alone is not enough: the loads of its categories are in the run's namelist.fire.
    """
    variables = reader.open(path).variables
    if "FGIP" not in variables or variables["FGIP"].dimensions != integrity.dimensions_of("FGIP"):
        return None
    load = layout.cut_padding(reader.read(Frame(0.0, path, 0), "FGIP")).astype(np.float64)
    likely = (load >= integrity.RANGES["FGIP"].lowest) & (load <= integrity.RANGES["FGIP"].highest)
    if not (likely.all() and load.any()):
        return None
    return layout.to_smoke_grid(load, "mean").astype(np.float32)


class _Reading:
    """One pass through the frames of a run, and what they tell beside the snapshots."""

    def __init__(self, run: WrfRun, reader: FrameReader) -> None:
        self.run, self.reader = run, reader
        self.profiles: list[FrameProfile] = []  # hourly ambient weather
        self.totals: list[tuple[float, float]] = []
        self.last: FireState | None = None
        self._level_set: LevelSet | None = None
        self._first_burned = 0  # cells of the first frame with fire
        self._burning = False  # whether fire has heated the air by the frame that is read
        self._extremes = (0.0, 0.0)  # of the smoke variable in the frame that was read last

    def frames(self) -> Iterator[FrameResult]:
        """Results of the kept frames.

        A run without TIGN_G also needs the level set of the frames in between, the weather a frame
        of every hour, and the dose of smoke the amount in all frames.
        """
        run, has_arrival = self.run, "TIGN_G" in self.run.names
        outputs = {"": np.zeros((run.layout.ny, run.layout.nx))}
        weights, hourly = run.weights(), weather_frames(run.frames, run.kept, run.air)
        for frame in run.frames:
            if frame in hourly:
                read = partial(self._read, frame)
                self.profiles.append(read_frame_profile(read, frame.seconds, run.air))
            if has_arrival and frame not in weights:
                self._columns(frame)
                continue
            state = self._state(frame)
            columns = self._columns(frame)
            if frame in weights:
                amounts = columns.amounts
                sums = {"": amounts[run.options.smoke].mean, **run.further(amounts)}
                outputs = {
                    name: outputs.get(name, 0.0) + weights[frame] * values
                    for name, values in sums.items()
                }
                yield self._result(frame, state, columns, outputs)
            self.last = state
            self._first_burned = self._first_burned or int(np.count_nonzero(state.burned))

    @property
    def clock_stands_still(self) -> bool:
        """Whether TIGN_G is constant where the fire burns, though the fire grew, or is 0 there.

        One arrival time of several cells is that of an area lit at once, which has not spread.
        """
        arrival = None if self.last is None else self.last.arrival
        if arrival is None or "TIGN_G" not in self.run.names or arrival.size < 2:
            return False
        constant = bool((arrival == arrival[0]).all())
        return constant and (arrival.size > self._first_burned or arrival[0] == 0.0)

    def _read(self, frame: Frame, name: str) -> Array:
        """A variable of a frame, without padding; raises if a value is not plausible."""
        values, where = self.reader.read(frame, name), str(frame)
        if name == "LFN":
            values = self.run.layout.cut_padding(values)
        if name == "T" and self._burning and not values.any():
            raise PlumecastError(
                f"{where}: T is 0 in all cells although a fire burns: it was not written; keep T "
                "in the output of the run"
            )
        if name not in self.run.units:
            return integrity.check_plausible(values, name, where)
        extremes = integrity.check_values(
            values, name, integrity.smoke_range(self.run.units[name]), where
        )
        if name == self.run.options.smoke:
            self._extremes = extremes
        return values

    def _state(self, frame: Frame) -> FireState:
        """Burned cells and their arrival times, from TIGN_G or else from the level sets so far.

        The two large fields are released, which limits memory.
        """
        level = self._read(frame, "LFN")
        burned = level < 0
        self._burning = self._burning or bool(burned.any())
        if "TIGN_G" not in self.run.names:
            self._level_set = advance_arrival(self._level_set, level, frame.seconds)
            return FireState(frame.seconds, burned, self._level_set.arrival[burned])
        del level
        arrival = self.run.layout.cut_padding(self.reader.read(frame, "TIGN_G"))[burned]
        integrity.check_arrival(arrival, frame.seconds, str(frame))
        return FireState(frame.seconds, burned, arrival)

    def _columns(self, frame: Frame) -> Columns:
        """Smoke and tracers in µg m⁻³; raises unless they are computed from plausible air."""
        columns = smoke_columns(partial(self._read, frame), self.run.units)
        integrity.check_air(columns.layers, str(frame))
        mean = columns.amounts[self.run.options.smoke].mean
        self.totals.append((frame.seconds, float(mean.sum())))
        return columns

    def _result(
        self, frame: Frame, state: FireState, columns: Columns, outputs: Mapping[str, Array]
    ) -> FrameResult:
        """The snapshot of a kept frame; `outputs` are the sums so far, "" that of the smoke."""
        run, before = self.run, self.last
        lost, moved = changed_cells(before, state, checks.ARRIVAL_TOLERANCE) if before else (0, 0)
        mean = columns.amounts[run.options.smoke].mean
        summary = checks.FrameSummary(
            seconds=state.seconds,
            burned_cells=int(np.count_nonzero(state.burned)),
            lost_cells=lost,
            moved_cells=moved,
            smoke_mass=float((mean * columns.depth).sum() * run.layout.dx * run.layout.dy * 1e-9),
            peak=float(mean.max()),
            edge_share=checks.edge_share(mean),
            depth=float(columns.depth.mean()),
            lowest=self._extremes[0],
            highest=self._extremes[1],
        )
        wind = None
        if "U10" in run.air:
            wind = domain_wind(self._read(frame, "U10"), self._read(frame, "V10"))
        age = run.layout.to_smoke_grid(fire_age(state), run.options.aggregate)
        stored = {
            name: np.where(values < run.options.floor, 0.0, values).astype(np.float32)
            for name, values in outputs.items()
        }
        smoke = stored.pop("")
        earliest = float(state.arrival.min(initial=np.inf))
        return FrameResult(summary, age.astype(np.float32), smoke, stored, earliest, wind)
