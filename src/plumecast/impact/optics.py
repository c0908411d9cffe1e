"""Smoke as an aerosol, and the sky under it: column concentration → optical depth → irradiance.

Every model of the clear sky gives the beam (direct normal) and the diffuse irradiance on the
horizontal, in W m⁻², from the zenith angle of the sun and the optical depth at 550 nm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.stats import qmc

from plumecast.base.checkpoints import recorded_depth
from plumecast.base.errors import ArgumentError, PlumecastError, require
from plumecast.base.values import setting

GRAMS_PER_UG = 1e-6
KNOWN_DEPTH = 3.0
"""Optical depth up to which the radiation models have been compared with measurements."""

LARGEST_ZENITH = 88.0
"""Zenith angle in degrees beyond which the sun counts as set."""

_ZENITHS = np.concatenate([np.arange(0.0, 70.0, 5.0), np.arange(70.0, LARGEST_ZENITH + 1.0, 1.5)])
_SSA_VARIATION = 0.095  # spectrl2's decrease of the albedo with the wavelength

Smoke = TypeVar("Smoke", np.ndarray, xr.DataArray)


@dataclass(frozen=True, slots=True, kw_only=True)
class Optics:
    """Optical properties of smoke at 550 nm, and the ranges of those that are least known.

    The ranges are those of wildfire smoke: medians of the mass extinction efficiency of 27 events
    in Oregon, and single-scattering albedos.
    """

    mee: float = setting(4.5, "Mass extinction efficiency of dry smoke, m²/g.")
    mee_range: tuple[float, float] = setting(
        (3.3, 7.4), "Range of this efficiency, for the interval."
    )
    growth: float = setting(1.0, "Ratio of the extinction in humid air to that in dry air.")
    ssa: float = setting(0.93, "Single-scattering albedo of smoke at 550 nm.")
    ssa_range: tuple[float, float] = setting(
        (0.88, 0.97), "Range of this albedo, for the interval."
    )
    angstrom: float = 1.14  # Ångström exponent: AOD ~ wavelength^(−angstrom)
    asymmetry: float = 0.65  # mean cosine of the scattering angle
    background: float = 0.05  # AOD without smoke, which the clear sky has too

    def __post_init__(self) -> None:
        _check_range("mee", self.mee, self.mee_range, (0.1, 20.0), "m²/g")
        _check_range("ssa", self.ssa, self.ssa_range, (0.5, 0.99))
        limits = {"growth": (0.5, 5.0), "angstrom": (0.0, 3.0), "asymmetry": (0.0, 0.95)}
        for name, ends in (limits | {"background": (0.0, 1.0)}).items():
            value = getattr(self, name)
            _check_range(name, value, (value, value), ends)


def _check_range(
    name: str,
    value: float,
    between: tuple[float, float],
    limits: tuple[float, float],
    unit: str = "",
) -> None:
    if len(between) != 2 or between[0] > between[1]:
        advice = "give two numbers, the lower one first"
        raise ArgumentError(f"{name}_range", between, advice, problem="is not a range")
    low, high = between
    for end in (value, low, high):
        if not limits[0] <= end <= limits[1]:
            within = f"{limits[0]:g} … {limits[1]:g} {unit}".rstrip()
            raise PlumecastError(f"{name}={end:g} must lie within {within}")
    if not low <= value <= high:
        raise ArgumentError(
            name, value, "state both", problem=f"lies outside its range, {low:g},{high:g}"
        )


def optical_depth(
    smoke_between: Smoke, depth: float, mee: float = 4.5, growth: float = 1.0
) -> Smoke:
    """Optical depth of smoke at 550 nm: AOD = mee · growth · c · depth.

    Parameters
    ----------
    smoke_between
        Mean concentration c of the column in µg m⁻³: that between snapshots, not the sum over
        checkpoints.
    depth
        Height in m that it is the mean over.
    mee
        Mass extinction efficiency of dry smoke in m² g⁻¹.
    growth
        Factor of the hygroscopic growth.

    Examples
    --------
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
        raise ArgumentError(
            "column_depth",
            depth,
            problem="must be in m, 100 … 100000: the height that the concentration is a mean over",
        )


