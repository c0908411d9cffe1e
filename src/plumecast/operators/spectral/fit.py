"""Fit spectral operators from snapshots that are read block by block. Arrays only, no labels.

A layer is fitted from sums over snapshots, so that one pass over all of them adds up its systems
and nothing that grows with their number is held. The inputs of a further layer are predictions of
the layers before, by weights fitted without the snapshot's fold; they are made again where they are
needed, which costs less than another pass to store them. (From the second layer on, the inputs of
other folds come from weights that saw the fire; its own never do. Left-out errors of deep operators
are therefore a little optimistic.)

Scenarios have weights of their own, drawn towards zero or towards the weights of all scenarios
together, whichever serves the fires left out better: a rare scenario borrows from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import (
    Array,
    array_namespace,
    assembled,
    is_numpy_array,
    like,
    to_numpy,
)
from plumecast.compute.blocks import Runner, drawn_rows
from plumecast.compute.memory import rows_within
from plumecast.compute.threads import cores, map_threads
from plumecast.operators.fields.lift import Lift
from plumecast.operators.fields.targets import target_sizes
from plumecast.operators.spectral.map import (
    Layer,
    SpectralMap,
    Steps,
    fire_block,
    lifted_spectra,
    ramps_of,
    row_parts,
    snapshot_first,
    target_block,
    through,
)
from plumecast.operators.spectral.systems import RINGS, SCANNED, Equations, Parts, Systems
from plumecast.operators.spectral.transform import (
    BUDGET,
    Transform,
    choose_frequencies,
    make_transform,
)

COMPLEX = 8
"""Bytes of a complex number in single precision."""

BLOCK, DEVICE_BLOCK = 96, 256
"""Snapshots transformed together: bounds the memory of their spectra; a GPU takes more at once."""

SOLVING = 8
"""Sums of the size of one scenario's and fold's that solving takes beside them."""

TASK_BLOCKS = 8
"""Blocks that a thread, or a process of a cluster, adds up before it hands on their sums."""

FREELY = 1e9
"""Bytes that threads may take however small the sums are; beyond, half of what the sums take."""

RAMPS = (0.25, 0.5, 0.75, 0.9)
"""Quantiles of the positive predictions at which the ramps of a further layer begin; one more
begins at zero."""

QUANTILE_VALUES = 200_000
"""Predictions from which those quantiles are read, at most."""


def fit_spectral(
    fire: Array,
    targets: Array,
    folds: Array,
    *,
    lift: Lift,
    layers: int = 3,
    covariates: Array | None = None,
    scenarios: Array | None = None,
    budget: int = BUDGET,
    limit: int | None = None,
    put: Callable[[Array], Array] = lambda array: array,
    progress: Callable[[str], None] = lambda step: None,
) -> tuple[SpectralMap, LeftOut]:
    """Fit layers to (M, *grid) inputs and (M, T, *grid) targets; also the predictions of every
    snapshot without its own fold.

    Inputs and targets are arrays, or what gives arrays of some rows when indexed: they are read
    block by block, once for the sizes of the targets and once for every layer. `folds` (M,) numbers
    the part of every snapshot; parts are left out in turn to choose penalties and to make the
    inputs of the next layer, so a fire must not be in two of them. `scenarios` (M,) counts from 0.
    The fit keeps to `limit` bytes. `put` brings blocks to the device that computes; the map is on
    the host.
    """
    numbers = np.zeros(fire.shape[0], dtype=np.int64) if scenarios is None else scenarios
    names, members = np.unique(folds, return_inverse=True)
    if names.size < 2:
        raise PlumecastError("a spectral operator needs at least two ignitions to leave one out")
    frequencies = choose_frequencies(fire.shape[1:], budget)
    example = put(np.zeros(1, dtype=np.float32))
    transform = make_transform(frequencies, example)
    sums = int(numbers.max() + 1) * names.size, names.size
    block = rows_at_once(limit, targets.shape, frequencies.count, lift, layers, sums)
    if limit is None and not is_numpy_array(example):
        block = DEVICE_BLOCK
    scales, largest = target_sizes(targets)
    training = _Training(fire, targets, covariates, scales, lift, transform, block, put)
    left_out = LeftOut(training, numbers, members, ())
    fitted: list[Layer] = []
    for depth in range(layers):
        progress(f"layer {depth + 1} of {layers}")
        weights, without = Systems(left_out.equations(), frequencies).solve()
        fitted.append(_layer(weights, left_out.then(None, without), largest / scales))
        left_out = left_out.then(fitted[-1], without)
    return SpectralMap(lift, frequencies, tuple(fitted), scales), left_out


def rows_at_once(
    limit: int | None,
    shape: tuple[int, ...],
    frequencies: int,
    lift: Lift,
    layers: int,
    sums: tuple[int, int],
) -> int:
    """Rows of a block. Held beside it are the sums of every scenario and fold, of every fold, some
    of the work of solving them, and the weights of all layers."""
    if limit is None:
        return BLOCK
    outputs, cells = shape[1], int(np.prod(shape[2:]))
    channels = _channels(lift, outputs, layers)
    scanned = min(1.0, RINGS * SCANNED / frequencies)  # of the frequencies, while choosing
    held = (sum(sums) * (1.0 + scanned) + SOLVING) * channels * (channels + outputs)
    held += layers * sums[0] * channels * outputs
    fixed = COMPLEX * frequencies * held
    per_row = 4 * COMPLEX * frequencies * channels + cells * (12 * channels + 48 * (outputs + 1))
    most = min(BLOCK, shape[0])
    what = f"a spectral operator with {channels} channels on {frequencies} frequencies"
    return rows_within(limit, fixed=float(fixed), per_row=float(per_row), what=what, most=most)


def _channels(lift: Lift, outputs: int, layers: int) -> int:
    """Inputs of the last of so many layers: the lifted fire, and ramps of the layer before."""
    return lift.channels + (outputs * (len(RAMPS) + 1) if layers > 1 else 0)


@dataclass(frozen=True, slots=True)
class _Training:
    """Training snapshots where they are, brought to the device block by block."""

    fire: Array  # (M, *grid)
    targets: Array  # (M, T, *grid)
    covariates: Array | None
    scales: Array  # (T,), divide the targets
    lift: Lift
    transform: Transform
    block: int
    put: Callable[[Array], Array]

    def lifted(self, rows: Array) -> Array:
        """(F, B, C) spectra of the lifted fire."""
        own = None if self.covariates is None else self.covariates[rows]
        return lifted_spectra(self.lift, self.transform, fire_block(self.put(self.fire[rows])), own)

    def inputs(self, rows: Array, steps: Steps) -> Array:
        """(F, B, C) inputs of a layer: the lifted fire, then ramps of the layer before."""
        lifted = self.lifted(rows)
        if not steps:
            return lifted
        before = steps[-1][0]
        assert before is not None
        ramps = ramps_of(through(lifted, self.transform, steps), before)
        return array_namespace(lifted).concat([lifted, self.transform.spectra(ramps)], axis=2)

    def equations(self, rows: Array, steps: Steps) -> Equations:
        """Normal equations of some snapshots, whose inputs come through the layers before."""
        total: Equations | None = None
        for some in row_parts(rows, self.block):
            targets = target_block(self.put(self.targets[some]), self.scales)
            part = Equations.of(self.inputs(some, steps), self.transform.spectra(targets))
            total = part if total is None else total + part
        assert total is not None
        return total

    def predictions(self, rows: Array, steps: Steps) -> Array:
        """(B, T, *grid) targets of some snapshots, in their own units."""
        parts = []
        for some in row_parts(rows, self.block):
            values = through(self.lifted(some), self.transform, steps)
            parts.append(snapshot_first(values * like(self.scales, values, values.dtype)))
        return array_namespace(parts[0]).concat(parts)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Predictions of the training snapshots, each by weights that were fitted without its fold.

    Indexed by rows, it gives (B, T, *grid) targets in their own units, on the device.
    """

    training: _Training
    scenarios: Array  # (M,)
    folds: Array  # (M,), from 0
    layers: tuple[tuple[Layer | None, list[list[Array]]], ...]  # weights by scenario and fold

    def then(self, layer: Layer | None, weights: list[list[Array]]) -> LeftOut:
        """With one more layer."""
        return replace(self, layers=(*self.layers, (layer, weights)))

    def steps(self, scenario: int, fold: int) -> Steps:
        """The layers without a fold."""
        return [(layer, weights[scenario][fold]) for layer, weights in self.layers]

    def equations(self) -> list[Parts]:
        """Normal equations of the next layer, by scenario and fold; a pass over all snapshots."""
        runner: Runner | None = getattr(self.training.fire, "runner", None)
        size = self.training.block * TASK_BLOCKS
        tasks = [
            _Task(scenario, fold, rows)
            for scenario in range(int(self.scenarios.max()) + 1)
            for fold in range(int(self.folds.max()) + 1)
            for rows in row_parts(
                np.flatnonzero((self.scenarios == scenario) & (self.folds == fold)), size
            )
        ]
        sums: list[Parts] = [
            [None] * (int(self.folds.max()) + 1) for _ in range(int(self.scenarios.max()) + 1)
        ]
        found: Iterator[Equations]
        if runner is None:
            found = map_threads(lambda task: _task_equations(self, task), tasks, self._threads())
        else:
            found = runner.map(_task_equations, self, tasks)
        for task, part in zip(tasks, found, strict=True):
            known = sums[task.scenario][task.fold]
            sums[task.scenario][task.fold] = part if known is None else known + part
        return sums

    def _threads(self) -> int:
        """Threads whose work fits beside the sums; one where snapshots are read as they are used,
        or do not stay on the host."""
        training, outputs = self.training, self.training.targets.shape[1]
        if not (is_numpy_array(training.fire) and is_numpy_array(training.transform.there[0])):
            return 1
        channels = _channels(training.lift, outputs, 1 + len(self.layers))
        count = training.transform.frequencies
        sums = COMPLEX * count * channels * (channels + outputs)
        own = 4 * COMPLEX * count * channels * training.block + 2 * sums
        held = sums * (int(self.scenarios.max()) + 2) * (int(self.folds.max()) + 1)
        return max(1, min(cores(), int(max(0.5 * held, FREELY) // own)))

    def __getitem__(self, rows: Array) -> Array:
        wanted = np.arange(self.folds.size)[rows]
        kinds = np.stack([self.scenarios[wanted], self.folds[wanted]], axis=1)
        members = [
            (np.flatnonzero((kinds == kind).all(axis=1)), self.steps(*kind))
            for kind in np.unique(kinds, axis=0)
        ]
        found = ((own, self.training.predictions(wanted[own], steps)) for own, steps in members)
        shape = (wanted.size, *self.training.targets.shape[1:])
        return assembled(found, shape, self.training.transform.there[0])


@dataclass(frozen=True, slots=True)
class _Task:
    """Some snapshots of one scenario and fold."""

    scenario: int
    fold: int
    rows: Array


def _task_equations(left_out: LeftOut, task: _Task) -> Equations:
    steps = left_out.steps(task.scenario, task.fold)
    return left_out.training.equations(task.rows, steps)


def _layer(weights: list[Array], left_out: LeftOut, limits: Array) -> Layer:
    """Weights and ramps, whose knots are read from predictions of a sample of the snapshots."""
    cells = int(np.prod(left_out.training.targets.shape[2:]))
    rows = drawn_rows(left_out.folds.size, QUANTILE_VALUES // cells + 1)
    predicted = np.moveaxis(to_numpy(left_out[rows]), 1, 0)
    knots = []
    for values, scale in zip(predicted, left_out.training.scales, strict=True):
        positive = values[values > 0.0] / scale
        starts = np.quantile(positive, RAMPS) if positive.size else np.zeros(len(RAMPS))
        knots.append(np.concatenate([[0.0], starts]))
    together = np.stack([to_numpy(own) for own in weights])
    pair = np.stack([together.real, together.imag], axis=-1).astype(np.float32)
    return Layer(pair, np.stack(knots).astype(np.float32), limits.astype(np.float32))


def fold_numbers(labels: Array, folds: int) -> Array:
    """(M,) part of every snapshot: groups dealt in turn, in the order of their labels."""
    groups, member = np.unique(np.asarray(labels).astype(str), return_inverse=True)
    return member % min(folds, groups.size)
