"""A folder of answers: the files of `ensemble`, `compare` and `impact` that belong together.

Numbers and intervals of them are worded as people read them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import shown_units
from plumecast.impact.loss_result import loss_rows
from plumecast.workflows.held_out.record import MODEL
from plumecast.workflows.statistics.point_table import ROWS, point_rows

MAPS, PLACES, DIFFERENCES, DIFFERENCE_MAPS, ENERGY = KINDS = (
    "maps", "places", "differences", "difference maps", "energy",
)  # fmt: skip

_TITLES = {
    "Statistics of predicted smoke": MAPS,
    "Smoke at places": PLACES,
    "Differences of smoke from scenario ": DIFFERENCE_MAPS,
    "Solar energy lost to smoke": ENERGY,
}
"""How the title of a NetCDF file begins, and the kind of answer in it."""

COMMANDS = {
    MAPS: "plumecast ensemble MODEL FIRES --final --quantiles 0.05,0.5,0.95 -o {folder}/maps.nc",
    PLACES: "plumecast ensemble MODEL FIRES --final --points towns.csv --thresholds 35 "
    "--points-out {folder}/towns.json",
    DIFFERENCES: "plumecast compare A B --points towns.csv --json {folder}/differences.json",
    DIFFERENCE_MAPS: "plumecast compare A B -o {folder}/differences.nc",
    ENERGY: "plumecast impact FIRES --points plants.csv --ignition-time TIME -o {folder}/energy.nc",
}
"""The command that writes each kind of answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One file: how it was made, and the rows of its table or its fields."""

    path: Path
    attrs: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...] = ()
    fields: xr.Dataset | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a folder by kind, and the files that are none."""

    folder: Path
    found: Mapping[str, Answer]
    others: tuple[Path, ...]

    def get(self, kind: str) -> Answer | None:
        """The answer of a kind; None if the folder has none."""
        return self.found.get(kind)


def read_answers(folder: str | Path) -> Answers:
    """The answers in the NetCDF and JSON files of a folder; raises if they do not fit together.

    What a file is follows from its content, not from its name. Of a NetCDF and a JSON file with the
    same kind of answer the NetCDF file is read, because it holds more.
    """
    where = Path(folder)
    if not where.is_dir():
        raise PlumecastError(
            f"{where}: no such folder; write the results of ensemble, compare and impact into one"
        )
    found: dict[str, Answer] = {}
    others = []
    for ending, read in ((".nc", _read_netcdf), (".json", _read_json)):
        of_ending: dict[str, Answer] = {}
        for path in sorted(where.glob(f"*{ending}")):
            kind, answer = read(path)
            if kind is None or answer is None:
                others.append(path)
            elif kind in of_ending:
                raise PlumecastError(
                    f"{where} has two files with {kind}, {of_ending[kind].path.name} and "
                    f"{path.name}; keep one"
                )
            else:
                of_ending[kind] = answer
        found = of_ending | found
    if not found:
        first = COMMANDS[MAPS].format(folder=where)
        raise PlumecastError(
            f"{where} has no results of ensemble, compare or impact (.nc, .json); write some with "
            f"`{first}`"
        )
    _check_models(found)
    _check_grids(found)
    _check_scenarios(found)
    _check_quantities(found)
    return Answers(where, found, tuple(others))


def _read_netcdf(path: Path) -> tuple[str | None, Answer | None]:
    try:
        with xr.open_dataset(path, engine="netcdf4") as file:
            data = file.load()
    except (OSError, ValueError) as error:
        raise PlumecastError(f"{path}: not a readable NetCDF file; write it again") from error
    title = str(data.attrs.get("title", ""))
    kind = next((kind for start, kind in _TITLES.items() if title.startswith(start)), None)
    if kind is None:
        return None, None
    rows: dict[str, Callable[[xr.Dataset], list[dict[str, Any]]]]
    rows = {PLACES: point_rows, ENERGY: loss_rows}
    try:
        table = tuple(rows[kind](data)) if kind in rows else ()
    except KeyError as error:
        raise PlumecastError(f"{path} lacks {error}; write it again") from error
    return kind, Answer(path, data.attrs, table, data)


def _read_json(path: Path) -> tuple[str | None, Answer | None]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PlumecastError(f"{path}: not a JSON file ({error}); write it again") from error
    if not isinstance(content, dict):
        return None, None
    if ROWS in content:
        return PLACES, Answer(path, content, tuple(content[ROWS]))
    if {"comparison", "places"} <= set(content):
        notes = tuple(map(str, content.get("notes", ())))
        return DIFFERENCES, Answer(
            path, content["comparison"], tuple(content["places"]), None, notes
        )
    if {"plants", "assumptions"} <= set(content):
        return ENERGY, Answer(path, content["assumptions"], tuple(content["plants"]))
    return None, None


def _check_models(answers: Mapping[str, Answer]) -> None:
    """Raise if two answers were made with different surrogates."""
    made = [item for item in answers.values() if MODEL in item.attrs]
    for item in made[1:]:
        if item.attrs[MODEL] != made[0].attrs[MODEL]:
            one, two = (
                f"{part.path.name} ({part.attrs.get('model_preset')}, {part.attrs[MODEL]})"
                for part in (made[0], item)
            )
            raise PlumecastError(
                f"{item.path.parent}: {one} and {two} were made with different surrogates; make "
                "them with one, or keep them in separate folders"
            )


