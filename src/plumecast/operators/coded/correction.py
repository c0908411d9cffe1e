"""Kernel regression of out-of-fold residuals: location effects that a convolution cannot represent.

The same fire elsewhere does not make quite the same plume, because fuels and terrain differ. Where
many fires were simulated, some burned where a new fire burns. A kernel of the distance between
codes predicts the operator's residual of a new fire from the out-of-fold residuals of similar
training fires; far from all training fires it predicts zero. Arrays only, no labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, like, map_arrays, take_rows, to_numpy
from plumecast.compute.resources import DEFAULT_BUDGET, RESERVE, Budget, show_memory
from plumecast.operators.coded.kernel_tuning import tune_kernel_map
from plumecast.operators.coded.kernels import typical_distance
from plumecast.operators.coded.operator import CodedMap, code_size, encode, join_codes, lifted
from plumecast.operators.family import NOTHING, Conditions, FieldMap, TrainingSet
from plumecast.operators.lift import fit_lift
from plumecast.operators.pca import Truncation, fit_truncated_basis

KERNEL = "matern-5/2"

INPUTS = Truncation(std_fraction=0.8, max_rank=400)
OUTPUTS = Truncation(std_fraction=0.95, max_rank=200)
"""Truncation of the fire and of the residuals: a kernel needs few codes."""

VALUES = 100_000_000
ROWS = 5_000
"""Largest numbers of residual values and of snapshots; of larger sets whole groups are sampled."""

BLOCK_BYTES = 1000.0
"""Bytes per pair of snapshots of one group: residual blocks of 40 penalties, and copies."""

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Factors of the correction that are tried. Out-of-fold residuals are a little larger than those of
new fires, because each fold is fitted to fewer fires."""


@dataclass(frozen=True, slots=True)
class CorrectedMap:
    """A field map plus a correction of its residuals."""

    field_map: FieldMap
    correction: CodedMap

    def predict(self, fire: Array, given: Conditions = NOTHING) -> Array:
        """(M, *grid) → (M, T, *grid)."""
        return self.field_map.predict(fire, given) + self.correction.predict(fire, given)

    def working_bytes(self) -> tuple[float, float]:
        """Those of the field map."""
        return self.field_map.working_bytes()


@dataclass(frozen=True, slots=True)
class FittedCorrection:
    """A correction, and its out-of-fold values for the snapshots it was fitted to.

    All arrays but `rows` are on the device of the fit.
    """

    coded: CodedMap
    shape: tuple[int, ...]  # (T, *grid)
    rows: Array  # (m,), indices of the snapshots it was fitted to, on the host
    codes: Array  # (m, q), out-of-fold corrections of those rows

    def out_of_fold(self, some: Array) -> Array:
        """(B, T, *grid) corrections of some of the rows, by a map fitted without their group."""
        return self.coded.decode(take_rows(self.codes, some), self.shape)

    def shared(self, share: float) -> CodedMap:
        """The correction times `share`, on the host; its modes, the bulk of it, in float32."""
        coded = map_arrays(self.coded, to_numpy)
        modes = map_arrays(coded.outputs, lambda array: array.astype(np.float32))
        return replace(coded, outputs=modes, target_scales=share * coded.target_scales)


def fit_correction(
    training: TrainingSet, predicted: Array, resources: Budget = DEFAULT_BUDGET
) -> FittedCorrection | None:
    """Fit the residuals of (M, T, *grid) out-of-fold predictions, which may be on the device.

    The inputs are the codes of the fire and the scalars of the snapshots. Returns None if there is
    a single group, or if the fires or the residuals do not vary.
    """
    fire, targets, groups = training.fire, training.targets, training.groups
    scalars, put = training.given.scalars(), resources.put
    rows = correction_rows(groups, targets.shape, resources.limit)
    parts = [np.flatnonzero(groups[rows] == name) for name in np.unique(groups[rows])]
    if len(parts) < 2:
        return None
    truth = targets[rows]
    axes = (0, *range(2, truth.ndim))
    scales = np.sqrt(np.mean(np.square(truth, dtype=np.float64), axis=axes))
    scales = np.where(scales > 0.0, scales, 1.0)
    shaped = scales.reshape(-1, *[1] * (truth.ndim - 2))
    residuals = put(truth)
    del truth
    residuals = (residuals - like(predicted[rows], residuals)) / like(shaped, residuals)
    xp = array_namespace(residuals)
    residuals = xp.reshape(residuals, (rows.size, -1))
    if not bool(xp.any(residuals != 0.0)):
        return None
    ages = fire[rows]
    lift = fit_lift(ages, ("identity",), ())
    ages = put(ages)
    inputs = fit_truncated_basis(lifted(lift, ages), INPUTS)
    outputs = fit_truncated_basis(residuals, OUTPUTS)
    codes, goal = encode(inputs, lift, ages), outputs.encode(residuals)
    size = code_size(codes)
    codes = join_codes(codes, None if scalars is None else scalars[rows], size)
    if not typical_distance(codes) > 0.0:  # all snapshots show the same fire
        return None
    fitted, scan = tune_kernel_map(codes, goal, kernel=KERNEL, groups=parts, anchored=False)
    coded = CodedMap(lift, inputs, fitted, outputs, size, scales)
    return FittedCorrection(coded, targets.shape[1:], rows, goal - scan.residuals)


def correction_rows(groups: Array, shape: tuple[int, ...], limit: int | None) -> Array:
    """Rows that a correction of (M, T, *grid) targets is fitted to.

    Groups are added whole, in random order, while they fit; at least two. Raises if they need more
    than `limit` bytes.
    """
    values = int(np.prod(shape[1:]))
    names, member, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    most, kept = min(ROWS, VALUES // values), np.zeros(names.size, dtype=bool)
    for number in np.random.default_rng(0).permutation(names.size):
        if sizes[kept].sum() + sizes[number] <= most or np.count_nonzero(kept) < 2:
            kept[number] = True
    rows = np.flatnonzero(kept[member])
    blocks = BLOCK_BYTES * float(np.sum(sizes[kept].astype(np.float64) ** 2))
    needed = (28.0 * values + 40.0 * rows.size) * rows.size + blocks
    if limit is not None and needed > RESERVE * limit:
        raise PlumecastError(
            f"a correction from {rows.size} snapshots needs at least "
            f"{show_memory(needed / RESERVE)}, the limit is {show_memory(limit)}; raise the limit, "
            "or fit without the correction"
        )
    return rows
