"""Sums by ignition of the statistics at places: the quantity, and whether it exceeds thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.compute.blocks import row_blocks
from plumecast.scores.sampling import cluster_sums, group_sums, sums_mean
from plumecast.surrogate.error_bars.expected import Expected, expected_block
from plumecast.workflows.statistics.estimates import Cheap, PairedSums, cheap_mean
from plumecast.workflows.statistics.place_samples import PlaceSamples
from plumecast.workflows.statistics.request import Request

AT_ONCE = 2_000_000
"""Values of smoke at places whose expectation is computed at a time."""


@dataclass(frozen=True, slots=True)
class PlaceSums:
    """Sums by ignition of V statistics at P places, and of the fires with true smoke."""

    sums: np.ndarray  # (V, C, P) of the predictions, or of what they let expect
    counts: np.ndarray  # (C,)
    predicted: np.ndarray  # (V, P) mean of the predictions
    truth: tuple[np.ndarray, np.ndarray, np.ndarray] | None  # observed, predicted; counts
    changes: np.ndarray | None = None  # (V, R, P) if a part of the calibration is left out
    expected: Expected | None = None

    @property
    def samples(self) -> int:
        """Number of snapshots."""
        return int(self.counts.sum())

    def of(self, number: int, weights: np.ndarray | None = None) -> tuple[Cheap, PairedSums | None]:
        """One of the statistics at places; with weights (P,), its weighted sum over places.

        Places are added up before the variance is taken, as one plume reaches several.
        """

        def at(values: np.ndarray) -> np.ndarray:
            one: np.ndarray = values[number] if weights is None else values[number] @ weights
            return one

        cheap = cheap_mean(
            sums_mean(at(self.sums), self.counts),
            at(self.predicted),
            clusters=self.counts.size,
            samples=self.samples,
            changes=None if self.changes is None else at(self.changes),
            expected=self.expected,
        )
        if self.truth is None:
            return cheap, None
        observed, own, counts = self.truth
        return cheap, PairedSums(at(observed), at(own), counts)


def place_sums(
    cheap: PlaceSamples, request: Request, truth: tuple[PlaceSamples, PlaceSamples] | None = None
) -> PlaceSums:
    """The sums of samples at places; `truth` has true and predicted samples."""
    sums, counts = _sums(cheap, request)
    predicted = sums.sum(axis=1) / counts.sum()
    if truth is not None:
        (observed, true_counts), (own, _) = (_sums(part, request) for part in truth)
        return PlaceSums(sums, counts, predicted, (observed, own, true_counts))
    if request.expected is None:
        return PlaceSums(sums, counts, predicted, None)
    expected, changes = _expected(cheap, request, request.expected)
    return PlaceSums(expected, counts, predicted, None, changes, request.expected)


def _sums(samples: PlaceSamples, request: Request) -> tuple[np.ndarray, np.ndarray]:
    values = samples.quantity(request.quantity, request.interval)
    statistics = [values, *(values > threshold for threshold in request.thresholds)]
    pairs = [cluster_sums(part, samples.ignitions) for part in statistics]
    return np.stack([sums for sums, _ in pairs]), pairs[0][1]


def _expected(
    samples: PlaceSamples, request: Request, expected: Expected
) -> tuple[np.ndarray, np.ndarray]:
    """Sums (V, C, P) of the expected statistics, and their changes (V, R, P)."""
    factors = samples.factors(request.quantity, request.interval)
    names, index = np.unique(samples.ignitions, return_inverse=True)
    count, places = samples.values.shape
    sums = np.zeros((1 + len(request.thresholds), names.size, places))
    changes = np.zeros((sums.shape[0], expected.ratio.shape[0] - 1, places))
    for rows in row_blocks(count, max(1, AT_ONCE // max(places, 1))):
        block = expected_block(expected, samples.values[rows], request.thresholds, factors[rows])
        for number, part in enumerate(block.fields[1:]):  # the first is of the logarithm
            sums[number] += group_sums(part, index[rows], names.size)
        changes += block.changes[1:]
    return sums, changes