def _check_grids(found: Mapping[str, Answer]) -> None:
    """Raise if maps have different grids, or places lie outside of them."""
    maps = [item for kind in (MAPS, DIFFERENCE_MAPS) if (item := found.get(kind)) is not None]
    known = [item.fields for item in maps if item.fields is not None]
    axes = [{name: data[name].values for name in ("x", "y")} for data in known]
    if len(axes) == 2 and not all(np.array_equal(axes[0][n], axes[1][n]) for n in ("x", "y")):
        raise PlumecastError(
            f"{maps[0].path.name} and {maps[1].path.name} in {maps[0].path.parent} have different "
            "grids; make them from fires on one grid"
        )
    places = found.get(PLACES)
    if not axes or places is None:
        return
    for row in places.rows:
        for name in ("x", "y"):
            value = row.get(f"cell_{name}")
            if value is not None and not np.isclose(axes[0][name], value).any():
                raise PlumecastError(
                    f"{places.path.name}: {row['name']} (cell at {name} {value:g} m) is on another "
                    f"grid than {maps[0].path.name}; make both from fires on one grid"
                )


def _check_scenarios(found: Mapping[str, Answer]) -> None:
    """Raise if the table and the maps of differences are of different comparisons."""
    table, maps = found.get(DIFFERENCES), found.get(DIFFERENCE_MAPS)
    if table is None or maps is None or maps.fields is None:
        return
    named = [str(table.attrs.get("reference")), *(str(row.get("scenario")) for row in table.rows)]
    mapped = [str(maps.attrs.get("reference")), *map(str, maps.fields["scenario"].values)]
    if list(dict.fromkeys(named)) != mapped:
        raise PlumecastError(
            f"{table.path.name} compares {', '.join(dict.fromkeys(named))}, but {maps.path.name} "
            f"{', '.join(mapped)}; write both with one call of compare (--json and -o)"
        )


def _check_quantities(found: Mapping[str, Answer]) -> None:
    """Raise if the maps and the places are of different quantities, such as means and doses."""
    named = [found[kind] for kind in (MAPS, PLACES) if kind in found]
    if len(named) == 2 and named[0].attrs.get("quantity") != named[1].attrs.get("quantity"):
        one, two = (f"{item.path.name} ({item.attrs.get('quantity')})" for item in named)
        raise PlumecastError(
            f"{one} and {two} in {named[0].path.parent} have different quantities; write both with "
            "one --quantity"
        )


# -- Numbers and intervals as people read them

NONE = "–"
MINUS = "−"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: the value, and its interval in small print."""

    text: str
    small: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption; the first cell of a row names it."""

    caption: str
    titles: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def number(value: float | None, sign: str = "") -> str:
    """Three digits without an exponent: 1.29, 2,100, < 0.001."""
    if value is None or not math.isfinite(value):
        return NONE
    if value and abs(value) < 1e-3:
        return "< 0.001" if value > 0 else f"> {MINUS}0.001"
    digits = f"{value:{sign},.0f}" if abs(value) >= 99.95 else f"{value:{sign}.3g}"
    return digits.replace("-", MINUS)


def percent(share: float | None, sign: str = "") -> str:
    """A share as percent with its unit."""
    if share is None or not math.isfinite(share):
        return NONE
    return f"{number(100.0 * share, sign)} %"


def share(value: float | None, fires: int) -> str:
    """A probability of fires in percent, never finer than their number tells.

    >>> [share(value, 80) for value in (0.0000913, 0.0823, 1.0)]
    ['< 1 in 80', '8 %', '> 79 in 80']
    """
    if value is None or not math.isfinite(value):
        return NONE
    if value < 1.0 / fires:
        return f"< 1 in {fires:,}"
    if value > 1.0 - 1.0 / fires:
        return f"> {fires - 1:,} in {fires:,}"
    return f"{100.0 * value:.{_share_digits(fires)}f} %"


def shares_between(
    low: float | None, high: float | None, fires: int, sign: str = "", unit: str = " %"
) -> str:
    """An interval of a probability of fires, rounded outwards to what their number tells."""
    fine = 10.0 ** _share_digits(fires)

    def outwards(end: float | None, rounding: Callable[[float], int]) -> float | None:
        if end is None or not math.isfinite(end):
            return None
        return rounding(round(100.0 * fine * end, 6)) / fine

    return between(outwards(low, math.floor), outwards(high, math.ceil), sign, unit)


def _share_digits(fires: int) -> int:
    """Decimals of a percentage: fires fewer than a thousand tell whole percents."""
    return max(0, math.floor(math.log10(max(fires, 1))) - 2)


def chance(value: float | None) -> str:
    """A probability, never rounded to certainty."""
    if value is None or not math.isfinite(value):
        return NONE
    if value > 0.999:
        return "> 99.9 %"
    return "< 0.1 %" if value < 0.001 else f"{100.0 * value:.3g} %"


def between(low: float | None, high: float | None, sign: str = "", unit: str = "") -> str:
    """An interval; an end that is not known is said to be so."""
    low, high = (None if end is None or not math.isfinite(end) else end for end in (low, high))
    if low is None and high is None:
        return "interval unknown"
    if high is None:
        return f"{number(low, sign)}{unit} or more"
    if low is None:
        return f"{number(high, sign)}{unit} or less"
    return f"{number(low, sign)} to {number(high, sign)}{unit}"


def percents_between(
    low: float | None, high: float | None, sign: str = "", unit: str = " %"
) -> str:
    """An interval of a share, in percent; of a difference of shares, in percentage points."""
    low, high = (None if share is None else 100.0 * share for share in (low, high))
    return between(low, high, sign, unit)


def unbroken_units(units: str) -> str:
    """Units for people, which stay on one line: "µg m⁻³"."""
    return shown_units(units).replace(" ", "\N{NO-BREAK SPACE}")


def counted(count: int, one: str) -> str:
    """A number of things: "1 fire", "1,200 fires"."""
    return f"{count:,} {one if count == 1 else one + 's'}"
