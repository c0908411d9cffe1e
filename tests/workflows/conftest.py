"""Fixtures of workflows."""

from __future__ import annotations

import pytest

from plumecast.sources.wrf import fires


@pytest.fixture
def in_this_process(monkeypatch):
    """Read WRF runs in this process: to start another one takes longer than to read a small run."""
    monkeypatch.setattr(fires, "_read_in_order", lambda jobs, *_: map(fires.read_job, jobs))
