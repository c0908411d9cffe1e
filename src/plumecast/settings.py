"""The choices that make a surrogate, and the named sets of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plumecast.encode import Truncation
from plumecast.errors import PlumecastError
from plumecast.features import check_degree

PAPER_TRUNCATION = Truncation(std_fraction=0.95)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every choice of a coded polynomial surrogate."""

    degree: int = 1
    penalty: float | None = None  # None: chosen by leave-one-fire-out; 0: plain least squares
    fire: Truncation = PAPER_TRUNCATION
    smoke: Truncation = PAPER_TRUNCATION
    center: bool = False
    preset: str | None = None

    def __post_init__(self) -> None:
        check_degree(self.degree)
        if self.penalty is not None and not self.penalty >= 0.0:
            raise PlumecastError(f"penalty={self.penalty} must be ≥ 0")


PRESETS = {
    "paper-linear": Settings(degree=1, penalty=0.0, preset="paper-linear"),
    "paper-quadratic": Settings(
        degree=2, fire=Truncation(std_fraction=0.95, max_rank=200), preset="paper-quadratic"
    ),
}
"""The paper's two operators: all choices as printed there, the quadratic's penalty tuned.

The paper cuts the quadratic's 686 input modes of 95 % std to 200, because features grow with their
square; data with fewer modes keeps them all.
"""


def choose_settings(
    preset: str | None,
    *,
    degree: int | None = None,
    penalty: float | None = None,
    center: bool | None = None,
    fire: dict[str, float | int | None] | None = None,
    smoke: dict[str, float | int | None] | None = None,
) -> Settings:
    """A preset (or the defaults) with single choices replaced."""
    if preset is not None and preset not in PRESETS:
        raise PlumecastError(f"preset '{preset}' is unknown; choose from {', '.join(PRESETS)}")
    settings = Settings() if preset is None else PRESETS[preset]
    simple = {"degree": degree, "penalty": penalty, "center": center}
    changes: dict[str, object] = {k: v for k, v in simple.items() if v is not None}
    for side, choice in (("fire", fire), ("smoke", smoke)):
        given = {k: v for k, v in (choice or {}).items() if v is not None}
        if given:
            changes[side] = Truncation(**given)  # type: ignore[arg-type]
    return replace(settings, **changes)  # type: ignore[arg-type]
