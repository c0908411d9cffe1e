"""What is known of a chosen fire beyond its snapshots, or estimated from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.compute.arrays import Array
from plumecast.sources.wrf_inputs.sounding import STABILITY

OLD = 0.5
"""Cells whose time since ignition is at least this share of the largest are near the ignition."""


@dataclass(frozen=True, slots=True)
class Known:
    """Ignition, stability and ground of a fire; `None` where the ground is not known."""

    x: float  # of the ignition, m
    y: float
    exact: bool  # whether the ignition is the simulator's own, not estimated from a field
    stability: float = STABILITY  # N² of the free troposphere, s⁻²
    terrain: Array | None = None  # (ny, nx) m on the columns
    fuels: Array | None = None  # (ny·sr, nx·sr) Anderson categories on the fire cells


def estimated_ignition(age: Array, x: Array, y: Array) -> tuple[float, float]:
    """Mean place of the oldest cells, weighted by their time since ignition (ny, nx).

    x₀ = Σ f x / Σ f over the cells with f ≥ `OLD` max f: about a cell wrong, downwind if the
    field is hours old.
    """
    weight = np.where(age >= OLD * age.max(), age, 0.0)
    total = weight.sum()
    return float((weight.sum(axis=0) @ x) / total), float((weight.sum(axis=1) @ y) / total)
