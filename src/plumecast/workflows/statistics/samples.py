"""Smoke at places: one value for every snapshot of every fire, and sums of them by ignition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import DOSE_OF, recorded_interval
from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import PlumecastError
from plumecast.base.ignitions import one_ignition
from plumecast.base.names import IGNITION_TIME, SMOKE, SNAPSHOT
from plumecast.compute.arrays import contiguous, to_numpy
from plumecast.compute.blocks import row_blocks
from plumecast.compute.dose import growth_rates, largest_so_far
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.covariates import extrapolating
from plumecast.data.store import open_snapshots
from plumecast.operators.coded.operator import CodedOperator
from plumecast.scores.field_statistics import ClusterSums, block_cluster_sums
from plumecast.scores.quantities import DEFAULT, as_integrals, find_quantity, quantity_factors
from plumecast.scores.reading import AS_STORED, Reading
from plumecast.scores.sampling import group_sums
from plumecast.sources.places import Places
from plumecast.surrogate.error_bars.calibration import Expected, expected_block
from plumecast.surrogate.guards import Notice, refuse_infinite
from plumecast.surrogate.surrogate import Surrogate
from plumecast.weather.read import WeatherLike
from plumecast.workflows.fires.conditions import user_weather
from plumecast.workflows.fires.extrapolation import (
    Extrapolation,
    copies_notice,
    extrapolation_of,
)
from plumecast.workflows.fires.sources import Fires, FireSource, reduce_fires
from plumecast.workflows.predict import Notify, prediction_rows
from plumecast.workflows.statistics.estimates import Means
from plumecast.workflows.statistics.request import (
    MEANS,
    Request,
    Statistics,
    are_drawn,
    copy_marks,
    interval_ends,
    limited,
    nonnegative_smoke,
    only_output,
    read_from,
    settled_sums,
)

BLOCK = 1024
"""Largest number of snapshots predicted at a time."""

COPY = "copy"
"""Label of samples: a mark that fires with equal fields share (`copy_marks`)."""

AT_ONCE = 2_000_000
"""Values of smoke at places whose expectation is computed at a time."""


@dataclass(frozen=True, slots=True)
class PlaceSamples:
    """The smoke (a sum over checkpoints) of M snapshots at P places, and whose it is."""

    values: np.ndarray  # (M, P)
    hours: np.ndarray  # (M,) since ignition; NaN where unknown
    labels: Mapping[str, np.ndarray]  # (M,) fire_id and ignition_id, and others that are known
    interval: float | None  # hours between checkpoints, where it is recorded
    attrs: Mapping[str, Any] = field(default_factory=dict)  # of the smoke

    @property
    def fires(self) -> np.ndarray:
        """(M,) name of the fire of every sample."""
        return self.labels["fire_id"]

    @property
    def ignitions(self) -> np.ndarray:
        """(M,) name of the ignition of every sample: the clusters of independent samples."""
        return self.labels.get("ignition_id", self.labels["fire_id"])

    def as_array(self) -> xr.DataArray:
        """The samples (snapshot, place), labelled."""
        labels = {"hours": self.hours, **self.labels}
        coords = {name: (SNAPSHOT, values) for name, values in labels.items()}
        dims = [SNAPSHOT, "place"]
        return xr.DataArray(self.values, coords, dims, name=SMOKE, attrs=dict(self.attrs))

    def quantity(self, name: str = DEFAULT, interval: float | None = None) -> np.ndarray:
        """(M, P) values of a quantity, by default the time-mean column concentration."""
        return np.asarray(self.values * self.factors(name, interval)[:, None])

    def factors(self, name: str = DEFAULT, interval: float | None = None) -> np.ndarray:
        """(M,) factors from smoke to a quantity."""
        array = self.as_array()
        return quantity_factors(array, array, name, interval)

    def between(self, interval: float | None = None) -> np.ndarray:
        """(M, P) mean concentration between each snapshot and the one before of its fire.

        It is the growth of the largest dose so far, so that it does not depend on later snapshots.
        """
        smoke = as_integrals(self.as_array(), interval)
        dose = smoke.values * quantity_factors(smoke, smoke, "dose", interval)[:, None]
        largest = np.asarray(largest_so_far(dose, self.fires, self.hours))
        return growth_rates(largest, self.fires, self.hours)

    @property
    def copies(self) -> set[tuple[str, str]]:
        """Marks of fields, and the ignitions that have them."""
        marks = self.labels.get(COPY, np.empty(0, dtype=str)).tolist()
        return {pair for pair in zip(marks, self.ignitions.tolist(), strict=False) if pair[0]}

    def with_ignitions(self, names: Mapping[str, str]) -> PlaceSamples:
        """The samples whose ignitions are those of the fires by name."""
        ignitions = np.array([names[fire] for fire in self.fires.tolist()], dtype=str)
        return replace(self, labels={**self.labels, "ignition_id": ignitions})

    def by_ignition(self, request: Request) -> tuple[PlaceSamples, Notice | None]:
        """The samples with the names that statistics count ignitions by; a notice of copies."""
        if request.statistics.independent:
            return self.with_ignitions({fire: fire for fire in self.fires.tolist()}), None
        copies = self.copies if request.joins_copies else set()
        names = one_ignition(self.ignitions.tolist(), copies)
        ignitions = np.array([names[name] for name in self.ignitions.tolist()], dtype=str)
        made = replace(self, labels={**self.labels, "ignition_id": ignitions})
        return made, copies_notice(set(self.ignitions.tolist()), copies)

    def at(self, rows: np.ndarray) -> PlaceSamples:
        """The samples of some rows."""
        labels = {name: values[rows] for name, values in self.labels.items()}
        return replace(self, values=self.values[rows], hours=self.hours[rows], labels=labels)


@dataclass(frozen=True, slots=True)
class Sampled:
    """Samples of blocks of fires, which are joined once at the end, and their extrapolation."""

    parts: tuple[PlaceSamples, ...]
    beyond: Extrapolation = field(default_factory=Extrapolation)

    def __add__(self, other: Sampled) -> Sampled:
        return Sampled(self.parts + other.parts, self.beyond + other.beyond)

    def joined(self) -> PlaceSamples:
        """All samples, one after the other, with the labels that all parts have."""
        parts = self.parts
        names = [n for n in parts[0].labels if all(n in part.labels for part in parts)]
        intervals = {part.interval for part in parts}
        return PlaceSamples(
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.hours for part in parts]),
            {name: np.concatenate([part.labels[name] for part in parts]) for name in names},
            parts[0].interval if len(intervals) == 1 else None,
            parts[0].attrs,
        )


Describe: TypeAlias = Callable[[PlaceSamples, xr.Dataset, np.ndarray], PlaceSamples]
"""Adds labels to samples of a block of fires, from its smoke (M, N) in all cells."""


def sample_fires(
    places: Places,
    surrogate: Surrogate,
    fires: Fires | FireSource,
    request: Request,
    *,
    weather: xr.Dataset | None = None,
    describe: Describe | None = None,
    resources: Resources = LOCAL,
) -> Sampled:
    """The predicted smoke of many fires at places, from which the quantity of a request is read.

    The cells of places alone are predicted where that is possible, unless samples are to be
    described by the smoke of all cells; its largest value then counts as extrapolation too.
    """
    size = prediction_rows(
        surrogate, resources.memory, input_bytes=24.0, output_bytes=24.0, what="smoke at places",
        most=BLOCK,
    )  # fmt: skip
    read = read_from(surrogate, request.quantity)
    read = surrogate_at(read, places) if describe is None else read
    read = read.on_device(resources.device, request.statistics.precision)
    sampled: Sampled = reduce_fires(
        partial(_sample_block, places, read, describe),
        surrogate,
        fires,
        size=size,
        final=request.statistics.final,
        hours=tuple(request.reading.hours),
        weather=weather,
        resources=resources,
    )
    return sampled


def _sample_block(
    places: Places, surrogate: Surrogate, describe: Describe | None, block: xr.Dataset
) -> Sampled:
    with extrapolating():  # one notice at the end tells it
        rows = surrogate.read_rows(block)
    predicted = surrogate.predict_rows(*rows)
    beyond = extrapolation_of(surrogate, block, rows, None if describe is None else predicted)
    smoke = nonnegative_smoke(surrogate, predicted)
    if describe is None and smoke.shape[1] != len(places):  # all cells were predicted
        smoke = smoke[:, places.cells]
    values = to_numpy(smoke)
    refuse_infinite(values)
    local = values if describe is None else values[:, places.cells]
    samples = label_samples(local, block, only_output(surrogate).attrs, rows[0])
    return Sampled((samples if describe is None else describe(samples, block, values),), beyond)


@folded_arguments(reading=Reading, statistics=Statistics, resources=Resources)
def predicted_at(
    places: Places,
    surrogate: Surrogate,
    fires: Fires | FireSource,
    reading: Reading = AS_STORED,
    statistics: Statistics = MEANS,
    *,
    weather: WeatherLike | None = None,
    settled: bool = True,
    resources: Resources = LOCAL,
    notify: Notify | None = None,
) -> PlaceSamples:
    """The predicted smoke of many fires at places; only the values there are kept.

    The arguments are those of `evaluate_points`; the `reading` is by default of time means. Samples
    are of sums only for the quantity "sum", if the surrogate predicts their integrals. For others
    doses are limited by later ones if they are `settled`, and so are sums.
    """
    request = Request(replace(reading, quantity=reading.quantity_or(DEFAULT)), statistics)
    sampled = sample_fires(
        places, surrogate, fires, request, weather=user_weather(weather), resources=resources
    )
    samples, alike = sampled.joined().by_ignition(replace(request, drawn=are_drawn(fires)))
    if settled:
        read = read_from(surrogate, request.quantity)
        made = settled_sums(read, samples.values, samples.fires, samples.hours)
        samples = replace(samples, values=np.asarray(made))
    if settled and find_quantity(request.quantity).needs_interval:
        factors = samples.factors(request.quantity, request.interval)
        values = limited(samples.values, request.quantity, samples.fires, samples.hours, factors)
        samples = replace(samples, values=np.asarray(values))
    if notify is not None:
        if alike is not None:
            notify(alike)
        for notice in sampled.beyond.notices(surrogate, samples.hours.size):
            notify(notice)
    return samples


def surrogate_at(surrogate: Surrogate, places: Places) -> Surrogate:
    """A surrogate whose `predict_rows` gives only the cells of places (M, P), where it can.

    Decoding is linear, so that the other columns of the modes can be left out; an operator of
    another family, or one whose smoke and footprint agree, predicts all cells.
    """
    operator = surrogate.operator
    whole = surrogate.record.agreement or surrogate.outputs.size == len(places)
    if whole or not isinstance(operator, CodedOperator):
        return surrogate
    basis = operator.output_basis
    mean = None if basis.mean is None else basis.mean[places.cells]
    local = replace(basis, modes=contiguous(basis.modes[:, places.cells]), mean=mean)
    return replace(surrogate, operator=replace(operator, output_basis=local))


def stored_at(
    places: Places,
    store: xr.Dataset | str | Path,
    *,
    name: str = SMOKE,
    quantity: str | None = None,
    interval: float | None = None,
    independent: bool = False,
) -> PlaceSamples:
    """The smoke that a store or a Dataset holds, at places, as a `quantity` is read from it.

    Ignitions within a cell have one name, unless all fires are `independent`. Without a quantity it
    is the sums, or the predicted doses where there are some.
    """
    data = store if isinstance(store, xr.Dataset) else open_snapshots(store, fields=[name])
    if name not in data:
        raise PlumecastError(f"{store}: has no '{name}'; give a surrogate that predicts it")
    smoke = places.at(data[name]).transpose(SNAPSHOT, "place")
    dosed = DOSE_OF in smoke.attrs if quantity is None else find_quantity(quantity).needs_interval
    smoke = as_integrals(smoke, interval) if dosed else smoke
    samples = label_samples(np.asarray(smoke.values, dtype=np.float64), data, smoke.attrs)
    return samples.by_ignition(Request(statistics=Statistics(independent=independent)))[0]


def label_samples(
    values: np.ndarray,
    block: xr.Dataset,
    attrs: Mapping[str, Any],
    fields: np.ndarray | None = None,
) -> PlaceSamples:
    """Samples (M, P) with the labels of the snapshots that they are of.

    Equal `fields` (M, N) mark the copies of a fire.
    """
    count = values.shape[0]
    labels = {
        name: np.broadcast_to(block[name].values.astype(str), (count,))
        for name in ("fire_id", "ignition_id", "drought", IGNITION_TIME)
        if name in block.variables
    }
    if "fire_id" not in labels:
        raise PlumecastError("fires at places need the coordinate 'fire_id'; name every fire")
    hours = np.full(count, np.nan)
    if "hours" in block.variables:
        hours = np.broadcast_to(block["hours"].values.astype(float), (count,))
    if fields is not None:
        labels[COPY] = copy_marks(block, fields)
    return PlaceSamples(values, hours, labels, recorded_interval(attrs), attrs)


def place_means(
    samples: PlaceSamples, request: Request, truth: tuple[PlaceSamples, PlaceSamples] | None = None
) -> Means:
    """The statistics of samples at places; `truth` has true and predicted samples."""
    local, *pairs = (_sums(part, request) for part in (samples, *(truth or ())))
    predicted = list(local.sums.sum(axis=0) / local.counts.sum())
    sums, changes = local.sums, None
    if request.expected is not None and truth is None:
        sums, changes = _expected(samples, request, request.expected)
    return Means(
        sums,
        local.counts,
        predicted,
        request.coverage,
        request.expected,
        changes,
        truth=(pairs[0], pairs[1]) if pairs else None,
        ends=_ends(samples, request) if local.counts.size == 1 else None,
    )


def _ends(samples: PlaceSamples, request: Request) -> dict[int, np.ndarray] | None:
    """The ends of the error bar of the mean of one ignition, where the surrogate has some."""
    if request.bars is None:
        return None
    factors = samples.factors(request.quantity, request.interval)
    return {0: interval_ends(request, samples.values, samples.hours, factors).mean(axis=1)}


def _sums(samples: PlaceSamples, request: Request) -> ClusterSums:
    """Sums by ignition of the quantity and of whether it exceeds each threshold."""
    values = samples.quantity(request.quantity, request.interval)
    statistics = [values, *(values > threshold for threshold in request.thresholds)]
    return block_cluster_sums(statistics, samples.ignitions, samples.ignitions.size)


def _expected(
    samples: PlaceSamples, request: Request, expected: Expected
) -> tuple[np.ndarray, np.ndarray]:
    """Sums (C, V, P) of the expected statistics, and their changes (V, R, P)."""
    factors = samples.factors(request.quantity, request.interval)
    names, index = np.unique(samples.ignitions, return_inverse=True)
    count, places = samples.values.shape
    sums = np.zeros((names.size, 1 + len(request.thresholds), places))
    changes = np.zeros((sums.shape[1], expected.ratio.shape[0] - 1, places))
    for rows in row_blocks(count, max(1, AT_ONCE // max(places, 1))):
        block = expected_block(expected, samples.values[rows], request.thresholds, factors[rows])
        for number, part in enumerate(block.fields[1:]):  # the first is of the logarithm
            sums[:, number] += group_sums(part, index[rows], names.size)
        changes += block.changes[1:]
    return sums, changes
