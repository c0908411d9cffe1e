"""PCA of snapshots: encode fields as a few codes, and decode them. Arrays only, no labels.

With snapshots as the rows of X (M, N) and X = U Σ Wᵀ, the modes are the first r rows of Wᵀ, the
codes of the training snapshots are U Σ, and the projection on the modes is the best rank-r
approximation in the Frobenius norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.values import check_fields, setting
from plumecast.compute.arrays import Array, Rows, array_namespace, contiguous, read_rows
from plumecast.compute.blocks import ONE_PASS, Passes
from plumecast.compute.linalg import cell_gram, leading_eigen, orthonormal_rows, snapshot_gram

GRAM_LIMIT = 1e-7
"""Singular values below this share of the largest are lost in the rounding of a Gram matrix
(σ²/σ₁² reaches the float64 epsilon near 1e-8); a basis that needs them is computed by an SVD."""


@dataclass(frozen=True, slots=True)
class Basis:
    """Orthonormal modes of a set of snapshots, ordered by singular value."""

    modes: Array  # (r, N), orthonormal rows
    spectrum: Array  # (min(M, N),), every singular value, descending
    mean: Array | None = None  # (N,), subtracted before encoding when the basis is centred

    @property
    def rank(self) -> int:
        """Number of modes r."""
        return int(self.modes.shape[0])

    @property
    def singular_values(self) -> Array:
        """The singular values of the modes, (r,)."""
        return self.spectrum[: self.rank]

    def encode(self, fields: Array) -> Array:
        """(M, N) fields → (M, r) codes."""
        return (fields if self.mean is None else fields - self.mean) @ self.modes.T

    def decode(self, codes: Array) -> Array:
        """(M, r) codes → (M, N) fields."""
        fields = codes @ self.modes
        return fields if self.mean is None else fields + self.mean

    def truncate(self, rank: int) -> Basis:
        """The same decomposition cut to its first `rank` modes."""
        if not 1 <= rank <= self.rank:
            raise ArgumentError(
                "rank", rank, problem=f"is not within 1…{self.rank}, the rank of this basis"
            )
        return replace(self, modes=self.modes[:rank])


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """The codes of a matrix of fields, computed when their rows are read."""

    basis: Basis
    fields: Rows

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, r)."""
        return (self.fields.shape[0], self.basis.rank)

    def read(self, rows: slice) -> Array:
        """The codes of these rows."""
        return self.basis.encode(read_rows(self.fields, rows))


@dataclass(frozen=True, slots=True)
class Truncation:
    """The rule for the number of modes: exactly one of a rank, a share of Σσ, a share of Σσ².

    `max_rank` limits the rank that a share gives.
    """

    rank: int | None = setting(None, "Number of PCA modes of {}.")
    std_fraction: float | None = setting(
        None, "Share of Σσ to keep of {}, e.g. 0.95.", option="std"
    )
    variance_fraction: float | None = None
    max_rank: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        given = (self.rank, self.std_fraction, self.variance_fraction)
        if sum(value is not None for value in given) != 1:
            raise PlumecastError(
                f"give exactly one of rank, std_fraction and variance_fraction; got {self}"
            )

    def count(self, spectrum: Array) -> int:
        """The number of modes this rule keeps of a spectrum of singular values."""
        if self.rank is not None:
            return self.rank
        if self.std_fraction is not None:
            count = rank_for_std(spectrum, self.std_fraction)
        else:
            assert self.variance_fraction is not None
            count = rank_for_variance(spectrum, self.variance_fraction)
        return count if self.max_rank is None else min(count, self.max_rank)


def rank_for_std(spectrum: Array, fraction: float) -> int:
    """Smallest r with Σ₁..r σ / Σ σ ≥ fraction: the paper's "share of the standard deviation"."""
    return _rank_for_share(spectrum, fraction, "std_fraction")


def rank_for_variance(spectrum: Array, fraction: float) -> int:
    """Smallest r with Σ₁..r σ² / Σ σ² ≥ fraction."""
    return _rank_for_share(spectrum**2, fraction, "variance_fraction")


def _rank_for_share(weights: Array, fraction: float, what: str) -> int:
    if not 0.0 < fraction <= 1.0:
        raise ArgumentError(what, fraction, problem="is not within (0, 1]")
    xp = array_namespace(weights)
    total = xp.cumulative_sum(weights)
    # The tolerance for rounding lets a share of exactly 1 be reached.
    reached = total >= fraction * total[-1] * (1.0 - 1e-14)
    return int(xp.argmax(xp.astype(reached, xp.int8))) + 1


