"""Presets with single choices replaced."""

from __future__ import annotations

import pytest

from plumecast.base.errors import PlumecastError
from plumecast.operators.settings import PRESETS, choose_settings


def test_a_preset_as_it_is():
    assert choose_settings("paper-quadratic") == PRESETS["paper-quadratic"]


def test_another_degree_has_its_penalty_chosen_and_another_name():
    changed = choose_settings("paper-linear", degree=2)
    assert changed.own.penalty is None
    assert changed.preset == "paper-linear, changed"
    assert choose_settings("paper-linear", degree=1).own.penalty == 0.0


def test_another_kernel_has_its_penalty_chosen():
    changed = choose_settings("paper-linear", kernel="matern-5/2")
    assert (changed.own.kernel, changed.own.penalty) == ("matern-5/2", None)
    given = choose_settings("paper-linear", kernel="matern-5/2", penalty=0.1, length_scale=2.0)
    assert (given.own.penalty, given.own.length_scale) == (0.1, 2.0)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"kernel": "cubic"}, "kernel 'cubic' is unknown; choose from"),
        ({"length_scale": 2.0}, "kernel 'polynomial' has no length scale"),
        ({"kernel": "matern-5/2", "length_scale": -1.0}, "length_scale=-1.0 must be a finite"),
        ({"kernel": "matern-5/2", "degree": 2}, "'polynomial-2 \\+ matern-5/2'"),
        (
            {"preset": "recommended", "kernel": "matern-5/2"},
            "the spectral family has no setting 'kernel'",
        ),
    ],
    ids=str,
)
def test_kernels_that_cannot_be_are_refused(choices, message):
    with pytest.raises(PlumecastError, match=message):
        choose_settings(choices.pop("preset", None), **choices)


def test_another_share_keeps_the_limit_and_a_rank_drops_it():
    share = choose_settings("paper-quadratic", fire={"std_fraction": 0.99})
    assert (share.own.fire.std_fraction, share.own.fire.max_rank) == (0.99, 200)
    rank = choose_settings("paper-quadratic", fire={"rank": 300})
    assert (rank.own.fire.rank, rank.own.fire.max_rank) == (300, None)


@pytest.mark.parametrize(("name", "value"), [("layers", 2**31), ("age_bins", 2**31)])
def test_counts_that_would_run_for_ever_are_refused(name, value):
    with pytest.raises(PlumecastError, match=f"{name}={value} must be at most"):
        choose_settings("quick", **{name: value})
