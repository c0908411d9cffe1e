"""Write the differences of scenarios: maps as NetCDF, Zarr or GeoTIFFs, tables as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.files import atomic_write
from plumecast.impact.compare import Comparison
from plumecast.impact.comparison import SCENARIO
from plumecast.workflows.export import export_statistics


def export_maps(maps: xr.Dataset, path: str | Path) -> list[Path]:
    """Write the maps in the format that the ending of `path` names; never overwrites.

    `.tif` writes a file for each scenario and field, such as `diff_treated_lower.tif` for
    `diff.tif`. Returns the path, or the patterns of the names.
    """
    where = Path(path)
    if where.suffix != ".tif":
        return [export_statistics(maps, where)]
    parts = ((str(name), maps.sel({SCENARIO: name}, drop=True)) for name in maps[SCENARIO].values)
    return [export_statistics(part, _named(where, name)) for name, part in parts]


def _named(path: Path, scenario: str) -> Path:
    label = re.sub(r"[^\w.-]+", "-", scenario)
    return path.with_name(f"{path.stem}_{label}{path.suffix}")


def table_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """A row for every scenario and place; an exceedance has its threshold in its name."""
    table = comparison.places
    for scenario in table[SCENARIO].values:
        one = table.sel({SCENARIO: scenario})
        for place in table["place"].values:
            row: dict[str, Any] = {
                "place": str(place),
                "reference": comparison.reference,
                "scenario": str(scenario),
                "quantity": table.attrs["quantity"],
                "units": table.attrs["units"],
            }
            row |= {name: one[name].item() for name in ("paired", "ignitions")}
            for name, item in one.sel(place=place).data_vars.items():
                if "threshold" in item.dims:
                    levels = zip(item["threshold"].values, item.values, strict=True)
                    row |= {f"{name}_{level:g}": float(value) for level, value in levels}
                else:
                    row[str(name)] = item.item()
            yield row


def write_table(comparison: Comparison, path: str | Path) -> Path:
    """Write the table of the places as CSV; unknown numbers are left out. Never overwrites."""
    rows = list(table_rows(comparison))
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return _write(Path(path), text.getvalue())


def write_json(comparison: Comparison, path: str | Path) -> Path:
    """Write the table of the places and the notes as JSON; unknown numbers are null."""
    attrs = comparison.places.attrs
    stated = ("reference", "quantity", "units", "coverage", "fires_from", "history")
    content = {
        "comparison": {
            name: value
            for name, value in attrs.items()
            if name in stated or name.startswith("model_")
        },
        "notes": list(comparison.notes),
        "places": [
            {key: _json(value) for key, value in row.items()} for row in table_rows(comparison)
        ],
    }
    return _write(Path(path), json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> Path:
    with atomic_write(path, overwrite=False) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value


def _json(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
