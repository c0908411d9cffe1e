"""Where and with what a call computes: a device, a memory limit, a cluster, reports of progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from plumecast.compute.blocks import Runner
from plumecast.compute.device import Budget, choose_budget


def silent(done: int, total: int, what: str) -> None:
    """Report nothing."""


def hears_names(progress: Callable[[str], object]) -> Callable[[int, int, str], object]:
    """A callback of an earlier version, which hears only the name of each step."""
    return lambda done, total, what: progress(what)


def hears_counts(progress: Callable[[int, int], object]) -> Callable[[int, int, str], object]:
    """A callback of an earlier version, which hears only how much of the work is done."""
    return lambda done, total, what: progress(done, total)


@dataclass(frozen=True, slots=True)
class Resources:
    """Where to compute (`device`, `runner`), in how much `memory`, and what to tell of progress.

    `device` is "cpu", "cuda", "cuda:1", "cupy" or "torch". `memory` ("2GB") is a limit within which
    fields are read in blocks from their store. A `runner` (`pc.cluster`) computes on a cluster.
    `progress(done, total, what)` is called as work is done; `total` is 0 for a step that is not
    counted.
    """

    device: str = "cpu"
    memory: str | int | None = None
    runner: Runner | None = None
    progress: Callable[[int, int, str], object] = silent

    @property
    def lazy(self) -> bool:
        """Whether fields stay in their store and are read in blocks."""
        return self.memory is not None or self.runner is not None

    def step(self, what: str) -> None:
        """Report that a step begins that is not counted."""
        self.progress(0, 0, what)

    def within(self, step: str) -> Resources:
        """The same resources, with reports that name the step they are part of."""
        return self.reporting(
            lambda done, total, what: self.progress(done, total, f"{step}: {what}")
        )

    def reporting(self, progress: Callable[[int, int, str], object]) -> Resources:
        """The same resources with other reports."""
        return replace(self, progress=progress)

    def quiet(self) -> Resources:
        """The same resources without reports."""
        return self.reporting(silent)

    def budget(self, *, size: tuple[int, int], cluster_memory: str) -> Budget:
        """What a fit of `size` = (snapshots, cells of inputs and outputs) may use here."""
        return choose_budget(
            self.device,
            self.memory,
            self.runner,
            self.step,
            size=size,
            cluster_memory=cluster_memory,
        )

    def __reduce__(self) -> Any:
        return type(self), (self.device, self.memory)  # a worker computes locally and is silent


LOCAL = Resources()
"""The processor of this machine, all in memory, no reports."""
