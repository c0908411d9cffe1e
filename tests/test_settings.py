"""Presets with single choices replaced."""

from __future__ import annotations

from plumecast.settings import PRESETS, choose_settings


def test_a_preset_as_it_is():
    assert choose_settings("paper-quadratic") == PRESETS["paper-quadratic"]


def test_another_degree_has_its_penalty_chosen_and_another_name():
    changed = choose_settings("paper-linear", degree=2)
    assert changed.penalty is None
    assert changed.preset == "paper-linear, changed"
    assert choose_settings("paper-linear", degree=1).penalty == 0.0


def test_another_share_keeps_the_limit_and_a_rank_drops_it():
    share = choose_settings("paper-quadratic", fire={"std_fraction": 0.99})
    assert (share.fire.std_fraction, share.fire.max_rank) == (0.99, 200)
    rank = choose_settings("paper-quadratic", fire={"rank": 300})
    assert (rank.fire.rank, rank.fire.max_rank) == (300, None)
