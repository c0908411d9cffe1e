"""Fit spectral operators to snapshots that are read block by block. Arrays only, no labels.

A layer is fitted from normal equations, which one pass sums over the snapshots; nothing that grows
with their number is stored. The inputs of a further layer include out-of-fold predictions of the
previous layers, which are computed again when they are needed. (A fire's own inputs never come from
weights that were fitted to it, but from the second layer on those of *other* folds do. Out-of-fold
errors of operators with several layers are therefore a little optimistic.)

Every scenario has its own weights. They are regularised towards zero or towards the weights of all
scenarios together, whichever gives the smaller out-of-fold error, so that a rare scenario benefits
from the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.base.values import check_count, check_fields, setting
from plumecast.compute.arrays import (
    Array,
    as_pair,
    assembled,
    is_numpy_array,
    like,
    to_numpy,
)
from plumecast.compute.blocks import Runner, cores, map_threads, sampled_rows
from plumecast.compute.resources import DEFAULT_BUDGET, Budget, rows_within
from plumecast.operators.coded.correction import CorrectedMap, correction_rows, fit_correction
from plumecast.operators.coded.kernels import KernelMap
from plumecast.operators.coded.operator import CodedMap
from plumecast.operators.family import Family, FittedMap, TrainingSet
from plumecast.operators.lift import Lift, fit_lift
from plumecast.operators.spectral.equations import Equations
from plumecast.operators.spectral.map import Layer, SpectralBlocks, SpectralMap, Steps, row_parts
from plumecast.operators.spectral.systems import (
    RINGS,
    SCANNED,
    Choice,
    Choices,
    LayerSums,
    Parts,
    Systems,
    layer_sums,
    paired_weights,
    solve_totals,
)
from plumecast.operators.spectral.transform import (
    Frequencies,
    choose_frequencies,
    make_transform,
)
from plumecast.operators.targets import target_sizes

if TYPE_CHECKING:
    from plumecast.operators.settings import Settings

COMPLEX = 8
"""Bytes of a complex number in single precision."""

BLOCK, DEVICE_BLOCK = 96, 256
"""Snapshots in a block on the host and on a GPU; they bound the memory of the spectra."""

SOLVING = 8
"""Work arrays of the solver, in units of one fold's normal equations of one scenario."""

TASK_BLOCKS = 8
"""Blocks that one task of a thread pool or cluster adds up before it returns their sums."""

THREAD_BYTES = 1e9
"""Threads may use max(THREAD_BYTES, half of the accumulated normal equations)."""

RAMPS = (0.25, 0.5, 0.75, 0.9)
"""Quantiles of the positive predictions at which the ramps of the next layer begin; one more
begins at zero."""

QUANTILE_VALUES = 200_000
"""Largest number of predictions from which those quantiles are computed."""


@dataclass(frozen=True, slots=True)
class SpectralSettings:
    """Settings of the spectral family."""

    layers: int = setting(3, "Number of layers of the spectral family.")
    correction: bool = setting(  # kernel regression
        False, "Add the residuals of similar training fires to the spectral family."
    )

    def __post_init__(self) -> None:
        check_fields(self)
        check_count("layers", self.layers, most=100)

    def simplified(self) -> SpectralSettings:
        """Cheaper settings that are good enough to compare frames."""
        return SpectralSettings(layers=1)


def fit_spectral_fields(training: TrainingSet, settings: Settings, resources: Budget) -> FittedMap:
    """Fit the spectral family, with a correction if the settings request it."""
    own = settings.family_settings
    assert isinstance(own, SpectralSettings)
    if own.correction:  # raises before the long fit if the limit is too small
        correction_rows(training.groups, training.targets.shape, resources.limit)
    given = training.given
    lift = fit_lift(training.fire, settings.lift, settings.products, bins=settings.age_bins,
                    covariates=given.covariates, physics=given.physics)  # fmt: skip
    fitted, out_of_fold, sums = fit_spectral(
        training, lift, layers=own.layers, resources=resources, updatable=settings.updatable
    )
    correction = None
    if own.correction:
        resources.progress("correction")
        correction = fit_correction(training, out_of_fold, resources)
    return FittedMap(fitted, np.arange(training.fire.shape[0]), out_of_fold, correction, sums)


