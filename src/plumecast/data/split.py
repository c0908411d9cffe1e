"""Split snapshots into training, validation and test parts without tearing a fire apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.arrays import Array

PAPER_FRACTIONS = (0.45, 0.10, 0.45)


@dataclass(frozen=True, slots=True)
class Split:
    """Three parts of a data set that share no group."""

    train: xr.Dataset
    validation: xr.Dataset
    test: xr.Dataset
    by: str = "ignition_id"
    seed: int = 0
    fractions: tuple[float, float, float] = PAPER_FRACTIONS

    def __post_init__(self) -> None:
        check_apart(self.by, train=self.train, validation=self.validation, test=self.test)


def check_apart(by: str, **parts: xr.Dataset) -> None:
    """Refuse parts that are empty or share a group."""
    seen: dict[str, str] = {}
    for part, data in parts.items():
        _check_label(data, by)
        if data.sizes[SNAPSHOT] == 0:
            raise PlumecastError(
                f"the {part} part of the split is empty; add fires or change the fractions"
            )
        for group in np.unique(data[by].values.astype(str)).tolist():
            if seen.setdefault(group, part) != part:
                raise PlumecastError(
                    f"{by} '{group}' is in both the {seen[group]} and the {part} part; "
                    "scores would be flattered"
                )


def split_by_fire(
    snapshots: xr.Dataset,
    fractions: Sequence[float] = PAPER_FRACTIONS,
    seed: int = 0,
    *,
    by: str = "ignition_id",
) -> Split:
    """Split whole groups at random: train, validation, test shares of the snapshots.

    Groups are ignitions by default, so the same ignition under another weather never leaks;
    `by="fire_id"` is the looser reading of the paper. The same seed gives the same split whatever
    the order of the snapshots.
    """
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.shape != (3,) or not (shares > 0.0).all() or abs(shares.sum() - 1.0) > 1e-9:
        raise PlumecastError(f"fractions={tuple(fractions)} must be three positive shares of 1")
    _check_label(snapshots, by)
    groups, member, counts = np.unique(
        snapshots[by].values.astype(str), return_inverse=True, return_counts=True
    )
    if groups.size < 3:
        raise PlumecastError(f"{groups.size} group(s) by {by} cannot make three parts; add fires")
    order = np.random.default_rng(seed).permutation(groups.size)
    part_of_group = np.empty(groups.size, dtype=np.int64)
    part_of_group[order] = _assign(counts[order], shares)
    rows = [np.flatnonzero(part_of_group[member] == part) for part in range(3)]
    train, validation, test = (snapshots.isel({SNAPSHOT: index}) for index in rows)
    return Split(train, validation, test, by, seed, (shares[0], shares[1], shares[2]))


def _check_label(snapshots: xr.Dataset, by: str) -> None:
    if by not in snapshots.variables:
        raise PlumecastError(f"coordinate '{by}' is missing: nothing says what belongs together")
    if snapshots[by].dims != (SNAPSHOT,):
        raise PlumecastError(f"'{by}' has dimensions {snapshots[by].dims}: it labels no snapshots")


def _assign(counts: Array, shares: Array) -> Array:
    """Part 0, 1, 2 of groups in order, cut where the snapshots come nearest to the shares.

    Every part keeps at least one group.
    """
    total = np.concatenate([[0], np.cumsum(counts)]) / counts.sum()
    first = int(np.argmin(np.abs(total - shares[0])))
    first = min(max(first, 1), counts.size - 2)
    second = int(np.argmin(np.abs(total - shares[0] - shares[1])))
    second = min(max(second, first + 1), counts.size - 1)
    return np.repeat([0, 1, 2], [first, second - first, counts.size - second])


def group_rows(labels: Array) -> list[Array]:
    """Row indices of every distinct label, in the order of the labels."""
    _, member = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    order = np.argsort(member, kind="stable")
    ends = np.cumsum(np.bincount(member))[:-1]
    return list(np.split(order, ends))
