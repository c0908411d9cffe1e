"""Many fires: every ignition under every drought, over as many processes as asked.

A fire depends on nothing but (seed, number of its ignition, drought): the ensemble is the same for
any number of workers and after any interruption. Workers compute; the one parent receives whole
fires in a fixed order and hands them on, so storage stays outside.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.blocks import Runner
from plumecast.compute.processes import end_with_parent
from plumecast.sources.simulator.air.weather import SCENARIOS, STEERING_STRENGTH, Weather, weather
from plumecast.sources.simulator.fire import INTERVAL_HOURS, Terrain, simulate_fire, terrain
from plumecast.sources.simulator.land.fuels import fuel_table
from plumecast.sources.simulator.land.landscape import Landscape, ignition_mask, synthetic_landscape

DROUGHTS = tuple(SCENARIOS)


@dataclass(frozen=True, slots=True)
class Preset:
    """Size of an ensemble."""

    ignitions: int
    checkpoints: int
    years: int  # fuel maps that the ignitions take in turn
    shape: tuple[int, int]  # of the fire grid
    cell: float  # of the fire grid, m


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "demo": Preset(ignitions=24, checkpoints=15, years=4, shape=(400, 500), cell=600.0),
        "paper": Preset(ignitions=250, checkpoints=15, years=10, shape=(800, 1000), cell=300.0),
    }
)
"""Both cover 300 km by 240 km and 90 h. `paper` has the paper's grids and about its 7,300 snapshots
of fires over 10⁵ acres, a quarter of an hour on two cores; `demo`, at half the resolution, takes
half a minute."""


@dataclass(frozen=True, slots=True)
class World:
    """What all fires of an ensemble share."""

    seed: int
    checkpoints: int
    years: int = 1
    shape: tuple[int, int] = (800, 1000)
    cell: float = 300.0
    interval: float = INTERVAL_HOURS
    landscape: Landscape | None = None  # instead of the synthetic ones
    region: npt.NDArray[np.bool_] | None = None  # cells that may ignite; default `ignition_mask`
    steering: float = STEERING_STRENGTH  # how strongly terrain steers the wind


@dataclass(frozen=True, slots=True)
class FirePlan:
    """Which fire to simulate."""

    number: int  # of the ignition
    drought: str
    ignition_id: str
    fire_id: str


def simulate(
    *, preset: str | None = None, ignitions: int | None = None,
    droughts: Sequence[str] = DROUGHTS, checkpoints: int | None = None, seed: int = 0,
    workers: int = 1, append: Callable[[xr.Dataset], object] | None = None,
    done: Collection[str] = frozenset(), progress: Callable[[int, int, str], object] | None = None,
    landscape: Landscape | None = None, region: npt.NDArray[np.bool_] | None = None,
    interval: float = INTERVAL_HOURS, runner: Runner | None = None,
    steering: float = STEERING_STRENGTH,
) -> xr.Dataset | None:  # fmt: skip
    """Simulate an ensemble of fires, `ignitions` times `droughts`, with their smoke.

    `preset`, "demo" or "paper", sets what is not given; without it the grid and checkpoints are the
    paper's. Each finished fire, a Dataset of its snapshots, goes to `append`, always in the same
    order; without `append` all snapshots are returned as one Dataset. Fires whose `fire_id` is in
    `done` are skipped: resuming is calling again. `progress(finished, total, fire_id)` follows
    every fire. `landscape` replaces the synthetic ones and `region`, a boolean mask on its cells,
    the ground that may ignite. `steering` is the strength of `weather.steering`. With several
    workers or a runner see `run_fires`.
    """
    size = ensemble_size(preset, ignitions, checkpoints)
    years = size.years if landscape is None else 1
    world = World(
        seed, size.checkpoints, years, size.shape, size.cell, interval, landscape, region, steering
    )
    plans = plan_fires(size.ignitions, droughts, seed)
    ahead = [fire for fire in plans if fire.fire_id not in done]
    kept: list[xr.Dataset] = []
    finished = len(plans) - len(ahead)
    take = kept.append if append is None else append
    with closing(run_fires(world, ahead, workers, runner)) as fires:
        for fire, snapshots in zip(ahead, fires, strict=True):
            take(snapshots)
            finished += 1
            if progress is not None:
                progress(finished, len(plans), fire.fire_id)
    return joined(kept) if kept else None


def joined(fires: Sequence[xr.Dataset]) -> xr.Dataset:
    """The snapshots of several fires of one world."""
    return xr.concat(
        fires, SNAPSHOT, data_vars="minimal", coords="minimal", compat="override", join="exact",
        combine_attrs="identical",
    )  # fmt: skip


def ensemble_size(preset: str | None, ignitions: int | None, checkpoints: int | None) -> Preset:
    """A preset with the sizes that were given in place of its own."""
    known = ", ".join(map(repr, PRESETS))
    if preset is None and ignitions is None:
        raise PlumecastError(f"how many fires? give a number of ignitions or a preset: {known}")
    if preset is not None and preset not in PRESETS:
        raise PlumecastError(f"unknown preset {preset!r}; known are {known}")
    base = PRESETS[preset or "paper"]
    size = replace(
        base,
        ignitions=base.ignitions if ignitions is None else ignitions,
        checkpoints=base.checkpoints if checkpoints is None else checkpoints,
    )
    if size.ignitions < 1 or size.checkpoints < 1:
        raise PlumecastError(
            f"ignitions={size.ignitions} and checkpoints={size.checkpoints}; "
            "an ensemble needs at least one of each"
        )
    return size


def plan_fires(
    ignitions: int, droughts: Sequence[str], seed: int, *, first: int = 0
) -> list[FirePlan]:
    """Every ignition under every drought, ignition by ignition, numbered from `first` on."""
    unknown = [drought for drought in droughts if drought not in SCENARIOS]
    if unknown or not droughts:
        raise PlumecastError(
            f"unknown drought {', '.join(map(repr, unknown)) or 'of an empty list'}; "
            f"known are {', '.join(map(repr, SCENARIOS))}"
        )
    plans = []
    for number in range(first, first + ignitions):
        ignition_id = f"s{seed}-i{number:04d}"
        plans += [FirePlan(number, name, ignition_id, f"{ignition_id}-{name}") for name in droughts]
    return plans


class Simulator:
    """Simulates the fires of a world one at a time; keeps landscapes and weathers for the next."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._grounds: dict[int, tuple[Landscape, npt.NDArray[np.intp]]] = {}
        self._terrains: list[Terrain] = []
        self._weathers: dict[str, Weather] = {}

    def fire(self, plan: FirePlan, *, with_smoke: bool = True) -> xr.Dataset:
        """The snapshots of one fire, with or without its smoke."""
        world, year = self.world, plan.number % self.world.years
        if year not in self._grounds:
            self._grounds[year] = self._ground(year)
        if plan.drought not in self._weathers:
            hours = world.checkpoints * world.interval
            self._weathers[plan.drought] = weather(plan.drought, seed=world.seed, hours=hours)
        landscape, candidates = self._grounds[year]
        if not self._terrains:  # years differ in fuel, not in terrain
            self._terrains.append(terrain(landscape, strength=world.steering))
        chosen = np.random.default_rng([world.seed, plan.number]).choice(candidates)
        row, column = divmod(int(chosen), landscape.fuel.shape[1])
        return simulate_fire(
            landscape, self._weathers[plan.drought], (row, column), world.checkpoints,
            interval=world.interval, ground=self._terrains[0],
            fire_id=plan.fire_id, ignition_id=plan.ignition_id, with_smoke=with_smoke,
        )  # fmt: skip

    def _ground(self, year: int) -> tuple[Landscape, npt.NDArray[np.intp]]:
        world = self.world
        landscape = world.landscape or synthetic_landscape(
            world.seed, world.shape, world.cell, year
        )
        mask = ignition_mask(landscape) if world.region is None else world.region
        if mask.shape != landscape.shape:
            raise PlumecastError(
                f"the ignition region has shape {mask.shape}, the landscape {landscape.shape}; "
                "give one value per fire cell"
            )
        burnable = mask & fuel_table().burnable[landscape.fuel]
        if not burnable.any():
            raise PlumecastError(
                f"none of the {int(mask.sum())} cells of the ignition region can burn; "
                "choose another region or landscape"
            )
        return landscape, np.flatnonzero(burnable)


