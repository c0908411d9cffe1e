"""Thresholds of the user: values of a quantity of smoke at which predictions are scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.names import SNAPSHOT
from plumecast.base.values import check_number
from plumecast.compute.arrays import Array, array_namespace, like
from plumecast.scores.exceedance import Exceedance, exceedance_counts, exceedance_of
from plumecast.scores.quantities import (
    DEFAULT,
    as_integrals,
    find_quantity,
    quantity_factors,
    refuse_other_interval,
)
from plumecast.surrogate.surrogate import Surrogate


@dataclass(frozen=True, slots=True)
class Levels:
    """Values of a quantity, beside the smoke threshold τ, which is one of the sum."""

    values: tuple[float, ...] = ()
    quantity: str = DEFAULT
    interval: float | None = None  # hours between checkpoints, if stated

    def check(self, observed: xr.DataArray) -> None:
        """Raise if the quantity of the observed smoke is unknown; without values nothing is."""
        if self.values:
            refuse_other_interval(observed, self.interval)
            quantity_factors(observed, observed, self.quantity, self.interval)

    def counts(
        self,
        surrogate: Surrogate,
        block: xr.Dataset,
        smoke: xr.DataArray,
        predicted: Array,
        observed: Array,
        tau: float,
    ) -> np.ndarray:
        """(1 + T, 3) counts of `exceedance_counts`: of sums above τ, of quantities above values.

        `smoke` is the observed smoke of the block, whose (M, N) sums are `observed`. The quantity
        is read as `predict` writes it, from what the surrogate predicts of it.
        """
        sums = exceedance_counts(predicted, observed, [tau])
        if not self.values:
            return sums
        seen, own = smoke, surrogate
        if find_quantity(self.quantity).needs_interval:
            seen, own = as_integrals(smoke, self.interval), surrogate.integrated()
        if own is not surrogate:
            predicted = own.predict_rows(*own.read_rows(block))
        if seen is not smoke:
            values = seen.transpose(SNAPSHOT, ...).values.reshape(observed.shape)
            observed = like(values, observed, observed.dtype)
        attrs = own.outputs.fields[0].attrs
        called = smoke.copy().assign_attrs(attrs)
        learned = recorded_interval(attrs)
        called_as = self._read(predicted, called, self.interval if learned is None else learned)
        present_as = self._read(observed, seen, self.interval)
        return np.concatenate([sums, exceedance_counts(called_as, present_as, self.values)])

    def _read(self, sums: Array, smoke: xr.DataArray, interval: float | None) -> Array:
        """(M, N) values like those of smoke as the quantity."""
        factors = quantity_factors(smoke, smoke, self.quantity, interval)
        return sums * array_namespace(sums).reshape(like(factors, sums), (-1, 1))

    def scores(self, tau: float, counts: np.ndarray) -> tuple[Exceedance, ...]:
        """The scores from the counts: that of τ first."""
        names = ["sum"] + [self.quantity] * len(self.values)
        return tuple(map(exceedance_of, [tau, *self.values], counts, names))


def make_levels(
    thresholds: Sequence[float], quantity: str = DEFAULT, interval: float | None = None
) -> Levels:
    """Checked thresholds, each once: finite numbers from 0, of a quantity that is known."""
    for value in thresholds:
        check_number("thresholds", value, least=0.0)
    if interval is not None:
        check_number("checkpoint_interval", interval, above=0.0)
    return Levels(
        tuple(dict.fromkeys(map(float, thresholds))), find_quantity(quantity).name, interval
    )
