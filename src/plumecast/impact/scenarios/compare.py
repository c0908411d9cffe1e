"""Compare the smoke of scenarios: each against the first, at places and as maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.compute.memory import parse_memory, show_memory
from plumecast.impact.scenarios.checks import (
    common_grid,
    error_note,
    pair_notes,
    refuse_identical,
    refuse_other_interval,
    refuse_same_store,
    rough_note,
    why_unpaired,
)
from plumecast.impact.scenarios.matching import choose_pairs
from plumecast.impact.scenarios.results import (
    Meaning,
    Values,
    beside,
    difference_maps,
    place_table,
)
from plumecast.impact.scenarios.samples import (
    Sampled,
    Source,
    opened,
    sample_predicted,
    sample_stored,
)
from plumecast.scores.quantities import DEFAULT, find_quantity
from plumecast.scores.sampling import check_coverage
from plumecast.sources.places import Places, read_places
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.extrapolation import trained_notice
from plumecast.workflows.fires.origin import fires_origin
from plumecast.workflows.fires.reduce import Progress
from plumecast.workflows.fires.stated import stated
from plumecast.workflows.fires.weather import WeatherGiven
from plumecast.workflows.fires.winds import WindsGiven
from plumecast.workflows.held_out.record import model_record
from plumecast.workflows.predict import Notify, warn_of
from plumecast.workflows.statistics.smoke import column_smoke

_T = TypeVar("_T")

EXPOSURE = "(population-weighted)"
"""Name of the row with the mean over places, weighted by their population."""

EVERYWHERE = "(mean over the grid)"
"""Name of the row with the mean over all cells; without places or with maps."""

MAP_MEMORY = "4GB"
"""Memory for the smoke of all fires in all cells, which maps of paired differences need."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Scenarios against a reference."""

    reference: str
    places: xr.Dataset  # (scenario, place)
    maps: xr.Dataset | None  # (scenario, y, x)
    notes: tuple[str, ...]  # what a reader of the numbers must know


def compare_scenarios(
    scenarios: Mapping[str, Source],
    *,
    model: Surrogate | str | Path | None = None,
    places: Places | str | Path | None = None,
    maps: bool = True,
    quantity: str = DEFAULT,
    checkpoint_interval: float | None = None,
    thresholds: Iterable[float] = (),
    coverage: float = 0.95,
    paired: bool | None = None,
    winds: WindsGiven | None = None,
    weather: WeatherGiven | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda done, total, what: None,
    notify: Notify = warn_of,
) -> Comparison:
    """Differences of the mean smoke of scenarios from the first one, with intervals.

    A scenario is a store or Dataset with smoke, or, with a `model`, any fires whose smoke it
    predicts: stores, `pc.draw_fires`, rasters. With a `model` the smoke of all scenarios is
    predicted, so that much of the surrogate's error is in both and cancels. The last snapshot of
    every fire counts, as a `quantity` (by default its time mean).

    Fires with the same ignition in both scenarios are compared as pairs, others as independent
    samples; `paired` demands one of them. Intervals have the `coverage` for each place by itself
    and contain the sampling of fires (Student t, clustered by ignition), not the surrogate's error.
    `places` is a CSV table or the result of `read_places`. Maps keep the smoke of all fires in
    memory, at most `memory` (by default 4 GB).
    """
    check_coverage(coverage)
    meaning = Meaning(
        find_quantity(quantity), coverage, tuple(map(float, thresholds)), next(iter(scenarios), "")
    )
    _check_request(scenarios, places, maps, meaning)
    surrogate = load_surrogate(model) if isinstance(model, str | Path) else model
    surrogate = None if surrogate is None else column_smoke(surrogate, "scenarios are compared by")
    sources = {name: _named(name, opened, item, surrogate) for name, item in scenarios.items()}
    refuse_same_store(sources)
    grid = common_grid(sources, surrogate)
    where = places if isinstance(places, Places) or places is None else read_places(places, grid)
    everywhere = maps or where is None
    cells = _all_cells(grid) if everywhere or where is None else where
    found: dict[str, Sampled] = {}
    for name, source in sources.items():
        if surrogate is None:
            found[name] = _named(
                name, sample_stored, cells, source, meaning.quantity, checkpoint_interval, progress
            )
        else:
            found[name] = _named(
                name, sample_predicted, cells, surrogate, source, given=stated(winds, weather),
                quantity=quantity, memory=None if everywhere else memory, progress=progress,
            )  # fmt: skip
        if everywhere:
            _check_memory(found, len(sources), memory)
    _tell_extrapolation(found, surrogate, notify)
    values, notes = _matched(found, meaning, checkpoint_interval, paired, grid.sizes["x"])
    if surrogate is not None:
        notes.append(
            "smoke is predicted: intervals contain the sampling of fires, not the error of the "
            "surrogate, of which only the part that both scenarios share cancels"
        )
        notes += error_note(surrogate, [part.samples for part in found.values()])
    table = _at_places(values, where, everywhere, meaning)
    notes += rough_note(table)
    fields = difference_maps(values, grid, meaning) if maps else None
    made: dict[str, Any] = {} if surrogate is None else model_record(surrogate)
    made["fires_from"] = "; ".join(f"{key}: {fires_origin(s)}" for key, s in scenarios.items())
    fields = None if fields is None else fields.assign_attrs(made)
    return Comparison(meaning.reference, table.assign_attrs(made), fields, tuple(notes))


