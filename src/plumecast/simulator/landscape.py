"""Terrain and fuel on the fire grid, the smoke grid above it, and synthetic landscapes.

Row 0 is the south edge and column 0 the west edge: y increases with the row, x with the column.

A synthetic landscape is a valley between mountain ranges, like the Upper Rio Grande. Terrain is
made by spectral synthesis (Gaussian noise with a power-law spectrum, folded into ridges) under an
envelope of valley, ranges and foothills. Fuels depend on elevation, aspect and patchy noise. The
fire model has neither crown fire nor spotting, so the forests have more of the fast understory,
shrub and blowdown fuels than the surface of a real forest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import fft, special
from scipy.ndimage import (
    gaussian_filter,
)

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import TABLE
from plumecast.compute.arrays import Field, Mask
from plumecast.data.crs import as_crs, in_metres, latitude_longitude
from plumecast.physics.fuels import FUEL_CODES, Codes, fuel_codes, fuel_table


@dataclass(frozen=True, eq=False)
class Landscape:
    """Elevation and Scott and Burgan fuel codes on square cells."""

    elevation: Field  # (ny, nx) m
    fuel: Codes  # (ny, nx) fuel code
    cell: float  # side of a cell, m
    corner: tuple[float, float] = (0.0, 0.0)  # x and y of the south-west corner, m
    crs: str | None = None  # of x and y, e.g. "EPSG:5070"; None if the ground is on no map

    def __post_init__(self) -> None:
        if self.elevation.ndim != 2 or self.elevation.shape != self.fuel.shape:
            raise PlumecastError(
                f"elevation has shape {self.elevation.shape} and fuel {self.fuel.shape}; "
                "both must be (rows, columns) of one grid"
            )
        if not self.cell > 0.0:
            raise ArgumentError("cell", self.cell, problem="must be a positive number of m")
        if not np.isfinite(self.elevation).all():
            holes = int((~np.isfinite(self.elevation)).sum())
            raise PlumecastError(
                f"elevation has {holes} cells without a value; fill them, e.g. by interpolation"
            )
        object.__setattr__(self, "fuel", fuel_codes(self.fuel))

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.fuel.shape[0], self.fuel.shape[1]

    @cached_property
    def slope(self) -> tuple[Field, Field]:
        """(∂z/∂x, ∂z/∂y), rise over run towards east and north, by central differences."""
        east = np.asarray(np.gradient(self.elevation, self.cell, axis=1))
        north = np.asarray(np.gradient(self.elevation, self.cell, axis=0))
        return east, north

    @property
    def burnable(self) -> Mask:
        """Cells whose fuel can burn."""
        return np.asarray(fuel_table().burnable[self.fuel])


def synthetic_landscape(
    seed: int, shape: tuple[int, int] = (800, 1000), cell: float = 300.0, year: int = 0
) -> Landscape:
    """Synthetic valley between mountain ranges; `year` changes the fuels but not the terrain."""
    if min(shape) < 20:
        raise ArgumentError(
            "shape", shape, "use 20 cells or more", problem="is too small for a landscape"
        )
    ground = np.random.default_rng([seed, 0])
    elevation = synthetic_terrain(ground, shape, cell)
    fuel = synthetic_fuels(ground, elevation, cell)
    fuel = disturbed(np.random.default_rng([seed, 1, year]), fuel, cell)
    return Landscape(elevation, fuel, cell)


def ignition_mask(landscape: Landscape, *, margin: float = 30_000.0) -> Mask:
    """Cells where fires may ignite, (ny, nx): burnable, forested mountains away from the edge.

    The distance to the edge is at least `margin` metres, or 15 % of the shorter side on a small
    grid. Forested means that most of the fuel around the cell is shrub or timber. Mountains are the
    higher half of the burnable ground.
    """
    ny, nx = landscape.shape
    rim = int(min(margin / landscape.cell, 0.15 * min(ny, nx)))
    inside = np.zeros((ny, nx), dtype=bool)
    inside[rim : ny - rim, rim : nx - rim] = True
    burnable = landscape.burnable
    woody = burnable & (landscape.fuel >= FUEL_CODES["SH1"])
    forested = gaussian_filter(woody.astype(float), sigma=2.0) > 0.5
    height = landscape.elevation[burnable]
    mountains = landscape.elevation >= (np.median(height) if height.size else np.inf)
    return np.asarray(burnable & forested & mountains & inside)


def smoke_grid(landscape: Landscape, block: int) -> dict[str, Any]:
    """Coordinates y and x of the smoke cells (`block` by `block` fire cells each).

    A landscape with a CRS adds the CF grid mapping `crs`, and `lat` and `lon` of the cells.
    """
    shape = (landscape.shape[0] // block, landscape.shape[1] // block)
    y, x = smoke_centres(shape, landscape.cell * block, landscape.corner)
    out: dict[str, Any] = {"y": ("y", y, TABLE["y"].attrs), "x": ("x", x, TABLE["x"].attrs)}
    if landscape.crs is None:
        return out
    crs = in_metres(as_crs(landscape.crs, "the landscape"))
    for name, degrees in zip(("lat", "lon"), latitude_longitude(crs, y, x), strict=True):
        out[name] = (("y", "x"), degrees, TABLE[name].attrs)
    return out | {"crs": ((), 0, crs.to_cf())}


def smoke_centres(
    shape: tuple[int, int], cell: float, corner: tuple[float, float] = (0.0, 0.0)
) -> tuple[Field, Field]:
    """Cell centres (y, x) of the smoke grid, from south to north and from west to east, m.

    `corner` is x and y of the south-west corner.
    """
    (ny, nx), (left, bottom) = shape, corner
    y, x = (cell * (np.arange(count, dtype=np.float64) + 0.5) for count in (ny, nx))
    return bottom + y, left + x


VALLEY_FLOOR = 2300.0
"""Elevation of the valley, m (the San Luis Valley lies at 2,300 m)."""

HIGHEST_PEAK = 3900.0
"""Elevation of the highest summits, m."""

# Elevation belts from the valley up: upper limit in m, then fuels with their shares. One smooth
# noise field chooses among the fuels of a belt, so fuels next to each other in the list are also
# next to each other on the ground.
_BELTS: tuple[tuple[float, dict[str, float]], ...] = (
    (2450.0, {"GR1": 0.10, "GR2": 0.30, "GS1": 0.20, "GS2": 0.25, "SH1": 0.05, "SH2": 0.10}),
    (2700.0, {"GR2": 0.12, "GR4": 0.13, "GS2": 0.30, "SH5": 0.25, "SH7": 0.15, "TU1": 0.05}),
    (3050.0, {"GR4": 0.10, "GS2": 0.10, "SH5": 0.30, "TU3": 0.25, "SH7": 0.15, "TU5": 0.10}),
    (3500.0, {"GR4": 0.08, "TU2": 0.10, "TU3": 0.30, "SB4": 0.17, "SB3": 0.15, "TU5": 0.20}),
    (3680.0, {"GR2": 0.20, "GS1": 0.20, "GR1": 0.25, "NB9": 0.35}),
    (np.inf, {"GR1": 0.15, "NB9": 0.85}),
)

# Disturbed share of shrub and timber, and the fuels that replace it: after fire, after thinning,
# after beetles and wind.
_SUCCESSION: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.10, ("GR1", "GS1", "GS2", "SH5")),
    (0.04, ("TU1", "TL3")),
    (0.04, ("SB2", "SB4")),
)


def noise(
    rng: np.random.Generator,
    shape: tuple[int, int],
    cell: float,
    *,
    longest: float,
    decay: float,
    shortest: float = 0.0,
) -> Field:
    """Gaussian random field of unit variance with amplitude ∝ k^−decay between two wavelengths, m.

    Waves longer than `longest` are damped, waves shorter than `shortest` removed.
    """
    spectrum = fft.rfft2(rng.standard_normal(shape))
    ky = fft.fftfreq(shape[0], cell)[:, None]
    kx = fft.rfftfreq(shape[1], cell)[None, :]
    k = np.hypot(ky, kx)
    amplitude = (k**2 + longest**-2.0) ** (-0.5 * decay)
    amplitude[0, 0] = 0.0
    if shortest > 0.0:
        amplitude *= np.exp(-((k * shortest) ** 2))
    field = fft.irfft2(spectrum * amplitude, s=shape)
    return np.asarray(field / field.std())


def synthetic_terrain(rng: np.random.Generator, shape: tuple[int, int], cell: float) -> Field:
    """Elevation in m, (ny, nx): a valley along the south–north axis between mountains."""
    ny, nx = shape
    width = nx * cell
    y, x = np.meshgrid(np.arange(ny) / ny, (np.arange(nx) + 0.5) / nx, indexing="ij")
    bend = rng.uniform(0.02, 0.05) * np.sin(2.0 * np.pi * (y + rng.uniform()))
    axis = rng.uniform(0.5, 0.6) + rng.uniform(-0.1, 0.1) * (y - 0.5) + bend
    rugged = 0.02 * noise(rng, shape, cell, longest=0.2 * width, decay=2.5, shortest=0.01 * width)
    west, east = axis - x + rugged, x - axis + rugged
    envelope = _rise(west, 0.06, 0.20) + _rise(east, 0.05, 0.14) * (
        1.0 - 0.6 * _rise(east, 0.22, 0.4)
    )
    massif = special.ndtr(noise(rng, shape, cell, longest=0.25 * width, decay=3.0, shortest=5e3))
    crest = noise(rng, shape, cell, longest=0.15 * width, decay=1.9, shortest=800.0)
    ridges = 1.0 / (1.0 + 2.0 * np.abs(crest))
    spurs = noise(rng, shape, cell, longest=0.03 * width, decay=2.2, shortest=800.0)
    relief = envelope * (0.38 + 0.30 * massif + 0.35 * ridges + 0.09 * spurs)
    relief += 0.01 * (noise(rng, shape, cell, longest=0.1 * width, decay=2.5) + 2.0)
    relief = np.clip(relief / np.quantile(relief, 0.9995), 0.0, 1.0)
    return np.asarray(VALLEY_FLOOR + (HIGHEST_PEAK - VALLEY_FLOOR) * relief)


def synthetic_fuels(rng: np.random.Generator, elevation: Field, cell: float) -> Codes:
    """Fuel codes by elevation belts, with patches of a few km; belts are lower on north slopes."""
    shape = (elevation.shape[0], elevation.shape[1])
    north, east = np.gradient(elevation, cell)
    coolness = -north / np.maximum(np.hypot(north, east), 0.15)
    height = elevation + 120.0 * coolness + 80.0 * noise(rng, shape, cell, longest=9e3, decay=2.5)
    patch = special.ndtr(noise(rng, shape, cell, longest=8e3, decay=2.0))
    fuel = np.empty(shape, dtype=np.int16)
    lower = -np.inf
    for upper, shares in _BELTS:
        belt = (height > lower) & (height <= upper)
        codes = np.array([FUEL_CODES[name] for name in shares], dtype=np.int16)
        steps = np.cumsum(list(shares.values()))[:-1]
        fuel[belt] = codes[np.searchsorted(steps, patch[belt])]
        lower = upper
    return _with_covers(rng, fuel, elevation, cell)


def disturbed(rng: np.random.Generator, fuel: Codes, cell: float) -> Codes:
    """The fuel map after some years: patches of shrub and timber burned, thinned or blown down."""
    shape = (fuel.shape[0], fuel.shape[1])
    after = fuel.copy()
    for share, stages in _SUCCESSION:
        patch = special.ndtr(noise(rng, shape, cell, longest=15e3, decay=2.2))
        stage = special.ndtr(noise(rng, shape, cell, longest=6e3, decay=1.8))
        codes = np.array([FUEL_CODES[name] for name in stages], dtype=np.int16)
        chosen = codes[np.minimum((stage * len(stages)).astype(int), len(stages) - 1)]
        woody = fuel_table().burnable[fuel] & (fuel >= FUEL_CODES["SH1"])
        after = np.where(woody & (patch < share), chosen, after)
    return np.asarray(after, dtype=np.int16)


def _with_covers(rng: np.random.Generator, fuel: Codes, elevation: Field, cell: float) -> Codes:
    """Add fields and towns on the valley floor, and lakes below 3,300 m."""
    shape = (fuel.shape[0], fuel.shape[1])
    floor = elevation < VALLEY_FLOOR + 110.0
    fields = noise(rng, shape, cell, longest=20e3, decay=2.2)
    towns = noise(rng, shape, cell, longest=5e3, decay=2.5)
    water = noise(rng, shape, cell, longest=4e3, decay=2.5)
    fuel = np.where(floor & (fields > 0.4), FUEL_CODES["NB3"], fuel)
    fuel = np.where(floor & (towns > 2.6), FUEL_CODES["NB1"], fuel)
    fuel = np.where((elevation < 3300.0) & (water > 2.9), FUEL_CODES["NB8"], fuel)
    return fuel.astype(np.int16)


def _rise(distance: Field, start: float, end: float) -> Field:
    """Smooth step from 0 at `start` to 1 at `end`."""
    t = np.clip((distance - start) / (end - start), 0.0, 1.0)
    return np.asarray(t * t * (3.0 - 2.0 * t))
