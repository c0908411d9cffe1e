"""Smoke at places as a table: to print, and as CSV, JSON or NetCDF.

The answers are statistics of many fires, with a row for each place, or single fires (dimension
`fire`), with a row for each fire and place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError
from plumecast.base.files import atomic_write
from plumecast.base.names import shown_units
from plumecast.base.paths import check_output
from plumecast.base.tables import write_table
from plumecast.surrogate.guards import EXTRAPOLATES, flag_meanings
from plumecast.workflows.export import write_netcdf

FORMATS = (".csv", ".json", ".nc")

FIRE = "fire"
"""Dimension of answers for single fires."""

ROWS = "places_table"
"""Key of the rows in a JSON file, beside the attributes."""

NOISE = 1e-6
"""Probabilities, and smoke in µg m⁻³ or µg m⁻³ h, below it are noise of single precision."""

SMOKE_UNITS = ("ug m-3", "ug m-3 h")
FIRE_ROWS = "fires_at_places"
"""Key of the rows of single fires."""

OUTSIDE = "places_outside"
"""Attribute with the names of places outside the grid, which have rows without values."""

OUTSIDE_NOTE = "outside the grid"

EVERYONE = "all people"
"""Name of the last row: the mean per person, and the share of persons above each threshold."""


def without_noise(field: xr.DataArray) -> xr.DataArray:
    """Probabilities and smoke with 0 for what is noise (`NOISE`); other units stay as they are."""
    if field.dtype.kind != "f" or field.attrs.get("units") not in (*SMOKE_UNITS, "1"):
        return field
    return field.where(~(np.abs(field) < NOISE), 0.0)


def point_columns(statistics: xr.Dataset) -> dict[str, np.ndarray]:
    """Columns of the table by name, each with its interval as `…_lower` and `…_upper`.

    The last row is for all people, if the population is known. Noise of the arithmetic (`NOISE`) is
    0, wherever the table is shown or written. Places outside the grid have rows without values and
    a column `note` that says so.
    """
    if FIRE in statistics.dims:
        return _fire_columns(statistics)
    columns: dict[str, np.ndarray] = {"name": statistics["place"].values.astype(str)}
    if "county" in statistics.coords:
        columns["county"] = statistics["county"].values.astype(str)
    if "population" in statistics.coords:
        columns["population"] = statistics["population"].values
    for name, variable, chosen in _statistics(statistics):
        for ending in ("", "_lower", "_upper"):
            columns[name + ending] = without_noise(statistics[variable + ending].sel(chosen)).values
        if f"{variable}_correlation" in statistics:
            one = statistics.sel(chosen)
            columns[f"{name}_correlation"] = one[f"{variable}_correlation"].values
            flags = one[f"{variable}_corrected"].values
            columns[f"{name}_estimator"] = np.where(flags == 1, "control variate", "Monte Carlo")
    columns = _with_outside(columns, statistics)
    if "exposure" not in statistics:
        return columns
    last = _everyone(statistics)
    return {
        name: np.append(values.astype(object), last.get(name, ""))
        for name, values in columns.items()
    }


def _fire_columns(answers: xr.Dataset) -> dict[str, np.ndarray]:
    """Columns of single fires: (fire, place) values, one fire below the other."""
    shape = answers.sizes[FIRE], answers.sizes["place"]
    by_place = {"name": answers["place"].values.astype(str)}
    if "county" in answers.coords:
        by_place["county"] = answers["county"].values.astype(str)
    if "population" in answers.coords:
        by_place["population"] = answers["population"].values
    columns = {name: np.broadcast_to(values, shape) for name, values in by_place.items()}
    if "footprint" in answers:
        words = np.array(answers["footprint"].attrs["flag_meanings"].split())
        columns["footprint"] = words[answers["footprint"].values]
    for name, variable, chosen, endings in _of_fires(answers):
        for ending in endings:
            values = without_noise(answers[variable + ending].sel(chosen))
            columns[name + ending] = values.transpose(FIRE, "place").values
    columns = _with_outside(columns, answers)
    flags = [flag_meanings(int(bits)) for bits in answers[EXTRAPOLATES].values]
    of_fire = {
        "fire": answers[FIRE].values.astype(str),
        "hours": answers["hours"].values,
        "extrapolates": np.array(flags),
    }
    shape = columns["name"].shape
    named = {
        name: np.broadcast_to(values[:, None], shape).ravel() for name, values in of_fire.items()
    }
    first, last = ({"fire": named["fire"]}, {n: v for n, v in named.items() if n != "fire"})
    return first | {name: values.ravel() for name, values in columns.items()} | last


def _of_fires(answers: xr.Dataset) -> Iterator[tuple[str, str, dict[str, int], tuple[str, ...]]]:
    """Name of the column with its unit, variable, its day, and the endings of its interval."""
    named: list[tuple[str, str, dict[str, int]]] = [
        ("arrival_h", "arrival", {}),
        ("peak_ug_m3", "peak", {}),
        ("peak_hour", "peak_hour", {}),
        ("dose_ug_m3_h", "dose", {}),
    ]
    named += [
        (f"day_{day}_ug_m3", "daily_mean", {"day": int(day)}) for day in answers["day"].values
    ]
    for name, variable, chosen in named:
        endings = tuple(e for e in ("", "_lower", "_upper") if variable + e in answers)
        if endings:
            yield name, variable, chosen, endings


def _with_outside(columns: dict[str, np.ndarray], answers: xr.Dataset) -> dict[str, np.ndarray]:
    """Columns (…, place) with the places outside the grid after the others, and a note of them."""
    outside = np.atleast_1d(answers.attrs.get(OUTSIDE, ())).tolist()  # a file has one as text
    if not outside:
        return columns
    lead = columns["name"].shape[:-1]
    columns = {**columns, "note": np.full(columns["name"].shape, "")}

    def added(name: str) -> np.ndarray:
        texts = {"name": outside, "note": [OUTSIDE_NOTE] * len(outside)}
        more = np.array(texts.get(name, [""] * len(outside)), dtype=object)
        return np.broadcast_to(more, (*lead, len(outside)))

    return {
        name: np.concatenate([values.astype(object), added(name)], axis=-1)
        for name, values in columns.items()
    }


def _statistics(statistics: xr.Dataset) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Name of the column, variable, and its threshold or quantile."""
    yield "mean", "mean_smoke", {}
    for dim, name, variable in (
        ("threshold", "above", "exceedance"),
        ("quantile", "quantile", "smoke_quantile"),
    ):
        for value in statistics[dim].values if variable in statistics else ():
            yield f"{name}_{value:.10g}", variable, {dim: value}


