"""Server-sent events: a log that threads write and any number of clients read from any point."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

from plumecast.base.files import finite

ALIVE_SECONDS = 15.0
"""A comment is sent after this silence, so that proxies keep the connection."""


class EventLog:
    """Events in order; the log is complete when it is closed."""

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
