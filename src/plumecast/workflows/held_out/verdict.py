"""Say in words whether a surrogate beats the mean field and the nearest fire."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plumecast.workflows.held_out.evaluation import Score

TRIVIAL = {"mean-field": "the mean field", "nearest-fire": "the nearest fire"}
"""Baselines that any useful surrogate beats."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sentence about a surrogate, and whether it beats every trivial baseline."""

    beats: bool
    text: str


def judge(scores: Sequence[Score]) -> Verdict | None:
    """Compare the first score with those of the trivial baselines; None if there are none.

    A surrogate beats a baseline if its median deployable IoU is higher and its median relative
    error is lower.
    """
    own, *others = scores
    known = [other for other in others if other.name in TRIVIAL]
    if not known:
        return None
    lost = {TRIVIAL[other.name]: found for other in known if (found := _lost(own, other))}
    if lost:
        each = " or ".join(f"{name} in {' and '.join(found)}" for name, found in lost.items())
        advice = "do not rely on it; add fires or try another preset"
        return Verdict(False, f"'{own.name}' does not beat {each}: {advice}")
    names = " and ".join(TRIVIAL[other.name] for other in known)
    iou = " and ".join(f"{other.deployable_iou:.2f}" for other in known)
    error = " and ".join(f"{other.snapshot_error:.2f}" for other in known)
    return Verdict(
        True,
        f"'{own.name}' beats {names}: deployable IoU {own.deployable_iou:.2f} against {iou}, "
        f"error {own.snapshot_error:.2f} against {error}",
    )


def _lost(own: Score, other: Score) -> list[str]:
    """The scores in which a surrogate is not better than a baseline."""
    pairs = (
        ("deployable IoU", own.deployable_iou, other.deployable_iou, 1.0),
        ("error", own.snapshot_error, other.snapshot_error, -1.0),
    )
    return [
        f"{what} ({mine:.2f} against {its:.2f})"
        for what, mine, its, sign in pairs
        if not math.isnan(its) and not sign * mine > sign * its
    ]
