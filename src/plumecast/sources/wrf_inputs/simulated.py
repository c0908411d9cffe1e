"""What the embedded simulator knows of a stored fire: its ground, its ignition and its stability.

A store of simulated fires records the settings of the simulator. With the number of the ignition
and of the weather, which are in the name of a fire, they determine the fire.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from plumecast.sources.simulator.air.weather import OWN, STEERING_STRENGTH
from plumecast.sources.simulator.ensemble import FirePlan, Simulator, World
from plumecast.sources.simulator.land.landscape import square_block_mean
from plumecast.sources.wrf_inputs.fuels import anderson_categories
from plumecast.sources.wrf_inputs.known import Known

_NAME = re.compile(r"(?P<ignition>s\d+-i(?P<number>\d+))-(?:w(?P<weather>\d+)|(?P<drought>\w+))")


def simulated_fires(recorded: str, block: int) -> Callable[[str], Known | None]:
    """Function from the name of a fire to what the simulator knows of it.

    `recorded` is the JSON of the settings that a store has, `block` the fire cells along one side
    of a smoke cell. The function returns None for a name that is not the simulator's, and for fires
    on the user's rasters, of which a store records the name only.
    """
    settings = json.loads(recorded)
    simulator = Simulator(_world(settings))

    def known(fire_id: str) -> Known | None:
        plan = _plan(fire_id)
        if plan is None or settings.get("dem") is not None:
            return None
        landscape = simulator.landscape(simulator.year_of(plan))
        row, column = simulator.ignition_cell(plan)
        return Known(
            x=(column + 0.5) * landscape.cell,
            y=(row + 0.5) * landscape.cell,
            exact=True,
            stability=simulator.weather_of(plan).stability,
            terrain=square_block_mean(landscape.elevation, block),
            fuels=anderson_categories(landscape.fuel),
        )

    return known


def _world(settings: Mapping[str, Any]) -> World:
    return World(
        settings["seed"], settings["checkpoints"], settings["years"], tuple(settings["shape"]),
        settings["cell"], steering=settings.get("steering", STEERING_STRENGTH),
    )  # fmt: skip


def _plan(fire_id: str) -> FirePlan | None:
    """The plan of a fire from its name, as `plan_fires` gives it."""
    named = _NAME.fullmatch(fire_id)
    if named is None:
        return None
    drought, own = (OWN, int(named["weather"])) if named["weather"] else (named["drought"], None)
    return FirePlan(int(named["number"]), drought, named["ignition"], fire_id, own)
