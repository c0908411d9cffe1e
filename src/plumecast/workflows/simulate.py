"""Simulate an ensemble into a snapshot store: resumable, and the same for any number of workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import GROUND, SIMULATION, WEATHER, WEATHER_AXES
from plumecast.compute.blocks import Runner
from plumecast.data.store import append_fire, check_store_path, open_snapshots, stored_fires
from plumecast.sources.rasters.georeference import crs_of
from plumecast.sources.simulator import ensemble
from plumecast.sources.simulator.air.weather import OWN, STEERING_STRENGTH, check_steering
from plumecast.sources.simulator.fire import BLOCK
from plumecast.sources.simulator.land.landscape import Landscape, read_landscape

SETTINGS = SIMULATION

WEATHER_KIND = "weather"
"""Setting that a store records: whether its fires share weathers or have their own."""

_SHARED = "drought"

_LATER = [entry.name for entry in (*WEATHER, *WEATHER_AXES, *GROUND)]
"""Variables that stores of earlier versions lack; such a store is continued without them."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The user's choice of landscape (rasters or synthetic) and of terrain steering."""

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
        """The settings that a store records."""
        return {
            "dem": _recorded(self.dem),
            "fuels": _recorded(self.fuels),
            "bare_where_missing": self.bare_where_missing,
            "steering": self.strength,
        }


def simulate(
    out: str | Path | None = None,
    *,
    preset: str | None = None,
    ignitions: int | None = None,
    droughts: Sequence[str] | None = None,
    weathers: int | None = None,
    checkpoints: int | None = None,
    seed: int = 0,
    workers: int = 1,
    runner: Runner | None = None,
    dem: str | Path | None = None,
    fuels: str | Path | None = None,
    bare_where_missing: bool = False,
    steering: float | None = None,
    progress: Callable[[int, int, str], object] | None = None,
) -> xr.Dataset:
    """Simulate fires and their smoke: `ignitions` times `droughts`, `checkpoints` six hours apart.

    By default each ignition burns under all three droughts, whose weathers all fires share. With
    `weathers`, it burns under that number of weathers of its own instead, drawn from
    `air.weather.RANGES`. The hourly weather is stored with every fire.

    With `out`, finished fires are committed to that store, one at a time or a few together if they
    are finished faster than they are written. A store that holds some of the fires is continued; a
    store made with other settings raises an error. Without `out`, the snapshots stay in memory.
    `preset` ("demo", "paper" or "weathers") sets the sizes that are not given; without it, the grid
    is the paper's. `dem` and `fuels` are GeoTIFFs of elevation and of Scott & Burgan
    fuels that replace the synthetic landscape; the snapshots keep their CRS and coordinates. With
    `bare_where_missing`, missing cells become bare ground. `steering` is how strongly terrain turns
    the wind along its valleys, from 0 (not at all); the default is 1.2. The wind along a straight
    deep valley gains steering / 2 times its speed; the wind across it loses as much. With a
    `runner` (`pc.cluster`), cluster workers simulate the fires; only this process writes.
    `progress(finished, total, fire_id)` is called after each fire.
    """
    size = ensemble.ensemble_size(preset, ignitions, checkpoints)
    ground = Ground(dem, fuels, bare_where_missing, steering)
    landscape = ground.landscape()
    own = weathers_of(size, droughts, weathers)
    settings = {
        "checkpoints": size.checkpoints,
        "years": size.years,
        "shape": list(size.shape),
        "cell": size.cell,
        "seed": seed,
        **weather_record(own),
        **ground.record(),
    }
    absent: list[str] = []
    if out is not None:
        check_store_path(out)
        if stored_fires(out):
            stored = open_snapshots(out)
            _refuse_other_settings(stored, Path(out), settings)
            absent = [name for name in _LATER if name not in stored.variables]
            landscape = None if landscape is None else in_plane_of(stored, landscape)

    def append(fire: xr.Dataset) -> None:
        assert out is not None
        like_stored = fire.drop_vars(absent, errors="ignore")
        append_fire(out, like_stored.assign_attrs({SETTINGS: json.dumps(settings)}))

    made = ensemble.simulate(
        preset=preset, ignitions=size.ignitions, checkpoints=size.checkpoints, seed=seed,
        droughts=ensemble.DROUGHTS if droughts is None else droughts, weathers=own,
        landscape=landscape, steering=ground.strength, workers=workers,
        runner=runner, progress=progress, append=None if out is None else append,
        done=frozenset() if out is None else stored_fires(out),
    )  # fmt: skip
    if out is not None:
        return open_snapshots(out)
    assert made is not None
    return made


def in_plane_of(like: xr.Dataset, landscape: Landscape) -> Landscape:
    """The landscape or, if the grid of `like` has no CRS, the landscape without its own.

    Versions up to 0.2 dropped the CRS of the rasters and counted y and x from their south-west
    corner. Their stores are continued, and their surrogates used, in these coordinates.
    """
    if crs_of(like) is not None:
        return landscape
    return replace(landscape, corner=(0.0, 0.0), crs=None)


def _recorded(path: str | Path | None) -> str | None:
    """Name and hash of a raster, so that other content under the same name is another landscape."""
    if path is None:
        return None
    if not Path(path).is_file():
        raise PlumecastError(f"{path} does not exist or is not a file")
    return f"{Path(path).name} sha256:{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:20]}"


def weathers_of(size: ensemble.Preset, droughts: Sequence[str] | None, weathers: int | None) -> int:
    """Number of drawn weathers of each ignition; 0 if the fires share the droughts' weathers."""
    own = size.weathers if weathers is None else weathers
    if own and droughts is not None:
        raise PlumecastError(
            f"droughts={','.join(droughts)} are weathers that all fires share, and weathers={own} "
            "gives each its own; leave one of them out (weathers=0 with the preset 'weathers')"
        )
    return own


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
        has, step = "share the weathers of the droughts", "leave weathers out"
        if other[WEATHER_KIND] == OWN:
            has, step = "have a drawn weather each", "give weathers=1"
        raise PlumecastError(
            f"{out} was simulated with fires that {has}; {step} to continue it, or choose another "
            "path"
        )
    changed = [name for name in settings if other.get(name) != settings[name]]
    if changed:
        name = changed[0]
        raise PlumecastError(
            f"{out} was simulated with {name}={other.get(name)}, not {settings[name]}; "
            "repeat those settings to continue it, or choose another path"
        )
