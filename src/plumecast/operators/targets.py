"""Targets of an operator, and the inverse from predicted targets to smoke. Arrays only.

Several targets are fitted at once, because they share every factorisation: ln(1 + g/ε) is accurate
where smoke is thin, g where it is thick, and the footprint g > τ is used for detection. Predicted
smoke is limited to the largest value in training.

Where ln(1 + g/ε) alone gives the smoke, ε decides what is thin: it is a share of the mean training
smoke, so that the result does not depend on the unit. Beside g itself it is 1 in the unit of g.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, clip, like, to_numpy
from plumecast.compute.blocks import field_blocks
from plumecast.compute.resources import rows_within
from plumecast.operators.family import ComputedFields

BLENDS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Values of `blend` that are tried, relative to the root mean square of the smoke."""

GATES = (0.0, 0.05, 0.1, 0.2)
"""Values of `gate` that are tried."""

LOG_SHARE = 0.1
"""ε as a share of the smoke-weighted mean Σg² / Σg of training, if no other target gives smoke. The
mean weighs cells by their smoke, so that neither empty cells nor traces of 1e-20 change it. For
fires left out of a simulated ensemble, 0.1 in place of ε = 1 µg m⁻³ reduced the median error of g
from .56 to .53 and that of ln(1 + g) from .37 to .36; of a WRF ensemble, from .67 to .55, but the
error of ln(1 + g) rose from .46 to .51."""

CHOICE_ROWS = 300
"""Largest number of snapshots on which the blend and the gate are chosen."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Named targets of smoke, and their inverse."""

    names: tuple[str, ...]
    epsilon: float  # ε, in the unit of the smoke
    threshold: float  # τ
    largest: float  # largest smoke in training; predictions stay below it
    blend: float = 0.0  # concentration below which the logarithmic target has more weight
    gate: float = 0.0  # detection score below which smoke is set to 0
    lowest: float = 0.0  # smallest output in training if it has a sign; predictions stay above it
    spares: bool = False  # the gate is not applied to snapshots in which it would leave no smoke

    def encode(self, smoke: Array) -> Array:
        """(M, *grid) smoke → (M, T, *grid) float32."""
        out = np.empty((smoke.shape[0], len(self.names), *smoke.shape[1:]), dtype=np.float32)
        for number, name in enumerate(self.names):
            out[:, number] = TARGETS[name].encode(smoke, self)
        return out

    def smoke(self, fields: Array) -> Array:
        """(M, T, *grid) predictions → (M, *grid) smoke, within the range of training.

        With a from the first target that gives smoke (the logarithmic one), b from the second (the
        plain one) and w = a / (a + blend), the smoke is w b + (1 − w) a. It is 0 where the
        detection score is below the gate, except in snapshots where no smoke would be left
        (`spares`): a fire that the score misses has smoke too.
        """
        xp = array_namespace(fields)
        smoke, *others = (
            decode(self._field(fields, name), self) for name, decode in decoders(self.names)
        )
        for thick in others:
            weight = smoke / (smoke + max(self.blend, 1e-30))
            smoke = weight * thick + (1.0 - weight) * smoke
        if self.gate > 0.0 and "footprint" in self.names:
            gated = self.score(fields) < self.gate
            if self.spares:
                left = ~gated & (smoke > 0.0)
                gated = gated & xp.any(left, axis=tuple(range(1, left.ndim)), keepdims=True)
            smoke = xp.where(gated, 0.0, smoke)
        return smoke

    @property
    def detects(self) -> bool:
        """Whether the footprint is among the targets."""
        return "footprint" in self.names

    def score(self, fields: Array) -> Array:
        """(M, T, *grid) predictions → (M, *grid) detection score from 0 to 1."""
        return clip(self._field(fields, "footprint"), 0.0, 1.0)

    def _field(self, fields: Array, name: str) -> Array:
        return fields[:, self.names.index(name), ...]


def side_by_side(outputs: Sequence[Targets]) -> list[tuple[Targets, slice]]:
    """The targets of every output, and their channels where those of all outputs are stacked."""
    ends = np.cumsum([len(own.names) for own in outputs]).tolist()
    starts = [0, *ends[:-1]]
    return [(own, slice(*part)) for own, *part in zip(outputs, starts, ends, strict=True)]


