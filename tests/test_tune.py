"""Tuning: every candidate scored once, ranked, and repeatable by `fit_surrogate`."""

from __future__ import annotations

import numpy as np
import pytest

from plumecast import tune
from plumecast.encode import Truncation, rank_for_std
from plumecast.errors import PlumecastError
from plumecast.fit import fit_surrogate
from plumecast.quantity.footprint import relative_error
from plumecast.tune import RANK_BY, STD_FRACTIONS, tune_surrogate

REFIT = 1e-6
"""Relative. The scan solves by an eigendecomposition, the refit by Cholesky, at penalties down to
1e-10 of the kernel: rounding of 1e-16 grows up to that inverse."""


@pytest.fixture(scope="module")
def candidates(split):
    return tune_surrogate(split.train, split.validation, degrees=(1, 2, 3))


@pytest.mark.parametrize("rank_by", RANK_BY)
def test_candidates_are_sorted_from_best_to_worst(split, rank_by):
    ranked = tune_surrogate(split.train, split.validation, degrees=(1, 2), rank_by=rank_by)
    values = [getattr(candidate, rank_by) for candidate in ranked]
    assert values == sorted(values, reverse=rank_by != "relative_error")
    assert len(values) > 4


def test_every_degree_is_tried_at_every_rank_of_the_shares(candidates, split):
    fires = split.train.time_since_ignition.values.reshape(24, 80).astype(np.float64)
    spectrum = np.linalg.svd(fires, compute_uv=False)
    ranks = {rank_for_std(spectrum, fraction) for fraction in STD_FRACTIONS}
    expected = {(degree, rank) for degree in (1, 2, 3) for rank in ranks}
    assert len(candidates) == len(expected)
    assert {(c.degree, c.fire_rank) for c in candidates} == expected


def test_ranks_beyond_the_largest_of_a_degree_are_cut(split, monkeypatch):
    monkeypatch.setattr(tune, "MAX_RANK", {1: 2000, 2: 4})
    found = tune_surrogate(split.train, split.validation, degrees=(1, 2), std_fractions=(0.5, 0.95))
    ranks = {d: sorted(c.fire_rank for c in found if c.degree == d) for d in (1, 2)}
    assert max(ranks[1]) > 4
    assert ranks[2] == sorted({min(rank, 4) for rank in ranks[1]})


def test_settings_of_every_candidate_repeat_it(candidates, split):
    for candidate in candidates:
        surrogate = fit_surrogate(split.train, **candidate.settings())
        predicted = surrogate.predict(split.validation)
        error = relative_error(predicted, split.validation.smoke)
        assert error == pytest.approx(candidate.relative_error, rel=REFIT)
        assert surrogate.training["penalty"] == candidate.penalty


def test_penalty_and_error_are_those_fit_surrogate_finds_alone(candidates, split):
    for candidate in candidates:
        training = fit_surrogate(
            split.train,
            degree=candidate.degree,
            fire_rank=candidate.fire_rank,
            smoke_rank=candidate.smoke_rank,
        ).training
        assert training["penalty"] == pytest.approx(candidate.penalty, rel=1e-9)
        assert training["leave_out_error"] == pytest.approx(candidate.leave_out_error, rel=REFIT)


def test_output_rule_is_the_callers(split):
    found = tune_surrogate(
        split.train, split.validation, degrees=(1,), smoke=Truncation(rank=3), std_fractions=(0.9,)
    )
    assert [candidate.smoke_rank for candidate in found] == [3]


def test_progress_counts_to_the_number_of_candidates(split):
    heard: list[tuple[int, int]] = []
    found = tune_surrogate(
        split.train,
        split.validation,
        degrees=(1, 2),
        std_fractions=(0.5, 0.9),
        progress=lambda done, total: heard.append((done, total)),
    )
    assert heard == [(done, len(found)) for done in range(len(found) + 1)]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"rank_by": "luck"}, "rank_by='luck' is unknown; choose from iou, deployable_iou, auc"),
        ({"degrees": (1, 5)}, "degree=5 is not one of 1…4"),
        ({"std_fractions": (0.5, 1.5)}, r"std_fraction=1.5 is not within \(0, 1\]"),
        ({"captured": 2.0}, r"captured=2.0 is not within \(0, 1\)"),
        ({"group_by": "season"}, "'season'"),
        ({"degrees": ()}, "degrees"),
        ({"std_fractions": ()}, "std_fractions"),
    ],
    ids=str,
)
def test_choices_that_cannot_be_met_are_refused(split, choices, message):
    with pytest.raises(PlumecastError, match=message):
        tune_surrogate(split.train, split.validation, **choices)


def test_single_ignition_cannot_choose_a_penalty(split):
    one = split.train.isel(
        snapshot=np.flatnonzero(split.train.ignition_id == split.train.ignition_id[0])
    )
    with pytest.raises(PlumecastError, match="training holds a single fire"):
        tune_surrogate(one, split.validation)


def test_validation_fires_that_were_trained_on_are_refused(split):
    with pytest.raises(PlumecastError, match=r"ignition_id 'ignition-\d\d' is in both the train"):
        tune_surrogate(split.train, split.train, degrees=(1,))
