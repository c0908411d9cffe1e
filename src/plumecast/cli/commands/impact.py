"""`plumecast impact`: the energy that solar plants lose to the smoke of fires."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer
import xarray as xr

from plumecast.base.checkpoints import LOCAL_HOUR
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.files import published_together, write_json
from plumecast.base.names import IGNITION_TIME, SMOKE
from plumecast.base.paths import check_output
from plumecast.cli.fire_options import (
    FUELS_OF_STORES,
    FireReader,
    at_time_of_file,
    raster_options,
    read_weather_options,
    wind_options,
)
from plumecast.cli.options import (
    CHECKPOINT_INTERVAL,
    PRECISION,
    Given,
    ResourceOptions,
    with_options,
)
from plumecast.cli.show import count, note, say, table, wrote
from plumecast.data.store import open_snapshots
from plumecast.impact.loss_result import ALL, FORMATS, PARTS, loss_rows, write_loss
from plumecast.impact.optics import Optics
from plumecast.impact.plants import EXAMPLE, Panels, plants_of, read_ignition_time
from plumecast.impact.solar_loss import (
    COLUMN,
    STEP,
    Uncertainty,
    Unrecorded,
    dense_samples,
    grid_for,
    records_ignition,
    solar_loss,
)
from plumecast.scores.reading import Reading
from plumecast.sources.places import read_places
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.sources import files_origin, fires_origin
from plumecast.workflows.statistics.request import INDEPENDENT_HELP, column_smoke
from plumecast.workflows.statistics.samples import stored_at


@with_options(
    optics=Optics, panels=Panels, uncertainty=Uncertainty, rasters=raster_options,
    wind=wind_options, compute=ResourceOptions,
)  # fmt: skip
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
    ignition: str = typer.Option(
        None,
        "--ignition-time",
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
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
    latitude: float = typer.Option(
        None, help="Latitude of the plants, where neither they nor the grid have one."
    ),
    report: Path = typer.Option(
        None, "--json", help="Also write the table and the assumptions to this file."
    ),
    *,
    optics: Optics,
    panels: Panels,
    uncertainty: Uncertainty,
    rasters: Given,
    wind: Given,
    compute: ResourceOptions,
    precision: str = PRECISION,
    independent: bool = typer.Option(False, "--independent", help=INDEPENDENT_HELP),
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
    # The time of ignition is for the sun too, and the latitude that of the plants.
    air = {**at_time_of_file(wind, ignition)}
    if wind["longitude"] is None:
        air["latitude"] = None
    reader = FireReader(rasters, read_weather_options(air))
    if rasters["fuels"] is not None and not reader.reads_rasters:
        raise ArgumentError("fuels", rasters["fuels"], FUELS_OF_STORES, problem="is for rasters")
    surrogate = None if model is None else column_smoke(load_surrogate(model), COLUMN)
    grid = _grid(surrogate, fires, reader.reads_rasters)
    # What the sun and the plants lack is said before the smoke is predicted.
    dated = reader.weather is not None and IGNITION_TIME in reader.weather.attrs
    if ignition is not None or not (dated or records_ignition(grid)):
        read_ignition_time(ignition, grid.attrs.get(LOCAL_HOUR))
    places = read_places(points, grid)
    plants_of(places, grid, latitude)
    if surrogate is None:
        samples = stored_at(places, grid, independent=independent)
    else:
        reader.note_use(surrogate)
        with compute.resources("predicting") as resources:
            source: Any = fires
            weather = reader.weather
            if reader.reads_rasters:
                source, weather = reader.read(surrogate, fires, step=STEP), None
            samples = dense_samples(
                places, surrogate, source, Reading(hours=reader.hours), weather=weather,
                precision=precision, independent=independent, notify=reader.notices.append,
                resources=resources,
            )  # fmt: skip
    loss = solar_loss(
        samples, places, ignition_time=ignition, surrogate=surrogate,
        reading=Reading(interval=checkpoint_interval),
        unrecorded=Unrecorded(column_depth, latitude, grid),
        uncertainty=uncertainty, optics=optics, panels=panels,
    )  # fmt: skip
    origin = files_origin(fires) if reader.reads_rasters else fires_origin(fires)
    loss = loss.assign_attrs(fires_from=origin)
    show_loss(loss, predicted=surrogate is not None)
    with published_together():
        write_loss(loss, out)
        if report is not None:
            write_json(report, {"plants": loss_rows(loss), "assumptions": dict(loss.attrs)})
    wrote(out, "the loss")
    if report is not None:
        wrote(report, "the table")
    reader.finish(done=samples.hours.size)


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


def show_loss(loss: xr.Dataset, *, predicted: bool) -> None:
    """The table of plants, the parts of the interval, and other models of the sky."""
    rows = loss_rows(loss)
    share = f"{loss.attrs['coverage']:.0%}"
    ignitions = np.unique(loss["ignition_id"].values).size
    fires = count(loss.sizes["fire"], "fire")
    table(
        f"energy lost to smoke, mean of {fires} ({count(ignitions, 'ignition')}), up to "
        f"{float(loss['hours'].max()):g} h after ignition",
        ["plant", "MW", "clear MWh", "lost MWh", f"{share} interval", "%", f"{share} interval"],
        [
            [
                str(row["plant"]),
                f"{row['megawatts']:g}",
                f"{row['clear_mwh']:,.1f}",
                f"{row['lost_mwh']:,.2f}",
                _between(row, "lost_mwh", "total"),
                f"{row['lost_percent']:.2f}",
                _between(row, "lost_percent", "total"),
            ]
            for row in rows
        ],
    )
    *plants, whole = rows
    parts = [(part, _between(whole, "lost_mwh", part)) for part in PARTS[:-1]]
    say(f"{ALL}: " + "; ".join(f"{part} {ends}" for part, ends in parts if ends) + " (MWh)")
    if whole["lost_mwh_lower_sampling"] is None:
        note("one ignition: the interval is for these fires, not for others like them")
    if predicted and whole["lost_mwh_lower_surrogate"] is None:
        note("the error of the predicted smoke is not part of the interval")
    _say_models(loss)
    attrs = loss.attrs
    (low, high), (dark, bright) = attrs["optics_mee_range"], attrs["optics_ssa_range"]
    say(
        f"assumed: extinction {attrs['optics_mee']:g} m²/g ({low:g} … {high:g}), albedo "
        f"{attrs['optics_ssa']:g} ({dark:g} … {bright:g}), column of "
        f"{attrs['column_depth_m'] / 1000.0:.3g} km, ignition {attrs['ignition_time']}"
    )
    for row in plants:
        if row["clear_mwh"] == 0.0:
            why = "its capacity is 0 MW" if row["megawatts"] == 0.0 else "no sun in these hours"
            note(f"{row['plant']}: {why}, so that it loses 0 of 0 MWh")


def _between(row: dict[str, Any], quantity: str, part: str) -> str:
    low, high = (row[f"{quantity}_{end}_{part}"] for end in ("lower", "upper"))
    return "" if low is None or high is None else f"{low:,.2f} … {high:,.2f}"


def _say_models(loss: xr.Dataset) -> None:
    """What the other models of the sky give, in the intervals that they are made for."""
    lost, reference = loss["model_lost_energy"], loss["reference_lost_energy"]
    models = []
    for name in loss["model"].values.tolist()[1:]:
        here, there = float(lost.sel(model=name)), float(reference.sel(model=name))
        within = "" if np.isclose(there, float(reference[0])) else ", within its range"
        models.append(f"{name} {here:,.2f} MWh (spectrl2 {there:,.2f}{within})")
    say("other models of the sky: " + "; ".join(models))
