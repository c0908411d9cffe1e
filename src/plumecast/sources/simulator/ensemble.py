"""Ensembles of fires: every ignition under every drought, in one or several processes.

A fire depends only on the seed, the number of its ignition and the drought. The ensemble is
therefore the same for any number of workers and after any interruption. Workers simulate whole
fires; the parent process receives them in a fixed order and passes them to the caller, who may
store them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.blocks import Runner
from plumecast.compute.processes import new_pool, stop_pools, submit
from plumecast.sources.concat import concat_snapshots
from plumecast.sources.simulator.air.weather import SCENARIOS, STEERING_STRENGTH, Weather, weather
from plumecast.sources.simulator.fields import Mask
from plumecast.sources.simulator.fire import INTERVAL_HOURS, Terrain, simulate_fire, terrain
from plumecast.sources.simulator.land.fuels import fuel_table
from plumecast.sources.simulator.land.landscape import Landscape, ignition_mask, synthetic_landscape

DROUGHTS = tuple(SCENARIOS)


@dataclass(frozen=True, slots=True)
class Preset:
    """Size of an ensemble."""

    ignitions: int
    checkpoints: int
    years: int  # number of fuel maps; the ignitions use them in turn
    shape: tuple[int, int]  # of the fire grid
    cell: float  # size of a fire cell, m


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "demo": Preset(ignitions=24, checkpoints=15, years=4, shape=(400, 500), cell=600.0),
        "paper": Preset(ignitions=250, checkpoints=15, years=10, shape=(800, 1000), cell=300.0),
    }
)
"""Both cover 300 km by 240 km and 90 h. `paper` has the paper's grids and, like the paper, about
7,300 snapshots of fires over 10⁵ acres; it takes a quarter of an hour on two cores. `demo` has half
the resolution and takes half a minute."""


@dataclass(frozen=True, slots=True)
class World:
    """Settings that all fires of an ensemble share."""

    seed: int
    checkpoints: int
    years: int = 1
    shape: tuple[int, int] = (800, 1000)
    cell: float = 300.0
    interval: float = INTERVAL_HOURS
    landscape: Landscape | None = None  # replaces the synthetic landscapes
    region: Mask | None = None  # cells that may ignite; default `ignition_mask`
    steering: float = STEERING_STRENGTH  # how strongly terrain steers the wind


@dataclass(frozen=True, slots=True)
class FirePlan:
    """One fire to simulate."""

    number: int  # of the ignition
    drought: str
    ignition_id: str
    fire_id: str


def simulate(
    *, preset: str | None = None, ignitions: int | None = None,
    droughts: Sequence[str] = DROUGHTS, checkpoints: int | None = None, seed: int = 0,
    workers: int = 1, append: Callable[[xr.Dataset], object] | None = None,
    done: Collection[str] = frozenset(), progress: Callable[[int, int, str], object] | None = None,
    landscape: Landscape | None = None, region: Mask | None = None,
    interval: float = INTERVAL_HOURS, runner: Runner | None = None,
    steering: float = STEERING_STRENGTH,
) -> xr.Dataset | None:  # fmt: skip
    """Simulate an ensemble of fires with their smoke: each ignition under each drought.

    `preset` ("demo" or "paper") sets the sizes that are not given; without a preset the grid and
    the checkpoints are those of the paper. Each finished fire, a Dataset of its snapshots, is
    passed to `append`, always in the same order; without `append` all snapshots are returned as one
    Dataset. Fires whose `fire_id` is in `done` are skipped, which resumes an interrupted ensemble.
    `progress(finished, total, fire_id)` is called after every fire. `landscape` replaces the
    synthetic landscapes; `region`, a boolean mask on its cells, selects where fires may ignite.
    `steering` is the strength of `weather.steering`. For `workers` and `runner` see `run_fires`.
    """
    size = ensemble_size(preset, ignitions, checkpoints)
    years = size.years if landscape is None else 1
    world = World(
        seed, size.checkpoints, years, size.shape, size.cell, interval, landscape, region, steering
    )
    plans = plan_fires(size.ignitions, droughts, seed)
    to_run = [fire for fire in plans if fire.fire_id not in done]
    kept: list[xr.Dataset] = []
    finished = len(plans) - len(to_run)
    receive = kept.append if append is None else append
    with closing(run_fires(world, to_run, workers, runner)) as fires:
        for fire, snapshots in zip(to_run, fires, strict=True):
            receive(snapshots)
            finished += 1
            if progress is not None:
                progress(finished, len(plans), fire.fire_id)
    return concat_snapshots(kept) if kept else None


def ensemble_size(preset: str | None, ignitions: int | None, checkpoints: int | None) -> Preset:
    """The preset, with `ignitions` and `checkpoints` replaced if given."""
    known = ", ".join(map(repr, PRESETS))
    if preset is None and ignitions is None:
        raise PlumecastError(f"how many fires? give ignitions, a number, or a preset: {known}")
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
            "give at least 1 for each"
        )
    return size


def plan_fires(
    ignitions: int, droughts: Sequence[str], seed: int, *, first: int = 0
) -> list[FirePlan]:
    """Plan every ignition under every drought; ignitions are numbered from `first`."""
    known = ", ".join(map(repr, SCENARIOS))
    if not droughts:
        raise PlumecastError(f"droughts is empty; give at least one of {known}")
    unknown = [drought for drought in droughts if drought not in SCENARIOS]
    if unknown:
        raise PlumecastError(f"unknown drought {', '.join(map(repr, unknown))}; known are {known}")
    plans = []
    for number in range(first, first + ignitions):
        ignition_id = f"s{seed}-i{number:04d}"
        plans += [FirePlan(number, name, ignition_id, f"{ignition_id}-{name}") for name in droughts]
    return plans


class Simulator:
    """Simulates the fires of a world one at a time; caches landscapes and weathers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._landscapes: dict[int, tuple[Landscape, npt.NDArray[np.intp]]] = {}
        self._terrains: list[Terrain] = []
        self._weathers: dict[str, Weather] = {}

    def fire(self, plan: FirePlan, *, with_smoke: bool = True) -> xr.Dataset:
        """Snapshots of one fire, with or without its smoke."""
        world, year = self.world, plan.number % self.world.years
        if year not in self._landscapes:
            self._landscapes[year] = self._make_landscape(year)
        if plan.drought not in self._weathers:
            hours = world.checkpoints * world.interval
            self._weathers[plan.drought] = weather(plan.drought, seed=world.seed, hours=hours)
        landscape, candidates = self._landscapes[year]
        if not self._terrains:  # years differ in fuel, not in terrain
            self._terrains.append(terrain(landscape, strength=world.steering))
        chosen = np.random.default_rng([world.seed, plan.number]).choice(candidates)
        row, column = divmod(int(chosen), landscape.fuel.shape[1])
        return simulate_fire(
            landscape, self._weathers[plan.drought], (row, column), world.checkpoints,
            interval=world.interval, ground=self._terrains[0],
            fire_id=plan.fire_id, ignition_id=plan.ignition_id, with_smoke=with_smoke,
        )  # fmt: skip

    def _make_landscape(self, year: int) -> tuple[Landscape, npt.NDArray[np.intp]]:
        """Landscape of one year and the flat indices of the cells that may ignite."""
        world = self.world
        landscape = world.landscape or synthetic_landscape(
            world.seed, world.shape, world.cell, year
        )
        mask = ignition_mask(landscape) if world.region is None else world.region
        if mask.shape != landscape.shape:
            raise PlumecastError(
                f"the ignition region has shape {mask.shape}, but the landscape has "
                f"{landscape.shape}; give region one value per fire cell"
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
    """Simulate the planned fires and yield them in order.

    With `workers` > 1 they are simulated by processes of this machine, with a `runner`
    (`pc.cluster`) by the workers of a cluster. Processes start as new interpreters, so a script
    must protect its entry point with `if __name__ == "__main__":`.
    """
    if workers < 1:
        raise PlumecastError(f"workers={workers}; give at least 1")
    if runner is not None:
        yield from runner.map(Simulator.fire, Simulator(world), plans)
        return
    if workers == 1 or len(plans) < 2:
        simulator = Simulator(world)
        yield from map(simulator.fire, plans)
        return
    pool = new_pool(min(workers, len(plans)), _start_worker, world)
    try:
        waiting: deque[Future[xr.Dataset]] = deque()
        for fire in plans:
            # A short queue limits memory.
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
            waiting.append(submit(pool, _simulate_on_worker, fire))
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise PlumecastError(
            f"one of {workers} workers was killed, perhaps for lack of memory (1 GB each); "
            "finished fires are kept: run the same again with fewer workers to continue"
        ) from error
    finally:
        stop_pools(pool)


_worker_simulator: list[Simulator] = []


def _start_worker(world: World) -> None:
    _worker_simulator.append(Simulator(world))


def _simulate_on_worker(plan: FirePlan) -> xr.Dataset:
    return _worker_simulator[0].fire(plan)
