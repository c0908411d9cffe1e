"""Take new fires into a surrogate: which are new; its operator, error bars and record."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.names import DATA_VERSION, SIMULATION, SNAPSHOT
from plumecast.compute.resources import LOCAL, Budget, Resources, choose_device
from plumecast.data.checksums import fire_fingerprints
from plumecast.data.covariates import extrapolating
from plumecast.data.layout import checked_field
from plumecast.data.schema import check_values
from plumecast.data.split import SplitRecipe
from plumecast.data.training import TrainingMatrices, provenance
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.coded.polynomial_map import PrimalMap
from plumecast.operators.coded.update import update_coded_operator
from plumecast.operators.family import Conditions, Operator, TrainingSet
from plumecast.operators.lifted import LiftedOperator, update_lifted_operator
from plumecast.operators.pca import Truncation
from plumecast.surrogate.error_bars.calibration import Calibration, join_cells
from plumecast.surrogate.error_bars.counting import CellBins
from plumecast.surrogate.ranges import merge_ranges, training_ranges

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
    known_fires, inside = training[FIRES], set()
    for fire, fingerprint in fire_fingerprints(fires, names).items():
        if known_fires.get(fire, fingerprint) != fingerprint:
            raise PlumecastError(
                f"fire_id '{fire}' names another fire in this surrogate, with other fields; rename "
                "the fire, or train again if it was read again"
            )
        if fingerprint in known_fires.values():  # perhaps under another name
            inside.add(fire)
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


UPDATES = "updates"
"""Entry of a training record: what was taken in after the fit, and what was kept as it was."""


def update_surrogate(
    surrogate: Surrogate, fires: xr.Dataset, resources: Resources = LOCAL
) -> Surrogate:
    """The surrogate with further fires (`Surrogate.update`); raises unless all of them are new."""
    found = find_new_fires(surrogate, fires)
    for count, why in ((found.known, "already in the surrogate"), (found.held_out, "kept apart")):
        if count:
            raise PlumecastError(
                f"{count} of the fires are {why}; pass only new ones, or let `plumecast update` "
                "select them"
            )
    if found.snapshots.sizes[SNAPSHOT] == 0:
        raise PlumecastError("no snapshot passes the filters of this surrogate; give other fires")
    return take_in(surrogate, found.snapshots, resources)


def take_in(surrogate: Surrogate, fires: xr.Dataset, resources: Resources = LOCAL) -> Surrogate:
    """The surrogate with fires that `find_new_fires` selected."""
    names = [*surrogate.inputs.names, *surrogate.outputs.names]
    fires = check_values(fires.compute(), names)
    inputs, given = surrogate.read_rows(fires)
    outputs = surrogate.outputs.to_matrix(fires)
    data = TrainingMatrices(fires, surrogate.inputs, surrogate.outputs, inputs, outputs)
    operator, sums = _grown(surrogate, data, given, Budget(choose_device(resources.device)))
    tables = _joined_error_bars(surrogate, fires, inputs, given, outputs)
    records = {
        name: replace(record, error_bars=table)
        for (name, record), table in zip(surrogate.records.items(), tables, strict=True)
    }
    training = _record(surrogate, data, operator, names)
    updated = replace(surrogate, operator=operator, sums=sums, training=training)
    return updated.with_records(records)


def _grown(
    surrogate: Surrogate, data: TrainingMatrices, given: Conditions, budget: Budget
) -> tuple[Operator, Any]:
    """The operator with the new snapshots, and its sums."""
    operator, settings = surrogate.operator, surrogate.settings
    if isinstance(operator, CodedOperator):
        rules = Truncation(**settings["fire"]), Truncation(**settings["smoke"])
        return update_coded_operator(operator, surrogate.sums, data.inputs, data.outputs, rules)
    assert isinstance(operator, LiftedOperator)
    fire, smoke = data.on_grids()
    new = TrainingSet(fire, smoke, np.zeros(fire.shape[0], dtype=np.int64), given)
    return update_lifted_operator(operator, surrogate.sums, new, settings["family"], budget)


def kept_choices(surrogate: Surrogate) -> list[str]:
    """What an update keeps as the fit chose it, in words."""
    operator = surrogate.operator
    if isinstance(operator, LiftedOperator):
        kept = ["knots of the lift", "blend of the targets"]
        kept += ["frame"] if operator.frame is not None else []
        kept += ["mix of the physics"] if operator.physics is not None else []
        several = len(getattr(operator.field_map, "layers", ())) > 1
        kept += ["all layers but the last"] if several else []
    else:
        code_map = getattr(operator, "code_map", None)
        kept = ["modes of the earlier fires"]
        if isinstance(code_map, PrimalMap):
            kept = [] if code_map.degree == 1 else ["bases"]
        kept += ["length scale"] if "length_scale" in surrogate.training else []
    return [*kept, "penalties", "thresholds"]


def _joined_error_bars(
    surrogate: Surrogate, fires: xr.Dataset, inputs: np.ndarray, given: Conditions, truth: Any
) -> list[Calibration | None]:
    """The calibrations of all outputs with the cells of new groups, predicted before the update.

    Fires of a group that is in the surrogate are left out: a fit has seen their group.
    """
    tables = list(surrogate.calibrations())
    by = next((table.by for table in tables if table is not None), None)
    if by is None or by not in fires.variables:
        return tables
    known = set(surrogate.training.get(by, []))
    known |= {group for table in tables if table is not None for group in table.groups}
    rows = np.flatnonzero(~np.isin(fires[by].values.astype(str), sorted(known)))
    if rows.size == 0:
        return tables
    with extrapolating():
        smoke, score = surrogate.predict_both_rows(inputs[rows], given.at(rows))
    some, start = fires.isel({SNAPSHOT: rows}), 0
    joined: list[Calibration | None] = []
    for field, table in zip(surrogate.outputs.fields, tables, strict=True):
        own, start = slice(start, start + field.size), start + field.size
        if table is None:
            joined.append(None)
            continue
        between = [own.hour for own in table.times]
        hours = tuple(0.5 * (a + b) for a, b in itertools.pairwise(between))
        bins = CellBins(table.by, table.tau, table.edges, table.detects, hours)
        values = (each[:, own] * field.scale for each in (smoke, score, truth[rows]))
        joined.append(join_cells(table, bins.count(some, *values)))
    return joined


def _record(
    surrogate: Surrogate, data: TrainingMatrices, operator: Operator, names: list[str]
) -> dict[str, Any]:
    """The training record with the new fires."""
    before, fires = surrogate.training, data.snapshots
    record = dict(before)
    record["snapshots"] = int(before["snapshots"]) + int(fires.sizes[SNAPSHOT])
    for name in {"fire_id", "ignition_id", group_name(before)} & set(before):
        new = set(fires[name].values.astype(str).tolist())
        record[name] = sorted(new | set(before[name]))
    record["ranges"] = merge_ranges(before.get("ranges", {}), training_ranges(data, operator))
    if isinstance(operator, CodedOperator):
        record["fire_rank"] = operator.input_basis.rank
        record["smoke_rank"] = operator.output_basis.rank
    fingerprints = fire_fingerprints(fires, names)
    record[FIRES] = before[FIRES] | fingerprints
    done = {
        "fires": sorted(fingerprints),
        "data_version": fires.attrs.get(DATA_VERSION),
        SIMULATION: provenance(fires).get(SIMULATION),
        "kept": kept_choices(surrogate),
    }
    record[UPDATES] = [*before.get(UPDATES, []), done]
    return record
