"""What an operator is fitted to, and how its predictions become smoke again. Arrays only.

Several targets are fitted at once, because they share every factorisation: ln(1 + g/ε) is right
where smoke is thin, g where it is thick, and the footprint g > τ is what detection asks. No inverse
can exceed what training held.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, clip, like, to_numpy
from plumecast.compute.blocks import field_blocks
from plumecast.compute.memory import rows_within

TARGETS = {
    "log": "ln(1 + g/ε)",
    "smoke": "g itself",
    "footprint": "1 where g > τ",
}
"""Known targets; smoke comes from the first two, blended where both are fitted."""

BLENDS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Concentrations, relative to the root mean square of the smoke, tried as the blend."""

GATES = (0.0, 0.05, 0.1, 0.2)
"""Detection scores tried as the one below which there is no smoke."""

CHOICE_ROWS = 300
"""Snapshots on which the blend and the gate are chosen, at most."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Named targets of smoke and the way back."""

    names: tuple[str, ...]
    epsilon: float  # ε, in the unit of the smoke
    threshold: float  # τ
    largest: float  # largest smoke in training; predictions stay below it
    blend: float = 0.0  # concentration below which the logarithmic target is trusted more
    gate: float = 0.0  # detection score below which there is no smoke

    def encode(self, smoke: Array) -> Array:
        """(M, *grid) smoke → (M, T, *grid) float32."""
        out = np.empty((smoke.shape[0], len(self.names), *smoke.shape[1:]), dtype=np.float32)
        for number, name in enumerate(self.names):
            if name == "log":
                out[:, number] = np.log1p(smoke / self.epsilon)
            else:
                out[:, number] = smoke if name == "smoke" else smoke > self.threshold
        return out

    def smoke(self, fields: Array) -> Array:
        """(M, T, *grid) predictions → (M, *grid) smoke, within 0 and the largest in training.

        With a from the logarithm, b from the plain target and w = a / (a + blend), the blend is
        w b + (1 − w) a; where the detection score is below the gate there is none.
        """
        xp = array_namespace(fields)
        thin = thick = None
        if "log" in self.names:
            highest = math.log1p(self.largest / self.epsilon)
            log = clip(xp.astype(self._field(fields, "log"), xp.float64, copy=False), 0.0, highest)
            thin = self.epsilon * xp.expm1(log)
        if "smoke" in self.names:
            thick = clip(self._field(fields, "smoke"), 0.0, self.largest)
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
        """(M, T, *grid) predictions → (M, *grid) detection score, within 0 and 1."""
        return clip(self._field(fields, "footprint"), 0.0, 1.0)

    def _field(self, fields: Array, name: str) -> Array:
        return fields[:, self.names.index(name), ...]


def check_targets(names: Sequence[str]) -> None:
    """Raise for a name that is unknown, and where no target gives smoke."""
    for name in names:
        if name not in TARGETS:
            raise PlumecastError(f"target '{name}' is unknown; choose from {', '.join(TARGETS)}")
    if not {"log", "smoke"} & set(names):
        raise PlumecastError("smoke needs the target 'log' or 'smoke', or both")


def fit_targets(
    smoke: Array, names: Sequence[str], *, threshold: float, epsilon: float = 1.0
) -> Targets:
    """Targets for (M, *grid) training smoke, an array or what gives one of some rows."""
    check_targets(names)
    largest = max(float(smoke[rows].max()) for rows in field_blocks(smoke))
    if not largest > 0.0:
        raise PlumecastError("the training smoke is zero everywhere: there is nothing to learn")
    return Targets(tuple(names), epsilon, threshold, largest)


def target_sizes(fields: Array) -> tuple[Array, Array]:
    """(T,) root mean squares, 1 where there is nothing, and largest values of (M, T, *grid) fields,
    an array or what gives one of some rows."""
    squares: Array = 0.0
    largest: Array = -np.inf
    for rows in field_blocks(fields):
        values = fields[rows]
        axes = (0, *range(2, values.ndim))
        squares = squares + np.sum(np.square(values, dtype=np.float64), axis=axes)
        largest = np.maximum(largest, np.max(values, axis=axes))
    scales = np.sqrt(squares / (math.prod(fields.shape) // fields.shape[1]))
    return np.where(scales > 0.0, scales, 1.0), largest


def are_indicators(fields: Array) -> Array:
    """(T,) whether targets hold zeros and ones alone."""
    found = np.ones(fields.shape[1], dtype=bool)
    for rows in field_blocks(fields):
        values = fields[rows]
        axes = (0, *range(2, values.ndim))
        found &= ((values == 0.0) | (values == 1.0)).all(axis=axes)
    return found


def check_choice(shape: tuple[int, ...], limit: int | None) -> None:
    """Refuse a limit in bytes that does not hold what `choose_inverse` takes of (M, T, *grid)
    predictions: their smoke and the errors of one choice in double precision."""
    if limit is not None:
        cells = min(shape[0], CHOICE_ROWS) * math.prod(shape[2:])
        fixed = cells * (12.0 * shape[1] + 64.0)
        rows_within(limit, fixed=fixed, per_row=1.0, what="choosing the way to smoke", most=1)


def choose_inverse(targets: Targets, predicted: Array, smoke: Array) -> tuple[Targets, float]:
    """The blend and the gate with the smallest sum of the median relative errors of g and of
    ln(1 + g/ε), on (M, T, *grid) predictions of fires that were left out; and that sum.

    CHOICE_ROWS of them are enough. The smoke is brought to where the predictions are.
    """
    size = float(np.sqrt(np.mean(np.square(smoke, dtype=np.float64))))
    smoke = like(smoke, predicted)
    both = {"log", "smoke"} <= set(targets.names)
    blends = [share * size for share in BLENDS] if both else [0.0]
    gates = GATES if targets.detects else (0.0,)
    choices = [replace(targets, blend=blend, gate=gate) for blend in blends for gate in gates]
    errors = [_error(choice.smoke(predicted), smoke, choice.epsilon) for choice in choices]
    best = int(np.argmin(errors))
    return choices[best], errors[best]


def _error(predicted: Array, smoke: Array, epsilon: float) -> float:
    xp = array_namespace(predicted)
    total = 0.0
    logs = xp.log1p(predicted / epsilon), xp.log1p(smoke / epsilon)
    for guess, truth in ((predicted, smoke), logs):
        size, wrong = (_norms(values) for values in (truth, guess - truth))
        if (size > 0.0).any():
            total += float(np.median((wrong / np.where(size > 0.0, size, 1.0))[size > 0.0]))
    return total


def _norms(fields: Array) -> np.ndarray:
    """(M,) Euclidean norms, on the host."""
    xp = array_namespace(fields)
    squares = xp.astype(fields, xp.float64, copy=False) ** 2
    return to_numpy(xp.sqrt(xp.sum(squares, axis=tuple(range(1, fields.ndim)))))
