"""Find fires that are stored twice under different names, and keep them in one group of a split."""

from __future__ import annotations

import hashlib
import itertools
import warnings
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastWarning
from plumecast.base.names import FIRE, SNAPSHOT
from plumecast.compute.arrays import Array

_BLOCK = 256  # snapshots read at once
_NEEDED = ("fire_id", "hours", "burned_area", FIRE)
_MOST_NAMES = 5  # groups in a warning


class DuplicateWarning(PlumecastWarning):
    """Fires with different names are the same run."""


def find_duplicates(snapshots: xr.Dataset) -> list[tuple[str, ...]]:
    """Groups of fires that are the same run under different names.

    Two fires are the same if their last common checkpoint has equal hours, equal burned area and an
    equal field of the time since ignition. Earlier checkpoints do not suffice: fires of one
    ignition under different weathers may begin alike. Runs that differ only in the smoke count as
    equal: their input would be in two parts of a split. Only the fields of snapshots that agree in
    hours and burned area are read.
    """
    if not set(_NEEDED) <= set(snapshots.variables):
        return []
    fires, hours = snapshots.fire_id.values.astype(str), snapshots.hours.values
    rows = _candidates(snapshots, fires)
    alike: dict[tuple[float, str], list[str]] = defaultdict(list)
    for row, digest in zip(rows, _digests(snapshots, rows), strict=True):
        alike[float(hours[row]), digest].append(str(fires[row]))
    checkpoints: dict[str, set[float]] = defaultdict(set)
    for fire, hour in zip(fires.tolist(), hours.tolist(), strict=True):
        checkpoints[fire].add(hour)
    return _joined(
        pair
        for (hour, _), group in alike.items()
        for pair in itertools.combinations(sorted(set(group)), 2)
        if hour == max(checkpoints[pair[0]] & checkpoints[pair[1]])
    )


def group_duplicates(snapshots: xr.Dataset, by: str = "ignition_id") -> Array:
    """(M,) labels `by` in which the duplicates of a fire have the label of the first of them.

    Warns with the names of the fires. An ignition that one of them belongs to moves as a whole.
    """
    labels: Array = snapshots[by].values.astype(str)
    groups = find_duplicates(snapshots)
    if not groups:
        return labels
    fires = snapshots["fire_id"].values.astype(str)
    linked = [np.unique(labels[np.isin(fires, group)]).tolist() for group in groups]
    first = {label: group[0] for group in _joined(linked) for label in group}
    shown = "; ".join(" = ".join(group) for group in groups[:_MOST_NAMES])
    more = f" and {len(groups) - _MOST_NAMES} more" if len(groups) > _MOST_NAMES else ""
    warnings.warn(
        f"{sum(map(len, groups))} fires are only {len(groups)} different runs under several names "
        f"({shown}{more}); copies stay in the same part of the split; remove them",
        DuplicateWarning,
        stacklevel=3,
    )
    return np.array([first.get(label, label) for label in labels.tolist()])


def _candidates(snapshots: xr.Dataset, fires: Array) -> Array:
    """Rows that agree with a row of another fire in hours and burned area, which is not zero."""
    hours, area = snapshots.hours.values, snapshots.burned_area.values
    keys = np.unique(np.stack([hours, area]), axis=1, return_inverse=True)[1].ravel()
    pairs = np.unique(np.stack([keys, np.unique(fires, return_inverse=True)[1]]), axis=1)
    several = np.bincount(pairs[0], minlength=keys.max(initial=0) + 1) > 1
    return np.flatnonzero(several[keys] & (area > 0.0))


def _digests(snapshots: xr.Dataset, rows: Array) -> Iterable[str]:
    """Digest of the time since ignition of each of these rows, as stored in float32."""
    for start in range(0, rows.size, _BLOCK):
        fields = snapshots[FIRE].isel({SNAPSHOT: rows[start : start + _BLOCK]})
        for field in fields.transpose(SNAPSHOT, ...).values:
            stored = np.ascontiguousarray(field, dtype=np.float32)
            yield hashlib.blake2b(stored.tobytes(), digest_size=16).hexdigest()


def _joined(groups: Iterable[Iterable[str]]) -> list[tuple[str, ...]]:
    """Groups that share a member become one; members and groups in the order of their names."""
    joined: list[set[str]] = []
    for group in map(set, groups):
        touching = [other for other in joined if other & group]
        joined = [other for other in joined if not other & group]
        joined.append(group.union(*touching))
    return sorted(tuple(sorted(group)) for group in joined)
