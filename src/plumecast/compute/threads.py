"""Work on several cores of this process. Arrays only, no labels.

NumPy lets go of the interpreter while it computes, but BLAS spreads only large products over the
cores, not many small ones. Here whole pieces of work run side by side, each with one BLAS thread.
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
"""Threads at most: every one holds the arrays of its piece."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _blas() -> Any:
    # Here, because arrays of a GPU need neither threads nor this package.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class _OneThread:
    """While anyone is within, BLAS takes one thread; the last to leave gives it back what it had.

    Two who limit it each on their own would restore in the wrong order.
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
    """Threads that BLAS may take in this process (OPENBLAS_NUM_THREADS and the like set them)."""
    return min(MOST, max((pool.num_threads for pool in _blas().lib_controllers), default=1))


def map_threads(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """function(item) of every item, in order; no more than one result waits for each thread."""
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
    """function of slices that cover so many rows: one per core for NumPy arrays, else a single one.

    Slices have at least `least` rows: below that, handing them out costs more than it saves.
    """
    parts = min(cores(), count // least) if is_numpy_array(beside) else 1
    if parts < 2:
        return [function(slice(0, count))]
    edges = [count * number // parts for number in range(parts + 1)]
    slices: Sequence[slice] = [slice(*pair) for pair in itertools.pairwise(edges)]
    return list(map_threads(function, slices, parts))
