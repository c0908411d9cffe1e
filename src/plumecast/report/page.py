"""Write one self-contained HTML page from a folder of results, with a verdict at its top."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_text
from plumecast.paper.context import is_baseline, rows_of
from plumecast.paper.figures import styled
from plumecast.paper.footprint import typical_map
from plumecast.paper.results import RUN, Finished, read_failures, read_results
from plumecast.paper.studies import STUDIES
from plumecast.report import Picture, embed, new_environment
from plumecast.report.credibility import FOOTPRINTS, Assessment, answer_all

FIRST = "summary"
LARGEST_SVG = 400_000  # bytes; a larger figure is embedded as PNG


@dataclass(frozen=True, slots=True)
class Section:
    """A study to show."""

    name: str
    title: str
    question: str
    seconds: float
    cpu_seconds: float
    remarks: list[str]
    pictures: list[Picture]


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
    verdict = _verdict(rows)
    return environment.get_template("report.html").render(
        run=run,
        verdict=verdict,
        typical=_typical(finished, verdict.method),
        missing=_missing(finished, stale, failed),
        sections=[_section(item) for item in first],
        summary=rows,
        facts={} if summary is None else summary.finding.attrs,
        answers=_by_group(answer_all(run, finished)),
        total=sum(item.record.seconds for item in finished),
    )


def _verdict(rows: list[dict[str, Any]] | None) -> RunVerdict:
    if rows is None:
        return RunVerdict(UNKNOWN, "The verdict needs study summary, which is not in this report.")
    return judge_run({row["method"]: row for row in rows})


def _typical(finished: list[Finished], method: str | None) -> Picture | None:
    """The median test snapshot of the best surrogate, or of another one that has maps."""
    having = [item for item in finished if item.study.name in FOOTPRINTS]
    if not having:
        return None
    chosen = max(having, key=lambda item: item.finding.attrs["methods"] == method)
    with styled():
        figure, caption = typical_map(chosen.finding)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=200)
    return Picture(
        source=embed("png", content.getvalue()),
        caption=caption,
        alternative="Observed and predicted smoke of a typical test snapshot",
        narrow=True,
    )


def _missing(
    finished: list[Finished], stale: list[str], failed: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Title of every study without results in this run, and the reason."""
    shown = {item.study.name for item in finished}
    reasons = {name: "was not run." for name in STUDIES if name not in shown}
    reasons |= dict.fromkeys(stale, "was left out: it has other data or settings. Run it again.")
    reasons |= {name: f"failed: {why}" for name, why in failed.items()}
    return [(STUDIES[name].title, why) for name, why in reasons.items()]


def _by_group(answers: list[Assessment]) -> dict[str, list[Assessment]]:
    groups: dict[str, list[Assessment]] = {}
    for answer in answers:
        groups.setdefault(answer.group, []).append(answer)
    return groups


def _section(item: Finished) -> Section:
    return Section(
        name=item.study.name,
        title=item.study.title,
        question=item.study.question,
        seconds=item.record.seconds,
        cpu_seconds=item.record.cpu_seconds,
        remarks=item.study.remarks(item.finding),
        pictures=[_picture(item, name) for name in item.record.figures],
    )


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


def _score(value: float, digits: int = 2) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


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
SIMPLE = ("mean-field", "nearest-fire")
"""A surrogate is useful only if it is better than both of these."""


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
    known = {name: row for name, row in rows.items() if np.isfinite(row["deployable_iou"])}
    surrogates = {name: row for name, row in known.items() if not is_baseline(name)}
    baselines = {name: known[name] for name in SIMPLE if name in known}
    if not surrogates or not baselines:
        return RunVerdict(UNKNOWN, "Study summary has no results that could be compared.")
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
    return RunVerdict(*_in_words(finds=finds, amounts=amounts, numbers=numbers), method=name)


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
