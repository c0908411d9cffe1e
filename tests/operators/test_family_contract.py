"""The contract of all families: every entry of the registry must pass every test of this file.

The tests use only the registry, so that a new family is tested as soon as it is registered. The
pointwise family of the how-to page shows that: it is registered here, not in the package.
"""

from __future__ import annotations

import math
import tracemalloc
import typing
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.compute.arrays import bytes_in, to_device_of, to_numpy
from plumecast.compute.resources import HOST, Budget, Device, choose_device
from plumecast.operators.coded.correction import CorrectedMap
from plumecast.operators.family import NOTHING, Family, FittedMap, TrainingSet
from plumecast.operators.neural.map import SIZES
from plumecast.operators.settings import FAMILIES, Settings
from plumecast.surrogate import surrogate as surrogate_module
from plumecast.surrogate.file import load_value, save_value
from plumecast.surrogate.load import SHARED_CLASSES
from support.how_to import page_module
from support.snapshots import make_snapshots

POINTWISE = page_module("add-an-operator.md", "pointwise").POINTWISE
NAMES = [*FAMILIES, POINTWISE.name]
PLAIN = "coded, plain"
"""The paper's operator between codes of the fields themselves, without a lift."""

TARGETS = ("log", "smoke", "footprint")
LIFTED = {"lift": ("age-bins", "burned"), "products": ("hours",), "targets": TARGETS}
QUICK = {"epochs": 1, "layers": 2}
"""Choices that make a fit quick, for the families that have them."""

SMALL = {"width": 8, "levels": 2, "modes": 3, "layers": 2}
"""Sizes of the networks."""

ROUNDING = 1e-5
"""Relative to the largest value: products of float32 matrices of another height, or in another
library, are summed in another order; the coded families compute in float64."""

FIT_ROUNDING = 1e-3
"""Relative to the largest value: float32 systems of equations are solved on another device, and the
ramps of a second layer begin at quantiles of predictions."""

COPIES = 1.5
"""A prediction may take this multiple of its inputs and outputs beside its plan, for codes and
conversions of type: all callers of `prediction_rows` allow for several arrays of that size."""


@pytest.fixture(scope="module", autouse=True)
def registry():
    """The registry with one more family, and small networks on one thread."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FAMILIES, POINTWISE.name, POINTWISE)
        for name, sizes in SIZES.items():
            patch.setitem(SIZES, name, {size: SMALL[size] for size in sizes})
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    """Ten fires of five ignitions, three checkpoints each, on 8 by 10 cells."""
    return make_snapshots(fires=10, checkpoints=3)


@dataclass(frozen=True)
class Case:
    """A fitted surrogate of one family."""

    family: Family
    surrogate: pc.Surrogate


def quick(family: Family) -> dict[str, Any]:
    """The quick choices that a family has."""
    known = {item.name for item in fields(family.settings)}
    return {name: value for name, value in QUICK.items() if name in known}


@pytest.fixture(scope="module", params=[*NAMES, PLAIN])
def case(request, data) -> Case:
    family = FAMILIES["coded" if request.param == PLAIN else request.param]
    choices = {} if request.param == PLAIN else LIFTED
    return Case(family, pc.fit_surrogate(data, family=family.name, **choices, **quick(family)))


@pytest.fixture(params=NAMES)
def family(request) -> Family:
    return FAMILIES[request.param]


def fit_fields(family: Family, training: TrainingSet, *, device: Device = HOST, **own) -> FittedMap:
    """The fit of a family's field map, straight from its registry entry."""
    chosen = replace(family.settings(), **quick(family) | own)
    settings = Settings(chosen, family=family.name, **LIFTED)
    return family.fit(training, settings, Budget(device))


@pytest.fixture(scope="module")
def training(data) -> TrainingSet:
    smoke = data.smoke.values
    targets = np.stack([np.log1p(smoke), smoke, smoke > 1.0], axis=1).astype(np.float32)
    fire, groups = data.time_since_ignition.values, data.ignition_id.values
    return TrainingSet(fire, targets, groups, NOTHING)


def both(surrogate: pc.Surrogate, data: xr.Dataset) -> np.ndarray:
    """(2, M, y, x) smoke and detection score in double precision, so that nothing is rounded."""
    return np.stack(surrogate.predict_both(data.astype(np.float64)))


