"""What training refuses in a store as a whole; `info --check` says it before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.findings import Finding
from plumecast.base.names import SMOKE
from plumecast.data.conditions.covariates import read_wind
from plumecast.data.schema import check_axes, check_ground, check_values

_GROUP = "ignition_id"


def check_group_count(count: int, group_by: str) -> None:
    """Raise if there are too few groups to leave one out."""
    if count < 2:
        raise PlumecastError(
            "this surrogate leaves fires out to choose its penalties; it needs at least 2 "
            f"'{group_by}', the training data has {count}; add fires, change --fractions or "
            "--seed of the split, or train on all of them with --all"
        )


def refusals(snapshots: xr.Dataset, duplicates: Sequence[Sequence[str]] = ()) -> Iterator[Finding]:
    """What `plumecast train` refuses beside the values of the fields.

    `duplicates` are the fires that count as one. A store without smoke is not for training.
    """
    checks: dict[str, Callable[[], object]] = {
        "labels": lambda: check_values(snapshots, ()),
        "grid": lambda: check_axes(snapshots),
        "wind": lambda: read_wind(snapshots),
        "ground": lambda: check_ground(snapshots),
    }
    if SMOKE in snapshots:
        checks["groups"] = lambda: check_group_count(_groups(snapshots, duplicates), _GROUP)
    for name, check in checks.items():
        try:
            check()
        except PlumecastError as error:
            yield Finding(name, str(error))


def _groups(snapshots: xr.Dataset, duplicates: Sequence[Sequence[str]]) -> int:
    """The number of ignitions, with those of duplicate runs as one."""
    fires, labels = (snapshots[name].values.astype(str) for name in ("fire_id", _GROUP))
    joined = {label: {label} for label in np.unique(labels).tolist()}
    for group in duplicates:
        linked = np.unique(labels[np.isin(fires, list(group))]).tolist()
        together = set().union(*(joined[label] for label in linked))
        joined |= dict.fromkeys(together, together)
    return len({min(group) for group in joined.values()})
