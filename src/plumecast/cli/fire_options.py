"""Options about fires: their rasters, landscape and weather, and fires of --simulate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import SIMULATION
from plumecast.cli.options import Given, options_of, settings_given
from plumecast.cli.show import exit_code, note, show_problems, warn
from plumecast.sources.rasters import ArrivalTimes, RasterOptions
from plumecast.surrogate.guards import Notice
from plumecast.surrogate.surrogate import Surrogate
from plumecast.weather.options import DefaultProfile, Options, Site
from plumecast.workflows.fires.conditions import (
    ignored_weather,
    refuse_other_inputs,
    use_of_fuels,
)
from plumecast.workflows.fires.sources import raster_fires

# -- rasters of arrival times


def fuel_options(
    fuels: Path = typer.Option(
        None,
        help="Raster of the Scott & Burgan fuels (FBFM40) that burn; surrogates that were trained "
        "with a fuel load release smoke by it.",
    ),
    batch: int = typer.Option(64, help="Files that are read, and committed, together."),
) -> None:
    """What burns, and how many files are read at a time."""


raster_options = options_of(RasterOptions, fuel_options)
"""How to read arrival-time rasters."""

FUELS_OF_STORES = "a store has a fuel load of its own: ingest rasters --fuels writes it"
"""The next step for a user who gives fuels for the fires of a store."""


@dataclass(frozen=True, slots=True)
class FireReader:
    """What the options say of fires and their weather, and what came up while they were read."""

    rasters: Given
    weather: xr.Dataset | None = None
    problems: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    @property
    def reads_rasters(self) -> bool:
        """Whether the options say that the fires are rasters."""
        return self.rasters["format"] is not None or self.rasters["unit"] is not None

    @property
    def hours(self) -> Sequence[float]:
        """The hours to read the fires at; empty for those of their snapshots."""
        hours: Sequence[float] = settings_given(self.rasters, RasterOptions).get("hours", ())
        return hours

    def read(self, surrogate: Surrogate, files: Sequence[str], **options: Any) -> ArrivalTimes:
        """Rasters as fires of a prediction; those that cannot be read are problems."""
        return raster_fires(
            surrogate,
            files,
            weather=self.weather,
            fuels=self.rasters["fuels"],
            batch=self.rasters["batch"],
            on_error=lambda path, message: self.problems.append(message),
            on_note=note,
            words=in_options,
            **(settings_given(self.rasters, RasterOptions) | options),
        )

    def note_use(self, surrogate: Surrogate) -> None:
        """Say so if a surrogate makes less, or something else, of what was given than expected."""
        fuels = use_of_fuels(surrogate, self.rasters["fuels"])
        for text in (ignored_weather(surrogate, self.weather), fuels):
            if text is not None:
                note(text)

    def finish(self, done: int) -> None:
        """Print the notices and the problems, each once, and set the exit code."""
        for notice in self.notices:
            (warn if notice.loud else note)(notice.text)
        problems = list(dict.fromkeys(self.problems))
        show_problems(problems)
        exit_code(failed=len(problems), done=done)


def in_options(error: PlumecastError) -> str:
    """The message of an error of a reader, with the option instead of the argument."""
    if isinstance(error, ArgumentError):
        return error.worded(option_name(error.argument))
    return str(error)


def option_name(argument: str) -> str:
    """The option of an argument: --wind-speed of wind_speed."""
    return f"--{argument.replace('_', '-')}"


# -- simulated fires

STEERING_STRENGTH = 1.2
"""The simulator's default. Importing it from there would need the `simulator` extra."""

_STEERING = (
    "How strongly terrain steers the wind; 0 is not at all. At s, wind along a straight deep "
    "valley blows 1 + s/2 times as fast, and wind across it 1 − s/2 times."
)
GROUND = ("dem", "fuels", "bare_where_missing", "steering")
AS_TRAINED = ("seed", "checkpoints", "steering")
"""Options whose default is the value of the training fires."""


def landscape_options(
    dem: Path = typer.Option(None, help="GeoTIFF of elevation (m) instead of a synthetic one."),
    fuels: Path = typer.Option(None, help="Raster of the Scott & Burgan fuels (FBFM40) that burn."),
    bare_where_missing: bool = typer.Option(
        False, "--bare-where-missing", help="Treat missing raster values as bare ground."
    ),
    steering: float = typer.Option(None, show_default=f"{STEERING_STRENGTH:g}", help=_STEERING),
) -> None:
    """The ground of simulated fires, and its effect on the wind."""


def simulated_options(
    simulate: int = typer.Option(
        None,
        help="Simulate this many fires (`compare`: of each scenario, from the same ignitions) "
        "instead of reading stores. With a surrogate their smoke is predicted.",
    ),
    preset: str = typer.Option(
        None,
        help="With --simulate: demo, paper or weathers.",
        show_default="the one with the surrogate's grid",
    ),
    seed: int = typer.Option(
        None,
        help="With --simulate: seed of landscape and weather.",
        show_default="as in training, or 0",
    ),
    checkpoints: int = typer.Option(
        None,
        help="With --simulate: snapshots of each fire, six hours apart.",
        show_default="as in training, or 15",
    ),
    steering: float = typer.Option(
        None, show_default=f"as in training, or {STEERING_STRENGTH:g}", help=_STEERING
    ),
    drought: str = typer.Option(
        None,
        help="Drought label of fires that have none. With --simulate: scenarios, separated by "
        "commas.",
        show_default="with --simulate those of training, or a drawn weather each",
    ),
) -> None:
    """Fires of --simulate."""


drawn_options = options_of(landscape_options, simulated_options)


