"""Smoke at places: one value for every snapshot of every fire, predicted or stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import DOSE_OF, recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.names import IGNITION_TIME, SMOKE, SNAPSHOT
from plumecast.compute.arrays import contiguous, to_numpy
from plumecast.compute.blocks import Runner
from plumecast.compute.dose import growth_rates, largest_so_far
from plumecast.data.conditions.covariates import extrapolating
from plumecast.data.store import open_snapshots
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.family import Conditions
from plumecast.scores.quantities import (
    DEFAULT,
    as_integrals,
    find_quantity,
    quantity_factors,
)
from plumecast.sources.places import Places
from plumecast.surrogate.covered.guards import refuse_infinite
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import stored_agreement
from plumecast.weather.read import WeatherLike
from plumecast.workflows.fires.extrapolation import Extrapolation, extrapolation_of
from plumecast.workflows.fires.memory_plan import prediction_rows
from plumecast.workflows.fires.reduce import Fires, FireSource, Progress, reduce_fires
from plumecast.workflows.fires.weather import user_weather
from plumecast.workflows.predict import Notify
from plumecast.workflows.statistics.smoke import limited, nonnegative_smoke, only_output, read_from

BLOCK = 1024
"""Largest number of snapshots predicted at a time."""

LABELS = ("fire_id", "ignition_id", "drought", IGNITION_TIME)


@dataclass(frozen=True, slots=True)
class PlaceSamples:
    """The smoke (a sum over checkpoints) of M snapshots at P places, and whose it is."""

    values: np.ndarray  # (M, P)
    hours: np.ndarray  # (M,) since ignition; NaN where unknown
    labels: Mapping[str, np.ndarray]  # (M,) fire_id and ignition_id, and others that are known
    interval: float | None  # hours between checkpoints, where it is recorded
    attrs: Mapping[str, Any] = field(default_factory=dict)  # of the smoke

    def __add__(self, other: PlaceSamples) -> PlaceSamples:
        """The samples of both, one after the other."""
        return join_samples((self, other))

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
        known = {name: (SNAPSHOT, values) for name, values in self.labels.items()}
        return xr.DataArray(
            self.values,
            dims=[SNAPSHOT, "place"],
            coords={"hours": (SNAPSHOT, self.hours), **known},
            attrs=dict(self.attrs),
            name=SMOKE,
        )

    def quantity(self, name: str = DEFAULT, interval: float | None = None) -> np.ndarray:
        """(M, P) values of a quantity, by default the time-mean column concentration."""
        scaled: np.ndarray = self.values * self.factors(name, interval)[:, None]
        return scaled

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

    def at(self, rows: np.ndarray) -> PlaceSamples:
        """The samples of some rows."""
        labels = {name: values[rows] for name, values in self.labels.items()}
        return replace(self, values=self.values[rows], hours=self.hours[rows], labels=labels)

    def final(self) -> PlaceSamples:
        """The last sample of every fire."""
        order = np.lexsort((self.hours, self.fires))
        names = self.fires[order]
        last = np.append(names[1:] != names[:-1], True)
        return self.at(np.sort(order[last]))


def predicted_at(
    places: Places,
    surrogate: Surrogate,
    fires: Fires | FireSource,
    *,
    weather: WeatherLike | None = None,
    quantity: str = DEFAULT,
    interval: float | None = None,
    settled: bool = True,
    final: bool = False,
    device: str = "cpu",
    precision: str = "float64",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, what: None,
    notify: Notify | None = None,
) -> PlaceSamples:
    """The predicted smoke of many fires at places; only the values there are kept.

    The arguments are those of `ensemble_statistics`; samples are of sums only for the `quantity`
    "sum", if the surrogate predicts their integrals. For others doses are limited by later ones if
    they are `settled`; `interval` is that between checkpoints, if stated. If snapshots lie beyond
    the training fires, `notify` is called once at the end; without it they are not counted.
    """
    size = prediction_rows(
        surrogate, memory, input_bytes=24.0, output_bytes=24.0, what="smoke at places", most=BLOCK
    )
    found: _Blocks = reduce_fires(
        partial(
            _block_at,
            places,
            surrogate_at(read_from(surrogate, quantity), places).on_device(device, precision),
            notify is not None,
        ),
        surrogate,
        fires,
        size=size,
        final=final,
        weather=user_weather(weather),
        runner=runner,
        progress=progress,
    )
    samples = join_samples(found.samples)
    if settled and find_quantity(quantity).needs_interval:
        factors = samples.factors(quantity, interval)
        values = limited(samples.values, quantity, samples.fires, samples.hours, factors)
        samples = replace(samples, values=np.asarray(values))
    if notify is not None:
        for notice in found.beyond.notices(surrogate, samples.hours.size):
            notify(notice)
    return samples


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Samples of blocks, which are joined once at the end, and their extrapolation."""

    samples: tuple[PlaceSamples, ...]
    beyond: Extrapolation

    def __add__(self, other: _Blocks) -> _Blocks:
        return _Blocks(self.samples + other.samples, self.beyond + other.beyond)


