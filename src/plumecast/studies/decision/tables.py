"""The tables of the page: places, differences between scenarios, and plants."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from plumecast.impact.compare import EVERYWHERE, EXPOSURE
from plumecast.impact.loss_result import ALL, PARTS
from plumecast.scores.quantities import find_quantity
from plumecast.studies.decision.folder import Answer
from plumecast.studies.decision.words import (
    Cell,
    Table,
    between,
    chance,
    counted,
    number,
    percent,
    percents_between,
    points_between,
    unbroken_units,
)
from plumecast.workflows.statistics.point_table import EVERYONE

WHOLE = {EXPOSURE: "all people, weighted by population", EVERYWHERE: "mean over the whole map"}
"""Rows of a comparison that are no places, in words."""

CAUSES = {
    "optics": "how strongly smoke dims light is known only roughly",
    "surrogate": "the predicted smoke has an error",
    "sampling": "other fires would give other losses",
}
"""Why the loss is uncertain, by part of the interval."""

Row = Mapping[str, Any]


def units_of(answer: Answer) -> str:
    """The units of the smoke in an answer."""
    attrs = answer.attrs
    if "units" in attrs:
        return unbroken_units(str(attrs["units"]))
    return unbroken_units(find_quantity(str(attrs["quantity"])).units)


def sampled(answer: Answer) -> str:
    """What percentages of the smoke of many fires count."""
    single = answer.attrs["snapshots"] == answer.attrs["fires"]
    return "fires" if single else "snapshots of fires"


def places_in_order(answer: Answer) -> list[Row]:
    """The places without the row of all people, the smokiest first."""
    places = (row for row in answer.rows if row["name"] != EVERYONE)
    return sorted(places, key=lambda row: -(row["mean"] or 0.0))


def place_table(answer: Answer) -> Table:
    """Smoke at places, the smokiest first; all people last."""
    unit, first = units_of(answer), answer.rows[0]
    columns = [name for name in first if f"{name}_lower" in first]
    everyone = [row for row in answer.rows if row["name"] == EVERYONE]
    order = [*enumerate(places_in_order(answer), start=1), *((0, row) for row in everyone)]
    rows = []
    for place, row in order:
        people = row.get("population")
        small = "" if people is None else f"{people:,.0f} people"
        label = f"{place}. {row['name']}" if place else EVERYONE
        rows.append((Cell(label, small), *(_place_cell(row, name) for name in columns)))
    level = 100 * float(answer.attrs["coverage"])
    caption = f"Smoke in {unit}. Small print: the {level:g} % interval of each number."
    return Table(
        caption,
        ("place", *(_place_title(name, unit, sampled(answer)) for name in columns)),
        tuple(rows),
    )


def _place_title(name: str, unit: str, each: str) -> str:
    kind, _, value = name.partition("_")
    if kind == "above":
        return f"chance of more than {value} {unit}"
    if kind == "quantile":
        return f"{100 * float(value):g} % of {each} bring less than ({unit})"
    return f"mean ({unit})"


def _place_cell(row: Row, name: str) -> Cell:
    value, low, high = (row[name + ending] for ending in ("", "_lower", "_upper"))
    if value is None:
        return Cell("–")
    if name.startswith("above"):
        return Cell(percent(value), percents_between(low, high))
    return Cell(number(value), between(low, high))


def difference_tables(answer: Answer, places: Answer | None = None) -> list[Table]:
    """One table for each scenario against the reference; the largest decrease first.

    Places have their numbers in the table of `places`, which are those on the maps.
    """
    order = [] if places is None else places_in_order(places)
    labels = {str(row["name"]): f"{number}. {row['name']}" for number, row in enumerate(order, 1)}
    names = list(dict.fromkeys(str(row["scenario"]) for row in answer.rows))
    return [
        _difference_table(answer, name, [r for r in answer.rows if r["scenario"] == name], labels)
        for name in names
    ]


def _difference_table(
    answer: Answer, name: str, rows: Sequence[Row], labels: dict[str, str]
) -> Table:
    unit, reference = units_of(answer), str(answer.attrs["reference"])
    start = "reference_exceedance_"
    levels = [key.removeprefix(start) for key in rows[0] if key.startswith(start)]
    order = sorted(rows, key=lambda row: (row["place"] in WHOLE, row["difference"]))
    how = "pairs of fires with the same ignition" if rows[0]["paired"] else "independent fires"
    level = 100 * float(answer.attrs["coverage"])
    caption = (
        f"{name} against {reference}, in {unit}: mean over {how}, from "
        f"{counted(int(rows[0]['ignitions']), 'ignition')}. Small print: the {level:g} % interval."
    )
    titles = (
        "place", f"{reference} ({unit})", f"{name} ({unit})", f"difference ({unit})", "in percent",
        f"chance that {name} brings less smoke",
        *(f"fires above {level} {unit}" for level in levels), "settled?",
    )  # fmt: skip
    return Table(
        caption, titles, tuple(_difference_row(row, levels, labels | WHOLE) for row in order)
    )


def _difference_row(row: Row, levels: Sequence[str], labels: dict[str, str]) -> tuple[Cell, ...]:
    above = (
        Cell(
            f"{percent(row[f'reference_exceedance_{level}'])} → "
            f"{percent(row[f'scenario_exceedance_{level}'])}",
            points_between(row[f"exceedance_lower_{level}"], row[f"exceedance_upper_{level}"]),
        )
        for level in levels
    )
    low, high = row["relative_lower"], row["relative_upper"]
    bounded = low is not None or high is not None  # a ratio to a mean near 0 tells nothing
    return (
        Cell(labels.get(str(row["place"]), str(row["place"]))),
        Cell(number(row["reference_mean"])),
        Cell(number(row["scenario_mean"])),
        Cell(number(row["difference"], "+"), between(row["lower"], row["upper"], "+")),
        Cell(
            percent(row["relative"] if bounded else None, "+"),
            percents_between(low, high, "+") if bounded else "",
        ),
        Cell(chance(row["chance"])),
        *above,
        Cell(settled(row)),
    )


def settled(row: Row) -> str:
    """Whether the sign of a difference is known, and what would settle it."""
    if row["lower"] is None or row["upper"] is None:
        return "no fire differs" if row["difference"] == 0.0 else "unknown: too few fires"
    if row["more_ignitions"] == 0:
        if row["rough"]:
            return "not yet: a few fires decide, add fires"
        return "yes: less smoke" if row["difference"] < 0.0 else "yes: more smoke"
    if row["more_ignitions"] is None:
        return "no, and more fires would hardly settle it"
    return f"no; about {counted(math.ceil(row['more_ignitions']), 'more ignition')} needed"


def energy_table(answer: Answer) -> Table:
    """What every plant loses, the largest loss first; all plants last."""
    order = sorted(answer.rows, key=lambda row: (row["plant"] == ALL, -row["lost_mwh"]))
    rows = tuple(
        (
            Cell(str(row["plant"]), f"{row['megawatts']:g} MW"),
            Cell(number(row["clear_mwh"])),
            Cell(number(row["lost_mwh"]), _ends(row, "lost_mwh", "total")),
            Cell(f"{number(row['lost_percent'])} %", _ends(row, "lost_percent", "total", " %")),
        )
        for row in order
    )
    level = 100 * float(answer.attrs["coverage"])
    caption = f"Mean over the fires. Small print: the {level:g} % interval."
    return Table(caption, ("plant", "under a clear sky (MWh)", "lost (MWh)", "lost (%)"), rows)


def energy_parts(answer: Answer) -> list[str]:
    """The parts of the interval of all plants, in words."""
    whole = next(row for row in answer.rows if row["plant"] == ALL)
    return [
        f"{_ends(whole, 'lost_mwh', part, ' MWh')}: {CAUSES[part]}."
        for part in PARTS[:-1]
        if whole[f"lost_mwh_lower_{part}"] is not None
    ]


def _ends(row: Row, quantity: str, part: str, unit: str = "") -> str:
    return between(row[f"{quantity}_lower_{part}"], row[f"{quantity}_upper_{part}"], unit=unit)
