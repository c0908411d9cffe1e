"""`plumecast impact`: the energy that solar plants lose to the smoke of fires."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.checkpoints import LOCAL_HOUR
from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_json
from plumecast.base.names import IGNITION_TIME, SMOKE
from plumecast.base.outputs import check_output
from plumecast.cli.fire_options import (
    FUELS_OF_STORES,
    is_raster,
    raster_options,
    raster_reports,
    read_raster_options,
)
from plumecast.cli.options import PRECISION, Given, numbers, place_options, running, with_options
from plumecast.cli.outcomes import exit_code, show_problems
from plumecast.cli.show import counted, note, warn, wrote
from plumecast.cli.tables.losses import show_loss
from plumecast.cli.weather_options import at_time_of_file, note_use, read_wind_options, wind_options
from plumecast.data.store import open_snapshots
from plumecast.impact.solar.optics import Optics
from plumecast.impact.solar.plants import Panels, plants_of
from plumecast.impact.solar.result import FORMATS, loss_rows, write_loss
from plumecast.impact.solar.solar_loss import COLUMN, STEP, grid_for, records_ignition, solar_loss
from plumecast.impact.solar.sun import EXAMPLE, read_ignition_time
from plumecast.sources.places import Places, read_places
from plumecast.surrogate.covered.guards import Notice
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.origin import files_origin, fires_origin
from plumecast.workflows.predict import Notify, StoreFires, raster_fires
from plumecast.workflows.statistics.place_samples import PlaceSamples, predicted_at, stored_at
from plumecast.workflows.statistics.smoke import column_smoke


@with_options(rasters=raster_options, wind=wind_options, place=place_options)
def command(
    fires: list[str] = typer.Argument(
        help="A store or a prediction with smoke; with --model, stores of fires or, with --format "
        "or --unit, rasters.",
        show_default=False,
    ),
    points: Path = typer.Option(
        ...,
        help="CSV table of the plants: name, lat and lon (or x and y), megawatts (AC); optionally "
        "tilt, azimuth (degrees; 180 faces south) and elevation (m).",
    ),
    out: Path = typer.Option(
        ..., "--out", "-o", help="Where to write: .csv, or .nc for every fire."
    ),
    ignition_time: str = typer.Option(
        None,
        help=f"Time of ignition of all fires, e.g. {EXAMPLE}; without the offset from UTC it is "
        "local solar time. A date is enough for fires that record the hour.",
        show_default="as each fire records it",
    ),
    model: Path = typer.Option(None, help="A saved surrogate that predicts the smoke."),
    column_depth: float = typer.Option(
        None,
        help="Depth (m) of the column over which smoke is averaged.",
        show_default="as the smoke records it",
    ),
    checkpoint_interval: float = typer.Option(
        None,
        help="Hours between the checkpoints over which smoke is summed.",
        show_default="as the smoke records it",
    ),
    latitude: float = typer.Option(
        None, help="Latitude of the plants, where neither they nor the grid have one."
    ),
    mee: float = typer.Option(4.5, help="Mass extinction efficiency of dry smoke, m²/g."),
    mee_range: str = typer.Option("3.3,7.4", help="Range of this efficiency, for the interval."),
    growth: float = typer.Option(
        1.0, help="Ratio of the extinction in humid air to that in dry air."
    ),
    ssa: float = typer.Option(0.93, help="Single-scattering albedo of smoke at 550 nm."),
    ssa_range: str = typer.Option("0.88,0.97", help="Range of this albedo, for the interval."),
    dc_ac_ratio: float = typer.Option(
        1.2, help="Power of the modules divided by that of the inverters."
    ),
    air_temperature: float = typer.Option(25.0, help="Temperature of the air by day, °C."),
    coverage: float = typer.Option(0.9, help="Coverage of the intervals."),
    seed: int = typer.Option(0, help="Seed of the samples of optical properties."),
    report: Path = typer.Option(
        None, "--json", help="Also write the table and the assumptions to this file."
    ),
    *,
    rasters: Given,
    wind: Given,
    place: Given,
    precision: str = PRECISION,
) -> None:
    """Compute the energy that solar plants lose to the smoke of fires.

    The concentration between snapshots gives the optical depth of the smoke. The optical depth and
    the position of the sun give the irradiance (spectrl2) and the AC power (PVWatts), with and
    without smoke. The result is the mean over fires, in MWh and percent, with intervals for the
    optical properties, the surrogate and the sampling of fires. The losses by other models of the
    sky are printed for comparison. Needs the extra `power`.

    Example: `plumecast impact fires.zarr --points plants.csv --ignition-time 2020-09-08T14:00-07:00
    -o loss.csv` or, for fires whose smoke is predicted, `plumecast impact fires.zarr --model
    smoke.plume --points plants.csv --ignition-time 2020-09-08T14:00-07:00 -o loss.nc`
    """
    inputs: list[str | Path | None] = [model, points, rasters["fuels"], *fires]
    check_output(out, endings=FORMATS, overwrite=False, inputs=inputs)
    if report is not None:
        check_output(report, overwrite=False, inputs=[*inputs, out])
    optics = Optics(
        mee=mee, mee_range=_ends(mee_range, "--mee-range"), growth=growth, ssa=ssa,
        ssa_range=_ends(ssa_range, "--ssa-range"),
    )  # fmt: skip
    panels = Panels(dc_ac_ratio=dc_ac_ratio, air_temperature=air_temperature)
    if rasters["fuels"] is not None and not is_raster(rasters):
        raise PlumecastError(f"fuels={rasters['fuels']} is for rasters; {FUELS_OF_STORES}")
    surrogate = None if model is None else column_smoke(load_surrogate(model), COLUMN)
    grid = _grid(surrogate, fires, is_raster(rasters))
    # What the sun and the plants lack is said before the smoke is predicted.
    air = _air(wind, ignition_time)
    known = air["weather"] is not None and IGNITION_TIME in air["weather"].attrs
    if ignition_time is not None or not (known or records_ignition(grid)):
        read_ignition_time(ignition_time, grid.attrs.get(LOCAL_HOUR))
    places = read_places(points, grid)
    plants_of(places, grid, latitude)
    problems: list[str] = []
    notices: list[Notice] = []
    if surrogate is None:
        samples = stored_at(places, grid)
    else:
        samples = _predicted(
            surrogate, fires, places, rasters=rasters, air=air, place=place,
            precision=precision, problems=problems, notify=notices.append,
        )  # fmt: skip
    loss = solar_loss(
        samples, places, like=grid, ignition_time=ignition_time, column_depth=column_depth,
        checkpoint_interval=checkpoint_interval, latitude=latitude, optics=optics, panels=panels,
        coverage=coverage, seed=seed, surrogate=surrogate,
    )  # fmt: skip
    origin = files_origin(fires) if is_raster(rasters) else fires_origin(fires)
    loss = loss.assign_attrs(fires_from=origin)
    show_loss(loss, predicted=surrogate is not None)
    wrote(write_loss(loss, out), "the loss")
    if report is not None:
        write_json(report, {"plants": loss_rows(loss), "assumptions": dict(loss.attrs)})
        wrote(report, "the table")
    for notice in notices:
        (warn if notice.loud else note)(notice.text)
    show_problems(problems)
    exit_code(failed=len(problems), done=samples.hours.size)


def _ends(text: str, option: str) -> tuple[float, float]:
    found = numbers(text, option)
    if len(found) != 2 or found[0] > found[1]:
        raise PlumecastError(f"{option}={text} is not a range; give two numbers, e.g. 3.3,7.4")
    return found[0], found[1]


def _grid(surrogate: Surrogate | None, fires: list[str], rasters: bool) -> xr.Dataset:
    """The grid of the smoke, or the store itself where its smoke is used."""
    if surrogate is None:
        if len(fires) > 1 or rasters:
            raise PlumecastError(
                f"{fires[0]}: expected one store with smoke; to predict that of rasters or of "
                "several stores, give --model"
            )
        return open_snapshots(fires[0], fields=[SMOKE])
    return surrogate.grid if rasters else grid_for(surrogate, fires[0])


def _air(wind: Given, ignition_time: str | None) -> dict[str, Any]:
    """The weather that the options give; the time of ignition is for the sun too."""
    given = {**at_time_of_file(wind, ignition_time)}
    if wind["longitude"] is None:
        given["latitude"] = None
    return read_wind_options(given)


def _predicted(
    surrogate: Surrogate,
    fires: list[str],
    places: Places,
    *,
    rasters: Given,
    air: dict[str, Any],
    place: Given,
    precision: str,
    problems: list[str],
    notify: Notify,
) -> PlaceSamples:
    """The predicted smoke at the plants."""
    note_use(surrogate, air, rasters["fuels"])
    device = place["device"]
    with counted("predicting") as step, running(place["scheduler"], device=device) as runner:
        options = read_raster_options(rasters)
        if is_raster(rasters):
            options |= raster_reports(problems)
            blocks: Any = raster_fires(surrogate, fires, step=STEP, **air, **options)
        else:
            blocks = StoreFires(surrogate, fires, options["hours"], STEP, air["weather"])
        return predicted_at(
            places, surrogate, blocks, settled=False, device=device, precision=precision,
            memory=place["memory"], runner=runner, progress=step, notify=notify,
        )  # fmt: skip
