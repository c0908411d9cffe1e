"""`plumecast predict`: smoke for every snapshot of a store, or for arrival-time rasters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
import xarray as xr

from plumecast.base.checkpoints import MOST_STEPS
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.paths import check_output
from plumecast.cli.fire_options import (
    FireReader,
    at_time_of_file,
    raster_options,
    read_weather_options,
    wind_options,
)
from plumecast.cli.options import (
    CHECKPOINT_INTERVAL,
    MODEL,
    POINTS,
    POINTS_OUT,
    PRECISION,
    Given,
    ResourceOptions,
    with_options,
)
from plumecast.cli.show import count, history, note, say, table, wrote
from plumecast.data.store import open_snapshots
from plumecast.scores.quantities import QUANTITIES
from plumecast.scores.reading import OF_SEVERAL, WrittenQuantity, read_as, variable_name
from plumecast.sources.places import Places, read_places
from plumecast.sources.rasters import find_rasters
from plumecast.surrogate.error_bars.interval import (
    INTERVAL_FIELDS,
    LOWER,
    UPPER,
    interval_name,
    promise_text,
    require_calibration,
    sets_text,
)
from plumecast.surrogate.guards import EXTRAPOLATES
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.bluesky import NAMES, export_bluesky, read_clock, recorded_time
from plumecast.workflows.export import (
    FOOTPRINT,
    FORMATS,
    export_fields,
    refuse_existing_geotiffs,
)
from plumecast.workflows.fires.extrapolation import FlagCounts
from plumecast.workflows.fires.sources import Overrides
from plumecast.workflows.predict import predict_store
from plumecast.workflows.statistics.at_places import HOUR, smoke_at_places
from plumecast.workflows.statistics.point_table import (
    check_points_out,
    printed_rows,
    write_points,
)


@with_options(rasters=raster_options, wind=wind_options, compute=ResourceOptions)
def command(
    model: Path = MODEL,
    fires: list[str] = typer.Argument(
        help="A snapshot store; or, with --format or --unit, rasters.", show_default=False
    ),
    out: Path = typer.Option(
        None,
        "--out",
        "-o",
        help="Where to write: .nc, .zarr or .tif; with --names bluesky, a new folder. May be left "
        "out with --points.",
        show_default=False,
    ),
    points: Path = POINTS,
    points_out: Path = POINTS_OUT,
    footprint: bool = typer.Option(
        False,
        help="Also write where smoke is present: above the decision threshold chosen in training.",
    ),
    interval: float = typer.Option(
        None,
        help="Also write error bars with this coverage, such as 0.9: lower, upper, certain_smoke "
        "and possible_smoke; with --points, the interval of each value.",
    ),
    *,
    rasters: Given,
    wind: Given,
    compute: ResourceOptions,
    precision: str = PRECISION,
    quantity: str = typer.Option(
        None,
        help="Quantity of smoke to write: mean (time mean since ignition, µg m⁻³), dose "
        "(µg m⁻³ h), between (mean since the snapshot before, µg m⁻³), peak (the highest of these "
        "so far; with hourly --hours, of hourly means) or sum (over "
        "checkpoints, as predicted).",
        show_default="mean",
    ),
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
    names: str = typer.Option(
        NAMES[0],
        help="Names of GeoTIFFs: plumecast (fire and hours since ignition), or bluesky (hourly "
        "means, daily means and maxima by the clock); the latter needs --ignition-time with an "
        "offset from UTC, and fires on a map projection.",
    ),
) -> None:
    """Predict the smoke of every snapshot in a store, or of arrival-time rasters.

    Rasters are put on the surrogate's own grid. They contain no wind: a surrogate that uses it
    needs --weather, or --wind-speed and --wind-from. With .tif, one file is written for
    each snapshot, north up, named after the fire and its hours. A raster that cannot be used is
    reported and does not stop the others; the exit code is then 1.

    Surrogates predict a sum over checkpoints, which depends on the interval between them. The
    variable `smoke_mean` (or `smoke_dose`, `smoke_between`) does not. Files .nc and .zarr have both
    it and the sum, `smoke`; a GeoTIFF has the quantity alone, with its meaning and unit as tags.

    A prediction that is empty or stops at the largest value of training, or a fire beyond what the
    training fires cover (hours, burned area, wind, fuel, place), gives a warning and a flag: the
    coordinate `extrapolates`, or a tag of a GeoTIFF. The command counts the flagged snapshots by
    reason; error bars promise nothing for them.

    With --interval 0.9, error bars that were calibrated in training are written beside the smoke.
    In the mean over new fires like those of training, 90 % of the cells with smoke lie between
    `lower` and `upper` (of the sum over checkpoints) and between `lower_mean` and `upper_mean` (of
    the time mean). `certain_smoke` and `possible_smoke` are sets of cells: smoke is nearly
    everywhere in the one, and hardly anywhere outside of the other. The command prints what the
    number of training ignitions can promise.

    With --points, prints a row for each fire and place: whether and when smoke arrives, the highest
    hourly mean, the dose and the mean of each day since ignition, of the column of air. Fires are
    then predicted at every hour until their last one, or the last of --hours. --points-out writes
    the same. Places outside the grid have rows that say so.

    Example: `plumecast predict smoke.plume fires.zarr -o smoke.nc` or
    `plumecast predict smoke.plume fires.zarr --points towns.csv --interval 0.9` or
    `plumecast predict smoke.plume runs/*.asc --format farsite --hours 6,12 -o smoke.tif`
    """
    inputs = [model, rasters["fuels"], points, *fires]
    check_points_out(points, points_out, inputs)
    if out is None:
        of_fields = {"footprint": footprint or None, "quantity": quantity}
        _check_points_alone(points, of_fields | {"names": None if names == NAMES[0] else names})
    by_clock = out is not None and _by_clock(
        names, out, quantity=quantity, footprint=footprint, bars=interval
    )
    reader = FireReader(rasters)
    ignition_time = wind["ignition"]
    if by_clock and (ignition_time is not None or reader.reads_rasters):
        read_clock(ignition_time)
    elif by_clock:
        read_clock(recorded_time(open_snapshots(_store(fires), fields=[])))
    if out is not None:
        check_output(
            out, "folder" if by_clock else "file", endings=() if by_clock else FORMATS,
            overwrite=False, inputs=inputs,
        )  # fmt: skip
    air = at_time_of_file(wind, ignition_time) if by_clock else wind
    reader = replace(reader, weather=read_weather_options(air))
    surrogate = load_surrogate(model).on_device(compute.device, precision)
    if points is not None:
        asked: dict[str, Any] = {"interval": interval, "checkpoint_interval": checkpoint_interval}
        where = read_places(points, surrogate.grid, keep=True)
        promised = _promise(surrogate, model, interval)
        changes = Overrides(reader.hours or None, None, rasters["fuels"], rasters["drought"])
        asked["notify"] = reader.notices.append if out is None else lambda notice: None
        with compute.resources("predicting") as resources:
            asked["resources"] = replace(resources, device="cpu")  # the surrogate is on its device
            told = _at_places(surrogate, fires, where, reader, changes, asked)
        _show_places(told, promised if out is None else ())
        if points_out is not None:
            wrote(write_points(told, points_out), "the table of places")
    if out is None:
        reader.note_use(surrogate)
        reader.finish(done=told.sizes["fire"])
        return
    keep = not by_clock and out.suffix != ".tif"
    outputs = {field.name: field.attrs for field in surrogate.outputs.fields}
    reading = read_as(outputs, "dose" if by_clock else quantity, checkpoint_interval)
    if quantity is None and reading.names and not reading.quantity.needs_interval:
        note(
            "the surrogate does not record the interval between checkpoints, so that smoke is "
            "written as the sum over them; state it with --checkpoint-interval for the time mean"
        )
    if interval is not None:
        reading = _with_bands(reading, surrogate, keep=keep)
    limits = surrogate.record.thresholds
    if footprint and limits is None:
        raise PlumecastError(
            f"{model} has no decision threshold, which `plumecast train` chooses on fires that a "
            "fit has not seen; train it again, without --folds 0"
        )
    threshold = limits.decision if footprint and limits is not None else None
    promised = _promise(surrogate, model, interval)
    reader.note_use(surrogate)
    if out.suffix == ".tif":
        bars = _bars(surrogate, INTERVAL_FIELDS) if interval is not None else ()
        fields = reading.written((*surrogate.outputs.names, *bars), keep=keep)
        fields += [FOOTPRINT] if footprint else []
        refuse_existing_geotiffs(out, _known_snapshots(surrogate, fires, reader), fields)
    with compute.resources("predicting") as resources:
        common: dict[str, Any] = {
            "threshold": threshold,
            "interval": interval,
            "resources": replace(resources, device="cpu"),  # the surrogate is on its device
            "notify": reader.notices.append,
        }
        dense = 1.0 if by_clock else None  # hours of the clock, whatever hours are asked for
        if reader.reads_rasters:
            blocks = predict_store(surrogate, reader.read(surrogate, fires, step=dense), **common)
        else:
            changes = Overrides(reader.hours or None, dense, rasters["fuels"], rasters["drought"])
            common["weather"] = reader.weather
            blocks = predict_store(surrogate, _store(fires), changes, **common)
        flagged = FlagCounts()
        made, line = reading.applied(flagged.counted(blocks), keep=keep), history(model)
        if by_clock:
            written = export_bluesky(made, out, ignition_time=ignition_time, history=line)
        else:
            title = f"Smoke predicted by {model.name}"
            written = export_fields(made, out, title=title, history=line)
    if written.snapshots:
        say(f"predicted {written.snapshots} snapshots")
        # Bands promise nothing where every fire extrapolates.
        promised = [] if flagged.beyond == flagged.snapshots else promised
        reasons = flagged.text(interval is not None)
        lines = CLOCK.splitlines() if by_clock else _contents(reading, keep=keep)
        for line in [*lines, *promised, *filter(None, [reasons])]:
            say(line)
        wrote(written.where, "the smoke")
    if out.suffix == ".tif" and written.snapshots and not written.has_crs:
        note("the surrogate's grid has no coordinate system, so the files have none")
    reader.finish(done=written.snapshots)


def _check_points_alone(points: Path | None, of_fields: Mapping[str, Any]) -> None:
    """Raise if neither fields nor places are asked for, or options of fields without them."""
    if points is None:
        raise PlumecastError("give --out for the smoke of every cell, or --points, or both")
    for name, value in of_fields.items():
        if value is not None:
            problem = "is of the smoke of every cell"
            raise ArgumentError(name, value, "give --out too, or leave it out", problem=problem)


def _at_places(
    surrogate: Surrogate,
    fires: list[str],
    places: Places,
    reader: FireReader,
    changes: Overrides,
    asked: dict[str, Any],
) -> xr.Dataset:
    """What each fire brings to each place; files that cannot be read are problems of the reader."""
    if not reader.reads_rasters:
        asked = asked | {"weather": reader.weather}
        return smoke_at_places(surrogate, _store(fires), places, changes, **asked)
    try:
        return smoke_at_places(surrogate, reader.read(surrogate, fires), places, **asked)
    except PlumecastError:
        if reader.problems:  # of every file
            reader.finish(done=0)
        raise


MOST_ROWS = 60
"""Rows of a table that are printed."""


def _show_places(told: xr.Dataset, promised: Sequence[str]) -> None:
    """The table, what its numbers are, and what its intervals promise."""
    titles, rows = printed_rows(told)
    said = f"{count(told.sizes['fire'], 'fire')} at {count(told.sizes['place'], 'place')}"
    table(f"smoke of {said}", titles, rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        say(f"… and {len(rows) - MOST_ROWS} more rows; --points-out writes all of them")
    longest = told.attrs["longest_step_hours"]
    means = "hourly means" if longest <= HOUR + 1e-6 else f"means of up to {longest:.3g} h"
    say(
        f"{told.attrs['smoke']}: concentrations are means over the column of air; hours and days "
        f"are those since ignition, and peaks are {means}"
    )
    if "footprint" not in told:
        note(
            "the surrogate has no decision threshold, so that it does not tell whether and when "
            "smoke arrives; train it again, without --folds 0"
        )
    if longest > HOUR + 1e-6:
        note(
            f"without --hours, fires are followed in at most {MOST_STEPS} steps; give their last "
            "hour for hourly means"
        )
    if promised and (told[EXTRAPOLATES] != 0).all():
        promised = ["every fire lies beyond the training fires: error bars promise nothing for it"]
    for line in promised:
        say(line)
    if "coverage" in told.attrs:
        say(
            "intervals of peaks and of daily means are the relative error bars of the dose at that "
            "hour; arrival: from the first hour of possible smoke to that of certain smoke"
        )


CLOCK = (
    "hourly: mean smoke of each hour (µg m⁻³), named after its begin in UTC; daily_average and "
    "daily_maximum: of the hours of each day"
)


def _by_clock(
    names: str, out: Path, *, quantity: str | None, footprint: bool, bars: float | None
) -> bool:
    """Whether hourly GeoTIFFs with the names of BlueSky are asked for; raises if they cannot be."""
    if names not in NAMES:
        raise ArgumentError("names", names, f"choose from {', '.join(NAMES)}", problem="is unknown")
    if names == NAMES[0]:
        return False
    others = {"quantity": quantity, "footprint": footprint or None, "interval": bars}
    for name, value in others.items():
        if value is not None:
            raise ArgumentError(
                name, value, "the names 'bluesky' are of hourly smoke alone; leave it out"
            )
    if out.suffix in FORMATS:
        raise PlumecastError(
            f"{out}: with the names 'bluesky', the output is a folder of GeoTIFFs; give its path "
            "without an ending"
        )
    return True


def _bars(surrogate: Surrogate, fields: Sequence[str]) -> dict[str, str]:
    """The error bars of every output that has them: variable → output."""
    outputs = zip(surrogate.outputs.names, surrogate.calibrations(), strict=True)
    return {
        interval_name(field, name if number else None): name
        for number, (name, table) in enumerate(outputs)
        if table is not None
        for field in fields
    }


def _with_bands(reading: WrittenQuantity, surrogate: Surrogate, *, keep: bool) -> WrittenQuantity:
    """The reading with the error bars of every output that has them."""
    bars = _bars(surrogate, (LOWER, UPPER))
    bands = {bar: name for bar, name in bars.items() if name in reading.names}
    if not bands:
        return reading
    if reading.quantity.name in OF_SEVERAL and not keep:
        raise ArgumentError(
            "quantity",
            reading.quantity.name,
            "use the quantity 'mean', or write .nc or .zarr, which have the sums and their "
            "error bars",
            problem="has no error bars, which are of smoke since ignition",
        )
    return replace(reading, bands=bands)


def _contents(reading: WrittenQuantity, *, keep: bool) -> Iterator[str]:
    """What the smoke variables of the file are, and their error bars."""
    quantity = reading.quantity
    for name in reading.names:
        made = variable_name(name, quantity.name)
        yield f"{made}: {quantity.long_name} ({quantity.shown_units})"
        bands = [band for band, smoke in reading.bands.items() if smoke == name]
        if bands and quantity.name not in OF_SEVERAL:
            ends = (variable_name(band, quantity.name) for band in bands)
            yield f"{', '.join(ends)}: the ends of its error bars"
        if bands and keep and quantity.needs_interval:
            yield f"{', '.join(bands)}: the ends of the error bars of the sum"
        if keep and made != name:
            yield f"{name}: {QUANTITIES['sum'].long_name}, as predicted"


def _known_snapshots(
    surrogate: Surrogate, fires: list[str], reader: FireReader
) -> list[tuple[str, float]]:
    """(fire, hours) of the snapshots, as far as they are known before the files are read."""
    if reader.reads_rasters:
        return [(path.stem, time) for path in find_rasters(fires) for time in reader.hours]
    data = open_snapshots(_store(fires), fields=list(surrogate.inputs.names))
    names = data.fire_id.values.astype(str)
    if reader.hours:
        return [(name, time) for name in dict.fromkeys(names.tolist()) for time in reader.hours]
    return list(zip(names, data.hours.values, strict=True))


def _store(fires: list[str]) -> str:
    if len(fires) > 1 or Path(fires[0]).suffix.lower() in (".asc", ".tif", ".tiff", ".img"):
        raise PlumecastError(
            f"{fires[0]}: expected one snapshot store; for rasters, add --format or --unit"
        )
    return fires[0]


def _promise(surrogate: Surrogate, model: Path, interval: float | None) -> list[str]:
    """What the error bars and the sets promise; raises if the surrogate has none."""
    if interval is None:
        return []
    try:
        table = require_calibration(surrogate.record)
    except PlumecastError as error:
        raise PlumecastError(f"{model}: {error}") from None
    lines = [promise_text(table, interval), sets_text(table, interval)]
    for name in surrogate.outputs.names[1:]:
        bars = surrogate.output(name).error_bars
        promise = "no error bars" if bars is None else promise_text(bars, interval)
        lines.append(f"{name}: {promise}")
    return lines
