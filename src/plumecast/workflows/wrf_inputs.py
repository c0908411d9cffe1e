"""A folder for every chosen fire with the inputs of an ideal WRF-Fire run.

The ground, the exact ignition and the stability of a fire are known if the simulator made it: a
store of simulated fires records the settings of the simulator, and the name of a fire has the
number of its ignition and of its weather. Of other fires the ignition is estimated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import LOCAL_HOUR
from plumecast.base.errors import PlumecastError, require
from plumecast.base.files import atomic_write, refuse_existing
from plumecast.base.names import FIRE, HEIGHT, SIMULATION, SNAPSHOT, WEATHER
from plumecast.base.values import check_count
from plumecast.compute.arrays import Array
from plumecast.compute.regrid import block_mean
from plumecast.weather.profile import LOCAL_HOUR as NOON
from plumecast.workflows.wrf_domain import (
    DEFAULT_CATEGORY,
    IGNITION_START,
    INVERSION,
    MIXED_TEMPERATURE,
    RIM,
    Domain,
    Profile,
    Site,
    anderson_categories,
    input_fc,
    input_ht,
    input_sounding,
    namelist_fire,
    namelist_input,
    rimmed_terrain,
    sounding_table,
)

REFINEMENT = 10
"""Fire cells along one side of a column, as in the simulator: 300 m in 3 km."""

MOISTURE = 0.08
"""Moisture of dead fuel where a store has no `fuel_moisture`: that of WRF's `namelist.fire`."""

ALTITUDE = "surface_altitude"
"""Terrain of a store on its columns, m, if it has it."""

OLD = 0.5
"""Cells whose time since ignition is at least this share of the largest are near the ignition."""


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
    domain = check_wrf_inputs(fires, hours=hours)
    known_site = _sites(fires)
    folders = {
        name: Path(folder) / re.sub(r"[^\w.-]", "_", name) for name in _chosen(fires, ignitions)
    }
    for target in folders.values():
        refuse_existing(target)
    for name, target in folders.items():
        fire = fires.isel({SNAPSHOT: np.flatnonzero(fires.fire_id.values == name)})
        fire = fire.sortby("hours").load()
        texts = _texts(name, fire, domain, known_site(name) or _estimated_site(name, fire), hours)
        with atomic_write(target, overwrite=False) as partial:
            partial.mkdir(parents=True)
            for file, text in texts.items():
                (partial / file).write_text(text, encoding="utf-8")
    return [*folders.values()]


def check_wrf_inputs(fires: xr.Dataset, *, hours: int | None = None) -> Domain:
    """The domain; raises unless the fires have hourly weather and square columns."""
    missing = [entry.name for entry in WEATHER if entry.name not in fires]
    if missing:
        raise PlumecastError(
            f"the fires have no {missing[0]}, so no sounding can be written; ingest them with "
            "--weather FILE, or simulate them again (in Python: pc.weather.with_weather)"
        )
    if hours is not None:
        check_count("hours", hours)
    x, y = fires.x.values, fires.y.values
    dx, dy = float(np.diff(x).mean()), float(np.diff(y).mean())
    if not np.isclose(dx, dy):
        raise PlumecastError(
            f"columns of {dx:g} by {dy:g} m; WRF-Fire needs square ones: regrid the fires"
        )
    corner = (float(x[0]) - dx / 2.0, float(y[0]) - dx / 2.0)
    return Domain(x.size, y.size, dx, REFINEMENT, corner)


def _texts(
    name: str, fire: xr.Dataset, domain: Domain, site: Site, hours: int | None
) -> dict[str, str]:
    """Contents of the files of one fire."""
    first = fire.isel({SNAPSHOT: 0})  # its first hour is that of ignition
    u, v, depth = (first[entry.name].values[0] for entry in WEATHER)
    weather = Profile(fire[HEIGHT].values, u.astype(float), v.astype(float), float(depth))
    length = hours or int(np.ceil(fire.hours.values[-1]))
    local_hour = float(fire.attrs.get(LOCAL_HOUR, NOON))
    moisture = float(fire.fuel_moisture.values[0]) if "fuel_moisture" in fire else MOISTURE
    texts = {
        "namelist.input": namelist_input(domain, site, local_hour, length),
        "namelist.fire": namelist_fire(moisture),
        "input_sounding": input_sounding(sounding_table(weather, site.stability)),
        "README.md": _readme(name, site, length, fire),
    }
    if site.terrain is not None:
        texts["input_ht"] = input_ht(rimmed_terrain(site.terrain))
    if site.fuels is not None:
        texts["input_fc"] = input_fc(site.fuels, domain)
    return texts


