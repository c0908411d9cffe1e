"""Fires drawn from the embedded simulator for statistics: made, counted and forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.blocks import row_blocks
from plumecast.data.layout import GRID_TOLERANCE
from plumecast.sources.concat import concat_snapshots
from plumecast.sources.simulator import ensemble
from plumecast.sources.simulator.fire import BLOCK, smoke_centres
from plumecast.sources.simulator.land.landscape import Landscape
from plumecast.workflows.simulate import Ground

FIRST_DRAWN = 1_000_000
"""Number of the first ignition that is drawn: beyond those of any ensemble that was simulated, so
that a surrogate trained on it has seen none of them."""

TOGETHER = 8
"""Fires that are made and counted together: few enough to keep all workers of a cluster busy."""


@dataclass(frozen=True, slots=True)
class DrawnFires:
    """Fires of the embedded simulator, made without their smoke when and where they are wanted."""

    simulator: ensemble.Simulator
    plans: Sequence[ensemble.FirePlan]
    settings: Mapping[str, Any]  # named as in a simulated store

    def parts(self) -> list[Sequence[ensemble.FirePlan]]:
        """The planned fires, TOGETHER at a time."""
        return [self.plans[rows] for rows in row_blocks(len(self.plans), TOGETHER)]

    def make(self, part: Sequence[ensemble.FirePlan]) -> xr.Dataset:
        """The snapshots of some of them."""
        return concat_snapshots([self.simulator.fire(plan, with_smoke=False) for plan in part])


def draw_fires(
    count: int,
    *,
    like: xr.Dataset | None = None,
    preset: str | None = None,
    droughts: Sequence[str] = ensemble.DROUGHTS,
    checkpoints: int | None = None,
    seed: int = 0,
    dem: str | Path | None = None,
    fuels: str | Path | None = None,
    bare_where_missing: bool = False,
    steering: float | None = None,
) -> DrawnFires:
    """Fires for `ensemble_statistics`, drawn by the embedded simulator and never stored.

    Landscape and weather are those of `simulate` with the same `preset` (or `dem` and `fuels`),
    `seed`, `checkpoints` and `steering`; the ignitions are others. Each ignition burns under every
    one of `droughts` in turn, until there are `count` fires. Smoke does not act on a fire, so only
    its front is run. `like` has the y and x that the fires must be on (`surrogate.grid`); without
    rasters and a `preset` it is the preset with that grid.
    """
    if count < 1:
        raise PlumecastError(f"simulate={count}; draw at least one fire")
    ground = Ground(dem, fuels, bare_where_missing, steering)
    landscape = ground.landscape()
    if landscape is None:
        preset = _preset_on(like, preset)
    elif like is not None:
        _refuse_other_grid(landscape, like)
    size = ensemble.ensemble_size(preset or "paper", None, checkpoints)
    if landscape is not None:
        size = replace(size, years=1, shape=landscape.shape, cell=landscape.cell)
    world = ensemble.World(
        seed, size.checkpoints, size.years, size.shape, size.cell,
        landscape=landscape, steering=ground.strength,
    )  # fmt: skip
    ignitions = -(-count // max(1, len(droughts)))
    plans = ensemble.plan_fires(ignitions, droughts, seed, first=FIRST_DRAWN)
    settings = {"seed": seed, "checkpoints": size.checkpoints, **ground.record()}
    return DrawnFires(ensemble.Simulator(world), plans[:count], settings)


def _preset_on(like: xr.Dataset | None, preset: str | None) -> str:
    """The preset that was given, or the one whose grid is that of `like`."""
    name = preset or "paper"
    ensemble.ensemble_size(name, None, None)  # refuses one that is unknown
    if like is None:
        return name
    sizes = ensemble.PRESETS.items()
    fitting = [known for known, size in sizes if _is_on(size.shape, size.cell, like)]
    if not fitting or (preset is not None and preset not in fitting):
        advice = (
            f"take preset '{fitting[0]}'" if fitting else "no preset has it, give dem and fuels"
        )
        what = f"preset '{preset}' is" if preset else "simulated fires are"
        raise PlumecastError(f"{what} not on the surrogate's {_cells(like)}; {advice}")
    return preset or fitting[0]


def _refuse_other_grid(landscape: Landscape, like: xr.Dataset) -> None:
    if not _is_on(landscape.shape, landscape.cell, like):
        rows, columns = (size // BLOCK for size in landscape.shape)
        raise PlumecastError(
            f"the rasters make a smoke grid of {rows} × {columns} cells of "
            f"{BLOCK * landscape.cell:g} m, not the surrogate's {_cells(like)}; give those of its "
            "training fires"
        )


def _cells(like: xr.Dataset) -> str:
    steps = np.diff(like["x"].values) if "x" in like.coords else np.empty(0)
    size = f" of {steps[0]:g} m" if steps.size else ""
    return f"grid of {like.sizes.get('y')} × {like.sizes.get('x')} cells{size}"


def _is_on(shape: tuple[int, int], cell: float, like: xr.Dataset) -> bool:
    """Whether fires on a fire grid are on the smoke grid `like`."""
    coarse = (shape[0] // BLOCK, shape[1] // BLOCK)
    return all(
        axis in like.coords
        and like[axis].shape == centres.shape
        and np.allclose(like[axis].values, centres, rtol=0.0, atol=GRID_TOLERANCE * centres[-1])
        for axis, centres in zip("yx", smoke_centres(coarse, cell * BLOCK), strict=True)
    )
