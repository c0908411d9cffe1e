"""Options of --simulate, which `ensemble` and `compare` share, and the fires that they draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SIMULATION
from plumecast.cli.fire_options import FUELS_OF_STORES
from plumecast.cli.show import note
from plumecast.surrogate.surrogate import Surrogate

GROUND = ("dem", "fuels", "bare_where_missing", "steering")
OPTIONS = ("preset", "seed", "checkpoints", *GROUND)
"""Options of --simulate; fuels are those of rasters too."""

AS_TRAINED = ("seed", "checkpoints", "steering")
"""Options whose default is the value of the training fires."""


def check_simulate(given: Mapping[str, Any], *, rasters: bool) -> None:
    """Raise for options of --simulate without it, and for those of rasters with it."""
    if given["simulate"] is not None:
        if rasters:
            raise PlumecastError("--format and --unit are for rasters, not for --simulate")
        return
    if given["fuels"] is not None and not rasters:
        raise PlumecastError(
            f"fuels={given['fuels']} is for --simulate and for rasters; {FUELS_OF_STORES}"
        )
    for name in OPTIONS:
        if name != "fuels" and given[name] is not None and given[name] is not False:
            raise PlumecastError(f"--{name.replace('_', '-')} is for --simulate; leave it out")


def drawing(surrogate: Surrogate | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `draw_fires` and `draw_scenarios` from the options.

    With a surrogate, the fires are like those of its training, as far as it is known how those were
    simulated; options that were given replace these settings. Without one, each fire has a drawn
    weather.
    """
    # Imported here: only --simulate needs the `simulator` extra.
    from plumecast.simulator.ensemble import DROUGHTS
    from plumecast.simulator.weather import OWN
    from plumecast.workflows.simulate import WEATHER_KIND, Ground

    known: dict[str, Any] = {}
    weather: dict[str, Any] = {"weathers": 1}
    if surrogate is not None:
        recorded = simulation_of(surrogate)
        known = {name: recorded[name] for name in AS_TRAINED if name in recorded}
        known["like"] = surrogate.grid
        trained = getattr(surrogate.operator, "labels", ()) or DROUGHTS
        if recorded.get(WEATHER_KIND) != OWN and OWN not in trained:
            weather = {"droughts": [name for name in DROUGHTS if name in trained]}
    if given["drought"] is not None:
        weather = {"droughts": [name.strip() for name in given["drought"].split(",")]}
    chosen = known | {name: given[name] for name in OPTIONS if given[name] is not None}
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
