"""The ground of the page: landscape, grid and checkpoints, and the fires one can light there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from plumecast.app.maps.colours import encode_png
from plumecast.app.maps.ground import shade
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SIMULATION
from plumecast.compute.regrid import Grid, grid_from_centres
from plumecast.physics.fuels import fuel_name
from plumecast.simulator.ensemble import PRESETS, Simulator, World
from plumecast.simulator.fire import INTERVAL_HOURS
from plumecast.simulator.landscape import Landscape
from plumecast.simulator.weather import OWN, SCENARIOS, Weather, stated_weather
from plumecast.workflows.fires.draw_fires import is_on
from plumecast.workflows.simulate import WEATHER_KIND, Ground

DROUGHTS = tuple(SCENARIOS)

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
    def cells(self) -> Grid:
        """The smoke cells, from the south-west."""
        x, y = (np.sort(self.grid[axis].values) for axis in "xy")
        return grid_from_centres(x, y, "the grid")

    def cell_of(self, x: float, y: float) -> tuple[int, int]:
        """Row and column, from the south-west, of the smoke cell with a point."""
        cells = self.cells
        at = (x - cells.left) / cells.dx, (y - cells.bottom) / cells.dy
        return _cell_at(*at, cells.nx, cells.ny, f"the point x={x:g}, y={y:g} is outside the map")

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
    ny, nx = ground.shape
    at = (x - ground.corner[0]) / ground.cell, (y - ground.corner[1]) / ground.cell
    return _cell_at(*at, nx, ny, f"the point x={x:g}, y={y:g} is outside the landscape")


def _cell_at(column: float, row: float, nx: int, ny: int, problem: str) -> tuple[int, int]:
    """Row and column of the cell with a point, in cells from the corner; its far edges count."""
    if not (0.0 <= column <= nx and 0.0 <= row <= ny):
        raise PlumecastError(problem)
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
    settings = dict(settings or {WEATHER_KIND: OWN})
    made = interval or INTERVAL_HOURS
    count = checkpoints or int(settings.get("checkpoints", 12))
    with_weather = settings.get(WEATHER_KIND) == OWN
    try:
        world = _simulated(grid, settings, ground, made, count)
    except PlumecastError as error:
        return LiveWorld(grid, made, count, with_weather, None, str(error))
    return LiveWorld(grid, made, count, with_weather, Simulator(world))


def _simulated(
    grid: xr.Dataset, settings: dict[str, Any], ground: Ground, interval: float, count: int
) -> World:
    landscape = ground.landscape()
    if landscape is None and settings.get("dem"):
        raise PlumecastError(
            f"give the rasters of the store with --dem and --fuels: {settings['dem']}"
        )
    if landscape is not None:
        shape, cell, corner, years = landscape.shape, landscape.cell, landscape.corner, 1
    else:
        if "shape" not in settings:
            alike = [size for size in PRESETS.values() if is_on(size.shape, size.cell, grid)]
            if not alike:
                raise PlumecastError(
                    "the landscape of these fires is not known; give --dem and --fuels"
                )
            settings = {"shape": alike[0].shape, "cell": alike[0].cell}
        ny, nx = settings["shape"]
        shape, cell, corner = (int(ny), int(nx)), float(settings["cell"]), (0.0, 0.0)
        years = int(settings.get("years", 1))
    if not is_on(shape, cell, grid, corner):
        raise PlumecastError("the landscape is not that of the grid of the surrogate")
    return World(
        int(settings.get("seed", 0)), count, years, shape, cell, interval, landscape,
        steering=float(settings.get("steering", ground.strength)),
    )  # fmt: skip


def store_settings(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """The settings that simulated snapshots record; None for other sources."""
    try:
        settings = json.loads(attributes[SIMULATION])
    except (KeyError, TypeError, ValueError):
        return None
    return settings if isinstance(settings, dict) else None
