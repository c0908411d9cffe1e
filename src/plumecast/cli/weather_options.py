"""Options about the air of fires: a file with their weather, or one wind."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.cli.options import Given
from plumecast.cli.show import note
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.conditions import ignored_weather, use_of_fuels

OF_FILE = ("ignition_time", "direction_is", "speed_unit", "local_hour", "latitude", "longitude",
           "elevation")  # fmt: skip
"""Options about the file of --weather."""

_WIND_HELP = "of all these fires, where no file has it: constant, with a default profile above."


def wind_options(
    wind_speed: str = typer.Option(
        None, help=f"Mean 10 m wind speed {_WIND_HELP} In m/s, or as in '12 mph'; with --wind-from."
    ),
    wind_from: str = typer.Option(
        None,
        help="Direction that this wind comes from: degrees from north (270 is a west wind) or SW.",
    ),
    winds: str = typer.Option(None, hidden=True, help="Old name of --weather for one wind a fire."),
    weather: str = typer.Option(
        None,
        help="Weather of these fires: a CSV table (hour, height, speed, direction; optionally "
        "depth, fire), a table of one wind for every fire, a FARSITE stream, a NetCDF extract of "
        "profiles, or one wind such as '12 mph from SW'.",
    ),
    north: str = typer.Option(
        None,
        help="What directions count from: true, or grid for the y axis of the fires.",
        show_default="true",
    ),
    ignition_time: str = typer.Option(
        None,
        help="With --weather: time of ignition, where the file has dates, e.g. 2013-05-03T12:00 "
        "(NetCDF: in UTC) or, as in FARSITE, '05 03 1200'.",
    ),
    speed_unit: str = typer.Option(
        None,
        help="With --weather: m/s, km/h, knots or mph, where the file does not state the unit.",
    ),
    direction_is: str = typer.Option(
        None, help="With --weather: 'to' if its directions say where the wind blows to."
    ),
    local_hour: float = typer.Option(
        None,
        help="With --weather: local solar time at ignition, where the file has no boundary layer.",
        show_default="of the file, or 12",
    ),
    latitude: float = typer.Option(
        None,
        help="With --weather: the place in a gridded file; with --longitude.",
        show_default="the mean of the file",
    ),
    longitude: float = typer.Option(None, help="With --weather: see --latitude."),
    elevation: float = typer.Option(
        None, help="With --weather: height of the ground (m), where heights are above sea level."
    ),
) -> None:
    """The weather of fires whose files do not contain it; it replaces what they have."""


def read_wind_options(given: Given) -> dict[str, Any]:
    """The argument `weather` that the options give; None if they give none."""
    try:
        return {"weather": _weather(given)}
    except ArgumentError as error:
        name = "ignition_time" if error.argument == "ignition" else error.argument
        raise PlumecastError(error.worded(_option(name))) from error


def _weather(given: Given) -> Any:
    # Imported here: only these options need the readers.
    from plumecast.weather.options import TRUE, DefaultProfile, Options, Site
    from plumecast.weather.read import as_weather, one_wind, winds_as_weather

    ways = [name for name in ("weather", "winds", "wind_speed", "wind_from") if given[name]]
    if len(ways) > 1 and ways != ["wind_speed", "wind_from"]:
        first, second = (f"{_option(name)} {given[name]}" for name in ways[:2])
        raise PlumecastError(f"give either {first} or {second}, not both")
    if ways in (["wind_speed"], ["wind_from"]):
        other = "--wind-from" if ways == ["wind_speed"] else "--wind-speed"
        raise PlumecastError(f"{_option(ways[0])} {given[ways[0]]} needs {other} too")
    for name in OF_FILE if ways not in (["weather"], ["winds"]) else ():
        if given[name] is not None:
            raise PlumecastError(
                f"{_option(name)} {given[name]} is for --weather FILE; give the file too"
            )
    if not ways:
        if given["north"] is not None:
            raise PlumecastError(f"--north {given['north']} needs --weather or --wind-speed")
        return None
    options = Options(
        ignition=given["ignition_time"],
        speed_unit=given["speed_unit"],
        direction_is=given["direction_is"],
        north=given["north"] or TRUE,
        site=Site(given["latitude"], given["longitude"], given["elevation"]),
        profile=DefaultProfile(given["local_hour"]),
    )
    if ways[0] == "wind_speed":
        return one_wind(given["wind_speed"], given["wind_from"], options, unit="m/s")
    if ways[0] == "winds":
        note("--winds is deprecated: use --weather, with the unit of the speeds in the header")
        return winds_as_weather(given["winds"], options)
    weather = as_weather(given["weather"], options)
    if weather.attrs.get("weather_comment"):
        note(f"{given['weather']}: {weather.attrs['weather_comment']}")
    return weather


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def at_time_of_file(given: Given, ignition_time: str | None) -> Given:
    """The options with a time of ignition in the time that a file of --weather is in.

    That is UTC for NetCDF, and the time of the clock otherwise. Without --weather there is none.
    """
    changed = {**given, "ignition_time": None}
    if given["weather"] is not None and ignition_time is not None and "T" in ignition_time:
        time = datetime.fromisoformat(ignition_time)
        if Path(given["weather"]).suffix != ".nc":
            changed["ignition_time"] = time.replace(tzinfo=None).isoformat()
        elif time.tzinfo is not None:
            changed["ignition_time"] = time.astimezone(UTC).replace(tzinfo=None).isoformat()
    return changed


def note_use(surrogate: Surrogate, given: dict[str, Any], fuels: Path | None = None) -> None:
    """Say so if a surrogate makes less, or something else, of what was given than expected."""
    for text in (ignored_weather(surrogate, given["weather"]), use_of_fuels(surrogate, fuels)):
        if text is not None:
            note(text)