def _block_at(places: Places, surrogate: Surrogate, guarded: bool, block: xr.Dataset) -> _Blocks:
    with extrapolating():
        rows = surrogate.read_rows(block)
    beyond = extrapolation_of(surrogate, block, rows, None) if guarded else Extrapolation()
    return _Blocks((_predicted(places, surrogate, block, rows),), beyond)


def _predicted(
    places: Places, surrogate: Surrogate, block: xr.Dataset, rows: tuple[np.ndarray, Conditions]
) -> PlaceSamples:
    predicted = nonnegative_smoke(surrogate, surrogate.predict_rows(*rows))
    if predicted.shape[1] != len(places):  # all cells were predicted
        predicted = predicted[:, places.cells]
    values = to_numpy(predicted)
    refuse_infinite(values)
    return label_samples(values, block, only_output(surrogate).attrs)


def surrogate_at(surrogate: Surrogate, places: Places) -> Surrogate:
    """A surrogate whose `predict_rows` gives only the cells of places (M, P), where it can.

    Decoding is linear, so that the other columns of the modes can be left out; an operator of
    another family, or one whose smoke and footprint agree, predicts all cells.
    """
    operator = surrogate.operator
    coded = isinstance(operator, CodedOperator)
    if not coded or stored_agreement(surrogate.training) or surrogate.outputs.size == len(places):
        return surrogate
    assert isinstance(operator, CodedOperator)
    basis = operator.output_basis
    mean = None if basis.mean is None else basis.mean[places.cells]
    own = replace(basis, modes=contiguous(basis.modes[:, places.cells]), mean=mean)
    return replace(surrogate, operator=replace(operator, output_basis=own))


def join_samples(parts: Sequence[PlaceSamples]) -> PlaceSamples:
    """The samples of all parts, one after the other."""
    names = [name for name in parts[0].labels if all(name in part.labels for part in parts)]
    same = len({part.interval for part in parts}) == 1
    return PlaceSamples(
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.hours for part in parts]),
        {name: np.concatenate([part.labels[name] for part in parts]) for name in names},
        parts[0].interval if same else None,
        parts[0].attrs,
    )


def stored_at(
    places: Places,
    store: xr.Dataset | str | Path,
    *,
    name: str = SMOKE,
    quantity: str | None = None,
    interval: float | None = None,
) -> PlaceSamples:
    """The smoke that a store or a Dataset holds, at places, as a `quantity` is read from it.

    Without a quantity it is the sums, or the predicted doses where there are some.
    """
    data = store if isinstance(store, xr.Dataset) else open_snapshots(store, fields=[name])
    if name not in data:
        raise PlumecastError(f"{store}: has no '{name}'; give a surrogate that predicts it")
    smoke = places.at(data[name]).transpose(SNAPSHOT, "place")
    dosed = DOSE_OF in smoke.attrs if quantity is None else find_quantity(quantity).needs_interval
    if dosed:
        smoke = as_integrals(smoke, interval)
    values = smoke.values
    return label_samples(np.asarray(values, dtype=np.float64), data, smoke.attrs)


def label_samples(values: np.ndarray, block: xr.Dataset, attrs: Mapping[str, Any]) -> PlaceSamples:
    """Samples (M, P) with the labels of the snapshots that they are of."""
    count = values.shape[0]
    known = {
        name: np.broadcast_to(block[name].values.astype(str), (count,))
        for name in LABELS
        if name in block.variables
    }
    if "fire_id" not in known:
        raise PlumecastError("fires at places need the coordinate 'fire_id'; name every fire")
    hours = np.full(count, np.nan)
    if "hours" in block.variables:
        hours = np.broadcast_to(block["hours"].values.astype(float), (count,))
    return PlaceSamples(values, hours, known, recorded_interval(attrs), attrs)
