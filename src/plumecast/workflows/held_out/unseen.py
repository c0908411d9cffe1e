"""Which snapshots of a store a surrogate has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SIMULATION, SNAPSHOT
from plumecast.data.split import Split, SplitRecipe
from plumecast.data.store import DATA_VERSION
from plumecast.data.training import provenance
from plumecast.surrogate.surrogate import Surrogate


@dataclass(frozen=True, slots=True)
class Unseen:
    """Snapshots of another store, without the groups that were in training."""

    snapshots: xr.Dataset
    trained: int  # number of groups of the store that were in training and are left out
    filtered: int  # number of snapshots that the recorded filters drop


def is_same_version(surrogate: Surrogate, snapshots: xr.Dataset) -> bool:
    """Whether the snapshots have the data version of training."""
    version = snapshots.attrs.get(DATA_VERSION)
    return version is not None and version == surrogate.training.get("data_version")


def training_split(
    surrogate: Surrogate, recipe: SplitRecipe, snapshots: xr.Dataset, outputs: str | Sequence[str]
) -> Split | None:
    """The split of training, if this is the store of training; None if it is another one.

    A store of another version is that of training if the recorded split gives the same training
    groups, and it was not simulated with other settings.
    """
    try:
        split = recipe.split(snapshots, outputs)
    except PlumecastError:
        if is_same_version(surrogate, snapshots):
            raise
        return None
    if is_same_version(surrogate, snapshots):
        return split
    trained = surrogate.training.get(recipe.by)
    groups = set(split.train[recipe.by].values.astype(str).tolist())
    same = trained is None or groups == set(trained)
    return split if same and is_same_simulation(surrogate, snapshots) else None


def unseen_snapshots(
    surrogate: Surrogate, recipe: SplitRecipe, snapshots: xr.Dataset, outputs: str | Sequence[str]
) -> Unseen:
    """All snapshots that pass the recorded filters, without the groups that were in training."""
    selected = recipe.select(snapshots, outputs)
    filtered = snapshots.sizes[SNAPSHOT] - selected.sizes[SNAPSHOT]
    trained = set(surrogate.training.get(recipe.by, ()))
    if not trained or not is_same_simulation(surrogate, snapshots):
        return Unseen(selected, 0, filtered)
    if recipe.by not in selected.variables:
        raise PlumecastError(
            f"coordinate '{recipe.by}' is missing, so that it is unknown whether the surrogate was "
            "trained on these snapshots; add it"
        )
    labels = selected[recipe.by].values.astype(str)
    seen = np.isin(labels, sorted(trained))
    kept = selected.isel({SNAPSHOT: np.flatnonzero(~seen)})
    return Unseen(kept, np.unique(labels[seen]).size, filtered)


def is_same_simulation(surrogate: Surrogate, snapshots: xr.Dataset) -> bool:
    """False if simulated fires differ in their settings: equal names are then other fires.

    Fires that were taken in after the fit count too.
    """
    found, training = provenance(snapshots).get(SIMULATION), surrogate.training
    later = [item[SIMULATION] for item in training.get("updates", ()) if SIMULATION in item]
    return found in [training.get(SIMULATION), *later]
