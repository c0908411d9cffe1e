"""Smoke of many fires at places: means, exceedance probabilities and quantiles with intervals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.version import __version__
from plumecast.compute.blocks import Runner
from plumecast.data.schema import final_rows
from plumecast.scores.sampling import quantiles_with_intervals
from plumecast.sources.places import Places, read_places
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.origin import fires_origin
from plumecast.workflows.fires.reduce import Fires, FireSource, Progress
from plumecast.workflows.fires.weather import WeatherGiven
from plumecast.workflows.fires.winds import WindsGiven
from plumecast.workflows.held_out.record import model_record
from plumecast.workflows.predict import Notify, warn_of
from plumecast.workflows.statistics.estimates import (
    Corrected,
    corrected_mean,
    corrected_share,
    nested_shares,
    what_intervals_contain,
)
from plumecast.workflows.statistics.labels import Labelled, interval_variables, quantity_meaning
from plumecast.workflows.statistics.place_samples import PlaceSamples, predicted_at, stored_at
from plumecast.workflows.statistics.place_sums import PlaceSums, place_sums
from plumecast.workflows.statistics.request import COVERAGE, Request
from plumecast.workflows.statistics.results import axis_coords
from plumecast.workflows.statistics.smoke import calibrated_smoke, chosen_quantity, only_output
from plumecast.workflows.statistics.truth import LEFT_OUT, open_truth, truth_name

PLACE = "place"


def evaluate_points(
    surrogate: Surrogate,
    fires: Fires | FireSource,
    places: Places | str | Path,
    *,
    thresholds: Iterable[float] = (),
    quantiles: Iterable[float] = (),
    quantity: str | None = None,
    checkpoint_interval: float | None = None,
    coverage: float = COVERAGE,
    truth: xr.Dataset | str | Path | None = None,
    winds: WindsGiven | None = None,
    weather: WeatherGiven | None = None,
    final: bool = False,
    device: str = "cpu",
    precision: str = "float64",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, what: None,
    notify: Notify = warn_of,
) -> xr.Dataset:
    """Mean, exceedance probabilities and quantiles of the predicted smoke of many fires at places.

    `places` is a table (`read_places`) or what was read from it. The other arguments, and the names
    and meanings of the variables, are those of `ensemble_statistics`, on the dimension `place`;
    quantiles are those of the predictions, with intervals for the sampling of fires only. Where the
    table has a population, `exposure` is the population-weighted mean and `persons_above` the mean
    number of persons above each threshold, with intervals clustered by ignition.
    """
    at = places if isinstance(places, Places) else read_places(places, surrogate.grid)
    request = Request(
        tuple(map(float, thresholds)),
        tuple(map(float, quantiles)),
        quantity=chosen_quantity(surrogate, quantity),
        interval=checkpoint_interval,
        coverage=coverage,
        expected=calibrated_smoke(surrogate) if truth is None else None,
    )
    known = None if truth is None else open_truth(surrogate, truth)
    run: dict[str, Any] = {
        "quantity": request.quantity,
        "interval": request.interval,
        "device": device,
        "precision": precision,
        "memory": memory,
    }
    paired = None
    if known is not None:
        name, interval = truth_name(surrogate), request.interval
        observed = stored_at(at, known, name=name, quantity=request.quantity, interval=interval)
        observed = observed.at(final_rows(known)) if final else observed
        paired = observed, predicted_at(at, surrogate, known, final=final, **run)
    cheap = predicted_at(
        at,
        surrogate,
        fires,
        winds=winds,
        weather=weather,
        final=final,
        runner=runner,
        progress=progress,
        notify=notify,
        **run,
    )
    found = place_statistics(surrogate, at, cheap, request, paired)
    found = found.assign_attrs(fires_from=fires_origin(fires))
    return found if known is None else found.assign_attrs({LEFT_OUT: known.attrs[LEFT_OUT]})


def place_statistics(
    surrogate: Surrogate,
    places: Places,
    cheap: PlaceSamples,
    request: Request,
    truth: tuple[PlaceSamples, PlaceSamples] | None = None,
) -> xr.Dataset:
    """The labelled statistics of samples at places; `truth` has true and predicted samples."""
    field = only_output(surrogate)
    sums = place_sums(cheap, request, truth)
    what, unit = quantity_meaning(request.quantity, field)
    share = request.coverage
    best = corrected_mean(*sums.of(0), share)
    found = _with_estimate(best, "mean_smoke", f"mean over fires of the {what}", unit, share)
    if request.thresholds:
        label = f"probability that the {what} exceeds the threshold"
        count = len(request.thresholds)
        parts = [corrected_share(*sums.of(1 + number), share) for number in range(count)]
        parts = nested_shares(parts, request.thresholds)
        found |= _with_estimate(parts, "exceedance", label, "1", share, lead=("threshold",))
    if request.quantiles:
        found |= _quantiles(cheap, request, f"quantile of the {what}", unit)
    variables = {name: ((*lead, PLACE), v, attrs) for name, (lead, v, attrs) in found.items()}
    variables |= _exposure(places, sums, request, what, unit)
    attrs: dict[str, Any] = {
        "title": "Smoke at places",
        "history": f"plumecast {__version__}",
        "places": places.source,
        "fires": int(np.unique(cheap.fires).size),
        "snapshots": sums.samples,
        "ignitions": int(sums.counts.size),
        "quantity": request.quantity,
        "units": unit,
        "coverage": share,
        "intervals_contain": what_intervals_contain(
            truth=truth is not None, expected=request.expected
        ),
        **model_record(surrogate),
    }
    if request.expected is not None:
        attrs["calibration_ignitions"] = request.expected.groups
    if truth is not None:
        attrs["true_ignitions"] = int(np.unique(truth[0].ignitions).size)
    coords = {PLACE: list(places.names)} | axis_coords(request, field)
    coords |= {name: (PLACE, numbers) for name, numbers in places.numbers.items()}
    coords |= _cell_centres(surrogate, places)
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def _cell_centres(surrogate: Surrogate, places: Places) -> dict[str, Any]:
    """Where the cells of the places lie on the grid, if it has x and y."""
    grid, index = surrogate.grid, {"x": places.columns, "y": places.rows}
    return {
        f"cell_{axis}": (
            PLACE, grid[axis].values[at], {"long_name": f"{axis} of the cell", "units": "m"}
        )
        for axis, at in index.items()
        if axis in grid.coords
    }  # fmt: skip


def _with_estimate(
    found: Corrected | list[Corrected],
    name: str,
    label: str,
    unit: str,
    coverage: float,
    *,
    lead: tuple[str, ...] = (),
) -> Labelled:
    values = found.mean if isinstance(found, Corrected) else np.stack([p.mean for p in found])
    own: Labelled = {name: (lead, values, {"long_name": label, "units": unit})}
    return own | interval_variables(found, name, label, unit, coverage, lead=lead)


def _quantiles(cheap: PlaceSamples, request: Request, label: str, unit: str) -> Labelled:
    values = cheap.quantity(request.quantity, request.interval)
    _, index = np.unique(cheap.ignitions, return_inverse=True)
    parts = quantiles_with_intervals(values, index, request.quantiles, request.coverage)
    words = ("", "lower end of the ", "upper end of the ")
    named = zip(("", "_lower", "_upper"), words, parts, strict=True)
    return {
        f"smoke_quantile{ending}": (
            ("quantile",),
            part,
            {"long_name": f"{prefix}{label}", "units": unit, "comment": "of the predictions"},
        )
        for ending, prefix, part in named
    }


def _exposure(
    places: Places, sums: PlaceSums, request: Request, what: str, unit: str
) -> dict[str, Any]:
    """Population-weighted mean and persons above thresholds; nothing without a population.

    Sums over places are taken before the variance, so that places under one plume are not taken
    for independent. Places without a number have no population.
    """
    population = places.known("population")
    if population is None or not np.nansum(population) > 0.0:
        return {}
    persons = np.nan_to_num(population)
    total, share = float(persons.sum()), request.coverage
    best = corrected_mean(*sums.of(0, persons / total), share)
    found = _with_estimate(
        best, "exposure", f"population-weighted mean over fires of the {what}", unit, share
    )
    if request.thresholds:
        count = len(request.thresholds)
        parts = [
            corrected_share(*sums.of(1 + number, persons / total), share) for number in range(count)
        ]
        label = f"mean number of persons where the {what} exceeds the threshold"
        more = _with_estimate(parts, "persons_above", label, "1", share, lead=("threshold",))
        for ending in ("", "_lower", "_upper", "_surrogate"):
            if (name := f"persons_above{ending}") in more:
                lead, shares, attrs = more[name]
                more[name] = (lead, shares * total, attrs)
        found |= more
    return {name: (lead, values, attrs) for name, (lead, values, attrs) in found.items()}
