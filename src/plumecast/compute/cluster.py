"""The executor on a cluster, the only module that uses Dask distributed.

Every block is a task. If a worker dies, Dask repeats its tasks on other workers. Sums are taken in
a fixed order, so that the result does not depend on which task ends first. Workers need plumecast
and the same file system.
"""

from __future__ import annotations

import contextlib
import logging
import math
import operator
import pkgutil
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plumecast.base.errors import ArgumentError, PlumecastError, require
from plumecast.base.version import __version__
from plumecast.compute.processes import interrupts_blocked
from plumecast.compute.resources import keep_freed_memory

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 10.0
"""Longest wait for the answer of a scheduler."""

GRACE_SECONDS = 60.0
"""Longest time without any worker before a run raises an error."""

LOOPBACK = "127.0.0.1"
"""Where a local cluster listens. Whoever connects to Dask can run any code, so nobody else may."""

RETRIES = 3
"""How often a task that failed is repeated."""

AHEAD = 4
"""Tasks submitted per worker before the first result is fetched; bounds the results in memory."""

_POLL_SECONDS = 1.0  # between questions to the scheduler about its workers

_SCHEDULER_LOST = "the Dask scheduler does not answer any more; start it again and repeat the run"


@contextlib.contextmanager
def cluster(scheduler: str, workers: int = 2) -> Iterator[ClusterRunner]:
    """An executor on the workers of a Dask cluster, for `Resources`.

    Parameters
    ----------
    scheduler
        The address of a scheduler ("tcp://host:8786"), or "local" to start processes on this
        machine.
    workers
        Number of local processes; they end with the `with` block.
    """
    require("distributed", "cluster", "a cluster")
    from distributed import Client, LocalCluster

    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet_client())
        address = scheduler
        if scheduler == "local":
            if workers < 1:
                raise ArgumentError("workers", workers, problem="must be at least 1")
            with interrupts_blocked():  # in the workers: this process handles Ctrl-C
                local = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    host=LOOPBACK,
                    dashboard_address=f"{LOOPBACK}:0",
                )
            address = stack.enter_context(local).scheduler_address
        try:
            # A default client would receive the tasks of other libraries, and nested clients
            # would leave a closed client as the default.
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            stack.enter_context(client)
        except Exception as error:  # a service other than Dask can cause any exception
            raise PlumecastError(
                f"no Dask scheduler answers at {scheduler} ({type(error).__name__}); start one "
                "with `dask scheduler` and give its address (tcp://host:8786), or use 'local'"
            ) from error
        _refuse_other_versions(client)
        yield ClusterRunner(client)


@contextlib.contextmanager
def _quiet_client() -> Iterator[None]:
    """Silence the log of the Dask client, which repeats in many lines the errors that it raises."""
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _refuse_other_versions(client: Client) -> None:
    """Raise if the scheduler or a worker does not have this version of plumecast.

    Both unpickle tasks; without plumecast they would fail with an obscure error or exit.
    """
    ask = (pkgutil.resolve_name, "plumecast:__version__")  # needs no plumecast to be unpickled
    versions = {f"the worker {w}": v for w, v in client.run(*ask, on_error="return").items()}
    try:
        versions["the scheduler"] = client.run_on_scheduler(*ask)
    except ImportError as error:
        versions["the scheduler"] = error
    for who, version in versions.items():
        if version == __version__:
            continue
        has = f"plumecast {version}" if isinstance(version, str) else f"no plumecast ({version})"
        raise PlumecastError(f"{who} has {has}; install {__version__} there, as here")


