"""Simulate an ensemble into a snapshot store, on the synthetic landscape or on the user's rasters.

An ensemble can be continued, and is the same for any number of workers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.ndimage import distance_transform_edt

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import GROUND, SIMULATION, WEATHER, WEATHER_AXES
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.crs import crs_of
from plumecast.data.store import append_fire, check_store_path, open_snapshots, stored_fires
from plumecast.physics.fuels import NB9, fuel_codes
from plumecast.simulator import ensemble
from plumecast.simulator.atmosphere import STEERING_STRENGTH, check_steering
from plumecast.simulator.fire import BLOCK
from plumecast.simulator.landscape import Landscape
from plumecast.simulator.weather import OWN
from plumecast.sources.rasters.files import open_geotiff

SETTINGS = SIMULATION

WEATHER_KIND = "weather"
"""Setting that a store records: whether its fires share weathers or have their own."""

_SHARED = "drought"

_LATER = [entry.name for entry in (*WEATHER, *WEATHER_AXES, *GROUND)]
"""Variables that stores of earlier versions lack; such a store is continued without them."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The ground of simulated fires: rasters of the user's or the synthetic landscape.

    `dem` and `fuels` are GeoTIFFs of elevation and of Scott & Burgan fuels that replace the
    synthetic landscape; the snapshots keep their CRS and coordinates. With `bare_where_missing`,
    missing cells become bare ground. `steering` is how strongly terrain turns the wind along its
    valleys, from 0 (not at all); the default is 1.2. The wind along a straight deep valley gains
    steering / 2 times its speed; the wind across it loses as much.
    """

    dem: str | Path | None = None
    fuels: str | Path | None = None
    bare_where_missing: bool = False
    steering: float | None = None

    @property
    def strength(self) -> float:
        """Strength of the steering; the default if none was given."""
        strength = STEERING_STRENGTH if self.steering is None else float(self.steering)
        check_steering(strength)
        return strength

    def landscape(self) -> Landscape | None:
        """The landscape of the rasters; None for the synthetic one.

        Rows in the north and columns in the east that do not fill a smoke cell are cut off.
        """
        if (self.dem is None) != (self.fuels is None):
            raise PlumecastError("a landscape needs both an elevation and a fuel raster; give both")
        if self.dem is None or self.fuels is None:
            return None
        whole = read_landscape(self.dem, self.fuels, bare_where_missing=self.bare_where_missing)
        rows, columns = (size - size % BLOCK for size in whole.shape)
        return replace(
            whole, elevation=whole.elevation[:rows, :columns], fuel=whole.fuel[:rows, :columns]
        )

    def record(self) -> dict[str, Any]:
        """The settings that a store records: rasters with a hash of their content."""
        rasters = {}
        for name, path in (("dem", self.dem), ("fuels", self.fuels)):
            if path is not None and not Path(path).is_file():
                raise PlumecastError(f"{path} does not exist or is not a file")
            rasters[name] = path if path is None else (
                f"{Path(path).name} sha256:{sha256(Path(path).read_bytes()).hexdigest()[:20]}"
            )  # fmt: skip
        bare = {"bare_where_missing": self.bare_where_missing}
        return rasters | bare | {"steering": self.strength}


SYNTHETIC = Ground()
"""The synthetic landscape with the default steering."""


@folded_arguments(ground=Ground, resources=Resources)
def simulate(
    out: str | Path | None = None,
    *,
    preset: str | None = None,
    ignitions: int | None = None,
    droughts: Sequence[str] | None = None,
    weathers: int | None = None,
    checkpoints: int | None = None,
    seed: int = 0,
    ground: Ground = SYNTHETIC,
    workers: int = 1,
    resources: Resources = LOCAL,
) -> xr.Dataset:
    """Simulate fires and their smoke: `ignitions` times `droughts`, `checkpoints` six hours apart.

    The hourly weather is stored with every fire.

    Parameters
    ----------
    out
        Store that finished fires are committed to, one at a time or a few together if they are
        finished faster than they are written. A store that holds some of the fires is continued; a
        store made with other settings raises an error. Without it, the snapshots stay in memory.
    preset
        "demo", "paper" or "weathers": sets the sizes that are not given; without it, the grid is
        the paper's.
    ignitions, checkpoints, seed
        Number of ignitions, of snapshots of each fire, and the seed of all that is drawn.
    droughts
        Scenarios whose weather all fires share; by default each ignition burns under all three.
    weathers
        Instead, each ignition burns under this number of weathers of its own, drawn from
        `simulator.weather.RANGES`.
    ground
        Rasters that replace the synthetic landscape, and the steering of the wind by terrain.
    workers
        Processes of this machine; the result does not depend on their number.
    resources
        With a runner (`pc.cluster`), cluster workers simulate the fires instead; only this process
        writes. The progress is `(finished, total, fire_id)` after each fire.
    """
    size = ensemble.ensemble_size(preset, ignitions, checkpoints)
    landscape = ground.landscape()
    drawn = weathers_of(size, droughts, weathers)
    settings = {
        "checkpoints": size.checkpoints,
        "years": size.years,
        "shape": list(size.shape),
        "cell": size.cell,
        "seed": seed,
        **weather_record(drawn),
        **ground.record(),
    }
    absent: list[str] = []
    done: frozenset[str] = frozenset()
    if out is not None:
        check_store_path(out)
        done = stored_fires(out)
    if out is not None and done:
        stored = open_snapshots(out)
        _refuse_other_settings(stored, Path(out), settings)
        absent = [name for name in _LATER if name not in stored.variables]
        landscape = None if landscape is None else in_plane_of(stored, landscape)

    def append(fire: xr.Dataset) -> None:
        assert out is not None
        like_stored = fire.drop_vars(absent, errors="ignore")
        append_fire(out, like_stored.assign_attrs({SETTINGS: json.dumps(settings)}))

    labels = ensemble.DROUGHTS if droughts is None else droughts
    made = ensemble.simulate(
        ensemble.World.of(size, seed, landscape=landscape, steering=ground.strength),
        ensemble.plan_fires(size.ignitions, labels, seed, weathers=drawn),
        workers=workers,
        append=None if out is None else append,
        done=done,
        resources=resources,
    )
    if out is not None:
        return open_snapshots(out)
    assert made is not None
    return made


def weathers_of(size: ensemble.Preset, droughts: Sequence[str] | None, weathers: int | None) -> int:
    """Number of drawn weathers of each ignition; 0 if the fires share the droughts' weathers."""
    drawn = size.weathers if weathers is None else weathers
    if drawn and droughts is not None:
        raise ArgumentError(
            "droughts",
            ",".join(droughts),
            "leave one of them out (with the preset 'weathers', state 0 of these)",
            problem="are weathers that all fires share, but each has its own weather "
            f"({drawn} drawn)",
        )
    return drawn


