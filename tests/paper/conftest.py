"""One folder with the results of every study on a small ensemble, and the run that made them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr

from plumecast.paper.context import Context
from plumecast.paper.results import STUDIES, Finished, read_results
from support.study_runs import SMALL, study_into, three_droughts


@pytest.fixture(scope="session")
def large_snapshots() -> xr.Dataset:
    """Twenty ignitions under three droughts, two checkpoints each."""
    return three_droughts()


@pytest.fixture(scope="session")
def studied(tmp_path_factory) -> tuple[Context, Path]:
    folder = tmp_path_factory.mktemp("results")
    context, outcomes = study_into(folder, ["all"])
    assert [item.problem for item in outcomes] == [None] * len(STUDIES)
    return context, folder


@pytest.fixture(scope="session")
def context(studied) -> Context:
    """The run of all studies, with the surrogates and scores that they made."""
    return studied[0]


@pytest.fixture(scope="session")
def results(studied) -> Path:
    """A folder with the results of every registered study."""
    return studied[1]


@pytest.fixture(scope="session")
def finished(results) -> dict[str, Finished]:
    """The finished studies by name, read from their folder."""
    return {item.study.name: item for item in read_results(results)[1]}


@pytest.fixture
def some_results(results, tmp_path) -> Callable[..., Path]:
    """`some_results(*names)`: a folder with the run and some of its studies, to be changed."""

    def copied(*names: str) -> Path:
        folder = tmp_path / "some"
        for name in names:
            shutil.copytree(results / name, folder / name)
        shutil.copy(results / "run.json", folder)
        return folder

    return copied


@pytest.fixture
def small(monkeypatch) -> None:
    """The steps of the command with less work, without the files of figures."""
    monkeypatch.setattr("plumecast.cli.commands.study.StudyLimits", lambda **settings: SMALL)
    monkeypatch.setattr("plumecast.paper.results.save_all", lambda *arguments: [])
