"""A small ensemble, a context of its split, and one folder with the results of every study."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr

from plumecast.data.split import split_by_fire
from plumecast.paper.context import Context
from plumecast.paper.studies import STUDIES
from support.browser import open_chromium
from support.study_runs import SMALL, study_into, three_droughts


@pytest.fixture(scope="session")
def large_snapshots() -> xr.Dataset:
    """Twenty ignitions under three droughts, two checkpoints each."""
    return three_droughts()


@pytest.fixture(scope="session")
def context(large_snapshots) -> Context:
    return Context(split_by_fire(large_snapshots), limits=SMALL)


@pytest.fixture(scope="session")
def results(tmp_path_factory) -> Path:
    """A folder with the results of every registered study."""
    folder = tmp_path_factory.mktemp("results")
    outcomes = study_into(folder, ["all"])
    assert [item.problem for item in outcomes] == [None] * len(STUDIES)
    return folder


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; the test is skipped if there is none."""
    with open_chromium() as opened:
        yield opened
