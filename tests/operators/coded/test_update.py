"""New snapshots between codes: appended factors, added Gram matrices, bases that grow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plumecast.compute.resources import DEFAULT_BUDGET
from plumecast.operators.coded.fit import CodedSettings, fit_coded_operator
from plumecast.operators.coded.kernels import KernelMap
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.coded.polynomial_map import (
    DualMap,
    PrimalMap,
    fit_polynomial_map,
)
from plumecast.operators.coded.update import coded_sums, update_coded_operator
from plumecast.operators.pca import Truncation, append_rows, extend_basis, fit_truncated_basis
from plumecast.operators.ridge import ridge_dual

EXACT = 1e-8  # relative, in double precision: the same systems by another route
ALL = Truncation(std_fraction=1.0)


def fields(rows: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of rank 12 on 40 cells, and outputs that depend on them quadratically."""
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(rows, 12)) * 0.7 ** np.arange(12)
    inputs = codes @ rng.normal(size=(12, 40))
    outputs = (codes + 0.3 * codes**2) @ rng.normal(size=(12, 25))
    return inputs, outputs


def fit(rows: int, **own) -> tuple[CodedOperator, float]:
    inputs, outputs = (part[:rows] for part in fields())
    groups = np.array_split(np.arange(rows), rows // 4)
    operator, chosen = fit_coded_operator(
        inputs, outputs, CodedSettings(**own), DEFAULT_BUDGET, groups=groups, names=("f", "g")
    )
    return operator, chosen["penalty"]


def updated(rows: int, rules, **own):
    """A fit to the first rows, to which the others are added in two parts."""
    operator, penalty = fit(rows, **own)
    inputs, outputs = fields()
    sums = coded_sums(operator, inputs[:rows], outputs[:rows], penalty)
    for part in (slice(rows, 26), slice(26, 30)):
        operator, sums = update_coded_operator(operator, sums, inputs[part], outputs[part], rules)
    return operator, sums


def assert_equal(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(found - expected).max() < EXACT * np.abs(expected).max()


@pytest.mark.parametrize("center", [False, True])
def test_a_dual_polynomial_equals_a_fit_to_all_codes(center):
    rules = (Truncation(std_fraction=0.9), ALL)
    operator, sums = updated(20, rules, degree=2, penalty=0.5, fire=rules[0], smoke=ALL,
                             center=center)  # fmt: skip
    assert isinstance(operator.code_map, DualMap)
    inputs, outputs = fields()
    start, _ = fit(20, degree=2, penalty=0.5, fire=rules[0], smoke=ALL, center=center)
    old = _padded(start.input_basis.encode(inputs[:20]), operator.input_basis.rank)
    middle = extend_basis(start.input_basis, inputs[20:26], rules[0])
    new = _padded(middle.encode(inputs[20:26]), operator.input_basis.rank)
    codes = np.concatenate([old, new, operator.input_basis.encode(inputs[26:])])
    scratch = fit_polynomial_map(
        codes, operator.output_basis.encode(outputs), degree=2, penalty=0.5,
        constant=sums.constant,
    )  # fmt: skip
    asked = operator.input_basis.encode(inputs)
    assert_equal(operator.code_map.predict(asked), scratch.predict(asked))


def _padded(codes: np.ndarray, rank: int) -> np.ndarray:
    return np.pad(codes, ((0, 0), (0, rank - codes.shape[1])))


@pytest.mark.parametrize("kernel", ["matern-5/2", "polynomial-1 + matern-5/2"])
def test_a_kernel_equals_a_fit_to_all_codes(kernel):
    given = {"kernel": kernel, "penalty": 0.05, "length_scale": 1.0}
    rules = (Truncation(rank=5), Truncation(rank=6))
    operator, sums = updated(20, rules, fire=rules[0], smoke=rules[1], **given)
    assert isinstance(operator.code_map, KernelMap)
    inputs, outputs = fields()
    codes, targets = operator.input_basis.encode(inputs), operator.output_basis.encode(outputs)
    # With the identity as dual weights, a map predicts its own kernel.
    probe = replace(operator.code_map, dual_weights=np.eye(30))
    scratch = ridge_dual(probe.predict(codes), targets, sums.penalty)
    assert_equal(operator.code_map.predict(codes), probe.predict(codes) @ scratch)


def test_a_polynomial_by_weights_equals_a_fit_to_all_codes():
    rules = (Truncation(rank=3), Truncation(rank=6))
    operator, _ = updated(20, rules, degree=2, penalty=0.5, fire=rules[0], smoke=rules[1])
    assert isinstance(operator.code_map, PrimalMap)
    inputs, outputs = fields()
    codes, targets = operator.input_basis.encode(inputs), operator.output_basis.encode(outputs)
    expected = fit_polynomial_map(codes, targets, degree=2, penalty=0.5)
    assert_equal(operator.code_map.predict(codes), expected.predict(codes))


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_a_linear_operator_equals_a_fit_to_all_fields(penalty):
    """With bases that lose nothing, re-truncated Gram matrices are those of all snapshots."""
    operator, _ = updated(20, (ALL, ALL), degree=1, penalty=penalty, fire=ALL, smoke=ALL)
    expected, _ = fit(30, degree=1, penalty=penalty, fire=ALL, smoke=ALL)
    inputs, _ = fields()
    assert_equal(operator.predict(inputs), expected.predict(inputs))


def test_a_truncated_basis_is_truncated_again_by_its_rule():
    rng = np.random.default_rng(1)
    snapshots = rng.normal(size=(14, 9)) * 0.5 ** np.arange(9)
    whole = fit_truncated_basis(snapshots, ALL)
    start = fit_truncated_basis(snapshots[:9], ALL)
    grown, rotation = append_rows(start, snapshots[9:], ALL)
    np.testing.assert_allclose(grown.singular_values, whole.singular_values, rtol=EXACT)
    np.testing.assert_allclose(start.encode(snapshots[:9]) @ rotation, grown.encode(snapshots[:9]))
    cut, _ = append_rows(start, snapshots[9:], Truncation(rank=3))
    np.testing.assert_allclose(cut.modes, whole.modes[:3], atol=EXACT)
    np.testing.assert_allclose(cut.modes @ cut.modes.T, np.eye(3), atol=1e-12)


def test_an_extended_basis_keeps_its_modes_and_represents_new_fields():
    rng = np.random.default_rng(2)
    old, new = np.zeros((6, 12)), np.zeros((3, 12))
    old[:, :6], new[:, 6:] = rng.normal(size=(6, 6)), rng.normal(size=(3, 6))
    basis = fit_truncated_basis(old, Truncation(std_fraction=0.9))
    grown = extend_basis(basis, new, Truncation(std_fraction=0.9))
    assert np.array_equal(grown.modes[: basis.rank], basis.modes)
    assert grown.rank > basis.rank
    np.testing.assert_allclose(grown.modes @ grown.modes.T, np.eye(grown.rank), atol=1e-12)
    limited = Truncation(std_fraction=0.9, max_rank=basis.rank + 1)
    assert extend_basis(basis, new, limited).rank == basis.rank + 1
    assert extend_basis(basis, new, Truncation(rank=4)) is basis
