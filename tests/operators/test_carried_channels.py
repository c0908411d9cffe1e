"""Channels of carried smoke."""

from __future__ import annotations

import numpy as np

from plumecast.operators.lift import CARRIED_RAMPS, fit_physics_channels


def fields() -> np.ndarray:
    rng = np.random.default_rng(0)
    smoke = 10.0 ** rng.uniform(-4.0, 2.0, (12, 2, 8, 9))
    return np.where(rng.random(smoke.shape) < 0.6, 0.0, smoke).astype(np.float32)


def test_every_channel_has_a_root_mean_square_of_one_and_is_zero_without_smoke():
    channels = fit_physics_channels(fields())
    made = channels.of(fields())
    assert made.shape == (8, 9, 12, channels.channels) == (8, 9, 12, 2 * (2 + len(CARRIED_RAMPS)))
    np.testing.assert_allclose(np.sqrt((made**2).mean(axis=(0, 1, 2))), 1.0, rtol=1e-4)
    assert not channels.of(np.zeros((3, 2, 8, 9))).any()


def test_fields_without_smoke_in_training_give_finite_channels():
    channels = fit_physics_channels(np.zeros((4, 1, 5, 5), np.float32))
    assert np.isfinite(channels.of(fields()[:, :1])).all()
