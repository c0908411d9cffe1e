"""Split snapshots into training, validation and test parts that share no ignition.

Fires that are stored twice under different names are found and stay in one part.
"""

from __future__ import annotations

import hashlib
import itertools
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError, PlumecastWarning
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.base.values import check_count, check_fields, check_number, setting
from plumecast.compute.arrays import Array
from plumecast.compute.blocks import row_blocks
from plumecast.data.covariates import SCENARIO
from plumecast.data.schema import apply_smoke_floor, drop_small_fires, select_drought

PAPER_FRACTIONS = (0.45, 0.10, 0.45)

FEW_GROUPS = 6
"""With fewer groups, three parts are too small to train, to choose thresholds and to score."""

STRATIFIED_GROUPS = 12
"""With fewer groups, the training part is made to have two groups and every drought."""

DRAWS = 200
"""Largest number of random splits drawn for that."""


_BLOCK = 256  # snapshots read at once
_NEEDED = ("fire_id", "hours", "burned_area", FIRE)  # to find fires that are stored twice
_MOST_NAMES = 5  # groups in a warning


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRecipe:
    """How to filter and split snapshots; saved with a surrogate so that scoring can repeat it.

    `fractions=None` holds nothing back: all snapshots that pass the filters are for training.
    """

    min_acres: float | None = setting(
        None, "Keep snapshots with at least this burned area (acres); the paper uses 1e5."
    )
    drought: str | Sequence[str] | None = setting(
        None, "Keep these drought scenarios, separated by commas."
    )
    smoke_floor: float | None = setting(None, "Set smoke below this value (µg m⁻³) to zero.")
    seed: int = setting(0, "Seed of the random split.", default_text="0")
    by: str = setting(
        "ignition_id",
        "Grouping coordinate, ignition_id or fire_id: all snapshots of a group stay in the same "
        "part of the split.",
        default_text="ignition_id",
    )
    fractions: Sequence[float] | None = setting(
        PAPER_FRACTIONS,
        "Shares of training, validation and test.",
        default_text=",".join(map(str, PAPER_FRACTIONS)),
    )

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("min_acres", "smoke_floor"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=0.0)
        check_count("seed", self.seed, least=0)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> SplitRecipe:
        """The recipe that `record` wrote; keys that are not its own are ignored."""
        own = {field.name: record[field.name] for field in fields(cls) if field.name in record}
        drought, fractions = own.get("drought"), own.get("fractions")
        if isinstance(drought, str):
            own["drought"] = drought.split(",")
        if isinstance(fractions, str):
            try:
                own["fractions"] = [float(share) for share in fractions.split(",")]
            except ValueError:
                raise ArgumentError(
                    "fractions", fractions, problem="must be three positive shares of 1"
                ) from None
        return cls(**own)

    def record(self) -> dict[str, Any]:
        """The recipe as plain values for JSON; lists are joined by commas."""
        droughts = [self.drought] if isinstance(self.drought, str) else self.drought
        return {
            "min_acres": self.min_acres,
            "drought": None if droughts is None else ",".join(droughts),
            "smoke_floor": self.smoke_floor,
            "seed": self.seed,
            "by": self.by,
            "fractions": None if self.fractions is None else ",".join(map(str, self.fractions)),
        }

    def select(self, snapshots: xr.Dataset, outputs: str | Sequence[str] = SMOKE) -> xr.Dataset:
        """The snapshots that pass the filters; the smoke floor is applied to `outputs`.

        Fires that are the same run under several names get one ignition.
        """
        if self.drought is not None:
            snapshots = select_drought(snapshots, self.drought)
        if self.min_acres is not None:
            snapshots = drop_small_fires(snapshots, self.min_acres)
        if self.smoke_floor is not None:
            for name in [outputs] if isinstance(outputs, str) else outputs:
                snapshots = apply_smoke_floor(snapshots, self.smoke_floor, name)
        return _with_groups(snapshots, self.by)

    def split(self, snapshots: xr.Dataset, outputs: str | Sequence[str] = SMOKE) -> Split:
        """The three parts of the snapshots that pass the filters."""
        if self.fractions is None:
            raise PlumecastError("fractions=None makes no split; give three shares of 1")
        return split_by_fire(self.select(snapshots, outputs), self.fractions, self.seed, by=self.by)

    def leaves_groups_out(self, selected: xr.Dataset) -> bool:
        """Whether all selected snapshots are for training, and scores come from folds of groups.

        So it is without fractions, and with the default fractions if there are few groups.
        """
        if self.fractions is None:
            return True
        if tuple(self.fractions) != PAPER_FRACTIONS:
            return False
        _check_label(selected, self.by)
        return np.unique(selected[self.by].values.astype(str)).size < FEW_GROUPS


