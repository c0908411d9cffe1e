"""`plumecast predict`: smoke for every snapshot of a store, or for arrival-time rasters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from plumecast.base.errors import PlumecastError
from plumecast.cli import options as data_options
from plumecast.cli import raster_options as options
from plumecast.cli.outcomes import exit_code, show_problems
from plumecast.cli.show import counted, note, say, wrote
from plumecast.surrogate.surrogate import Surrogate, load_surrogate
from plumecast.workflows.export import export_fields
from plumecast.workflows.predict import predict_rasters, predict_store


def command(
    parsed: typer.Context,
    model: Path = typer.Argument(help="A saved surrogate.", show_default=False),
    fires: list[str] = typer.Argument(
        help="A snapshot store; or, with --format or --unit, rasters.", show_default=False
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Where to write: .nc, .zarr or .tif."),
    footprint: bool = typer.Option(
        False, help="Also write where smoke is present, by the decision threshold from validation."
    ),
    format: str = options.FORMAT,
    unit: str = options.UNIT,
    crs: str = options.CRS,
    hours: str = options.HOURS,
    drought: str = options.DROUGHT,
    nodata: float = options.NODATA,
    variable: str = options.VARIABLE,
    horizon: float = options.HORIZON,
    aggregate: str = options.AGGREGATE,
    batch: int = options.BATCH,
    device: str = data_options.DEVICE,
    precision: str = typer.Option("float64", help="Arithmetic: float64, or float32 for speed."),
    memory: str = data_options.MEMORY,
    scheduler: str = data_options.SCHEDULER,
) -> None:
    """Predict the smoke of every snapshot in a store, or of arrival-time rasters.

    Rasters are put on the surrogate's own grid. A .tif is written for each snapshot, north up,
    named after the fire and its hours. A raster that cannot be used is named and does not stop the
    others; the exit code is then 1.

    Example: `plumecast predict smoke.plume fires.zarr -o smoke.nc` or
    `plumecast predict smoke.plume runs/*.asc --format farsite --hours 6,12 -o smoke.tif`
    """
    surrogate = load_surrogate(model).on_device(device, precision)
    threshold = _threshold(surrogate, model) if footprint else None
    problems: list[str] = []
    with (
        counted("predicting") as step,
        data_options.running(scheduler, device=device) as runner,
    ):
        common: dict[str, Any] = {"threshold": threshold, "progress": step}
        if format is None and unit is None:
            place: dict[str, Any] = {"memory": memory, "runner": runner}
            blocks = predict_store(surrogate, _store(fires), **place, **common)
        else:
            given = options.chosen(parsed.params)
            given["runner"] = runner
            given["on_error"] = lambda path, message: problems.append(message)
            blocks = predict_rasters(surrogate, fires, **given, **common)
        written = export_fields(blocks, out, title=f"Smoke predicted by {model.name}")
    if written.snapshots:
        say(f"predicted {written.snapshots} snapshots")
        wrote(written.where, "the smoke")
    if out.suffix == ".tif" and written.snapshots and not written.has_crs:
        note("the surrogate's grid has no coordinate system, so the files carry none")
    show_problems(problems)
    exit_code(failed=len(problems), done=written.snapshots)


def _store(fires: list[str]) -> str:
    if len(fires) > 1 or Path(fires[0]).suffix.lower() in (".asc", ".tif", ".tiff", ".img"):
        raise PlumecastError(
            f"{fires[0]}: one store, or rasters with their unit: give --format or --unit"
        )
    return fires[0]


def _threshold(surrogate: Surrogate, model: Path) -> float:
    alpha = surrogate.training.get("thresholds", {}).get("decision")
    if alpha is None:
        raise PlumecastError(
            f"{model} has no decision threshold, which `plumecast train` takes from the validation "
            "part; train without --all"
        )
    return float(alpha)
