"""Tables of a design: the runs as CSV, and weights or costs of ignitions from CSV."""

from __future__ import annotations

from dataclasses import astuple, fields
from pathlib import Path

from plumecast.base.tables import NUMBER, Column, TableFormat, read_table, write_table
from plumecast.workflows.design.result import Design, Run

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
    names = [item.name for item in fields(Run)]
    write_table(path, names, [astuple(run) for run in design.runs], formats=_DIGITS)


def read_values(path: str | Path, what: str) -> dict[str, float]:
    """Numbers of ignitions from a CSV table with the columns ignition_id and `what`."""
    table = read_table(
        path,
        TableFormat(
            columns=(Column("ignition_id", "ignition"), Column(what, "value", NUMBER)),
            row="ignition",
            row_name="ignition_id",
            unique=("ignition_id",),
        ),
    )
    return dict(zip(table.texts["ignition_id"], table.numbers[what].tolist(), strict=True))
