"""Tuning: every candidate scored once, ranked, and repeatable by `fit_surrogate`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE
from plumecast.compute.resources import Resources
from plumecast.data.split import split_by_fire
from plumecast.operators.pca import Truncation, rank_for_std
from plumecast.operators.settings import PRESETS, Settings, choose_settings
from plumecast.scores.footprint import relative_error, score_footprints, smoke_threshold
from plumecast.surrogate.fit import fit_surrogate
from plumecast.workflows.tune import candidates as plans
from plumecast.workflows.tune.candidates import SearchSpace, fold_rows
from plumecast.workflows.tune.tune import (
    Candidate,
    SearchLimits,
    sort_key,
    tune_surrogate,
)
from support.convolved_fires import snapshots
from support.snapshots import make_snapshots

REFIT = 1e-6
"""Relative. The scan solves by an eigendecomposition, the refit by Cholesky, at penalties down to
1e-10 of the kernel: rounding of 1e-16 grows up to that inverse."""

SHAPE = (4, 6)
"""Cells of the small grid: a spectral fit takes time in proportion to them."""

ONE_CELL = 1 / 24
"""Of the small grid: rounding may order two cells of nearly the same smoke either way."""

POLYNOMIALS = {"families": ("coded",), "kernels": ()}
ONE = {**POLYNOMIALS, "degrees": (1,), "std_fractions": (0.9,)}


def tune(train: xr.Dataset, validation: xr.Dataset, **choices: Any) -> list[Candidate]:
    """`tune_surrogate` with the fields of its values as keywords."""
    values = {
        name: kind(**{f.name: choices.pop(f.name) for f in fields(kind) if f.name in choices})
        for name, kind in (("space", SearchSpace), ("limits", SearchLimits))
    }
    return tune_surrogate(train, validation, **values, **choices)


@pytest.fixture(scope="module")
def small_snapshots():
    """The shared snapshots on fewer cells."""
    return make_snapshots(shape=SHAPE)


@pytest.fixture(scope="module")
def small_split():
    """Three ignitions to train, one to validate, two to test, under one drought."""
    return split_by_fire(make_snapshots(fires=6, shape=SHAPE, droughts=("high",)), seed=1)


@pytest.mark.parametrize("rank_by", ["iou", "relative_error"])
def test_confirmed_come_first_and_each_part_is_sorted(split, rank_by):
    found = tune(
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
    best = [sort_key(c.folds, rank_by) for c in found]
    assert max(best[:2]) <= min(best[2:])


def test_every_degree_is_tried_at_every_rank_of_the_shares_up_to_its_largest(split, monkeypatch):
    monkeypatch.setattr(plans, "MAX_RANK", {1: 2000, 2: 2000, 3: 4})
    found = tune(split.train, split.validation, degrees=(1, 2, 3), **POLYNOMIALS)
    fires = split.train.time_since_ignition.values.reshape(24, 80).astype(np.float64)
    spectrum = np.linalg.svd(fires, compute_uv=False)
    ranks = {rank_for_std(spectrum, fraction) for fraction in plans.STD_FRACTIONS}
    assert max(ranks) > 4
    expected = {(degree, rank) for degree in (1, 2) for rank in ranks}
    expected |= {(3, min(rank, 4)) for rank in ranks}
    assert len(found) == len(expected)
    assert {(c.choices["degree"], c.choices["fire_rank"]) for c in found} == expected


def test_all_families_are_tried(split):
    space = SearchSpace(degrees=(1,), std_fractions=(0.9,))
    every = space.plans(split.train, FIRE, "ignition_id")
    assert {plan.family for plan in every} == {"coded", "lifted", "spectral"}
    names = [plan.name for plan in every]
    assert len(set(names)) == len(names)
    kernels = {plan.choices.get("kernel") for plan in every if plan.family == "coded"}
    assert kernels == {None, *plans.KERNELS}
    lifted = {
        (p.choices["targets"], p.choices.get("kernel")) for p in every if p.family == "lifted"
    }
    of_maps = (None, "polynomial-1 + matern-5/2")
    assert lifted == {(t, k) for t in (("log",), ("log", "smoke", "footprint")) for k in of_maps}
    # The fires of the shared split have no weather of their own.
    assert {n for n in names if "spectral" in n} == {f"spectral, {name}" for name in plans.SPECTRAL}


def test_one_candidate_of_each_kind_has_the_scores_of_fits_by_hand(small_split):
    """Confirmed: the fit with its settings. By folds: each of the three training ignitions
    predicted by a fit to the other two, footprints by the detection score where there is one."""
    found = tune(
        *(small_split.train, small_split.validation),
        families=("coded", "lifted"),
        candidates={"quick": {"preset": "quick", "layers": 1}},
        degrees=(1,),
        kernels=("matern-5/2",),
        std_fractions=(0.9,),
        confirm=99,
    )
    assert all(candidate.problem is None for candidate in found)
    assert len(found) == 7
    train, validation = small_split.train, small_split.validation
    labels = train.ignition_id.values
    tau = smoke_threshold(train.smoke, 0.95)
    detecting = 0
    for candidate in found:
        choices = candidate.settings()
        surrogate = fit_surrogate(train, **choices)
        error = relative_error(surrogate.predict(validation), validation.smoke)
        assert error == pytest.approx(candidate.validation.relative_error, rel=REFIT)
        for name in ("penalty", "length_scale", "smoke_rank"):
            if name in choices:
                assert surrogate.training[name] == choices.pop(name)  # chosen anew in every fold
        predicted, detected = np.empty(train.smoke.shape), np.empty(train.smoke.shape)
        for rows in fold_rows(labels, 3, "ignition_id"):
            rest = train.isel(snapshot=np.setdiff1d(np.arange(labels.size), rows))
            surrogate = fit_surrogate(rest, **choices)
            held_out = train.isel(snapshot=rows)
            predicted[rows] = detected[rows] = surrogate.predict(held_out)
            if surrogate.detects:
                detected[rows] = surrogate.predict_footprint(held_out)
        detecting += surrogate.detects
        error = relative_error(predicted, train.smoke.values)
        assert error == pytest.approx(candidate.folds.relative_error, rel=REFIT), candidate.name
        scores = score_footprints(detected, train.smoke.values, tau)
        assert candidate.folds.auc == pytest.approx(float(scores.auc.median()), abs=ONE_CELL)
    assert 0 < detecting < 7


def test_candidates_of_ones_own_are_tried_first_and_may_fail(split):
    candidates = {
        "centred": {"degree": 1, "center": True, "penalty": 0.5},
        "impossible": {"degree": 1, "fire_rank": 900},
    }
    found = tune(split.train, split.validation, families=(), candidates=candidates)
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


def test_recommended_and_the_cheapest_are_tried_first_and_the_rest_is_named(small_split):
    found = tune(small_split.train, small_split.validation, most=3, confirm=1)
    tried = [c for c in found if c.problem is None]
    assert len(tried) == 3
    assert sorted(c.name for c in tried if c.family == "spectral") == ["spectral, recommended"]
    assert {c.choices.get("degree") for c in tried if c.family == "coded"} == {1}
    untried = [c for c in found if c.problem is not None]
    assert {c.problem for c in untried} == {"not tried: beyond the first 3"}
    assert {c.family for c in untried} == {"coded", "lifted", "spectral"}
    assert all(c.folds is None and c.validation is None for c in untried)


def test_no_candidate_but_the_first_begins_after_the_budget(small_split):
    found = tune(small_split.train, small_split.validation, budget_seconds=0.0)
    assert [c.problem is None for c in found] == [True] + [False] * (len(found) - 1)
    assert found[1].problem == "not tried: the budget of 0 s was spent"
    assert SearchLimits(budget_seconds=60.0).left_out(7, 59.0) is None


def test_candidate_that_cannot_be_fitted_is_said_and_passed_over(split):
    """A surrogate with a lift maps one field to one."""
    two = {
        part: data.assign(burned=(data.time_since_ignition > 0.0).astype(np.float32))
        for part, data in (("train", split.train), ("validation", split.validation))
    }
    choices = {**two, "inputs": ["time_since_ignition", "burned"]}
    found = tune(**choices, degrees=(1,), kernels=(), std_fractions=(0.9,))
    assert [c.family for c in found if c.problem is None] == ["coded"]
    failed = [c for c in found if c.family != "coded"]
    assert len(failed) == len(plans.SPECTRAL) + 4
    assert all("has one input, not 2" in c.problem for c in failed)
    with pytest.raises(PlumecastError, match=r"no candidate could be fitted: .*has one input"):
        tune(**choices, families=("spectral",))


def test_progress_counts_candidates_and_confirmations_and_the_output_rule_is_the_callers(split):
    heard: list[tuple[int, int, str]] = []
    resources = Resources(progress=lambda *step: heard.append(step))
    found = tune(
        *(split.train, split.validation),
        **{**ONE, "std_fractions": (0.5, 0.9)},
        smoke=Truncation(rank=3),
        confirm=1,
        resources=resources,
    )
    assert {candidate.choices["smoke_rank"] for candidate in found} == {3}
    total = len(found) + 1
    assert heard == [(done, total, "candidates") for done in range(total + 1)]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"rank_by": "luck"}, "rank_by='luck' is unknown; choose from iou, deployable_iou, auc"),
        ({"families": ("neutral",)}, "family 'neutral' is unknown; choose from coded, lifted"),
        ({"families": ()}, "there is nothing to try; name a family or give candidates"),
        ({"kernels": ("box",)}, "kernel 'box' is unknown; choose from polynomial, matern-5/2"),
        ({"degrees": (1, 5)}, "degree=5 is not one of 1…4"),
        ({"std_fractions": (0.5, 1.5)}, r"std_fraction=1.5 is not within \(0, 1\]"),
        ({"captured": 2.0}, r"captured=2 is not within \(0, 1\)"),
        ({"group_by": "season"}, "'season'"),
        ({"resources": Resources("torch")}, "leave device, memory and runner out"),
        ({"degrees": (), "kernels": ()}, "degrees"),
        ({"std_fractions": ()}, "std_fractions"),
        ({"confirm": 0}, "confirm=0 must be at least 1"),
        ({"budget_seconds": -1.0}, "budget_seconds=-1 must be ≥ 0"),
        ({"folds": 1}, "folds=1 leaves nothing out; give at least 2"),
        ({"folds": 4}, r"3 ignition_id\(s\) in training cannot make 4 folds; add fires or lower"),
        ({"folds": 2}, r"2 folds of 3 ignition_id\(s\) leave a single one to train on"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_choices_that_cannot_be_met_are_refused(split, choices, message):
    with pytest.raises(PlumecastError, match=message):
        tune(split.train, split.validation, **choices)


def test_loose_arguments_of_earlier_versions_still_work(split):
    with (
        pytest.deprecated_call(match="use space=SearchSpace"),
        pytest.deprecated_call(match="use limits=SearchLimits"),
    ):
        (found,) = tune_surrogate(
            split.train, split.validation, families=(), given={"mine": {"degree": 1}}, confirm=1
        )
    assert found.name == "mine"


def test_validation_fires_that_were_trained_on_are_refused(split):
    with pytest.raises(PlumecastError, match=r"ignition_id 'ignition-\d\d' is in both the train"):
        tune(split.train, split.train, **ONE)


def test_the_equivariant_family_wins_on_an_equivariant_world():
    """Discs whose smoke is the same wherever they burn: more fires than the shared split has."""
    world = split_by_fire(make_snapshots(fires=12, droughts=("high",)), (0.6, 0.2, 0.2), seed=0)
    found = tune(
        world.train,
        world.validation,
        families=("coded", "lifted"),
        candidates={"recommended": {"preset": "recommended"}},
        degrees=(1, 2),
        kernels=("matern-5/2",),
        std_fractions=(0.9,),
        rank_by="relative_error",
        confirm=2,
    )
    assert found[0].name == "recommended"


# What the weather gives reason to try


def with_weather(data: xr.Dataset, *, wind: object, moisture: object) -> xr.Dataset:
    """Snapshots with functions of (ignition number, drought number) as their weather."""
    ignition = np.unique(data.ignition_id, return_inverse=True)[1]
    drought = np.unique(data.drought, return_inverse=True)[1]
    values = {
        "wind_speed": 4.0 + 0.0 * ignition,
        "wind_from_direction": wind(ignition, drought) % 360.0,
        "fuel_moisture": moisture(ignition, drought),
    }
    return data.assign_coords({name: ("snapshot", item) for name, item in values.items()})


def by_drought(ignition, drought):
    return 0.05 + 0.02 * drought


def by_fire(ignition, drought):
    return by_drought(ignition, drought) + 0.01 * ignition


@pytest.mark.parametrize(
    ("wind", "moisture", "expected"),
    [
        (lambda i, d: 90.0 * d, by_drought, set()),
        (
            lambda i, d: 40.0 * i,
            by_drought,
            {"wind frame", "wind-stretch frame", "wind as covariate"},
        ),
        (lambda i, d: 90.0 * d, by_fire, {"fuel_moisture as covariate"}),
    ],
    ids=["of the drought", "winds of fires", "moistures of fires"],
)
def test_frames_and_covariates_are_tried_where_fires_differ(
    small_snapshots, wind, moisture, expected
):
    world = split_by_fire(with_weather(small_snapshots, wind=wind, moisture=moisture), seed=1)
    found = SearchSpace(families=("spectral",)).plans(world.train, FIRE, "ignition_id")
    more = {plan.name.removeprefix("spectral, ") for plan in found} - set(plans.SPECTRAL)
    assert more == expected


def test_wind_and_covariates_are_tuned_beyond_the_range_of_a_fold():
    """Each fold's fires have a wind and a moisture that the rest does not have: no warning."""
    world = make_snapshots(fires=6, shape=SHAPE, droughts=("high",))
    world = with_weather(world, wind=lambda i, d: 40.0 * i, moisture=by_fire)
    world = split_by_fire(world, seed=1)
    weather = [
        plan
        for plan in plans.spectral_plans(
            winds=True, covariates=("fuel_moisture", "wind_speed", "wind_from_direction")
        )
        if {"frame", "covariates"} & set(plan.choices)
    ]
    small = {"layers": 1, "physics": "none"}
    candidates = {plan.name: plan.choices | small for plan in weather}
    wind = candidates["spectral, wind as covariate"]
    wind["covariates"] = ("wind_from_direction",)  # one speed for all
    found = tune(world.train, world.validation, families=(), candidates=candidates, confirm=99)
    assert len(found) == 4
    assert all(c.problem is None and c.validation is not None for c in found)


