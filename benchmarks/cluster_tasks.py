"""What a task on a cluster costs: its computation, the bytes moved for it, and the empty task.

Used by cluster.py. Seconds are CPU seconds, because those hardly depend on other work on the
machine: of the thread that computes a task, and of the process that submits tasks, in which the
scheduler of a local cluster also runs.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import cloudpickle

from plumecast.compute.blocks import Runner, add_up

EMPTY_TASKS = 200
"""Empty tasks that are timed together."""


@dataclass(frozen=True)
class Timed:
    """A result with the CPU seconds and the bytes of each of the tasks that it is the sum of."""

    value: Any
    seconds: tuple[float, ...]
    returned: tuple[int, ...]

    def __add__(self, other: Timed) -> Timed:
        seconds, returned = self.seconds + other.seconds, self.returned + other.returned
        return Timed(self.value + other.value, seconds, returned)


def timed(function: Callable[..., Any], *arguments: Any) -> Timed:
    start = time.thread_time()
    value = function(*arguments)
    seconds = time.thread_time() - start
    return Timed(value, (seconds,), (len(pickle.dumps(value, protocol=5)),))


@dataclass
class Recorder:
    """A runner that records its tasks; without another runner it computes them in this process."""

    runner: Runner | None
    shared: int = 0  # bytes sent once
    sent: list[int] = field(default_factory=list)  # bytes of the item of every task
    seconds: list[float] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)

    def sum(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """As `ClusterRunner.sum`."""
        self.shared += len(cloudpickle.dumps(function))
        own, weighed = partial(timed, function), self._weighed(items)
        found = add_up(map(own, weighed)) if self.runner is None else self.runner.sum(own, weighed)
        return self._kept(found)

    def map(
        self, function: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]
    ) -> Iterator[Any]:
        """As `ClusterRunner.map`."""
        self.shared += len(cloudpickle.dumps(shared))
        own, weighed = partial(timed, function), self._weighed(items)
        if self.runner is None:
            yield from (self._kept(own(shared, item)) for item in weighed)
        else:
            yield from map(self._kept, self.runner.map(own, shared, weighed))

    def _weighed(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.sent.append(len(cloudpickle.dumps(item)))
            yield item

    def _kept(self, result: Timed) -> Any:
        self.seconds += result.seconds
        self.returned += result.returned
        return result.value


@dataclass(frozen=True)
class Cost:
    """Means per task of one stage."""

    tasks: int
    shared: int  # bytes sent once
    sent: float  # bytes
    returned: float  # bytes; of a sum only to the worker that adds
    here: float  # CPU seconds of a task in this process
    worker: float  # CPU seconds of a task in a worker
    client: float  # CPU seconds of this process per task, while a worker computes


def cost_of(work: Callable[[Runner | None], float], one: Runner) -> Cost:
    """The cost of a task of a stage, in this process and on a cluster; one round to warm up."""
    for _ in range(2):
        here, there = Recorder(None), Recorder(one)
        work(here)
        start = time.process_time()
        work(there)
        client = time.process_time() - start
    count = len(there.seconds)
    return Cost(
        count,
        there.shared,
        sum(there.sent) / count,
        sum(there.returned) / count,
        sum(here.seconds) / count,
        sum(there.seconds) / count,
        client / count,
    )


def nothing(shared: None, item: int) -> None:
    """The empty task."""


def empty_task(runner: Runner) -> tuple[float, float]:
    """Seconds of an empty task, by the clock and of this process's CPU; one round to warm up."""
    for _ in range(2):
        start, cpu = time.perf_counter(), time.process_time()
        for _ in runner.map(nothing, None, range(EMPTY_TASKS)):
            pass
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return seconds / EMPTY_TASKS, cpu / EMPTY_TASKS


def bytes_text(count: float) -> str:
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def cost_table(costs: dict[str, Cost]) -> str:
    lines = [
        "| | tasks | sent once | sent per task | returned per task | task in one process "
        "| task in a worker | client and scheduler per task |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, cost in costs.items():
        amounts = [bytes_text(value) for value in (cost.shared, cost.sent, cost.returned)]
        times = [f"{1e3 * value:.1f} ms" for value in (cost.here, cost.worker, cost.client)]
        lines.append(f"| {name} | {cost.tasks} | {' | '.join(amounts + times)} |")
    return "\n".join(lines)


def empty_table(found: dict[str, tuple[float, float]]) -> str:
    lines = [
        "| an empty task | by the clock | CPU of client and scheduler |",
        "| --- | --- | --- |",
    ]
    for way, (seconds, cpu) in found.items():
        lines.append(f"| {way} | {1e3 * seconds:.2f} ms | {1e3 * cpu:.2f} ms |")
    return "\n".join(lines)