def assert_close(found: np.ndarray, expected: np.ndarray, share: float) -> None:
    """Equal up to a share of the largest value of smoke and of score."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=share * np.abs(other).max())


def flags(settings: type) -> list[dict[str, bool]]:
    """The default settings, and each switch of them turned the other way."""
    own = settings()
    switches = [item.name for item in fields(own) if isinstance(getattr(own, item.name), bool)]
    return [{}, *({name: not getattr(own, name)} for name in switches)]


def test_an_empty_fire_gives_no_smoke(case, data):
    empty = data.assign(time_since_ignition=0.0 * data.time_since_ignition)
    assert not both(case.surrogate, empty).any()
    assert both(case.surrogate, data).any(axis=(1, 2, 3)).all()


def test_a_permutation_of_the_snapshots_permutes_the_predictions(case, data):
    """Up to rounding: the place of a row in a matrix decides the order of the sums of its block."""
    order = np.random.default_rng(0).permutation(data.sizes["snapshot"])
    found = both(case.surrogate, data.isel(snapshot=order))
    assert_close(found, both(case.surrogate, data)[:, order], ROUNDING)


def test_saved_and_loaded_it_predicts_bit_for_bit(case, data, tmp_path):
    loaded = pc.load_surrogate(case.surrogate.save(tmp_path / "one.plume"))
    np.testing.assert_array_equal(both(loaded, data), both(case.surrogate, data))
    assert loaded.detects == case.surrogate.detects


def test_predictions_in_blocks_equal_the_whole(case, data, monkeypatch):
    whole = both(case.surrogate, data)
    monkeypatch.setattr(surrogate_module, "PREDICT_BLOCK", 7)
    assert_close(both(case.surrogate, data), whole, ROUNDING)


def test_predictions_on_a_device_equal_those_on_the_host(case, data):
    assert_close(
        both(case.surrogate.on_device("torch"), data), both(case.surrogate, data), ROUNDING
    )


def test_a_fit_on_a_device_equals_that_on_the_host(family, training):
    """The field map of a fit on a device is on the host."""
    found, expected = (
        np.moveaxis(fitted.field_map.predict(training.fire, NOTHING), 1, 0)
        for fitted in (
            fit_fields(family, training, device=choose_device("torch")),
            fit_fields(family, training),
        )
    )
    assert isinstance(found, np.ndarray)
    assert_close(found, expected, FIT_ROUNDING)


@pytest.mark.parametrize("count", [24, 512])
def test_the_memory_plan_holds(case, data, count):
    """Beside the operator, the inputs and the outputs, a prediction takes at most its
    `working_bytes` and an allowance. The memory of PyTorch cannot be measured here: a plan for it
    must be positive and finite."""
    operator = case.surrogate.operator
    fixed, per_row = operator.working_bytes()
    assert math.isfinite(fixed + per_row)
    assert min(fixed, per_row) >= 0.0
    if case.family.extra is not None:
        assert fixed + per_row > 0.0
        return
    many = data.isel(snapshot=np.arange(count) % data.sizes["snapshot"])
    stored, given = case.surrogate.read_rows(many)
    inputs = to_device_of(operator, stored)
    operator.predict_both(inputs, given)  # whatever is imported or cached at first use
    tracemalloc.start()
    try:
        found = operator.predict_both(inputs, given)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    outputs = bytes_in(tuple(values for values in found if values is not None))
    allowed = fixed + per_row * count + COPIES * (bytes_in(inputs) + outputs)
    assert peak - outputs <= allowed


def bad_values(settings: type) -> list[dict[str, Any]]:
    """A value out of range for every number of a settings class, an unknown name for every text."""
    bad: list[dict[str, Any]] = []
    for name, hint in typing.get_type_hints(settings).items():
        kinds = {hint, *typing.get_args(hint)}
        if kinds & {int, float}:
            bad.append({name: -1})
        elif str in kinds:
            bad.append({name: "unheard-of"})
    return bad


def test_settings_refuse_bad_values_and_name_them(family):
    bad = bad_values(family.settings)
    assert bad
    for choice in bad:
        ((name, value),) = choice.items()
        no_such = f"has no {name.replace('_', ' ')}"
        with pytest.raises(pc.PlumecastError, match=f"{name}={value}|'{value}'|{no_such}"):
            family.settings(**choice)


def test_choices_of_other_families_are_refused(family, data):
    others = {item.name for other in FAMILIES.values() for item in fields(other.settings)}
    foreign = sorted(others - {item.name for item in fields(family.settings)} - {"fire", "smoke"})
    assert foreign
    for name in foreign:
        with pytest.raises(
            pc.PlumecastError, match=f"the {family.name} family has no setting '{name}'"
        ):
            pc.fit_surrogate(data, family=family.name, **LIFTED, **{name: 1})


def test_out_of_fold_predictions_come_from_maps_without_the_group(family, training):
    """A map that saw a snapshot predicts it better. A family may also leave a fold out for good, as
    networks do; then its map cannot depend on the targets of that fold, here mirrored, which keeps
    their size."""
    fitted = fit_fields(family, training)
    rows, fire = fitted.rows, training.fire[fitted.rows]
    assert 0 < rows.size <= training.fire.shape[0]
    assert np.unique(rows).size == rows.size
    whole_groups = np.isin(training.groups, training.groups[rows])
    np.testing.assert_array_equal(np.flatnonzero(whole_groups), np.sort(rows))
    found = to_numpy(fitted.out_of_fold[np.arange(rows.size)])
    truth = training.targets[rows]
    assert found.shape == truth.shape
    some = np.array([2, 0])
    assert_close(to_numpy(fitted.out_of_fold[some]), found[some], ROUNDING)
    in_sample = fitted.field_map.predict(fire, NOTHING)
    sizes = np.abs(truth).max(axis=(0, 2, 3), keepdims=True)
    if (np.abs(found - in_sample) > ROUNDING * sizes).any():
        assert np.linalg.norm((in_sample - truth) / sizes) < np.linalg.norm((found - truth) / sizes)
        return
    targets = training.targets.copy()
    targets[rows] = targets[rows][..., ::-1]
    again = fit_fields(family, replace(training, targets=targets))
    np.testing.assert_array_equal(again.field_map.predict(fire, NOTHING), in_sample)


def test_with_every_switch_no_fire_gives_no_smoke_and_files_need_the_familys_classes(
    family, training, tmp_path
):
    known = {kind.__name__: kind for kind in (*SHARED_CLASSES, *family.saved)}
    assert all(is_dataclass(kind) for kind in family.saved)
    for own in flags(family.settings):
        fitted = fit_fields(family, training, **own)
        saved = fitted.field_map
        if fitted.correction is not None:
            saved = CorrectedMap(saved, fitted.correction.shared(1.0))
        assert not saved.predict(0.0 * training.fire, NOTHING).any()
        loaded = load_value(save_value(saved, tmp_path / "map.plume"), known)
        found, expected = (each.predict(training.fire, NOTHING) for each in (loaded, saved))
        np.testing.assert_array_equal(found, expected)
