"""Simulate an ensemble into a snapshot store: resumable, and the same for any number of workers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import PlumecastError
from plumecast.base.names import GROUND, SIMULATION, WEATHER, WEATHER_AXES
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.store import append_fire, check_store_path, open_snapshots, stored_fires
from plumecast.simulator import ensemble
from plumecast.simulator.atmosphere import STEERING_STRENGTH
from plumecast.simulator.weather import OWN
from plumecast.workflows.landscape import SYNTHETIC, Ground, in_plane_of

SETTINGS = SIMULATION

WEATHER_KIND = "weather"
"""Setting that a store records: whether its fires share weathers or have their own."""

_SHARED = "drought"

_LATER = [entry.name for entry in (*WEATHER, *WEATHER_AXES, *GROUND)]
"""Variables that stores of earlier versions lack; such a store is continued without them."""


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

    By default each ignition burns under all three droughts, whose weathers all fires share. With
    `weathers`, it burns under that number of weathers of its own instead, drawn from
    `simulator.weather.RANGES`. The hourly weather is stored with every fire.

    With `out`, finished fires are committed to that store, one at a time or a few together if they
    are finished faster than they are written. A store that holds some of the fires is continued; a
    store made with other settings raises an error. Without `out`, the snapshots stay in memory.
    `preset` ("demo", "paper" or "weathers") sets the sizes that are not given; without it, the grid
    is the paper's. `ground` (`pc.Ground`) has rasters that replace the synthetic landscape, and the
    steering of the wind by terrain. With the runner of `resources` (`pc.cluster`), cluster workers
    simulate the fires instead of `workers` processes of this machine; only this process writes. The
    progress of `resources` is `(finished, total, fire_id)` after each fire.
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

    labels = ensemble.DROUGHTS if droughts is None else droughts
    made = ensemble.simulate(
        ensemble.World.of(size, seed, landscape=landscape, steering=ground.strength),
        ensemble.plan_fires(size.ignitions, labels, seed, weathers=drawn),
        workers=workers,
        append=None if out is None else append,
        done=frozenset() if out is None else stored_fires(out),
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
        raise PlumecastError(
            f"droughts={','.join(droughts)} are weathers that all fires share, and "
            f"weathers={drawn} gives each its own; leave one of them out "
            "(weathers=0 with the preset 'weathers')"
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
