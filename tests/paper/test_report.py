"""The report: its content, its credibility answers, and the page in a real browser."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
import xarray as xr
from markupsafe import escape

from plumecast.paper.context import is_baseline, rows_of
from plumecast.paper.results import read_results
from plumecast.paper.studies import STUDIES
from plumecast.report.credibility import MET, NOT_MET, RECOMMENDATIONS, answer_all
from plumecast.report.page import NOT_USEFUL, PARTLY, UNKNOWN, USEFUL, judge_run, write_report
from support.study_runs import SMALL, study_into, three_droughts

WIDTHS = (1280, 420)


@pytest.fixture(scope="module")
def page(results, tmp_path_factory):
    page = write_report(results, tmp_path_factory.mktemp("page") / "new" / "report.html")
    assert page.stale == []
    assert page.failed == {}
    return page.path


def test_the_page_needs_nothing_but_itself(page):
    text = page.read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text) == []
    assert "http" not in text
    assert "@import" not in text


def test_every_study_and_figure_is_shown_with_a_caption(page, results):
    text = page.read_text(encoding="utf-8")
    _, finished, _ = read_results(results)
    figures = 1 + sum(len(item.record.figures) for item in finished)  # 1: the map at the top
    assert len(finished) == len(STUDIES)
    assert text.count("<figure") == text.count("<img") == figures
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text, re.DOTALL)
    assert len(captions) == figures
    for item in finished:
        assert f'id="{item.study.name}"' in text
        for remark in item.study.remarks(item.finding):
            assert str(escape(remark)) in text


def test_the_summary_shows_ours_beside_the_papers(page, results):
    text = page.read_text(encoding="utf-8")
    table = text[text.index('id="summary"') : text.index("</section>", text.index('id="summary"'))]
    for paper in (
        "0.93",
        "0.61",
        "0.95",
        "0.64",
        "0.83",
        "0.45",
        "0.68",
        "0.35",
        "29.0 s",
        "436 s",
    ):
        assert f'<span class="theirs">{paper}</span>' in table
    rows = read_results(results)[1]
    summary = next(item.finding for item in rows if item.study.name == "summary")
    for iou in summary.deployable_iou.values[:7]:
        assert f"<td>{iou:.2f}</td>" in table


def test_all_sixteen_recommendations_are_answered_from_the_run(results):
    run, finished, _ = read_results(results)
    answers = answer_all(run, finished)
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


def test_a_partial_folder_makes_a_page_that_says_so(tmp_path):
    study_into(tmp_path, ["footprint-linear"])
    page = write_report(tmp_path, tmp_path / "report.html")
    text = page.path.read_text(encoding="utf-8")
    assert text.count("<figure") == 4
    assert "study summary was not run" in text
    assert "<strong>Learning curve</strong> was not run." in text
    assert "The verdict needs study summary" in text


def test_the_verdict_and_a_map_come_first(page, results):
    text = page.read_text(encoding="utf-8")
    top = text[: text.index("<nav")]
    summary = next(i.finding for i in read_results(results)[1] if i.study.name == "summary")
    best = max(
        (row for row in rows_of(summary) if not is_baseline(row["method"])),
        key=lambda row: np.nan_to_num(row["deployable_iou"]),
    )
    assert f"The best surrogate is {best['title']}" in top
    assert f"IoU is {best['deployable_iou']:.2f}" in top
    assert top.count("<img") == 1
    assert "A typical test snapshot" in top


def scored(**scores):
    """Rows of a summary; each value is the deployable IoU and the median error of a method."""
    names = {name.replace("_", "-"): pair for name, pair in scores.items()}
    return {
        name: {"title": name, "deployable_iou": iou, "median_error": error}
        for name, (iou, error) in names.items()
    }


def test_a_surrogate_is_useful_only_if_it_beats_both_simple_baselines():
    simple = {"mean_field": (0.3, 1.1), "nearest_fire": (0.5, 0.9)}
    assert judge_run(scored(recommended=(0.8, 0.4), **simple)).state == USEFUL
    assert judge_run(scored(recommended=(0.8, 1.0), **simple)).state == PARTLY
    lost = judge_run(scored(recommended=(0.4, 0.4), **simple))
    assert lost.state == NOT_USEFUL
    assert "plumecast tune" in lost.text
    assert judge_run(scored(**simple)).state == UNKNOWN
    literal = scored(recommended=(0.8, 0.4), literal=(np.nan, np.nan), **simple)
    assert judge_run(literal).method == "recommended"


def test_a_failed_study_is_listed_with_its_reason_until_it_succeeds(
    run, succeed, monkeypatch, tmp_path
):
    monkeypatch.setattr("plumecast.cli.commands.study.StudyLimits", lambda **given: SMALL)
    whole = three_droughts()
    store, out, page = tmp_path / "ensemble.nc", tmp_path / "out", tmp_path / "report.html"
    whole.assign_coords(is_final=xr.zeros_like(whole.is_final)).to_netcdf(store)
    study = ("study", "optical-depth", "footprint-linear", "--data", store, "-o", out)
    assert run(*study).code == 1
    result = run("report", out, "-o", page)
    assert result.code == 0
    assert "study optical-depth failed: the training part has no final snapshots" in result.err
    text = page.read_text(encoding="utf-8")
    assert "<strong>Mean optical depth from few samples</strong> failed: the training part" in text
    whole.to_netcdf(store)
    succeed(*study)
    assert "failed" not in run("report", out, "-o", page).err
    assert 'id="optical-depth"' in page.read_text(encoding="utf-8")


def test_the_maps_show_different_snapshots(results):
    for item in read_results(results)[1]:
        if "map_iou" in item.finding.coords:
            found = item.finding
            shown = set(zip(found.map_fire_id.values, found.map_hours.values, strict=True))
            assert len(shown) == found.sizes["percentile"] == 5


def test_studies_of_another_run_are_left_out(tmp_path, results, succeed, run):
    shutil.copytree(results / "sensitivity", tmp_path / "sensitivity")
    study_into(tmp_path, ["footprint-linear"])
    record = tmp_path / "sensitivity" / "record.json"
    record.write_text(re.sub(r'"run": "\w+"', '"run": "other"', record.read_text()))
    result = run("report", tmp_path, "-o", tmp_path / "r.html")
    assert result.code == 0
    assert "left out, because their data or settings are different: sensitivity" in result.err
    assert 'id="sensitivity"' not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_folder_without_results_is_refused(refused, tmp_path):
    assert "plumecast study all" in refused("report", tmp_path, "-o", tmp_path / "r.html")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_real_browser_shows_the_page(browser, page, width):
    shown = browser.new_page(viewport={"width": width, "height": 900})
    complaints: list[str] = []
    asked: list[str] = []
    shown.on("console", lambda message: complaints.append(message.text))
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(page.as_uri())
    images = shown.evaluate("[...document.images].map(i => [i.complete, i.naturalWidth])")
    assert len(images) > len(STUDIES)
    assert all(complete and size > 0 for complete, size in images)
    right = shown.evaluate("[...document.images].map(i => i.getBoundingClientRect().right)")
    assert max(right) <= width
    inside, window = shown.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert inside <= window
    assert complaints == []
    assert [url for url in asked if not url.startswith(("data:", page.as_uri()))] == []
    shown.close()
