"""The spectral surrogate of smoke: one equivariant map per scenario, three targets at once.

The targets share every factorisation: ln(g + 1) for thin smoke, g for thick smoke, and the
footprint g > τ for detection. Arrays only, no labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast._array import Array
from plumecast.errors import PlumecastError
from plumecast.lift import fit_age_lift
from plumecast.spectral import SpectralMap, fit_spectral, fold_numbers

LOG, SMOKE, FOOTPRINT = range(3)

BLENDS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Concentrations, relative to the root mean square of the smoke, tried as the blend."""

FOLDS = 6
"""Parts of the ignitions left out in turn."""


@dataclass(frozen=True, slots=True)
class PlumeMap:
    """One scenario's map and how its targets become smoke."""

    spectral: SpectralMap
    blend: float  # concentration below which the logarithmic target is trusted more
    largest: float  # largest smoke in training; predictions stay below it

    def smoke(self, fire: Array) -> Array:
        """(M, *grid) ages → (M, *grid) smoke."""
        return blended(self.spectral.predict(fire), self.blend, self.largest)

    def footprint(self, fire: Array) -> Array:
        """(M, *grid) ages → (M, *grid) detection score, within 0 and 1."""
        return np.clip(self.spectral.predict(fire)[:, FOOTPRINT], 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class PlumeOperator:
    """Maps of all scenarios (droughts); one without a label serves every snapshot."""

    labels: tuple[str, ...]  # empty where there is one map for all
    maps: tuple[PlumeMap, ...]
    shape: tuple[int, ...]

    def predict(self, inputs: Array, labels: Array | None = None) -> Array:
        """(M, N) → (M, N) smoke; `labels` (M,) says the scenario of every row."""
        return self._by_scenario(inputs, labels, footprint=False)

    def footprint(self, inputs: Array, labels: Array | None = None) -> Array:
        """(M, N) → (M, N) detection score."""
        return self._by_scenario(inputs, labels, footprint=True)

    def _by_scenario(self, inputs: Array, labels: Array | None, *, footprint: bool) -> Array:
        out = np.empty(inputs.shape)
        for member, rows in self._parts(inputs.shape[0], labels):
            fire = inputs[rows].reshape(-1, *self.shape)
            values = member.footprint(fire) if footprint else member.smoke(fire)
            out[rows] = values.reshape(-1, inputs.shape[1])
        return out

    def _parts(self, count: int, labels: Array | None) -> list[tuple[PlumeMap, Array]]:
        if not self.labels:
            return [(self.maps[0], np.arange(count))]
        if labels is None and len(self.labels) > 1:
            raise PlumecastError(
                f"this surrogate was trained on the droughts {', '.join(self.labels)}; pass a "
                "Dataset or DataArray whose coordinate 'drought' says which each snapshot is of"
            )
        if labels is None:
            return [(self.maps[0], np.arange(count))]
        unknown = sorted(set(np.asarray(labels).tolist()) - set(self.labels))
        if unknown:
            raise PlumecastError(
                f"drought '{unknown[0]}' was not in training; known are {', '.join(self.labels)}"
            )
        rows = [np.flatnonzero(np.asarray(labels) == label) for label in self.labels]
        return list(zip(self.maps, rows, strict=True))


def blended(targets: Array, blend: float, largest: float) -> Array:
    """Smoke from its logarithmic and its plain prediction, (M, *grid).

    Thin smoke is right in the logarithm and noise in g; thick smoke the other way round. With a
    the first, b the second and w = a / (a + blend): w b + (1 − w) a, both within 0 and `largest`.
    """
    thin = np.expm1(np.clip(targets[:, LOG], 0.0, np.log1p(largest)))
    thick = np.clip(targets[:, SMOKE], 0.0, largest)
    weight = np.divide(thin, thin + blend, out=np.zeros_like(thin), where=thin > 0.0)
    return weight * thick + (1.0 - weight) * thin


def fit_plume_map(
    fire: Array, smoke: Array, groups: Array, *, threshold: float, layers: int, bins: int
) -> PlumeMap:
    """Fit (M, *grid) ages to (M, *grid) smoke; `groups` (M,) names what is left out together.

    The blend is the one with the smallest sum of the median relative errors of g and of ln(g + 1)
    on predictions of fires that were left out.
    """
    targets = np.stack([np.log1p(smoke), smoke, smoke > threshold], axis=1).astype(np.float32)
    lift = fit_age_lift(fire, bins)
    fitted, left_out = fit_spectral(
        fire, targets, fold_numbers(groups, FOLDS), lift=lift, layers=layers
    )
    size = float(np.sqrt(np.mean(np.square(smoke, dtype=np.float64))))
    largest = float(smoke.max())
    errors = {
        share * size: _error(blended(left_out, share * size, largest), smoke) for share in BLENDS
    }
    return PlumeMap(fitted, min(errors, key=errors.__getitem__), largest)


def _error(predicted: Array, smoke: Array) -> float:
    total = 0.0
    for guess, truth in ((predicted, smoke), (np.log1p(predicted), np.log1p(smoke))):
        axes = tuple(range(1, truth.ndim))
        size = np.sqrt(np.sum(np.square(truth, dtype=np.float64), axis=axes))
        wrong = np.sqrt(np.sum(np.square(guess - truth, dtype=np.float64), axis=axes))
        if (size > 0.0).any():
            total += float(np.median((wrong / np.where(size > 0.0, size, 1.0))[size > 0.0]))
    return total


def fit_plume_operator(
    fire: Array,
    smoke: Array,
    groups: Array,
    labels: Array | None,
    *,
    threshold: float,
    layers: int,
    bins: int,
) -> PlumeOperator:
    """One map per label, or one for all without labels."""
    shape = tuple(int(n) for n in fire.shape[1:])

    def fit(rows: Array) -> PlumeMap:
        return fit_plume_map(
            fire[rows], smoke[rows], groups[rows], threshold=threshold, layers=layers, bins=bins
        )

    if labels is None:
        return PlumeOperator((), (fit(np.arange(fire.shape[0])),), shape)
    names = tuple(str(name) for name in np.unique(labels))
    return PlumeOperator(names, tuple(fit(np.flatnonzero(labels == name)) for name in names), shape)
