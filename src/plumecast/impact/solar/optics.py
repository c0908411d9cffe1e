"""Smoke as an aerosol: column concentration → optical depth, and the range of its properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import xarray as xr
from scipy.stats import qmc

from plumecast.base.checkpoints import recorded_depth
from plumecast.base.errors import PlumecastError

GRAMS_PER_UG = 1e-6
KNOWN_DEPTH = 3.0
"""Optical depth up to which the radiation models have been compared with measurements."""

Smoke = TypeVar("Smoke", np.ndarray, xr.DataArray)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optics:
    """Optical properties of smoke at 550 nm, and the ranges of those that are least known.

    The ranges are those of wildfire smoke: medians of the mass extinction efficiency of 27 events
    in Oregon, and single-scattering albedos.
    """

    mee: float = 4.5  # mass extinction efficiency of dry smoke, m² g⁻¹
    mee_range: tuple[float, float] = (3.3, 7.4)
    growth: float = 1.0  # extinction in humid air over that in dry air
    ssa: float = 0.93  # single-scattering albedo
    ssa_range: tuple[float, float] = (0.88, 0.97)
    angstrom: float = 1.14  # Ångström exponent: AOD ~ wavelength^(−angstrom)
    asymmetry: float = 0.65  # mean cosine of the scattering angle
    background: float = 0.05  # AOD without smoke, which the clear sky has too

    def __post_init__(self) -> None:
        _check_range("mee", self.mee, self.mee_range, (0.1, 20.0), "m²/g")
        _check_range("ssa", self.ssa, self.ssa_range, (0.5, 0.99), "")
        limits = {"growth": (0.5, 5.0), "angstrom": (0.0, 3.0), "asymmetry": (0.0, 0.95)}
        for name, (low, high) in (limits | {"background": (0.0, 1.0)}).items():
            _check_within(name, getattr(self, name), low, high)


def _check_within(name: str, value: float, low: float, high: float, unit: str = "") -> None:
    if not low <= value <= high:
        raise PlumecastError(f"{name}={value:g} must lie within {low:g} … {high:g} {unit}".rstrip())


def _check_range(
    name: str,
    value: float,
    between: tuple[float, float],
    limits: tuple[float, float],
    unit: str,
) -> None:
    low, high = between
    for end in (value, low, high):
        _check_within(name, end, *limits, unit)
    if not low <= value <= high:
        raise PlumecastError(
            f"{name}={value:g} lies outside its range, {name}_range={low:g},{high:g}; state both"
        )


def optical_depth(
    smoke_between: Smoke, depth: float, mee: float = 4.5, growth: float = 1.0
) -> Smoke:
    """Optical depth of smoke at 550 nm: AOD = mee · growth · c · depth.

    `smoke_between` is the mean concentration c of the column in µg m⁻³ (that between snapshots, not
    the sum over checkpoints), `depth` the height in m that it is the mean over, `mee` the mass
    extinction efficiency in m² g⁻¹.

    >>> round(float(optical_depth(np.array(10.0), 15_000.0)), 3)  # 150 mg m⁻²
    0.675
    """
    check_depth(depth)
    made = smoke_between * (mee * growth * GRAMS_PER_UG * depth)
    if isinstance(made, xr.DataArray):
        made = made.rename("optical_depth").assign_attrs(
            long_name="aerosol optical depth of smoke at 550 nm", units="1"
        )
    return made


def check_depth(depth: float) -> None:
    """Raise unless the depth of a column is between 100 m and 100 km."""
    if not 100.0 <= depth <= 100_000.0:
        raise PlumecastError(
            f"column_depth={depth:g} must be in m, 100 … 100000: the height that the concentration "
            "is a mean over"
        )


def column_depth(smoke: xr.DataArray, stated: float | None = None) -> float:
    """The depth of the column in m: the stated one, or that which the smoke records."""
    found = recorded_depth(smoke.attrs) if stated is None else stated
    if found is None:
        raise PlumecastError(
            f"'{smoke.name}' does not record the depth of its column; state it in m with "
            "column_depth=… (15000 for simulated fires; WRF: the height of the model top above "
            "ground)"
        )
    check_depth(found)
    return float(found)


def sample_optics(optics: Optics, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Seeded Latin hypercube sample of `count` pairs (mee, ssa) from their ranges.

    The logarithm of the efficiency and the albedo are uniform.
    """
    if count < 2:
        raise PlumecastError(f"optics_samples={count} must be at least 2; 64 is usual")
    unit = qmc.LatinHypercube(2, rng=np.random.default_rng(seed)).random(count)
    low, high = np.log(optics.mee_range)
    mee = np.exp(low + (high - low) * unit[:, 0])
    ssa = optics.ssa_range[0] + (optics.ssa_range[1] - optics.ssa_range[0]) * unit[:, 1]
    return mee, ssa
