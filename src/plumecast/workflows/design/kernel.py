"""How much the run of one fire tells of others: what a surrogate sees of fires, and the choice.

The channels are those of the preset `recommended`: lifted fields and, where the weather is known,
smoke that it carries, in the wind frame where winds differ. A spectral surrogate is equivariant:
what it learns of a fire it knows of the same fire elsewhere. Spectra are therefore taken about the
centre of the burned cells. The kernel k is the inner product of the low-pass filtered channels, as
in a ridge regression on them: a large fire tells more, as it does in a fit by least squares.

The outputs are regarded as a Gaussian process with that kernel. Its variance does not depend on the
outputs, so that a whole batch can be chosen before any output is known. After the outputs of the
rows S are known, each with noise of variance λ, the covariance of rows a and b is

    k(a, b | S) = k(a, b) − k(a, S) (k(S, S) + λ I)⁻¹ k(S, b) = k(a, b) − L_a L_bᵀ,

where the columns of L are those of a pivoted Cholesky factorisation, extended group by group. Only
the kernel's diagonal and the columns of known rows are computed: memory is (M, |S|).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.names import FIRE
from plumecast.compute.arrays import Array, to_complex
from plumecast.compute.blocks import row_blocks, sampled_rows
from plumecast.compute.linalg import cholesky, solve_lower
from plumecast.data.covariates import own_winds, read_wind, weather_known
from plumecast.data.layout import fit_layout
from plumecast.operators.carried.transport import plan_transport
from plumecast.operators.family import ComputedFields, Conditions
from plumecast.operators.lift import Lift, fit_lift
from plumecast.operators.pca import Truncation, fit_truncated_basis
from plumecast.operators.settings import PRESETS, Settings
from plumecast.operators.spectral.transform import (
    Frequencies,
    choose_frequencies,
    make_transform,
)
from plumecast.operators.wind_frame import carried_fields, encoded_fields
from plumecast.surrogate.fit_lifted import grid_spacing, wind_frame_of
from plumecast.surrogate.weather import (
    fire_history,
    fuel_loads,
    weather_series,
)

Kernel = Callable[[Array, Array], Array]
"""(Ma, D) and (Mb, D) rows → (Ma, Mb)."""

WAVELENGTH = 16.0
"""Shortest wavelength that is kept, in cells: where plumes differ, they differ at large scales."""

BLOCK = 64
"""Snapshots whose channels are in memory at a time."""

LIFT_ROWS = 512
"""Snapshots from which the knots and scales of the channels are computed."""


def surrogate_features(
    parts: Sequence[xr.Dataset], groups: Array, settings: Settings = PRESETS["recommended"]
) -> list[Array]:
    """(M, D) float32 features of the snapshots of every data set; all on one grid.

    Frame, physics and channels are planned for the first data set, whose `groups` (M,) are numbers
    of ignitions, and are the same for all.
    """
    first = parts[0]
    field = fit_layout(first, [FIRE]).fields[0]
    wind = read_wind(first)
    frame = None
    if field.dims == ("y", "x") and own_winds(first, groups, wind, ("hours",)):
        frame = wind_frame_of(first, field, wind, "wind")
    carrier = None
    if field.dims == ("y", "x") and weather_known(first):
        fuel = fuel_loads(first, field.dims)
        carrier = plan_transport(
            weather_series(first),
            grid_spacing(first, field),
            float(first.attrs.get(INTERVAL, 1.0)),
            load=None if fuel is None else fuel.mean(),
        )
    features: list[Array] = []
    lift = None
    for part in parts:
        values = part[FIRE].transpose("snapshot", *field.dims).values.astype(np.float32)
        wind = read_wind(part)
        fire, carried = encoded_fields(values, field.shape, (), frame, wind), None
        if carrier is not None:
            conditions = Conditions(
                wind=wind,
                weather=weather_series(part),
                fuel=fuel_loads(part, field.dims),
                history=fire_history(part, values),
            )
            carried = carried_fields(values, carrier, conditions, frame, lambda array: array)
        if lift is None:
            some = sampled_rows(part.sizes["snapshot"], LIFT_ROWS)
            lift = fit_lift(
                fire[some],
                settings.lift,
                settings.products,
                bins=settings.age_bins,
                physics=None if carried is None else carried[some],
            )
        features.append(_spectral_rows(fire, carried, lift))
    return features


def _spectral_rows(fire: ComputedFields, carried: ComputedFields | None, lift: Lift) -> Array:
    """(M, D): low frequencies of the channels about the centre of the burned cells.

    Low are those with a wavelength of at least WAVELENGTH along each axis of the padded grid.
    """
    count, ny, nx = fire.shape
    padded = choose_frequencies((int(ny), int(nx))).padded
    highest = tuple(max(1, min(n // 2, int(n / WAVELENGTH))) for n in padded)
    frequencies = Frequencies((int(ny), int(nx)), padded, highest)
    weight = np.sqrt(frequencies.weight() / np.prod(padded))
    parts = []
    for rows in row_blocks(count, BLOCK):
        burned = fire[rows]
        physics = None if carried is None else carried[rows]
        channels = np.asarray(lift(burned, None, physics))  # (B, C, *grid) float32
        transform = make_transform(frequencies, channels)
        pairs = transform.spectra(np.moveaxis(channels, (0, 1), (-2, -1)))  # (F, 2, B, C)
        spectra = to_complex(pairs[:, 0, ...], pairs[:, 1, ...])
        turned = spectra * _centring(burned, frequencies)[..., None]
        flat = np.moveaxis(turned * weight[:, None, None], 0, -1).reshape(channels.shape[0], -1)
        parts.append(np.hstack([flat.real, flat.imag]).astype(np.float32))
    return np.concatenate(parts)


def _centring(fire: Array, frequencies: Frequencies) -> Array:
    """(F, B) phases that move the centre of the burned cells to that of the grid."""
    burned = (fire > 0.0).astype(np.float64)
    total = np.maximum(burned.sum(axis=(1, 2)), 1.0)
    rows, columns = (np.arange(n) - 0.5 * (n - 1) for n in fire.shape[1:])
    centre = (burned.sum(axis=2) @ rows / total, burned.sum(axis=1) @ columns / total)
    waves = [
        2.0 * np.pi * axis / n
        for axis, n in zip(frequencies.axes(), frequencies.padded, strict=True)
    ]
    angle = waves[0][:, None, None] * centre[0] + waves[1][None, :, None] * centre[1]
    return np.exp(1j * angle).reshape(-1, fire.shape[0]).astype(np.complex64)


NOISE = 0.1
"""Noise λ of an output, relative to the mean variance before any run: what cannot be learned."""

LEADING = Truncation(variance_fraction=0.9999, max_rank=150)
"""Principal components that stand for the features; 100 have 99.8 % of the variance of simulated
fires."""

SAMPLE = 1024
"""Snapshots from which the components are computed."""


def fit_kernel(pool: Array, rows: Array) -> tuple[Kernel, Array]:
    """The kernel, and the (M, r) rows that it takes, from (M, D) features of all fires.

    k(a, b) = ⟨a, b⟩ / mean over the pool of ‖a‖², of the leading uncentred components of the
    features. The `pool` is some of the rows.
    """
    some = pool[sampled_rows(pool.shape[0], SAMPLE)].astype(np.float64)
    basis = fit_truncated_basis(some, LEADING)
    blocks = -(-int(rows.shape[0]) // SAMPLE)  # encoded in double precision
    codes = np.concatenate([basis.encode(part) for part in np.array_split(rows, blocks)])
    size = float(np.mean(np.square(basis.encode(some)).sum(axis=1)))
    return inner_product, codes / np.sqrt(size)


def inner_product(a: Array, b: Array) -> Array:
    """⟨a, b⟩ of all pairs of rows."""
    return a @ b.T


REFERENCES = 2000
"""Largest number of rows whose mean variance the method `variance` looks at."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What there is to choose from. Every row of `rows` that is in no group is known already."""

    rows: Array  # (M, D)
    groups: Sequence[Array]  # row numbers of every candidate
    kernel: Kernel
    noise: float  # λ
    weights: Array  # (G,), probabilities of the candidates; their sum is 1
    costs: Array  # (G,)
    allowed: Array  # (G,) whether a candidate may be chosen; the others only count in the mean
    seed: int = 0

    def row_weights(self) -> Array:
        """(M,): the weight of a group is shared by its rows; known rows have none."""
        out = np.zeros(self.rows.shape[0])
        for group, weight in zip(self.groups, self.weights, strict=True):
            out[group] = weight / group.size
        return out

    def known_rows(self) -> Array:
        """The rows that are in no group."""
        return np.setdiff1d(np.arange(self.rows.shape[0]), np.concatenate(list(self.groups)))


