"""Worker processes, some with a time limit: they end with their parent, which gets Ctrl-C."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, BinaryIO, TypeVar

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


# -- a process that works within a time limit, for libraries that may hang or crash
#
# A C library that meets a damaged file may loop for ever or end the process. Such work is done in a
# process of its own, which is used again for the next task and replaced after it hung or died. It
# is a plain new interpreter: it does not run the main script of the user again, as the processes of
# `multiprocessing` do, and a task of a notebook or of a Dask worker can start one.

_START_SECONDS = 300.0  # for the first answer: a new process imports its libraries
_SERVE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from plumecast.compute.processes import serve; serve()"
)


class HungError(Exception):
    """The process made no progress within the limit; the text is its last step."""


class DiedError(Exception):
    """The process ended by itself; the text is its last step."""

    def __init__(self, step: str, code: int) -> None:
        super().__init__(step)
        self.code = code  # exit code, or minus the number of the signal


class LimitedProcess:
    """Calls functions in another process, one at a time, each step within `limit` seconds.

    A function tells its steps by `report_step`; one that does not has `limit` seconds for all of
    its work. Functions, arguments and results are pickled.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._ready, self._step, self._latest = False, "", 0.0

    def start(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Give the process a task; its result must be asked for before the next task."""
        process = self._running()
        self._step, self._latest = "", time.monotonic()
        task = pickle.dumps((function, arguments, self.limit))
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: `result` says so
            pickle.dump(task, process.stdin)
            process.stdin.flush()

    def result(self) -> Any:
        """What the function returned; an exception of the function is raised here.

        Raises `HungError` or `DiedError` if there is no result; the next task starts a new process.
        """
        while True:
            limit = self.limit if self._ready else max(self.limit, _START_SECONDS)
            left = self._latest + limit - time.monotonic()
            try:
                # At least a moment: answers may have come while this process was suspended.
                kind, value = self._answers.get(timeout=max(left, 0.5))
            except queue.Empty:
                self.close()
                raise HungError(self._step) from None
            self._latest = time.monotonic()
            if kind == "ready":
                self._ready = True
            elif kind == "step":
                self._step = value
            elif kind == "result":
                return value
            elif kind == "error":
                raise value
            else:
                raise DiedError(self._step, self.close())

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a task and wait for its result."""
        self.start(function, *arguments)
        return self.result()

    def close(self) -> int:
        """End the process, whatever it does; returns its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.kill()  # without effect on one that has ended
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was not sent is lost
                if pipe is not None:
                    pipe.close()
        return code

    def __enter__(self) -> LimitedProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-c", _SERVE, json.dumps(sys.path)]
            with interrupts_blocked():  # in the process: this one handles Ctrl-C
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            self._ready = False
            pipe: Any = self._process.stdout
            answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
            self._answers = answers

            def receive() -> None:
                """Pass on the answers of the process until it ends."""
                try:
                    while True:
                        answers.put(pickle.load(pipe))
                except (EOFError, OSError, ValueError, pickle.UnpicklingError):  # or killed midway
                    answers.put(("end", None))

            threading.Thread(target=receive, daemon=True).start()
        return self._process


# -- in the process


class _Worker:
    """The process that does the tasks: its answers, and the report of the present step."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._step, self._since, self.limit = "", 0.0, 0.0

    def send(self, kind: str, value: Any) -> None:
        self._answers.write(pickle.dumps((kind, value)))
        self._answers.flush()

    def report(self, step: str) -> None:
        now = time.monotonic()
        if step != self._step or now - self._since > 0.05 * self.limit:  # few messages suffice
            self._step, self._since = step, now
            self.send("step", step)
            _set_alarm(self.limit)

    def do(self, function: Callable[..., Any], arguments: tuple[Any, ...], limit: float) -> None:
        self._step, self._since, self.limit = "", 0.0, limit
        _set_alarm(limit)
        try:
            answer = ("result", function(*arguments))
        except Exception as error:  # it is raised in the process that waits
            answer = ("error", error)
        _set_alarm(0.0)
        self.send(*answer)


_workers: list[_Worker] = []  # one in a process that works for another, otherwise none


def report_step(step: str) -> None:
    """Tell the process that waits what is being done now; its time limit starts again.

    Does nothing in a process that was not started by `LimitedProcess`.
    """
    for worker in _workers:
        worker.report(step)


def serve() -> None:
    """Do the tasks that come by standard input; end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where `interrupts_blocked` does nothing
    worker = _Worker(os.fdopen(os.dup(1), "wb"))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)  # what a library prints must not get between the answers
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read_tasks() -> None:
        """End this process with the one that started it, even in the midst of a task."""
        try:
            while True:
                tasks.put(pickle.load(sys.stdin.buffer))
        except (EOFError, pickle.UnpicklingError):
            os._exit(0)

    threading.Thread(target=read_tasks, daemon=True).start()
    while True:
        task = pickle.loads(tasks.get())
        if not _workers:
            worker.send("ready", None)
            os.dup2(silent, 2)  # reports of a crash, for example; how it ended says enough
            _workers.append(worker)
        worker.do(*task)


def _set_alarm(limit: float) -> None:
    """End this process after twice the limit, if the one that should do so was killed itself."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 2.0 * limit)
