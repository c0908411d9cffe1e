"""What `tune` may try: named sets of choices of `fit_surrogate`, cheapest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plumecast.encode import Basis, Truncation, rank_for_std
from plumecast.errors import PlumecastError
from plumecast.features import monomial_count
from plumecast.kernels import check_kernel

STD_FRACTIONS = (0.5, 0.7, 0.8, 0.9, 0.95)
"""Shares of Σσ tried for the input basis; at degree ≥ 2 ranks beyond MAX_RANK are left out."""

MAX_RANK = {1: 2000, 2: 400, 3: 200, 4: 100}
"""Largest input rank tried at each degree: beyond it the products of codes are noise."""

KERNELS = ("matern-5/2", "polynomial-1 + matern-5/2", "squared-exponential")
"""Kernels tried, at every second of the shares: a distance hardly changes with the last modes."""

SPECTRAL = ({"layers": 1}, {"layers": 2}, {"layers": 3}, {"layers": 3, "age_bins": 5})
"""Changes of the preset "recommended" that are tried."""

FAMILIES = ("coded", "spectral")

_OF_THE_MAP = {
    *("degree", "kernel", "fire_rank"),
    *("smoke_rank", "smoke_std_fraction", "smoke_variance_fraction"),
}

KERNEL_COST, SPECTRAL_COST = 8.0, 40.0
"""Times of a fit, relative to a polynomial's: of a kernel, and of a spectral layer. Rough, and only
for the order in which candidates are tried."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A candidate that has not been tried: the keywords of `fit_surrogate` and a name for them."""

    name: str
    family: str
    choices: dict[str, Any]
    cost: float  # relative

    @property
    def shares_codes(self) -> bool:
        """Whether it differs from other coded candidates in the map between the codes alone."""
        return self.family == "coded" and set(self.choices) <= _OF_THE_MAP


def coded_plans(
    basis: Basis,
    snapshots: int,
    *,
    degrees: Sequence[int],
    kernels: Sequence[str],
    std_fractions: Sequence[float],
    smoke: Truncation,
) -> list[Plan]:
    """Polynomials and kernels between codes, at the input ranks of the shares of Σσ."""
    if not std_fractions or not (degrees or kernels):
        raise PlumecastError(
            "give at least one of std_fractions to try, and one of degrees or kernels"
        )
    output = {
        f"smoke_{rule}": getattr(smoke, rule)
        for rule in ("rank", "std_fraction", "variance_fraction")
        if getattr(smoke, rule) is not None
    }
    ranks = sorted({rank_for_std(basis.spectrum, fraction) for fraction in std_fractions})
    plans = []
    for degree in degrees:
        if degree not in MAX_RANK:
            raise PlumecastError(f"degree={degree} is not one of 1…{max(MAX_RANK)}")
        for rank in sorted({min(r, MAX_RANK[degree]) for r in ranks}):
            choices = {"degree": degree, "fire_rank": rank, **output}
            size = min(monomial_count(rank, degree) / snapshots, 1.0)
            plans.append(Plan(f"degree {degree}, rank {rank}", "coded", choices, size))
    for kernel in kernels:
        check_kernel(kernel, None)
        for rank in ranks[::-2]:
            choices = {"kernel": kernel, "fire_rank": rank, **output}
            plans.append(Plan(f"{kernel}, rank {rank}", "coded", choices, KERNEL_COST))
    return plans


def spectral_plans() -> list[Plan]:
    """The recommended preset with fewer layers or other age bins."""
    plans = []
    for changes in SPECTRAL:
        parts = [f"{value} {name.replace('_', ' ')}" for name, value in changes.items()]
        plans.append(
            Plan(
                f"spectral, {', '.join(parts)}".replace("1 layers", "1 layer"),
                "spectral",
                {"preset": "recommended", **changes},
                SPECTRAL_COST * changes["layers"],
            )
        )
    return plans


def given_plans(given: Mapping[str, Mapping[str, Any]]) -> list[Plan]:
    """A caller's own candidates by name, tried before all others."""
    return [Plan(name, "given", dict(choices), 0.0) for name, choices in given.items()]


def check_families(families: Sequence[str]) -> None:
    """Refuse a family that is not known."""
    unknown = [name for name in families if name not in FAMILIES]
    if unknown:
        raise PlumecastError(f"family '{unknown[0]}' is unknown; choose from {', '.join(FAMILIES)}")
