"""Which fires of two scenarios belong together: the same fire, or the same ignition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.workflows.statistics.place_samples import PlaceSamples

NEAR = 2
"""Cells that the oldest burned cells of two fires of one ignition may be apart: other fuels change
which cell of the smoke grid has the largest mean time since ignition."""

LEAST_SHARED = 0.5
"""Scenarios are paired by themselves if this share of the ignitions of the smaller one, and at
least two, occur in both; with fewer, the unpaired comparison of all fires is the better one."""

ORIGIN = "origin"
"""Label of samples: cell of the smoke grid that has burned for longest, −1 if unknown."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of two scenarios: a pair has one fire, or the fires of one ignition, of each."""

    first: np.ndarray  # (M,) number of the pair of every sample of the reference, −1 for none
    second: np.ndarray  # (N,) likewise of the other
    ignitions: np.ndarray  # (K,) of the pairs
    by: str  # "fire_id" or "ignition_id"
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
    used = np.flatnonzero(pair >= 0)
    order = used[np.argsort(pair[used], kind="stable")]
    starts = np.searchsorted(pair[order], np.arange(count))
    sizes = np.diff(np.append(starts, order.size))
    sums = np.add.reduceat(values[order].astype(np.float64), starts, axis=0)
    means: np.ndarray = sums / sizes[:, None]
    return means


def match(one: PlaceSamples, two: PlaceSamples, columns: int) -> Pairs:
    """Pairs of the fires of two scenarios, on a grid with this number of columns.

    Fires with the same `fire_id` and ignition are pairs. If there are none, as for two droughts, a
    pair has the fires of one ignition. Fires that share a name but begin at other places are not
    the same and are left out.
    """
    for by in ("fire_id", "ignition_id"):
        names = [_names(part, by) for part in (one, two)]
        shared = np.intersect1d(names[0], names[1])
        if shared.size:
            break
    cells = np.concatenate([one.labels[ORIGIN], two.labels[ORIGIN]])
    numbers = np.concatenate([_numbered(part, shared) for part in names])
    near = _near(cells, numbers, shared.size, columns)
    kept = shared[near]
    first, second = (_numbered(part, kept) for part in names)
    _, rows = np.unique(first, return_index=True)
    ignitions = one.ignitions[rows[-kept.size :]] if kept.size else one.ignitions[:0]
    return Pairs(first, second, ignitions, by, shared.size - kept.size)


def _names(samples: PlaceSamples, by: str) -> np.ndarray:
    if by == "ignition_id":
        return samples.ignitions.astype(str)
    both = zip(samples.ignitions.astype(str), samples.fires.astype(str), strict=True)
    return np.array(["\n".join(pair) for pair in both])


def _numbered(names: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """(M,) index of every name among the sorted shared ones, −1 for others."""
    index = np.searchsorted(shared, names)
    inside = index < shared.size
    found = np.full(names.size, -1, dtype=np.int64)
    found[inside] = np.where(shared[index[inside]] == names[inside], index[inside], -1)
    return found


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
) -> Pairs | None:
    """The pairs to compare, or None for an unpaired comparison.

    `paired` True or False demands one of the two; None decides by LEAST_SHARED.
    """
    if paired is False:
        return None
    pairs = match(one, two, columns)
    least = 1 if paired else 2
    if pairs.shared < least:
        if paired:
            why = (
                f"{pairs.moved} have the same name but begin at other places"
                if pairs.moved
                else f"the first are '{one.ignitions[0]}' and '{two.ignitions[0]}'"
            )
            raise PlumecastError(
                f"paired=True needs common ignitions, but '{names[0]}' and '{names[1]}' have none "
                f"({why}); give them the same ignition_id, or compare unpaired"
            )
        return None
    smaller = min(np.unique(part.ignitions).size for part in (one, two))
    return pairs if paired or pairs.shared >= LEAST_SHARED * smaller else None
