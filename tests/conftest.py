"""Fixtures of all tests: small snapshots, and commands run in this process."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
import xarray as xr
from hypothesis import settings

from plumecast.cli import main
from plumecast.data.split import Split, split_by_fire
from support.browser import open_chromium
from support.how_to import follow
from support.snapshots import make_snapshots

# The first example of a property may import or compile something; its time says nothing.
settings.register_profile("plumecast", deadline=None)
settings.load_profile("plumecast")


@pytest.fixture(scope="session")
def snapshots() -> xr.Dataset:
    """Twelve fires of six ignitions, four checkpoints each, on 8 by 10 cells."""
    return make_snapshots()


@pytest.fixture(scope="session")
def split(snapshots: xr.Dataset) -> Split:
    """Three ignitions to train, one to validate, two to test."""
    return split_by_fire(snapshots, seed=1)


@pytest.fixture
def one_thread():
    """PyTorch on one thread; skips the test without PyTorch.

    Threads that wait for each other on a busy machine take minutes for a small network.
    """
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; the test is skipped if there is none."""
    with open_chromium() as opened:
        yield opened


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def narrow_terminal(monkeypatch):
    """The width of a terminal nobody widened, and no colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.fixture
def run(capsys, narrow_terminal):
    """Run a command in this process."""

    def call(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(int(stopped.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def succeed(run):
    def call(*arguments: object) -> str:
        result = run(*arguments)
        assert result.code == 0, result.err
        return result.out

    return call


@pytest.fixture
def refused(run):
    """Run a command that must fail with one line; its message."""

    def call(*arguments: object) -> str:
        result = run(*arguments)
        assert result.code == 2
        assert "Traceback" not in result.err
        assert re.fullmatch(r"error: [^\n]+\n", result.err), result.err
        return result.err.removeprefix("error: ").rstrip("\n")

    return call


@pytest.fixture
def follow_page(run, tmp_path, monkeypatch):
    """Follow a how-to page in an empty folder; returns what its blocks printed."""
    monkeypatch.chdir(tmp_path)
    return lambda page: follow(page, run)
