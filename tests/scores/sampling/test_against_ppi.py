"""Corrected means against prediction-powered inference (ppi-python), for many independent fires.

The numbers of ppi-python 0.2.3 are written down; where it is installed (group `oracles`), they are
computed again.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from plumecast.scores.sampling import ControlVariate, cluster_mean, control_variate

TRUE, CHEAP = 20_000, 200_000

SHIFT = 0.01
"""The fires with true smoke have 1 % more of it than the others, half the width of the interval."""

CLASSICAL = (1.197534246164223, 1.2194743431713386)
"""The interval of 95 % of the mean of the true smoke alone."""

TUNED = (1.1946037760503345, 1.206749812739511)
"""The interval of 95 % with the best coefficient, the same for all factors of the predictions."""

FACTORS = (1.0, 2.0)

ROUNDING = 1e-9

WIDTH_TOLERANCE = 0.02
"""Theirs takes the variance of the predictions from both samples, ours from the fires with true
smoke; ours also counts that the coefficient is estimated. Here that is 1.2 % of the width."""

Fires = tuple[np.ndarray, np.ndarray, np.ndarray]


def spread(first: int, count: int, step: float) -> np.ndarray:
    """Standard normal values without chance: quantiles at the fractions of (i + ½) · step."""
    return ndtri((np.arange(first, first + count) + 0.5) * step % 1.0)


def make_fires(factor: float) -> Fires:
    """True smoke, its prediction, and the predictions of other fires."""
    parts = []
    for first, count, shift in ((1, TRUE, SHIFT), (TRUE + 1, CHEAP, 0.0)):
        smoke = np.exp(0.6 * spread(first, count, 0.7548776662466927) + shift)
        error = np.exp(0.3 * spread(first, count, 0.5698402909980532))
        parts.append((smoke, factor * smoke * error))
    (smoke, predicted), (_, others) = parts
    return smoke, predicted, others


def corrected(fires: Fires) -> ControlVariate:
    smoke, predicted, others = fires
    cheap = cluster_mean(others, np.arange(others.size))
    return control_variate(smoke, predicted, np.ones(smoke.size, dtype=int), cheap)


@pytest.mark.parametrize("factor", FACTORS)
def test_the_corrected_interval_is_that_of_power_tuned_inference(factor):
    found = corrected(make_fires(factor))
    low, high = TUNED
    own = found.estimate.interval(0.95)
    np.testing.assert_allclose(own, (low, high), rtol=0.0, atol=WIDTH_TOLERANCE * (high - low))
    assert high - low < 0.6 * (CLASSICAL[1] - CLASSICAL[0])
    assert abs(found.estimate.mean - make_fires(factor)[0].mean()) > 0.2 * (high - low)


def test_the_uncorrected_interval_is_the_classical_one():
    smoke, _, others = make_fires(1.0)
    useless = np.exp(spread(1, TRUE, 0.41421356237309515))
    found = corrected((smoke, useless, others))
    assert not found.used
    width = CLASSICAL[1] - CLASSICAL[0]
    np.testing.assert_allclose(
        found.estimate.interval(0.95), CLASSICAL, rtol=0.0, atol=WIDTH_TOLERANCE * width
    )


@pytest.mark.parametrize("factor", FACTORS)
def test_the_oracle_gives_the_numbers_that_are_written_down(factor):
    oracle = pytest.importorskip("ppi_py", reason="needs ppi-python: pip install --group oracles")
    fires = make_fires(factor)
    ends = np.ravel(oracle.ppi_mean_ci(*fires, alpha=0.05))
    np.testing.assert_allclose(ends, TUNED, rtol=ROUNDING)
    plain = np.ravel(oracle.classical_mean_ci(fires[0], alpha=0.05))
    np.testing.assert_allclose(plain, CLASSICAL, rtol=ROUNDING)
    found = corrected(fires)
    same = oracle.ppi_mean_pointestimate(*fires, lam=float(found.coefficient))
    np.testing.assert_allclose(found.estimate.mean, same[0], rtol=ROUNDING)
