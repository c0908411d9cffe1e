"""`plumecast ensemble`: statistics of the smoke of very many fires; no field is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import shown_units
from plumecast.base.paths import check_output
from plumecast.cli.fire_options import (
    CHECKPOINTS_AS_TRAINED,
    STEERING_AS_TRAINED,
    check_simulate,
    drawing,
    is_raster,
    landscape_options,
    note_other_settings,
    raster_options,
    raster_reports,
    read_raster_options,
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
from plumecast.cli.show import count, counted, note, say, table, warn, wrote
from plumecast.cli.weather_options import note_use, read_wind_options, wind_options
from plumecast.compute.resources import Resources
from plumecast.data.crs import grid_mapping
from plumecast.data.schema import label_drought
from plumecast.data.store import open_snapshots
from plumecast.scores.field_statistics import QUANTILE_ERROR
from plumecast.scores.reading import Reading
from plumecast.sources.places import read_places
from plumecast.surrogate.guards import Notice
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.ensemble import ensemble_statistics, evaluate_points
from plumecast.workflows.export import FORMATS, export_statistics, geotiff_names
from plumecast.workflows.fires.conditions import refuse_other_inputs
from plumecast.workflows.fires.sources import Fires, FireSource, raster_fires
from plumecast.workflows.statistics.point_table import (
    EVERYONE,
    never_smoky,
    printed_rows,
    write_points,
)
from plumecast.workflows.statistics.point_table import FORMATS as TABLES
from plumecast.workflows.statistics.request import COVERAGE, Statistics

FEW_TRUE = 32
"""Ignitions with true smoke from which intervals cover nearly as stated, also of skewed smoke."""


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
        None,
        "--out",
        "-o",
        help="Where to write the statistics of every cell: .nc or .zarr, or .tif for one GeoTIFF "
        "per statistic. May be left out with --points.",
        show_default=False,
    ),
    thresholds: str = typer.Option(
        "",
        help="Values of the quantity (µg m⁻³ of the time mean, unless --quantity says otherwise) "
        "for exceedance probabilities, separated by commas.",
    ),
    quantiles: str = typer.Option(
        "", help="Quantiles to compute, separated by commas, e.g. 0.05,0.95."
    ),
    quantile_error: float = typer.Option(
        QUANTILE_ERROR, help="Largest relative error of a quantile of a cell."
    ),
    quantity: str = typer.Option(
        None,
        help="Quantity of means, thresholds and quantiles: mean (time-mean column concentration), "
        "dose (its time integral, µg m⁻³ h) or sum (over checkpoints, as the surrogate predicts).",
        show_default="mean",
    ),
    checkpoint_interval: float = typer.Option(
        None,
        help="Hours between the checkpoints over which smoke is summed.",
        show_default="as recorded with the training fires",
    ),
    output: str = typer.Option(
        None,
        help="Output to use, if the surrogate has several.",
        show_default="the only one",
    ),
    coverage: float = typer.Option(
        COVERAGE, help="Probability with which an interval is to contain the true value."
    ),
    truth: Path = typer.Option(
        None,
        help="Store of fires with true smoke, from the same population and not used in training. "
        "These fires then correct the estimates, not the calibration of the surrogate.",
        show_default=False,
    ),
    points: Path = typer.Option(
        None,
        help="Table (CSV) of places: name; lat and lon, or x and y; optionally population.",
        show_default=False,
    ),
    points_out: Path = typer.Option(
        None,
        help="With --points: also write the table to this file, .csv, .json or .nc.",
        show_default=False,
    ),
    simulate: int = typer.Option(
        None,
        help="Draw this many fires from the embedded simulator instead of reading stores; their "
        "smoke is predicted, not simulated.",
    ),
    preset: str = typer.Option(
        None,
        help="With --simulate: demo, paper or weathers.",
        show_default="the one with the surrogate's grid",
    ),
    seed: int = typer.Option(
        None,
        help="With --simulate: seed of landscape and weather.",
        show_default="that of the training ensemble, or 0",
    ),
    checkpoints: int = CHECKPOINTS_AS_TRAINED,
    *,
    landscape: Given,
    steering: float = STEERING_AS_TRAINED,
    final: bool = typer.Option(False, help="Use only the last checkpoint of every fire."),
    rasters: Given,
    drought: str = typer.Option(
        None,
        help="Drought label of fires that have none. With --simulate: scenarios, separated by "
        "commas.",
        show_default="with --simulate those of training, or a drawn weather each",
    ),
    wind: Given,
    place: Given,
    precision: str = PRECISION,
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
    levels, shares = _values(thresholds, "--thresholds"), _values(quantiles, "--quantiles")
    inputs = [model, landscape["dem"], landscape["fuels"], truth, points, *(fires or [])]
    _check_outputs(out, points, points_out, [path for path in inputs if path is not None])
    if out is not None and out.suffix == ".tif":
        for path in geotiff_names(out, levels, shares, truth=truth is not None):
            check_output(path, overwrite=False, inputs=inputs)
    air, given = read_wind_options(wind), read_raster_options(rasters)
    surrogate = _chosen(load_surrogate(model), output)
    places = None if points is None else read_places(points, surrogate.grid)
    note_use(surrogate, air, None if simulate else rasters["fuels"])
    problems: list[str] = []
    notices: list[Notice] = []
    stores = fires or []
    _check_fires(stores, parsed.params, is_raster(rasters))
    blocks: Fires | FireSource = stores
    if simulate is not None:
        blocks = _drawn(surrogate, simulate, parsed.params)
    elif drought is not None and not is_raster(rasters):
        fields = list(surrogate.inputs.names)
        blocks = [label_drought(open_snapshots(path, fields=fields), drought) for path in stores]
    device = place["device"]
    statistics = at_places = None
    with counted("predicting") as step, running(place["scheduler"], device=device) as runner:
        if is_raster(rasters):
            given |= raster_reports(problems)
            blocks = raster_fires(surrogate, stores, **air, **given)
        stored = not isinstance(blocks, FireSource)
        asked: dict[str, Any] = {
            "reading": Reading(
                quantity, levels, (given["hours"] or ()) if stored else (), checkpoint_interval
            ),
            "statistics": Statistics(shares, quantile_error, coverage, final, precision),
            "truth": truth,
            **(air if stored else {}),
            "resources": Resources(device, place["memory"], runner, step),
        }
        if out is not None:
            statistics = ensemble_statistics(surrogate, blocks, notify=notices.append, **asked)
        if places is not None:
            again = ignore_notice if out is not None else notices.append
            at_places = evaluate_points(surrogate, blocks, places, notify=again, **asked)
    found = statistics if statistics is not None else at_places
    assert found is not None  # one of the two was asked for
    _say_what(found, detailed=bool(levels or shares) or at_places is not None)
    if statistics is not None:
        wrote(export_statistics(statistics, out), "the statistics")
        if out.suffix == ".tif" and grid_mapping(statistics) is None:
            note("the surrogate's grid has no coordinate system, so the files have none")
    if at_places is not None:
        show_points(at_places)
        if points_out is not None:
            wrote(write_points(at_places, points_out), "the table of places")
    for notice in notices:
        (warn if notice.loud else note)(notice.text)
    show_problems(list(dict.fromkeys(problems)))
    exit_code(failed=len(set(problems)), done=found.attrs["snapshots"])


def _chosen(surrogate: Surrogate, output: str | None) -> Surrogate:
    """The surrogate of one output; raises if there are several and none is stated."""
    names = surrogate.outputs.names
    if output is None and len(names) > 1:
        raise PlumecastError(
            f"the surrogate has the outputs {', '.join(names)}; choose one, as in --output "
            f"{names[0]}"
        )
    return surrogate if output is None else surrogate.output(output)


def ignore_notice(notice: Notice) -> None:
    """Say nothing: the pass over all cells has said it."""


def _check_outputs(
    out: Path | None, points: Path | None, points_out: Path | None, inputs: list[Any]
) -> None:
    if out is None and points is None:
        raise PlumecastError("give --out for the statistics of every cell, or --points, or both")
    if points is None and points_out is not None:
        raise ArgumentError("points_out", points_out, problem="needs --points, a table of places")
    if out is not None:
        check_output(out, endings=FORMATS, overwrite=False, inputs=inputs)
    if points_out is not None:
        check_output(points_out, endings=TABLES, overwrite=False, inputs=inputs)


def _say_what(found: xr.Dataset, *, detailed: bool) -> None:
    """Numbers of fires, what the quantity is, and what the intervals contain."""
    attrs = found.attrs
    say(f"statistics of {attrs['snapshots']} snapshots of {attrs['fires']} fires")
    if detailed:
        mean = found["mean_smoke"].attrs
        what = mean["long_name"].removeprefix("mean over fires of the ")
        say(f"smoke is the {what} ({shown_units(mean['units'])})")
    if "coverage" not in attrs:
        note("the fires have no names, so that there are no intervals; add fire_id")
        return
    base = f"{100 * attrs['coverage']:g} % intervals from {count(attrs['ignitions'], 'ignition')}"
    if "true_ignitions" not in attrs:
        _say_error(base, found)
        return
    name = "mean_smoke" if "mean_smoke" in found else "mean_log_smoke"
    known = found[f"{name}_correlation"]
    used = found[f"{name}_corrected"].mean()
    say(
        f"{base}, and {attrs['true_ignitions']} with true smoke, contain the sampling of fires and "
        "the surrogate's error"
    )
    if attrs["training_ignitions_left_out"]:
        left = count(attrs["training_ignitions_left_out"], "ignition")
        say(f"{left} of --truth left out: the surrogate was trained on them")
    say(
        f"correlation of true and predicted smoke {float(known.median()):.2f} (median), control "
        f"variate in {100 * float(used):.0f} % of the "
        f"{'places' if 'place' in found.dims else 'cells'}, plain Monte Carlo in the others; "
        f"variance {float(found[f'{name}_variance_ratio'].median()):.2f} of Monte Carlo's (median)"
    )
    if attrs["true_ignitions"] < FEW_TRUE:
        note(
            f"{attrs['true_ignitions']} ignitions with true smoke are few: where most fires bring "
            f"no smoke, intervals contain the mean less often than stated; {FEW_TRUE} suffice"
        )


def _say_error(base: str, found: xr.Dataset) -> None:
    """Whether intervals without true smoke contain the surrogate's error."""
    calibrated = found.attrs.get("calibration_ignitions")
    if calibrated is None:
        say(
            f"{base} contain the sampling of fires only; --truth, or a surrogate of `train --all` "
            "with error bars, adds the surrogate's error"
        )
        return
    name = "mean_smoke" if "mean_smoke" in found else "mean_log_smoke"
    own, best = (float(found[key].mean()) for key in (f"{name}_surrogate", name))
    change = f" (in the mean {best / own:.2f} times the prediction)" if own > 0.0 else ""
    say(
        f"{base} contain the sampling of fires and the surrogate's error, calibrated on "
        f"{count(calibrated, 'ignition')}, for fires like those of training; values are corrected "
        f"by the calibration{change}"
    )


def _check_fires(stores: list[str], given: Mapping[str, Any], rasters: bool) -> None:
    drawn = given["simulate"] is not None
    if bool(stores) == drawn:
        raise PlumecastError("give either stores or rasters of fires, or --simulate with a number")
    check_simulate(given, rasters=rasters)
    for name in ("wind_speed", "wind_from", "winds", "weather") if drawn else ():
        if given[name] is not None:
            raise ArgumentError(
                name,
                given[name],
                "simulated fires have their own wind and weather",
                problem="is for stores and rasters",
            )


def _drawn(surrogate: Surrogate, number: int, given: Mapping[str, Any]) -> FireSource:
    """Simulated fires like those of training."""
    # Imported here: only --simulate needs the `simulator` extra.
    from plumecast.workflows.fires.draw_fires import draw_fires

    refuse_other_inputs(surrogate, "simulated fires")
    fires = draw_fires(number, **drawing(surrogate, given))
    note_other_settings(surrogate, fires.settings)
    return fires


def _values(text: str, option: str) -> list[float]:
    return numbers(text, option) if text else []


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
