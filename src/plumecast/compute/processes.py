"""Worker processes: Ctrl-C is left to their parent, and they end with it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def end_with_parent() -> None:
    """Make this worker process exit when its parent ends. To be called first in a worker.

    A parent that is killed cannot stop its workers; they would wait for work and keep their memory.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def new_pool(
    workers: int, start: Callable[..., object] | None = None, *arguments: Any
) -> ProcessPoolExecutor:
    """A pool of new interpreters; each calls `start(*arguments)` before its first task."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(start, arguments)
    )


def _start_worker(start: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where `interrupts_blocked` does nothing
    if start is not None:
        start(*arguments)


def submit(
    pool: ProcessPoolExecutor, function: Callable[..., Result], *arguments: Any
) -> Future[Result]:
    """Submit a task. Processes start here, so Ctrl-C is blocked in them from their first moment."""
    with interrupts_blocked():
        return pool.submit(function, *arguments)


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Delay Ctrl-C in this thread until the block ends; processes started in it never receive it.

    A terminal sends Ctrl-C to all processes. Workers would print a traceback each.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop_pools(*pools: ProcessPoolExecutor) -> None:
    """End the processes of pools without waiting for their tasks.

    A Ctrl-C meanwhile is dropped: it would leave processes behind and, in a generator that is being
    discarded, print a traceback.
    """
    here = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if here else None
    try:
        for pool in pools:
            for process in list((pool._processes or {}).values()):
                process.terminate()
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
