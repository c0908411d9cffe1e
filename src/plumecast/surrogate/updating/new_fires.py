"""Which fires of a data set are new to a surrogate, and whether it can take them in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.data.checksums import fire_fingerprints
from plumecast.data.layout import checked_field
from plumecast.data.split import SplitRecipe

if TYPE_CHECKING:
    from plumecast.surrogate.surrogate import Surrogate

FIRES, HELD_OUT = "fires", "held_out"
"""Entries of a training record: fingerprints by `fire_id`, and groups that are kept for scores."""

SINCE_FIT = "ignitions_since_fit"
"""Entry of a training record: number of new ignitions that were taken in after the last fit."""

GROUP = "ignition_id"


@dataclass(frozen=True, slots=True)
class NewFires:
    """Snapshots of fires that a surrogate does not contain."""

    snapshots: xr.Dataset
    known: int  # fires that it contains
    held_out: int  # fires of groups that are kept for scores


def updatable_record(training: xr.Dataset, fields: list[str]) -> dict[str, Any]:
    """The entries of a training record that tell new fires from known ones."""
    return {FIRES: fire_fingerprints(training, fields)}


def group_name(training: Mapping[str, Any]) -> str:
    """The grouping coordinate of a surrogate."""
    return str(training.get("split", {}).get("by", GROUP))


def find_new_fires(surrogate: Surrogate, fires: xr.Dataset) -> NewFires:
    """The fires that pass the recorded filters and that the surrogate does not contain."""
    training = surrogate.training
    check_updatable(surrogate)
    if fires.sizes.get(SNAPSHOT, 0) == 0:
        raise PlumecastError("there are no snapshots to take in; give a store with fires")
    check_fields(surrogate, fires)
    names = [*surrogate.inputs.names, *surrogate.outputs.names]
    by = group_name(training)
    for name in ("fire_id", by):
        if name not in fires.variables:
            raise PlumecastError(f"coordinate '{name}' is missing; it groups the fires; add it")
    pairs = (fires[name].values.astype(str).tolist() for name in ("fire_id", by))
    own = dict(zip(*pairs, strict=True))  # groups before copies of a fire are joined
    if "split" in training:
        recipe = SplitRecipe.from_record(training["split"])
        fires = _passing(recipe, fires)
        if fires.sizes[SNAPSHOT] == 0:
            return NewFires(fires, 0, 0)
        rest = replace(recipe, drought=None, min_acres=None)
        fires = rest.select(fires, list(surrogate.outputs.names))
    found = fire_fingerprints(fires, names)
    inside = {name for name in found if _is_inside(training[FIRES], name, found[name])}
    ids, groups = fires["fire_id"].values.astype(str), fires[by].values.astype(str)
    held = np.isin([own[name] for name in ids.tolist()], training.get(HELD_OUT, []))
    apart = np.isin(groups, groups[held])  # copies of a fire that is held out, too
    known = np.isin(ids, sorted(inside))
    return NewFires(
        fires.isel({SNAPSHOT: np.flatnonzero(~apart & ~known)}),
        len(inside),
        np.unique(ids[apart & ~known]).size,
    )


def _passing(recipe: SplitRecipe, fires: xr.Dataset) -> xr.Dataset:
    """The snapshots of the recorded droughts and sizes; unlike a split, perhaps none."""
    passes = np.ones(fires.sizes[SNAPSHOT], dtype=bool)
    for name, wanted in (("drought", recipe.drought), ("burned_area", recipe.min_acres)):
        if wanted is not None and name not in fires.variables:
            raise PlumecastError(f"coordinate '{name}' is missing; training selected by it; add it")
    if recipe.drought is not None:
        passes &= np.isin(fires["drought"].values.astype(str), np.atleast_1d(recipe.drought))
    if recipe.min_acres is not None:
        passes &= fires["burned_area"].values >= recipe.min_acres
    return fires.isel({SNAPSHOT: np.flatnonzero(passes)})


def _is_inside(known: Mapping[str, str], fire: str, fingerprint: str) -> bool:
    """Whether a fire is in the surrogate, perhaps under another name."""
    if known.get(fire, fingerprint) != fingerprint:
        raise PlumecastError(
            f"fire_id '{fire}' names another fire in this surrogate, with other fields; rename the "
            "fire, or train again if it was read again"
        )
    return fingerprint in known.values()


def check_updatable(surrogate: Surrogate) -> None:
    """Raise unless the surrogate keeps what new fires can be added to."""
    if surrogate.sums is None or FIRES not in surrogate.training:
        raise PlumecastError(
            "this surrogate was trained without what new fires can be added to; train it again "
            "with `plumecast train STORE --updatable`, in Python with updatable=True"
        )


def check_fields(surrogate: Surrogate, fires: xr.Dataset) -> None:
    """Raise for fires on another grid, without a variable, or with other checkpoints."""
    for part in (*surrogate.inputs.fields, *surrogate.outputs.fields):
        if part.name not in fires:
            raise PlumecastError(
                f"variable '{part.name}' is missing from the new fires; found "
                f"{', '.join(sorted(map(str, fires.data_vars)))}"
            )
        checked_field(fires[part.name], part)
    for part in surrogate.outputs.fields:
        before, now = (recorded_interval(attrs) for attrs in (part.attrs, fires[part.name].attrs))
        if before is not None and now is not None and not np.isclose(before, now):
            raise PlumecastError(
                f"'{part.name}' of the new fires is summed over checkpoints every {now:g} h, that "
                f"of training every {before:g} h; read the fires again with --every {before:g}h"
            )
