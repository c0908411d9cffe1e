"""Targets of an operator, and the inverse from predicted targets to smoke. Arrays only.

Several targets are fitted at once, because they share every factorisation: ln(1 + g/ε) is accurate
where smoke is thin, g where it is thick, and the footprint g > τ is used for detection. Predicted
smoke is limited to the largest value in training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, clip, like, to_numpy
from plumecast.compute.blocks import field_blocks
from plumecast.compute.memory import rows_within

BLENDS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Values of `blend` that are tried, relative to the root mean square of the smoke."""

GATES = (0.0, 0.05, 0.1, 0.2)
"""Values of `gate` that are tried."""

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

    def encode(self, smoke: Array) -> Array:
        """(M, *grid) smoke → (M, T, *grid) float32."""
        out = np.empty((smoke.shape[0], len(self.names), *smoke.shape[1:]), dtype=np.float32)
        for number, name in enumerate(self.names):
            out[:, number] = TARGETS[name].encode(smoke, self)
        return out

    def smoke(self, fields: Array) -> Array:
        """(M, T, *grid) predictions → (M, *grid) smoke, within the range of training.

        With a from the logarithmic target, b from the plain one and w = a / (a + blend), the smoke
        is w b + (1 − w) a. It is 0 where the detection score is below the gate.
        """
        xp = array_namespace(fields)
        thin = thick = None
        if "log" in self.names:
            highest = math.log1p(self.largest / self.epsilon)
            log = clip(xp.astype(self._field(fields, "log"), xp.float64, copy=False), 0.0, highest)
            thin = self.epsilon * xp.expm1(log)
        if "smoke" in self.names:
            thick = clip(self._field(fields, "smoke"), self.lowest, self.largest)
        if thin is None or thick is None:
            smoke = thick if thin is None else thin
        else:
            weight = thin / (thin + max(self.blend, 1e-30))
            smoke = weight * thick + (1.0 - weight) * thin
        assert smoke is not None
        if self.gate > 0.0 and "footprint" in self.names:
            smoke = xp.where(self.score(fields) < self.gate, 0.0, smoke)
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


@dataclass(frozen=True, slots=True)
class Target:
    """One entry of TARGETS."""

    summary: str
    encode: Callable[[Array, Targets], Array]  # (M, *grid) smoke → the fitted quantity
    signed: bool = False  # whether negative values have a meaning


def _encode_log(smoke: Array, targets: Targets) -> Array:
    return np.log1p(smoke / targets.epsilon)


def _encode_smoke(smoke: Array, targets: Targets) -> Array:
    return smoke


def _encode_footprint(smoke: Array, targets: Targets) -> Array:
    return smoke > targets.threshold


TARGETS = {
    "log": Target("ln(1 + g/ε)", _encode_log),
    "smoke": Target("g itself", _encode_smoke, signed=True),
    "footprint": Target("1 where g > τ", _encode_footprint),
}
"""Known targets. Smoke is computed from the first two, and blended if both are fitted."""


def check_targets(names: Sequence[str]) -> None:
    """Raise for an unknown name, and if no target gives smoke."""
    for name in names:
        if name not in TARGETS:
            raise PlumecastError(f"target '{name}' is unknown; choose from {', '.join(TARGETS)}")
    if not {"log", "smoke"} & set(names):
        raise PlumecastError(
            f"smoke needs the target 'log' or 'smoke', or both; got {', '.join(names) or 'none'}"
        )


def fit_targets(
    smoke: Array, names: Sequence[str], *, threshold: float, epsilon: float = 1.0
) -> Targets:
    """Targets for (M, *grid) training smoke, an array or an object that gives one by rows."""
    check_targets(names)
    lowest, largest = value_range(smoke)
    if lowest < 0.0:
        unfit = [name for name in names if not TARGETS[name].signed]
        if unfit:
            raise PlumecastError(
                f"target '{unfit[0]}' needs non-negative outputs, but the smallest is {lowest:g}; "
                "use targets='smoke'"
            )
        return Targets(tuple(names), epsilon, threshold, largest, lowest=lowest)
    if not largest > 0.0:
        raise PlumecastError(
            "the training smoke is zero everywhere, so there is nothing to fit; check the output "
            "variable and the filters"
        )
    return Targets(tuple(names), epsilon, threshold, largest)


def value_range(fields: Array) -> tuple[float, float]:
    """Smallest and largest value of fields, an array or an object that gives one by rows."""
    found = [(float(block.min()), float(block.max())) for block in _blocks(fields)]
    return min(low for low, _ in found), max(high for _, high in found)


def _blocks(fields: Array) -> Iterator[Array]:
    return (fields[rows] for rows in field_blocks(fields))


def target_sizes(fields: Array) -> tuple[Array, Array, Array]:
    """(T,) root mean squares (1 for a target that is zero), smallest and largest values.

    `fields` (M, T, *grid) is an array or an object that gives one when indexed by rows.
    """
    squares: Array = 0.0
    smallest: Array = np.inf
    largest: Array = -np.inf
    for rows in field_blocks(fields):
        values = fields[rows]
        axes = (0, *range(2, values.ndim))
        squares = squares + np.sum(np.square(values, dtype=np.float64), axis=axes)
        smallest = np.minimum(smallest, np.min(values, axis=axes))
        largest = np.maximum(largest, np.max(values, axis=axes))
    scales = np.sqrt(squares / (math.prod(fields.shape) // fields.shape[1]))
    return np.where(scales > 0.0, scales, 1.0), smallest, largest


def are_indicators(fields: Array) -> Array:
    """(T,) whether all values of a target are 0 or 1."""
    found = np.ones(fields.shape[1], dtype=bool)
    for rows in field_blocks(fields):
        values = fields[rows]
        axes = (0, *range(2, values.ndim))
        found &= ((values == 0.0) | (values == 1.0)).all(axis=axes)
    return found


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
    both = {"log", "smoke"} <= set(targets.names)
    blends = [share * size for share in BLENDS] if both else [0.0]
    gates = GATES if targets.detects else (0.0,)
    choices = [replace(targets, blend=blend, gate=gate) for blend in blends for gate in gates]
    # Signed outputs have no logarithm.
    epsilon = targets.epsilon if targets.lowest >= 0.0 else None
    errors = [_error(choice.smoke(predicted), smoke, epsilon) for choice in choices]
    best = int(np.argmin(errors))
    return choices[best], errors[best]


def _error(predicted: Array, smoke: Array, epsilon: float | None) -> float:
    """Median relative error of g, plus that of ln(1 + g/ε) unless `epsilon` is None."""
    xp = array_namespace(predicted)
    total = 0.0
    pairs = [(predicted, smoke)]
    if epsilon is not None:
        pairs.append((xp.log1p(predicted / epsilon), xp.log1p(smoke / epsilon)))
    for guess, truth in pairs:
        size, wrong = (_norms(values) for values in (truth, guess - truth))
        if (size > 0.0).any():
            total += float(np.median((wrong / np.where(size > 0.0, size, 1.0))[size > 0.0]))
    return total


def _norms(fields: Array) -> np.ndarray:
    """(M,) Euclidean norms, on the host."""
    xp = array_namespace(fields)
    squares = xp.astype(fields, xp.float64, copy=False) ** 2
    return to_numpy(xp.sqrt(xp.sum(squares, axis=tuple(range(1, fields.ndim)))))