@dataclass(frozen=True, slots=True)
class ClusterRunner:
    """An executor that evaluates functions of blocks on the workers of a cluster."""

    client: Client
    grace: float = GRACE_SECONDS

    def __reduce__(self) -> tuple[Any, ...]:
        return _unwrap, (_Opaque(None),)  # None on a worker, which computes locally

    def sum(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """Σ function(item), added pairwise on the workers.

        Additions have priority over further items. The workers therefore store only a few parts
        each, plus a number of sums that grows with the logarithm of the number of items.
        """
        shared = self._share(function)
        sums: list[tuple[int, Future]] = []  # sums of 2ʰ parts, h descending: a binary counter
        for item in items:
            height, part = 0, self._submit(_call, shared, item)
            while sums and sums[-1][0] == height:
                height += 1
                part = self._submit(operator.add, sums.pop()[1], part, priority=height)
            sums.append((height, part))
        height, total = sums.pop()
        while sums:
            height, part = sums.pop()
            total = self._submit(operator.add, part, total, priority=height + 1)
        return self._result(total)

    def map(
        self, function: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]
    ) -> Iterator[Any]:
        """function(shared, item) of every item, in order; a few tasks are pending at a time."""
        sent = self._share(shared)
        waiting: deque[Future] = deque()
        most, asked = 0, -math.inf
        for item in items:
            if time.monotonic() - asked > _POLL_SECONDS:  # the answer describes every worker
                most, asked = AHEAD * max(1, len(self._workers())), time.monotonic()
            if len(waiting) >= most:
                yield self._result(waiting.popleft())
            waiting.append(self._submit(_call_shared, function, sent, item))
        while waiting:
            yield self._result(waiting.popleft())

    def _share(self, value: Any) -> Future:
        """Send a value once instead of with every task; Dask sends it again if its worker dies."""
        return self._submit(_unwrap, _Opaque(value))

    def _submit(self, function: Callable[..., Any], *arguments: Any, priority: int = 0) -> Future:
        with _scheduler_errors(), warnings.catch_warnings():
            # Large values are sent once, as tasks: scattered data would be lost with its worker.
            warnings.filterwarnings("ignore", message="Sending large graph")
            # By default Dask runs tasks that were submitted within 100 ms in any order.
            options = {"retries": RETRIES, "pure": False, "fifo_timeout": "0ms"}
            return self.client.submit(function, *arguments, priority=priority, **options)

    def _workers(self) -> dict[str, Any]:
        with _scheduler_errors():
            workers: dict[str, Any] = self.client.scheduler_info(n_workers=-1)["workers"]
            return workers

    def _result(self, future: Future) -> Any:
        """Wait for a result; raise if there is no worker for longer than `grace` seconds."""
        from distributed import CancelledError, KilledWorker, wait

        seen = time.monotonic()
        while not future.done():
            quiet = contextlib.suppress(TimeoutError)
            with _scheduler_errors(), self.client.as_current(), quiet:
                wait(future, timeout=_POLL_SECONDS)
            if future.done():
                break
            present = bool(self._workers())
            seen = time.monotonic() if present else seen
            if not present and time.monotonic() - seen > self.grace:
                raise PlumecastError(
                    f"no worker has been available for {self.grace:.0f} s; start workers with "
                    "`dask worker` (their logs say why they ended), then run again"
                )
        try:
            return future.result()
        except (OSError, RuntimeError, CancelledError) as error:
            if future.status == "error":  # raised by the task, not by fetching its result
                raise
            raise PlumecastError(_SCHEDULER_LOST) from error
        except MemoryError as error:
            raise PlumecastError(
                "a worker has too little memory for its block; give a memory limit below the "
                "memory of a worker, or give workers more memory"
            ) from error
        except KilledWorker as error:
            raise PlumecastError(
                f"a block was lost with each of {error.allowed_failures + 1} workers that computed "
                f"it (last {error.last_worker.address}), perhaps for lack of memory; lower the "
                "memory limit, or give workers more memory"
            ) from error


@contextlib.contextmanager
def _scheduler_errors() -> Iterator[None]:
    """Turn the errors of a lost scheduler into one that names the next step."""
    from distributed import CancelledError

    try:
        yield
    except (OSError, RuntimeError, CancelledError) as error:
        raise PlumecastError(_SCHEDULER_LOST) from error


@dataclass(frozen=True, slots=True)
class _Opaque:
    """Wraps a value so that Dask does not search it for tasks."""

    value: Any


def _unwrap(opaque: _Opaque) -> Any:
    return opaque.value


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    keep_freed_memory()
    return function(item)


def _call_shared(function: Callable[[Any, Any], Any], shared: Any, item: Any) -> Any:
    keep_freed_memory()
    return function(shared, item)
