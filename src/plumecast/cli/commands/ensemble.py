"""`plumecast ensemble`: statistics of the smoke of very many fires; no field is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import shown_units
from plumecast.base.paths import check_output
from plumecast.cli.fire_options import (
    FireReader,
    check_simulate,
    drawing,
    drawn_options,
    note_other_settings,
    raster_options,
    read_weather_options,
    wind_options,
)
from plumecast.cli.options import (
    MODEL,
    POINTS,
    POINTS_OUT,
    Given,
    ResourceOptions,
    reading_of,
    reading_options,
    with_options,
)
from plumecast.cli.show import count, note, say, table, wrote
from plumecast.data.crs import grid_mapping
from plumecast.data.schema import label_drought
from plumecast.data.store import open_snapshots
from plumecast.sources.places import read_places
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.ensemble import ensemble_statistics, evaluate_points
from plumecast.workflows.export import FORMATS, export_statistics, geotiff_names
from plumecast.workflows.fires.sources import Fires, FireSource
from plumecast.workflows.statistics.estimates import ONE_IGNITION
from plumecast.workflows.statistics.point_table import (
    EVERYONE,
    check_points_out,
    never_smoky,
    printed_rows,
    write_points,
)
from plumecast.workflows.statistics.request import Statistics

FEW_TRUE = 32
"""Ignitions with true smoke from which intervals cover nearly as stated, also of skewed smoke."""


@with_options(
    reading=reading_options, statistics=Statistics, rasters=raster_options, drawn=drawn_options,
    wind=wind_options, compute=ResourceOptions,
)  # fmt: skip
def command(
    model: Path = MODEL,
    fires: list[str] = typer.Argument(
        None,
        help="Snapshot stores; or, with --format or --unit, rasters; none with --simulate.",
        show_default=False,
    ),
    out: Path = typer.Option(
        None,
        "--out",
        "-o",
        help="Where to write the statistics of every cell: .nc or .zarr, or .tif for one GeoTIFF "
        "per statistic. May be left out with --points.",
        show_default=False,
    ),
    *,
    reading: Given,
    statistics: Statistics,
    output: str = typer.Option(
        None, help="Output to use, if the surrogate has several.", show_default="the only one"
    ),
    truth: Path = typer.Option(
        None,
        help="Store of fires with true smoke, from the same population, at the same hours and not "
        "used in training. "
        "These fires then correct the estimates, not the calibration of the surrogate.",
        show_default=False,
    ),
    points: Path = POINTS,
    points_out: Path = POINTS_OUT,
    rasters: Given,
    drawn: Given,
    wind: Given,
    compute: ResourceOptions,
) -> None:
    """Compute the mean, exceedance probabilities and quantiles of the smoke of many fires.

    For each cell, writes the mean smoke, the mean of ln(smoke + 1) and P(smoke > threshold) with
    standard errors and intervals, and the quantiles; with --points, the same for places, as a
    table. Smoke is the time-mean column concentration unless --quantity says otherwise. Intervals
    count ignitions, not snapshots. They account for the surrogate's error with --truth or, for
    fires like those of training, if the surrogate has error bars (`train --all`). The fields
    themselves are never stored. One warning says how many snapshots lie beyond the training fires.

    Example: `plumecast ensemble smoke.plume fires.zarr -o stats.nc --thresholds 35 --quantiles 0.5`
    or `plumecast ensemble smoke.plume fires.zarr --points towns.csv --thresholds 35` or `plumecast
    ensemble smoke.plume --simulate 1000 -o stats.nc` or, for a surrogate of fires on your own
    landscape, `plumecast ensemble smoke.plume --simulate 1000 --dem dem.tif --fuels fuels.tif -o
    stats.nc`
    """
    asked, stores = reading_of(reading), fires or []
    reader = FireReader(rasters, read_weather_options(wind))
    inputs = [model, drawn["dem"], drawn["fuels"], truth, points, *stores]
    _check_outputs(out, points, points_out, inputs)
    if out is not None and out.suffix == ".tif":
        levels, shares = tuple(asked.thresholds), tuple(statistics.quantiles)
        for path in geotiff_names(out, levels, shares, truth=truth is not None):
            check_output(path, overwrite=False, inputs=inputs)
    surrogate = load_surrogate(model)
    names = surrogate.outputs.names
    if output is None and len(names) > 1:
        raise PlumecastError(
            f"the surrogate has the outputs {', '.join(names)}; choose one, as in --output "
            f"{names[0]}"
        )
    surrogate = surrogate if output is None else surrogate.output(output)
    places = None if points is None else read_places(points, surrogate.grid, keep=True)
    if bool(stores) == (drawn["simulate"] is not None):
        raise PlumecastError("give either stores or rasters of fires, or --simulate with a number")
    check_simulate(drawn, wind, rasters=reader.reads_rasters)
    blocks: Fires | FireSource = stores
    if drawn["simulate"] is not None:
        blocks = _drawn(surrogate, drawn)
    elif drawn["drought"] is not None and not reader.reads_rasters:
        inputs_of = list(surrogate.inputs.names)
        stored = (open_snapshots(path, fields=inputs_of) for path in stores)
        blocks = [label_drought(fires_of_store, drawn["drought"]) for fires_of_store in stored]
    if drawn["simulate"] is None:
        reader.note_use(surrogate)
    cells = at_places = None
    with compute.resources("predicting") as resources:
        if reader.reads_rasters:
            blocks = reader.read(surrogate, stores)
        common: dict[str, Any] = {"statistics": statistics, "truth": truth, "resources": resources}
        if isinstance(blocks, FireSource):
            common["reading"] = asked
        else:
            common |= {"reading": replace(asked, hours=reader.hours), "weather": reader.weather}
        if out is not None:
            cells = ensemble_statistics(surrogate, blocks, notify=reader.notices.append, **common)
        if places is not None:  # the pass over all cells has given the same notices
            notify = reader.notices.append if cells is None else lambda notice: None
            at_places = evaluate_points(surrogate, blocks, places, notify=notify, **common)
    made = at_places if cells is None else cells
    assert made is not None  # one of the two was asked for
    detailed = bool(asked.thresholds or statistics.quantiles) or at_places is not None
    _say_what(made, detailed=detailed)
    if cells is not None:
        wrote(export_statistics(cells, out), "the statistics")
        if out.suffix == ".tif" and grid_mapping(cells) is None:
            note("the surrogate's grid has no coordinate system, so the files have none")
    if at_places is not None:
        show_points(at_places)
        if points_out is not None:
            wrote(write_points(at_places, points_out), "the table of places")
    reader.finish(done=made.attrs["snapshots"])


def _check_outputs(
    out: Path | None, points: Path | None, points_out: Path | None, inputs: list[Any]
) -> None:
    if out is None and points is None:
        raise PlumecastError("give --out for the statistics of every cell, or --points, or both")
    check_points_out(points, points_out, inputs)
    if out is not None:
        check_output(out, endings=FORMATS, overwrite=False, inputs=inputs)


def _say_what(made: xr.Dataset, *, detailed: bool) -> None:
    """Numbers of fires, what the quantity is, and what the intervals contain."""
    attrs = made.attrs
    say(f"statistics of {attrs['snapshots']} snapshots of {attrs['fires']} fires")
    if detailed:
        mean = made["mean_smoke"].attrs
        what = mean["long_name"].removeprefix("mean over fires of the ")
        say(f"smoke is the {what} ({shown_units(mean['units'])})")
    if "coverage" not in attrs:
        note("the fires have no names, so that there are no intervals; add fire_id")
        return
    fires, ignitions = count(attrs["fires"], "fire"), count(attrs["ignitions"], "ignition")
    base = f"{fires} of {ignitions}: {100 * attrs['coverage']:g} % intervals"
    name = "mean_smoke" if "mean_smoke" in made else "mean_log_smoke"
    calibrated = attrs.get("calibration_ignitions")
    if "true_ignitions" in attrs:
        say(
            f"{base} from these, and {attrs['true_ignitions']} with true smoke, contain "
            "the sampling of fires and the surrogate's error"
        )
        _say_truth(made, name)
    elif attrs["intervals_contain"] == ONE_IGNITION:
        say(
            f"{base} of means contain the surrogate's error, as those of predict --interval, not "
            "the sampling of fires; values are corrected by the calibration"
        )
    elif calibrated is None:
        say(
            f"{base} contain the sampling of fires only; --truth, or a surrogate of `train --all` "
            "with error bars, adds the surrogate's error"
        )
    else:
        predicted, best = (float(made[key].mean()) for key in (f"{name}_surrogate", name))
        change = f" (in the mean {best / predicted:.2f} times the prediction)" if predicted else ""
        say(
            f"{base} contain the sampling of fires and the surrogate's error, calibrated on "
            f"{count(calibrated, 'ignition')}, for fires like those of training; values are "
            f"corrected by the calibration{change}"
        )


def _say_truth(made: xr.Dataset, name: str) -> None:
    """What fires with true smoke have told of the predictions."""
    attrs = made.attrs
    if attrs["training_ignitions_left_out"]:
        left = count(attrs["training_ignitions_left_out"], "ignition")
        say(f"{left} of --truth left out: the surrogate was trained on them")
    say(
        "correlation of true and predicted smoke "
        f"{float(made[f'{name}_correlation'].median()):.2f} (median), control variate in "
        f"{100 * float(made[f'{name}_corrected'].mean()):.0f} % of the "
        f"{'places' if 'place' in made.dims else 'cells'}, plain Monte Carlo in the others; "
        f"variance {float(made[f'{name}_variance_ratio'].median()):.2f} of Monte Carlo's (median)"
    )
    if attrs["true_ignitions"] < FEW_TRUE:
        note(
            f"{attrs['true_ignitions']} ignitions with true smoke are few: where most fires bring "
            f"no smoke, intervals contain the mean less often than stated; {FEW_TRUE} suffice"
        )


def _drawn(surrogate: Surrogate, drawn: Given) -> FireSource:
    """Simulated fires like those of training."""
    # Imported here: only --simulate needs the `simulator` extra.
    from plumecast.workflows.fires.draw_fires import draw_fires

    fires = draw_fires(drawn["simulate"], **drawing(surrogate, drawn))
    note_other_settings(surrogate, fires.settings)
    return fires


def show_points(statistics: xr.Dataset) -> None:
    """A table with a row for each place; each value has its interval behind it."""
    titles, rows = printed_rows(statistics)
    unit = shown_units(statistics["mean_smoke"].attrs["units"])
    table(f"smoke at {statistics.sizes['place']} places ({unit})", titles, rows)
    corrected = {"calibration_ignitions", "true_ignitions"} & set(statistics.attrs)
    if "smoke_quantile" in statistics and corrected:
        say("quantiles are those of the predictions; their intervals contain the sampling only")
    clean = never_smoky(statistics)
    if clean:
        fires = count(statistics.attrs["fires"], "fire")
        note(
            f"no smoke in any of {fires} at {', '.join(clean[:3])}"
            + (f" and {len(clean) - 3} more" if len(clean) > 3 else "")
            + ": how large the mean may be is unknown (?)"
        )
    if "exposure" not in statistics:
        return
    persons = float(np.nansum(statistics["population"].values))
    say(f"'{EVERYONE}' is the mean per person of {persons:.10g} persons, and their share above")
