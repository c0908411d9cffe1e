"""The candidates of `tune`: named sets of keywords of `fit_surrogate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from plumecast.base.errors import PlumecastError
from plumecast.base.names import WIND
from plumecast.operators.coded.kernels import check_kernel
from plumecast.operators.coded.monomials import monomial_count
from plumecast.operators.families import NETWORKS
from plumecast.operators.fields.parts import field_count, product_count
from plumecast.operators.fields.targets import TARGETS
from plumecast.operators.pca import Basis, Truncation, rank_for_std
from plumecast.operators.settings import Settings, choose_settings
from plumecast.operators.spectral.fit import SpectralSettings

STD_FRACTIONS = (0.5, 0.7, 0.8, 0.9, 0.95)
"""Shares of Σσ tried for the input basis; ranks are limited by MAX_RANK."""

MAX_RANK = {1: 2000, 2: 400, 3: 200, 4: 100}
"""Largest input rank tried at each degree; products of codes beyond it are noise."""

KERNELS = ("matern-5/2", "polynomial-1 + matern-5/2", "squared-exponential")
"""Kernels that are tried, each at every second rank, because distances hardly depend on the last
modes."""

SPECTRAL: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "recommended": {},
        "1 layer": {"layers": 1},
        "2 layers": {"layers": 2},
        "5 age bins": {"age_bins": 5},
        "position": {"lift": ("age-bins", "burned", "position")},
        "saturating": {"lift": ("saturating", "burned")},
        "no product": {"products": ()},
        "hours and area": {"products": ("hours", "area")},
        "corrected": {"correction": True},
        "quick": {"preset": "quick"},
        "thorough": {"preset": "thorough"},
    }
)
"""Changes of the preset "recommended" that are tried on any data, one at a time, and the presets
"quick" and "thorough"."""

LIFT = ("age-bins", "burned")

LIFTED_MAPS: Mapping[str, dict[str, Any]] = MappingProxyType(
    {"linear": {"degree": 1}, "matern-5/2": {"kernel": "polynomial-1 + matern-5/2"}}
)
LIFTED_TARGETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"log": ("log",), "all targets": tuple(TARGETS)}
)
"""Maps and targets of the coded family on lifted fields; all pairs are tried."""

CLOSED_FORM = ("coded", "lifted", "spectral")
"""Groups of candidates other than networks; "lifted" is the coded family on lifted fields."""

_CODE_MAP_KEYWORDS = {
    *("degree", "kernel", "fire_rank"),
    *("smoke_rank", "smoke_std_fraction", "smoke_variance_fraction"),
}

KERNEL_COST, SPECTRAL_COST, CORRECTION_COST, NETWORK_COST = 8.0, 5.0, 80.0, 1e4
"""Rough times of a fit relative to that of a polynomial: of a kernel, of one channel in a spectral
layer with all targets, of a correction, of a network. They only determine the order of trying."""

FRAME_COST = 2.0
"""About how many times more cells the wind frame has than the map."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A candidate before it is tried: the keywords of `fit_surrogate` and a name for them."""

    name: str
    family: str
    choices: dict[str, Any]
    cost: float  # relative

    @property
    def shares_codes(self) -> bool:
        """Whether it differs from other coded candidates only in the map between the codes."""
        return self.family == "coded" and set(self.choices) <= _CODE_MAP_KEYWORDS


def coded_plans(
    basis: Basis,
    snapshots: int,
    *,
    degrees: Sequence[int],
    kernels: Sequence[str],
    std_fractions: Sequence[float],
    smoke: Truncation,
) -> list[Plan]:
    """Polynomials and kernels between codes, at the input ranks that the shares of Σσ give."""
    if not std_fractions or not (degrees or kernels):
        raise PlumecastError(
            "give at least one of std_fractions to try, and one of degrees or kernels"
        )
    output = _output_rule(smoke)
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


def _output_rule(smoke: Truncation) -> dict[str, Any]:
    return {
        f"smoke_{rule}": getattr(smoke, rule)
        for rule in ("rank", "std_fraction", "variance_fraction")
        if getattr(smoke, rule) is not None
    }


def lifted_plans(smoke: Truncation) -> list[Plan]:
    """The coded family on lifted fields, with one target and with all targets."""
    plans = []
    for map_name, of_map in LIFTED_MAPS.items():
        for target_name, targets in LIFTED_TARGETS.items():
            choices = {"lift": LIFT, "targets": targets, **of_map, **_output_rule(smoke)}
            cost = (1.0 if "degree" in of_map else KERNEL_COST) * (1 + len(targets))
            name = f"lifted {map_name}, {target_name}"
            plans.append(Plan(name, "lifted", choices, cost))
    return plans


def spectral_plans(*, winds: bool, covariates: Sequence[str]) -> list[Plan]:
    """The recommended preset and single changes of it.

    If `winds` differ between fires, the wind frames are tried too. The `covariates` in which fires
    differ are tried one at a time, but those of the wind together and on the map.
    """
    changes = dict(SPECTRAL)
    if winds:
        changes |= {f"{frame} frame": {"frame": frame} for frame in ("wind", "wind-stretch")}
    wind = tuple(name for name in covariates if name in WIND)
    if wind:
        changes["wind as covariate"] = {"covariates": wind, "frame": "map"}
    others = [name for name in covariates if name not in wind]
    changes |= {f"{name} as covariate": {"covariates": (name,)} for name in others}
    return [
        Plan(
            f"spectral, {name}",
            "spectral",
            {"preset": "recommended", **change},
            _spectral_cost(choose_settings(**{"preset": "recommended", **change})),
        )
        for name, change in changes.items()
    ]


def _spectral_cost(settings: Settings) -> float:
    scalars = 1 + product_count(settings.products) + len(settings.covariates)
    channels = field_count(settings.lift, settings.age_bins) * scalars
    framed = FRAME_COST if settings.frame.startswith("wind") else 1.0
    own = settings.own
    assert isinstance(own, SpectralSettings)
    corrected = CORRECTION_COST if own.correction else 0.0
    share = len(settings.targets) / len(TARGETS)
    return SPECTRAL_COST * own.layers * channels * framed * share + corrected


def neural_plans(networks: Sequence[str]) -> list[Plan]:
    """Networks with the lift and the targets of the recommended preset."""
    return [Plan(name, name, {"family": name}, NETWORK_COST) for name in networks]


def given_plans(given: Mapping[str, Mapping[str, Any]]) -> list[Plan]:
    """Candidates of the caller, by name; they are tried before all others."""
    return [Plan(name, "given", dict(choices), 0.0) for name, choices in given.items()]


def turn(plan: Plan) -> tuple[bool, float]:
    """Sort key of the order of trying: candidates of the caller, `recommended`, then by cost.

    No budget thus leaves out the candidate that is most likely to be the best.
    """
    later = plan.cost > 0.0 and plan.choices != {"preset": "recommended"}
    return later, plan.cost


def check_families(families: Sequence[str]) -> None:
    """Raise for an unknown family."""
    known = (*CLOSED_FORM, *NETWORKS)
    unknown = [name for name in families if name not in known]
    if unknown:
        raise PlumecastError(f"family '{unknown[0]}' is unknown; choose from {', '.join(known)}")
