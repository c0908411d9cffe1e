"""Write one self-contained HTML page from a folder of results."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_text
from plumecast.studies.cases.footprint import typical_map
from plumecast.studies.figures.style import styled
from plumecast.studies.registry import STUDIES
from plumecast.studies.report.credibility import FOOTPRINTS, Answer, answer_all
from plumecast.studies.report.html import Picture, embed, new_environment
from plumecast.studies.report.verdict import UNKNOWN, Verdict, judge
from plumecast.studies.results import RUN, Finished, read_failures, read_results
from plumecast.studies.table import rows_of

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
class Written:
    """A page, and why studies are missing from it."""

    path: Path
    stale: list[str]  # of another run
    failed: dict[str, str]  # reason by study


def write_report(folder: Path, out: Path) -> Written:
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
    return Written(out, stale, failed)


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


def _verdict(rows: list[dict[str, Any]] | None) -> Verdict:
    if rows is None:
        return Verdict(UNKNOWN, "The verdict needs study summary, which is not in this report.")
    return judge({row["method"]: row for row in rows})


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


def _by_group(answers: list[Answer]) -> dict[str, list[Answer]]:
    groups: dict[str, list[Answer]] = {}
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
