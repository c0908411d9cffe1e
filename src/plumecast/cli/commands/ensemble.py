"""`plumecast ensemble`: statistics of the smoke of very many fires; no field is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.files import atomic_write
from plumecast.base.names import SIMULATION
from plumecast.cli import landscape_options as landscape
from plumecast.cli import options as data_options
from plumecast.cli import raster_options as options
from plumecast.cli.outcomes import exit_code, show_problems
from plumecast.cli.show import counted, note, say, wrote
from plumecast.data.writers import quiet_zarr
from plumecast.scores.field_statistics import QUANTILE_ERROR
from plumecast.sources.simulator.ensemble import DROUGHTS
from plumecast.surrogate.surrogate import Surrogate, load_surrogate
from plumecast.workflows.draw_fires import DrawnFires, draw_fires
from plumecast.workflows.ensemble import Fires, FireSource, ensemble_statistics
from plumecast.workflows.predict import raster_blocks, refuse_other_inputs

OF_SIMULATE = (
    "preset",
    "seed",
    "checkpoints",
    "dem",
    "fuels",
    "bare_where_missing",
    "steering",
)
"""Options for fires that are drawn."""

AS_TRAINED = ("seed", "checkpoints", "steering")
"""Those that are taken from the training fires where they are not given."""


def command(
    parsed: typer.Context,
    model: Path = typer.Argument(help="A saved surrogate.", show_default=False),
    fires: list[str] = typer.Argument(
        None,
        help="Snapshot stores; or, with --format or --unit, rasters; none with --simulate.",
        show_default=False,
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Where to write: .nc or .zarr."),
    thresholds: str = typer.Option(
        "", help="Smoke (µg m⁻³) whose exceedance is wanted, separated by commas."
    ),
    quantiles: str = typer.Option(
        "", help="Quantiles wanted, separated by commas, e.g. 0.05,0.95."
    ),
    quantile_error: float = typer.Option(
        QUANTILE_ERROR, help="Largest relative error of a quantile."
    ),
    simulate: int = typer.Option(
        None,
        help="So many fires from the embedded simulator in place of stores; their own smoke is not "
        "computed.",
    ),
    preset: str = typer.Option(
        None, help="Of --simulate: demo or paper; else the one with the surrogate's grid."
    ),
    seed: int = typer.Option(
        None,
        help="Of --simulate: landscape and weather.",
        show_default="that of the training ensemble, or 0",
    ),
    checkpoints: int = typer.Option(
        None,
        help="Of --simulate: snapshots of each fire, six hours apart.",
        show_default="as in training, or 15",
    ),
    dem: Path = landscape.DEM,
    fuels: Path = landscape.FUELS,
    bare_where_missing: bool = landscape.BARE_WHERE_MISSING,
    steering: float = landscape.STEERING_AS_TRAINED,
    final: bool = typer.Option(False, help="Take the last checkpoint of every fire only."),
    format: str = options.FORMAT,
    unit: str = options.UNIT,
    crs: str = options.CRS,
    hours: str = options.HOURS,
    drought: str = typer.Option(
        None,
        help="Drought label of rasters; with --simulate the scenarios, separated by commas, else "
        "those of training.",
    ),
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
    """Mean, exceedance probabilities and quantiles of the smoke of very many fires.

    Written are mean ln(smoke + 1) with its standard error, mean smoke, P(smoke > threshold) with
    its standard error, and quantiles, by cell. The fields themselves are never stored.

    Example: `plumecast ensemble smoke.plume fires.zarr -o stats.nc --thresholds 35 --quantiles 0.5`
    or `plumecast ensemble smoke.plume --simulate 1000 -o stats.nc` or, for a surrogate of fires on
    your ground, `plumecast ensemble smoke.plume --simulate 1000 --dem dem.tif --fuels fuels.tif -o
    stats.nc`
    """
    if out.suffix not in (".nc", ".zarr"):
        raise PlumecastError(f"{out}: the ending says the format; use .nc or .zarr")
    surrogate = load_surrogate(model)
    problems: list[str] = []
    stores, rasters = fires or [], format is not None or unit is not None
    _check_fires(stores, parsed.params, rasters)
    blocks: Fires | FireSource = stores
    if simulate is not None:
        blocks = _drawn(surrogate, simulate, drought, parsed.params)
    with counted("predicting") as step, data_options.running(scheduler, device=device) as runner:
        if rasters:
            given = options.chosen(parsed.params)
            given["runner"] = runner
            given["on_error"] = lambda path, message: problems.append(message)
            blocks = raster_blocks(surrogate, stores, progress=step, **given)
        statistics = ensemble_statistics(
            surrogate,
            blocks,
            thresholds=_numbers(thresholds),
            quantiles=_numbers(quantiles),
            quantile_error=quantile_error,
            final=final,
            device=device,
            precision=precision,
            memory=memory,
            runner=runner,
            progress=step,
        )
    write_statistics(statistics, out)
    count, snapshots = statistics.attrs["fires"], statistics.attrs["snapshots"]
    say(f"statistics of {snapshots} snapshots of {count} fires")
    wrote(out, "them")
    show_problems(problems)
    exit_code(failed=len(problems), done=snapshots)


def _check_fires(stores: list[str], given: Mapping[str, Any], rasters: bool) -> None:
    drawn = given["simulate"] is not None
    if bool(stores) == drawn:
        raise PlumecastError("give either stores or rasters of fires, or --simulate with a number")
    if rasters and drawn:
        raise PlumecastError("--format and --unit are for rasters, not for --simulate")
    for name in () if drawn else OF_SIMULATE:
        if given[name] is not None and given[name] is not False:
            raise PlumecastError(f"--{name.replace('_', '-')} is for --simulate; leave it out")


def _drawn(
    surrogate: Surrogate, count: int, drought: str | None, given: Mapping[str, Any]
) -> DrawnFires:
    """Fires as those of training, where it is known what made them, but for what was given."""
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
                f"{value}: not what the surrogate has learned from"
            )
    return fires


def write_statistics(statistics: xr.Dataset, out: Path) -> None:
    """One file, all or nothing."""
    with atomic_write(out, overwrite=False) as partial:
        if out.suffix == ".nc":
            statistics.to_netcdf(partial, engine="netcdf4")
        else:
            with quiet_zarr():
                statistics.to_zarr(partial, mode="w", consolidated=False, zarr_format=3)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise PlumecastError(f"'{text}' are not numbers separated by commas") from None
