"""Blocks on a cluster: the only module that knows Dask distributed.

A block is a task. Dask runs it again elsewhere when its worker dies, so a killed worker costs its
own blocks and nothing else; sums are taken in a fixed order, so the result does not depend on who
finishes first. Workers need plumecast and the same file system.
"""

from __future__ import annotations

import contextlib
import logging
import operator
import pkgutil
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plumecast.base.errors import PlumecastError
from plumecast.base.extras import require
from plumecast.base.version import __version__

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 10.0
"""How long a scheduler may take to answer."""

GRACE_SECONDS = 60.0
"""How long there may be no worker at all before a run gives up."""

RETRIES = 3
"""How often a block that fails for reasons of its machine is tried again."""

AHEAD = 4
"""Blocks handed out per worker before the first result is taken: bounds what waits in memory."""

_LOOK_SECONDS = 1.0  # between looks at the workers while waiting

_GONE = "the Dask scheduler does not answer any more; start it again and run the same command again"


@contextlib.contextmanager
def cluster(scheduler: str, workers: int = 2) -> Iterator[ClusterRunner]:
    """A runner on a Dask scheduler ("tcp://host:8786"), or on processes of this machine ("local").

    With "local", `workers` processes are started and end with the block.
    """
    require("distributed", "cluster", "a cluster")
    from distributed import Client, LocalCluster

    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet_client())
        address = scheduler
        if scheduler == "local":
            if workers < 1:
                raise PlumecastError(f"workers={workers}; give at least one")
            address = stack.enter_context(
                LocalCluster(
                    n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
                )
            ).scheduler_address
        try:
            # Not the default of this process: other libraries' work would go there, and clients
            # within clients would leave a default behind that is closed.
            made = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            client = stack.enter_context(made)
        except Exception as error:  # another service may answer with anything
            raise PlumecastError(
                f"no Dask scheduler answers at {scheduler} ({type(error).__name__}); start one "
                "with `dask scheduler` and give its address (tcp://host:8786), or take 'local'"
            ) from error
        _refuse_other_versions(client)
        yield ClusterRunner(client)


@contextlib.contextmanager
def _quiet_client() -> Iterator[None]:
    """What goes wrong in a client is raised; its log would say the same in many lines."""
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _refuse_other_versions(client: Client) -> None:
    """Raise where plumecast is missing: a scheduler reads tasks before it hands them to workers,
    and both would end with an error that says nothing, or end."""
    question = (pkgutil.resolve_name, "plumecast:__version__")  # asked without plumecast
    found = {f"the worker {w}": v for w, v in client.run(*question, on_error="return").items()}
    try:
        found["the scheduler"] = client.run_on_scheduler(*question)
    except ImportError as error:
        found["the scheduler"] = error
    for who, version in found.items():
        if version != __version__:
            has = (
                f"plumecast {version}" if isinstance(version, str) else f"no plumecast ({version})"
            )
            raise PlumecastError(f"{who} has {has}; install {__version__} there, as here")


@dataclass(frozen=True, slots=True)
class ClusterRunner:
    """Runs functions of blocks on the workers of a cluster."""

    client: Client
    grace: float = GRACE_SECONDS

    def __reduce__(self) -> tuple[Any, ...]:
        # What is sent to a worker may hold this runner; there, blocks are worked on in place.
        return (_nobody, ())

    def sum(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """Σ function(item), added pairwise on the workers.

        Sums go before further items, so that at any time only a few parts per worker, and the
        logarithm of their number, wait in the memory of the cluster.
        """
        shared = self._share(function)
        ahead: list[tuple[int, Future]] = []  # sums of 2ʰ parts by falling h, as digits of a number
        for item in items:
            height, part = 0, self._submit(_call, shared, item)
            while ahead and ahead[-1][0] == height:
                height += 1
                part = self._submit(operator.add, ahead.pop()[1], part, priority=height)
            ahead.append((height, part))
        height, total = ahead.pop()
        while ahead:
            height, part = ahead.pop()
            total = self._submit(operator.add, part, total, priority=height + 1)
        return self._result(total)

    def map(
        self, function: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]
    ) -> Iterator[Any]:
        """function(shared, item) of every item, in order, a few of them at a time."""
        sent = self._share(shared)
        waiting: deque[Future] = deque()
        for item in items:
            if len(waiting) >= AHEAD * max(1, len(self._workers())):
                yield self._result(waiting.popleft())
            waiting.append(self._submit(function, sent, item))
        while waiting:
            yield self._result(waiting.popleft())

    def _share(self, value: Any) -> Future:
        """A value sent once, not with every task; remade from here if its worker dies."""
        return self._submit(_kept, _Opaque(value))

    def _submit(self, function: Callable[..., Any], *arguments: Any, priority: int = 0) -> Future:
        with _needing_the_scheduler(), warnings.catch_warnings():
            # A basis is large, and sent once; scattering it would lose it with its worker.
            warnings.filterwarnings("ignore", message="Sending large graph")
            # What is handed out within a tenth of a second would be worked on in any order.
            return self.client.submit(
                function,
                *arguments,
                retries=RETRIES,
                pure=False,
                priority=priority,
                fifo_timeout="0ms",
            )

    def _workers(self) -> dict[str, Any]:
        with _needing_the_scheduler():
            found: dict[str, Any] = self.client.scheduler_info(n_workers=-1)["workers"]
            return found

    def _result(self, future: Future) -> Any:
        """The result, watching that there is somebody to work on it."""
        from distributed import CancelledError, KilledWorker, wait

        seen = time.monotonic()
        while not future.done():
            quiet = contextlib.suppress(TimeoutError)
            with _needing_the_scheduler(), self.client.as_current(), quiet:
                wait(future, timeout=_LOOK_SECONDS)
            present = bool(self._workers())
            seen = time.monotonic() if present else seen
            if not present and time.monotonic() - seen > self.grace:
                raise PlumecastError(
                    f"no worker has been there for {self.grace:.0f} s; start workers with "
                    "`dask worker`, look into their logs if they end, and run again"
                )
        try:
            return future.result()
        except CancelledError as error:
            raise PlumecastError(_GONE) from error
        except MemoryError as error:
            raise PlumecastError(
                "a worker has too little memory for its block; give --memory, below that of a "
                "worker, or give workers more"
            ) from error
        except KilledWorker as error:
            raise PlumecastError(
                f"a block was lost with each of {error.allowed_failures + 1} workers that took it "
                f"(last {error.last_worker.address}), perhaps for want of memory; give a lower "
                "--memory, or give workers more"
            ) from error


@contextlib.contextmanager
def _needing_the_scheduler() -> Iterator[None]:
    """Something that fails when the scheduler does not answer any more."""
    from distributed import CancelledError

    try:
        yield
    except (OSError, RuntimeError, CancelledError) as error:
        raise PlumecastError(_GONE) from error


@dataclass(frozen=True, slots=True)
class _Opaque:
    """A value that Dask must not look into."""

    value: Any


def _kept(opaque: _Opaque) -> Any:
    return opaque.value


def _call(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _nobody() -> None:
    """In the place of a runner, on a worker."""
