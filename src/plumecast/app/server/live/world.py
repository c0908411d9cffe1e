"""The ground of the page: landscape, grid and checkpoints, and the fires one can light there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.drawing.hillshade import shade
from plumecast.app.drawing.png import encode_png
from plumecast.base.checkpoints import recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SIMULATION, SMOKE
from plumecast.compute.regrid import grid_from_centres
from plumecast.data.crs import crs_of
from plumecast.physics.fuels import fuel_name
from plumecast.simulator.ensemble import PRESETS, Simulator, World
from plumecast.simulator.fire import INTERVAL_HOURS
from plumecast.simulator.landscape import Landscape
from plumecast.simulator.weather import OWN, SCENARIOS, Weather, stated_weather
from plumecast.workflows.fires.draw_fires import is_on
from plumecast.workflows.simulate import WEATHER_KIND, Ground

LINE_POINTS = 16
"""A line of fire is lit at this many places at most."""

LINE_SPACING = 5  # fire cells between the lit places of a line, at least
_FUELS = ((100, 139, (196, 190, 112)), (140, 159, (150, 160, 84)), (160, 209, (84, 120, 76)))
_BARE = (188, 196, 204)


@dataclass(frozen=True)
class LiveWorld:
    """Where fires are lit: a smoke grid and, if the landscape is known, a simulator."""

    grid: xr.Dataset  # coordinates y and x of the smoke cells
    interval: float  # hours between checkpoints
    checkpoints: int
    own_weather: bool  # the fires of training have a weather each
    simulator: Simulator | None
    why_not: str = ""  # why no fire can be lit

    @property
    def hours(self) -> list[float]:
        """Hours of the checkpoints since ignition."""
        return [self.interval * (k + 1) for k in range(self.checkpoints)]

    @cached_property
    def record(self) -> dict[str, Any]:
        """The grid as the page needs it: cell sizes, and the lower left corner."""
        x, y = (self.grid[axis].values for axis in "xy")
        cells = grid_from_centres(np.sort(x), np.sort(y), "the grid")
        return {
            "ny": cells.ny, "nx": cells.nx, "x0": cells.left, "y0": cells.bottom,
            "dx": cells.dx, "dy": cells.dy, "has_projection": crs_of(self.grid) is not None,
        }  # fmt: skip

    def cell_of(self, x: float, y: float) -> tuple[int, int]:
        """Row and column, from the south-west, of the smoke cell with a point."""
        grid = self.record
        column, row = (x - grid["x0"]) / grid["dx"], (y - grid["y0"]) / grid["dy"]
        if not (0.0 <= column <= grid["nx"] and 0.0 <= row <= grid["ny"]):
            raise PlumecastError(f"the point x={x:g}, y={y:g} lies outside the map")
        return min(int(row), grid["ny"] - 1), min(int(column), grid["nx"] - 1)

    @property
    def ground(self) -> Landscape:
        """The landscape; raises if there is none."""
        return self._lit().landscape()

    def _lit(self) -> Simulator:
        if self.simulator is None:
            raise PlumecastError(f"fires cannot be lit: {self.why_not}")
        return self.simulator

    def describe(self, x: float, y: float) -> dict[str, Any]:
        """Elevation and fuel at a point."""
        ground = self.ground
        row, column = _fire_cell(ground, x, y)
        code = int(ground.fuel[row, column])
        return {
            "elevation": float(ground.elevation[row, column]),
            "fuel": fuel_name(code),
            "burnable": bool(ground.burnable[row, column]),
        }

    def ignited(self, points: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
        """Fire cells that a point, or a line through points, lights."""
        ground = self.ground
        cells = [_fire_cell(ground, x, y) for x, y in along(points, LINE_SPACING * ground.cell)]
        burnable = [cell for cell in dict.fromkeys(cells) if ground.burnable[cell]]
        if not burnable:
            row, column = cells[0]
            raise PlumecastError(
                f"{fuel_name(int(ground.fuel[row, column]))} does not burn; light the fire on "
                "burnable ground"
            )
        return burnable

    def weather(self, wanted: Mapping[str, Any]) -> Weather:
        """The weather of a drought, or of two winds; see `stated_weather`."""
        if "surface" not in wanted:
            return self._lit().drought_weather(wanted["drought"])
        return stated_weather(
            wanted["surface"], wanted["aloft"], local_hour=wanted["hour"],
            drought=wanted["drought"], hours=self.hours[-1],
        )  # fmt: skip

    def burn(
        self, cells: Sequence[tuple[int, int]], weather: Weather, checkpoints: int
    ) -> xr.Dataset:
        """Snapshots of a fire up to a checkpoint, without smoke."""
        return self._lit().fire_at(
            list(cells), weather, checkpoints=checkpoints, with_smoke=False, fire_id="live"
        )

    @cached_property
    def picture(self) -> bytes:
        """Hillshade and fuels as PNG, north up, one pixel per fire cell."""
        ground = self.ground
        colours = np.full((*ground.shape, 3), _BARE, dtype=np.float64)
        for first, last, colour in _FUELS:
            colours[(ground.fuel >= first) & (ground.fuel <= last)] = colour
        light = shade(ground.elevation, ground.cell, ground.cell)[..., np.newaxis]
        lit = np.clip((0.35 + 0.9 * light) * colours + 30.0, 0.0, 255.0)
        opaque = np.full((*ground.shape, 1), 255.0)
        return encode_png(np.concatenate([lit, opaque], axis=2)[::-1].astype(np.uint8))


def along(points: Sequence[tuple[float, float]], spacing: float) -> list[tuple[float, float]]:
    """Points along a line, evenly spaced: at most `LINE_POINTS`, at least `spacing` apart.

    >>> along([(0.0, 0.0), (30.0, 0.0)], 10.0)
    [(0.0, 0.0), (10.0, 0.0), (20.0, 0.0), (30.0, 0.0)]
    """
    line = np.asarray(points, dtype=np.float64)
    steps = np.hypot(*np.diff(line, axis=0).T)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    count = min(LINE_POINTS, int(length[-1] / spacing) + 1)
    at = np.linspace(0.0, length[-1], count)
    return [(float(np.interp(s, length, line[:, 0])), float(np.interp(s, length, line[:, 1])))
            for s in at]  # fmt: skip


def _fire_cell(ground: Landscape, x: float, y: float) -> tuple[int, int]:
    column, row = ((value - low) / ground.cell for value, low in zip((x, y), ground.corner,
                                                                     strict=True))  # fmt: skip
    ny, nx = ground.shape
    if not (0.0 <= column <= nx and 0.0 <= row <= ny):
        raise PlumecastError(f"the point x={x:g}, y={y:g} lies outside the landscape")
    return min(int(row), ny - 1), min(int(column), nx - 1)


def live_world(
    grid: xr.Dataset,
    settings: Mapping[str, Any] | None,
    ground: Ground,
    *,
    interval: float | None = None,
    checkpoints: int | None = None,
) -> LiveWorld:
    """The world of a smoke grid: from the settings its fires were simulated with, or from rasters.

    Without either, the synthetic landscape of a preset with this grid is taken; if none has it, no
    fire can be lit.
    """
    known = dict(settings or {})
    made = interval or INTERVAL_HOURS
    count = checkpoints or int(known.get("checkpoints", 12))
    own = known.get(WEATHER_KIND, OWN if settings is None else "") == OWN
    try:
        world = _simulated(grid, known, ground, made, count)
    except PlumecastError as error:
        return LiveWorld(grid, made, count, own, None, str(error))
    return LiveWorld(grid, made, count, own, Simulator(world))


def _simulated(
    grid: xr.Dataset, known: Mapping[str, Any], ground: Ground, interval: float, count: int
) -> World:
    landscape = ground.landscape()
    if landscape is None and known.get("dem"):
        raise PlumecastError(
            f"give the rasters of the store with --dem and --fuels: {known['dem']}"
        )
    if landscape is None and not known:
        known = _preset_like(grid)
    shape = tuple(known.get("shape", ())) if landscape is None else landscape.shape
    cell = float(known["cell"]) if landscape is None else landscape.cell
    corner = (0.0, 0.0) if landscape is None else landscape.corner
    if not is_on((int(shape[0]), int(shape[1])), cell, grid, corner):
        raise PlumecastError("the landscape is not that of the grid of the surrogate")
    return World(
        int(known.get("seed", 0)), count, 1 if landscape else int(known.get("years", 1)),
        (int(shape[0]), int(shape[1])), cell, interval, landscape,
        steering=float(known.get("steering", ground.strength)),
    )  # fmt: skip


def _preset_like(grid: xr.Dataset) -> dict[str, Any]:
    for size in PRESETS.values():
        if is_on(size.shape, size.cell, grid):
            return {"shape": size.shape, "cell": size.cell}
    raise PlumecastError("the landscape of these fires is not known; give --dem and --fuels")


def store_settings(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """The settings that simulated snapshots record; None for other sources."""
    try:
        found = json.loads(attributes[SIMULATION])
    except (KeyError, TypeError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def store_interval(snapshots: xr.Dataset) -> float | None:
    """Hours between the checkpoints of a store, if it records them."""
    return recorded_interval(snapshots[SMOKE].attrs)


DROUGHTS = tuple(SCENARIOS)
