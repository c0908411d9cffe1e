"""Ensembles of fires: every ignition under every drought, in one or several processes.

A fire depends only on the seed, the number of its ignition and the drought. The ensemble is
therefore the same for any number of workers and after any interruption. Workers simulate whole
fires; the parent process receives them in a fixed order and passes them to the caller, who may
store them.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from plumecast.base import names
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.compute.arrays import Field, Mask
from plumecast.compute.blocks import Runner
from plumecast.compute.processes import new_pool, stop_pools, submit
from plumecast.compute.resources import LOCAL, Resources, keep_freed_memory
from plumecast.data.assembly import concat_snapshots
from plumecast.simulator.atmosphere import STEERING_STRENGTH
from plumecast.simulator.fire import (
    INTERVAL_HOURS,
    Terrain,
    block_fuel_load,
    simulate_fire,
    terrain,
)
from plumecast.simulator.front import Ignition
from plumecast.simulator.landscape import Landscape, ignition_mask, synthetic_landscape
from plumecast.simulator.weather import OWN, SCENARIOS, Weather, drawn_weather, weather

DROUGHTS = tuple(SCENARIOS)


@dataclass(frozen=True, slots=True)
class Preset:
    """Size of an ensemble."""

    ignitions: int
    checkpoints: int
    years: int  # number of fuel maps; the ignitions use them in turn
    shape: tuple[int, int]  # of the fire grid
    cell: float  # size of a fire cell, m
    weathers: int = 0  # drawn weathers of every ignition; 0: the droughts, which all fires share


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "demo": Preset(ignitions=24, checkpoints=15, years=4, shape=(400, 500), cell=600.0),
        "paper": Preset(ignitions=250, checkpoints=15, years=10, shape=(800, 1000), cell=300.0),
        "weathers": Preset(
            ignitions=400, checkpoints=12, years=1, shape=(400, 500), cell=300.0, weathers=1
        ),
    }
)
"""`demo` and `paper` cover 300 km by 240 km and 90 h. `paper` has the paper's grids and, like the
paper, about 7,300 snapshots of fires over 10⁵ acres; it takes a quarter of an hour on two cores.
`demo` has half the resolution and takes half a minute. `weathers` has 400 fires with a drawn
weather each, on 150 km by 120 km and one fuel map, over 72 h."""


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

    @staticmethod
    def of(size: Preset, seed: int = 0, **others: Any) -> World:
        """The world of an ensemble of some size; `others` are further fields.

        The fires on a landscape of the user's share its one fuel map.
        """
        years = size.years if others.get("landscape") is None else 1
        return World(seed, size.checkpoints, years, size.shape, size.cell, **others)


@dataclass(frozen=True, slots=True)
class FirePlan:
    """One fire to simulate."""

    number: int  # of the ignition
    drought: str
    ignition_id: str
    fire_id: str
    weather: int | None = None  # number of its drawn weather; None: that of the drought


def simulate(
    world: World,
    plans: Sequence[FirePlan],
    *,
    workers: int = 1,
    append: Callable[[xr.Dataset], object] | None = None,
    done: Collection[str] = frozenset(),
    resources: Resources = LOCAL,
) -> xr.Dataset | None:
    """Simulate the planned fires of a world with their smoke.

    Finished fires, a Dataset of their snapshots, are passed to `append`, always in the same order:
    one at a time, or several if they are finished faster than `append` returns. Without `append`
    all snapshots are returned as one Dataset. Fires whose `fire_id` is in `done` are skipped, which
    resumes an interrupted ensemble. `resources` report `(finished, total, fire_id)` after every
    fire; for `workers` and their runner see `run_fires`.
    """
    to_run = [fire for fire in plans if fire.fire_id not in done]
    kept: list[xr.Dataset] = []
    finished = len(plans) - len(to_run)
    receive = kept.append if append is None else append

    def hand_over(fires: list[xr.Dataset]) -> None:
        nonlocal finished
        receive(concat_snapshots(fires))
        for fire in fires:
            finished += 1
            resources.progress(finished, len(plans), str(fire.fire_id.values[0]))

    with closing(run_fires(world, to_run, workers, resources.runner)) as fires:
        call_together(hand_over, fires)
    return concat_snapshots(kept) if kept else None


MOST_TOGETHER = 32
"""Largest number of fires that are handed over at once: 32 MB with the paper's sizes."""


