"""The lost energy of plants as a labelled result, with intervals by their causes; its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.files import atomic_write, refuse_existing
from plumecast.base.tables import write_table
from plumecast.base.version import __version__
from plumecast.impact.comparison import county_column
from plumecast.impact.loss import Losses, LossSettings, SmokeAt
from plumecast.impact.optics import SKIES, Optics
from plumecast.impact.plants import Panels
from plumecast.scores.sampling import cluster_mean
from plumecast.workflows.export import write_netcdf

PARTS = ("optics", "surrogate", "sampling", "total")
"""Causes of uncertainty: the range of optical properties, the error of predicted smoke, and that
the fires are a sample. Their half-widths are added as independent ones (root of squares)."""

ALL = "all plants"

FORMATS = (".csv", ".nc")
"""Endings of the files that `write_loss` writes."""

_FOR = "mean over fires, in the hours from ignition to the last snapshot"


def labelled(
    sums: Losses, smoke: SmokeAt, settings: LossSettings, largest_aod: np.ndarray, coverage: float
) -> xr.Dataset:
    """The result of `solar_loss` from the sums of every fire."""
    clear, lost = (_with_all(item) for item in (sums.clear, sums.lost))
    lower, upper = _bands(sums, smoke, coverage)
    mean_clear, mean_lost = clear.mean(axis=0), lost.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        percent, low, high = (
            np.where(mean_clear > 0.0, 100.0 * item / mean_clear, 0.0)
            for item in (mean_lost, lower, upper)
        )
    cells, utc = ("fire", "plant"), settings.ignition.is_utc
    time = settings.ignition.time.isoformat()
    made = xr.Dataset(
        {
            "clear_energy": ("row", mean_clear, _attrs("energy under a clear sky, " + _FOR)),
            "lost_energy": ("row", mean_lost, _attrs("energy lost to smoke, " + _FOR)),
            "lost_energy_lower": (("part", "row"), lower, _attrs("lower end of the interval")),
            "lost_energy_upper": (("part", "row"), upper, _attrs("upper end of the interval")),
            "lost_percent": ("row", percent, _attrs("share of the energy that is lost", "%")),
            "lost_percent_lower": (("part", "row"), low, _attrs("lower end of the interval", "%")),
            "lost_percent_upper": (("part", "row"), high, _attrs("upper end of the interval", "%")),
            "fire_clear_energy": (cells, sums.clear, _attrs("energy under a clear sky")),
            "fire_lost_energy": (cells, sums.lost, _attrs("energy lost to smoke")),
            "fire_largest_optical_depth": (
                cells, largest_aod, _attrs("largest optical depth of smoke at 550 nm", "1")
            ),
        },
        coords={
            "row": [*settings.plants.names, ALL],
            "plant": list(settings.plants.names),
            "megawatts": ("plant", settings.plants.megawatts, {"units": "MW"}),
            "part": list(PARTS),
            "fire": smoke.names.astype(str),
            "ignition_id": ("fire", smoke.ignitions.astype(str)),
            "hours": ("fire", smoke.last, {"units": "h"}),
        },
        attrs={
            "title": "Solar energy lost to smoke",
            "history": f"plumecast {__version__} impact",
            "ignition_time": f"{time}Z" if utc else f"{time} local solar time",
            "coverage": coverage,
            **{f"optics_{name}": getattr(settings.optics, name) for name in Optics.__slots__},
            **{f"panels_{name}": getattr(settings.panels, name) for name in Panels.__slots__},
            "fires": int(smoke.names.size),
            "ignitions": int(np.unique(smoke.ignitions).size),
            "hours_after_ignition": float(smoke.last.max()),
        },
    )  # fmt: skip
    models = sums.models / smoke.names.size
    text = (
        "energy that all plants lose according to a model of the sky, in the intervals within its "
    )
    return made.assign_coords(model=list(SKIES)).assign(
        model_lost_energy=("model", models[:, 0], _attrs(f"{text}range")),
        reference_lost_energy=(
            "model",
            models[:, 1],
            _attrs("the same intervals according to spectrl2"),
        ),
    )


def _attrs(long_name: str, units: str = "MW h") -> dict[str, str]:
    return {"long_name": long_name, "units": units}


def _with_all(energy: np.ndarray) -> np.ndarray:
    """(F, P) → (F, P + 1) with the sum over plants."""
    return np.concatenate([energy, energy.sum(axis=-1, keepdims=True)], axis=-1)


def _bands(sums: Losses, smoke: SmokeAt, coverage: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends (part, P + 1) of the intervals of the mean over fires; NaN for an unknown part."""
    lost, count = _with_all(sums.lost), smoke.names.size
    mean, most = lost.mean(axis=0), _with_all(sums.clear).mean(axis=0)
    ends = [np.full((2, mean.size), np.nan) for _ in PARTS[:-1]]
    tails = [0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)]
    ends[0] = np.quantile(_with_all(sums.by_optics) / count, tails, axis=0)
    if sums.lower is not None and sums.upper is not None:
        # The errors of all fires and plants are taken to have the same sign: an upper bound.
        ends[1] = np.stack([_with_all(item).mean(axis=0) for item in (sums.lower, sums.upper)])
    estimate = cluster_mean(lost, smoke.ignitions)
    if estimate.freedom > 0:
        ends[2] = np.stack(estimate.interval(coverage))
    parts = np.stack(ends)
    parts[:, 0] = np.maximum(np.minimum(parts[:, 0], mean), 0.0)
    parts[:, 1] = np.minimum(np.maximum(parts[:, 1], mean), np.maximum(most, mean))
    half = np.sqrt(np.nansum((parts - mean) ** 2, axis=0))
    total = np.stack([np.maximum(mean - half[0], 0.0), np.minimum(mean + half[1], most)])
    whole = np.concatenate([parts, total[np.newaxis]])
    return whole[:, 0], whole[:, 1]


def loss_rows(loss: xr.Dataset) -> list[dict[str, Any]]:
    """A row for each plant and one for all of them; None for a part that is not known."""
    rows = []
    for name in loss["row"].values.tolist():
        one = loss.sel(row=name)
        plants = loss.sel(plant=slice(None) if name == ALL else [name])
        row: dict[str, Any] = {
            "plant": name,
            **county_column(one),
            "megawatts": float(plants["megawatts"].sum()),
            "largest_optical_depth": float(plants["fire_largest_optical_depth"].max()),
        }
        for variable in ("clear_energy", "lost_energy", "lost_percent"):
            row[variable.replace("energy", "mwh")] = float(one[variable])
        for part in PARTS:
            for end in ("lower", "upper"):
                for variable in ("lost_energy", "lost_percent"):
                    value = float(one[f"{variable}_{end}"].sel(part=part))
                    key = f"{variable.replace('energy', 'mwh')}_{end}_{part}"
                    row[key] = None if np.isnan(value) else value
        rows.append(row)
    return rows


def write_loss(loss: xr.Dataset, path: str | Path) -> Path:
    """Write the table of plants (.csv), or everything, also by fire (.nc); never overwrites."""
    where = refuse_existing(Path(path))
    if where.suffix == ".nc":
        with atomic_write(where, overwrite=False) as partial:
            write_netcdf(loss, partial, where)
        return where
    rows = loss_rows(loss)
    return write_table(
        where, list(rows[0]), [[*row.values()] for row in rows], floats=".6g", overwrite=False
    )
