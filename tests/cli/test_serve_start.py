"""What `plumecast serve` says while it makes its own ensemble and surrogate."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")

from plumecast.app.server import start
from plumecast.cli.commands import serve


@pytest.fixture
def simulated(monkeypatch):
    """A simulation that only reports ten fires."""

    def simulate(path, *, resources, **settings):
        for done in range(1, 11):
            resources.progress(done, 10, f"fire-{done}")

    monkeypatch.setattr(start, "simulate", simulate)


def test_the_first_start_says_how_far_it_is_and_where_it_is_kept(simulated, tmp_path, capsys):
    assert serve._own_fires(tmp_path, 1) == tmp_path / start.FIRES
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("first start: 32 fires")
    assert str(tmp_path) in first
    said = [re.fullmatch(r"simulated fire (\d+) of 10 \(\d+ s\)", line)[1] for line in lines]
    assert said == ["4", "8", "10"]


def test_a_later_start_says_that_everything_is_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(start, "simulate", lambda path, **settings: None)  # all fires are stored
    (tmp_path / start.FIRES).mkdir()
    (tmp_path / "recommended-1.plume").touch()
    serve._own_fires(tmp_path, 1)
    (line,) = capsys.readouterr().out.splitlines()
    assert line == f"the small ensemble and the surrogate of an earlier start are in {tmp_path}"
