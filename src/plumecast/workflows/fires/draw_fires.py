"""Fires that the embedded simulator draws for statistics and scenarios; they are never stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Mask
from plumecast.compute.blocks import Runner, row_blocks
from plumecast.data.assembly import concat_snapshots
from plumecast.data.layout import GRID_TOLERANCE
from plumecast.simulator import ensemble
from plumecast.simulator.fire import BLOCK
from plumecast.simulator.landscape import Landscape, ignition_mask, smoke_centres
from plumecast.sources.rasters.georeference import target_grid
from plumecast.workflows.simulate import SYNTHETIC, Ground, in_plane_of, weather_record, weathers_of

FIRST_DRAWN = 1_000_000
"""Number of the first ignition that is drawn. It is larger than those of any simulated ensemble, so
that a surrogate was never trained on a drawn ignition."""

TOGETHER = 8
"""Fires per unit of work: few enough to keep all workers of a cluster busy."""


@dataclass(frozen=True, slots=True)
class DrawnFires:
    """Planned fires of the embedded simulator; they are simulated on demand."""

    simulator: ensemble.Simulator
    plans: Sequence[ensemble.FirePlan]
    settings: Mapping[str, Any]  # with the names that a simulated store records
    with_smoke: bool = False

    def make(self, plans: Sequence[ensemble.FirePlan]) -> xr.Dataset:
        """Simulate some of the planned fires; return their snapshots."""
        return concat_snapshots(
            [self.simulator.fire(plan, with_smoke=self.with_smoke) for plan in plans]
        )

    def _applied(
        self, function: Callable[[xr.Dataset], Any], plans: Sequence[ensemble.FirePlan]
    ) -> Any:
        return function(self.make(plans))

    def first(self) -> xr.Dataset:
        """The snapshots of the first fire, which tell the grid."""
        return self.make(self.plans[:1])

    def sums(
        self,
        function: Callable[[xr.Dataset], Any],
        runner: Runner | None,
        progress: Callable[[int, int, str], object],
    ) -> Iterator[Any]:
        """`function` of the snapshots of TOGETHER fires at a time; with an executor, their sum."""
        parts = [self.plans[rows] for rows in row_blocks(len(self.plans), TOGETHER)]
        if runner is not None:
            yield runner.sum(partial(self._applied, function), parts)
            return
        done = 0
        for part in parts:
            yield function(self.make(part))
            done += len(part)
            progress(done, len(self.plans), "fires")


@folded_arguments(ground=Ground)
def draw_fires(
    count: int,
    *,
    like: xr.Dataset | None = None,
    preset: str | None = None,
    droughts: Sequence[str] | None = None,
    weathers: int | None = None,
    checkpoints: int | None = None,
    seed: int = 0,
    ground: Ground = SYNTHETIC,
    region: Mask | None = None,
    with_smoke: bool = False,
) -> DrawnFires:
    """Plan fires for `ensemble_statistics`; the embedded simulator draws and never stores them.

    Landscape and weather are those of `simulate` with the same arguments, but the ignitions differ.
    Smoke has no effect on a fire, so only the fire front is simulated; the hourly weather comes
    with every fire.

    Parameters
    ----------
    count
        Number of fires.
    like
        Has the coordinates y and x that the fires must have (`surrogate.grid`). Without rasters or
        a `preset`, the preset with that grid is taken.
    preset, checkpoints, seed, ground
        As for `simulate`.
    droughts
        Each ignition burns under each of them in turn, by default all three, until there are
        `count` fires.
    weathers
        Or each ignition burns under this number of drawn weathers of its own.
    region
        Boolean mask on the fire grid that replaces the cells that may ignite: with the same one,
        fires on other fuels begin at the same places.
    with_smoke
        Simulate smoke too.
    """
    if count < 1:
        raise PlumecastError(f"cannot draw {count} fires; ask for at least 1")
    landscape = ground.landscape()
    if landscape is None:
        preset = _preset_on(like, preset)
    elif like is not None:
        landscape = in_plane_of(like, landscape)
        _refuse_other_grid(landscape, like)
    size = ensemble.ensemble_size(preset or "paper", None, checkpoints)
    if landscape is not None:
        size = replace(size, years=1, shape=landscape.shape, cell=landscape.cell)
    world = ensemble.World.of(
        size, seed, landscape=landscape, region=region, steering=ground.strength
    )
    shared = weathers is None and droughts is not None
    drawn = 0 if shared else weathers_of(size, droughts, weathers)
    labels = ensemble.DROUGHTS if droughts is None else droughts
    ignitions = -(-count // max(1, drawn or len(labels)))
    plans = ensemble.plan_fires(ignitions, labels, seed, first=FIRST_DRAWN, weathers=drawn)
    settings = {"seed": seed, "checkpoints": size.checkpoints, **weather_record(drawn)}
    settings |= ground.record()
    return DrawnFires(ensemble.Simulator(world), plans[:count], settings, with_smoke)


def _preset_on(like: xr.Dataset | None, preset: str | None) -> str:
    """The given preset, or the preset that has the grid of `like`."""
    name = preset or "paper"
    ensemble.ensemble_size(name, None, None)  # raises if it is unknown
    if like is None:
        return name
    sizes = ensemble.PRESETS.items()
    fitting = [label for label, size in sizes if is_on(size.shape, size.cell, like)]
    if not fitting or (preset is not None and preset not in fitting):
        advice = (
            f"take preset '{fitting[0]}'"
            if fitting
            else "no preset has it, give elevation and fuel rasters"
        )
        what = f"preset '{preset}' is" if preset else "simulated fires are"
        raise PlumecastError(f"{what} not on the surrogate's {_cells(like)}; {advice}")
    return preset or fitting[0]


def _refuse_other_grid(landscape: Landscape, like: xr.Dataset) -> None:
    if is_on(landscape.shape, landscape.cell, like, landscape.corner):
        return
    grid = target_grid(like).grid
    rows, columns = (size // BLOCK for size in landscape.shape)
    problem = (
        f"the rasters make a smoke grid of {rows} × {columns} cells of {BLOCK * landscape.cell:g} "
        f"m, not the surrogate's {_cells(like)}"
    )
    if is_on(landscape.shape, landscape.cell, like, (grid.left, grid.bottom)):
        (left, bottom), (x, y) = landscape.corner, (grid.left, grid.bottom)
        problem = (
            f"the rasters begin at x {left:.7g}, y {bottom:.7g}, but the surrogate's grid at x "
            f"{x:.7g}, y {y:.7g}"
        )
    raise PlumecastError(f"{problem}; give the rasters of its training fires")


def _cells(like: xr.Dataset) -> str:
    steps = np.diff(like["x"].values) if "x" in like.coords else np.empty(0)
    size = f" of {steps[0]:g} m" if steps.size else ""
    return f"grid of {like.sizes.get('y')} × {like.sizes.get('x')} cells{size}"


def is_on(
    shape: tuple[int, int],
    cell: float,
    like: xr.Dataset,
    corner: tuple[float, float] = (0.0, 0.0),
) -> bool:
    """Whether the smoke grid of a fire grid is the grid of `like`."""
    coarse = (shape[0] // BLOCK, shape[1] // BLOCK)
    return all(
        axis in like.coords
        and like[axis].shape == centres.shape
        and np.allclose(
            like[axis].values, centres, rtol=0.0, atol=GRID_TOLERANCE * np.abs(centres).max()
        )
        for axis, centres in zip("yx", smoke_centres(coarse, cell * BLOCK, corner), strict=True)
    )


@dataclass(frozen=True, slots=True)
class Change:
    """What a scenario of the simulator has of its own; None is what all scenarios share."""

    fuels: str | Path | None = None
    droughts: tuple[str, ...] | None = None


def draw_scenarios(
    count: int,
    changes: Mapping[str, Change],
    *,
    ground: Ground = SYNTHETIC,
    droughts: Sequence[str] | None = None,
    weathers: int | None = None,
    **shared: Any,
) -> dict[str, DrawnFires]:
    """`count` fires of each scenario, planned by `draw_fires`, from the same ignitions.

    The n-th ignition has the same cell, and where fires have a weather of their own the same
    weather, in every scenario. Ignitions are drawn where the first scenario's landscape can ignite
    and every scenario's can burn: the cells that `draw_fires` takes by itself depend on the fuels.
    """
    grounds = {
        name: replace(ground, fuels=change.fuels or ground.fuels)
        for name, change in changes.items()
    }
    region = _common_region({name: changed.landscape() for name, changed in grounds.items()})
    made: dict[str, DrawnFires] = {}
    for name, change in changes.items():
        weather: dict[str, Any] = {"droughts": droughts, "weathers": weathers}
        if change.droughts is not None:
            weather = {"droughts": change.droughts}
        made[name] = draw_fires(count, ground=grounds[name], region=region, **weather, **shared)
    return made


def _common_region(landscapes: Mapping[str, Landscape | None]) -> np.ndarray | None:
    """Cells that ignite in the first scenario and can burn in all; None for synthetic ground."""
    (first, ground), *others = landscapes.items()
    if ground is None:
        return None
    region = ignition_mask(ground)
    for name, other in others:
        assert other is not None  # all have the elevations
        if any(
            getattr(other, part) != getattr(ground, part) for part in ("shape", "corner", "cell")
        ):
            raise PlumecastError(
                f"scenarios '{first}' and '{name}' are on different grids: {_words(ground)}, and "
                f"{_words(other)}; warp one raster to the other"
            )
        region &= other.burnable
    if not region.any():
        raise PlumecastError(
            f"no cell can ignite in '{first}' and burn in every scenario; check the fuel rasters"
        )
    return region


def _words(ground: Landscape) -> str:
    rows, columns = ground.shape
    x, y = ground.corner
    return f"{rows} × {columns} fire cells of {ground.cell:g} m from ({x:.7g}, {y:.7g})"
