"""`plumecast predict`: smoke for every snapshot of a store, or for arrival-time rasters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.outputs import check_output
from plumecast.cli.fire_options import (
    in_options,
    is_raster,
    note_unused_winds,
    raster_options,
    read_raster_options,
    read_wind_options,
    wind_options,
)
from plumecast.cli.history import history
from plumecast.cli.options import MODEL, PRECISION, Given, place_options, running, with_options
from plumecast.cli.outcomes import exit_code, show_problems
from plumecast.cli.show import counted, note, say, warn, wrote
from plumecast.surrogate.guards import Notice
from plumecast.surrogate.surrogate import Surrogate, load_surrogate
from plumecast.workflows.export import FORMATS, export_fields
from plumecast.workflows.predict import predict_rasters, predict_store


@with_options(rasters=raster_options, wind=wind_options, place=place_options)
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
    wind: Given,
    place: Given,
    precision: str = PRECISION,
) -> None:
    """Predict the smoke of every snapshot in a store, or of arrival-time rasters.

    Rasters are put on the surrogate's own grid. They contain no wind: a surrogate that uses it
    needs --wind-speed and --wind-from, or --winds. With .tif, one file is written for each
    snapshot, north up, named after the fire and its hours. A raster that cannot be used is reported
    and does not stop the others; the exit code is then 1.

    A prediction that is empty, or a fire beyond what the training fires cover (hours, burned area,
    wind, place), gives a warning and a flag: the coordinate `extrapolates`, or a tag of a GeoTIFF.

    Example: `plumecast predict smoke.plume fires.zarr -o smoke.nc` or
    `plumecast predict smoke.plume runs/*.asc --format farsite --hours 6,12 -o smoke.tif`
    """
    check_output(out, endings=FORMATS, overwrite=False, inputs=[model, *fires])
    winds = read_wind_options(wind)
    surrogate = load_surrogate(model).on_device(place["device"], precision)
    threshold = _threshold(surrogate, model) if footprint else None
    note_unused_winds(winds, surrogate)
    problems: list[str] = []
    notices: list[Notice] = []
    with (
        counted("predicting") as step,
        running(place["scheduler"], device=place["device"]) as runner,
    ):
        common: dict[str, Any] = {
            "threshold": threshold,
            "progress": step,
            "runner": runner,
            "notify": notices.append,
            "winds": winds,
        }
        if is_raster(rasters):
            common["on_error"] = lambda path, message: problems.append(in_options(message))
            common["on_note"] = lambda message: note(in_options(message))
            given = read_raster_options(rasters)
            blocks = predict_rasters(surrogate, fires, **given, **common)
        else:
            common |= {"memory": place["memory"], "drought": rasters["drought"]}
            blocks = predict_store(surrogate, _store(fires), **common)
        written = export_fields(
            blocks,
            out,
            title=f"Smoke predicted by {model.name}",
            history=history(model),
        )
    if written.snapshots:
        say(f"predicted {written.snapshots} snapshots")
        wrote(written.where, "the smoke")
    if out.suffix == ".tif" and written.snapshots and not written.has_crs:
        note("the surrogate's grid has no coordinate system, so the files have none")
    for notice in notices:
        (warn if notice.loud else note)(notice.text)
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
            f"{model} has no decision threshold, which `plumecast train` chooses on fires that a "
            "fit has not seen; train it again, without --folds 0"
        )
    return float(alpha)
