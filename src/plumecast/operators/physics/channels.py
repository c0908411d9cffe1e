"""Channels of smoke that cheap physics carries: the smoke, and ramps of its logarithm. Arrays only.

Smoke spans many powers of ten, and the physics is wrong by a factor that differs between thin and
thick smoke. Ramps of the logarithm let a linear map correct both. All channels are zero where the
physics has no smoke.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.compute.arrays import Array, array_namespace, contiguous, like
from plumecast.compute.blocks import sampled_rows

FLOOR = 1e-4
"""Smoke below which the logarithm ln(1 + g/floor) is linear, relative to the root mean square."""

RAMPS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Quantiles, of the logarithms above the floor, at which ramps begin; one more begins at 0."""

SAMPLE = 400
"""Largest number of snapshots from which knots and scales are computed."""


@dataclass(frozen=True, slots=True)
class PhysicsChannels:
    """Channels of K fields, each with a root mean square of 1."""

    floors: Array  # (K,)
    knots: Array  # (K, R), where ramps of the logarithms begin
    scales: Array  # (K + K · R,)

    @property
    def channels(self) -> int:
        """Number of channels, K + K · R."""
        return int(self.scales.shape[0])

    def of(self, physics: Array | None) -> Array:
        """(B, K, *grid) → (*grid, B, channels), float32."""
        assert physics is not None, "the map was fitted with physics"
        xp = array_namespace(physics)
        last = xp.moveaxis(xp.astype(physics, xp.float32, copy=False), (0, 1), (-2, -1))
        fields = contiguous(last)
        log = xp.log1p(fields / like(self.floors, fields, fields.dtype))
        above = log[..., None] - like(self.knots, fields, fields.dtype)
        ramps = xp.reshape(xp.clip(above, 0.0, None), (*fields.shape[:-1], -1))
        joined = xp.concat([fields, ramps], axis=-1)
        return joined / like(self.scales, fields, fields.dtype)


def fit_physics_channels(physics: Array) -> PhysicsChannels:
    """Floors, knots and scales from (M, K, *grid) smoke of the training snapshots.

    `physics` is an array or an object that gives one when indexed by rows.
    """
    sample = physics[sampled_rows(physics.shape[0], SAMPLE)]
    floors, knots = [], []
    for values in np.moveaxis(sample, 1, 0):
        size = float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
        floors.append(FLOOR * size if size > 0.0 else 1.0)
        logs = np.log1p(values[values > floors[-1]] / floors[-1])
        starts = np.quantile(logs, RAMPS) if logs.size else np.zeros(len(RAMPS))
        knots.append(np.concatenate([[0.0], starts]))
    kinds = len(floors) * (2 + len(RAMPS))
    draft = PhysicsChannels(np.array(floors), np.stack(knots), np.ones(kinds))
    made = draft.of(sample)
    scales = np.sqrt(np.mean(np.square(made, dtype=np.float64), axis=tuple(range(made.ndim - 1))))
    return PhysicsChannels(draft.floors, draft.knots, np.where(scales > 0.0, scales, 1.0))