def test_spectral_candidates_are_single_changes_of_the_recommended_by_their_cost():
    preset = PRESETS["recommended"]
    suggested = plans.spectral_plans(winds=True, covariates=("fuel_moisture",))
    for plan in suggested:
        chosen = choose_settings(**plan.choices)
        changed = {
            f.name for f in fields(Settings) if getattr(chosen, f.name) != getattr(preset, f.name)
        }
        if plan.choices["preset"] == "recommended":
            assert len(changed - {"preset"}) == (plan.name != "spectral, recommended")
        else:
            assert plan.name == f"spectral, {plan.choices['preset']}"
            assert chosen == PRESETS[plan.choices["preset"]]
    cost = {plan.name.removeprefix("spectral, "): plan.cost for plan in suggested}
    order = ("quick", "1 layer", "no product", "2 layers", "recommended", "5 age bins")
    costs = [cost[name] for name in (*order, "wind frame")]
    assert costs == sorted(set(costs))


# Networks


@pytest.mark.usefixtures("one_thread")
def test_networks_are_tried_when_asked_for(split):
    quick = {"one epoch": {"family": "fno", "epochs": 1}}  # what is given is tried first
    found = tune(split.train, split.validation, families=plans.NETWORKS, candidates=quick, most=1)
    assert [c.name for c in found] == ["one epoch", "unet", "fno"]
    assert found[0].validation is not None
    assert found[0].settings() == quick["one epoch"]
    assert all(choose_settings(**c.choices).family == c.family for c in found[1:])


