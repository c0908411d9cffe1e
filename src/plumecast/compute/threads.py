"""Thread pools for work on NumPy arrays. Arrays only, no labels.

NumPy releases the interpreter lock while it computes, but BLAS uses several cores only for large
products. Here whole tasks run in parallel, each with one BLAS thread.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from plumecast.compute.arrays import Array, is_numpy_array

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
    function: Callable[[slice], Result], count: int, beside: Array, least: int = 1
) -> list[Result]:
    """function(slice) of consecutive slices of `count` rows, computed in a thread pool.

    There is one slice per core if `beside` is a NumPy array, otherwise a single one. Slices have at
    least `least` rows, because smaller tasks cost more overhead than they save.
    """
    parts = min(cores(), count // least) if is_numpy_array(beside) else 1
    if parts < 2:
        return [function(slice(0, count))]
    edges = [count * number // parts for number in range(parts + 1)]
    slices: Sequence[slice] = [slice(*pair) for pair in itertools.pairwise(edges)]
    return list(map_threads(function, slices, parts))