def encode_outputs(outputs: Sequence[Targets], smoke: Array) -> Array:
    """(M, *grid) smoke, or (M, K, *grid) of K outputs → (M, T, *grid) all their targets."""
    if len(outputs) == 1:
        return outputs[0].encode(smoke)
    parts = [own.encode(smoke[:, number]) for number, own in enumerate(outputs)]
    return np.concatenate(parts, axis=1)


def each_output(smoke: Array, grid: tuple[int, ...]) -> list[Array]:
    """(M, *grid) smoke, or (M, K, *grid) of K outputs → (M, *grid) of each output."""
    if len(smoke.shape) == 1 + len(grid):
        return [smoke]
    count, outputs, *_ = smoke.shape

    def output(number: int) -> ComputedFields:
        return ComputedFields((count, *grid), lambda rows: smoke[rows][:, number])

    return [output(number) for number in range(outputs)]


@dataclass(frozen=True, slots=True)
class Target:
    """One entry of TARGETS."""

    summary: str
    encode: Callable[[Array, Targets], Array]  # (M, *grid) smoke → the fitted quantity
    decode: Callable[[Array, Targets], Array] | None = None  # → smoke; None: it gives no smoke
    signed: bool = False  # whether negative values have a meaning


def _decode_log(field: Array, targets: Targets) -> Array:
    xp = array_namespace(field)
    highest = math.log1p(targets.largest / targets.epsilon)
    log = clip(xp.astype(field, xp.float64, copy=False), 0.0, highest)
    return targets.epsilon * xp.expm1(log)


TARGETS = {
    "log": Target("ln(1 + g/ε)", lambda smoke, own: np.log1p(smoke / own.epsilon), _decode_log),
    "smoke": Target(
        "g itself",
        lambda smoke, own: smoke,
        lambda field, own: clip(field, own.lowest, own.largest),
        signed=True,
    ),
    "footprint": Target("1 where g > τ", lambda smoke, own: smoke > own.threshold),
}
"""Known targets, those for thin smoke first. Of two that give smoke, it is blended."""

BLENDED = ("log", "smoke", "footprint")
"""The targets of the presets."""


def decoders(names: Sequence[str]) -> list[tuple[str, Callable[[Array, Targets], Array]]]:
    """The targets that give smoke, in the order of TARGETS."""
    return [(name, own.decode) for name, own in TARGETS.items() if name in names and own.decode]


def check_targets(names: Sequence[str]) -> None:
    """Raise for an unknown name, and if no target gives smoke."""
    for name in names:
        if name not in TARGETS:
            raise PlumecastError(f"target '{name}' is unknown; choose from {', '.join(TARGETS)}")
    if not 1 <= len(decoders(names)) <= 2:
        giving = " or ".join(f"'{name}'" for name, _ in decoders(list(TARGETS)))
        raise PlumecastError(
            f"smoke needs the target {giving}, or two of them; got {', '.join(names) or 'none'}"
        )


def fit_targets(smoke: Array, names: Sequence[str], *, threshold: float) -> Targets:
    """Targets for (M, *grid) training smoke; ε is chosen as LOG_SHARE says."""
    check_targets(names)
    lowest, largest = value_range(smoke)
    if lowest < 0.0:
        unfit = [name for name in names if not TARGETS[name].signed]
        if unfit:
            raise PlumecastError(
                f"target '{unfit[0]}' needs non-negative outputs, but the smallest is {lowest:g}; "
                "use targets='smoke'"
            )
        return Targets(tuple(names), 1.0, threshold, largest, lowest=lowest)
    if not largest > 0.0:
        raise PlumecastError(
            "the training smoke is zero everywhere, so there is nothing to fit; check the output "
            "variable and the filters"
        )
    epsilon = 1.0
    if "smoke" not in names:
        total = squares = 0.0
        for block in _blocks(smoke):
            total += float(np.sum(block, dtype=np.float64))
            squares += float(np.sum(np.square(block, dtype=np.float64)))
        epsilon = LOG_SHARE * (squares / total)
    return Targets(tuple(names), epsilon, threshold, largest, spares=True)


