"""`plumecast ensemble`: statistics of the smoke of very many fires; no field is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from plumecast.base.checkpoints import recorded_interval, summed_over
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SIMULATION
from plumecast.base.outputs import check_output
from plumecast.cli.fire_options import (
    STEERING_AS_TRAINED,
    in_options,
    is_raster,
    landscape_options,
    note_unused_winds,
    raster_options,
    read_raster_options,
    read_wind_options,
    wind_options,
)
from plumecast.cli.options import (
    MODEL,
    PRECISION,
    Given,
    numbers,
    place_options,
    running,
    with_options,
)
from plumecast.cli.outcomes import exit_code, show_problems
from plumecast.cli.show import counted, note, say, wrote
from plumecast.data.schema import label_drought
from plumecast.data.store import open_snapshots
from plumecast.scores.field_statistics import QUANTILE_ERROR
from plumecast.surrogate.surrogate import Surrogate, load_surrogate
from plumecast.workflows.ensemble import Fires, FireSource, ensemble_statistics
from plumecast.workflows.export import FORMATS, grid_mapping
from plumecast.workflows.predict import raster_fires, refuse_other_inputs
from plumecast.workflows.statistics.export import export_statistics, geotiff_names

OF_SIMULATE = (
    "preset",
    "seed",
    "checkpoints",
    "dem",
    "fuels",
    "bare_where_missing",
    "steering",
)
"""Options of --simulate."""

AS_TRAINED = ("seed", "checkpoints", "steering")
"""Options of --simulate whose default is the value of the training fires."""


@with_options(
    landscape=landscape_options, rasters=raster_options, wind=wind_options, place=place_options
)
def command(
    parsed: typer.Context,
    model: Path = MODEL,
    fires: list[str] = typer.Argument(
        None,
        help="Snapshot stores; or, with --format or --unit, rasters; none with --simulate.",
        show_default=False,
    ),
    out: Path = typer.Option(
        ...,
        "--out",
        "-o",
        help="Where to write: .nc or .zarr, or .tif for one GeoTIFF per statistic.",
    ),
    thresholds: str = typer.Option(
        "",
        help="Smoke values (µg m⁻³) for exceedance probabilities, separated by commas. They are "
        "compared with smoke as the surrogate predicts it: a sum over checkpoints, not the "
        "concentration at one time.",
    ),
    quantiles: str = typer.Option(
        "", help="Quantiles to compute, separated by commas, e.g. 0.05,0.95."
    ),
    quantile_error: float = typer.Option(
        QUANTILE_ERROR, help="Largest relative error of a quantile."
    ),
    simulate: int = typer.Option(
        None,
        help="Draw this many fires from the embedded simulator instead of reading stores; their "
        "smoke is predicted, not simulated.",
    ),
    preset: str = typer.Option(
        None,
        help="With --simulate: demo or paper.",
        show_default="the one with the surrogate's grid",
    ),
    seed: int = typer.Option(
        None,
        help="With --simulate: seed of landscape and weather.",
        show_default="that of the training ensemble, or 0",
    ),
    checkpoints: int = typer.Option(
        None,
        help="With --simulate: snapshots of each fire, six hours apart.",
        show_default="as in training, or 15",
    ),
    *,
    landscape: Given,
    steering: float = STEERING_AS_TRAINED,
    final: bool = typer.Option(False, help="Use only the last checkpoint of every fire."),
    rasters: Given,
    drought: str = typer.Option(
        None,
        help="Drought label of fires that have none. With --simulate: scenarios, separated by "
        "commas.",
        show_default="with --simulate those of training",
    ),
    wind: Given,
    place: Given,
    precision: str = PRECISION,
) -> None:
    """Compute the mean, exceedance probabilities and quantiles of the smoke of many fires.

    For each cell, writes the mean of ln(smoke + 1) and P(smoke > threshold), both with their
    standard errors, the mean smoke and the quantiles. The fields themselves are never stored. Smoke
    is a sum over checkpoints, so its size depends on their interval, which is printed and stored.

    Example: `plumecast ensemble smoke.plume fires.zarr -o stats.nc --thresholds 35 --quantiles 0.5`
    or `plumecast ensemble smoke.plume --simulate 1000 -o stats.nc` or, for a surrogate of fires on
    your own landscape, `plumecast ensemble smoke.plume --simulate 1000 --dem dem.tif --fuels
    fuels.tif -o stats.nc`
    """
    levels, shares = _values(thresholds, "--thresholds"), _values(quantiles, "--quantiles")
    inputs = [model, landscape["dem"], landscape["fuels"], *(fires or [])]
    check_output(out, endings=FORMATS, overwrite=False, inputs=inputs)
    for path in geotiff_names(out, levels, shares) if out.suffix == ".tif" else ():
        check_output(path, overwrite=False, inputs=inputs)
    winds = read_wind_options(wind)
    surrogate = load_surrogate(model)
    note_unused_winds(winds, surrogate)
    problems: list[str] = []
    stores = fires or []
    _check_fires(stores, parsed.params, is_raster(rasters))
    blocks: Fires | FireSource = stores
    if simulate is not None:
        blocks = _drawn(surrogate, simulate, drought, parsed.params)
    elif drought is not None and not is_raster(rasters):
        fields = list(surrogate.inputs.names)
        blocks = [label_drought(open_snapshots(path, fields=fields), drought) for path in stores]
    device = place["device"]
    with counted("predicting") as step, running(place["scheduler"], device=device) as runner:
        if is_raster(rasters):
            given = read_raster_options(rasters)
            given["on_error"] = lambda path, message: problems.append(in_options(message))
            given["on_note"] = lambda message: note(in_options(message))
            blocks = raster_fires(surrogate, stores, winds=winds, **given)
        statistics = ensemble_statistics(
            surrogate,
            blocks,
            thresholds=levels,
            quantiles=shares,
            quantile_error=quantile_error,
            winds=None if is_raster(rasters) else winds,
            final=final,
            device=device,
            precision=precision,
            memory=place["memory"],
            runner=runner,
            progress=step,
        )
    written = export_statistics(statistics, out)
    count, snapshots = statistics.attrs["fires"], statistics.attrs["snapshots"]
    say(f"statistics of {snapshots} snapshots of {count} fires")
    if levels or shares:
        interval = recorded_interval(surrogate.outputs.fields[0].attrs)
        say(
            f"smoke is summed over {summed_over(interval)}: thresholds and quantiles are values of "
            "that sum, not of the concentration at one time"
        )
    wrote(written, "the statistics")
    if out.suffix == ".tif" and grid_mapping(statistics) is None:
        note("the surrogate's grid has no coordinate system, so the files have none")
    show_problems(problems)
    exit_code(failed=len(problems), done=snapshots)


def _check_fires(stores: list[str], given: Mapping[str, Any], rasters: bool) -> None:
    drawn = given["simulate"] is not None
    if bool(stores) == drawn:
        raise PlumecastError("give either stores or rasters of fires, or --simulate with a number")
    if rasters and drawn:
        raise PlumecastError("--format and --unit are for rasters, not for --simulate")
    for name in ("wind_speed", "wind_from", "winds") if drawn else ():
        if given[name] is not None:
            raise PlumecastError(
                f"{name}={given[name]} is for stores and rasters; simulated fires have their wind"
            )
    for name in () if drawn else OF_SIMULATE:
        if given[name] is not None and given[name] is not False:
            raise PlumecastError(f"--{name.replace('_', '-')} is for --simulate; leave it out")


def _drawn(
    surrogate: Surrogate, count: int, drought: str | None, given: Mapping[str, Any]
) -> FireSource:
    """Simulated fires like those of training, as far as it is known how those were simulated.

    Options that were given replace the settings of the training fires.
    """
    # Imported here: only --simulate needs the `simulator` extra.
    from plumecast.sources.simulator.ensemble import DROUGHTS
    from plumecast.workflows.draw_fires import draw_fires

    refuse_other_inputs(surrogate, "simulated fires")
    trained = getattr(surrogate.operator, "labels", ()) or DROUGHTS
    droughts = [name for name in DROUGHTS if name in trained]
    if drought is not None:
        droughts = [name.strip() for name in drought.split(",")]
    recorded = surrogate.training.get(SIMULATION, {})
    known = {name: recorded[name] for name in AS_TRAINED if name in recorded}
    chosen = {name: given[name] for name in OF_SIMULATE if given[name] is not None}
    fires = draw_fires(count, like=surrogate.grid, droughts=droughts, **(known | chosen))
    for name, value in fires.settings.items():
        if recorded and recorded.get(name, value) != value:
            note(
                f"the training fires were simulated with {name}={recorded[name]}, these with "
                f"{value}: the surrogate has not learned from such fires"
            )
    return fires


def _values(text: str, option: str) -> list[float]:
    return numbers(text, option) if text else []