def weather_record(weathers: int) -> dict[str, Any]:
    """The settings of the weather that a store records.

    Like more ignitions or droughts, more weathers of the same fires continue a store, so their
    number is not among them.
    """
    return {WEATHER_KIND: OWN if weathers else _SHARED}


def _refuse_other_settings(stored: xr.Dataset, out: Path, settings: dict[str, Any]) -> None:
    recorded = stored.attrs.get(SETTINGS)
    if recorded is None:
        raise PlumecastError(f"{out} holds fires from another source; choose another path")
    # Earlier versions had the default steering and shared weathers, and do not record them.
    other = {"steering": STEERING_STRENGTH, WEATHER_KIND: _SHARED} | json.loads(recorded)
    if other[WEATHER_KIND] != settings[WEATHER_KIND]:
        has, step = "share the weathers of the droughts", "leave --weathers out"
        if other[WEATHER_KIND] == OWN:
            has, step = "have a drawn weather each", "give --weathers 1"
        raise PlumecastError(
            f"{out} was simulated with fires that {has}; {step} to continue it, or choose another "
            "path"
        )
    for name, value in settings.items():
        if other.get(name) != value:
            raise PlumecastError(
                f"{out} was simulated with {name}={other.get(name)}, not {value}; "
                "repeat those settings to continue it, or choose another path"
            )


