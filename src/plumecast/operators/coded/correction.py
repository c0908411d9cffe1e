"""What an equivariant operator cannot know of a place, learned from the fires most like a new one.

The same fire elsewhere does not make quite the same plume: fuels and terrain differ, and where many
fires were simulated, some burned where the new one burns. A kernel of the distance between codes
carries what the operator left over for training fires, each predicted without its fold, to a new
fire; far from all training fires it adds nothing. Arrays only, no labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, like, map_arrays, take_rows, to_numpy
from plumecast.compute.memory import RESERVE, show_memory
from plumecast.operators.coded.fields import CodedMap, code_size, encode, join_codes, lifted
from plumecast.operators.coded.kernel_tuning import tune_kernel_map
from plumecast.operators.coded.kernels import typical_distance
from plumecast.operators.fields.lift import fit_lift
from plumecast.operators.pca import Truncation, fit_truncated_basis

KERNEL = "matern-5/2"

INPUTS = Truncation(std_fraction=0.8, max_rank=400)
OUTPUTS = Truncation(std_fraction=0.95, max_rank=200)
"""Codes of the fire, and of what is left over: a kernel needs few of them."""

VALUES = 100_000_000
ROWS = 5_000
"""Values of the leftovers and snapshots that are held, at most: of more, whole groups are drawn."""

BLOCK_BYTES = 1000.0
"""Bytes for every pair of snapshots of a group: 40 penalties, and copies of them."""

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Shares of the correction tried: folds leave a little more over than new fires do."""


@dataclass(frozen=True, slots=True)
class FittedCorrection:
    """A correction, and its values for the snapshots it was fitted to, each without its group; on
    the device of the fit."""

    coded: CodedMap
    shape: tuple[int, ...]  # (T, *grid)
    rows: Array  # (m,), of all snapshots, on the host
    codes: Array  # (m, q), corrections of those rows without their group

    def left_out(self, some: Array) -> Array:
        """(B, T, *grid) corrections of some of the rows, by a map without their group."""
        return self.coded.decode(take_rows(self.codes, some), self.shape)

    def shared(self, share: float) -> CodedMap:
        """A share of the correction on the host; its modes, most of it by far, in single
        precision."""
        coded = map_arrays(self.coded, to_numpy)
        modes = map_arrays(coded.outputs, lambda array: array.astype(np.float32))
        return replace(coded, outputs=modes, target_scales=share * coded.target_scales)


def fit_correction(
    fire: Array,
    targets: Array,
    predicted: Array,
    groups: Array,
    scalars: Array | None,
    *,
    limit: int | None = None,
    put: Callable[[Array], Array] = lambda array: array,
) -> FittedCorrection | None:
    """Fit what (M, T, *grid) predictions without a snapshot's fold leave over of the targets.

    All are arrays, or what gives arrays of some rows when indexed. `scalars` (M, P) stand beside
    the codes of the fire; `groups` (M,) name what is left out together. None with a single group.
    `put` brings arrays to the device that computes, where the predictions may be already.
    """
    rows = correction_rows(groups, targets.shape, limit)
    parts = [np.flatnonzero(groups[rows] == name) for name in np.unique(groups[rows])]
    if len(parts) < 2:
        return None
    truth = targets[rows]
    axes = (0, *range(2, truth.ndim))
    scales = np.sqrt(np.mean(np.square(truth, dtype=np.float64), axis=axes))
    scales = np.where(scales > 0.0, scales, 1.0)
    shaped = scales.reshape(-1, *[1] * (truth.ndim - 2))
    over = put(truth)
    del truth
    over = (over - like(predicted[rows], over)) / like(shaped, over)
    xp = array_namespace(over)
    over = xp.reshape(over, (rows.size, -1))
    if not bool(xp.any(over != 0.0)):
        return None
    ages = fire[rows]
    lift = fit_lift(ages, ("identity",), ())
    ages = put(ages)
    inputs = fit_truncated_basis(lifted(lift, ages), INPUTS)
    outputs = fit_truncated_basis(over, OUTPUTS)
    codes, goal = encode(inputs, lift, ages), outputs.encode(over)
    size = code_size(codes)
    codes = join_codes(codes, None if scalars is None else scalars[rows], size)
    if not typical_distance(codes) > 0.0:  # one fire again and again
        return None
    fitted, scan = tune_kernel_map(codes, goal, kernel=KERNEL, groups=parts, anchored=False)
    coded = CodedMap(lift, inputs, fitted, outputs, size, scales)
    return FittedCorrection(coded, targets.shape[1:], rows, goal - scan.residuals)


def correction_rows(groups: Array, shape: tuple[int, ...], limit: int | None) -> Array:
    """Rows that a correction of (M, T, *grid) targets is fitted to: whole groups, in a drawn order
    while they fit, at least two. Refuses a limit in bytes below what they need."""
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
            f"a correction by {rows.size} snapshots needs at least {show_memory(needed / RESERVE)},"
            f" the limit is {show_memory(limit)}; raise the limit, or leave the correction out"
        )
    return rows