@dataclass(frozen=True, slots=True)
class Posterior:
    """Covariances of all rows after the outputs of some are known."""

    rows: Array  # (M, D)
    kernel: Kernel
    noise: float
    factor: Array  # (M, |S|), L
    variances: Array  # (M,)

    def covariance(self, a: Array, b: Array) -> Array:
        """(|a|, |b|) covariance of rows a and b."""
        return self.kernel(self.rows[a], self.rows[b]) - self.factor[a] @ self.factor[b].T

    def columns(self, group: Array, rows: Array) -> Array:
        """(|rows|, m) values that a group B adds to L.

        They are k(:, B | S) C⁻ᵀ with C Cᵀ = k(B, B | S) + λ I.
        """
        block = self.covariance(group, group)
        root = cholesky(0.5 * (block + block.T) + self.noise * np.eye(group.size))
        return solve_lower(root, self.covariance(rows, group).T).T

    def known(self, group: Array) -> Posterior:
        """The same after the outputs of a group are known too."""
        columns = self.columns(group, np.arange(self.rows.shape[0]))
        variances = np.maximum(self.variances - np.square(columns).sum(axis=1), 0.0)
        return replace(self, factor=np.hstack([self.factor, columns]), variances=variances)


def prior(choice: Choice) -> Posterior:
    """Covariances after the known rows, those in no group."""
    rows = choice.rows
    variances = np.array([choice.kernel(rows[[i]], rows[[i]])[0, 0] for i in range(rows.shape[0])])
    start = Posterior(rows, choice.kernel, choice.noise, np.empty((rows.shape[0], 0)), variances)
    known_rows = choice.known_rows()
    return start.known(known_rows) if known_rows.size else start


