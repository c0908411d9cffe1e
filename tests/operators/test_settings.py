"""Presets with single choices replaced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plumecast.base.errors import PlumecastError
from plumecast.operators.settings import PRESETS, Settings, choose_settings
from plumecast.operators.spectral.fit import SpectralSettings


def test_another_degree_has_its_penalty_chosen_and_another_name():
    changed = choose_settings("paper-linear", degree=2)
    assert changed.family_settings.penalty is None
    assert changed.preset == "paper-linear, changed"
    assert choose_settings("paper-linear", degree=1).family_settings.penalty == 0.0


def test_another_kernel_has_its_penalty_chosen():
    changed = choose_settings("paper-linear", kernel="matern-5/2")
    assert (changed.family_settings.kernel, changed.family_settings.penalty) == ("matern-5/2", None)
    given = choose_settings("paper-linear", kernel="matern-5/2", penalty=0.1, length_scale=2.0)
    assert (given.family_settings.penalty, given.family_settings.length_scale) == (0.1, 2.0)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"kernel": "cubic"}, "kernel 'cubic' is unknown; choose from"),
        ({"length_scale": 2.0}, "kernel 'polynomial' has no length scale"),
        ({"kernel": "matern-5/2", "length_scale": -1.0}, "length_scale=-1 must be a finite"),
        ({"kernel": "matern-5/2", "degree": 2}, "'polynomial-2 \\+ matern-5/2'"),
        (
            {"preset": "recommended", "kernel": "matern-5/2"},
            "the spectral family has no setting 'kernel'; it has layers, correction, age_bins, ",
        ),
        ({"degre": 2}, "the coded family has no setting 'degre'; it has degree, .*, fire_rank, "),
        ({"preset": "quick", "settings": Settings()}, "complete settings are given"),
        ({"family": "coded", "settings": SpectralSettings()}, "a SpectralSettings is none of"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(choices, message):
    with pytest.raises(PlumecastError, match=message):
        choose_settings(choices.pop("preset", None), **choices)


def test_another_share_keeps_the_limit_and_a_rank_drops_it():
    share = choose_settings("paper-quadratic", fire_std_fraction=0.99)
    assert (share.family_settings.fire.std_fraction, share.family_settings.fire.max_rank) == (
        0.99,
        200,
    )
    rank = choose_settings("paper-quadratic", fire_rank=300)
    assert (rank.family_settings.fire.rank, rank.family_settings.fire.max_rank) == (300, None)


@pytest.mark.parametrize(("name", "value"), [("layers", 2**31), ("age_bins", 2**31)])
def test_counts_that_would_run_for_ever_are_refused(name, value):
    with pytest.raises(PlumecastError, match=f"{name}={value} must be at most"):
        choose_settings("quick", **{name: value})


def test_settings_of_a_family_replace_those_of_the_preset():
    given = choose_settings("recommended", SpectralSettings(layers=2), targets="log")
    assert given == choose_settings("recommended", layers=2, targets="log")
    assert choose_settings(settings=SpectralSettings()) == choose_settings(family="spectral")
    quick = choose_settings("recommended", layers=2, targets="log")
    assert replace(quick, preset="quick") == choose_settings("quick") == PRESETS["quick"]
    whole = choose_settings("quick", age_bins=5)
    assert choose_settings(settings=whole) == whole