def fit_spectral(
    training: TrainingSet,
    lift: Lift,
    *,
    layers: int = 3,
    resources: Budget = DEFAULT_BUDGET,
    updatable: bool = False,
) -> tuple[SpectralMap, SpectralOutOfFold, LayerSums | None]:
    """Fit layers; also out-of-fold predictions of every snapshot.

    With `updatable` the sums of the last layer, for `update_spectral`, are returned too.
    Fires and targets are read block by block: once for the scales of the targets and once for every
    layer. Folds are left out in turn to choose penalties and to compute the inputs of the next
    layer. The map is on the host. Only the first output
    feeds the next layer (`training.leading`): the targets of further outputs are further right-hand
    sides, which change neither the systems nor the weights of the first output.
    """
    fire, targets, given = training.fire, training.targets, training.given
    count = fire.shape[0]
    numbers = np.zeros(count, dtype=np.int64) if given.scenarios is None else given.scenarios
    names, members = np.unique(training.folds(), return_inverse=True)
    if names.size < 2:
        raise PlumecastError("a spectral operator needs at least two ignitions to leave one out")
    frequencies = choose_frequencies(fire.shape[1:])
    example = resources.put(np.zeros(1, dtype=np.float32))
    transform = make_transform(frequencies, example)
    scenarios = int(numbers.max() + 1)
    leading = targets.shape[1] if training.leading is None else training.leading
    block = rows_at_once(resources.limit, targets.shape, frequencies.count, lift, layers,
                         sums=(scenarios * names.size, names.size), leading=leading)  # fmt: skip
    if resources.limit is None and not is_numpy_array(example):
        block = DEVICE_BLOCK
    scales, lowest, largest = target_sizes(targets)
    physics = given.physics
    if resources.limit is None:  # all snapshots fit on the device; copied once, not for every layer
        fire, targets = resources.put(fire), resources.put(targets)
        physics = None if physics is None else resources.put(physics)
    limits, signed = np.maximum(largest, -lowest) / scales, bool((lowest < 0.0).any())
    blocks = SpectralBlocks(fire, targets, physics, given.covariates, scales, lift, transform,
                            block, resources.device.put, leading)  # fmt: skip
    out_of_fold = SpectralOutOfFold(blocks, numbers, members, ())
    fitted: list[Layer] = []
    sums: LayerSums | None = None
    for depth in range(layers):
        resources.progress(f"layer {depth + 1} of {layers}")
        equations = out_of_fold.equations(resources.runner)
        systems = Systems(equations, frequencies, lift.physics is not None)
        weights, without, choices = systems.solve()
        if updatable and depth == layers - 1:
            sums = layer_sums(systems.totals(), choices)
        fitted.append(_layer(weights, out_of_fold.then(None, without), limits, signed))
        out_of_fold = out_of_fold.then(fitted[-1], without)
    return SpectralMap(lift, frequencies, tuple(fitted), scales), out_of_fold, sums


def rows_at_once(
    limit: int | None,
    shape: tuple[int, ...],
    frequencies: int,
    lift: Lift,
    layers: int,
    *,
    sums: tuple[int, int],
    leading: int | None = None,
) -> int:
    """Rows of a block for (M, T, *grid) targets, of which the `leading` ones feed the next layer.

    The plan also counts the normal equations by scenario and fold and those by fold (their numbers
    are `sums`), the work arrays of the solver, and the weights of all layers.
    """
    if limit is None:
        return BLOCK
    outputs, cells = shape[1], int(np.prod(shape[2:]))
    channels = _channels(lift, leading or outputs, layers)
    scanned = min(1.0, RINGS * SCANNED / frequencies)  # share of frequencies used to tune
    values = (sum(sums) * (1.0 + scanned) + SOLVING) * channels * (channels + outputs)
    values += layers * sums[0] * channels * outputs
    fixed = COMPLEX * frequencies * values
    per_row = 4 * COMPLEX * frequencies * channels + cells * (12 * channels + 48 * (outputs + 1))
    most = min(BLOCK, shape[0])
    what = f"a spectral operator with {channels} channels on {frequencies} frequencies"
    return rows_within(limit, fixed=float(fixed), per_row=float(per_row), what=what, most=most)


def _channels(lift: Lift, outputs: int, layers: int) -> int:
    """Input channels of the last of `layers` layers: the lifted fire and ramps of predictions."""
    return lift.channels + (outputs * (len(RAMPS) + 1) if layers > 1 else 0)


