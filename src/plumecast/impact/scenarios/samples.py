"""The smoke of a scenario in some cells, at the end of each fire: stored, simulated, predicted."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.compute.arrays import to_numpy
from plumecast.compute.blocks import add_up, row_blocks
from plumecast.compute.dose import previous_snapshot
from plumecast.data.conditions.covariates import extrapolating
from plumecast.data.crs import is_mapping
from plumecast.data.lazy_store import check_unchanged
from plumecast.data.schema import final_rows
from plumecast.data.store import open_snapshots
from plumecast.impact.scenarios.matching import ORIGIN
from plumecast.scores.quantities import Quantity, as_integrals
from plumecast.sources.places import Places
from plumecast.surrogate.covered.guards import refuse_infinite
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.extrapolation import Extrapolation, extrapolation_of
from plumecast.workflows.fires.memory_plan import prediction_rows
from plumecast.workflows.fires.reduce import FireSource, Progress, reduce_fires
from plumecast.workflows.statistics.place_samples import (
    BLOCK,
    PlaceSamples,
    label_samples,
)
from plumecast.workflows.statistics.smoke import read_from

CONTENT = "content"
"""Label of samples: a checksum of the fire and its smoke."""

READ = 256
"""Snapshots of a store that are read at a time."""

Source: TypeAlias = xr.Dataset | str | Path | FireSource


@runtime_checkable
class SimulatedSmoke(FireSource, Protocol):
    """Fires that are simulated on demand, perhaps with their smoke."""

    with_smoke: bool

    def first(self) -> xr.Dataset:
        """The snapshots of the first fire."""
        ...


@dataclass(frozen=True, slots=True)
class Sampled:
    """Samples of some fires, and how many lie beyond the training fires."""

    samples: PlaceSamples
    beyond: Extrapolation = field(default_factory=Extrapolation)

    def __add__(self, other: Sampled) -> Sampled:
        return Sampled(self.samples + other.samples, self.beyond + other.beyond)


def opened(source: Source, surrogate: Surrogate | None) -> xr.Dataset | FireSource:
    """A Dataset or fires made on demand; opens a store. Raises if there is no smoke to compare."""
    if isinstance(source, FireSource):
        simulated = isinstance(source, SimulatedSmoke) and source.with_smoke
        if surrogate is None and not simulated:
            raise PlumecastError("these fires have no smoke; give a surrogate with model=…")
        return source
    if surrogate is not None:
        fields = list(surrogate.inputs.names)
        return source if isinstance(source, xr.Dataset) else open_snapshots(source, fields=fields)
    data = source if isinstance(source, xr.Dataset) else open_snapshots(source, fields=())
    if SMOKE not in data:
        raise PlumecastError("there is no 'smoke'; give a surrogate that predicts it with model=…")
    return data if isinstance(source, xr.Dataset) else open_snapshots(source, fields=(SMOKE,))


def grid_of(source: xr.Dataset | FireSource) -> xr.Dataset:
    """The grid of smoke that is stored or simulated: its coordinates without those of snapshots."""
    if isinstance(source, FireSource):
        assert isinstance(source, SimulatedSmoke)
        source = source.first()
    known = ("y", "x", "lat", "lon")
    kept = {
        name: item
        for name, item in source.variables.items()
        if SNAPSHOT not in item.dims and (name in known or is_mapping(item))
    }
    return xr.Dataset(coords=kept)


def sample_stored(
    cells: Places,
    source: xr.Dataset | FireSource,
    quantity: Quantity,
    interval: float | None,
    progress: Progress,
) -> Sampled:
    """The stored or simulated smoke of the last snapshot of every fire in some cells.

    It is what the `quantity` is read from; `interval` is that between checkpoints, if stated.
    """
    function = partial(_stored_block, cells, quantity, interval)
    if isinstance(source, FireSource):
        simulated: Sampled = add_up(source.sums(function, None, progress))
        return simulated
    stored: Sampled = add_up(map(function, _final_blocks(source)))
    return stored


def _final_blocks(data: xr.Dataset) -> Iterator[xr.Dataset]:
    """The last two snapshots of every fire: the one before tells the newest frame of the sum."""
    count, rows = data.sizes[SNAPSHOT], final_rows(data)
    before = np.full(count, -1)
    if "hours" in data.variables:
        before = previous_snapshot(data.fire_id.values.astype(str), data.hours.values.astype(float))
    for part in row_blocks(rows.size, READ):
        check_unchanged(data)
        wanted = np.union1d(rows[part], before[rows[part]])
        yield data.isel({SNAPSHOT: wanted[wanted >= 0]})


def _stored_block(
    cells: Places, quantity: Quantity, interval: float | None, block: xr.Dataset
) -> Sampled:
    if quantity.needs_interval:
        block = block.assign({SMOKE: as_integrals(block[SMOKE], interval)})
    block = block.isel({SNAPSHOT: final_rows(block)})
    smoke = np.asarray(block[SMOKE].transpose(SNAPSHOT, ...).values, dtype=np.float64)
    values = smoke.reshape(smoke.shape[0], -1)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values).all(axis=1)))
        raise PlumecastError(
            f"the smoke of fire '{block.fire_id.values[row]}' has values that are not finite; "
            "check the store with plumecast info --check"
        )
    samples = label_samples(values[:, cells.cells], block, block[SMOKE].attrs)
    return Sampled(_described(samples, block, values))


def sample_predicted(
    cells: Places,
    surrogate: Surrogate,
    source: xr.Dataset | FireSource,
    *,
    weather: xr.Dataset | None,
    quantity: str,
    memory: str | int | None,
    progress: Progress,
) -> Sampled:
    """The predicted smoke of the last snapshot of every fire in some cells, for a quantity."""
    size = prediction_rows(
        surrogate, memory, input_bytes=24.0, output_bytes=24.0, what="comparing", most=BLOCK
    )
    if isinstance(source, xr.Dataset):
        last = np.isin(np.arange(source.sizes[SNAPSHOT]), final_rows(source))
        source = source.assign_coords(is_final=(SNAPSHOT, last))
    function = partial(_predicted_block, cells, read_from(surrogate, quantity))
    sampled: Sampled = reduce_fires(
        function, surrogate, source, size=size, final=True, weather=weather, progress=progress
    )
    return sampled


def _predicted_block(cells: Places, surrogate: Surrogate, block: xr.Dataset) -> Sampled:
    with extrapolating():  # one notice at the end tells it
        rows = surrogate.read_rows(block)
    predicted = surrogate.predict_rows(*rows)
    values = np.maximum(to_numpy(predicted), 0.0)
    refuse_infinite(values)
    samples = label_samples(values[:, cells.cells], block, surrogate.outputs.fields[0].attrs)
    beyond = extrapolation_of(surrogate, block, rows, predicted)
    return Sampled(_described(samples, block, values), beyond)


def _described(samples: PlaceSamples, block: xr.Dataset, smoke: np.ndarray) -> PlaceSamples:
    """Samples with the place of ignition and a checksum of every fire."""
    count = smoke.shape[0]
    origin, fires = np.full(count, -1, dtype=np.int64), np.empty((count, 0))
    if FIRE in block.variables:
        fires = block[FIRE].transpose(SNAPSHOT, ...).values.reshape(count, -1)
        burned = fires.max(axis=1) > 0.0
        origin = np.where(burned, fires.argmax(axis=1), -1)
    sums = [
        zlib.crc32(row.astype(np.float32).tobytes(), zlib.crc32(fire.tobytes()))
        for row, fire in zip(smoke, fires, strict=True)
    ]
    added = {ORIGIN: origin, CONTENT: np.array(sums, dtype=np.int64)}
    return replace(samples, labels={**samples.labels, **added})