def column_depth(smoke: xr.DataArray, stated: float | None = None) -> float:
    """The depth of the column in m: the stated one, or that which the smoke records."""
    depth = recorded_depth(smoke.attrs) if stated is None else stated
    if depth is None:
        raise ArgumentError(
            "column_depth",
            None,
            f"'{smoke.name}' does not record the depth of its column; state it in m (15000 for "
            "simulated fires; WRF: the height of the model top above ground)",
        )
    check_depth(depth)
    return float(depth)


def sample_optics(optics: Optics, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Seeded Latin hypercube sample of `count` pairs (mee, ssa) from their ranges.

    The logarithm of the efficiency and the albedo are uniform.
    """
    if count < 2:
        raise ArgumentError("optics_samples", count, "64 is usual", problem="must be at least 2")
    unit = qmc.LatinHypercube(2, rng=np.random.default_rng(seed)).random(count)
    low, high = np.log(optics.mee_range)
    mee = np.exp(low + (high - low) * unit[:, 0])
    ssa = optics.ssa_range[0] + (optics.ssa_range[1] - optics.ssa_range[0]) * unit[:, 1]
    return mee, ssa


@dataclass(frozen=True, slots=True)
class Air:
    """The air apart from the smoke, the ground, and the day of the year."""

    day: int = 200
    pressure: float = 101_325.0  # Pa
    water: float = 1.5  # precipitable, cm
    ozone: float = 0.3  # atm-cm
    albedo: float = 0.2  # of the ground


Irradiance = tuple[np.ndarray, np.ndarray]
Model = Callable[[np.ndarray, np.ndarray, np.ndarray, Optics, Air], Irradiance]


def at_wavelength(aod550: np.ndarray, optics: Optics, nanometres: float) -> np.ndarray:
    """Optical depth at another wavelength: AOD(λ) = AOD(550) (λ / 550)^(−angstrom)."""
    return np.asarray(aod550 * (nanometres / 550.0) ** -optics.angstrom)


def _pvlib(module: str) -> Any:
    return require(f"pvlib.{module}", "power", "solar power")


def spectrl2(
    zenith: np.ndarray, aod: np.ndarray, ssa: np.ndarray, optics: Optics, air: Air
) -> Irradiance:
    """Bird and Riordan's spectral model, summed over 300–4000 nm; arguments (N,)."""
    spectrum, atmosphere = _pvlib("spectrum"), _pvlib("atmosphere")
    at_400 = ssa * np.exp(_SSA_VARIATION * np.log(550.0 / 400.0) ** 2)
    spectra = spectrum.spectrl2(
        zenith, zenith, 0.0, air.albedo, air.pressure,
        atmosphere.get_relative_airmass(zenith),
        air.water, air.ozone, at_wavelength(aod, optics, 500.0), dayofyear=air.day,
        scattering_albedo_400nm=np.minimum(at_400, 1.0), alpha=optics.angstrom,
        wavelength_variation_factor=_SSA_VARIATION, aerosol_asymmetry_factor=optics.asymmetry,
    )  # fmt: skip
    beam, diffuse = (
        np.trapezoid(spectra[name], spectra["wavelength"], axis=0) for name in ("dni", "dhi")
    )
    return beam, diffuse


def _extra(air: Air) -> float:
    return float(_pvlib("irradiance").get_extra_radiation(air.day))


def bird(
    zenith: np.ndarray, aod: np.ndarray, ssa: np.ndarray, optics: Optics, air: Air
) -> Irradiance:
    """Bird and Hulstrom's broadband model; its aerosol absorbs a fixed share: no `ssa`."""
    sky = _pvlib("clearsky").bird(
        zenith,
        _pvlib("atmosphere").get_relative_airmass(zenith),
        at_wavelength(aod, optics, 380.0),
        at_wavelength(aod, optics, 500.0),
        air.water,
        ozone=air.ozone,
        pressure=air.pressure,
        dni_extra=_extra(air),
        albedo=air.albedo,
    )
    return np.asarray(sky["dni"]), np.asarray(sky["dhi"])


def simplified_solis(
    zenith: np.ndarray, aod: np.ndarray, ssa: np.ndarray, optics: Optics, air: Air
) -> Irradiance:
    """Ineichen's broadband model, for optical depths up to 0.45 at 700 nm; `ssa` has no effect."""
    sky = _pvlib("clearsky").simplified_solis(
        90.0 - zenith,
        aod700=at_wavelength(aod, optics, 700.0),
        precipitable_water=air.water,
        pressure=air.pressure,
        dni_extra=_extra(air),
    )
    return np.asarray(sky["dni"]), np.asarray(sky["dhi"])


SKIES: dict[str, tuple[Model, float]] = {
    "spectrl2": (spectrl2, np.inf),
    "bird": (bird, np.inf),
    "simplified_solis": (simplified_solis, 0.45),
}
"""Models by name, with the largest optical depth at 700 nm that each is derived for."""

REFERENCE = "spectrl2"
"""The model of the results; the others are compared with it."""


def largest_aod(name: str, optics: Optics) -> float:
    """The largest optical depth at 550 nm that a model is used for."""
    return float(SKIES[name][1] * (700.0 / 550.0) ** optics.angstrom)


@dataclass(frozen=True, slots=True)
class SkyTable:
    """Beam and diffuse irradiance at nodes of zenith, optical depth and albedo.

    Between zenith angles they are interpolated by cubic splines, and linearly between the lowest
    and the highest pressure of the plants: at most 0.2 W m⁻² from the model on the horizontal.
    """

    aods: np.ndarray  # (A,) total optical depth at 550 nm
    ssas: np.ndarray  # (S,)
    pressures: np.ndarray  # (Q,) Pa, increasing
    extra: float  # W m⁻², beam above the atmosphere
    _splines: tuple[CubicSpline, CubicSpline] = field(repr=False)  # of (zenith, Q, A, S)

    def at(self, zenith: np.ndarray, pressure: np.ndarray) -> Irradiance:
        """Beam and diffuse irradiance (N, A, S) at N zenith angles and pressures."""
        rows, low, high = np.arange(zenith.size), self.pressures[0], self.pressures[-1]
        share = np.clip((pressure - low) / (high - low if high > low else 1.0), 0.0, 1.0)
        weight = share[:, np.newaxis, np.newaxis]
        made = []
        for spline in self._splines:
            values = spline(zenith)
            mixed = (1.0 - weight) * values[rows, 0] + weight * values[rows, -1]
            made.append(np.maximum(mixed, 0.0))
        return made[0], made[1]


def tabulate(
    name: str, aods: np.ndarray, ssas: np.ndarray, pressures: np.ndarray, optics: Optics, air: Air
) -> SkyTable:
    """Evaluate a model of `SKIES` at the nodes; `pressures` are those of the plants."""
    model = SKIES[name][0]
    ends = np.unique([pressures.min(), pressures.max()])
    zenith, aod, ssa = (axis.ravel() for axis in np.meshgrid(_ZENITHS, aods, ssas, indexing="ij"))
    shape = (_ZENITHS.size, aods.size, ssas.size)
    parts = []
    for pressure in ends:
        here = replace(air, pressure=float(pressure))
        parts.append([item.reshape(shape) for item in model(zenith, aod, ssa, optics, here)])
    beam, diffuse = (np.stack([part[i] for part in parts], axis=1) for i in (0, 1))
    splines = (CubicSpline(_ZENITHS, beam), CubicSpline(_ZENITHS, diffuse))
    return SkyTable(aods, ssas, ends, _extra(air), splines)
