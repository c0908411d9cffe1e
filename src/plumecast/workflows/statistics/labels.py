"""Names, units and meanings of the variables of estimates with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from plumecast.base.names import SMOKE
from plumecast.data.layout import Field
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.scores.quantities import find_quantity
from plumecast.workflows.statistics.estimates import Corrected

Labelled: TypeAlias = dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, Any]]]
"""By name: dimensions beside those of grid or places, values, attributes."""

INTERVAL_PARTS = ("lower", "upper")
SURROGATE_PART = "surrogate"
TRUTH_PARTS = (SURROGATE_PART, "correlation", "variance_ratio", "corrected")
"""Endings of the names of variables that go with an estimate: always, where a mean
was corrected, and with true smoke."""


def quantity_meaning(quantity: str, field: Field) -> tuple[str, str]:
    """What a quantity of the surrogate's output is in words, and its unit."""
    chosen = find_quantity(quantity)
    if field.name in (SMOKE, LOG_SMOKE):
        return chosen.long_name, chosen.units
    unit = str(field.attrs.get("units", "1"))
    if not chosen.needs_interval:
        return str(field.attrs.get("long_name", field.name)), unit
    return f"{chosen.name} of {field.name}", f"{unit} h" if chosen.units.endswith(" h") else unit


def interval_variables(
    found: Corrected | Sequence[Corrected],
    name: str,
    meaning: str,
    unit: str,
    coverage: float,
    *,
    lead: tuple[str, ...] = (),
) -> Labelled:
    """The ends of the intervals of a statistic.

    With true smoke the parts in TRUTH_PARTS follow; a calibrated statistic comes with the mean of
    the predictions.

    `lead` names the dimension of several estimates, such as one for each threshold.
    """
    parts = [found] if isinstance(found, Corrected) else list(found)

    def joined(values: list[np.ndarray]) -> np.ndarray:
        return np.stack(values) if lead else values[0]

    def stated(text: str, units: str, **more: Any) -> dict[str, Any]:
        return {"long_name": text, "units": units, **more}

    share = f"{100 * coverage:g} %"
    made: Labelled = {
        f"{name}_lower": (
            lead,
            joined([part.lower for part in parts]),
            stated(f"lower end of the {share} interval of the {meaning}", unit),
        ),
        f"{name}_upper": (
            lead,
            joined([part.upper for part in parts]),
            stated(f"upper end of the {share} interval of the {meaning}", unit),
        ),
    }
    variates = [part.variate for part in parts if part.variate is not None]
    own = stated(f"{meaning}, of the predictions as they are", unit)
    if not variates:
        if all(part.calibrated for part in parts):
            means = joined([part.surrogate for part in parts])
            made[f"{name}_{SURROGATE_PART}"] = (lead, means, own)
        return made
    rho = stated("correlation of true and predicted values over ignitions", "1")
    ratio = stated("variance of the estimate / variance of the mean of the true fires alone", "1")
    flag = stated("estimator", "1", flag_values=[0, 1], flag_meanings="monte_carlo control_variate")
    values = {
        "surrogate": (joined([part.surrogate for part in parts]), own),
        "correlation": (joined([item.correlation for item in variates]), rho),
        "variance_ratio": (joined([item.variance_ratio for item in variates]), ratio),
        "corrected": (joined([item.used.astype(np.int8) for item in variates]), flag),
    }
    return made | {f"{name}_{part}": (lead, *values[part]) for part in TRUTH_PARTS}
