"""The table of lost energy: rows for people and programs, and its files."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.files import atomic_write, refuse_existing, write_text
from plumecast.data.writers import netcdf_encoding, netcdf_errors
from plumecast.impact.loss_result import ALL, PARTS

FORMATS = (".csv", ".nc")


def loss_rows(loss: xr.Dataset) -> list[dict[str, Any]]:
    """A row for each plant and one for all of them; None for a part that is not known."""
    rows = []
    for name in loss["row"].values.tolist():
        one = loss.sel(row=name)
        plants = slice(None) if name == ALL else [name]
        row: dict[str, Any] = {
            "plant": name,
            "megawatts": float(loss["megawatts"].sel(plant=plants).sum()),
            "largest_optical_depth": float(
                loss["fire_largest_optical_depth"].sel(plant=plants).max()
            ),
        }
        for variable in ("clear_energy", "lost_energy", "lost_percent"):
            row[_column(variable)] = float(one[variable])
        for part in PARTS:
            for end in ("lower", "upper"):
                for variable in ("lost_energy", "lost_percent"):
                    value = float(one[f"{variable}_{end}"].sel(part=part))
                    key = f"{_column(variable)}_{end}_{part}"
                    row[key] = None if value != value else value
        rows.append(row)
    return rows


def _column(variable: str) -> str:
    return variable.replace("energy", "mwh")


def write_loss(loss: xr.Dataset, path: str | Path) -> Path:
    """Write the table of plants (.csv), or everything, also by fire (.nc); never overwrites."""
    where = refuse_existing(Path(path))
    if where.suffix == ".nc":
        with atomic_write(where, overwrite=False) as partial, netcdf_errors(where):
            loss.to_netcdf(partial, engine="netcdf4", encoding=netcdf_encoding(loss))
        return where
    rows = loss_rows(loss)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {key: f"{item:.6g}" if isinstance(item, float) else item for key, item in row.items()}
        )
    write_text(where, text.getvalue())
    return where
