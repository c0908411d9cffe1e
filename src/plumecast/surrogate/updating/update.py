"""Take new fires into a surrogate: its operator, ranges, error bars and record."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import DATA_VERSION, SIMULATION, SNAPSHOT
from plumecast.compute.device import Budget, choose_device
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.checks.fingerprints import fire_fingerprints
from plumecast.data.conditions.covariates import extrapolating
from plumecast.data.schema import check_values
from plumecast.data.training import TrainingMatrices, provenance
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.coded.polynomial_map import PrimalMap
from plumecast.operators.coded.update import update_coded_operator
from plumecast.operators.family import Conditions, Operator, TrainingSet
from plumecast.operators.lifted import LiftedOperator, update_lifted_operator
from plumecast.operators.pca import Truncation
from plumecast.surrogate.covered.ranges import merge_ranges, training_ranges
from plumecast.surrogate.error_bars.calibration import Calibration, join_cells
from plumecast.surrogate.error_bars.counting import CellBins
from plumecast.surrogate.updating.new_fires import (
    FIRES,
    NewFires,
    find_new_fires,
    group_name,
)

if TYPE_CHECKING:
    from plumecast.surrogate.surrogate import Surrogate

UPDATES = "updates"
"""Entry of a training record: what was taken in after the fit, and what was kept as it was."""

ALWAYS_KEPT = ("penalties", "thresholds")


def update_surrogate(
    surrogate: Surrogate, fires: xr.Dataset, resources: Resources = LOCAL
) -> Surrogate:
    """The surrogate with further fires (`Surrogate.update`)."""
    found = find_new_fires(surrogate, fires)
    _refuse_known(found)
    return take_in(surrogate, found.snapshots, resources)


def _refuse_known(found: NewFires) -> None:
    """Raise unless all fires are new."""
    for count, why in ((found.known, "already in the surrogate"), (found.held_out, "kept apart")):
        if count:
            raise PlumecastError(
                f"{count} of the fires are {why}; pass only new ones, or let `plumecast update` "
                "select them"
            )
    if found.snapshots.sizes[SNAPSHOT] == 0:
        raise PlumecastError("no snapshot passes the filters of this surrogate; give other fires")


def take_in(surrogate: Surrogate, fires: xr.Dataset, resources: Resources = LOCAL) -> Surrogate:
    """The surrogate with fires that `find_new_fires` selected."""
    names = [*surrogate.inputs.names, *surrogate.outputs.names]
    fires = check_values(fires.compute(), names)
    inputs, given = surrogate.read_rows(fires)
    outputs = surrogate.outputs.to_matrix(fires)
    data = TrainingMatrices(fires, surrogate.inputs, surrogate.outputs, inputs, outputs)
    grown = _Update(surrogate, data, given, Budget(choose_device(resources.device)))
    operator, sums = grown.operator()
    first, *others = _joined_error_bars(surrogate, fires, inputs, given, outputs)
    named = zip(surrogate.outputs.names[1:], others, strict=True)
    further = {name: bars for name, bars in named if bars is not None} or None
    updated = replace(
        surrogate, operator=operator, sums=sums, error_bars=first, further_bars=further
    )
    return replace(updated, training=_record(surrogate, data, operator, names))


@dataclass(frozen=True, slots=True)
class _Update:
    """New snapshots on their way into the operator of a surrogate."""

    surrogate: Surrogate
    data: TrainingMatrices
    given: Conditions
    resources: Budget

    def operator(self) -> tuple[Operator, Any]:
        """The operator with the new snapshots, and its sums."""
        operator, sums = self.surrogate.operator, self.surrogate.sums
        settings = self.surrogate.settings
        if isinstance(operator, CodedOperator):
            rules = tuple(Truncation(**settings[side]) for side in ("fire", "smoke"))
            return update_coded_operator(
                operator, sums, self.data.inputs, self.data.outputs, (rules[0], rules[1])
            )
        assert isinstance(operator, LiftedOperator)
        fire, smoke = self.data.on_grids()
        groups = np.zeros(fire.shape[0], dtype=np.int64)
        new = TrainingSet(fire, smoke, groups, self.given)
        return update_lifted_operator(operator, sums, new, settings["family"], self.resources)


def kept_choices(surrogate: Surrogate) -> list[str]:
    """What an update keeps as the fit chose it, in words."""
    operator = surrogate.operator
    if isinstance(operator, LiftedOperator):
        found = ["knots of the lift", "blend of the targets"]
        found += ["frame"] if operator.frame is not None else []
        found += ["mix of the physics"] if operator.physics is not None else []
        if len(getattr(operator.field_map, "layers", ())) > 1:
            found += ["all layers but the last"]
        return [*found, *ALWAYS_KEPT]
    code_map = getattr(operator, "code_map", None)
    found = ["modes of the earlier fires"]
    if isinstance(code_map, PrimalMap):
        found = [] if code_map.degree == 1 else ["bases"]
    found += ["length scale"] if "length_scale" in surrogate.training else []
    return [*found, *ALWAYS_KEPT]


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
