"""The report: its content, its credibility answers, and the page in a real browser."""

from __future__ import annotations

import re

import numpy as np
import pytest
from markupsafe import escape

from plumecast.paper.context import rows_of
from plumecast.paper.results import STUDIES, read_results, write_failure
from plumecast.report.credibility import MET, NOT_MET, RECOMMENDATIONS, answer_all
from plumecast.report.page import NOT_USEFUL, PARTLY, UNKNOWN, USEFUL, judge_run, write_report
from plumecast.surrogate.baselines import BASELINES
from support.browser import shown_alone


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    written = write_report(results, tmp_path_factory.mktemp("page") / "new" / "report.html")
    assert (written.stale, written.failed) == ([], {})
    return written.path


@pytest.fixture(scope="module")
def text(page) -> str:
    return page.read_text(encoding="utf-8")


def test_the_page_needs_nothing_but_itself(text):
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text) == []
    assert "http" not in text
    assert "@import" not in text


def test_every_study_and_figure_is_shown_with_a_caption(text, finished):
    figures = 1 + sum(len(item.record.figures) for item in finished.values())  # 1: the map on top
    assert len(finished) == len(STUDIES)
    assert text.count("<figure") == text.count("<img") == figures
    assert text.count("<figcaption>") == figures
    for name, item in finished.items():
        assert f'id="{name}"' in text
        for remark in item.study.remarks(item.finding):
            assert str(escape(remark)) in text


def test_the_summary_shows_ours_beside_the_papers(text, finished):
    table = text[text.index('id="summary"') : text.index("</section>", text.index('id="summary"'))]
    for paper in ("0.93", "0.61", "0.95", "0.64", "0.83", "0.45", "29.0 s", "436 s"):
        assert f'<span class="theirs">{paper}</span>' in table
    for iou in finished["summary"].finding.deployable_iou.values[:7]:
        assert f"<td>{iou:.2f}</td>" in table


def test_all_sixteen_recommendations_are_answered_from_the_run(results):
    run, done, _ = read_results(results)
    answers = answer_all(run, done)
    assert len(answers) == len(RECOMMENDATIONS) == 16
    whole = {answer.recommendation: answer for answer in answers}
    assert whole["Domains of verification, calibration, validation and application"].state == MET
    assert run["data_version"] in whole["Software tests and reproducibility"].evidence
    nothing = {answer.recommendation: answer for answer in answer_all(run, [])}
    for shown in ("Sensitivities of the model", "Comparison with alternatives",
                  "Uncertainty of predictions", "Structure of the model"):  # fmt: skip
        assert whole[shown].state != NOT_MET
        assert nothing[shown].state == NOT_MET
        assert "was not run" in nothing[shown].evidence


def test_a_partial_folder_makes_a_page_that_says_so(some_results, run):
    """Studies that were not run, that failed, and that belong to another run."""
    folder = some_results("footprint-linear", "sensitivity")
    record = folder / "sensitivity" / "record.json"
    record.write_text(re.sub(r'"run": "\w+"', '"run": "other"', record.read_text()))
    mark = read_results(folder)[0]["fingerprint"]
    write_failure(folder, "optical-depth", run=mark, reason="no final snapshots")
    write_failure(folder, "footprint-linear", run=mark, reason="finished since then")
    said = run("report", folder, "-o", folder / "report.html")
    assert said.code == 0
    assert "left out, because their data or settings are different: sensitivity" in said.err
    assert "study optical-depth failed: no final snapshots" in said.err
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert "<strong>Mean optical depth from few samples</strong> failed: no final" in text
    assert text.count("<figure") == 4
    assert 'id="sensitivity"' not in text
    assert "study summary was not run" in text
    assert "<strong>Learning curve</strong> was not run." in text
    assert "The verdict needs study summary" in text
    assert "finished since then" not in text + said.err


def test_the_verdict_and_a_map_come_first(text, finished):
    top = text[: text.index("<nav")]
    best = max(
        (row for row in rows_of(finished["summary"].finding) if row["method"] not in BASELINES),
        key=lambda row: np.nan_to_num(row["deployable_iou"]),
    )
    assert f"The best surrogate is {best['title']}" in top
    assert f"IoU is {best['deployable_iou']:.2f}" in top
    assert top.count("<img") == 1
    assert "A typical test snapshot" in top


SIMPLE = {"mean-field": (0.3, 1.1), "nearest-fire": (0.5, 0.9)}


@pytest.mark.parametrize(
    ("scores", "state"),
    [
        ({"recommended": (0.8, 0.4)}, USEFUL),
        ({"recommended": (0.8, 0.4), "literal": (np.nan, np.nan)}, USEFUL),
        ({"recommended": (0.8, 1.0)}, PARTLY),
        ({"recommended": (0.4, 0.4)}, NOT_USEFUL),
        ({}, UNKNOWN),
    ],
)
def test_a_surrogate_is_useful_only_if_it_beats_both_simple_baselines(scores, state):
    """Each pair is the deployable IoU and the median error of a method."""
    rows = {
        name: {"title": name, "deployable_iou": iou, "median_error": error}
        for name, (iou, error) in (scores | SIMPLE).items()
    }
    verdict = judge_run(rows)
    assert verdict.state == state
    assert verdict.method == ("recommended" if scores else None)


def test_the_maps_show_different_snapshots(finished):
    finding = finished["footprint-linear"].finding
    shown = set(zip(finding.map_fire_id.values, finding.map_hours.values, strict=True))
    assert len(shown) == finding.sizes["percentile"] == 5


def test_a_folder_without_results_is_refused(refused, tmp_path):
    assert "plumecast study all" in refused("report", tmp_path, "-o", tmp_path / "r.html")


@pytest.mark.parametrize("width", [1280, 420])
def test_a_real_browser_shows_the_page(browser, page, width):
    with shown_alone(browser, page, width) as shown:
        images = shown.evaluate(
            "[...document.images].map(i => [i.naturalWidth, i.getBoundingClientRect().right])"
        )
    assert len(images) > len(STUDIES)
    assert all(size > 0 and right <= width for size, right in images)
