"""The choices that make a surrogate, and the named sets of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from plumecast.base.errors import PlumecastError
from plumecast.operators.coded.kernels import POLYNOMIAL, check_kernel
from plumecast.operators.coded.monomials import check_degree
from plumecast.operators.fields.lift import check_lift
from plumecast.operators.fields.targets import check_targets
from plumecast.operators.pca import Truncation

PAPER_TRUNCATION = Truncation(std_fraction=0.95)


FAMILIES = {
    "coded": "PCA of both sides, a polynomial or another kernel between the codes",
    "spectral": "convolutions by least squares per frequency, in layers",
    "unet": "a U-Net, trained with PyTorch",
    "fno": "a Fourier neural operator, trained with PyTorch",
}

FRAMES = {
    "map": "fields as they lie",
    "wind": "fields turned so that the wind of each snapshot blows the same way",
    "wind-stretch": "also stretched, so that it blows equally strongly",
    "auto": "turned where fires have winds of their own and left-out fires say that it helps",
}

CODED_CHOICES = ("degree", "penalty", "center", "kernel", "length_scale", "fire", "smoke")
"""Choices of the coded family alone."""

OTHER_CHOICES = {"layers": ("spectral",), "correction": ("spectral",), "epochs": ("unet", "fno")}
"""Choices of other families alone."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Every choice of a surrogate: its family, and that family's own."""

    degree: int = 1
    penalty: float | None = None  # None: chosen by leave-one-fire-out; 0: plain least squares
    fire: Truncation = PAPER_TRUNCATION
    smoke: Truncation = PAPER_TRUNCATION
    center: bool = False
    kernel: str = POLYNOMIAL  # of that degree; or one of `kernels`, or a sum of them
    length_scale: float | None = None  # None: chosen by leave-one-fire-out with the penalty
    preset: str | None = None
    family: str = "coded"
    lift: tuple[str, ...] = ()  # parts; without any, the coded family takes the input as it is
    products: tuple[str, ...] = ()  # scalars of the fire that multiply the parts
    age_bins: int = 3
    targets: tuple[str, ...] = ("smoke",)
    covariates: tuple[str, ...] = ()
    frame: str = "map"
    layers: int = 3  # of the spectral family
    correction: bool = False  # of the spectral family, by the training fires most alike
    epochs: int = 60  # of a network

    def __post_init__(self) -> None:
        check_degree(self.degree)
        check_kernel(self.kernel, self.length_scale)
        if self.family not in FAMILIES:
            raise PlumecastError(
                f"family '{self.family}' is unknown; choose from {', '.join(FAMILIES)}"
            )
        if self.frame not in FRAMES:
            raise PlumecastError(
                f"frame '{self.frame}' is unknown; choose from {', '.join(FRAMES)}"
            )
        if self.lift or self.products or self.family != "coded":
            check_lift(self.lift, self.products)
        check_targets(self.targets)
        for name in ("layers", "age_bins", "epochs"):
            if getattr(self, name) < 1:
                raise PlumecastError(f"{name}={getattr(self, name)} must be at least 1")
        if self.penalty is not None and not self.penalty >= 0.0:
            raise PlumecastError(f"penalty={self.penalty} must be ≥ 0")


PRESETS = {
    "paper-linear": Settings(degree=1, penalty=0.0, preset="paper-linear"),
    "paper-quadratic": Settings(
        degree=2, fire=Truncation(std_fraction=0.95, max_rank=200), preset="paper-quadratic"
    ),
    "quick": Settings(
        family="spectral",
        lift=("age-bins", "burned"),
        products=("hours",),
        targets=("log",),
        frame="auto",
        layers=2,
        preset="quick",
    ),
    "recommended": Settings(
        family="spectral",
        lift=("age-bins", "burned"),
        products=("hours",),
        targets=("log", "smoke", "footprint"),
        frame="auto",
        preset="recommended",
    ),
    "thorough": Settings(
        family="spectral",
        lift=("age-bins", "burned", "position"),
        products=("hours", "hours-squared", "day"),
        age_bins=5,
        targets=("log", "smoke", "footprint"),
        frame="auto",
        correction=True,
        preset="thorough",
    ),
}
"""The paper's two operators; the equivariant one that docs/accuracy.md recommends, a quick version
of it with two layers to ln(1 + g) alone, and one with more channels and a correction, where there
are many fires and more time. Of the paper's: all choices as printed there, the quadratic's penalty
tuned.

The paper cuts the quadratic's 686 input modes of 95 % std to 200, because features grow with their
square; data with fewer modes keeps them all.
"""


def choose_settings(preset: str | None = None, **given: Any) -> Settings:
    """A preset (or a family's defaults) with single choices replaced.

    `given` are fields of Settings, those that are None left as they are; `fire` and `smoke` are
    dictionaries of one rule of a truncation.
    """
    choices = {name: value for name, value in given.items() if value is not None}
    if preset is not None and preset not in PRESETS:
        raise PlumecastError(f"preset '{preset}' is unknown; choose from {', '.join(PRESETS)}")
    family = choices.pop("family", None)
    settings = Settings() if preset is None else PRESETS[preset]
    if family is not None and family != settings.family:
        if preset not in (None, "recommended"):
            raise PlumecastError(f"preset '{preset}' is of family '{settings.family}'")
        # Other families share the lift, the targets and the frame of the recommended one.
        plain = family == "coded" or family not in FAMILIES
        settings = (
            Settings(family=family)
            if plain
            else replace(PRESETS["recommended"], family=family, preset=None, frame="map")
        )
    changes: dict[str, Any] = {}
    for name, value in choices.items():
        if name in ("fire", "smoke"):
            rule = {k: v for k, v in value.items() if v is not None}
            if rule:
                limit = None if "rank" in rule else getattr(settings, name).max_rank
                changes[name] = Truncation(**rule, max_rank=limit)
        elif name in ("lift", "products", "targets", "covariates"):
            changes[name] = (value,) if isinstance(value, str) else tuple(value)
        else:
            changes[name] = value
    _refuse_misplaced(settings, changes)
    other = {"degree", "kernel"} & {k for k, v in changes.items() if v != getattr(settings, k)}
    if other and "penalty" not in changes:
        changes["penalty"] = None  # another degree or kernel needs another penalty: have it chosen
    if changes and preset is not None:
        changes["preset"] = f"{preset}, changed"
    return replace(settings, **changes)


def _refuse_misplaced(settings: Settings, changes: dict[str, Any]) -> None:
    kernel = changes.get("kernel", settings.kernel)
    if "degree" in changes and kernel != POLYNOMIAL:
        degree = changes["degree"]
        raise PlumecastError(
            f"degree={degree} belongs to kernel '{POLYNOMIAL}'; write it into the sum, as in "
            f"'polynomial-{degree} + matern-5/2'"
        )
    lifted = settings.lift or changes.get("lift")
    misplaced = [
        name
        for name in sorted(changes)
        if (name in CODED_CHOICES and settings.family != "coded")
        or settings.family not in OTHER_CHOICES.get(name, (settings.family,))
        or (name in ("age_bins", "products") and not lifted)
    ]
    if misplaced:
        raise PlumecastError(
            f"'{misplaced[0]}' is no choice of a {settings.family} surrogate"
            + (" without a lift" if misplaced[0] in ("age_bins", "products") else "")
            + "; leave it out or choose another preset"
        )
