"""The statistics at places as a table: to print, and as CSV, JSON or NetCDF."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.files import atomic_write
from plumecast.base.tables import write_table
from plumecast.workflows.export import write_netcdf

FORMATS = (".csv", ".json", ".nc")

ROWS = "places_table"
"""Key of the rows in a JSON file, beside the attributes."""

EVERYONE = "all people"
"""Name of the last row: the mean per person, and the share of persons above each threshold."""


def point_columns(statistics: xr.Dataset) -> dict[str, np.ndarray]:
    """Columns of the table by name, each with its interval as `…_lower` and `…_upper`.

    The last row is for all people, if the population is known.
    """
    columns: dict[str, np.ndarray] = {"name": statistics["place"].values.astype(str)}
    if "population" in statistics.coords:
        columns["population"] = statistics["population"].values
    for name, variable, chosen in _statistics(statistics):
        for ending in ("", "_lower", "_upper"):
            columns[name + ending] = statistics[variable + ending].sel(chosen).values
        if f"{variable}_correlation" in statistics:
            one = statistics.sel(chosen)
            columns[f"{name}_correlation"] = one[f"{variable}_correlation"].values
            flags = one[f"{variable}_corrected"].values
            columns[f"{name}_estimator"] = np.where(flags == 1, "control variate", "Monte Carlo")
    if "exposure" not in statistics:
        return columns
    last = _everyone(statistics)
    return {
        name: np.append(values.astype(object), last.get(name, ""))
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
    columns = point_columns(statistics)
    shown = [name for name, _, _ in _statistics(statistics)]
    titles = ["place", *(name.replace("above_", "P > ").replace("_", " ") for name in shown)]
    rows = [[str(place)] for place in columns["name"]]
    for name in shown:
        parts = zip(*(columns[name + ending] for ending in ("", "_lower", "_upper")), strict=True)
        for row, values in zip(rows, parts, strict=True):
            row.append(_cell(*values, share=name.startswith("above_")))
    return titles, rows


LEAST_SHARE = 1e-3
"""Probabilities below it are printed as "< 0.001"; files have all digits."""


def _cell(*interval: Any, share: bool) -> str:
    if interval[0] == "":
        return "–"
    middle, low, high = (
        f"< {LEAST_SHARE:g}" if share and 0.0 < value < LEAST_SHARE else f"{value:.3g}"
        for value in map(float, interval)
    )
    return f"{middle} ({low} … {high if np.isfinite(float(interval[2])) else '?'})"


def never_smoky(statistics: xr.Dataset) -> list[str]:
    """Names of the places without smoke in any fire, so that the mean has no upper end."""
    without = np.isnan(statistics["mean_smoke_upper"].values)
    return [str(name) for name in statistics["place"].values[without]]


def write_points(statistics: xr.Dataset, path: str | Path) -> Path:
    """Write the table (`.csv`, `.json`) or the Dataset (`.nc`); never overwrites.

    The CSV has the columns of the table, the quantity and its unit; what is not finite is empty.
    """
    where = Path(path)
    if where.suffix not in (".nc", ".json"):
        columns = point_columns(statistics)
        quantity = (statistics.attrs["quantity"], statistics["mean_smoke"].attrs["units"])
        rows = [
            [*(c if isinstance(c, str) or np.isfinite(c) else None for c in cells), *quantity]
            for cells in zip(*columns.values(), strict=True)
        ]
        titles = [*columns, "quantity", "units"]
        return write_table(where, titles, rows, floats=".6g", overwrite=False)
    with atomic_write(where, overwrite=False) as partial:
        if where.suffix == ".nc":
            write_netcdf(statistics, partial, where)
        else:
            attrs = {name: _plain(value) for name, value in statistics.attrs.items()}
            text = json.dumps(attrs | {ROWS: point_rows(statistics)}, indent=1) + "\n"
            partial.write_text(text, encoding="utf-8")
    return where


def point_rows(statistics: xr.Dataset) -> list[dict[str, Any]]:
    """The rows of the JSON table: the columns, and the position of each place on the grid.

    What is not known or not finite is None.
    """
    columns = point_columns(statistics)
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    for name in ("cell_x", "cell_y"):
        if name in statistics.coords:  # a last row of all people has no position
            for row, value in zip(rows, statistics[name].values, strict=False):
                row[name] = value
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value or None
    if isinstance(value, int):
        return value
    number = float(value)
    return number if np.isfinite(number) else None
