"""Matrices that are read in blocks of rows, sums over the blocks, and thread pools. Arrays only.

Everything that a fit needs of many snapshots is a sum over them. A matrix that does not fit into
memory is therefore read block by block and the partial results are added; a matrix in memory is a
single block. An executor, such as a cluster, can compute the partial results elsewhere.

NumPy releases the interpreter lock while it computes, but BLAS uses several cores only for large
products. In a thread pool whole tasks run in parallel, each with one BLAS thread.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np

from plumecast.compute.arrays import Array, Rows, array_namespace, is_numpy_array, read_rows

VALUES = 150_000
"""Field values in a block of a pass that only accumulates sums; few enough for the cache."""


def row_blocks(rows: int, size: int | None) -> Iterator[slice]:
    """Consecutive slices of at most `size` rows; a single slice if `size` is None."""
    step = rows if size is None else max(1, size)
    for start in range(0, rows, max(step, 1)):
        yield slice(start, min(start + step, rows))


def field_blocks(fields: Array) -> Iterator[slice]:
    """Slices of the rows of (M, …) fields with at most VALUES values, but at least one row."""
    return row_blocks(fields.shape[0], VALUES // max(1, math.prod(fields.shape[1:])))


def group_blocks(groups: Sequence[Array], size: int | None) -> Iterator[tuple[slice, list[Array]]]:
    """Slices of at most `size` rows that contain whole groups, with each group's rows in the slice.

    A group of more than `size` rows gets its own slice. Without a size there is one slice and
    the groups are returned unchanged. With a size, the groups must be consecutive runs of rows, in
    order.
    """
    total = int(sum(rows.shape[0] for rows in groups))
    if size is None:
        yield slice(0, total), list(groups)
        return
    start, filled = 0, 0
    collected: list[Array] = []
    for rows in groups:
        count = int(rows.shape[0])
        if collected and filled + count > size:
            yield slice(start, start + filled), collected
            start, filled, collected = start + filled, 0, []
        collected.append(rows - start)
        filled += count
    yield slice(start, total), collected


def sampled_rows(count: int, most: int) -> Array:
    """Sorted random sample (fixed seed) of at most `most` indices below `count`.

    A stride could miss whole hours or droughts, because snapshots are stored in that order.
    """
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


class Runner(Protocol):
    """An executor: it evaluates functions of items elsewhere, as the workers of a cluster do."""

    def sum(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """Σ function(item), added in an order that does not depend on which task ends first."""
        ...

    def map(
        self, function: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]
    ) -> Iterator[Any]:
        """function(shared, item) of every item, in order."""
        ...


def map_over(
    function: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any], runner: Runner | None
) -> Iterator[Any]:
    """function(shared, item) of every item, in order; without an executor, lazily and locally."""
    if runner is None:
        return (function(shared, item) for item in items)
    return runner.map(function, shared, items)


def add_up(parts: Iterable[Any]) -> Any:
    """The sum of arrays (or of anything that can be added), accumulated in the first of them."""
    remaining = iter(parts)
    total = next(remaining)
    for part in remaining:
        total += part
    return total


@dataclass(frozen=True, slots=True)
class Passes:
    """How the rows of matrices are read: `block` rows at a time, by an executor if there is one."""

    block: int | None = None  # None: all rows at once
    runner: Runner | None = None  # None: this process

    def sum(self, function: Callable[[slice], Any], count: int) -> Any:
        """Σ function(rows) over blocks of `count` rows."""
        return self.sum_items(function, row_blocks(count, self.block))

    def sum_items(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """Σ function(item)."""
        if self.runner is None:
            return add_up(map(function, items))
        return self.runner.sum(function, items)

    def whole(self, rows: Rows) -> Array:
        """All rows as one array."""
        blocks = row_blocks(rows.shape[0], self.block)
        parts = list(map_over(read_rows, rows, blocks, self.runner))
        return parts[0] if len(parts) == 1 else array_namespace(parts[0]).concat(parts)


ONE_PASS = Passes()
"""All rows at once, in this process."""


# -- thread pools

MOST = 8
"""Largest number of threads; each needs memory for the arrays of its task."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _blas() -> Any:
    # Imported here, because GPU arrays need neither threads nor this package.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class _OneThread:
    """Re-entrant guard that limits BLAS to one thread.

    The last user to leave restores the limit. Overlapping limits of threadpoolctl would be
    restored in the wrong order.
    """

    def __init__(self) -> None:
        self._lock, self._users = threading.RLock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit = _blas().limit(limits=1)
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limit.restore_original_limits()


_one_thread = _OneThread()


def cores() -> int:
    """Number of threads that BLAS may use in this process, at most MOST.

    Environment variables such as OPENBLAS_NUM_THREADS set it.
    """
    return min(MOST, max((pool.num_threads for pool in _blas().lib_controllers), default=1))


def map_threads(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """function(item) of every item, in order; about one finished result per thread is stored."""
    if threads < 2:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    with _one_thread, ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                if len(waiting) > threads:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(function, item))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def map_slices(
    function: Callable[[slice], Result], count: int, example: Array, least: int = 1
) -> list[Result]:
    """function(slice) of consecutive slices of `count` rows, computed in a thread pool.

    There is one slice per core if `example` is a NumPy array, otherwise a single one. Slices have
    at least `least` rows, because smaller tasks cost more overhead than they save.
    """
    parts = min(cores(), count // least) if is_numpy_array(example) else 1
    if parts < 2:
        return [function(slice(0, count))]
    edges = [count * number // parts for number in range(parts + 1)]
    slices: Sequence[slice] = [slice(*pair) for pair in itertools.pairwise(edges)]
    return list(map_threads(function, slices, parts))
