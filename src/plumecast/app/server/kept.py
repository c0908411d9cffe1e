"""What is kept between requests, and how much: things by an opaque id, and events of each.

Fires and trainings are kept while they run in threads and afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from plumecast.base.errors import PlumecastError
from plumecast.base.files import finite

Thing = TypeVar("Thing")

ALIVE_SECONDS = 15.0
"""A comment is sent after this silence, so that proxies keep the connection."""

POINTS = 200  # of a line to ignite
PLACES = 200
WIND_SPEED = 40.0  # m s⁻¹


@dataclass(frozen=True, slots=True)
class Limits:
    """How much the server keeps and does at a time."""

    fires: int = 64  # kept; the least recently used is dropped
    fires_waiting: int = 24
    fire_threads: int = 2
    jobs: int = 64  # kept
    jobs_waiting: int = 4
    models: int = 64
    clients: int = 256  # whose places are kept


class RequestError(PlumecastError):
    """A request that cannot be answered, with the code of its answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def new_id() -> str:
    """A random id that cannot be guessed."""
    return secrets.token_hex(12)


class Kept(Generic[Thing]):
    """At most `most` things by id, for any thread; `drop` is called with those that leave.

    The least recently used one is dropped when there are too many.
    """

    def __init__(self, most: int, drop: Callable[[Thing], object] = lambda thing: None) -> None:
        self.most = most
        self._drop = drop
        self._lock = threading.Lock()
        self._things: OrderedDict[Any, Thing] = OrderedDict()

    def add(self, thing: Thing, key: Any = None) -> str:
        """Keep a thing, under a new id unless one is given."""
        key = new_id() if key is None else key
        left = []
        with self._lock:
            self._things[key] = thing
            self._things.move_to_end(key)
            while len(self._things) > self.most:
                left.append(self._things.popitem(last=False)[1])
        for old in left:
            self._drop(old)
        return str(key)

    def get(self, key: Any) -> Thing | None:
        """The thing of an id, which counts as used; None if there is none."""
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
            return self._things.get(key)

    def get_or_make(self, key: Any, make: Callable[[], Thing]) -> Thing:
        """The thing of an id, made and kept if there is none."""
        thing = self.get(key)
        if thing is None:
            thing = make()
            self.add(thing, key)
        return thing

    def remove(self, key: str) -> Thing | None:
        """Drop a thing."""
        with self._lock:
            thing = self._things.pop(key, None)
        if thing is not None:
            self._drop(thing)
        return thing

    def values(self) -> list[Thing]:
        """All things, the least recently used first."""
        with self._lock:
            return list(self._things.values())


class Running(Protocol):
    """Something that runs in a thread and can be stopped."""

    def run(self) -> None:
        """Do the work."""

    def stop(self) -> None:
        """End the work soon."""


Runner = TypeVar("Runner", bound=Running)


class Work(Generic[Runner]):
    """Tasks that run in `threads` while some others wait; at most `most` are kept."""

    def __init__(self, most: int, threads: int, waiting: int) -> None:
        self.kept: Kept[Runner] = Kept(most, lambda task: task.stop())
        self._pool = ThreadPoolExecutor(threads)
        self._places = threading.BoundedSemaphore(threads + waiting)

    def begin(self, task: Runner, busy: str) -> str:
        """Keep a task and run it; raises with the sentence `busy` if too many are waiting."""
        if not self._places.acquire(blocking=False):
            raise RequestError(busy, 429)
        key = self.kept.add(task)
        self._pool.submit(task.run).add_done_callback(lambda future: self._places.release())
        return key

    def close(self) -> None:
        """Stop all tasks."""
        for task in self.kept.values():
            task.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)


class EventLog:
    """Events in order, which threads write and any number of clients read from any point.

    The log is complete when it is closed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[tuple[str, str]] = []
        self._closed = False
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @property
    def closed(self) -> bool:
        """Whether no more events come."""
        return self._closed

    def add(self, name: str, value: Any) -> None:
        """Add an event, from any thread; one after the end is dropped."""
        text = json.dumps(finite(value), allow_nan=False)
        with self._lock:
            if not self._closed:
                self._events.append((name, text))
        self._wake()

    def close(self) -> None:
        """End the log, from any thread."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            waiting = list(self._waiting)
        for loop, event in waiting:
            with contextlib.suppress(RuntimeError):  # its loop has ended
                loop.call_soon_threadsafe(event.set)

    def is_read(self, after: int) -> bool:
        """Whether a client that has seen the events up to number `after` has seen all."""
        return self._closed and after + 1 >= len(self._events)

    async def stream(self, after: int = -1) -> AsyncIterator[bytes]:
        """The events after number `after` as text/event-stream, as they come."""
        position, wake = after + 1, asyncio.Event()
        mine = (asyncio.get_running_loop(), wake)
        with self._lock:
            self._waiting.add(mine)
        try:
            while True:
                wake.clear()
                ending = self._closed
                while position < len(self._events):
                    name, text = self._events[position]
                    yield f"id: {position}\nevent: {name}\ndata: {text}\n\n".encode()
                    position += 1
                if ending:
                    return
                try:
                    await asyncio.wait_for(wake.wait(), ALIVE_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            with self._lock:
                self._waiting.discard(mine)
