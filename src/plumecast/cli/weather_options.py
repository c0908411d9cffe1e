"""Options about the air of fires: their winds, or a file with their weather."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from plumecast.base.errors import PlumecastError
from plumecast.cli.options import Given
from plumecast.cli.show import note
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.fuels import use_of_fuels
from plumecast.workflows.fires.stated import Stated, use_of
from plumecast.workflows.fires.weather import Weather
from plumecast.workflows.fires.winds import Winds, as_winds, read_winds

OF_WEATHER = {
    "ignition_time": "ignition",
    "speed_unit": "speed_unit",
    "direction_is": "direction_is",
    "local_hour": "local_hour",
    "latitude": "latitude",
    "longitude": "longitude",
    "elevation": "elevation",
}
"""Options about the file of --weather, and the arguments of `read_weather` that they are."""

OF_WIND = ("wind_speed", "wind_from", "winds")


def wind_options(
    wind_speed: float = typer.Option(
        None,
        help="Mean 10 m wind speed of all these fires since ignition (m/s); with --wind-from. A "
        "surrogate that uses weather takes it as constant, with a default profile above.",
    ),
    wind_from: float = typer.Option(
        None, help="Direction that this wind comes from, in degrees from north; 270 is a west wind."
    ),
    winds: Path = typer.Option(
        None,
        help="CSV table of the wind of every fire: fire_id, wind_speed, wind_from_direction and "
        "optionally hours.",
    ),
    weather: Path = typer.Option(
        None,
        help="Hourly weather of these fires since ignition: a CSV table (hour, height, speed, "
        "direction; optionally depth, fire), a FARSITE stream, or a NetCDF extract of profiles.",
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
    """The wind or weather of fires whose files do not contain it; it replaces what they have."""


def read_wind_options(given: Given) -> dict[str, Any]:
    """The arguments `winds` and `weather` that the options state; None for what they do not."""
    weather = _weather(given)
    winds = _winds(given)
    if weather is not None and winds is not None:
        named = next(name for name in OF_WIND if given[name] is not None)
        raise PlumecastError(
            f"give either --weather {given['weather']} or --{named.replace('_', '-')}, not both: "
            "the mean wind follows from the weather"
        )
    return {"winds": winds, "weather": weather}


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


def _winds(given: Given) -> Winds | None:
    speed, direction, table = given["wind_speed"], given["wind_from"], given["winds"]
    if table is not None:
        if speed is not None or direction is not None:
            raise PlumecastError(
                f"give either --winds {table} or --wind-speed and --wind-from, not both"
            )
        return read_winds(table)
    if (speed is None) != (direction is None):
        stated = f"--wind-speed={speed:g}" if direction is None else f"--wind-from={direction:g}"
        other = "--wind-from" if direction is None else "--wind-speed"
        raise PlumecastError(f"{stated} needs {other} too")
    return None if speed is None else as_winds((speed, direction))


def _weather(given: Given) -> Weather | None:
    options = {name: given[name] for name in OF_WEATHER if given[name] is not None}
    if given["weather"] is None:
        for name, value in options.items():
            raise PlumecastError(f"{name}={value} is for --weather FILE; give the file too")
        return None
    # Imported here: only --weather needs the readers.
    from plumecast.sources.weather import read_weather

    named = {OF_WEATHER[name]: value for name, value in options.items()}
    try:
        read = read_weather(given["weather"], **named)
    except PlumecastError as error:
        raise PlumecastError(in_weather_options(str(error))) from error
    if read.attrs.get("weather_comment"):
        note(f"{given['weather']}: {read.attrs['weather_comment']}")
    return Weather(str(given["weather"]), read)


def in_weather_options(message: str) -> str:
    """A message of `read_weather` with the options in place of its arguments."""
    renamed = re.sub(r"(?<![\w-])ignition=", "--ignition-time=", message)
    renamed = re.sub(r"\bcheck ignition\b", "check --ignition-time", renamed)
    renamed = re.sub(r"\bstate ignition\b", "state --ignition-time", renamed)
    renamed = renamed.replace(
        "state the ignition time", "state the ignition time (--ignition-time)"
    )
    return re.sub(
        r"(?<![\w-])(speed_unit|direction_is|local_hour)\b",
        lambda found: f"--{found[1].replace('_', '-')}",
        renamed,
    )


def stated_of(given: dict[str, Any]) -> Stated | None:
    """The winds or the weather of `read_wind_options`."""
    found: Stated | None = given["weather"] if given["weather"] is not None else given["winds"]
    return found


def note_use(surrogate: Surrogate, given: dict[str, Any], fuels: Path | None = None) -> None:
    """Say so if a surrogate makes less, or something else, of what was given than expected."""
    for text in (use_of(surrogate, stated_of(given)), use_of_fuels(surrogate, fuels)):
        if text is not None:
            note(text)
