"""The choices that make a surrogate, and the named sets of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plumecast.encode import Truncation
from plumecast.errors import PlumecastError
from plumecast.features import check_degree
from plumecast.kernels import POLYNOMIAL, check_kernel

PAPER_TRUNCATION = Truncation(std_fraction=0.95)


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
    family: str = "coded"  # or "spectral", with the two choices below and none of the above
    layers: int = 3
    age_bins: int = 3

    def __post_init__(self) -> None:
        check_degree(self.degree)
        check_kernel(self.kernel, self.length_scale)
        if self.layers < 1 or self.age_bins < 1:
            raise PlumecastError(
                f"layers={self.layers} and age_bins={self.age_bins} must be at least 1"
            )
        if self.penalty is not None and not self.penalty >= 0.0:
            raise PlumecastError(f"penalty={self.penalty} must be ≥ 0")


PRESETS = {
    "paper-linear": Settings(degree=1, penalty=0.0, preset="paper-linear"),
    "paper-quadratic": Settings(
        degree=2, fire=Truncation(std_fraction=0.95, max_rank=200), preset="paper-quadratic"
    ),
    "recommended": Settings(family="spectral", preset="recommended"),
}
"""The paper's two operators, and the equivariant one that docs/accuracy.md recommends. Of the
paper's: all choices as printed there, the quadratic's penalty tuned.

The paper cuts the quadratic's 686 input modes of 95 % std to 200, because features grow with their
square; data with fewer modes keeps them all.
"""


def choose_settings(
    preset: str | None,
    *,
    degree: int | None = None,
    penalty: float | None = None,
    center: bool | None = None,
    kernel: str | None = None,
    length_scale: float | None = None,
    fire: dict[str, float | int | None] | None = None,
    smoke: dict[str, float | int | None] | None = None,
    layers: int | None = None,
    age_bins: int | None = None,
) -> Settings:
    """A preset (or the defaults) with single choices replaced."""
    if preset is not None and preset not in PRESETS:
        raise PlumecastError(f"preset '{preset}' is unknown; choose from {', '.join(PRESETS)}")
    settings = Settings() if preset is None else PRESETS[preset]
    simple = {
        "degree": degree,
        "penalty": penalty,
        "center": center,
        "kernel": kernel,
        "length_scale": length_scale,
    }
    changes: dict[str, object] = {k: v for k, v in simple.items() if v is not None}
    if degree is not None and (kernel or settings.kernel) != POLYNOMIAL:
        raise PlumecastError(
            f"degree={degree} belongs to kernel '{POLYNOMIAL}'; write it into the sum, as in "
            f"'polynomial-{degree} + matern-5/2'"
        )
    other = {"degree", "kernel"} & {k for k, v in changes.items() if v != getattr(settings, k)}
    if other and penalty is None:
        changes["penalty"] = None  # another degree or kernel needs another penalty: have it chosen
    for side, choice in (("fire", fire), ("smoke", smoke)):
        given = {k: v for k, v in (choice or {}).items() if v is not None}
        if given:
            limit = None if "rank" in given else getattr(settings, side).max_rank
            changes[side] = Truncation(**given, max_rank=limit)  # type: ignore[arg-type]
    spectral = {"layers": layers, "age_bins": age_bins}
    own = {name: value for name, value in spectral.items() if value is not None}
    misplaced = sorted(changes if settings.family == "spectral" else own)
    if misplaced:
        raise PlumecastError(
            f"'{misplaced[0]}' is no choice of a {settings.family} surrogate; leave it out or "
            "choose another preset"
        )
    changes |= own
    if changes and preset is not None:
        changes["preset"] = f"{preset}, changed"
    return replace(settings, **changes)  # type: ignore[arg-type]
