"""Processes that write stores, for kills and races, and what they must leave.

They are forked, because imports take longer than the writing. The forking process must not use
Icechunk itself, so what it wants to know of a store is asked in a child too.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import icechunk  # noqa: F401  (imported before the fork, to save time)
import numpy as np
import xarray as xr
import zarr  # noqa: F401

import plumecast as pc
from plumecast.base.names import TABLE

FIRES = ("a", "b", "c", "d")
_LIMIT = 60  # s, for a child
_ATTEMPTS = 400  # to append a fire to a store that others write


def write_source(path: Path) -> None:
    """Four fires of three snapshots with random values, as a NetCDF file."""
    rng = np.random.default_rng(0)
    count = 3 * len(FIRES)
    names = np.repeat(FIRES, 3)
    values = {
        "time_since_ignition": rng.random((count, 6, 7), dtype=np.float32),
        "smoke": rng.random((count, 6, 7), dtype=np.float32),
        "fire_id": names,
        "ignition_id": names,
        "hours": np.tile([1.0, 2.0, 3.0], len(FIRES)),
        "drought": np.full(count, "low"),
        "burned_area": np.full(count, 5000.0),
        "is_final": np.tile([False, False, True], len(FIRES)),
        "y": 1000.0 * np.arange(6),
        "x": 1000.0 * np.arange(7),
    }
    made = {name: (TABLE[name].dims, item, TABLE[name].attrs) for name, item in values.items()}
    fields = {name: made.pop(name) for name in ("time_since_ignition", "smoke")}
    pc.export_snapshots(xr.Dataset(fields, made), path)


@dataclass(frozen=True, slots=True)
class Child:
    """A forked process; what it says is written to a file."""

    pid: int
    said: Path

    def finish(self) -> tuple[set[str], str, bool]:
        """The fires it said are stored, what it should not have said, and whether it was killed."""
        _, status = os.waitpid(self.pid, 0)
        lines = self.said.read_text().splitlines()
        stored = {line.split()[1] for line in lines if line.startswith("stored ")}
        odd = [line for line in lines if not line.startswith(("stored ", "refused 0 "))]
        return stored, "\n".join(odd), os.WIFSIGNALED(status)


def start(said: Path, go: Path | None, work: Callable[[Callable[[str], object]], object]) -> Child:
    """Fork a process that waits for the file `go`, then calls `work` with a function to speak."""
    said.touch()
    pid = os.fork()
    if pid:
        return Child(pid, said)
    signal.alarm(_LIMIT)
    with said.open("a") as file:
        say = lambda line: print(line, file=file, flush=True)  # noqa: E731
        try:
            while go is not None and not go.exists():
                time.sleep(0.001)
            work(say)
        except BaseException:
            say(traceback.format_exc())
        finally:
            os._exit(0)


def ask(scratch: Path, work: Callable[[], str]) -> str:
    """The text that a function returns in a child; "" means that all is well."""
    said = scratch / "answer"
    os.waitpid(start(said, None, lambda say: say(work())).pid, 0)
    answer = said.read_text().strip()
    said.unlink()
    return answer


def append(source: Path, store: Path, fires: Sequence[str], most: int = 0) -> Callable:
    """Work: append fires, each again and again while others write; `most` bytes fit into a file."""
    data = pc.open_snapshots(source).load()

    def work(say: Callable[[str], object]) -> None:
        for fire in fires:
            for _ in range(1 if most else _ATTEMPTS):
                try:
                    with _full_disk(most):
                        pc.data.append_fire(store, data.isel(snapshot=data.fire_id.values == fire))
                except pc.PlumecastError as error:
                    _refused(say, error)
                    time.sleep(0.01)
                else:
                    say(f"stored {fire}")
                    break

    return work


@contextlib.contextmanager
def _full_disk(most: int) -> Iterator[None]:
    """Let writes beyond so many bytes of a file fail; 0 means no limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most or soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def export(source: Path, path: Path, fire: str) -> Callable:
    """Work: export one fire."""
    data = pc.open_snapshots(source).load()

    def work(say: Callable[[str], object]) -> None:
        try:
            pc.export_snapshots(data.isel(snapshot=data.fire_id.values == fire), path)
        except pc.PlumecastError as error:
            _refused(say, error)
        else:
            say(f"stored {fire}")

    return work


def _refused(say: Callable[[str], object], error: Exception) -> None:
    text = str(error)
    say(f"refused {text.count(chr(10))} {text}")


def difference(path: Path, source: Path, fires: Sequence[str]) -> str:
    """What differs between the fires in a store and those in the source; empty if nothing does."""
    opened, original = pc.open_snapshots(path).load(), pc.open_snapshots(source).load()
    if sorted(set(opened.fire_id.values)) != sorted(fires):
        return f"{path.name} holds {sorted(set(opened.fire_id.values))}, not {sorted(fires)}"
    for fire in fires:
        one, other = (
            item.isel(snapshot=item.fire_id.values == fire) for item in (opened, original)
        )
        for name in ("time_since_ignition", "smoke", "hours", "drought", "is_final"):
            if not np.array_equal(one[name].values, other[name].values):
                return f"'{name}' of fire {fire} differs"
    return ""