@dataclass(frozen=True, slots=True)
class SpectralOutOfFold:
    """Out-of-fold predictions of the training snapshots.

    Indexing by rows gives (B, T, *grid) targets in their own units, on the device.
    """

    blocks: SpectralBlocks
    scenarios: Array  # (M,)
    folds: Array  # (M,), from 0
    layers: tuple[tuple[Layer | None, list[list[Array]]], ...]  # weights by scenario and fold

    def then(self, layer: Layer | None, weights: list[list[Array]]) -> SpectralOutOfFold:
        """The same with one more layer."""
        return replace(self, layers=(*self.layers, (layer, weights)))

    def steps(self, scenario: int, fold: int) -> Steps:
        """The layers with weights that were fitted without a fold."""
        return [(layer, as_pair(weights[scenario][fold])) for layer, weights in self.layers]

    def equations(self, runner: Runner | None = None) -> list[Parts]:
        """Normal equations of the next layer, by scenario and fold; one pass over all snapshots."""
        size, scenarios = self.blocks.block * TASK_BLOCKS, int(self.scenarios.max()) + 1
        folds = int(self.folds.max()) + 1
        tasks = [
            (scenario, fold, rows)
            for scenario in range(scenarios)
            for fold in range(folds)
            for rows in row_parts(
                np.flatnonzero((self.scenarios == scenario) & (self.folds == fold)), size
            )
        ]
        sums: list[Parts] = [[None] * folds for _ in range(scenarios)]
        parts: Iterator[Equations]
        if runner is None:
            parts = map_threads(lambda task: _equations(self, task), tasks, self._threads())
        else:
            parts = runner.map(_equations, self, tasks)
        for (scenario, fold, _), part in zip(tasks, parts, strict=True):
            before = sums[scenario][fold]
            sums[scenario][fold] = part if before is None else before + part
        return sums

    def _threads(self) -> int:
        """Size of the thread pool, limited by the memory of its work arrays (THREAD_BYTES).

        It is 1 if snapshots are read lazily or arrays are on another device.
        """
        blocks, outputs = self.blocks, self.blocks.targets.shape[1]
        if not (is_numpy_array(blocks.fire) and is_numpy_array(blocks.transform.example)):
            return 1
        channels = _channels(blocks.lift, blocks.leading, 1 + len(self.layers))
        count = blocks.transform.frequencies
        sums = COMPLEX * count * channels * (channels + outputs)
        own = 4 * COMPLEX * count * channels * blocks.block + 2 * sums
        accumulated = sums * (int(self.scenarios.max()) + 2) * (int(self.folds.max()) + 1)
        return max(1, min(cores(), int(max(0.5 * accumulated, THREAD_BYTES) // own)))

    def __getitem__(self, rows: Array) -> Array:
        wanted = np.arange(self.folds.size)[rows]
        kinds = np.stack([self.scenarios[wanted], self.folds[wanted]], axis=1)
        members = [
            (np.flatnonzero((kinds == kind).all(axis=1)), self.steps(*kind))
            for kind in np.unique(kinds, axis=0)
        ]
        parts = ((own, self.blocks.predictions(wanted[own], steps)) for own, steps in members)
        shape = (wanted.size, *self.blocks.targets.shape[1:])
        return assembled(parts, shape, self.blocks.transform.example)


def _equations(out_of_fold: SpectralOutOfFold, task: tuple[int, int, Array]) -> Equations:
    """Normal equations of some snapshots of one scenario and fold."""
    scenario, fold, rows = task
    return out_of_fold.blocks.equations(rows, out_of_fold.steps(scenario, fold))


def _layer(
    weights: list[Array], out_of_fold: SpectralOutOfFold, limits: Array, signed: bool
) -> Layer:
    """A layer; the knots of its ramps are quantiles of predictions of sampled snapshots."""
    cells = int(np.prod(out_of_fold.blocks.targets.shape[2:]))
    rows = sampled_rows(out_of_fold.folds.size, QUANTILE_VALUES // cells + 1)
    leading = out_of_fold.blocks.leading
    predicted = np.moveaxis(to_numpy(out_of_fold[rows]), 1, 0)[:leading]
    knots = []
    for values, scale in zip(predicted, out_of_fold.blocks.scales[:leading], strict=True):
        sizes = np.abs(values) if signed else values
        positive = sizes[sizes > 0.0] / scale
        starts = np.quantile(positive, RAMPS) if positive.size else np.zeros(len(RAMPS))
        knots.append(np.concatenate([[0.0], starts]))
    ramps = np.stack(knots).astype(np.float32)
    return Layer(paired_weights(weights), ramps, limits.astype(np.float32), signed)


def update_spectral(
    fitted: SpectralMap, sums: LayerSums, training: TrainingSet, resources: Budget
) -> tuple[SpectralMap, LayerSums]:
    """The map and its sums with further snapshots; `training` has only the new ones.

    The weights of the last layer follow from normal equations, to which those of new snapshots are
    added; the layer is solved again with the penalties that were chosen before. The lift, the
    ramps, the penalties and the earlier layers are kept. So the result equals a fit of the last
    layer to all snapshots, given these. For a new snapshot the earlier layers are fitted without
    it, as those are whose predictions were the inputs of the fit (decision 0034).
    """
    given = training.given
    example = resources.put(np.zeros(1, dtype=np.float32))
    transform = make_transform(fitted.frequencies, example)
    blocks = SpectralBlocks(
        training.fire, training.targets, given.physics, given.covariates, fitted.target_scales,
        fitted.lift, transform, BLOCK, resources.device.put, training.leading or 0,
    )  # fmt: skip
    count = training.fire.shape[0]
    numbers = np.zeros(count, dtype=np.int64) if given.scenarios is None else given.scenarios
    *earlier, last = fitted.layers
    totals = sums.totals(example)
    for number in np.unique(numbers).tolist():
        steps = [(own, like(own.weights[number, ...], example)) for own in earlier]
        new = blocks.equations(np.flatnonzero(numbers == number), steps)
        totals[number] = totals[number] + new
    weights = solve_totals(totals, fitted.frequencies, sums.choices)
    solved = replace(last, weights=paired_weights(weights))
    return replace(fitted, layers=(*earlier, solved)), layer_sums(totals, sums.choices)


SPECTRAL = Family(
    name="spectral",
    title="Spectral operator",
    summary="convolutions by least squares per Fourier frequency, in layers",
    settings=SpectralSettings,
    fit=fit_spectral_fields,
    saved=(
        SpectralMap,
        Frequencies,
        Layer,
        CorrectedMap,
        CodedMap,
        KernelMap,
        LayerSums,
        Choices,
        Choice,
    ),
    equivariant=True,
    update=update_spectral,
)
