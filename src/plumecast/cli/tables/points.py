"""Print the statistics of smoke at places."""

from __future__ import annotations

import numpy as np
import xarray as xr

from plumecast.base.names import shown_units
from plumecast.cli.show import count, note, say, table
from plumecast.workflows.statistics.point_table import EVERYONE, never_smoky, printed_rows


def show_points(statistics: xr.Dataset) -> None:
    """A table with a row for each place; each value has its interval behind it."""
    titles, rows = printed_rows(statistics)
    unit = shown_units(statistics["mean_smoke"].attrs["units"])
    table(f"smoke at {statistics.sizes['place']} places ({unit})", titles, rows)
    corrected = {"calibration_ignitions", "true_ignitions"} & set(statistics.attrs)
    if "smoke_quantile" in statistics and corrected:
        say("quantiles are those of the predictions; their intervals contain the sampling only")
    clean = never_smoky(statistics)
    if clean:
        fires = count(statistics.attrs["fires"], "fire")
        note(
            f"no smoke in any of {fires} at {', '.join(clean[:3])}"
            + (f" and {len(clean) - 3} more" if len(clean) > 3 else "")
            + ": how large the mean may be is unknown (?)"
        )
    if "exposure" not in statistics:
        return
    persons = float(np.nansum(statistics["population"].values))
    say(f"'{EVERYONE}' is the mean per person of {persons:.10g} persons, and their share above")
