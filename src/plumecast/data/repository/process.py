"""Icechunk's threads: they exist only in the process that started them, and outlive its last read.

A forked child that calls Icechunk, even to open another store, would wait for those threads for
ever. They cannot be started again, so the child gets an error.

A thread that hands over a result is still within Python for an instant after it. If the
interpreter ends in that instant, the whole process is aborted (exit code 134) although its work is
done. The end therefore waits for such threads.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.data.lazy_store import lazy_variable

LONGEST_WAIT = 2.0
"""Seconds that the end of a process waits at most for threads of Icechunk."""

_USED_IN: list[int] = []  # id of the first process to use Icechunk; a forked child inherits it


def check_process(path: object) -> None:
    """Raise if this process was forked from one that had used Icechunk."""
    if not _USED_IN:
        _USED_IN.append(os.getpid())
        atexit.register(wait_for_threads)
    if _USED_IN[0] != os.getpid():
        raise PlumecastError(
            f"{path} cannot be read in a process that was forked after a store was opened; start "
            "processes with multiprocessing.get_context('spawn'), or open stores only in them"
        )


def wait_for_threads(seconds: float = LONGEST_WAIT) -> None:
    """Return when no thread that Python did not start runs Python code, or after some seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        own = {thread.ident for thread in threading.enumerate()}
        if set(sys._current_frames()) <= own:
            return
        time.sleep(0.001)


def guard_fields(snapshots: xr.Dataset, path: object) -> xr.Dataset:
    """The data set with variables that check the process before they are read."""
    guarded = {
        name: lazy_variable(item, _Field(item, str(path)))
        for name, item in snapshots.variables.items()
        if name not in snapshots.indexes
    }
    coordinates = {name: item for name, item in guarded.items() if name in snapshots.coords}
    fields = {name: item for name, item in guarded.items() if name not in coordinates}
    return snapshots.assign_coords(coordinates).assign(fields)


class _Field:
    """Reads a variable of an Icechunk session. Both can be pickled, for workers."""

    def __init__(self, variable: xr.Variable, path: str) -> None:
        self.variable, self.path = variable, path

    def __call__(self, key: tuple[Any, ...]) -> np.ndarray:
        check_process(self.path)
        return np.asarray(self.variable[key].values)
