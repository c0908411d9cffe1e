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
from plumecast.base.names import SIMULATION
from plumecast.compute.blocks import Runner
from plumecast.data.store import append_fire, check_store_path, open_snapshots, stored_fires
from plumecast.sources.rasters.georeference import crs_of
from plumecast.sources.simulator import ensemble
from plumecast.sources.simulator.air.weather import STEERING_STRENGTH, check_steering
from plumecast.sources.simulator.fire import BLOCK
from plumecast.sources.simulator.land.landscape import Landscape, read_landscape

SETTINGS = SIMULATION


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
    droughts: Sequence[str] = ensemble.DROUGHTS,
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

    With `out`, every fire is one commit to that store. A store that holds some of the fires is
    continued; a store made with other settings raises an error. Without `out`, the snapshots stay
    in memory. `preset` ("demo" or "paper") sets the sizes that are not given; without it, the grid
    is the paper's. `dem` and `fuels` are GeoTIFFs of elevation and of Scott & Burgan fuels that
    replace the synthetic landscape; the snapshots keep their CRS and coordinates. With
    `bare_where_missing`, missing cells become bare ground. `steering` is how strongly terrain turns
    the wind along its valleys, from 0 (not at all); the default is 1.2. The wind along a straight
    deep valley gains steering / 2 times its speed; the wind across it loses as much. With a
    `runner` (`pc.cluster`), cluster workers simulate the fires; only this process writes.
    `progress(finished, total, fire_id)` is called after each fire.
    """
    size = ensemble.ensemble_size(preset, ignitions, checkpoints)
    ground = Ground(dem, fuels, bare_where_missing, steering)
    landscape = ground.landscape()
    settings = {
        "checkpoints": size.checkpoints,
        "years": size.years,
        "shape": list(size.shape),
        "cell": size.cell,
        "seed": seed,
        **ground.record(),
    }
    if out is not None:
        check_store_path(out)
        _refuse_other_settings(Path(out), settings)
        if landscape is not None and stored_fires(out):
            landscape = in_plane_of(open_snapshots(out), landscape)

    def append(fire: xr.Dataset) -> None:
        assert out is not None
        append_fire(out, fire.assign_attrs({SETTINGS: json.dumps(settings)}))

    made = ensemble.simulate(
        preset=preset, ignitions=size.ignitions, checkpoints=size.checkpoints, droughts=droughts,
        seed=seed, landscape=landscape, steering=ground.strength,
        workers=workers, runner=runner, progress=progress,
        append=None if out is None else append,
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


def _refuse_other_settings(out: Path, settings: dict[str, Any]) -> None:
    if not stored_fires(out):
        return
    recorded = open_snapshots(out).attrs.get(SETTINGS)
    if recorded is None:
        raise PlumecastError(f"{out} holds fires from another source; choose another path")
    # Stores made before steering was an option used the default and do not record it.
    other = {"steering": STEERING_STRENGTH} | json.loads(recorded)
    changed = [name for name in settings if other.get(name) != settings[name]]
    if changed:
        name = changed[0]
        raise PlumecastError(
            f"{out} was simulated with {name}={other.get(name)}, not {settings[name]}; "
            "repeat those settings to continue it, or choose another path"
        )