def check_apart(by: str, **parts: xr.Dataset) -> None:
    """Raise when a part is empty or two parts share a group."""
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
                    "scores would be too good; move the group to one part"
                )


def split_by_fire(
    snapshots: xr.Dataset,
    fractions: Sequence[float] = PAPER_FRACTIONS,
    seed: int = 0,
    *,
    by: str = "ignition_id",
) -> Split:
    """Split whole groups at random into shares of the snapshots.

    The split depends on the seed, not on the order of the snapshots. Fires that are the same run
    under several names stay in one part, with a DuplicateWarning. With fewer than twelve groups, if
    the training part would have a single group or lack a drought of the data, another split is
    drawn with the same seed, because an operator cannot predict a drought that it has not seen.

    Parameters
    ----------
    snapshots
        Snapshots of fires.
    fractions
        Shares of training, validation and test.
    seed
        Of the random split.
    by
        Grouping coordinate. Ignitions stay whole by default, so that none is in two parts under
        different weathers; "fire_id" allows that, a looser reading of the paper.
    """
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.shape != (3,) or not (shares > 0.0).all() or abs(shares.sum() - 1.0) > 1e-9:
        raise ArgumentError(
            "fractions", tuple(fractions), problem="must be three positive shares of 1"
        )
    _check_label(snapshots, by)
    snapshots = _with_groups(snapshots, by)
    groups, member, counts = np.unique(
        group_duplicates(snapshots, by), return_inverse=True, return_counts=True
    )
    if groups.size < 3:
        raise PlumecastError(
            f"{groups.size} group(s) by {by} cannot make three parts; add fires, or train on all "
            "snapshots (--all, or split=None in Python)"
        )
    droughts = np.zeros((groups.size, 0), dtype=bool)
    if SCENARIO in snapshots.variables and snapshots[SCENARIO].dims == (SNAPSHOT,):
        names, number = np.unique(snapshots[SCENARIO].values.astype(str), return_inverse=True)
        droughts = np.zeros((groups.size, names.size), dtype=bool)
        droughts[member, number] = True
    part_of_group = _draw_parts(counts, shares, droughts, seed)
    rows = [np.flatnonzero(part_of_group[member] == part) for part in range(3)]
    train, validation, test = (snapshots.isel({SNAPSHOT: index}) for index in rows)
    return Split(train, validation, test, by, seed, (shares[0], shares[1], shares[2]))


def _with_groups(snapshots: xr.Dataset, by: str) -> xr.Dataset:
    """Give duplicates one label `by`; fires keep their names, because a name is one run's."""
    if by == "fire_id" or by not in snapshots.variables or snapshots[by].dims != (SNAPSHOT,):
        return snapshots
    before, grouped = snapshots[by].values.astype(str), group_duplicates(snapshots, by)
    if np.array_equal(before, grouped):
        return snapshots
    return snapshots.assign_coords({by: (SNAPSHOT, grouped, snapshots[by].attrs)})


def _check_label(snapshots: xr.Dataset, by: str) -> None:
    if by not in snapshots.variables:
        raise PlumecastError(f"coordinate '{by}' is missing; it groups the snapshots of the split")
    if snapshots[by].dims != (SNAPSHOT,):
        raise PlumecastError(
            f"'{by}' has dimensions {snapshots[by].dims}: it labels no snapshots; "
            "choose a coordinate along snapshot, such as ignition_id"
        )