def mean_variances(choice: Choice, order: Sequence[int]) -> Array:
    """(1 + len(order),) weighted mean variance of the candidates, before and after each group."""
    weights = choice.row_weights()
    state = prior(choice)
    means = [float(weights @ state.variances)]
    for number in order:
        state = state.known(choice.groups[number])
        means.append(float(weights @ state.variances))
    return np.array(means)


def by_variance(choice: Choice, count: int, first: Sequence[int]) -> list[int]:
    """Greedily the group with the largest fall of the weighted mean variance, per cost.

    The fall is Σ_i w_i Σ_j (k(i, B | S) C⁻ᵀ)²_j over rows i; of very many rows a random sample.
    """
    weights = choice.row_weights()
    rows = sampled_rows(weights.size, REFERENCES)
    state, order = prior(choice), list(first)
    for number in order:
        state = state.known(choice.groups[number])
    while len(order) < count:
        free = [int(i) for i in np.flatnonzero(choice.allowed) if i not in order]
        falls = [
            float(weights[rows] @ np.square(state.columns(choice.groups[number], rows)).sum(axis=1))
            for number in free
        ]
        best = free[int(np.argmax(np.array(falls) / choice.costs[free]))]
        state = state.known(choice.groups[best])
        order.append(best)
    return order


def by_chance(choice: Choice, count: int, first: Sequence[int]) -> list[int]:
    """At random, with the weights as probabilities; costs have no effect."""
    rng = np.random.default_rng(choice.seed)
    drawn = draw_groups(choice.weights, choice.allowed, rng)
    return [*first, *(number for number in drawn if number not in first)][:count]


def draw_groups(weights: Array, allowed: Array, rng: Any) -> list[int]:
    """The allowed groups in random order: each next one with a probability ∝ its weight."""
    keys = rng.exponential(size=weights.size) / np.maximum(weights, 1e-300)
    order = np.argsort(keys, kind="stable")
    return [int(number) for number in order if allowed[number]]


METHODS: dict[str, Callable[[Choice, int, Sequence[int]], list[int]]] = {
    "variance": by_variance,
    "random": by_chance,
}
"""How groups are chosen: (choice, number of groups, those that must be chosen) → order."""
