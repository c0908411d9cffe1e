"""Compare the smoke of scenarios: each against the first, at places and as maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.values import setting
from plumecast.compute.resources import LOCAL, Resources, parse_memory, show_memory
from plumecast.impact.comparison import (
    Comparison,
    Meaning,
    Values,
    beside,
    difference_maps,
    place_table,
)
from plumecast.impact.scenarios import (
    CONTENT,
    Pairs,
    Source,
    choose_pairs,
    common_grid,
    match,
    opened,
    refuse_same_store,
    sample_predicted,
    sample_stored,
)
from plumecast.scores.quantities import DEFAULT, find_quantity
from plumecast.scores.reading import AS_STORED, Reading
from plumecast.scores.sampling import check_coverage
from plumecast.sources.places import Places, read_places
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.weather.read import WeatherLike, accepts_winds
from plumecast.workflows.fires.conditions import user_weather
from plumecast.workflows.fires.extrapolation import Extrapolation, trained_notice
from plumecast.workflows.fires.sources import fires_origin
from plumecast.workflows.held_out.record import model_record
from plumecast.workflows.predict import Notify, warn_of
from plumecast.workflows.statistics.request import Request, Statistics, column_smoke
from plumecast.workflows.statistics.samples import PlaceSamples, Sampled

_T = TypeVar("_T")

EXPOSURE = "(population-weighted)"
"""Name of the row with the mean over places, weighted by their population."""

EVERYWHERE = "(mean over the grid)"
"""Name of the row with the mean over all cells; without places or with maps."""

LONGER = 0.01
"""Relative difference of the hours of two scenarios above which a note is given: the smoke of
longer fires cannot be compared with that of shorter ones."""

ERROR_BAR = 0.9
"""Coverage of the error bar that a note states."""

LAST = Statistics(final=True)
"""The last snapshot of every fire counts."""

MAP_MEMORY = "4GB"
"""Memory for the smoke of all fires in all cells, which maps of paired differences need."""


@dataclass(frozen=True, slots=True)
class Comparing:
    """How scenarios are compared.

    `maps` are made beside the table of places. Fires with the same ignition in both scenarios are
    compared as pairs, others as independent samples; `paired` demands one of them. Intervals have
    the `coverage` for each place by itself.
    """

    maps: bool = True
    paired: bool | None = setting(
        None,
        "Compare pairs of fires with the same ignition, or all fires as independent.",
        option="paired/--unpaired",
        default_text="paired where at least half of the ignitions are common",
    )
    coverage: float = setting(
        0.95, "Nominal coverage of the intervals; those marked rough reach less."
    )

    def __post_init__(self) -> None:
        check_coverage(self.coverage)


AS_USUAL = Comparing()
"""Maps and tables, pairs where most ignitions are common."""


@accepts_winds
@folded_arguments(
    reading=Reading,
    comparing=Comparing,
    resources=Resources,
    renamed={"checkpoint_interval": "interval"},
)
def compare_scenarios(
    scenarios: Mapping[str, Source],
    reading: Reading = AS_STORED,
    comparing: Comparing = AS_USUAL,
    *,
    model: Surrogate | str | Path | None = None,
    places: Places | str | Path | None = None,
    weather: WeatherLike | None = None,
    resources: Resources = LOCAL,
    notify: Notify = warn_of,
) -> Comparison:
    """Differences of the mean smoke of scenarios from the first one, with intervals.

    Parameters
    ----------
    scenarios
        Each is a store or Dataset with smoke, or, with a `model`, any fires whose smoke it
        predicts: stores, `pc.draw_fires`, rasters. The last snapshot of every fire counts.
    reading
        What is compared: a quantity of smoke (by default its time mean), and the share of fires
        above its thresholds. Its hours replace those of stores whose smoke is predicted.
    comparing
        Maps, pairs and the coverage of intervals. These contain the sampling of fires (Student t,
        clustered by ignition), not the surrogate's error.
    model
        A surrogate that predicts the smoke of all scenarios, so that much of its error is in both
        and cancels.
    places
        A CSV table or the result of `read_places`.
    weather
        As for `with_weather`; it replaces that of stores and Datasets.
    resources
        Maps keep the smoke of all fires in memory, at most that of the resources (by default 4 GB).
    notify
        Called once if snapshots lie beyond the training fires, and once if fires were in training.
    """
    reference = next(iter(scenarios), "")
    _check_request(scenarios, reference)
    reading = replace(reading, quantity=reading.quantity_or(DEFAULT))
    request = Request(reading, LAST)
    surrogate = load_surrogate(model) if isinstance(model, str | Path) else model
    surrogate = None if surrogate is None else column_smoke(surrogate, "scenarios are compared by")
    if surrogate is None and reading.hours:
        raise ArgumentError(
            "hours",
            ",".join(f"{hour:g}" for hour in reading.hours),
            "give a model, or leave it out to compare the stored smoke",
            problem="is for fires whose smoke is predicted",
        )
    sources = {name: _named(name, opened, item, surrogate) for name, item in scenarios.items()}
    refuse_same_store(sources)
    grid = common_grid(sources, surrogate)
    where = places if isinstance(places, Places) or places is None else read_places(places, grid)
    everywhere = comparing.maps or where is None
    cells = _all_cells(grid) if everywhere or where is None else where
    blocks = replace(resources, memory=None if everywhere else resources.memory)
    found: dict[str, Sampled] = {}
    for name, source in sources.items():
        if surrogate is None:
            found[name] = _named(name, sample_stored, cells, source, request, resources)
        else:
            found[name] = _named(
                name, sample_predicted, cells, surrogate, source, request,
                weather=user_weather(weather), resources=blocks,
            )  # fmt: skip
        if everywhere:
            _check_memory(found, len(sources), resources.memory)
    _tell_extrapolation(found, surrogate, notify)
    meaning = Meaning(
        find_quantity(request.quantity), comparing.coverage, request.thresholds, reference
    )
    samples = {name: part.joined() for name, part in found.items()}
    values, notes = _matched(samples, meaning, reading.interval, comparing.paired, grid.sizes["x"])
    if surrogate is not None:
        notes.append(
            "smoke is predicted: intervals contain the sampling of fires, not the error of the "
            "surrogate, of which only the part that both scenarios share cancels"
        )
        notes += error_note(surrogate, list(samples.values()))
    table = _at_places(values, where, everywhere, meaning)
    notes += rough_note(table)
    fields = difference_maps(values, grid, meaning) if comparing.maps else None
    made: dict[str, Any] = {} if surrogate is None else model_record(surrogate)
    made["fires_from"] = "; ".join(f"{key}: {fires_origin(s)}" for key, s in scenarios.items())
    fields = None if fields is None else fields.assign_attrs(made)
    return Comparison(meaning.reference, table.assign_attrs(made), fields, tuple(notes))


def _named(name: str, function: Callable[..., _T], *arguments: Any, **options: Any) -> _T:
    """Call a function for a scenario; its errors name the scenario."""
    try:
        return function(*arguments, **options)
    except PlumecastError as error:
        raise error.at(f"scenario '{name}'") from error


def _check_request(scenarios: Mapping[str, Source], reference: str) -> None:
    if len(scenarios) < 2:
        shown = f"only '{reference}'" if scenarios else "none"
        raise PlumecastError(f"a comparison needs at least two scenarios, found {shown}; add one")


def _all_cells(grid: xr.Dataset) -> Places:
    """Every cell of a grid as a place."""
    shape = (grid.sizes["y"], grid.sizes["x"])
    rows, columns = (part.ravel() for part in np.indices(shape))
    return Places((), np.arange(rows.size), rows, columns, {}, "the grid")


def _check_memory(found: Mapping[str, Sampled], total: int, memory: str | int | None) -> None:
    """Raise if maps would need more memory than there is for them."""
    limit = parse_memory(MAP_MEMORY if memory is None else memory)
    sizes = [sum(part.values.nbytes for part in item.parts) for item in found.values()]
    needed = 3 * total * sum(sizes) / len(found)
    if needed > limit:
        raise PlumecastError(
            f"maps of so many fires need about {show_memory(needed)}, the limit is "
            f"{show_memory(limit)}; give more memory, fewer fires, or places without maps"
        )


def _tell_extrapolation(
    found: Mapping[str, Sampled], surrogate: Surrogate | None, notify: Notify
) -> None:
    if surrogate is None:
        return
    beyond = sum((item.beyond for item in found.values()), Extrapolation())
    snapshots = sum(part.hours.size for item in found.values() for part in item.parts)
    for notice in (beyond.notice(surrogate, snapshots), trained_notice(beyond.trained)):
        if notice is not None:
            notify(notice)


def _matched(
    samples: Mapping[str, PlaceSamples],
    meaning: Meaning,
    interval: float | None,
    paired: bool | None,
    columns: int,
) -> tuple[dict[str, Values], list[str]]:
    """The values of each scenario beside those of the reference, and what a reader must know."""
    name = meaning.quantity.name
    numbers = {key: _named(key, part.quantity, name, interval) for key, part in samples.items()}
    if not meaning.quantity.needs_interval:
        refuse_other_interval(samples)
    first, *others = samples
    one = samples[first]
    values, notes = {}, []
    for key in others:
        two = samples[key]
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
    people = None if places is None else places.numbers.get("population")
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


def refuse_other_interval(samples: Mapping[str, PlaceSamples]) -> None:
    """Raise if sums over checkpoints have different intervals."""
    known = {name: part.interval for name, part in samples.items() if part.interval is not None}
    (first, hours), *others = known.items() or [("", None)]
    for name, other in others:
        if other != hours:
            raise ArgumentError(
                "quantity",
                "sum",
                "compare the time mean, 'mean'",
                problem=f"is summed over checkpoints {hours:g} h apart in '{first}' and {other:g} "
                f"h apart in '{name}'",
            )


def refuse_identical(one: PlaceSamples, two: PlaceSamples, names: tuple[str, str]) -> None:
    """Raise if all fires of two scenarios are identical."""
    if np.array_equal(np.sort(one.labels[CONTENT]), np.sort(two.labels[CONTENT])):
        raise PlumecastError(
            f"all {one.fires.size} fires of '{names[0]}' and '{names[1]}' are identical, fire and "
            "smoke: there is nothing to compare; give other fires, or a change that they reach"
        )


def pair_notes(
    pairs: Pairs | None, one: PlaceSamples, two: PlaceSamples, names: tuple[str, str]
) -> list[str]:
    """Notes on the durations of two scenarios, and on fires that are left out of the pairs."""
    found = []
    if pairs is not None:
        unused = [int((part < 0).sum()) for part in (pairs.first, pairs.second)]
        if any(unused):
            found.append(
                f"{pairs.ignitions.size} pairs of {pairs.shared} common ignitions are compared; "
                f"{unused[0]} fires of '{names[0]}' and {unused[1]} of '{names[1]}' have no "
                "partner and are left out"
            )
        if pairs.moved:
            found.append(
                f"{pairs.moved} names occur in '{names[0]}' and '{names[1]}', but begin at other "
                "places: they are not counted as the same ignition"
            )
    hours = [float(np.mean(part.hours)) for part in (one, two)]
    if abs(hours[1] - hours[0]) > LONGER * hours[0]:
        found.append(
            f"the fires of '{names[0]}' last {hours[0]:.3g} h and those of '{names[1]}' "
            f"{hours[1]:.3g} h in the mean: the difference contains that of the durations"
        )
    elif pairs is not None:
        first, second = pairs.means(one.hours[:, None], two.hours[:, None])
        other = int((np.abs(second - first) > LONGER * first).sum())
        if other:
            found.append(
                f"{other} of {first.size} pairs do not last equally long: their "
                "difference contains that of the durations; --hours gives a common one"
            )
    return found


def why_unpaired(one: PlaceSamples, two: PlaceSamples, columns: int, names: tuple[str, str]) -> str:
    """What scenarios that are not paired have in common."""
    pairs = match(one, two, columns)
    text = (
        f"'{names[0]}' and '{names[1]}' share {pairs.shared} ignitions and are compared as "
        "independent fires; with the same ignitions in both, far fewer fires are needed"
    )
    if pairs.moved:
        text += f" ({pairs.moved} have the same name but begin at other places)"
    return text


def rough_note(table: xr.Dataset) -> list[str]:
    """A note that names the places whose intervals are too short for their skewed differences."""
    names = [str(name) for name in table["place"].values[table["rough"].values.any(axis=0)]]
    if not names:
        return []
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return [
        f"a few fires make most of the difference at {shown}: intervals there are too short; add "
        "fires"
    ]


def error_note(surrogate: Surrogate, samples: Sequence[PlaceSamples]) -> list[str]:
    """A note on the size of the surrogate's error at the mean of the predicted smoke."""
    values = np.concatenate([part.values[part.values > 0.0] for part in samples])
    if surrogate.error_bars is None:
        return ["this surrogate has no error bars; `plumecast train STORE --all` makes them"]
    if values.size == 0:
        return []
    mean = values.mean()
    lower, upper = surrogate.error_bars.interval(np.array([mean]), ERROR_BAR)
    return [
        "the surrogate's error for one fire in one cell: where it predicts the mean of its smoky "
        f"cells, {100 * ERROR_BAR:g} % of the true values are {lower[0] / mean:.2g} to "
        f"{upper[0] / mean:.2g} times the prediction, for fires like those of training"
    ]