def _draw_parts(counts: Array, shares: Array, droughts: Array, seed: int) -> Array:
    """(G,) part of each group: the first random draw whose training part is complete.

    It has every drought, and two groups if possible, because a penalty is chosen by leaving one
    out. If no draw is complete, the one that lacks least. Many groups are drawn once. The cuts are
    where the cumulative counts of snapshots come nearest to the shares; each part has a group.
    """
    rng, groups = np.random.default_rng(seed), counts.size
    complete = droughts.shape[1] + min(groups - 2, 2)
    most, best = -1, np.empty(0, dtype=np.int64)
    for _ in range(DRAWS):
        order = rng.permutation(groups)
        total = np.concatenate([[0], np.cumsum(counts[order])]) / counts.sum()
        first = int(np.argmin(np.abs(total - shares[0])))
        first = min(max(first, 1), groups - 2)
        second = int(np.argmin(np.abs(total - shares[0] - shares[1])))
        second = min(max(second, first + 1), groups - 1)
        parts = np.empty(groups, dtype=np.int64)
        parts[order] = np.repeat([0, 1, 2], [first, second - first, groups - second])
        trained = int(np.count_nonzero(droughts[parts == 0].any(axis=0)))
        trained += min(int(np.count_nonzero(parts == 0)), 2)
        if trained > most:
            most, best = trained, parts
        if most == complete or groups >= STRATIFIED_GROUPS:
            break
    return best


def group_rows(labels: Array) -> list[Array]:
    """Row indices of every distinct label, in the order of the labels."""
    _, member = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    order = np.argsort(member, kind="stable")
    ends = np.cumsum(np.bincount(member))[:-1]
    return list(np.split(order, ends))


class DuplicateWarning(PlumecastWarning):
    """Fires with different names are the same run."""


def find_duplicates(snapshots: xr.Dataset) -> list[tuple[str, ...]]:
    """Groups of fires that are the same run under different names.

    Two fires are the same if their last common checkpoint has equal hours, equal burned area and an
    equal field of the time since ignition. Earlier checkpoints do not suffice: fires of one
    ignition under different weathers may begin alike. Runs that differ only in the smoke count as
    equal: their input would be in two parts of a split. Only the fields of snapshots that agree in
    hours and burned area, which is not zero, are read.
    """
    if not set(_NEEDED) <= set(snapshots.variables):
        return []
    fires = snapshots.fire_id.values.astype(str)
    hours, area = snapshots.hours.values, snapshots.burned_area.values
    keys = np.unique(np.stack([hours, area]), axis=1, return_inverse=True)[1].ravel()
    pairs = np.unique(np.stack([keys, np.unique(fires, return_inverse=True)[1]]), axis=1)
    several = np.bincount(pairs[0], minlength=keys.max(initial=0) + 1) > 1
    rows = np.flatnonzero(several[keys] & (area > 0.0))
    alike: dict[tuple[float, str], set[str]] = defaultdict(set)
    for block in row_blocks(rows.size, _BLOCK):
        fields = snapshots[FIRE].isel({SNAPSHOT: rows[block]}).transpose(SNAPSHOT, ...).values
        for row, field in zip(rows[block], fields, strict=True):
            alike[float(hours[row]), field_digest(field)].add(str(fires[row]))
    checkpoints: dict[str, set[float]] = defaultdict(set)
    for fire, hour in zip(fires.tolist(), hours.tolist(), strict=True):
        checkpoints[fire].add(hour)
    return _joined(
        pair
        for (hour, _), group in alike.items()
        for pair in itertools.combinations(sorted(group), 2)
        if hour == max(checkpoints[pair[0]] & checkpoints[pair[1]])
    )


def field_digest(field: Array) -> str:
    """What equal fields have in common, in single precision."""
    values = np.ascontiguousarray(field, np.float32)
    return hashlib.blake2b(values.tobytes(), digest_size=16).hexdigest()


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


def _joined(groups: Iterable[Iterable[str]]) -> list[tuple[str, ...]]:
    """Groups that share a member become one; members and groups in the order of their names."""
    joined: list[set[str]] = []
    for group in map(set, groups):
        touching = [other for other in joined if other & group]
        joined = [other for other in joined if not other & group]
        joined.append(group.union(*touching))
    return sorted(tuple(sorted(group)) for group in joined)