# -- cross-validation of anything: every snapshot is predicted once, without its group


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return snapshots(ignitions=8)


def linear(train: xr.Dataset) -> pc.Surrogate:
    return pc.fit_surrogate(train, "paper-linear")


def test_every_snapshot_is_predicted_by_a_fit_without_its_ignition(data):
    seen = []

    def fit(train):
        seen.append(set(train.ignition_id.values.tolist()))
        return linear(train)

    result = pc.cross_validate(data, fit, folds=4)
    assert result.predicted.dims == data.smoke.dims
    assert result.predicted.attrs == data.smoke.attrs
    fold = result.scores.fold.values
    for number, ignitions in enumerate(seen):
        rows = np.flatnonzero(fold == number)
        assert not ignitions & set(data.ignition_id.values[rows].tolist())
        train = data.isel(snapshot=np.isin(data.ignition_id.values, sorted(ignitions)))
        expected = linear(train).predict(data.isel(snapshot=rows))
        np.testing.assert_array_equal(result.predicted.values[rows], expected.values)
        error = pc.scores.relative_error(expected, data.smoke.isel(snapshot=rows))
        assert float(result.folds.relative_error[number]) == error
    assert result.scores.ignition_id.values.tolist() == data.ignition_id.values.tolist()
    assert ((result.scores.iou >= 0.0) & (result.scores.iou <= 1.0)).all()
    assert len(repr(result).splitlines()) == 3


