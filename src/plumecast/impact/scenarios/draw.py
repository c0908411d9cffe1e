"""Draw the fires of scenarios from the same ignitions: other fuels, or other droughts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.simulator.landscape import Landscape, ignition_mask
from plumecast.workflows.fires.draw_fires import DrawnFires, draw_fires
from plumecast.workflows.landscape import SYNTHETIC, Ground


@dataclass(frozen=True, slots=True)
class Change:
    """What a scenario of the simulator has of its own; None is what all scenarios share."""

    fuels: str | Path | None = None
    droughts: tuple[str, ...] | None = None


def draw_scenarios(
    count: int,
    changes: Mapping[str, Change],
    *,
    ground: Ground = SYNTHETIC,
    droughts: Sequence[str] | None = None,
    weathers: int | None = None,
    **shared: Any,
) -> dict[str, DrawnFires]:
    """`count` fires of each scenario, planned by `draw_fires`, from the same ignitions.

    The n-th ignition has the same cell, and where fires have a weather of their own the same
    weather, in every scenario. Ignitions are drawn where the first scenario's landscape can ignite
    and every scenario's can burn: the cells that `draw_fires` takes by itself depend on the fuels.
    """
    grounds = {
        name: replace(ground, fuels=change.fuels or ground.fuels)
        for name, change in changes.items()
    }
    landscapes = {name: changed.landscape() for name, changed in grounds.items()}
    region = _common_region(landscapes)
    made: dict[str, DrawnFires] = {}
    for name, change in changes.items():
        weather: dict[str, Any] = {"droughts": droughts, "weathers": weathers}
        if change.droughts is not None:
            weather = {"droughts": change.droughts, "weathers": None}
        fires = draw_fires(count, ground=grounds[name], **weather, region=region, **shared)
        for earlier, other in made.items():
            if other.settings == fires.settings and list(other.plans) == list(fires.plans):
                raise PlumecastError(
                    f"scenarios '{earlier}' and '{name}' have the same fuels and weather; change "
                    "one of them"
                )
        made[name] = fires
    return made


def _common_region(landscapes: Mapping[str, Landscape | None]) -> np.ndarray | None:
    """Cells that ignite in the first scenario and can burn in all; None for synthetic ground."""
    (first, ground), *others = landscapes.items()
    if ground is None:
        return None
    region = ignition_mask(ground)
    for name, other in others:
        assert other is not None  # all have the elevations
        if (
            other.shape != ground.shape
            or other.corner != ground.corner
            or other.cell != ground.cell
        ):
            raise PlumecastError(
                f"scenarios '{first}' and '{name}' are on different grids: {_words(ground)}, and "
                f"{_words(other)}; warp one raster to the other"
            )
        region &= other.burnable
    if not region.any():
        raise PlumecastError(
            f"no cell can ignite in '{first}' and burn in every scenario; check the fuel rasters"
        )
    return region


def _words(ground: Landscape) -> str:
    rows, columns = ground.shape
    x, y = ground.corner
    return f"{rows} × {columns} fire cells of {ground.cell:g} m from ({x:.7g}, {y:.7g})"
