"""Tables of a design: the runs as CSV, and weights or costs of ignitions from CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_text
from plumecast.workflows.design.design import Design, Run

IGNITION = "ignition_id"

_DIGITS = {
    "x": ".0f",
    "y": ".0f",
    "wind_speed": ".2f",
    "wind_from_direction": ".0f",
    "expected_error": ".4f",
    "cost": "g",
}


def write_runs(design: Design, path: str | Path) -> None:
    """Write the runs in order, one row each; what is unknown is empty."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    names = [item.name for item in fields(Run)]
    rows.writerow(names)
    for run in design.runs:
        rows.writerow([_cell(name, getattr(run, name)) for name in names])
    write_text(path, text.getvalue())


def _cell(name: str, value: object) -> str:
    return "" if value is None else format(value, _DIGITS.get(name, ""))


def read_values(path: str | Path, what: str) -> dict[str, float]:
    """Numbers of ignitions from a CSV table with the columns ignition_id and `what`."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise PlumecastError(
            f"{path}: no such file; give a table (CSV) with {IGNITION} and {what}"
        ) from None
    except UnicodeDecodeError as error:
        raise PlumecastError(f"{path}: not a text file in UTF-8; save it as CSV") from error
    lines = [row for row in csv.reader(text.splitlines()) if any(cell.strip() for cell in row)]
    header = [cell.strip().lower() for cell in lines[0]] if lines else []
    column = _column(path, header, what)
    found: dict[str, float] = {}
    for number, cells in enumerate(lines[1:], start=2):
        if len(cells) != len(header):
            raise PlumecastError(
                f"{path}: row {number} has {len(cells)} values, the header {len(header)} columns"
            )
        name = cells[header.index(IGNITION)].strip()
        if name in found:
            raise PlumecastError(f"{path}: ignition '{name}' occurs twice, again in row {number}")
        found[name] = _number(path, number, name, cells[column])
    return found


def _column(path: str | Path, header: Sequence[str], what: str) -> int:
    """Number of the column with the values: the one named so, or the only other one."""
    others = [name for name in header if name != IGNITION]
    if IGNITION not in header or not others or (what not in others and len(others) > 1):
        raise PlumecastError(
            f"{path}: needs the columns {IGNITION} and {what}; found "
            f"{', '.join(header) or 'nothing'}"
        )
    return header.index(what if what in others else others[0])


def _number(path: str | Path, number: int, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PlumecastError(
            f"{path}: row {number} ({name}): '{text.strip()}' is not a number"
        ) from None