def value_range(fields: Array) -> tuple[float, float]:
    """Smallest and largest value of fields, an array or an object that gives one by rows."""
    lows, highs = zip(*((block.min(), block.max()) for block in _blocks(fields)), strict=True)
    return float(min(lows)), float(max(highs))


def _blocks(fields: Array) -> Iterator[Array]:
    return (fields[rows] for rows in field_blocks(fields))


def target_sizes(fields: Array) -> tuple[Array, Array, Array]:
    """(T,) root mean squares (1 for a target that is zero), smallest and largest values.

    `fields` (M, T, *grid) is an array or an object that gives one when indexed by rows.
    """
    squares: Array = 0.0
    smallest: Array = np.inf
    largest: Array = -np.inf
    for values in _blocks(fields):
        axes = (0, *range(2, values.ndim))
        squares = squares + np.sum(np.square(values, dtype=np.float64), axis=axes)
        smallest = np.minimum(smallest, np.min(values, axis=axes))
        largest = np.maximum(largest, np.max(values, axis=axes))
    scales = np.sqrt(squares / (math.prod(fields.shape) // fields.shape[1]))
    return np.where(scales > 0.0, scales, 1.0), smallest, largest


def are_indicators(fields: Array) -> Array:
    """(T,) whether all values of a target are 0 or 1."""
    indicators = np.ones(fields.shape[1], dtype=bool)
    for values in _blocks(fields):
        axes = (0, *range(2, values.ndim))
        indicators &= ((values == 0.0) | (values == 1.0)).all(axis=axes)
    return indicators


def check_choice(shape: tuple[int, ...], limit: int | None) -> None:
    """Raise if `limit` bytes are too few for `choose_inverse` on (M, T, *grid) predictions.

    It needs their smoke and the errors of one choice in double precision.
    """
    if limit is not None:
        cells = min(shape[0], CHOICE_ROWS) * math.prod(shape[2:])
        fixed = cells * (12.0 * shape[1] + 64.0)
        what = "choosing how targets become smoke"
        rows_within(limit, fixed=fixed, per_row=1.0, what=what, most=1)


def choose_inverse(targets: Targets, predicted: Array, smoke: Array) -> tuple[Targets, float]:
    """Choose the blend and the gate on (M, T, *grid) out-of-fold predictions.

    Minimises the sum of the median relative errors of g and of ln(1 + g/ε), and returns this sum
    too. CHOICE_ROWS snapshots are enough. The smoke is copied to the device of the predictions.
    """
    size = float(np.sqrt(np.mean(np.square(smoke, dtype=np.float64))))
    smoke = like(smoke, predicted)
    blended = len(decoders(targets.names)) == 2
    blends = [share * size for share in BLENDS] if blended else [0.0]
    gates = GATES if targets.detects else (0.0,)
    choices = [replace(targets, blend=blend, gate=gate) for blend in blends for gate in gates]
    # Signed outputs have no logarithm.
    epsilon = targets.epsilon if targets.lowest >= 0.0 else None
    errors = [_error(choice.smoke(predicted), smoke, epsilon) for choice in choices]
    best = int(np.argmin(errors))
    return choices[best], errors[best]


def _error(predicted: Array, smoke: Array, epsilon: float | None) -> float:
    """Median relative error of g, plus that of ln(1 + g/ε) unless `epsilon` is None."""
    xp, axes = array_namespace(predicted), tuple(range(1, predicted.ndim))
    total = 0.0
    pairs = [(predicted, smoke)]
    if epsilon is not None:
        pairs.append((xp.log1p(predicted / epsilon), xp.log1p(smoke / epsilon)))
    for guess, truth in pairs:
        size, wrong = (
            to_numpy(xp.sqrt(xp.sum(xp.astype(own, xp.float64, copy=False) ** 2, axis=axes)))
            for own in (truth, guess - truth)
        )
        if (size > 0.0).any():
            total += float(np.median((wrong / np.where(size > 0.0, size, 1.0))[size > 0.0]))
    return total
