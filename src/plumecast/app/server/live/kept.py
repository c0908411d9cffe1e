"""Things kept by an opaque id; the least recently used is dropped when there are too many."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


def new_id() -> str:
    """A random id that cannot be guessed."""
    return secrets.token_hex(12)


class Kept(Generic[Thing]):
    """At most `most` things by id, for any thread; `drop` is called with those that leave."""

    def __init__(self, most: int, drop: Callable[[Thing], object] = lambda thing: None) -> None:
        self.most = most
        self._drop = drop
        self._lock = threading.Lock()
        self._things: OrderedDict[str, Thing] = OrderedDict()

    def add(self, thing: Thing, key: str | None = None) -> str:
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
        return key

    def get(self, key: str) -> Thing | None:
        """The thing of an id, which counts as used; None if there is none."""
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
            return self._things.get(key)

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
