"""Two fires of the page against each other, by `compare_scenarios`: a table and a map."""

from __future__ import annotations

from typing import Any

import xarray as xr

from plumecast.app.server.live.fires import LiveFire
from plumecast.impact.compare import Comparing, compare_scenarios
from plumecast.impact.comparison import SCENARIO, Comparison
from plumecast.scores.reading import Reading
from plumecast.sources.places import Places

NAMES = ("A", "B")
"""The scenarios of the page; each is one fire."""

COLUMNS = ("reference_mean", "scenario_mean", "difference")
"""Columns of the table. One fire has no sampling interval, so that the others are unknown."""


def compare_fires(
    a: LiveFire, b: LiveFire, k: int, *, quantity: str, places: Places | None = None
) -> Comparison:
    """Fire B against fire A in frame k: scenarios with one fire each."""
    frames = {  # the frame counts as the end of its fire
        name: fire.frame(k).drop_vars("is_final", errors="ignore")
        for name, fire in zip(NAMES, (a, b), strict=True)
    }
    return compare_scenarios(
        frames,
        Reading(quantity, interval=a.world.interval),
        Comparing(paired=False),
        places=places,
    )


def last_common(a: LiveFire, b: LiveFire) -> int:
    """The last frame that both fires have; −1 if there is none."""
    return min(len(a.frames), len(b.frames)) - 1


def difference(a: LiveFire, b: LiveFire, k: int, quantity: str) -> xr.DataArray:
    """Smoke of fire b minus that of fire a in frame k, from the south-west."""
    maps = compare_fires(a, b, k, quantity=quantity).maps
    assert maps is not None
    return maps["difference"].isel({SCENARIO: 0}).sortby(["y", "x"])


def compare_record(
    a: LiveFire, b: LiveFire, k: int, *, quantity: str, places: Places | None = None
) -> dict[str, Any]:
    """The table of the places and of the grid in frame k, with what its numbers are."""
    found = compare_fires(a, b, k, quantity=quantity, places=places)
    table = found.places.isel({SCENARIO: 0})
    rows = [
        {"place": str(name)} | {column: float(table[column].values[n]) for column in COLUMNS}
        for n, name in enumerate(table["place"].values)
    ]
    return {
        "hour": a.world.hours[k],
        "quantity": found.places.attrs["quantity"],
        "units": found.places.attrs["units"],
        "burned_area": {
            name: float(fire.frame(k)["burned_area"].values[0])
            for name, fire in (("a", a), ("b", b))
        },
        "table": rows,
        "notes": list(found.notes),
    }