def check_simulate(drawn: Given, wind: Given, *, rasters: bool) -> None:
    """Raise for options of --simulate without it, and for those of other fires with it."""
    if drawn["simulate"] is not None:
        if rasters:
            raise PlumecastError("--format and --unit are for rasters, not for --simulate")
        refuse_weather(wind)
        return
    if drawn["fuels"] is not None and not rasters:
        raise ArgumentError(
            "fuels", drawn["fuels"], FUELS_OF_STORES, problem="is for --simulate and for rasters"
        )
    for name in ("preset", "seed", "checkpoints", *GROUND):
        if name != "fuels" and drawn[name] is not None and drawn[name] is not False:
            raise PlumecastError(f"{option_name(name)} is for --simulate; leave it out")


def refuse_weather(wind: Given) -> None:
    """Raise for a weather where no fire takes it."""
    for name in ("weather", "winds", "wind_speed", "wind_from"):
        if wind[name] is not None:
            raise ArgumentError(
                name,
                wind[name],
                "simulated fires have their own weather; leave it out",
                problem="is for stores and rasters whose smoke is predicted",
            )


def drawing(surrogate: Surrogate | None, drawn: Given) -> dict[str, Any]:
    """Arguments of `draw_fires` and `draw_scenarios` from the options.

    With a surrogate, the fires are like those of its training, as far as it is known how those were
    simulated; options that were given replace these settings. Without one, each fire has a drawn
    weather.
    """
    # Imported here: only --simulate needs the `simulator` extra.
    from plumecast.simulator.ensemble import DROUGHTS
    from plumecast.simulator.weather import OWN
    from plumecast.workflows.simulate import WEATHER_KIND, Ground

    chosen: dict[str, Any] = {}
    weather: dict[str, Any] = {"weathers": 1}
    if surrogate is not None:
        refuse_other_inputs(surrogate, "simulated fires")
        recorded = simulation_of(surrogate)
        chosen = {name: recorded[name] for name in AS_TRAINED if name in recorded}
        chosen["like"] = surrogate.grid
        trained = getattr(surrogate.operator, "labels", ()) or DROUGHTS
        if recorded.get(WEATHER_KIND) != OWN and OWN not in trained:
            weather = {"droughts": [name for name in DROUGHTS if name in trained]}
    if drawn["drought"] is not None:
        weather = {"droughts": [name.strip() for name in drawn["drought"].split(",")]}
    names = ("preset", "seed", "checkpoints", *GROUND)
    chosen |= {name: drawn[name] for name in names if drawn[name] is not None}
    ground = {name: chosen.pop(name) for name in GROUND if name in chosen}
    return {**weather, **chosen, "ground": Ground(**ground)}


def note_other_settings(
    surrogate: Surrogate, settings: Mapping[str, Any], scenario: str | None = None
) -> None:
    """Tell which settings of simulated fires the training fires did not have."""
    recorded = simulation_of(surrogate)
    where = "" if scenario is None else f"scenario '{scenario}': "
    for name, value in settings.items():
        if recorded and recorded.get(name, value) != value:
            note(
                f"{where}the training fires were simulated with {name}={recorded[name]}, these "
                f"with {value}: the surrogate has not learned from such fires"
            )


def simulation_of(surrogate: Surrogate) -> Mapping[str, Any]:
    """How the training fires were simulated; empty if they were not, or if it is not recorded."""
    return surrogate.training.get(SIMULATION) or {}


# -- weather

_WIND_HELP = "of all these fires, where no file has it: constant, with a default profile above."


def way_options(
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
) -> None:
    """The ways to give a weather."""


wind_options = options_of(way_options, Options, Site, DefaultProfile)
"""The weather of fires whose files do not contain it; it replaces what they have."""


def read_weather_options(given: Given) -> Any:
    """The weather that the options give; None if they give none."""
    from plumecast.weather.read import as_weather, one_wind, winds_as_weather

    ways = [name for name in ("weather", "winds", "wind_speed", "wind_from") if given[name]]
    if len(ways) > 1 and ways != ["wind_speed", "wind_from"]:
        first, second = (f"{option_name(name)} {given[name]}" for name in ways[:2])
        raise PlumecastError(f"give either {first} or {second}, not both")
    if ways in (["wind_speed"], ["wind_from"]):
        other = "--wind-from" if ways == ["wind_speed"] else "--wind-speed"
        raise PlumecastError(f"{option_name(ways[0])} {given[ways[0]]} needs {other} too")
    settings = {kind: settings_given(given, kind) for kind in (Options, Site, DefaultProfile)}
    for name in [name for part in settings.values() for name in part if name != "north"]:
        if ways not in (["weather"], ["winds"]):
            problem = "is for --weather FILE"
            raise ArgumentError(name, given[name], "give the file too", problem=problem)
    if not ways:
        if given["north"] is not None:
            raise PlumecastError(f"--north {given['north']} needs --weather or --wind-speed")
        return None
    options = Options(
        **settings[Options],
        site=Site(**settings[Site]),
        profile=DefaultProfile(**settings[DefaultProfile]),
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


def at_time_of_file(given: Given, ignition_time: str | None) -> Given:
    """The options with a time of ignition in the time that a file of --weather is in.

    That is UTC for NetCDF, and the time of the clock otherwise. Without --weather there is none.
    """
    changed = {**given, "ignition": None}
    if given["weather"] is not None and ignition_time is not None and "T" in ignition_time:
        time = datetime.fromisoformat(ignition_time)
        if Path(given["weather"]).suffix != ".nc":
            changed["ignition"] = time.replace(tzinfo=None).isoformat()
        elif time.tzinfo is not None:
            changed["ignition"] = time.astimezone(UTC).replace(tzinfo=None).isoformat()
    return changed
