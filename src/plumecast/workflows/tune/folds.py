"""Cross-validation folds of the training ignitions, with the PCA that their fits share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.arrays import Array
from plumecast.compute.device import DEFAULT_BUDGET
from plumecast.data.layout import fit_layout
from plumecast.data.split import group_rows
from plumecast.data.training import TrainingMatrices, training_matrices
from plumecast.operators.coded.fit import CodedSettings, fit_code_map
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.pca import Basis, Truncation, fit_truncated_basis
from plumecast.surrogate.fit import fit_surrogate, label_operator
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.tune.candidates import Plan


def fold_rows(labels: Array, folds: int, by: str) -> list[Array]:
    """Rows of every fold: groups, sorted by label, are assigned to the folds in turn."""
    groups = group_rows(labels)
    if folds < 2:
        raise PlumecastError(f"folds={folds} leaves nothing out; give at least 2")
    if len(groups) < folds:
        raise PlumecastError(
            f"{len(groups)} {by}(s) in training cannot make {folds} folds; add fires or lower folds"
        )
    if len(groups) - -(-len(groups) // folds) < 2:
        raise PlumecastError(
            f"{folds} folds of {len(groups)} {by}(s) leave a single one to train on, but choosing "
            "a penalty needs two; add fires or raise folds"
        )
    return [np.sort(np.concatenate(groups[start::folds])) for start in range(folds)]


def input_basis(train: xr.Dataset, inputs: str | Sequence[str], rule: Truncation) -> Basis:
    """The basis of the input fields of all training snapshots, from which ranks are chosen."""
    names = [inputs] if isinstance(inputs, str) else list(inputs)
    return fit_truncated_basis(fit_layout(train, names).to_matrix(train), rule)


@dataclass(frozen=True)
class Fold:
    """A fold that is left out, and the rest to train on; the rest is encoded once."""

    whole: xr.Dataset
    rows: Array  # of the fold, which is left out
    inputs: str | Sequence[str]
    outputs: str
    group_by: str
    fire: Truncation  # keeps at least as many modes as every candidate
    smoke: Truncation

    @cached_property
    def held_out(self) -> xr.Dataset:
        """The snapshots left out."""
        return self.whole.isel({SNAPSHOT: self.rows})

    @property
    def rest(self) -> xr.Dataset:
        """The snapshots to train on."""
        others = np.setdiff1d(np.arange(self.whole.sizes[SNAPSHOT]), self.rows)
        return self.whole.isel({SNAPSHOT: others})

    @cached_property
    def data(self) -> TrainingMatrices:
        """The snapshots to train on as matrices."""
        return training_matrices(self.rest, self.inputs, self.outputs)

    @cached_property
    def bases(self) -> tuple[Basis, Basis]:
        """The bases of inputs and outputs; the former is truncated for each candidate."""
        return (
            fit_truncated_basis(self.data.inputs, self.fire),
            fit_truncated_basis(self.data.outputs, self.smoke),
        )

    @cached_property
    def codes(self) -> tuple[Array, Array]:
        """The codes of inputs and outputs."""
        fire, smoke = self.bases
        return fire.encode(self.data.inputs), smoke.encode(self.data.outputs)

    def fit(self, plan: Plan) -> Surrogate:
        """A candidate fitted to the snapshots that are not left out."""
        if not plan.shares_codes:
            return fit_surrogate(
                self.rest,
                inputs=self.inputs,
                outputs=self.outputs,
                group_by=self.group_by,
                **plan.choices,
            )
        (whole, output_basis), (codes, targets) = self.bases, self.codes
        # A fold has fewer snapshots than the whole, and perhaps fewer modes.
        rank = min(plan.choices["fire_rank"], whole.rank)
        groups = self.data.groups(self.group_by)
        own = CodedSettings(
            **{n: plan.choices[n] for n in ("degree", "kernel") if n in plan.choices}
        )
        code_map, _ = fit_code_map(codes[:, :rank], targets, own, groups, DEFAULT_BUDGET)
        operator = CodedOperator(whole.truncate(rank), code_map, output_basis)
        return label_operator(operator, self.data, ranges=False)
