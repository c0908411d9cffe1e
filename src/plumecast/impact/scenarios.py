"""Scenarios: their smoke in some cells at the end of each fire, and which fires belong together."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import DATA_VERSION, FIRE, SMOKE, SNAPSHOT
from plumecast.compute.blocks import row_blocks
from plumecast.compute.dose import previous_snapshot
from plumecast.compute.resources import Resources
from plumecast.data.crs import is_mapping
from plumecast.data.layout import GRID_TOLERANCE, grid_template
from plumecast.data.lazy_store import check_unchanged
from plumecast.data.schema import final_rows
from plumecast.data.store import open_snapshots
from plumecast.data.writers import describe_grid
from plumecast.scores.quantities import as_integrals, find_quantity
from plumecast.scores.sampling import group_sums
from plumecast.sources.places import Places
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.sources import FireSource
from plumecast.workflows.statistics.request import Request
from plumecast.workflows.statistics.samples import (
    PlaceSamples,
    Sampled,
    label_samples,
    sample_fires,
)

CONTENT = "content"
"""Label of samples: a checksum of the fire and its smoke."""

NEAR = 2
"""Cells that the oldest burned cells of two fires of one ignition may be apart: other fuels change
which cell of the smoke grid has the largest mean time since ignition."""

LEAST_SHARED = 0.5
"""Scenarios are paired by themselves if this share of the ignitions of the smaller one, and at
least two, occur in both; with fewer, the unpaired comparison of all fires is the better one."""

ORIGIN = "origin"
"""Label of samples: cell of the smoke grid that has burned for longest, −1 if unknown."""

READ = 256
"""Snapshots of a store that are read at a time."""

Source: TypeAlias = xr.Dataset | str | Path | FireSource


def opened(source: Source, surrogate: Surrogate | None) -> xr.Dataset | FireSource:
    """A Dataset or fires made on demand; opens a store. Raises if there is no smoke to compare."""
    if isinstance(source, FireSource):
        if surrogate is None and not getattr(source, "with_smoke", False):
            raise PlumecastError("these fires have no smoke; give a surrogate too")
        return source
    fields = [SMOKE] if surrogate is None else list(surrogate.inputs.names)
    if surrogate is None:
        data = source if isinstance(source, xr.Dataset) else open_snapshots(source, fields=())
        if SMOKE not in data:
            raise PlumecastError("there is no 'smoke'; give a surrogate that predicts it")
    return source if isinstance(source, xr.Dataset) else open_snapshots(source, fields=fields)


def _grid_of(source: Any) -> xr.Dataset:
    """The grid of smoke that is stored or simulated: its coordinates without those of snapshots."""
    source = source if isinstance(source, xr.Dataset) else source.first()
    coords = {
        name: item
        for name, item in source.variables.items()
        if SNAPSHOT not in item.dims and (name in ("y", "x", "lat", "lon") or is_mapping(item))
    }
    return xr.Dataset(coords=coords)


def refuse_same_store(sources: Mapping[str, xr.Dataset | FireSource]) -> None:
    """Raise if two scenarios are the same fires of the same version of a store."""
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    for name, source in sources.items():
        if isinstance(source, FireSource) or DATA_VERSION not in source.attrs:
            continue
        key = str(source.attrs[DATA_VERSION]), tuple(source.fire_id.values.astype(str))
        if key in seen:
            raise PlumecastError(
                f"scenarios '{seen[key]}' and '{name}' are the same store, or copies of it; give "
                "two different ones"
            )
        seen[key] = name


def common_grid(
    sources: Mapping[str, xr.Dataset | FireSource], surrogate: Surrogate | None
) -> xr.Dataset:
    """The smoke grid of all scenarios."""
    if surrogate is not None:
        return grid_template(surrogate.outputs.fields[0])
    first, *others = sources
    grid = _grid_of(sources[first])
    for name in others:
        other = _grid_of(sources[name])
        if not all(_same_axis(grid, other, axis) for axis in ("y", "x")):
            raise PlumecastError(
                f"scenarios '{first}' and '{name}' are on different grids: {describe_grid(grid)}, "
                f"and {describe_grid(other)}; bring them to one grid"
            )
    return grid


def _same_axis(one: xr.Dataset, two: xr.Dataset, axis: str) -> bool:
    if one.sizes.get(axis) != two.sizes.get(axis):
        return False
    if axis not in one.coords or axis not in two.coords:
        return True
    reach = GRID_TOLERANCE * max(float(np.abs(one[axis]).max()), 1.0)
    return np.allclose(one[axis], two[axis], rtol=0.0, atol=reach)


def sample_smoke(
    cells: Places,
    source: xr.Dataset | FireSource,
    request: Request,
    surrogate: Surrogate | None,
    *,
    weather: xr.Dataset | None,
    resources: Resources,
) -> Sampled:
    """The smoke of the last snapshot of every fire in some cells, for the quantity of a request.

    It is predicted by the surrogate; without one it is stored or simulated.
    """
    if surrogate is None:
        function = partial(_stored_block, cells, request)
        if isinstance(source, FireSource):
            return Sampled(tuple(source.sums(function, None, resources.progress)))
        return Sampled(tuple(map(function, _final_blocks(source))))
    if isinstance(source, xr.Dataset) and not request.reading.hours:
        last = np.isin(np.arange(source.sizes[SNAPSHOT]), final_rows(source))
        source = source.assign_coords(is_final=(SNAPSHOT, last))
    return sample_fires(
        cells, surrogate, source, request, weather=weather, describe=_described, resources=resources
    )


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


def _stored_block(cells: Places, request: Request, block: xr.Dataset) -> PlaceSamples:
    if find_quantity(request.quantity).needs_interval:
        block = block.assign({SMOKE: as_integrals(block[SMOKE], request.interval)})
    block = block.isel({SNAPSHOT: final_rows(block)})
    smoke = np.asarray(block[SMOKE].transpose(SNAPSHOT, ...).values, dtype=np.float64)
    values = smoke.reshape(smoke.shape[0], -1)
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values).all(axis=1)))
        raise PlumecastError(
            f"the smoke of fire '{block.fire_id.values[row]}' has values that are not finite; "
            "check the store with plumecast info --check"
        )
    samples = label_samples(values[:, cells.cells], block, block[SMOKE].attrs, values)
    return _described(samples, block, values)


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


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of two scenarios: a pair has one fire, or the fires of one ignition, of each."""

    first: np.ndarray  # (M,) number of the pair of every sample of the reference, −1 for none
    second: np.ndarray  # (N,) likewise of the other
    ignitions: np.ndarray  # (K,) of the pairs
    moved: int  # names that both have, but that begin at other places

    @property
    def shared(self) -> int:
        """Number of ignitions that both scenarios have."""
        return int(np.unique(self.ignitions).size)

    def means(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(K, P) values of the pairs, from those of all samples of both."""
        count = self.ignitions.size
        return _by_pair(a, self.first, count), _by_pair(b, self.second, count)


def _by_pair(values: np.ndarray, pair: np.ndarray, count: int) -> np.ndarray:
    """Mean over the samples of every pair."""
    used = pair >= 0
    sizes = np.bincount(pair[used], minlength=count)
    sums = group_sums(values[used].astype(np.float64), pair[used], count)
    return np.asarray(sums / sizes[:, None])


def match(one: PlaceSamples, two: PlaceSamples, columns: int) -> Pairs:
    """Pairs of the fires of two scenarios, on a grid with this number of columns.

    Fires with the same `fire_id` and ignition are pairs. If there are none, as for two droughts, a
    pair has the fires of one ignition. Fires that share a name but begin at other places are not
    the same and are left out.
    """
    names = [np.char.add(np.char.add(part.ignitions, "\n"), part.fires) for part in (one, two)]
    if not np.isin(names[0], names[1]).any():
        names = [part.ignitions.astype(str) for part in (one, two)]
    shared = np.intersect1d(names[0], names[1])
    cells = np.concatenate([one.labels[ORIGIN], two.labels[ORIGIN]])
    numbers = np.concatenate([_numbered(part, shared) for part in names])
    near = _near(cells, numbers, shared.size, columns)
    kept = shared[near]
    first, second = (_numbered(part, kept) for part in names)
    _, rows = np.unique(first, return_index=True)
    ignitions = one.ignitions[rows[-kept.size :]] if kept.size else one.ignitions[:0]
    return Pairs(first, second, ignitions, shared.size - kept.size)


def _numbered(names: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """(M,) index of every name among the sorted shared ones, −1 for others."""
    return np.where(np.isin(names, shared), np.searchsorted(shared, names), -1)


def _near(cells: np.ndarray, numbers: np.ndarray, count: int, columns: int) -> np.ndarray:
    """(count,) whether all fires of a number begin within NEAR cells; true where unknown."""
    near = np.ones(count, dtype=bool)
    used = numbers >= 0
    for place in np.divmod(cells[used], columns):
        low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
        np.minimum.at(low, numbers[used], place)
        np.maximum.at(high, numbers[used], place)
        near &= high - low <= NEAR
    unknown = numbers[used & (cells < 0)]
    near[unknown] = True
    return near


def choose_pairs(
    one: PlaceSamples,
    two: PlaceSamples,
    *,
    columns: int,
    paired: bool | None,
    names: tuple[str, str],
) -> tuple[Pairs | None, list[str]]:
    """The pairs to compare, or None for an unpaired comparison; and notes on who has no partner.

    `paired` True or False demands one of the two; None decides by LEAST_SHARED.
    """
    if paired is False:
        return None, []
    pairs = match(one, two, columns)
    both = f"'{names[0]}' and '{names[1]}'"
    if paired and pairs.shared < 1:
        why = (
            f"{pairs.moved} have the same name but begin at other places"
            if pairs.moved
            else f"the first are '{one.ignitions[0]}' and '{two.ignitions[0]}'"
        )
        raise PlumecastError(
            f"paired=True needs common ignitions, but {both} have none ({why}); give them the same "
            "ignition_id, or compare unpaired"
        )
    smaller = min(np.unique(part.ignitions).size for part in (one, two))
    if not paired and pairs.shared < max(2, LEAST_SHARED * smaller):
        text = (
            f"{both} share {pairs.shared} ignitions and are compared as independent fires; with "
            "the same ignitions in both, far fewer fires are needed"
        )
        if pairs.moved:
            text += f" ({pairs.moved} have the same name but begin at other places)"
        return None, [text]
    notes = []
    alone = [int((part < 0).sum()) for part in (pairs.first, pairs.second)]
    if any(alone):
        notes.append(
            f"{pairs.ignitions.size} pairs of {pairs.shared} common ignitions are compared; "
            f"{alone[0]} fires of '{names[0]}' and {alone[1]} of '{names[1]}' have no partner and "
            "are left out"
        )
    if pairs.moved:
        notes.append(
            f"{pairs.moved} names occur in {both}, but begin at other places: they are not counted "
            "as the same ignition"
        )
    return pairs, notes