def call_together(
    function: Callable[[list[xr.Dataset]], object],
    fires: Iterable[xr.Dataset],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Call a function of all fires, with several at once while they come faster than it returns.

    It is called when the fires since the last call were waited for as long as that call took. If
    the function stores fires, a kill then loses hardly more than what was simulated in that time.
    """
    together: list[xr.Dataset] = []
    waited = took = 0.0
    asked = clock()
    try:
        for fire in fires:
            waited += clock() - asked
            together.append(fire)
            if waited >= took or len(together) == MOST_TOGETHER:
                called = clock()
                now, together = together, []
                function(now)
                waited, took = 0.0, clock() - called
            asked = clock()
    finally:  # also if a worker failed: the fires before are finished
        if together:
            function(together)


def ensemble_size(preset: str | None, ignitions: int | None, checkpoints: int | None) -> Preset:
    """The preset, with `ignitions` and `checkpoints` replaced if given."""
    presets = ", ".join(map(repr, PRESETS))
    if preset is None and ignitions is None:
        raise PlumecastError(f"how many fires? give ignitions, a number, or a preset: {presets}")
    if preset is not None and preset not in PRESETS:
        raise PlumecastError(f"unknown preset {preset!r}; known are {presets}")
    base = PRESETS[preset or "paper"]
    size = replace(
        base,
        ignitions=base.ignitions if ignitions is None else ignitions,
        checkpoints=base.checkpoints if checkpoints is None else checkpoints,
    )
    for name, value in (("ignitions", size.ignitions), ("checkpoints", size.checkpoints)):
        if value < 1:
            raise ArgumentError(name, value, "give at least 1")
    return size


def plan_fires(
    ignitions: int, droughts: Sequence[str], seed: int, *, first: int = 0, weathers: int = 0
) -> list[FirePlan]:
    """Plan every ignition under every drought; ignitions are numbered from `first`.

    With `weathers`, every ignition burns under that number of drawn weathers of its own instead.
    """
    if weathers < 0:
        raise ArgumentError("weathers", weathers, "give at least 0")
    ignited = [(number, f"s{seed}-i{number:04d}") for number in range(first, first + ignitions)]
    if weathers:
        return [
            FirePlan(number, OWN, name, f"{name}-w{weather}", weather)
            for number, name in ignited
            for weather in range(weathers)
        ]
    scenarios = ", ".join(map(repr, SCENARIOS))
    if not droughts:
        raise PlumecastError(f"droughts is empty; give at least one of {scenarios}")
    unknown = [drought for drought in droughts if drought not in SCENARIOS]
    if unknown:
        raise PlumecastError(
            f"unknown drought {', '.join(map(repr, unknown))}; known are {scenarios}"
        )
    return [
        FirePlan(number, drought, name, f"{name}-{drought}")
        for number, name in ignited
        for drought in droughts
    ]


_NAME = re.compile(r"(?P<ignition>s\d+-i(?P<number>\d+))-(?:w(?P<weather>\d+)|(?P<drought>\w+))")


def plan_of(fire_id: str) -> FirePlan | None:
    """The plan of a fire from its name, as `plan_fires` gives it; None for another name."""
    named = _NAME.fullmatch(fire_id)
    if named is None:
        return None
    weather = None if named["weather"] is None else int(named["weather"])
    drought = named["drought"] or OWN
    return FirePlan(int(named["number"]), drought, named["ignition"], fire_id, weather)


def recorded_world(settings: Mapping[str, Any]) -> World:
    """The world of a store from the settings that it records."""
    return World(
        settings["seed"], settings["checkpoints"], settings["years"], tuple(settings["shape"]),
        settings["cell"], steering=settings.get("steering", STEERING_STRENGTH),
    )  # fmt: skip


class Simulator:
    """Simulates the fires of a world one at a time; caches landscapes and weathers."""

    def __init__(self, world: World) -> None:
        keep_freed_memory()
        self.world = world
        self._landscapes: dict[int, Landscape] = {}
        self._candidates: dict[int, npt.NDArray[np.intp]] = {}
        self._weathers: dict[str, Weather] = {}

    @cached_property
    def _terrain(self) -> Terrain:
        """That of any year: years differ in fuel, not in terrain."""
        made = next(iter(self._landscapes.values()), None) or self.landscape()
        return terrain(made, strength=self.world.steering)

    @cached_property
    def _fuel_load(self) -> Field:
        """(ny, nx) kg m⁻² of the smoke cells."""
        return block_fuel_load(self.landscape(), self._terrain.block)

    def fire(self, plan: FirePlan, *, with_smoke: bool = True) -> xr.Dataset:
        """Snapshots of one fire, with or without its smoke."""
        return self.fire_at(
            self.ignition_cell(plan), self.weather_of(plan), year=self.year_of(plan),
            with_smoke=with_smoke, fire_id=plan.fire_id, ignition_id=plan.ignition_id,
        )  # fmt: skip

    def year_of(self, plan: FirePlan) -> int:
        """The year whose fuel map a fire burns on."""
        return plan.number % self.world.years

    def ignition_cell(self, plan: FirePlan) -> tuple[int, int]:
        """Row and column of the fire cell that ignites."""
        year = self.year_of(plan)
        if year not in self._candidates:
            self._candidates[year] = self._ignition_candidates(year)
        draw = np.random.default_rng([self.world.seed, plan.number])
        return divmod(int(draw.choice(self._candidates[year])), self.landscape(year).shape[1])

    def fire_at(
        self, ignition: Ignition, weather: Weather, *, year: int = 0,
        checkpoints: int | None = None, with_smoke: bool = True, fire_id: str = "fire",
        ignition_id: str | None = None,
    ) -> xr.Dataset:  # fmt: skip
        """Snapshots of a fire at a place and in a weather of choice, up to a checkpoint.

        The first checkpoints are the same whether or not the later ones are asked for.
        """
        world = self.world
        made = simulate_fire(
            self.landscape(year), weather, ignition,
            world.checkpoints if checkpoints is None else checkpoints,
            interval=world.interval, ground=self._terrain,
            fire_id=fire_id, ignition_id=ignition_id, with_smoke=with_smoke,
            planned=world.checkpoints,
        )  # fmt: skip
        if world.years > 1:  # fires on several fuel maps share no fuel load
            return made
        (entry,) = names.GROUND
        load = self._fuel_load.astype(np.float32)
        return made.assign({entry.name: (entry.dims, load, entry.attrs)})

    def landscape(self, year: int = 0) -> Landscape:
        """The landscape of one year."""
        world = self.world
        if year not in self._landscapes:
            self._landscapes[year] = world.landscape or synthetic_landscape(
                world.seed, world.shape, world.cell, year
            )
        return self._landscapes[year]

    def drought_weather(self, drought: str) -> Weather:
        """The weather that all fires of a drought share."""
        if drought not in self._weathers:
            hours = self.world.checkpoints * self.world.interval
            self._weathers[drought] = weather(drought, seed=self.world.seed, hours=hours)
        return self._weathers[drought]

    def weather_of(self, plan: FirePlan) -> Weather:
        """The weather of a fire: its own, or that of its drought."""
        world, hours = self.world, self.world.checkpoints * self.world.interval
        if plan.weather is not None:
            return drawn_weather(world.seed, plan.number, plan.weather, hours=hours)
        return self.drought_weather(plan.drought)

    def _ignition_candidates(self, year: int) -> npt.NDArray[np.intp]:
        """Flat indices of the cells that may ignite."""
        landscape, region = self.landscape(year), self.world.region
        mask = ignition_mask(landscape) if region is None else region
        if mask.shape != landscape.shape:
            raise PlumecastError(
                f"the ignition region has shape {mask.shape}, but the landscape has "
                f"{landscape.shape}; give region one value per fire cell"
            )
        burnable = mask & landscape.burnable
        if not burnable.any():
            raise PlumecastError(
                f"none of the {int(mask.sum())} cells of the ignition region can burn; "
                "choose another region or landscape"
            )
        return np.flatnonzero(burnable)


def run_fires(
    world: World, plans: Sequence[FirePlan], workers: int = 1, runner: Runner | None = None
) -> Generator[xr.Dataset, None, None]:
    """Simulate the planned fires and yield them in order.

    With `workers` > 1 they are simulated by processes of this machine, with a `runner`
    (`pc.cluster`) by the workers of a cluster. Processes start as new interpreters, so a script
    must protect its entry point with `if __name__ == "__main__":`.
    """
    if workers < 1:
        raise ArgumentError("workers", workers, "give at least 1")
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


_worker_simulator: list[Simulator] = []  # that of a process


def _start_worker(world: World) -> None:
    _worker_simulator.append(Simulator(world))


def _simulate_on_worker(plan: FirePlan) -> xr.Dataset:
    return _worker_simulator[0].fire(plan)
