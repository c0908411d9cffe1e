"""The trials of `make fuzz`: every target can be run, and a failure is noticed."""

from __future__ import annotations

import random
from pathlib import Path

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


def test_failures_are_told_apart(fuzz, tmp_path):
    trials = fuzz("trials")

    def attempt(originals: Path, scratch: Path, rng: random.Random) -> str:
        kind = rng.random()
        if kind < 0.5:
            raise ZeroDivisionError
        return trials.CHANGED

    target = trials.Target("odd", lambda folder: None, attempt, trials=20)
    tally = trials.Tally()
    for number in range(20):
        tally.add(number, *trials.run_trial(target, tmp_path, 0, number))
    assert set(tally.counts) == {trials.TRACEBACK, trials.CHANGED}
    assert len(tally.failures) == 20
