"""The README of a folder of WRF-Fire inputs: how to run it, what was assumed, what is missing."""

from __future__ import annotations

import numpy as np
import xarray as xr

from plumecast.base.names import HEIGHT
from plumecast.sources.wrf_inputs.domain import IGNITION_START, Ignition
from plumecast.sources.wrf_inputs.fuels import DEFAULT_CATEGORY
from plumecast.sources.wrf_inputs.ground import RIM
from plumecast.sources.wrf_inputs.known import Known
from plumecast.sources.wrf_inputs.sounding import INVERSION, MIXED_TEMPERATURE

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


def readme(name: str, known: Known, ignition: Ignition, fire: xr.Dataset) -> str:
    """Text of `README.md`."""
    head = _RUN.format(
        name=name, hours=ignition.hours, x=known.x, y=known.y, start=IGNITION_START
    )  # fmt: skip
    notes = [*_place_notes(known), *_ground_notes(known), _weather_note(known, fire)]
    return head + "".join(f"- {note}\n" for note in notes)


def _place_notes(known: Known) -> list[str]:
    if known.exact:
        return []
    return [
        "The place of ignition is the mean of the oldest burned cells of the first snapshot: good "
        "to about a column, and less if that snapshot is hours after ignition."
    ]


def _ground_notes(known: Known) -> list[str]:
    terrain = (
        f"`input_ht` is the terrain above its lowest ground; it falls to 0 over the {RIM} outer "
        "columns, for calm open boundaries."
        if known.terrain is not None
        else "Missing: terrain. The run is flat. To change that, add `input_ht` and set "
        "`fire_read_atm_ht = .true.`"
    )
    fuels = (
        "`input_fc` has the Anderson category with the nearest spread rate to each fuel model."
        if known.fuels is not None
        else f"Missing: fuels. All ground has category {DEFAULT_CATEGORY}. To change that, add "
        "`input_fc` and set `fire_fuel_read = 2`."
    )
    return [terrain, fuels]


def _weather_note(known: Known, fire: xr.Dataset) -> str:
    lowest = fire.isel({"snapshot": -1, HEIGHT: 0})
    last = int(np.searchsorted(fire.weather_hour.values, float(fire.hours.values[-1])))
    end = min(last, fire.weather_hour.size - 1)
    u, v = (lowest[part].values[[0, end]] for part in _WINDS)
    speed = np.hypot(u, v)
    origin = (np.rad2deg(np.arctan2(u, v)) + 180.0) % 360.0
    return (
        f"`input_sounding` is the wind at ignition ({speed[0]:.1f} m/s from {origin[0]:.0f}° at "
        f"{float(fire[HEIGHT][0]):g} m; at the last hour {speed[1]:.1f} m/s from {origin[1]:.0f}°, "
        "which an ideal run does not know), a mixed boundary layer of "
        f"{MIXED_TEMPERATURE:g} K, an inversion of {INVERSION:g} K and N² = "
        f"{known.stability:.2g} s⁻² above."
    )


_WINDS = ("wind_u", "wind_v")
