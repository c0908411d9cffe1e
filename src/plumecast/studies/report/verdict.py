"""The verdict of a run: is a surrogate useful on this data, compared with the simple baselines?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumecast.studies.context import is_baseline

USEFUL, PARTLY, NOT_USEFUL, UNKNOWN = "useful", "partly useful", "not useful", "no verdict"
SIMPLE = ("mean-field", "nearest-fire")
"""A surrogate is useful only if it is better than both of these."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the best surrogate of a run is useful, and the numbers that show it."""

    state: str
    text: str
    method: str | None = None  # the best surrogate


def judge(rows: Mapping[str, Mapping[str, Any]]) -> Verdict:
    """Compare the surrogate with the highest deployable IoU with the simple baselines.

    `rows` are those of the summary by method. Useful: higher deployable IoU and smaller relative
    error than both baselines. Partly useful: only the IoU is higher.
    """
    known = {name: row for name, row in rows.items() if np.isfinite(row["deployable_iou"])}
    surrogates = {name: row for name, row in known.items() if not is_baseline(name)}
    baselines = {name: known[name] for name in SIMPLE if name in known}
    if not surrogates or not baselines:
        return Verdict(UNKNOWN, "Study summary has no results that could be compared.")
    name, best = max(surrogates.items(), key=lambda item: item[1]["deployable_iou"])
    finds = all(best["deployable_iou"] > row["deployable_iou"] for row in baselines.values())
    amounts = all(best["median_error"] < row["median_error"] for row in baselines.values())
    against = " and ".join(
        f"{row['deployable_iou']:.2f} and {row['median_error']:.2f} ({row['title'].lower()})"
        for row in baselines.values()
    )
    numbers = (
        f"The best surrogate is {best['title']}: its median deployable IoU is "
        f"{best['deployable_iou']:.2f} and its median relative error {best['median_error']:.2f}, "
        f"against {against}."
    )
    return Verdict(*_in_words(finds=finds, amounts=amounts, numbers=numbers), method=name)


def _in_words(*, finds: bool, amounts: bool, numbers: str) -> tuple[str, str]:
    if finds and amounts:
        return USEFUL, f"{numbers} It is better than both simple baselines in place and amount."
    if finds:
        return PARTLY, (
            f"{numbers} It finds the place of the smoke better than both simple baselines, but not "
            "the amount: use its footprints, not its concentrations."
        )
    return NOT_USEFUL, (
        f"{numbers} It does not find the smoke better than both simple baselines: do not use it. "
        "Train on more fires, or try other operators with plumecast tune."
    )
