"""What `plumecast serve` says while it makes its own ensemble and surrogate."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")

from plumecast.app.server import start
from plumecast.cli.commands import serve


def test_the_first_start_and_a_later_one_say_what_is_made_and_where(monkeypatch, tmp_path, capsys):
    def simulate(path, *, resources, **settings):
        for done in range(1, 11):
            resources.progress(done, 10, f"fire-{done}")

    monkeypatch.setattr(start, "simulate", simulate)
    assert serve._own_fires(tmp_path, 1) == tmp_path / start.FIRES
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith("first start: 32 fires")
    assert str(tmp_path) in first
    said = [re.fullmatch(r"simulated fire (\d+) of 10 \(\d+ s\)", line)[1] for line in lines]
    assert said == ["4", "8", "10"]
    (tmp_path / start.FIRES).mkdir()
    (tmp_path / "recommended-1.plume").touch()
    serve._own_fires(tmp_path, 1)
    line = capsys.readouterr().out.splitlines()[0]
    assert line == f"the small ensemble and the surrogate of an earlier start are in {tmp_path}"
