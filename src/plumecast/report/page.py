"""Write one self-contained HTML page from a folder of results, with a verdict at its top."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_text
from plumecast.paper.context import rows_of
from plumecast.paper.figures import styled
from plumecast.paper.footprint import typical_map
from plumecast.paper.results import RUN, STUDIES, Finished, read_failures, read_results
from plumecast.report import Picture, embed, embed_figure, new_environment
from plumecast.report.credibility import FOOTPRINTS, Assessment, answer_all
from plumecast.surrogate.baselines import BASELINES
from plumecast.workflows.held_out.record import TRIVIAL

FIRST = "summary"
LARGEST_SVG = 400_000  # bytes; a larger figure is embedded as PNG


@dataclass(frozen=True, slots=True)
class StudiesPage:
    """A page, and why studies are missing from it."""

    path: Path
    stale: list[str]  # of another run
    failed: dict[str, str]  # reason by study


def write_report(folder: Path, out: Path) -> StudiesPage:
    """Write the page of a folder of results."""
    run, finished, stale = read_results(folder)
    shown = {item.study.name for item in finished}
    every = read_failures(folder, run["fingerprint"])
    failed = {name: why for name, why in every.items() if name not in shown}
    stale = [name for name in stale if name not in failed]
    try:
        page = render(run, finished, stale, failed)
    except (jinja2.UndefinedError, KeyError, TypeError, AttributeError) as error:
        # What a run or a study records is always whole, unless somebody edited it.
        raise PlumecastError(
            f"{folder / RUN} or a record of a study in {folder} was changed and is not complete "
            f"({type(error).__name__}: {error}); run the studies again"
        ) from error
    write_text(out, page)
    return StudiesPage(out, stale, failed)


def render(
    run: Mapping[str, Any], finished: list[Finished], stale: list[str], failed: Mapping[str, str]
) -> str:
    """The page as HTML text: verdict and a map, missing studies, then the summary."""
    environment = new_environment()
    environment.filters |= {"score": _score, "seconds": _seconds, "count": lambda n: f"{n:,}"}
    first = sorted(finished, key=lambda item: item.study.name != FIRST)
    summary = next((item for item in first if item.study.name == FIRST), None)
    rows = None if summary is None else rows_of(summary.finding)
    verdict = RunVerdict(UNKNOWN, "The verdict needs study summary, which is not in this report.")
    if rows is not None:
        verdict = judge_run({row["method"]: row for row in rows})
    reasons = dict.fromkeys(STUDIES, "was not run.")
    reasons |= dict.fromkeys(stale, "was left out: it has other data or settings. Run it again.")
    reasons |= {name: f"failed: {why}" for name, why in failed.items()}
    shown = {item.study.name for item in finished}
    answers: dict[str, list[Assessment]] = {}
    for answer in answer_all(run, finished):
        answers.setdefault(answer.group, []).append(answer)
    return environment.get_template("report.html").render(
        run=run,
        verdict=verdict,
        typical=_typical(finished, verdict.method),
        missing=[(STUDIES[name].title, why) for name, why in reasons.items() if name not in shown],
        sections=[
            {
                "study": item.study,
                "record": item.record,
                "remarks": item.study.remarks(item.finding),
                "pictures": [_picture(item, name) for name in item.record.figures],
            }
            for item in first
        ],
        summary=rows,
        facts={} if summary is None else summary.finding.attrs,
        answers=answers,
        total=sum(item.record.seconds for item in finished),
    )


def _typical(finished: list[Finished], method: str | None) -> Picture | None:
    """The median test snapshot of the best surrogate, or of another one that has maps."""
    having = [item for item in finished if item.study.name in FOOTPRINTS]
    if not having:
        return None
    chosen = max(having, key=lambda item: item.finding.attrs["methods"] == method)
    with styled():
        figure, caption = typical_map(chosen.finding)
        source = embed_figure(figure, dpi=200)
    what = "Observed and predicted smoke of a typical test snapshot"
    return Picture(source, caption, alternative=what, narrow=True)


def _picture(item: Finished, name: str) -> Picture:
    vector = item.figure(name, "svg")
    small = name not in item.study.bitmap and vector.stat().st_size <= LARGEST_SVG
    kind, path = ("svg+xml", vector) if small else ("png", item.figure(name, "png"))
    return Picture(
        source=embed(kind, path.read_bytes()),
        caption=item.study.captions[name],
        alternative=f"{item.study.title}: {name}",
        narrow=name in ("extent", "errors"),
    )


def _score(value: float) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.2f}"


def _seconds(value: float) -> str:
    if value is None or math.isnan(value):
        return "–"
    if value >= 100.0:
        return f"{value:,.0f} s"
    if value >= 1.0:
        return f"{value:.1f} s"
    return f"{value:.2f} s" if value >= 0.1 else f"{1e3 * value:.2g} ms"


# -- The verdict: is a surrogate useful on this data, compared with the simple baselines?

USEFUL, PARTLY, NOT_USEFUL, UNKNOWN = "useful", "partly useful", "not useful", "no verdict"


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """Whether the best surrogate of a run is useful, and the numbers that show it."""

    state: str
    text: str
    method: str | None = None  # the best surrogate


def judge_run(rows: Mapping[str, Mapping[str, Any]]) -> RunVerdict:
    """Compare the surrogate with the highest deployable IoU with the simple baselines.

    `rows` are those of the summary by method. Useful: higher deployable IoU and smaller relative
    error than both baselines. Partly useful: only the IoU is higher.
    """
    scored = {name: row for name, row in rows.items() if np.isfinite(row["deployable_iou"])}
    surrogates = {name: row for name, row in scored.items() if name not in BASELINES}
    baselines = [scored[name] for name in TRIVIAL if name in scored]
    if not surrogates or not baselines:
        return RunVerdict(UNKNOWN, "Study summary has no results that could be compared.")
    name, best = max(surrogates.items(), key=lambda item: item[1]["deployable_iou"])
    finds = all(best["deployable_iou"] > row["deployable_iou"] for row in baselines)
    amounts = all(best["median_error"] < row["median_error"] for row in baselines)
    against = " and ".join(
        f"{row['deployable_iou']:.2f} and {row['median_error']:.2f} ({row['title'].lower()})"
        for row in baselines
    )
    numbers = (
        f"The best surrogate is {best['title']}: its median deployable IoU is "
        f"{best['deployable_iou']:.2f} and its median relative error {best['median_error']:.2f}, "
        f"against {against}."
    )
    if finds and amounts:
        state = USEFUL
        words = "It is better than both simple baselines in place and amount."
    elif finds:
        state = PARTLY
        words = (
            "It finds the place of the smoke better than both simple baselines, but not the "
            "amount: use its footprints, not its concentrations."
        )
    else:
        state = NOT_USEFUL
        words = (
            "It does not find the smoke better than both simple baselines: do not use it. Train on "
            "more fires, or try other operators with plumecast tune."
        )
    return RunVerdict(state, f"{numbers} {words}", method=name)
