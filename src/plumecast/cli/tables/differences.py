"""Print the differences of scenarios."""

from __future__ import annotations

import math
from typing import Any

import xarray as xr

from plumecast.base.names import shown_units
from plumecast.cli.show import count, note, say, table
from plumecast.impact.comparison import SCENARIO, Comparison
from plumecast.impact.difference import MOST

NONE = "–"


def show_comparison(comparison: Comparison) -> None:
    """One table for each scenario against the reference, and the notes."""
    found = comparison.places
    level = 100 * found.attrs["coverage"]
    unit = shown_units(found.attrs["units"])
    say(f"{found.attrs['quantity']} ({unit}) at the last snapshot of each fire, mean over fires")
    for name in found[SCENARIO].values:
        one = found.sel({SCENARIO: name})
        columns = [
            "", comparison.reference, str(name), "difference", f"{level:g} % interval", "percent",
            f"its {level:g} % interval", "chance lower", "lower / higher in", "more ignitions",
        ]  # fmt: skip
        rows = [
            _row(one.sel(place=place), found["chance"].size > 1) for place in one["place"].values
        ]
        table(f"{name} − {comparison.reference}: {_compared(one)}", columns, rows)
        for level_ in one["threshold"].values if "threshold" in one.dims else ():
            _show_exceedance(comparison.reference, str(name), one.sel(threshold=level_), unit)
    _show_meaning(found)
    for text in comparison.notes:
        note(text)


def _compared(one: xr.Dataset) -> str:
    ignitions = count(int(one["ignitions"]), "ignition")
    if not bool(one["paired"]):
        return f"unpaired, at least {ignitions} each"
    return f"{count(int(one['pairs']), 'pair')} of {ignitions}"


def _row(place: xr.Dataset, several: bool) -> list[str]:
    """Cells of one place; a star marks what is clear among several."""
    value = {str(name): item.item() for name, item in place.data_vars.items() if not item.dims}
    bounded = math.isfinite(value["relative_lower"])  # a ratio to a mean near 0 tells nothing
    return [
        f"{place['place'].item()}{' *' if several and value['clear'] else ''}",
        _number(value["reference_mean"]),
        _number(value["scenario_mean"]),
        _number(value["difference"], "+"),
        _interval(value["lower"], value["upper"]),
        _number(100 * value["relative"] if bounded else math.nan, "+"),
        _interval(100 * value["relative_lower"], 100 * value["relative_upper"]),
        _chance(value["chance"]),
        NONE if math.isnan(value["better"]) else f"{value['better']:.0%} / {value['worse']:.0%}",
        _more(value),
    ]


def _show_exceedance(reference: str, name: str, one: xr.Dataset, unit: str) -> None:
    rows = []
    for place in one["place"].values:
        at = one.sel(place=place)
        value = {key: 100 * float(at[key]) for key in at.data_vars if "exceedance" in str(key)}
        rows.append([
            str(place), _number(value["reference_exceedance"]),
            _number(value["scenario_exceedance"]), _number(value["exceedance_difference"], "+"),
            _interval(value["exceedance_lower"], value["exceedance_upper"]),
        ])  # fmt: skip
    level = 100 * one.attrs["coverage"]
    columns = ["", reference, name, "difference", f"{level:g} % interval"]
    table(f"percent of fires above {float(one['threshold']):g} {unit}", columns, rows)


def _show_meaning(found: xr.Dataset) -> None:
    tests = found["chance"].notnull().sum().item()
    if tests < 2:
        return
    level = 100 * found.attrs["coverage"]
    say(
        f"intervals hold for one place at a time; * marks what is clear at {level:g} % among all "
        f"{tests} together (Holm)"
    )


def _number(value: float, sign: str = "") -> str:
    return NONE if not math.isfinite(value) else f"{value:{sign}.3g}"


def _interval(low: float, high: float) -> str:
    if math.isnan(low):
        return NONE
    if not math.isfinite(low):
        return "unknown"
    return f"{low:+.3g} … {high:+.3g}"


def _chance(value: float) -> str:
    """A probability, never rounded to certainty."""
    if math.isnan(value):
        return NONE
    return "> 0.999" if value > 0.999 else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _more(value: dict[str, Any]) -> str:
    if value["difference"] == 0.0 and math.isnan(value["lower"]):
        return "no fire differs"
    more = value["more_ignitions"]
    if more == 0:
        return "rough" if value["rough"] else "settled"
    if math.isinf(value["lower"]):
        return NONE
    return f"not with {MOST:,}" if math.isinf(more) else f"{more:.0f}"
