"""`plumecast impact`: the energy that solar plants lose to the smoke of fires."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer
import xarray as xr

from plumecast.base.checkpoints import LOCAL_HOUR
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.files import write_json
from plumecast.base.names import IGNITION_TIME, SMOKE
from plumecast.base.paths import check_output
from plumecast.cli.fire_options import (
    FUELS_OF_STORES,
    is_raster,
    raster_options,
    raster_reports,
    read_raster_options,
)
from plumecast.cli.options import PRECISION, Given, numbers, place_options, running, with_options
from plumecast.cli.outcomes import exit_code, show_problems
from plumecast.cli.show import count, counted, note, say, table, warn, wrote
from plumecast.cli.weather_options import at_time_of_file, note_use, read_wind_options, wind_options
from plumecast.compute.resources import Resources
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
from plumecast.sources.places import Places, read_places
from plumecast.surrogate.guards import Notice
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.sources import files_origin, fires_origin, raster_fires
from plumecast.workflows.predict import Notify
from plumecast.workflows.statistics.request import column_smoke
from plumecast.workflows.statistics.samples import PlaceSamples, stored_at


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
        raise ArgumentError("fuels", rasters["fuels"], FUELS_OF_STORES, problem="is for rasters")
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
        samples, places, ignition_time=ignition_time, surrogate=surrogate,
        reading=Reading(interval=checkpoint_interval),
        unrecorded=Unrecorded(column_depth, latitude, grid),
        uncertainty=Uncertainty(coverage, seed=seed), optics=optics, panels=panels,
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
        raise ArgumentError(
            option, text, "give two numbers, e.g. 3.3,7.4", problem="is not a range"
        )
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
            source: Any = raster_fires(surrogate, fires, step=STEP, **air, **options)
            weather = None
        else:
            source, weather = fires, air["weather"]
        return dense_samples(
            places, surrogate, source, Reading(hours=options["hours"] or ()), weather=weather,
            precision=precision, notify=notify,
            resources=Resources(device, place["memory"], runner, step),
        )  # fmt: skip


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
        [_plant(row) for row in rows],
    )
    whole = rows[-1]
    parts = [(part, _between(whole, "lost_mwh", part)) for part in PARTS[:-1]]
    say(f"{ALL}: " + "; ".join(f"{part} {found}" for part, found in parts if found) + " (MWh)")
    _say_unknown(whole, predicted)
    _say_models(loss)
    _say_assumptions(loss)
    for row in rows[:-1]:
        if row["clear_mwh"] == 0.0:
            why = "its capacity is 0 MW" if row["megawatts"] == 0.0 else "no sun in these hours"
            note(f"{row['plant']}: {why}, so that it loses 0 of 0 MWh")


def _plant(row: dict[str, Any]) -> list[str]:
    return [
        str(row["plant"]),
        f"{row['megawatts']:g}",
        f"{row['clear_mwh']:,.1f}",
        f"{row['lost_mwh']:,.2f}",
        _between(row, "lost_mwh", "total"),
        f"{row['lost_percent']:.2f}",
        _between(row, "lost_percent", "total"),
    ]


def _between(row: dict[str, Any], quantity: str, part: str) -> str:
    low, high = (row[f"{quantity}_{end}_{part}"] for end in ("lower", "upper"))
    return "" if low is None or high is None else f"{low:,.2f} … {high:,.2f}"


def _say_unknown(whole: dict[str, Any], predicted: bool) -> None:
    if whole["lost_mwh_lower_sampling"] is None:
        note("one ignition: the interval is for these fires, not for others like them")
    if predicted and whole["lost_mwh_lower_surrogate"] is None:
        note("the error of the predicted smoke is not part of the interval")


def _say_models(loss: xr.Dataset) -> None:
    """What the other models of the sky give, in the intervals that they are made for."""
    lost, reference = loss["model_lost_energy"], loss["reference_lost_energy"]
    found = []
    for name in loss["model"].values.tolist()[1:]:
        here, there = float(lost.sel(model=name)), float(reference.sel(model=name))
        within = "" if np.isclose(there, float(reference[0])) else ", within its range"
        found.append(f"{name} {here:,.2f} MWh (spectrl2 {there:,.2f}{within})")
    say("other models of the sky: " + "; ".join(found))


def _say_assumptions(loss: xr.Dataset) -> None:
    given = loss.attrs
    (low, high), (dark, bright) = given["optics_mee_range"], given["optics_ssa_range"]
    say(
        f"assumed: extinction {given['optics_mee']:g} m²/g ({low:g} … {high:g}), albedo "
        f"{given['optics_ssa']:g} ({dark:g} … {bright:g}), column of "
        f"{given['column_depth_m'] / 1000.0:.3g} km, ignition {given['ignition_time']}"
    )