def test_any_function_that_predicts(data):
    result = pc.cross_validate(
        data, lambda train: lambda test: test.smoke.values, by="fire_id", folds=None
    )
    assert result.folds.sizes["fold"] == 16
    assert float(result.scores.relative_error.max()) == 0.0
    assert float(result.scores.iou.min()) == 1.0


def test_several_outputs_along_another_dimension(data):
    both = data.assign(lift=-data.smoke)[["time_since_ignition", "smoke", "lift"]]
    both = both.drop_vars(list(both.coords)).rename(snapshot="member")
    names = ["smoke", "lift"]
    result = pc.cross_validate(
        both, lambda train: lambda test: test[names] * 0.5, outputs=names, folds=3
    )
    assert set(result.predicted.data_vars) == set(names)
    np.testing.assert_allclose(result.folds.relative_error_lift, 0.5, rtol=1e-6)
    np.testing.assert_allclose(result.scores.relative_error_smoke, 0.5, rtol=1e-6)
    assert result.scores.fold.dims == ("member",)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"by": "place"}, "by='place' is not a coordinate of the data; name one, or 'snap"),
        ({"outputs": "dust"}, "outputs='dust' is not in the data; found time_since_ignition"),
        ({"folds": 1}, "folds=1 leaves nothing out"),
        ({"folds": 9}, r"8 ignition_id\(s\) in training cannot make 9 folds"),
        ({"fit": lambda train: 3.0}, "returned a float; it must return an object with predict"),
        ({"fit": lambda train: lambda test: np.zeros(3)}, r"'smoke' has shape \(3,\), not \("),
    ],
)
def test_wrong_choices_are_named(data, choices, message):
    with pytest.raises(pc.PlumecastError, match=message):
        pc.cross_validate(data, **{"fit": linear, "folds": 4} | choices)