def fit_basis(
    snapshots: Array,
    *,
    rank: int | None = None,
    std_fraction: float | None = None,
    variance_fraction: float | None = None,
    center: bool = False,
) -> Basis:
    """PCA basis of (M, N) snapshots, from the smaller of the Gram matrices X Xᵀ and Xᵀ X.

    `center` subtracts the mean snapshot first; the codes of an empty field are then not zero.
    """
    return fit_truncated_basis(snapshots, Truncation(rank, std_fraction, variance_fraction), center)


def fit_truncated_basis(
    snapshots: Rows,
    rule: Truncation,
    center: bool = False,
    passes: Passes = ONE_PASS,
) -> Basis:
    """`fit_basis` with a `Truncation`, for a matrix that may be read in blocks.

    The size of the blocks changes only the rounding of sums.
    """
    matrix, mean, count = _Centred(snapshots), None, snapshots.shape[0]
    if center:

        def total(rows: slice) -> Array:
            part = matrix.read(rows)
            return array_namespace(part).sum(part, axis=0)

        mean = passes.sum(total, count) / count
    matrix = _Centred(snapshots, mean)
    decomposed = gram_modes(matrix, rule, passes)
    if decomposed is None:
        if passes.block is not None and passes.block < count:
            raise PlumecastError(
                f"{rule} keeps modes that cannot be computed by blocks of snapshots (singular "
                f"values below {GRAM_LIMIT:g} of the largest of {count} snapshots); lower the rank "
                "or the fraction, or raise the memory limit so that all snapshots fit"
            )
        decomposed = svd_modes(matrix.read(slice(0, count)), rule)
    spectrum, modes = decomposed
    return Basis(modes=contiguous(_fix_signs(modes)), spectrum=contiguous(spectrum), mean=mean)


def append_rows(basis: Basis, snapshots: Array, rule: Truncation) -> tuple[Basis, Array]:
    """The basis with further (m, N) snapshots, truncated again, and the rotation R of old codes.

    With modes W and singular values Σ of the earlier snapshots, and Q an orthonormal basis of what
    W does not represent of the new ones Y, the new basis is that of the (r + m, N) matrix
    [ΣW; Y] = [[Σ, 0], [Y Wᵀ, Y Qᵀ]] [W; Q]. Old codes (M, r) become codes @ R. The part of earlier
    snapshots beyond their r modes is lost; the mean of a centred basis is kept.
    """
    rows = snapshots if basis.mean is None else snapshots - basis.mean
    further, _ = _outside(basis, rows)
    rank = basis.rank
    small = np.zeros((rank + rows.shape[0], rank + further.shape[0]))
    small[:rank, :rank] = np.diag(basis.singular_values)
    small[rank:, :rank], small[rank:, rank:] = rows @ basis.modes.T, rows @ further.T
    _, singular_values, vectors = np.linalg.svd(small, full_matrices=False)
    spectrum = np.sort(np.concatenate([singular_values, basis.spectrum[rank:]]))[::-1]
    vectors = vectors[: min(rule.count(spectrum), vectors.shape[0])]
    modes = vectors @ np.concatenate([basis.modes, further])
    fixed = _fix_signs(modes)
    signs = np.sign(np.sum(modes * fixed, axis=1))
    rotation = (signs[:, None] * vectors)[:, :rank].T
    grown = Basis(modes=contiguous(fixed), spectrum=spectrum.copy(), mean=basis.mean)
    return grown, contiguous(rotation)


def extend_basis(basis: Basis, snapshots: Array, rule: Truncation) -> Basis:
    """The basis with further modes for what it does not represent of (m, N) new snapshots.

    The earlier modes, and the codes of earlier snapshots, stay as they are; their codes of the
    further modes are taken for zero. A rule by share adds the modes whose singular values are among
    those that it keeps; a rule by rank adds none.
    """
    if rule.rank is not None:
        return basis
    rows = snapshots if basis.mean is None else snapshots - basis.mean
    further, sizes = _outside(basis, rows)
    every = np.concatenate([basis.spectrum, sizes])
    order = np.argsort(-every, kind="stable")
    kept = order[: rule.count(every[order])]
    count = int(np.sum(kept >= basis.spectrum.size))
    if rule.max_rank is not None:
        count = max(0, min(count, rule.max_rank - basis.rank))
    modes = np.concatenate([basis.modes, _fix_signs(further[:count])])
    # Singular values are those of the modes in their order, then the others.
    tail = np.concatenate([basis.spectrum[basis.rank :], sizes[count:]])
    spectrum = [basis.singular_values, sizes[:count], np.sort(tail)[::-1]]
    return Basis(contiguous(modes), np.concatenate(spectrum), basis.mean)


