"""Tidy tables: one row per observation, saved as CSV and NetCDF.

A finding is one data set. Its variables on `row` are the table; its other variables (curves, maps)
are needed by the figures. Measured times are marked and stay out of `table.csv`, so that two runs
with the same seed write the same file, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.tables import write_table

ROW = "row"
CLOCK = "clock"
"""Attribute of a column that holds measured times, which differ between runs."""


def tidy(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, tuple[str, str]],
    clocks: Sequence[str] = (),
) -> xr.Dataset:
    """Rows as a data set; `columns` maps each column, in order, to its long name and unit.

    A value that a row lacks is NaN, or empty text where other rows have text in that column.
    """
    data = {}
    for name, (long_name, units) in columns.items():
        values = [row.get(name) for row in rows]
        attrs: dict[str, Any] = {"long_name": long_name, "units": units}
        if name in clocks:
            attrs[CLOCK] = 1
        data[name] = (ROW, _column(values), attrs)
    return xr.Dataset(data)


def _column(values: list[Any]) -> np.ndarray:
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values], dtype=str)
    if values and all(isinstance(value, int | np.integer) for value in values):
        return np.array(values, dtype=np.int64)
    return np.array([np.nan if value is None else float(value) for value in values])


def columns_of(finding: xr.Dataset, *, clocks: bool) -> list[str]:
    """Names of the columns with measured times (`clocks`), or of all other columns."""
    return [
        str(name)
        for name, item in finding.data_vars.items()
        if item.dims == (ROW,) and (CLOCK in item.attrs) == clocks
    ]


def rows_of(finding: xr.Dataset) -> list[dict[str, Any]]:
    """The table as a list of rows with plain Python values."""
    names = [str(name) for name, item in finding.data_vars.items() if item.dims == (ROW,)]
    values = {name: finding[name].values.tolist() for name in names}
    count = finding.sizes.get(ROW, 0)
    return [{name: values[name][index] for name in names} for index in range(count)]


def select(finding: xr.Dataset, **wanted: Any) -> xr.Dataset:
    """The rows in which every named column equals the given value."""
    keep = np.ones(finding.sizes[ROW], dtype=bool)
    for name, value in wanted.items():
        keep &= finding[name].values == value
    return finding.isel({ROW: np.flatnonzero(keep)})


def write_csv(finding: xr.Dataset, path: Path, names: Sequence[str]) -> None:
    """Write columns as CSV; numbers in the shortest form that reads back without loss."""
    columns = [finding[name].values.tolist() for name in names]
    write_table(path, names, zip(*columns, strict=True), missing="nan")
