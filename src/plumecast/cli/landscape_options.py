"""Options of commands that simulate fires: the ground, and what it does to the wind."""

from __future__ import annotations

import typer

from plumecast.sources.simulator.air.weather import STEERING_STRENGTH

DEM = typer.Option(None, help="GeoTIFF of elevation (m) instead of a synthetic one.")
FUELS = typer.Option(None, help="GeoTIFF of Scott & Burgan fuel codes (FBFM40).")
BARE_WHERE_MISSING = typer.Option(
    False, "--bare-where-missing", help="Take holes in the rasters as bare ground."
)

_STEERING = (
    "How strongly terrain steers the wind, 0 not at all: at s, wind along a straight deep valley "
    "blows 1 + s/2 times and across it 1 − s/2 times as fast."
)
STEERING = typer.Option(None, show_default=f"{STEERING_STRENGTH:g}", help=_STEERING)
STEERING_AS_TRAINED = typer.Option(
    None, show_default=f"as in training, or {STEERING_STRENGTH:g}", help=_STEERING
)