def _everyone(statistics: xr.Dataset) -> dict[str, Any]:
    total = float(np.nansum(statistics["population"].values))
    row: dict[str, Any] = {"name": EVERYONE, "population": total}
    for ending in ("", "_lower", "_upper"):
        row[f"mean{ending}"] = float(statistics[f"exposure{ending}"])
        for value in statistics["threshold"].values if "exceedance" in statistics else ():
            persons = statistics[f"persons_above{ending}"].sel(threshold=value)
            row[f"above_{value:.10g}{ending}"] = float(persons) / total
    return row


def printed_rows(statistics: xr.Dataset) -> tuple[list[str], list[list[str]]]:
    """Titles and rows to print: a value and its interval in one cell."""
    if FIRE in statistics.dims:
        return _printed_fires(statistics)
    columns = point_columns(statistics)
    of_smoke = str(statistics["mean_smoke"].attrs.get("units", "")) in SMOKE_UNITS
    shown = [name for name, _, _ in _statistics(statistics)]
    titles = ["place", *(name.replace("above_", "P > ").replace("_", " ") for name in shown)]
    rows = [[str(place)] for place in columns["name"]]
    for name in shown:
        parts = zip(*(columns[name + ending] for ending in ("", "_lower", "_upper")), strict=True)
        for row, values in zip(rows, parts, strict=True):
            row.append(_cell(*values, tiny=of_smoke or name.startswith("above_")))
    return _noted(columns, titles, rows)