def in_plane_of(like: xr.Dataset, landscape: Landscape) -> Landscape:
    """The landscape or, if the grid of `like` has no CRS, the landscape without its own.

    Versions up to 0.2 dropped the CRS of the rasters and counted y and x from their south-west
    corner. Their stores are continued, and their surrogates used, in these coordinates.
    """
    if crs_of(like) is not None:
        return landscape
    return replace(landscape, corner=(0.0, 0.0), crs=None)


def read_landscape(
    dem: str | Path, fbfm40: str | Path, *, bare_where_missing: bool = False
) -> Landscape:
    """Landscape from a DEM (m) and an FBFM40 raster on one projected grid, e.g. from LANDFIRE.

    A raster cell without a value raises an error. With `bare_where_missing`, cells without a fuel
    become bare ground (NB9) at the nearest known elevation; such cells occur in the corners of a
    reprojected tile. The landscape keeps the CRS and the corner of the rasters.
    """
    elevation, grid = _read_band(dem)
    fuel, fuel_grid = _read_band(fbfm40)
    if grid != fuel_grid:
        raise PlumecastError(
            f"{dem} ({grid}) and {fbfm40} ({fuel_grid}) must share one grid and CRS; warp one of "
            "them to the other"
        )
    unmapped, sunk = np.ma.getmaskarray(fuel), np.ma.getmaskarray(elevation)
    if bare_where_missing and not unmapped.all():
        fuel = np.ma.asarray(fuel.filled(NB9))
        heights = elevation.data
        if sunk.any() and not sunk.all():
            nearest = distance_transform_edt(sunk, return_distances=False, return_indices=True)
            heights = heights[tuple(nearest)]
        elevation = np.ma.masked_array(heights, sunk & ~unmapped)
    for path, band in ((dem, elevation), (fbfm40, fuel)):
        holes = int(np.ma.getmaskarray(band).sum())
        if holes:
            raise PlumecastError(
                f"{path} has {holes} of {band.size} cells without a value; fill them, or take the "
                "ground as bare where the fuel is missing (--bare-where-missing, in Python "
                "bare_where_missing=True)"
            )
    height, codes = np.asarray(elevation, dtype=float), fuel_codes(np.asarray(fuel))
    return Landscape(height, codes, grid.cell, grid.corner, grid.crs)


class _RasterGrid(NamedTuple):
    """Grid of a raster: CRS, size, lower left corner and cell size, in metres."""

    crs: str
    shape: tuple[int, int]
    corner: tuple[float, float]
    cell: float

    def __str__(self) -> str:
        rows, columns = self.shape
        x, y = self.corner
        return f"{self.crs}, {rows} by {columns} cells of {self.cell:g} m from ({x:g}, {y:g})"


def _read_band(path: str | Path) -> tuple[np.ma.MaskedArray[Any, Any], _RasterGrid]:
    """First band with row 0 in the south and missing values masked, and its grid."""
    with open_geotiff(path) as source:
        band, crs, to_map = source.read(1, masked=True), source.crs, source.transform
    if crs is None or not crs.is_projected:
        raise PlumecastError(
            f"{path} has CRS {crs}; reproject it to a projected CRS, e.g. EPSG:5070"
        )
    if to_map.b or to_map.d or not np.isclose(to_map.a, abs(to_map.e)):
        raise PlumecastError(
            f"{path} has rotated or rectangular cells; resample it to square cells"
        )
    if np.issubdtype(band.dtype, np.floating):
        band = np.ma.masked_invalid(band)
    unit = float(crs.linear_units_factor[1])
    south = to_map.f + min(to_map.e * band.shape[0], 0.0)
    corner = (round(to_map.c * unit, 3), round(south * unit, 3))
    grid = _RasterGrid(crs.to_string(), band.shape, corner, round(float(to_map.a) * unit, 6))
    return (band[::-1] if to_map.e < 0.0 else band), grid
