"""The contract that every registered study fulfils."""

from __future__ import annotations

import re

import pytest

from plumecast.paper.context import columns_of
from plumecast.paper.results import Finished, read_results
from plumecast.paper.studies import STUDIES

VERBS = {
    "is", "are", "was", "were", "has", "have", "needs", "lie", "takes", "trains", "captures",
    "keeps", "ranges", "would",
}  # fmt: skip


@pytest.fixture(params=STUDIES)
def finished(request, results) -> Finished:
    """A finished study of the small ensemble, read from its folder."""
    found = {item.study.name: item for item in read_results(results)[1]}
    return found[request.param]


def sentences(text: str) -> list[str]:
    """The sentences of a remark; a full stop within a number does not end one."""
    return re.split(r"(?<=\.)\s+(?=[A-Z])", text)


def test_a_study_makes_a_table_with_names_and_units(finished):
    columns = columns_of(finished.finding, clocks=False)
    assert finished.finding.sizes["row"] > 1
    assert len(columns) > 2
    for name in columns:
        assert finished.finding[name].attrs["long_name"]
        assert finished.finding[name].attrs["units"]


def test_a_study_has_a_caption_for_every_figure(finished):
    assert finished.record.figures
    assert set(finished.study.captions) == set(finished.record.figures)
    for caption in finished.study.captions.values():
        assert len(caption) > 40
        assert caption[0].isupper()
        assert caption.endswith(".")
    assert set(finished.study.bitmap) <= set(finished.record.figures)


def test_remarks_are_complete_sentences_about_the_finding(finished):
    remarks = finished.study.remarks(finished.finding)
    assert remarks
    assert any(re.search(r"\d", remark) for remark in remarks)
    for remark in remarks:
        assert remark.endswith(".")
        assert "nan" not in remark
        for sentence in sentences(remark):
            assert sentence[0].isupper() or sentence[0].isdigit()
            assert VERBS & set(re.findall(r"\w+", sentence)), sentence


def test_a_study_has_a_title_and_a_question_of_its_own(finished):
    study = finished.study
    assert study.title[0].isupper()
    assert not study.title.endswith(".")
    assert study.question.endswith("?")
    assert [other.title for other in STUDIES.values()].count(study.title) == 1