def _outside(basis: Basis, rows: Array) -> tuple[Array, Array]:
    """Orthonormal modes of what a basis does not represent of (m, N) rows, and their sizes."""
    outside = rows - (rows @ basis.modes.T) @ basis.modes
    outside -= (outside @ basis.modes.T) @ basis.modes  # twice, because of rounding
    _, sizes, modes = np.linalg.svd(outside, full_matrices=False)
    resolved = sizes > GRAM_LIMIT * max(float(basis.spectrum[0]), float(sizes[0]))
    return modes[resolved], sizes[resolved]


@dataclass(frozen=True, slots=True)
class _Centred:
    """Rows in float64, minus the mean."""

    rows: Rows
    mean: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows.shape

    def read(self, rows: slice) -> Array:
        part = read_rows(self.rows, rows)
        xp = array_namespace(part)
        part = xp.astype(part, xp.float64, copy=False)
        return part if self.mean is None else part - self.mean


def gram_modes(
    matrix: Rows, rule: Truncation, passes: Passes = ONE_PASS
) -> tuple[Array, Array] | None:
    """Spectrum and modes from the smaller Gram matrix; None if its rounding errors hide them."""
    rows, columns = matrix.shape
    tall = rows > columns
    make_gram = cell_gram if tall else snapshot_gram
    eigen = leading_eigen(make_gram(matrix, passes))
    xp = array_namespace(eigen.values)
    spectrum = xp.sqrt(eigen.values)
    count = rule.count(spectrum)
    if not 1 <= count <= spectrum.shape[0]:
        return None
    if not float(spectrum[count - 1]) >= GRAM_LIMIT * float(spectrum[0]) > 0.0:
        return None
    vectors = eigen.vectors(count)
    if tall:
        return spectrum, vectors.T
    # W = Uᵀ X / σ loses orthogonality like (σ₁/σ)² ε; one Cholesky step restores it.
    product = passes.sum(lambda part: vectors[part, :].T @ read_rows(matrix, part), rows)
    return spectrum, orthonormal_rows(product / spectrum[:count, None])


def svd_modes(matrix: Array, rule: Truncation) -> tuple[Array, Array]:
    """Spectrum and modes from a singular value decomposition: slower, but accurate for small σ."""
    xp = array_namespace(matrix)
    _, spectrum, modes = xp.linalg.svd(matrix, full_matrices=False)
    noise = float(spectrum[0]) * max(matrix.shape) * float(xp.finfo(xp.float64).eps)
    spectrum = xp.where(spectrum > noise, spectrum, 0.0 * spectrum)
    full = int(xp.sum(xp.astype(spectrum > 0.0, xp.int64)))
    if full == 0:
        raise PlumecastError(
            f"all {matrix.shape[0]} snapshots are zero (or, if centred, equal), so there is "
            "nothing to encode; check the variable and the filters"
        )
    count = rule.count(spectrum)
    if not 1 <= count <= full:
        raise PlumecastError(
            f"rank={count} exceeds {full}, the rank of {matrix.shape[0]} snapshots on "
            f"{matrix.shape[1]} cells; lower the rank or add snapshots"
            if count > full
            else f"rank={count} must be at least 1"
        )
    return spectrum, modes[:count]


def _fix_signs(modes: Array) -> Array:
    """Make the entry of largest magnitude in each mode positive.

    Signs then do not depend on the order of the snapshots or on the factorisation.
    """
    xp = array_namespace(modes)
    largest = xp.argmax(xp.abs(modes), axis=1)
    entry = xp.take_along_axis(modes, largest[:, None], axis=1)
    return xp.where(entry < 0.0, -modes, modes)


def projection_error(basis: Basis, fields: Array) -> float:
    """‖X − P X‖ / ‖X‖ in the Frobenius norm, P the projection on the basis.

    Computed from ‖x − P x‖² = ‖x‖² − ‖codes‖², without forming the projected fields. It resolves
    errors down to about 1e-8.
    """
    xp = array_namespace(fields, basis.modes)
    fields = xp.astype(fields, xp.float64, copy=False)
    centred = fields if basis.mean is None else fields - basis.mean
    outside = float(xp.sum(centred**2)) - float(xp.sum((centred @ basis.modes.T) ** 2))
    size = float(xp.sum(fields**2))
    if size == 0.0:
        return 0.0 if outside <= 0.0 else math.inf
    return math.sqrt(max(outside, 0.0) / size)
