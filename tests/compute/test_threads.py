"""Several cores give what one gives, in order and to the last digit."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import plumecast as pc
from plumecast.compute import blocks
from plumecast.compute.blocks import cores, map_slices, map_threads
from plumecast.operators.spectral import equations
from plumecast.operators.spectral import fit as spectral_fit
from plumecast.operators.spectral import map as spectral
from support.snapshots import make_snapshots


@pytest.fixture
def three_cores(monkeypatch):
    for module in (blocks, spectral, spectral_fit):
        monkeypatch.setattr(module, "cores", lambda: 3)


def test_results_come_in_the_order_of_the_items():
    def late(number: int) -> int:
        time.sleep(0.002 * (5 - number % 5))
        return number

    assert list(map_threads(late, range(20), 4)) == list(range(20))
    assert list(map_threads(late, [], 4)) == []


def test_items_are_worked_on_side_by_side_and_few_wait():
    together = threading.Barrier(3, timeout=120.0)  # passes only with three at once
    taken = []

    def items():
        for number in range(12):
            taken.append(number)
            yield number

    found = map_threads(lambda number: together.wait() >= 0 and number, items(), 3)
    next(found)
    assert len(taken) <= 5  # three at work, one result, one item in hand
    assert len(list(found)) == 11


def test_one_blas_thread_while_threads_work_and_all_of_them_after():
    before = cores()
    inside = list(map_threads(lambda _: cores(), range(4), 2))
    assert inside == [1] * 4
    assert cores() == before


@pytest.mark.parametrize("ends", ["in order", "crossed"])
def test_callers_at_the_same_time_give_blas_back(ends):
    before = cores()
    one, other = (map_threads(lambda n: n, range(6), 2) for _ in range(2))
    next(one), next(other)
    assert cores() == 1
    first, second = (one, other) if ends == "crossed" else (other, one)
    first.close()  # as when a caller fails before the end
    assert cores() == 1
    assert len(list(second)) == 5
    assert cores() == before


def test_an_error_ends_the_work_and_is_raised():
    def fail(number: int) -> int:
        if number == 3:
            raise pc.PlumecastError("the third")
        return number

    with pytest.raises(pc.PlumecastError, match="the third"):
        list(map_threads(fail, range(100), 2))


@pytest.mark.parametrize(("count", "least", "slices"), [(10, 1, 3), (10, 4, 2), (3, 4, 1)])
def test_slices_cover_the_rows(three_cores, count, least, slices):
    rows = np.arange(count)
    parts = map_slices(lambda part: rows[part], count, rows, least)
    assert len(parts) == slices
    np.testing.assert_array_equal(np.concatenate(parts), rows)


def test_a_spectral_fit_on_three_cores_is_that_on_one(request, monkeypatch):
    monkeypatch.setattr(equations, "FEWEST", 8)  # so that few frequencies are shared out
    data = make_snapshots(shape=(6, 7), droughts=("high",), fires=6)
    one = pc.fit_surrogate(data, "recommended", layers=2)
    expected = one.predict(data)
    request.getfixturevalue("three_cores")
    other = pc.fit_surrogate(data, "recommended", layers=2)
    np.testing.assert_array_equal(other.predict(data), expected)
    assert other.training["leave_out_error"] == one.training["leave_out_error"]
