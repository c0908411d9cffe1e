"""The contract that every registered study fulfils."""

from __future__ import annotations

import re

import pytest
import xarray as xr

from plumecast.paper.context import columns_of
from plumecast.paper.results import STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_a_table_with_units_and_figures_with_captions(finished, name):
    done, study = finished[name], STUDIES[name]
    columns = columns_of(done.finding, clocks=False)
    assert done.finding.sizes["row"] > 1
    assert len(columns) > 2
    for column in columns:
        assert done.finding[column].attrs["long_name"]
        assert done.finding[column].attrs["units"]
    assert set(study.captions) == set(done.record.figures)
    assert set(study.bitmap) <= set(done.record.figures)
    for figure, caption in study.captions.items():
        assert len(caption) > 40
        assert re.fullmatch(r"[A-Z].*\.", caption)
        for ending in ("svg", "png"):
            assert done.figure(figure, ending).stat().st_size > 1000
    with xr.open_dataset(done.folder / "table.nc", decode_timedelta=False) as table:
        assert table.attrs["seconds"] == pytest.approx(done.record.seconds)
    assert study.question.endswith("?")
    assert [other.title for other in STUDIES.values()].count(study.title) == 1


@pytest.mark.parametrize("name", STUDIES)
def test_remarks_are_complete_sentences_with_numbers(finished, name):
    remarks = STUDIES[name].remarks(finished[name].finding)
    assert re.search(r"\d", "".join(remarks))
    for remark in remarks:
        assert re.fullmatch(r"[A-Z0-9].*\.", remark, re.DOTALL)
        assert "nan" not in remark
