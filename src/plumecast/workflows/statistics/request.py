"""What is asked of the smoke of many fires."""

from __future__ import annotations

from dataclasses import dataclass

from plumecast.base.errors import PlumecastError
from plumecast.scores.field_statistics import MOST, QUANTILE_ERROR
from plumecast.scores.sampling import check_coverage
from plumecast.surrogate.error_bars.expected import Expected

COVERAGE = 0.95
"""Share of intervals that contain the true value, unless another one is asked for."""


@dataclass(frozen=True, slots=True)
class Request:
    """The requested statistics of an ensemble."""

    thresholds: tuple[float, ...] = ()  # of the quantity, in its unit
    quantiles: tuple[float, ...] = ()
    error: float = QUANTILE_ERROR  # largest relative error of the quantiles
    quantity: str = "sum"  # of means, thresholds and quantiles
    interval: float | None = None  # stated hours between checkpoints
    coverage: float = COVERAGE
    groups: int = MOST  # clusters of fires that are kept apart
    expected: Expected | None = None  # of a calibrated surrogate: what its smoke lets expect

    def __post_init__(self) -> None:
        wrong = [share for share in self.quantiles if not 0.0 < share < 1.0]
        if wrong:
            raise PlumecastError(f"quantile {wrong[0]:g} is not within (0, 1); 0.5 is the median")
        if any(not threshold >= 0.0 for threshold in self.thresholds):
            raise PlumecastError(f"thresholds {self.thresholds} must be ≥ 0")
        if not 1e-4 <= self.error <= 0.5:
            raise PlumecastError(f"a quantile error of {self.error:g} is not within 1e-4…0.5")
        check_coverage(self.coverage)