def _printed_fires(answers: xr.Dataset) -> tuple[list[str], list[list[str]]]:
    columns = point_columns(answers)
    titles = ["fire", "place"]
    rows = [[str(fire), str(at)] for fire, at in zip(columns["fire"], columns["name"], strict=True)]
    if "footprint" in columns:
        titles.append("smoke")
        for row, word in zip(rows, columns["footprint"], strict=True):
            row.append(str(word) or "–")
    for name, variable, chosen, endings in _of_fires(answers):
        day = "".join(f"day {value} mean" for value in chosen.values())
        unit = shown_units(answers[variable].attrs["units"])
        titles.append(f"{day or variable.replace('_', ' ')} ({unit})")
        for row, values in zip(
            rows, zip(*(columns[name + end] for end in endings), strict=True), strict=True
        ):
            row.append(_cell(*values, tiny=answers[variable].attrs["units"] in SMOKE_UNITS))
    return _noted(columns, titles, rows)


def _noted(
    columns: dict[str, np.ndarray], titles: list[str], rows: list[list[str]]
) -> tuple[list[str], list[list[str]]]:
    """Titles and rows with the notes, if there are any."""
    if "note" not in columns:
        return titles, rows
    noted = [[*row, str(note)] for row, note in zip(rows, columns["note"], strict=True)]
    return [*titles, "note"], noted


LEAST = 1e-3
"""Probabilities and smoke below it are printed as "< 0.001"; files have all digits."""


def _cell(*interval: Any, tiny: bool) -> str:
    """A value and its interval; "–" is none, and "?" an end that is not known."""
    if interval[0] == "":
        return "–"
    words = [
        f"< {LEAST:g}" if tiny and 0.0 < value < LEAST else f"{value:.3g}"
        for value in map(float, interval)
    ]
    known = np.isfinite(np.array(interval, dtype=float))
    middle = words[0] if known[0] else "–"
    if not known[1:].any():
        return middle
    return f"{middle} ({words[1]} … {words[2] if known[2] else '?'})"


def never_smoky(statistics: xr.Dataset) -> list[str]:
    """Names of the places without smoke in any fire, so that the mean has no upper end."""
    without = np.isnan(statistics["mean_smoke_upper"].values)
    return [str(name) for name in statistics["place"].values[without]]


def check_points_out(
    points: str | Path | None, points_out: Path | None, inputs: Iterable[str | Path | None]
) -> None:
    """Raise if the table of places cannot be written, before anything is computed."""
    if points_out is None:
        return
    if points is None:
        raise ArgumentError("points_out", points_out, problem="needs --points, a table of places")
    check_output(points_out, endings=FORMATS, overwrite=False, inputs=inputs)


def write_points(statistics: xr.Dataset, path: str | Path) -> Path:
    """Write the table (`.csv`, `.json`) or the Dataset (`.nc`); never overwrites.

    The CSV has the columns of the table, the quantity and its unit; what is not finite is empty.
    """
    where = Path(path)
    if where.suffix not in (".nc", ".json"):
        columns = point_columns(statistics)
        same = {}
        if "mean_smoke" in statistics:  # columns of single fires name their units
            units = statistics["mean_smoke"].attrs["units"]
            same = {"quantity": statistics.attrs["quantity"], "units": units}
        rows = [
            [*(c if isinstance(c, str) or np.isfinite(c) else None for c in cells), *same.values()]
            for cells in zip(*columns.values(), strict=True)
        ]
        titles = [*columns, *same]
        return write_table(where, titles, rows, floats=".6g", overwrite=False)
    with atomic_write(where, overwrite=False) as partial:
        if where.suffix == ".nc":
            write_netcdf(statistics, partial, where)
        else:
            attrs = {name: _plain(value) for name, value in statistics.attrs.items()}
            key = FIRE_ROWS if FIRE in statistics.dims else ROWS
            text = json.dumps(attrs | {key: point_rows(statistics)}, indent=1) + "\n"
            partial.write_text(text, encoding="utf-8")
    return where


def point_rows(statistics: xr.Dataset) -> list[dict[str, Any]]:
    """The rows of the JSON table: the columns, and the position of each place on the grid.

    What is not known or not finite is None.
    """
    columns = point_columns(statistics)
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    for name in ("cell_x", "cell_y", "place_x", "place_y"):
        if name in statistics.coords:  # all people, and places outside the grid, have none
            values = dict(zip(statistics["place"].values, statistics[name].values, strict=True))
            for row in rows:
                if row["name"] in values:
                    row[name] = values[row["name"]]
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value or None
    if isinstance(value, list):
        return value
    if isinstance(value, int):
        return value
    number = float(value)
    return number if np.isfinite(number) else None
