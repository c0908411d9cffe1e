"""Show the energy that plants lose in the terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from plumecast.cli.show import count, note, say, table
from plumecast.impact.loss_result import ALL, PARTS, loss_rows


def show_loss(loss: xr.Dataset, *, predicted: bool) -> None:
    """The table of plants, the parts of the interval, and other models of the sky."""
    rows = loss_rows(loss)
    share = f"{loss.attrs['coverage']:.0%}"
    ignitions = np.unique(loss["ignition_id"].values).size
    fires = count(loss.sizes["fire"], "fire")
    table(
        f"energy lost to smoke, mean of {fires} ({count(ignitions, 'ignition')}), up to "
        f"{float(loss['hours'].max()):g} h after ignition",
        ["plant", "MW", "clear MWh", "lost MWh", f"{share} interval", "%", f"{share} interval"],
        [_plant(row) for row in rows],
    )
    whole = rows[-1]
    parts = [(part, _between(whole, "lost_mwh", part)) for part in PARTS[:-1]]
    say(f"{ALL}: " + "; ".join(f"{part} {found}" for part, found in parts if found) + " (MWh)")
    _say_unknown(whole, predicted)
    _say_models(loss)
    _say_assumptions(loss)
    for row in rows[:-1]:
        if row["clear_mwh"] == 0.0:
            why = "its capacity is 0 MW" if row["megawatts"] == 0.0 else "no sun in these hours"
            note(f"{row['plant']}: {why}, so that it loses 0 of 0 MWh")


def _plant(row: dict[str, Any]) -> list[str]:
    return [
        str(row["plant"]),
        f"{row['megawatts']:g}",
        f"{row['clear_mwh']:,.1f}",
        f"{row['lost_mwh']:,.2f}",
        _between(row, "lost_mwh", "total"),
        f"{row['lost_percent']:.2f}",
        _between(row, "lost_percent", "total"),
    ]


def _between(row: dict[str, Any], quantity: str, part: str) -> str:
    low, high = (row[f"{quantity}_{end}_{part}"] for end in ("lower", "upper"))
    return "" if low is None or high is None else f"{low:,.2f} … {high:,.2f}"


def _say_unknown(whole: dict[str, Any], predicted: bool) -> None:
    if whole["lost_mwh_lower_sampling"] is None:
        note("one ignition: the interval is for these fires, not for others like them")
    if predicted and whole["lost_mwh_lower_surrogate"] is None:
        note("the error of the predicted smoke is not part of the interval")


def _say_models(loss: xr.Dataset) -> None:
    """What the other models of the sky give, in the intervals that they are made for."""
    lost, reference = loss["model_lost_energy"], loss["reference_lost_energy"]
    found = []
    for name in loss["model"].values.tolist()[1:]:
        here, there = float(lost.sel(model=name)), float(reference.sel(model=name))
        within = "" if np.isclose(there, float(reference[0])) else ", within its range"
        found.append(f"{name} {here:,.2f} MWh (spectrl2 {there:,.2f}{within})")
    say("other models of the sky: " + "; ".join(found))


def _say_assumptions(loss: xr.Dataset) -> None:
    given = loss.attrs
    (low, high), (dark, bright) = given["optics_mee_range"], given["optics_ssa_range"]
    say(
        f"assumed: extinction {given['optics_mee']:g} m²/g ({low:g} … {high:g}), albedo "
        f"{given['optics_ssa']:g} ({dark:g} … {bright:g}), column of "
        f"{given['column_depth_m'] / 1000.0:.3g} km, ignition {given['ignition_time']}"
    )
