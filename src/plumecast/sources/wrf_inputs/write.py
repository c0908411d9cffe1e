"""A folder for every chosen fire with the inputs of an ideal WRF-Fire run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import LOCAL_HOUR
from plumecast.base.errors import PlumecastError
from plumecast.base.extras import require
from plumecast.base.files import atomic_write
from plumecast.base.names import FIRE, HEIGHT, SIMULATION, SNAPSHOT, WEATHER
from plumecast.base.values import check_count
from plumecast.sources.wrf_inputs.domain import Domain, GroundFiles, Ignition, namelist_input
from plumecast.sources.wrf_inputs.fuels import DEFAULT_CATEGORY, namelist_fire
from plumecast.sources.wrf_inputs.ground import input_fc, input_ht, rimmed_terrain
from plumecast.sources.wrf_inputs.known import Known, estimated_ignition
from plumecast.sources.wrf_inputs.readme import readme
from plumecast.sources.wrf_inputs.sounding import Profile, input_sounding, sounding_table
from plumecast.weather.profile import LOCAL_HOUR as NOON

REFINEMENT = 10
"""Fire cells along one side of a column, as in the simulator: 300 m in 3 km."""

MOISTURE = 0.08
"""Moisture of dead fuel where a store has no `fuel_moisture`: that of WRF's `namelist.fire`."""

ALTITUDE = "surface_altitude"
"""Terrain of a store on its columns, m, if it has it."""


def write_wrf_inputs(
    fires: xr.Dataset,
    folder: str | Path,
    *,
    ignitions: Sequence[str] | None = None,
    hours: int | None = None,
) -> list[Path]:
    """Write the inputs of WRF-Fire (`em_fire`, WRF 4.3.3) for fires that are worth a run.

    `fires` are snapshots with hourly weather, e.g. the candidates of `design_runs`. Each fire of
    the chosen `ignitions` (default: all) gets a folder of its name with `namelist.input`,
    `namelist.fire`, `input_sounding` and a `README.md` that says how to run it and what is missing.
    The domain is the grid of the snapshots, the sounding the weather at ignition, and the run lasts
    until the last snapshot or for `hours`. Fires of the simulator also get their terrain
    (`input_ht`) and fuels (`input_fc`) and the exact place of ignition; of other fires the place is
    estimated from the oldest burned cells. Returns the folders in the order of `ignitions`.
    """
    check_wrf_inputs(fires, hours=hours)
    domain = _domain(fires)
    known = _known_fires(fires)
    target = Path(folder)
    names = _chosen(fires, ignitions)
    taken = [name for name in names if (target / _file_name(name)).exists()]
    if taken:
        raise PlumecastError(
            f"{target / _file_name(taken[0])} exists; remove it or choose another folder"
        )
    written = []
    for name in names:
        fire = fires.isel({SNAPSHOT: np.flatnonzero(fires.fire_id.values == name)})
        texts = _texts(name, fire.sortby("hours").load(), domain, known(name), hours)
        with atomic_write(target / _file_name(name), overwrite=False) as partial:
            partial.mkdir(parents=True)
            for file, text in texts.items():
                (partial / file).write_text(text, encoding="utf-8")
        written.append(target / _file_name(name))
    return written


def check_wrf_inputs(fires: xr.Dataset, *, hours: int | None = None) -> None:
    """Raise unless inputs can be written: fires with hourly weather, on square columns."""
    missing = [entry.name for entry in WEATHER if entry.name not in fires]
    if missing:
        raise PlumecastError(
            f"the fires have no {missing[0]}, so no sounding can be written; ingest them with "
            "--weather FILE, or simulate them again (in Python: pc.with_weather)"
        )
    if hours is not None:
        check_count("hours", hours)
    _domain(fires)


def _texts(
    name: str, fire: xr.Dataset, domain: Domain, known: Known | None, hours: int | None
) -> dict[str, str]:
    """Contents of the files of one fire."""
    known = known or _estimated(name, fire)
    weather = _profile(fire)
    length = hours or int(np.ceil(fire.hours.values[-1]))
    local_hour = float(fire.attrs.get(LOCAL_HOUR, NOON))
    ignition = Ignition(known.x, known.y, local_hour, length)
    ground = GroundFiles(known.terrain is not None, known.fuels is not None, DEFAULT_CATEGORY)
    moisture = float(fire.fuel_moisture.values[0]) if "fuel_moisture" in fire else MOISTURE
    texts = {
        "namelist.input": namelist_input(domain, ignition, ground),
        "namelist.fire": namelist_fire(moisture),
        "input_sounding": input_sounding(sounding_table(weather, known.stability)),
        "README.md": readme(name, known, ignition, fire),
    }
    if known.terrain is not None:
        texts["input_ht"] = input_ht(rimmed_terrain(known.terrain))
    if known.fuels is not None:
        texts["input_fc"] = input_fc(known.fuels, domain)
    return texts


def _estimated(name: str, fire: xr.Dataset) -> Known:
    """What the snapshots tell of a fire from elsewhere."""
    ages = fire[FIRE].values
    burned = np.flatnonzero(ages.any(axis=(1, 2)))
    if not burned.size:
        raise PlumecastError(f"fire {name!r} has no burned cell, so no ignition; leave it out")
    x, y = estimated_ignition(ages[burned[0]], fire.x.values, fire.y.values)
    terrain = fire[ALTITUDE].values.astype(float) if ALTITUDE in fire else None
    return Known(x, y, exact=False, terrain=terrain)


def _profile(fire: xr.Dataset) -> Profile:
    """The weather at ignition, which the first hour of the first snapshot has."""
    first = fire.isel({SNAPSHOT: 0})
    u, v, depth = (first[entry.name].values[0] for entry in WEATHER)
    return Profile(fire[HEIGHT].values, u.astype(float), v.astype(float), float(depth))


def _known_fires(fires: xr.Dataset) -> Callable[[str], Known | None]:
    """What the simulator knows of a fire by its name; nothing of fires from elsewhere."""
    recorded = fires.attrs.get(SIMULATION)
    if recorded is None:
        return lambda _: None
    require("numba", "simulator", "the ground of simulated fires")
    from plumecast.sources.wrf_inputs.simulated import simulated_fires

    return simulated_fires(recorded, REFINEMENT)


def _domain(fires: xr.Dataset) -> Domain:
    x, y = fires.x.values, fires.y.values
    dx, dy = float(np.diff(x).mean()), float(np.diff(y).mean())
    if not np.isclose(dx, dy):
        raise PlumecastError(
            f"columns of {dx:g} by {dy:g} m; WRF-Fire needs square ones: regrid the fires"
        )
    corner = (float(x[0]) - dx / 2.0, float(y[0]) - dx / 2.0)
    return Domain(x.size, y.size, dx, REFINEMENT, corner)


def _chosen(fires: xr.Dataset, ignitions: Sequence[str] | None) -> list[str]:
    """Names of the fires of the ignitions, in that order."""
    of_fire = dict(zip(fires.fire_id.values, fires.ignition_id.values, strict=True))
    if ignitions is None:
        return [str(name) for name in of_fire]
    unknown = sorted(set(ignitions) - set(of_fire.values()))
    if unknown:
        raise PlumecastError(f"no fire of ignition {unknown[0]!r}; give ignition_id of the store")
    return [str(name) for one in ignitions for name, ignition in of_fire.items() if ignition == one]


def _file_name(fire_id: str) -> str:
    return re.sub(r"[^\w.-]", "_", fire_id)
