"""Take new fires of a store into a surrogate, one ignition at a time, and fit again when asked."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT, WEATHER_HOUR
from plumecast.base.values import check_count, check_number
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.assembly import concat_snapshots
from plumecast.data.split import SplitRecipe, group_rows
from plumecast.data.store import EmptyStoreError, open_snapshots
from plumecast.operators.settings import recorded_choices
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.update import (
    FIRES,
    HELD_OUT,
    SINCE_FIT,
    UPDATES,
    find_new_fires,
    group_name,
    take_in,
)
from plumecast.weather.snapshots import has_weather, on_weather_hours
from plumecast.workflows.held_out.unseen import CURVE, score_new
from plumecast.workflows.train import train_surrogate


@dataclass(frozen=True, slots=True)
class Taken:
    """A surrogate that has taken in one more ignition."""

    surrogate: Surrogate
    group: str
    fires: tuple[str, ...]
    snapshots: int
    is_new: bool  # False: further fires of an ignition that the surrogate contains
    score: dict[str, Any] | None  # by the surrogate before; None if it is not new or has no τ
    refitted: bool
    seconds: float  # of the update, or of the fit


def take_in_fires(
    surrogate: Surrogate,
    fires: xr.Dataset,
    *,
    refit_after: int | None = None,
    training: Sequence[xr.Dataset] = (),
    resources: Resources = LOCAL,
) -> Iterator[Taken]:
    """Take in every new ignition of a data set in the order of its rows; yields after each.

    Each is scored by the surrogate before it is taken in. With `refit_after`, a new fit to all
    fires replaces the update after that many new ignitions: earlier fires are read from `fires` and
    from `training`.
    """
    if refit_after is not None:
        check_count("refit_after", refit_after)
        check_stored(surrogate, [*training, fires])
    by, new = group_name(surrogate.training), find_new_fires(surrogate, fires).snapshots
    labels = new[by].values.astype(str)
    groups = group_rows(labels) if labels.size else []
    for number, rows in enumerate(sorted(groups, key=lambda rows: int(rows[0]))):
        group = str(labels[rows[0]])
        resources.progress(number, len(groups), group)
        part = new.isel({SNAPSHOT: rows}).compute()
        is_new = group not in surrogate.training.get(by, ())
        score = score_new(surrogate, part) if is_new else None
        start = time.perf_counter()
        surrogate = take_in(surrogate, part, resources)
        record = dict(surrogate.training)
        record[SINCE_FIT] = int(record.get(SINCE_FIT, 0)) + is_new
        if score is not None:  # a point of its learning curve
            record[CURVE] = [*record.get(CURVE, []), {"group": group} | score]
        surrogate = replace(surrogate, training=record)
        due = refit_after is not None and surrogate.training[SINCE_FIT] >= refit_after
        if due:
            surrogate = refit(surrogate, [*training, fires], resources)
        seconds = time.perf_counter() - start
        names = tuple(np.unique(part["fire_id"].values.astype(str)).tolist())
        yield Taken(surrogate, group, names, rows.size, is_new, score, due, seconds)


def refit(
    surrogate: Surrogate, data: Sequence[xr.Dataset], resources: Resources = LOCAL
) -> Surrogate:
    """A new fit, with the recorded settings, to all fires that a surrogate contains.

    Every fire is read from the first data set that has it. All choices are made again; thresholds,
    scores and error bars come from out-of-fold predictions. Groups that were held out stay so.
    """
    before = surrogate.training
    check_stored(surrogate, data)
    parts, missing = [], set(before[FIRES])
    for part in data:
        ids = part["fire_id"].values.astype(str)
        rows = np.flatnonzero(np.isin(ids, sorted(missing)))
        if rows.size:
            parts.append(part.isel({SNAPSHOT: rows}).compute())
        missing -= set(ids.tolist())
    recipe = SplitRecipe.from_record(before.get("split", {}))
    preset, choices = recorded_choices(surrogate.settings)
    fitted = train_surrogate(
        _joined(parts),
        preset,
        split=replace(recipe, fractions=None),
        inputs=list(surrogate.inputs.names),
        outputs=list(surrogate.outputs.names),
        resources=Resources(resources.device),
        updatable=True,
        **choices,
    )
    kept = {name: before[name] for name in (CURVE, HELD_OUT) if name in before}
    done = {"refitted": sorted(before[FIRES]), "kept": []}
    history = {UPDATES: [*before.get(UPDATES, []), done], SINCE_FIT: 0}
    return replace(fitted, training=fitted.training | kept | history)


def _joined(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """Snapshots of several stores, with what they have in common and the longest weather."""
    if all(has_weather(part) for part in parts):
        longest = max((part[WEATHER_HOUR].values for part in parts), key=len)
        parts = [on_weather_hours(part, longest) for part in parts]
    shared = set.intersection(*(set(part.variables) for part in parts))
    parts = [part.drop_vars([n for n in part.variables if n not in shared]) for part in parts]
    try:
        return concat_snapshots(parts, combine_attrs="override")
    except ValueError as error:
        raise PlumecastError(f"the stores cannot be joined for a new fit ({error})") from None


def check_stored(surrogate: Surrogate, data: Sequence[xr.Dataset]) -> None:
    """Raise if a fire of the surrogate is in none of the data sets, so that no fit can have it."""
    missing = set(surrogate.training[FIRES])
    for part in data:
        missing -= set(part["fire_id"].values.astype(str).tolist())
    if missing:
        raise PlumecastError(
            f"{len(missing)} fires of this surrogate are in no given store, the first "
            f"'{min(missing)}'; name the store that it was trained on (--training)"
        )


def watch_store(path: Path, every: float, fields: Sequence[str]) -> Iterator[xr.Dataset]:
    """The store whenever it has grown, without ignitions that may still grow.

    An ignition is whole when it has the same fires in two looks, `every` seconds apart: the fires
    of one ignition are committed one by one. Ends only when the caller stops.
    """
    check_number("every", every, above=0.0)
    before: dict[str, int] = {}
    yielded: dict[str, int] = {}
    while True:
        snapshots = None
        with suppress(EmptyStoreError):
            snapshots = open_snapshots(path, fields=fields) if path.exists() else None
        if snapshots is not None:
            labels = snapshots["ignition_id"].values.astype(str)
            sizes = Counter(labels.tolist())
            whole = {name: size for name, size in sizes.items() if before.get(name) == size}
            before = dict(sizes)
            if whole and whole != yielded:
                yielded = whole
                yield snapshots.isel({SNAPSHOT: np.flatnonzero(np.isin(labels, sorted(whole)))})
        time.sleep(every)
