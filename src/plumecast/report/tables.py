"""The tables and maps of the page for a planner: places, differences between scenarios, plants."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from plumecast.app.maps.figure import draw_ground, draw_relief, name_places
from plumecast.app.maps.ground import GROUND_HEIGHT, Ground, ground_of
from plumecast.compute.regrid import grid_from_centres
from plumecast.data.crs import crs_of
from plumecast.impact.compare import EVERYWHERE, EXPOSURE
from plumecast.impact.comparison import SCENARIO
from plumecast.impact.loss_result import ALL, PARTS
from plumecast.paper.figures import COLOURS, MUTED, draw_smoke, smoke_scale, styled
from plumecast.report import Picture, embed_figure
from plumecast.report.answers import (
    Answer,
    Cell,
    Table,
    between,
    chance,
    counted,
    number,
    percent,
    percents_between,
    share,
    shares_between,
    unbroken_units,
)
from plumecast.scores.quantities import find_quantity
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
    units = attrs["units"] if "units" in attrs else find_quantity(str(attrs["quantity"])).units
    return unbroken_units(str(units))


def level_of(answer: Answer) -> str:
    """The coverage of the intervals of an answer, in percent."""
    return f"{100 * float(answer.attrs['coverage']):g} %"


def sampled(answer: Answer) -> str:
    """What percentages of the smoke of many fires count."""
    single = answer.attrs["snapshots"] == answer.attrs["fires"]
    return "fires" if single else "snapshots of fires"


def is_corrected(answer: Answer) -> bool:
    """Whether means and chances are corrected for the error of predictions; quantiles are not."""
    return bool({"calibration_ignitions", "true_ignitions"} & set(answer.attrs))


def is_one(answer: Answer) -> bool:
    """Whether an answer is of a single ignition, of which no chance can be told."""
    attrs = answer.attrs
    return int(attrs.get("ignitions", attrs["fires"])) == 1


def places_in_order(answer: Answer) -> list[Row]:
    """The places without the row of all people, the smokiest first."""
    places = (row for row in answer.rows if row["name"] != EVERYONE)
    return sorted(places, key=lambda row: -(row["mean"] or 0.0))


def place_table(answer: Answer) -> Table:
    """Smoke at places, the smokiest first; all people last.

    Quantiles are left out beside chances that are corrected, as they would contradict them.
    """
    unit, first = units_of(answer), answer.rows[0]
    columns = [name for name in first if f"{name}_lower" in first]
    above = any(name.startswith("above") for name in columns)
    if is_one(answer) or (above and is_corrected(answer)):
        columns = [name for name in columns if not name.startswith("quantile")]
    titles = ["place"]
    for name in columns:
        kind, _, value = name.partition("_")
        if kind == "above":
            asked = "more" if is_one(answer) else "chance of more"
            titles.append(f"{asked} than {value} {unit}{'?' if is_one(answer) else ''}")
        elif kind == "quantile":
            share = 100 * float(value)
            titles.append(f"{share:g} % of {sampled(answer)} bring less than ({unit})")
        else:
            titles.append(f"smoke ({unit})" if is_one(answer) else f"mean ({unit})")
    everyone = [row for row in answer.rows if row["name"] == EVERYONE]
    rows = []
    for row in [*places_in_order(answer), *everyone]:
        people = row.get("population")
        small = [str(row["county"])] if row.get("county") else []
        small += [] if people in (None, "") else [f"{people:,.0f} people"]
        small += [str(row["note"])] if row.get("note") else []
        first_cell = Cell(str(row["name"]), ", ".join(small))
        rows.append((first_cell, *(_place_cell(answer, row, name) for name in columns)))
    caption = f"Smoke in {unit}. Small print: the {level_of(answer)} interval of each number."
    return Table(caption, tuple(titles), tuple(rows))


def _place_cell(answer: Answer, row: Row, name: str) -> Cell:
    value, low, high = (row[name + ending] for ending in ("", "_lower", "_upper"))
    if value in (None, ""):  # unknown, or outside the grid
        return Cell("–")
    if name.startswith("above") and is_one(answer):
        low, high, level = row["mean_lower"], row["mean_upper"], float(name.partition("_")[2])
        if row["name"] == EVERYONE:
            return Cell("–")
        if low is not None and low > level:
            return Cell("yes")
        return Cell("no" if high is not None and high <= level else "possible")
    if name.startswith("above"):
        fires = int(answer.attrs["fires"])
        return Cell(share(value, fires), shares_between(low, high, fires))
    return Cell(number(value), between(low, high))


def difference_tables(answer: Answer) -> list[Table]:
    """One table for each scenario against the reference; the largest decrease first."""
    names = list(dict.fromkeys(str(row["scenario"]) for row in answer.rows))
    return [
        _difference_table(answer, name, [r for r in answer.rows if r["scenario"] == name])
        for name in names
    ]


def _difference_table(answer: Answer, name: str, rows: Sequence[Row]) -> Table:
    unit, reference = units_of(answer), str(answer.attrs["reference"])
    start = "reference_exceedance_"
    levels = [key.removeprefix(start) for key in rows[0] if key.startswith(start)]
    order = sorted(rows, key=lambda row: (row["place"] in WHOLE, row["difference"]))
    how = "pairs of fires with the same ignition" if rows[0]["paired"] else "independent fires"
    caption = (
        f"{name} against {reference}, in {unit}: mean over {how}, from "
        f"{counted(int(rows[0]['ignitions']), 'ignition')}. Small print: the {level_of(answer)} "
        "interval."
    )
    titles = (
        "place", f"{reference} ({unit})", f"{name} ({unit})", f"difference ({unit})", "in percent",
        f"chance that {name} brings less smoke",
        *(f"fires above {level} {unit}" for level in levels), "settled?",
    )  # fmt: skip
    shown = (_difference_row(row, levels) for row in order)
    return Table(caption, titles, tuple(shown))


def _difference_row(row: Row, levels: Sequence[str]) -> tuple[Cell, ...]:
    fires = int(row["ignitions"])
    above = (
        Cell(
            f"{share(row[f'reference_exceedance_{level}'], fires)} → "
            f"{share(row[f'scenario_exceedance_{level}'], fires)}",
            _points_between(row, level),
        )
        for level in levels
    )
    low, high = row["relative_lower"], row["relative_upper"]
    bounded = low is not None or high is not None  # a ratio to a mean near 0 tells nothing
    return (
        Cell(WHOLE.get(str(row["place"]), str(row["place"]))),
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


def _points_between(row: Row, level: str) -> str:
    low, high = (row[f"exceedance_{end}_{level}"] for end in ("lower", "upper"))
    return shares_between(low, high, int(row["ignitions"]), "+", " points")


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
    caption = f"Mean over the fires. Small print: the {level_of(answer)} interval."
    return Table(caption, ("plant", "under a clear sky (MWh)", "lost (MWh)", "lost (%)"), rows)


def whole_of(answer: Answer) -> Row:
    """The row of all plants."""
    return next(row for row in answer.rows if row["plant"] == ALL)


def energy_parts(answer: Answer) -> list[str]:
    """The parts of the interval of all plants, in words."""
    whole = whole_of(answer)
    return [
        f"{_ends(whole, 'lost_mwh', part, ' MWh')}: {CAUSES[part]}."
        for part in PARTS[:-1]
        if whole[f"lost_mwh_lower_{part}"] is not None
    ]


def _ends(row: Row, quantity: str, part: str, unit: str = "") -> str:
    return between(row[f"{quantity}_lower_{part}"], row[f"{quantity}_upper_{part}"], unit=unit)


# -- Maps: percentiles of smoke on one colour scale, differences, and places

WIDTH, DPI = 3.4, 180  # inches of one map, and its dots per inch
LOWEST = 1e-3  # of the largest smoke; less is white
WIDEST = 0.99  # quantile of the differences at which the colours end
DIFFERENCE_COLOURS = "RdBu_r"
"""Blue is less smoke than in the reference, red is more; distinct with any colour vision."""

FAINT = 0.3  # opacity of differences that are not settled


def smoke_pictures(maps: Answer, places: Answer | None) -> list[Picture]:
    """Maps of the percentiles, or of the mean without them, and the legend as the last picture."""
    fields = _smoke_fields(maps)
    if not fields:
        return []
    unit = units_of(maps)
    top = max(float(field.max()) for _, field, _ in fields)
    lowest = max(LOWEST * top, LOWEST)
    norm = smoke_scale(xr.concat([field for _, field, _ in fields], "panel"), lowest)

    def draw(ax: Axes, field: xr.DataArray) -> None:
        draw_smoke(ax, field.where(field > lowest), norm)
        if not bool((field > lowest).any()):
            text = f"nowhere above\n{number(lowest)} {unit}"
            ax.text(
                0.5, 0.97, text, transform=ax.transAxes, ha="center", va="top", color=MUTED
            )  # fmt: skip

    label = f"smoke ({unit}); blank: less than {number(lowest)}"
    legend = _legend(norm, COLOURS, label, beyond="neither")
    return [*_pictures("smoke", maps, fields, draw, places), legend]


def _pictures(
    what: str,
    maps: Answer,
    fields: list[tuple[str, xr.DataArray, str]],
    draw: Callable[[Axes, xr.DataArray], None],
    places: Answer | None,
) -> list[Picture]:
    """A map of each of the fields, which have a title and a caption, with ground and places."""
    shown, ground = [], _ground_of(maps)
    for title, field, caption in fields:
        with styled():
            tall, wide = (abs(float(field[axis][-1] - field[axis][0])) for axis in ("y", "x"))
            ratio = min(max(tall / wide, 0.3), 3.0) if wide else 1.0
            size = (WIDTH, (WIDTH - 0.6) * ratio + 0.6)
            figure = Figure(figsize=size, layout="constrained")
            ax = figure.subplots()
            ax.set(xlabel="x (km)", ylabel="y (km)")
            ax.locator_params(nbins=5)
            if ground is not None:
                draw_relief(ax, ground)
            draw(ax, field)
            if ground is not None:
                draw_ground(ax, ground)
            _mark(ax, places)
            shown.append(Picture(embed_figure(figure, DPI), caption, f"Map of {what}: {title}"))
    return shown


def _smoke_fields(maps: Answer) -> list[tuple[str, xr.DataArray, str]]:
    """Title of each map, its field and its caption."""
    data, each = maps.fields, sampled(maps)
    if data is not None and "mean_smoke" in data and is_one(maps):
        return _error_bar_fields(maps, data)
    if data is not None and "smoke_quantile" in data:
        shares = [float(share) for share in data["quantile"].values]
        fields = []
        for share in sorted({shares[0], shares[len(shares) // 2], shares[-1]}):
            title, field = f"{ordinal(100 * share)} percentile", data["smoke_quantile"]
            text = (
                f"{title}. In every cell, {100 * share:g} of 100 {each} bring less smoke than this."
            )
            if is_corrected(maps):
                text += " Of the predictions, without the correction that means and chances have."
            fields.append((title, field.sel(quantile=share), text))
        return fields
    if data is not None and "mean_smoke" in data:
        text = f"Mean. The mean over the {each}, in every cell."
        return [("Mean", data["mean_smoke"], text)]
    return []


def _error_bar_fields(maps: Answer, data: xr.Dataset) -> list[tuple[str, xr.DataArray, str]]:
    """Of one ignition: the ends of its error bar and the prediction; that alone without an end."""
    level = level_of(maps) if "coverage" in maps.attrs else ""
    fields = [("Prediction", data["mean_smoke"], "Prediction. The smoke to expect.")]
    upper = data.get("mean_smoke_upper")
    if upper is None or not bool(np.isfinite(upper).any()):
        return fields
    for place, end, word in ((0, "lower", "more"), (2, "upper", "less")):
        title = f"{end.capitalize()} end"
        text = f"{title}. With the {level} error bar, the smoke is {word} than this."
        fields.insert(place, (title, data[f"mean_smoke_{end}"], text))
    return fields


def ordinal(value: float) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 97.5th."""
    text = f"{value:g}"
    if not text.isdigit() or text[-2:] in ("11", "12", "13"):
        return f"{text}th"
    return text + {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")


def difference_pictures(maps: Answer, places: Answer | None) -> list[Picture]:
    """A map for every scenario on one scale, and the legend as the last picture."""
    data = maps.fields
    if data is None:
        return []
    sizes = np.abs(data["difference"].values)
    most = float(np.nanquantile(sizes, WIDEST)) or float(np.nanmax(sizes)) or 1.0
    norm = TwoSlopeNorm(0.0, -most, most)
    fields = [
        (
            name,
            data["difference"].sel({SCENARIO: name}),
            f"{name} minus {maps.attrs['reference']}. Blue: less smoke; red: more. Pale: the "
            f"{level_of(maps)} interval of the cell contains 0, so that the sign is not settled "
            "there.",
        )
        for name in data[SCENARIO].values.tolist()
    ]

    def draw(ax: Axes, field: xr.DataArray) -> None:
        one = data.sel({SCENARIO: field[SCENARIO].item()})
        sure = (one["lower"] > 0.0) | (one["upper"] < 0.0)
        ax.set_aspect("equal")
        for chosen, opacity in ((sure, 1.0), (~sure, FAINT)):
            ax.pcolormesh(
                field.x / 1e3, field.y / 1e3, field.where(chosen).values, norm=norm,
                cmap=DIFFERENCE_COLOURS, alpha=opacity, rasterized=True, edgecolors="none",
                linewidth=0,
            )  # fmt: skip

    label = f"difference of the mean smoke ({units_of(maps)})"
    legend = _legend(norm, DIFFERENCE_COLOURS, label, beyond="both")
    return [*_pictures("differences", maps, fields, draw, places), legend]


def _ground_of(maps: Answer) -> Ground | None:
    """Borders, a graticule and terrain below and above the maps; None without a projection."""
    data = maps.fields
    if data is None or crs_of(data) is None or importlib.util.find_spec("pyproj") is None:
        return None
    ordered = data.sortby(["y", "x"])
    grid = grid_from_centres(ordered["x"].values, ordered["y"].values, maps.path.name)
    return ground_of(grid, crs_of(data), ordered.get(GROUND_HEIGHT))


def _mark(ax: Axes, places: Answer | None) -> None:
    """Mark the places, with their names where there is room."""
    rows = [] if places is None else places_in_order(places)
    marks: dict[str, tuple[float, float]] = {}
    for row in rows:
        x, y = (row.get(f"place_{a}", row.get(f"cell_{a}")) for a in "xy")
        if x is not None and y is not None:
            marks[str(row["name"])] = float(x) / 1e3, float(y) / 1e3
    name_places(ax, marks)


def _legend(norm: Normalize, colours: str, label: str, *, beyond: str) -> Picture:
    with styled():
        figure = Figure(figsize=(3.7, 0.66), layout="constrained")
        bar = figure.colorbar(
            ScalarMappable(norm, colours), cax=figure.subplots(), orientation="horizontal",
            extend=beyond, format=FuncFormatter(lambda value, _: f"{value:g}"),
        )  # fmt: skip
        bar.set_label(label)
        return Picture(embed_figure(figure, DPI), "", f"Colours of the maps: {label}")
