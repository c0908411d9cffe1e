"""Tuning: every candidate scored once, ranked, and repeatable by `fit_surrogate`."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import make_snapshots
from plumecast import candidates as plans
from plumecast.encode import Truncation, rank_for_std
from plumecast.errors import PlumecastError
from plumecast.fit import fit_surrogate
from plumecast.folds import fold_rows
from plumecast.quantity.footprint import relative_error
from plumecast.search import Limits
from plumecast.split import split_by_fire
from plumecast.tune import RANK_BY, tune_surrogate

REFIT = 1e-6
"""Relative. The scan solves by an eigendecomposition, the refit by Cholesky, at penalties down to
1e-10 of the kernel: rounding of 1e-16 grows up to that inverse."""

POLYNOMIALS = {"families": ("coded",), "kernels": ()}
ONE = {**POLYNOMIALS, "degrees": (1,), "std_fractions": (0.9,)}


@pytest.fixture(scope="module")
def polynomials(split):
    return tune_surrogate(split.train, split.validation, degrees=(1, 2, 3), **POLYNOMIALS)


@pytest.fixture(scope="module")
def every(split):
    """All families, all confirmed."""
    return tune_surrogate(
        split.train, split.validation, degrees=(1, 2), std_fractions=(0.9,), confirm=99
    )


@pytest.mark.parametrize("rank_by", RANK_BY)
def test_confirmed_come_first_and_each_part_is_sorted(split, rank_by):
    found = tune_surrogate(
        split.train, split.validation, degrees=(1, 2), rank_by=rank_by, confirm=2, **POLYNOMIALS
    )
    confirmed = [getattr(c.validation, rank_by) for c in found if c.validation is not None]
    others = [getattr(c.folds, rank_by) for c in found if c.validation is None]
    assert [c.validation is not None for c in found] == [True] * 2 + [False] * len(others)
    descending = rank_by != "relative_error"
    assert confirmed == sorted(confirmed, reverse=descending)
    assert others == sorted(others, reverse=descending)
    assert len(others) > 2
    # The two confirmed are the two that did best in the folds.
    best = [c.folds.key(rank_by) for c in found]
    assert max(best[:2]) <= min(best[2:])


def test_every_degree_is_tried_at_every_rank_of_the_shares(polynomials, split):
    fires = split.train.time_since_ignition.values.reshape(24, 80).astype(np.float64)
    spectrum = np.linalg.svd(fires, compute_uv=False)
    ranks = {rank_for_std(spectrum, fraction) for fraction in plans.STD_FRACTIONS}
    expected = {(degree, rank) for degree in (1, 2, 3) for rank in ranks}
    assert len(polynomials) == len(expected)
    assert {(c.choices["degree"], c.choices["fire_rank"]) for c in polynomials} == expected


def test_ranks_beyond_the_largest_of_a_degree_are_cut(split, monkeypatch):
    monkeypatch.setattr(plans, "MAX_RANK", {1: 2000, 2: 4})
    found = tune_surrogate(
        split.train, split.validation, degrees=(1, 2), std_fractions=(0.5, 0.95), **POLYNOMIALS
    )
    ranks = {
        d: sorted(c.choices["fire_rank"] for c in found if c.choices["degree"] == d) for d in (1, 2)
    }
    assert max(ranks[1]) > 4
    assert ranks[2] == sorted({min(rank, 4) for rank in ranks[1]})


def test_all_families_are_tried(every):
    assert {c.family for c in every} == {"coded", "spectral"}
    names = [c.name for c in every]
    assert len(set(names)) == len(names)
    assert {c.choices["kernel"] for c in every if "kernel" in c.choices} == set(plans.KERNELS)
    assert sum(c.family == "spectral" for c in every) == len(plans.SPECTRAL)


def test_settings_of_every_confirmed_candidate_repeat_it(every, split):
    for candidate in every:
        surrogate = fit_surrogate(split.train, **candidate.settings())
        predicted = surrogate.predict(split.validation)
        error = relative_error(predicted, split.validation.smoke)
        assert error == pytest.approx(candidate.validation.relative_error, rel=REFIT)
        for name in ("penalty", "length_scale"):
            if name in candidate.choices:
                assert surrogate.training[name] == candidate.choices[name]


def test_fold_scores_are_those_of_fits_without_the_fold(every, split):
    """Each of the three training ignitions predicted by a fit to the other two."""
    labels = split.train.ignition_id.values
    parts = fold_rows(labels, 3, "ignition_id")
    for candidate in every:
        choices = candidate.settings()
        for name in ("penalty", "length_scale", "smoke_rank"):
            choices.pop(name, None)  # chosen anew in every fold
        predicted = np.empty(split.train.smoke.shape)
        for rows in parts:
            rest = split.train.isel(snapshot=np.setdiff1d(np.arange(labels.size), rows))
            held_out = split.train.isel(snapshot=rows)
            predicted[rows] = fit_surrogate(rest, **choices).predict(held_out)
        error = relative_error(predicted, split.train.smoke.values)
        assert error == pytest.approx(candidate.folds.relative_error, rel=REFIT), candidate.name


def test_candidates_of_ones_own(split):
    given = {
        "centred": {"degree": 1, "center": True, "penalty": 0.5},
        "impossible": {"degree": 1, "fire_rank": 900},
    }
    found = tune_surrogate(split.train, split.validation, families=(), given=given)
    assert [c.name for c in found] == ["centred", "impossible"]
    assert found[0].choices["center"]
    assert found[0].choices["penalty"] == 0.5
    assert "rank=900 exceeds" in found[1].problem


def test_folds_are_whole_groups_that_cover_every_row_once():
    labels = np.array(list("abcabcddee"))
    parts = fold_rows(labels, 2, "fire")
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(10))
    assert set(labels[parts[0]]) == {"a", "c", "e"}
    assert set(labels[parts[1]]) == {"b", "d"}


def test_output_rule_is_the_callers(split):
    found = tune_surrogate(split.train, split.validation, smoke=Truncation(rank=3), **ONE)
    assert [candidate.choices["smoke_rank"] for candidate in found] == [3]


def test_the_cheapest_are_tried_first_and_the_rest_is_named(split):
    found = tune_surrogate(split.train, split.validation, most=3, confirm=1)
    tried = [c for c in found if c.problem is None]
    assert len(tried) == 3
    assert {c.choices.get("degree") for c in tried} == {1}
    untried = [c for c in found if c.problem is not None]
    assert {c.problem for c in untried} == {"not tried: beyond the first 3"}
    assert {c.family for c in untried} == {"coded", "spectral"}
    assert all(c.folds is None and c.validation is None for c in untried)


def test_no_candidate_but_the_first_begins_after_the_budget(split):
    found = tune_surrogate(split.train, split.validation, budget_seconds=0.0)
    assert [c.problem is None for c in found] == [True] + [False] * (len(found) - 1)
    assert found[1].problem == "not tried: the budget of 0 s was spent"
    assert Limits(budget_seconds=60.0).left_out(7, 59.0) is None


def test_candidate_that_cannot_be_fitted_is_said_and_passed_over(split):
    """A spectral surrogate maps one field to one."""
    two = {
        part: data.assign(burned=(data.time_since_ignition > 0.0).astype(np.float32))
        for part, data in (("train", split.train), ("validation", split.validation))
    }
    choices = {**two, "inputs": ["time_since_ignition", "burned"]}
    found = tune_surrogate(**choices, degrees=(1,), kernels=(), std_fractions=(0.9,))
    assert [c.family for c in found if c.problem is None] == ["coded"]
    failed = [c for c in found if c.family == "spectral"]
    assert len(failed) == len(plans.SPECTRAL)
    assert all("maps one field to one" in c.problem for c in failed)
    with pytest.raises(PlumecastError, match=r"no candidate could be fitted: .*maps one field"):
        tune_surrogate(**choices, families=("spectral",))


def test_progress_counts_candidates_and_confirmations(split):
    heard: list[tuple[int, int]] = []
    found = tune_surrogate(
        split.train,
        split.validation,
        degrees=(1, 2),
        std_fractions=(0.5, 0.9),
        confirm=2,
        progress=lambda done, total: heard.append((done, total)),
        **POLYNOMIALS,
    )
    total = len(found) + 2
    assert heard == [(done, total) for done in range(total + 1)]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"rank_by": "luck"}, "rank_by='luck' is unknown; choose from iou, deployable_iou, auc"),
        ({"families": ("neutral",)}, "family 'neutral' is unknown; choose from coded, spectral"),
        ({"families": ()}, "there is nothing to try; name a family or give candidates"),
        ({"kernels": ("box",)}, "kernel 'box' is unknown; choose from polynomial, matern-5/2"),
        ({"degrees": (1, 5)}, "degree=5 is not one of 1…4"),
        ({"std_fractions": (0.5, 1.5)}, r"std_fraction=1.5 is not within \(0, 1\]"),
        ({"captured": 2.0}, r"captured=2.0 is not within \(0, 1\)"),
        ({"group_by": "season"}, "'season'"),
        ({"degrees": (), "kernels": ()}, "degrees"),
        ({"std_fractions": ()}, "std_fractions"),
        ({"confirm": 0}, "confirm=0 and most=None must be at least 1"),
        ({"budget_seconds": -1.0}, "budget_seconds=-1.0 must be ≥ 0"),
        ({"folds": 1}, "folds=1 leaves nothing out; give at least 2"),
        ({"folds": 4}, r"3 ignition_id\(s\) in training cannot make 4 folds; add fires or lower"),
        ({"folds": 2}, r"2 folds of 3 ignition_id\(s\) leave a single one to train on"),
    ],
    ids=str,
)
def test_choices_that_cannot_be_met_are_refused(split, choices, message):
    with pytest.raises(PlumecastError, match=message):
        tune_surrogate(split.train, split.validation, **choices)


def test_single_ignition_cannot_be_folded(split):
    one = split.train.isel(
        snapshot=np.flatnonzero(split.train.ignition_id == split.train.ignition_id[0])
    )
    with pytest.raises(PlumecastError, match=r"1 ignition_id\(s\) in training cannot make 3 folds"):
        tune_surrogate(one, split.validation)


def test_validation_fires_that_were_trained_on_are_refused(split):
    with pytest.raises(PlumecastError, match=r"ignition_id 'ignition-\d\d' is in both the train"):
        tune_surrogate(split.train, split.train, **ONE)


def test_the_equivariant_family_wins_on_an_equivariant_world():
    """Discs whose smoke is the same wherever they burn: more fires than the shared split has."""
    world = split_by_fire(make_snapshots(fires=24), (0.6, 0.2, 0.2), seed=0)
    found = tune_surrogate(
        world.train,
        world.validation,
        degrees=(1, 2),
        kernels=("matern-5/2",),
        std_fractions=(0.9,),
        rank_by="relative_error",
        confirm=2,
    )
    assert found[0].family == "spectral"
