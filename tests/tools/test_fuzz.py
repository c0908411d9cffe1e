"""The trials of `make fuzz`: every target can be run, and a failure is noticed."""

from __future__ import annotations

import pytest

QUICK = ("models", "rasters", "geotiff", "stores")
"""Targets of which some trials take less than a few seconds."""


@pytest.fixture
def fuzz(tool):
    return lambda name: tool(f"fuzz.{name}")


def test_every_target_has_its_module(fuzz):
    for name in fuzz("__main__").TARGETS:
        target = fuzz(name).TARGET
        assert target.name == name
        assert target.trials > 0


@pytest.mark.parametrize("name", QUICK)
def test_some_trials_pass(fuzz, name, tmp_path):
    trials, target = fuzz("trials"), fuzz(name).TARGET
    target.prepare(tmp_path)
    verdicts = [trials.run_trial(target, tmp_path, 0, number) for number in range(4)]
    assert not [found for found in verdicts if found[0] in trials.FAILURES], verdicts