def _sites(fires: xr.Dataset) -> Callable[[str], Site | None]:
    """Function from the name of a fire to the site that the simulator knows.

    It returns None for fires from elsewhere, and for fires on the user's rasters, of which a store
    records the name only.
    """
    recorded = fires.attrs.get(SIMULATION)
    settings = {} if recorded is None else json.loads(recorded)
    if not settings or settings.get("dem") is not None:
        return lambda _: None
    require("numba", "simulator", "the ground of simulated fires")
    from plumecast.simulator.ensemble import Simulator, plan_of, recorded_world

    simulator = Simulator(recorded_world(settings))

    def site_of(fire_id: str) -> Site | None:
        plan = plan_of(fire_id)
        if plan is None:
            return None
        landscape = simulator.landscape(simulator.year_of(plan))
        row, column = simulator.ignition_cell(plan)
        return Site(
            x=(column + 0.5) * landscape.cell,
            y=(row + 0.5) * landscape.cell,
            exact=True,
            stability=simulator.weather_of(plan).stability,
            terrain=block_mean(landscape.elevation, REFINEMENT, REFINEMENT),
            fuels=anderson_categories(landscape.fuel),
        )

    return site_of


def _estimated_site(name: str, fire: xr.Dataset) -> Site:
    """What the snapshots tell of a fire from elsewhere."""
    ages = fire[FIRE].values
    burned = np.flatnonzero(ages.any(axis=(1, 2)))
    if not burned.size:
        raise PlumecastError(f"fire {name!r} has no burned cell, so no ignition; leave it out")
    x, y = estimated_ignition(ages[burned[0]], fire.x.values, fire.y.values)
    terrain = fire[ALTITUDE].values.astype(float) if ALTITUDE in fire else None
    return Site(x, y, exact=False, terrain=terrain)


def estimated_ignition(age: Array, x: Array, y: Array) -> tuple[float, float]:
    """Mean place of the oldest cells, weighted by their time since ignition (ny, nx).

    x₀ = Σ f x / Σ f over the cells with f ≥ `OLD` max f: about a cell wrong, downwind if the
    field is hours old.
    """
    weight = np.where(age >= OLD * age.max(), age, 0.0)
    total = weight.sum()
    return float((weight.sum(axis=0) @ x) / total), float((weight.sum(axis=1) @ y) / total)


def _chosen(fires: xr.Dataset, ignitions: Sequence[str] | None) -> list[str]:
    """Names of the fires of the ignitions, in that order."""
    of_fire = dict(zip(fires.fire_id.values, fires.ignition_id.values, strict=True))
    if ignitions is None:
        return [str(name) for name in of_fire]
    unknown = sorted(set(ignitions) - set(of_fire.values()))
    if unknown:
        raise PlumecastError(f"no fire of ignition {unknown[0]!r}; give ignition_id of the store")
    return [str(name) for one in ignitions for name, ignition in of_fire.items() if ignition == one]


_RUN = """\
# Inputs of WRF-Fire for {name}

Ideal run `em_fire`, WRF 4.3.3, {hours} h. The fire ignites at x = {x:.0f} m, y = {y:.0f} m of the
store, {start:.0f} s after the start.

1. Copy or link into this folder, from a WRF built for `em_fire`: `ideal.exe`, `wrf.exe`,
   `LANDUSE.TBL`, `SOILPARM.TBL`, `VEGPARM.TBL`, `GENPARM.TBL` and `URBPARM.TBL`.
2. `./ideal.exe && ./wrf.exe`
3. `plumecast ingest wrf FOLDER -o runs.zarr --every 1h --floor 0.01`

What to know:
"""


def _readme(name: str, site: Site, hours: int, fire: xr.Dataset) -> str:
    head = _RUN.format(name=name, hours=hours, x=site.x, y=site.y, start=IGNITION_START)
    notes = []
    if not site.exact:
        notes.append(
            "The place of ignition is the mean of the oldest burned cells of the first snapshot: "
            "good to about a column, and less if that snapshot is hours after ignition."
        )
    notes.append(
        f"`input_ht` is the terrain above its lowest ground; it falls to 0 over the {RIM} outer "
        "columns, for calm open boundaries."
        if site.terrain is not None
        else "Missing: terrain. The run is flat. To change that, add `input_ht` and set "
        "`fire_read_atm_ht = .true.`"
    )
    notes.append(
        "`input_fc` has the Anderson category with the nearest spread rate to each fuel model."
        if site.fuels is not None
        else f"Missing: fuels. All ground has category {DEFAULT_CATEGORY}. To change that, add "
        "`input_fc` and set `fire_fuel_read = 2`."
    )
    lowest = fire.isel({"snapshot": -1, HEIGHT: 0})
    last = int(np.searchsorted(fire.weather_hour.values, float(fire.hours.values[-1])))
    end = min(last, fire.weather_hour.size - 1)
    u, v = (lowest[part].values[[0, end]] for part in ("wind_u", "wind_v"))
    speed = np.hypot(u, v)
    origin = (np.rad2deg(np.arctan2(u, v)) + 180.0) % 360.0
    notes.append(
        f"`input_sounding` is the wind at ignition ({speed[0]:.1f} m/s from {origin[0]:.0f}° at "
        f"{float(fire[HEIGHT][0]):g} m; at the last hour {speed[1]:.1f} m/s from {origin[1]:.0f}°, "
        "which an ideal run does not know), a mixed boundary layer of "
        f"{MIXED_TEMPERATURE:g} K, an inversion of {INVERSION:g} K and N² = "
        f"{site.stability:.2g} s⁻² above."
    )
    return head + "".join(f"- {note}\n" for note in notes)
