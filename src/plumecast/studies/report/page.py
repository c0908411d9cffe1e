"""Write one self-contained HTML page from a folder of results."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from plumecast.base.files import write_text
from plumecast.studies.report.credibility import Answer, answer_all
from plumecast.studies.results import Finished, read_results
from plumecast.studies.table import rows_of

FIRST = "summary"
LARGEST_SVG = 400_000  # bytes; a larger figure is embedded as PNG


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure to embed."""

    source: str  # data URI
    caption: str
    alternative: str
    narrow: bool


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


def write_report(folder: Path, out: Path) -> tuple[Path, list[str]]:
    """Write the page; returns its path and the studies left out because of another run."""
    run, finished, stale = read_results(folder)
    write_text(out, render(run, finished, stale))
    return out, stale


def render(run: Mapping[str, Any], finished: list[Finished], stale: list[str]) -> str:
    """The page as HTML text. The summary comes first."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("plumecast.studies.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"score": _score, "seconds": _seconds, "count": lambda n: f"{n:,}"}
    first = sorted(finished, key=lambda item: item.study.name != FIRST)
    summary = next((item for item in first if item.study.name == FIRST), None)
    return environment.get_template("report.html").render(
        run=run,
        stale=stale,
        sections=[_section(item) for item in first],
        summary=None if summary is None else rows_of(summary.finding),
        facts={} if summary is None else summary.finding.attrs,
        answers=_by_group(answer_all(run, finished)),
        total=sum(item.record.seconds for item in finished),
    )


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
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    return Picture(
        source=f"data:image/{kind};base64,{content}",
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