def run_fires(
    world: World, plans: Sequence[FirePlan], workers: int = 1, runner: Runner | None = None
) -> Generator[xr.Dataset, None, None]:
    """The planned fires in their order, computed by `workers` processes, or by a `runner`'s.

    Several workers are fresh interpreters: a script must guard its own start with
    `if __name__ == "__main__":`.
    """
    if workers < 1:
        raise PlumecastError(f"workers={workers}; give at least one")
    if runner is not None:
        yield from runner.map(Simulator.fire, Simulator(world), plans)
        return
    if workers == 1 or len(plans) < 2:
        simulator = Simulator(world)
        yield from map(simulator.fire, plans)
        return
    pool = ProcessPoolExecutor(
        min(workers, len(plans)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(world,),
    )
    try:
        waiting: deque[Future[xr.Dataset]] = deque()
        for fire in plans:
            # A short queue bounds memory and lets an interrupted parent stop soon.
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
            waiting.append(pool.submit(_simulate_here, fire))
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise PlumecastError(
            f"one of {workers} workers was killed, perhaps for want of memory (allow 1 GB each); "
            "finished fires are kept: run again, with fewer workers, to go on"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_worker: list[Simulator] = []


def _start_worker(world: World) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    _worker.append(Simulator(world))


def _simulate_here(plan: FirePlan) -> xr.Dataset:
    return _worker[0].fire(plan)
