"""Maps between codes by a kernel of their distance, or a sum of kernels. Arrays only, no labels.

b = k(a / u, support) α with α = (K + λI)⁻¹ B. The unit u is the root mean square distance between
two training snapshots: one number for all codes, so that the leading modes keep their weight and a
length scale of 1 is a typical distance. Each term of a sum is divided by its mean over the
training snapshots, so that no unit decides which term prevails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plumecast._array import Array, array_namespace, contiguous
from plumecast.errors import PlumecastError
from plumecast.kernels import (
    STATIONARY,
    has_length_scale,
    kernel_terms,
    squared_norms,
    stationary_kernel,
    term_kernel,
    typical_distance,
)
from plumecast.linalg import squared_distances
from plumecast.solve import (
    PenaltyPath,
    PenaltyScan,
    dual_path,
    penalty_grid,
    ridge_dual,
    scan_penalties,
)

LENGTH_STEP = 2.0
"""Ratio of the length scales tried; the best is then refined by its square root, once."""

LENGTH_RANGE = (2.0**-5, 2.0**6)
"""Length scales the search stays within."""

COARSE_PENALTIES = 12
"""Penalties tried beside each length scale; those of the best are then scanned finely."""

SEARCH_ROWS = 1500
"""Snapshots a length scale is chosen on; of more, whole groups at even steps, because the cost of
an eigendecomposition grows with the cube. The penalty is chosen on all."""

REACH = 1e-8
"""Kernel values this close to 0 or to 1 are no different from them: penalties tried begin at 1e-10
of the diagonal."""


@dataclass(frozen=True, slots=True)
class KernelMap:
    """b = Σ wₜ kₜ(a / unit, support) α over the terms of a kernel."""

    kernel: str
    length_scale: float  # in units of `unit`
    unit: float  # divides the codes: their typical distance in training
    term_weights: tuple[float, ...]
    anchored: bool  # functions of the code 0 are 0
    support: Array  # (M, r), the training codes / unit
    dual_weights: Array  # (M, q)

    def predict(self, codes: Array) -> Array:
        """(M, r) codes → (M, q) codes.

        Far from all training codes a stationary term gives 0 and a polynomial its trend. The code
        0 (of an uncentred basis: the empty fire) gives 0 where anchored; else what the training
        snapshots around it say.
        """
        scaled = codes / self.unit
        terms = kernel_terms(self.kernel)
        parts = [
            weight
            * term_kernel(
                term,
                scaled,
                self.support,
                length_scale=self.length_scale,
                anchored=self.anchored,
            )
            for term, weight in zip(terms, self.term_weights, strict=True)
        ]
        return sum(parts[1:], start=parts[0]) @ self.dual_weights


@dataclass(frozen=True, slots=True)
class KernelScan:
    """The length scale and the penalty chosen, with what was tried on the way."""

    length_scale: float
    penalties: PenaltyScan  # of that length scale, on all training snapshots
    length_errors: dict[float, float]  # smallest error of every length scale tried

    @property
    def penalty(self) -> float:
        """The penalty of the smallest error."""
        return self.penalties.best

    @property
    def error(self) -> float:
        """The smallest leave-one-group-out error, relative to ‖B‖."""
        return min(self.penalties.errors)


@dataclass(frozen=True, slots=True)
class _TrainingKernel:
    """The (M, M) kernel of the training codes at any length scale: distances are formed once."""

    kernel: str
    anchored: bool
    unit: float
    support: Array  # (M, r)
    squares: Array | None  # (M, M) squared distances, where a term needs them

    def __call__(self, length_scale: float) -> tuple[Array, tuple[float, ...]]:
        """The sum of the terms at unit mean diagonal each, and the weights that made it so."""
        xp = array_namespace(self.support)
        norms = squared_norms(self.support) / length_scale**2 if self.anchored else None
        total, weights = 0.0, []
        for term in kernel_terms(self.kernel):
            if self.squares is not None and term in STATIONARY:
                matrix = stationary_kernel(term, self.squares / length_scale**2, norms, norms)
            else:
                matrix = term_kernel(
                    term, self.support, self.support, length_scale=1.0, anchored=False
                )
            size = float(xp.linalg.trace(matrix)) / matrix.shape[0]
            if not size > 0.0:
                raise PlumecastError(_no_scale(length_scale, "long", "looks like every other"))
            weights.append(1.0 / size)
            total = total + matrix / size
        return total, tuple(weights)

    def check(self, length_scale: float) -> None:
        """Refuse a length scale at which the kernel is the identity or a constant."""
        if self.squares is None:
            return
        xp = array_namespace(self.support)
        term = next(term for term in kernel_terms(self.kernel) if term in STATIONARY)
        values = STATIONARY[term](self.squares / length_scale**2)
        if float(1.0 - xp.min(values)) < REACH:
            raise PlumecastError(_no_scale(length_scale, "long", "looks like every other"))
        alone = values - xp.eye(values.shape[0], dtype=values.dtype)
        nearest = xp.sort(xp.max(alone, axis=1))
        if float(nearest[nearest.shape[0] // 2]) < REACH:
            raise PlumecastError(_no_scale(length_scale, "short", "has no neighbour"))

    def fitted(self, length_scale: float, weights: tuple[float, ...], alpha: Array) -> KernelMap:
        """The map with its dual weights."""
        return KernelMap(
            kernel=self.kernel,
            length_scale=length_scale,
            unit=self.unit,
            term_weights=weights,
            anchored=self.anchored,
            support=self.support,
            dual_weights=contiguous(alpha),
        )


def _training_kernel(codes: Array, kernel: str, anchored: bool) -> _TrainingKernel:
    unit = typical_distance(codes)
    if not unit > 0.0:
        raise PlumecastError("the training codes are all alike: there is nothing to fit")
    support = contiguous(codes / unit)
    squares = squared_distances(support, support) if has_length_scale(kernel) else None
    return _TrainingKernel(kernel, anchored, unit, support, squares)


def _no_scale(length_scale: float, how: str, what: str) -> str:
    return (
        f"length_scale={length_scale:g} is so {how} that a training snapshot {what} to the "
        "kernel; 1 is the typical distance between them, and leaving it out has it chosen"
    )


def fit_kernel_map(
    codes: Array,
    targets: Array,
    *,
    kernel: str,
    length_scale: float,
    penalty: float,
    anchored: bool,
) -> KernelMap:
    """The map of a kernel with its length scale and penalty given."""
    if not penalty > 0.0:
        raise PlumecastError(
            f"penalty={penalty:g} lets a kernel interpolate the training snapshots; give penalty > "
            "0, or leave it out to have it chosen"
        )
    training = _training_kernel(codes, kernel, anchored)
    training.check(length_scale)
    matrix, weights = training(length_scale)
    return training.fitted(length_scale, weights, ridge_dual(matrix, targets, penalty))


def tune_kernel_map(
    codes: Array,
    targets: Array,
    *,
    kernel: str,
    groups: list[Array],
    length_scale: float | None = None,
    penalty: float | None = None,
    anchored: bool,
) -> tuple[KernelMap, KernelScan]:
    """The map whose length scale and penalty minimise the leave-one-group-out error together.

    One eigendecomposition per length scale gives all its penalties. The search walks from 1 (the
    typical distance between snapshots) by factors of 2 while the error falls, then looks once
    halfway to either neighbour. A `length_scale` or `penalty` that is given is kept.
    """
    training = _training_kernel(codes, kernel, anchored)
    if length_scale is not None:
        training.check(length_scale)
    errors: dict[float, float] = {}
    if length_scale is None and has_length_scale(kernel):
        errors = _search(training, targets, groups, penalty)
        length_scale = min(errors, key=errors.__getitem__)
    best = length_scale or 1.0  # polynomials alone have none
    path, fine, weights = _scan(training, targets, groups, best, penalty, count=40)
    fitted = training.fitted(best, weights, path.dual_weights(fine.best))
    return fitted, KernelScan(best, fine, errors)


def _scan(
    training: _TrainingKernel,
    targets: Array,
    groups: list[Array],
    length_scale: float,
    penalty: float | None,
    *,
    count: int,
) -> tuple[PenaltyPath, PenaltyScan, tuple[float, ...]]:
    matrix, weights = training(length_scale)
    path = dual_path(matrix, targets)
    mean_diagonal = float(len(weights))  # every term has a mean diagonal of 1
    grid = penalty_grid(mean_diagonal, count) if penalty is None else [penalty]
    return path, scan_penalties(path, grid, groups), weights


def _search(
    training: _TrainingKernel, targets: Array, groups: list[Array], penalty: float | None
) -> dict[float, float]:
    """Smallest error of every length scale on the way downhill from 1, and around the lowest."""
    some, wanted, alike = _some_groups(training, targets, groups)
    errors: dict[float, float] = {}

    def error(length: float) -> float:
        if length not in errors:
            scan = _scan(some, wanted, alike, length, penalty, count=COARSE_PENALTIES)[1]
            errors[length] = min(scan.errors)
        return errors[length]

    def downhill(step: float) -> float:
        length = 1.0
        while LENGTH_RANGE[0] <= length * step <= LENGTH_RANGE[1]:
            if error(length * step) >= error(length):
                break
            length *= step
        return length

    best = downhill(LENGTH_STEP)
    if best == 1.0:
        best = downhill(1.0 / LENGTH_STEP)
    for ratio in (LENGTH_STEP**0.5, LENGTH_STEP**-0.5):
        error(best * ratio)
    return errors


def _some_groups(
    training: _TrainingKernel, targets: Array, groups: list[Array]
) -> tuple[_TrainingKernel, Array, list[Array]]:
    """The same problem on whole groups of at most SEARCH_ROWS snapshots, at least two groups."""
    xp = array_namespace(training.support)
    total = int(training.support.shape[0])
    if total <= SEARCH_ROWS:
        return training, targets, groups
    step = max(1, min(-(-total // SEARCH_ROWS), len(groups) // 2))
    kept = groups[::step]
    rows = xp.concat(kept)
    sizes = [int(part.shape[0]) for part in kept]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    numbers = xp.arange(sum(sizes))
    alike = [numbers[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    squares = training.squares
    if squares is not None:
        squares = xp.take(xp.take(squares, rows, axis=0), rows, axis=1)
    some = replace(training, support=xp.take(training.support, rows, axis=0), squares=squares)
    return some, xp.take(targets, rows, axis=0), alike