def _named(name: str, function: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    """Call a function for a scenario; its errors name the scenario."""
    try:
        return function(*arguments, **options)
    except PlumecastError as error:
        raise type(error)(f"scenario '{name}': {error}") from error


def _check_request(
    scenarios: Mapping[str, Source], places: object, maps: bool, meaning: Meaning
) -> None:
    if len(scenarios) < 2:
        given = f"only '{meaning.reference}'" if scenarios else "none"
        raise PlumecastError(f"a comparison needs at least two scenarios, found {given}; add one")
    wrong = [level for level in meaning.thresholds if not 0.0 <= level < np.inf]
    if wrong:
        raise PlumecastError(f"threshold {wrong[0]:g} is not a finite number ≥ 0")


def _all_cells(grid: xr.Dataset) -> Places:
    """Every cell of a grid as a place."""
    shape = (grid.sizes["y"], grid.sizes["x"])
    rows, columns = (part.ravel() for part in np.indices(shape))
    return Places((), np.arange(rows.size), rows, columns, {}, "the grid")


def _check_memory(found: Mapping[str, Sampled], total: int, memory: str | int | None) -> None:
    """Raise if maps would need more memory than there is for them."""
    limit = parse_memory(MAP_MEMORY if memory is None else memory)
    needed = 3 * total * sum(part.samples.values.nbytes for part in found.values()) / len(found)
    if needed > limit:
        raise PlumecastError(
            f"maps of so many fires need about {show_memory(needed)}, the limit is "
            f"{show_memory(limit)}; give memory=…, fewer fires, or places without maps"
        )


def _tell_extrapolation(
    found: Mapping[str, Sampled], surrogate: Surrogate | None, notify: Notify
) -> None:
    if surrogate is None:
        return
    parts = list(found.values())
    beyond = sum((part.beyond for part in parts[1:]), parts[0].beyond)
    snapshots = sum(part.samples.hours.size for part in parts)
    for notice in (beyond.notice(surrogate, snapshots), trained_notice(beyond.trained)):
        if notice is not None:
            notify(notice)


def _matched(
    found: Mapping[str, Sampled],
    meaning: Meaning,
    interval: float | None,
    paired: bool | None,
    columns: int,
) -> tuple[dict[str, Values], list[str]]:
    """The values of each scenario beside those of the reference, and what a reader must know."""
    name = meaning.quantity.name
    numbers = {
        key: _named(key, part.samples.quantity, name, interval) for key, part in found.items()
    }
    if not meaning.quantity.needs_interval:
        refuse_other_interval({key: part.samples for key, part in found.items()})
    first, *others = found
    one = found[first].samples
    values, notes = {}, []
    for key in others:
        two = found[key].samples
        refuse_identical(one, two, (first, key))
        pairs = choose_pairs(one, two, columns=columns, paired=paired, names=(first, key))
        values[key] = Values(numbers[first], numbers[key], one.ignitions, two.ignitions, pairs)
        notes += pair_notes(pairs, one, two, (first, key))
        if pairs is None and paired is None:
            notes.append(why_unpaired(one, two, columns, (first, key)))
    return values, notes


def _at_places(
    values: Mapping[str, Values], places: Places | None, everywhere: bool, meaning: Meaning
) -> xr.Dataset:
    """The table of the places, of their people if populations are known, and of all cells."""
    names = list(places.names) if places is not None else []
    means: dict[str, np.ndarray] = {}
    people = None if places is None else places.known("population")
    if people is not None and np.nansum(people) > 0.0:
        means[EXPOSURE] = np.nan_to_num(people) / np.nansum(people)
    table = {}
    for key, item in values.items():
        local = item if not everywhere else item.at(np.empty(0, dtype=np.int64))
        if places is not None and everywhere:
            local = item.at(places.cells)
        parts = [local, *(local.weighted(weights) for weights in means.values())]
        if everywhere:
            cells = item.a.shape[1]
            parts.append(item.weighted(np.full(cells, 1.0 / cells)))
        table[key] = beside(parts)
    names += [*means, *([EVERYWHERE] if everywhere else [])]
    return place_table(table, names, meaning)
