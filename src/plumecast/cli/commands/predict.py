"""`plumecast predict`: smoke for every snapshot of a store, or for arrival-time rasters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.outputs import check_output
from plumecast.cli.fire_options import is_raster, raster_options, read_raster_options
from plumecast.cli.options import MODEL, PRECISION, Given, place_options, running, with_options
from plumecast.cli.outcomes import exit_code, show_problems
from plumecast.cli.show import counted, note, say, wrote
from plumecast.surrogate.surrogate import Surrogate, load_surrogate
from plumecast.workflows.export import FORMATS, export_fields
from plumecast.workflows.predict import predict_rasters, predict_store


@with_options(rasters=raster_options, place=place_options)
def command(
    model: Path = MODEL,
    fires: list[str] = typer.Argument(
        help="A snapshot store; or, with --format or --unit, rasters.", show_default=False
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Where to write: .nc, .zarr or .tif."),
    footprint: bool = typer.Option(
        False,
        help="Also write where smoke is present: above the decision threshold chosen in training.",
    ),
    *,
    rasters: Given,
    place: Given,
    precision: str = PRECISION,
) -> None:
    """Predict the smoke of every snapshot in a store, or of arrival-time rasters.

    Rasters are put on the surrogate's own grid. With .tif, one file is written for each snapshot,
    north up, named after the fire and its hours. A raster that cannot be used is reported and does
    not stop the others; the exit code is then 1.

    Example: `plumecast predict smoke.plume fires.zarr -o smoke.nc` or
    `plumecast predict smoke.plume runs/*.asc --format farsite --hours 6,12 -o smoke.tif`
    """
    check_output(out, endings=FORMATS, overwrite=False, inputs=[model, *fires])
    surrogate = load_surrogate(model).on_device(place["device"], precision)
    threshold = _threshold(surrogate, model) if footprint else None
    problems: list[str] = []
    with (
        counted("predicting") as step,
        running(place["scheduler"], device=place["device"]) as runner,
    ):
        common: dict[str, Any] = {"threshold": threshold, "progress": step, "runner": runner}
        if is_raster(rasters):
            common["on_error"] = lambda path, message: problems.append(message)
            given = read_raster_options(rasters)
            blocks = predict_rasters(surrogate, fires, **given, **common)
        else:
            blocks = predict_store(surrogate, _store(fires), memory=place["memory"], **common)
        written = export_fields(blocks, out, title=f"Smoke predicted by {model.name}")
    if written.snapshots:
        say(f"predicted {written.snapshots} snapshots")
        wrote(written.where, "the smoke")
    if out.suffix == ".tif" and written.snapshots and not written.has_crs:
        note("the surrogate's grid has no coordinate system, so the files have none")
    show_problems(problems)
    exit_code(failed=len(problems), done=written.snapshots)


def _store(fires: list[str]) -> str:
    if len(fires) > 1 or Path(fires[0]).suffix.lower() in (".asc", ".tif", ".tiff", ".img"):
        raise PlumecastError(
            f"{fires[0]}: expected one snapshot store; for rasters, add --format or --unit"
        )
    return fires[0]


def _threshold(surrogate: Surrogate, model: Path) -> float:
    alpha = surrogate.training.get("thresholds", {}).get("decision")
    if alpha is None:
        raise PlumecastError(
            f"{model} has no decision threshold, which `plumecast train` chooses on the validation "
            "part; train without --all"
        )
    return float(alpha)
