"""Compare the smoke of scenarios: each against the first, at places and as maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.ignitions import one_ignition
from plumecast.base.values import setting
from plumecast.compute.resources import LOCAL, Resources, parse_memory, show_memory
from plumecast.impact.comparison import (
    Comparison,
    Meaning,
    Values,
    difference_maps,
    place_table,
)
from plumecast.impact.scenarios import (
    CONTENT,
    Pairs,
    Source,
    choose_pairs,
    common_grid,
    opened,
    refuse_same_store,
    sample_smoke,
)
from plumecast.scores.quantities import DEFAULT, find_quantity
from plumecast.scores.reading import AS_STORED, Reading
from plumecast.scores.sampling import check_coverage
from plumecast.sources.places import Places, read_places
from plumecast.surrogate.guards import Notice
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.weather.read import WeatherLike, accepts_winds
from plumecast.workflows.fires.conditions import user_weather
from plumecast.workflows.fires.extrapolation import Extrapolation, trained_notice
from plumecast.workflows.fires.sources import FireSource, fires_origin
from plumecast.workflows.held_out.record import model_record
from plumecast.workflows.predict import Notify, warn_of
from plumecast.workflows.statistics.request import (
    INDEPENDENT_HELP,
    Request,
    Statistics,
    are_drawn,
    column_smoke,
)
from plumecast.workflows.statistics.samples import PlaceSamples, Sampled

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

PREDICTED = (
    "smoke is predicted: intervals contain the sampling of fires, not the error of the surrogate, "
    "of which only the part that both scenarios share cancels"
)

MAP_MEMORY = "4GB"
"""Memory for the smoke of all fires in all cells, which maps of paired differences need."""


@dataclass(frozen=True, slots=True)
class Comparing:
    """How scenarios are compared.

    `maps` are made beside the table of places. Fires with the same ignition in both scenarios are
    compared as pairs, others as independent samples; `paired` demands one of them. `independent` is
    that of `Statistics`. Intervals have the `coverage` for each place by itself.
    """

    maps: bool = True
    paired: bool | None = setting(
        None,
        "Compare pairs of fires with the same ignition, or all fires as independent.",
        option="paired/--unpaired",
        default_text="paired where at least half of the ignitions are common",
    )
    independent: bool = setting(False, INDEPENDENT_HELP)
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
    if len(scenarios) < 2:
        shown = f"only '{reference}'" if scenarios else "none"
        raise PlumecastError(f"a comparison needs at least two scenarios, found {shown}; add one")
    last = replace(LAST, independent=comparing.independent)
    request = Request(replace(reading, quantity=reading.quantity_or(DEFAULT)), last)
    surrogate = load_surrogate(model) if isinstance(model, str | Path) else model
    surrogate = None if surrogate is None else column_smoke(surrogate, "scenarios are compared by")
    if surrogate is None and reading.hours:
        raise ArgumentError(
            "hours",
            ",".join(f"{hour:g}" for hour in reading.hours),
            "give a model, or leave it out to compare the stored smoke",
            problem="is for fires whose smoke is predicted",
        )
    sources = {}
    for name, item in scenarios.items():
        with _naming(name):
            sources[name] = opened(item, surrogate)
    refuse_same_store(sources)
    grid = common_grid(sources, surrogate)
    where = places if isinstance(places, Places) or places is None else read_places(places, grid)
    everywhere = comparing.maps or where is None
    cells = where
    if everywhere or cells is None:  # every cell as a place
        rows, columns = (part.ravel() for part in np.indices((grid.sizes["y"], grid.sizes["x"])))
        cells = Places((), np.arange(rows.size), rows, columns, {}, "the grid")
    blocks = replace(resources, memory=None if everywhere else resources.memory)
    user_air = user_weather(weather)
    sampled: dict[str, Sampled] = {}
    for name, source in sources.items():
        with _naming(name):
            sampled[name] = sample_smoke(
                cells, source, request, surrogate, weather=user_air, resources=blocks
            )
        if everywhere:
            _check_memory(sampled, len(sources), resources.memory)
    samples = _by_ignition(sampled, sources, request, notify)
    meaning = Meaning(
        find_quantity(request.quantity), comparing.coverage, request.thresholds, reference
    )
    values, notes = _matched(samples, meaning, reading.interval, comparing.paired, grid.sizes["x"])
    record: dict[str, Any] = {}
    if surrogate is not None:
        _tell_extrapolation(sampled, surrogate, notify)
        notes += [PREDICTED, *error_note(surrogate, list(samples.values()))]
        record = model_record(surrogate)
    record["fires_from"] = "; ".join(f"{key}: {fires_origin(s)}" for key, s in scenarios.items())
    table = _at_places(values, where, everywhere, meaning).assign_attrs(record)
    notes += rough_note(table)
    maps = difference_maps(values, grid, meaning).assign_attrs(record) if comparing.maps else None
    return Comparison(reference, table, maps, tuple(notes))


def _by_ignition(
    sampled: Mapping[str, Sampled],
    sources: Mapping[str, xr.Dataset | FireSource],
    request: Request,
    notify: Notify,
) -> dict[str, PlaceSamples]:
    """Joined samples in which an ignition has the same name in all scenarios."""
    made: dict[str, PlaceSamples] = {}
    for key, part in sampled.items():
        own = replace(request, drawn=are_drawn(sources[key]))
        made[key], alike = part.joined().by_ignition(own)
        if alike is not None:
            notify(Notice(alike.measure, f"scenario '{key}': {alike.text}", alike.loud))
    if request.statistics.independent:
        return made
    names = one_ignition(chain(*(np.unique(part.ignitions).tolist() for part in made.values())))
    for key, one in made.items():
        known = zip(one.fires.tolist(), one.ignitions.tolist(), strict=True)
        made[key] = one.with_ignitions({fire: names[name] for fire, name in known})
    return made


@contextmanager
def _naming(scenario: str) -> Iterator[None]:
    """Errors name the scenario."""
    try:
        yield
    except PlumecastError as error:
        raise error.at(f"scenario '{scenario}'") from error


def _check_memory(sampled: Mapping[str, Sampled], total: int, memory: str | int | None) -> None:
    """Raise if maps would need more memory than there is for them."""
    limit = parse_memory(MAP_MEMORY if memory is None else memory)
    sizes = [sum(part.values.nbytes for part in item.parts) for item in sampled.values()]
    needed = 3 * total * sum(sizes) / len(sampled)
    if needed > limit:
        raise PlumecastError(
            f"maps of so many fires need about {show_memory(needed)}, the limit is "
            f"{show_memory(limit)}; give more memory, fewer fires, or places without maps"
        )


def _tell_extrapolation(
    sampled: Mapping[str, Sampled], surrogate: Surrogate, notify: Notify
) -> None:
    beyond = sum((item.beyond for item in sampled.values()), Extrapolation())
    snapshots = sum(part.hours.size for item in sampled.values() for part in item.parts)
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
    numbers = {}
    for key, part in samples.items():
        with _naming(key):
            numbers[key] = part.quantity(meaning.quantity.name, interval)
    if not meaning.quantity.needs_interval:
        _refuse_other_interval(samples)
    first, *others = samples
    one = samples[first]
    values, notes = {}, []
    for key in others:
        two, names = samples[key], (first, key)
        if np.array_equal(np.sort(one.labels[CONTENT]), np.sort(two.labels[CONTENT])):
            raise PlumecastError(
                f"all {one.fires.size} fires of '{first}' and '{key}' are identical, fire and "
                "smoke: there is nothing to compare; give other fires, or a change that they reach"
            )
        pairs, said = choose_pairs(one, two, columns=columns, paired=paired, names=names)
        values[key] = Values(numbers[first], numbers[key], one.ignitions, two.ignitions, pairs)
        notes += [*duration_note(pairs, one, two, names), *said]
    return values, notes


def _at_places(
    values: Mapping[str, Values], places: Places | None, everywhere: bool, meaning: Meaning
) -> xr.Dataset:
    """The table of the places, of their people if populations are known, and of all cells."""
    names = [] if places is None else list(places.names)
    count, weights = next(iter(values.values())).a.shape[1], []
    cells = np.arange(count)  # the places themselves
    if everywhere:
        cells = cells[:0] if places is None else places.cells
    people = None if places is None else places.numbers.get("population")
    if people is not None and np.nansum(people) > 0.0:
        names.append(EXPOSURE)
        persons = np.nan_to_num(people) / np.nansum(people)
        weights.append(np.bincount(cells, persons, minlength=count))
    if everywhere:
        names.append(EVERYWHERE)
        weights.append(np.full(count, 1.0 / count))
    table = {
        key: replace(item, cells=cells, weights=tuple(weights)) for key, item in values.items()
    }
    made = place_table(table, names, meaning)
    counties = {} if places is None else places.county_of()
    if not counties:
        return made
    return made.assign_coords(county=("place", [counties.get(name, "") for name in names]))


def _refuse_other_interval(samples: Mapping[str, PlaceSamples]) -> None:
    """Raise if sums over checkpoints have different intervals."""
    hours = {part.interval: name for name, part in samples.items() if part.interval is not None}
    if len(hours) > 1:
        (one, first), (two, second), *_ = hours.items()
        raise ArgumentError(
            "quantity",
            "sum",
            "compare the time mean, 'mean'",
            problem=f"is summed over checkpoints {one:g} h apart in '{first}' and {two:g} h apart "
            f"in '{second}'",
        )


def duration_note(
    pairs: Pairs | None, one: PlaceSamples, two: PlaceSamples, names: tuple[str, str]
) -> list[str]:
    """A note where the fires of two scenarios last differently."""
    hours = [float(np.mean(part.hours)) for part in (one, two)]
    if abs(hours[1] - hours[0]) > LONGER * hours[0]:
        return [
            f"the fires of '{names[0]}' last {hours[0]:.3g} h and those of '{names[1]}' "
            f"{hours[1]:.3g} h in the mean: the difference contains that of the durations"
        ]
    if pairs is None:
        return []
    first, second = pairs.means(one.hours[:, None], two.hours[:, None])
    other = int((np.abs(second - first) > LONGER * first).sum())
    if other == 0:
        return []
    return [
        f"{other} of {first.size} pairs do not last equally long: their difference contains that "
        "of the durations; --hours gives a common one"
    ]


def rough_note(table: xr.Dataset) -> list[str]:
    """A note that names the places whose intervals are too short for their skewed differences."""
    names = [str(name) for name in table["place"].values[table["rough"].values.any(axis=0)]]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    text = (
        f"a few fires make most of the difference at {shown}: intervals there are too short; add "
        "fires"
    )
    return [text] if names else []


def error_note(surrogate: Surrogate, samples: Sequence[PlaceSamples]) -> list[str]:
    """A note on the size of the surrogate's error at the mean of the predicted smoke."""
    if surrogate.error_bars is None:
        return ["this surrogate has no error bars; `plumecast train STORE --all` makes them"]
    values = np.concatenate([part.values[part.values > 0.0] for part in samples])
    if values.size == 0:
        return []
    mean = values.mean()
    lower, upper = surrogate.error_bars.interval(np.array([mean]), ERROR_BAR)
    return [
        "the surrogate's error for one fire in one cell: where it predicts the mean of its smoky "
        f"cells, {100 * ERROR_BAR:g} % of the true values are {lower[0] / mean:.2g} to "
        f"{upper[0] / mean:.2g} times the prediction, for fires like those of training"
    ]
