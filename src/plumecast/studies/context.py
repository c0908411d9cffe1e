"""The split, seed and limits that the studies of a run share, and a cache of shared results."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.data.schema import final_snapshots
from plumecast.data.split import Split
from plumecast.scores.footprint import smoke_threshold
from plumecast.surrogate.baselines import BASELINES
from plumecast.workflows.evaluate import CAPTURED

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on the work of the studies. A finished study is reused only with equal limits."""

    repeats: int = 40  # random draws of the optical-depth study
    shift_train: int = 400  # training snapshots of a spectral surrogate in `shift`
    curve_train: int = 1200  # the same in `learning-curve`; the whole training part is always used
    scored: int = 600  # test snapshots scored in `shift` and `learning-curve`
    curves: int = 60  # ROC curves drawn
    literal: bool = True  # `summary` times the paper's literal quadratic fit
    neural: tuple[str, ...] = ()  # networks that `summary` trains; `weather` trains the U-Net
    weather_sizes: tuple[int, ...] = (8, 16, 32, 64, 100)  # training ignitions of `weather`
    weather_draws: int = 3  # random draws of them
    weather_tested: int = 60  # largest number of test ignitions of `weather`


@dataclass
class Context:
    """Split, seed and limits of a run, with a cache of results that several studies need.

    Fitted surrogates are saved in `folder` for later runs; without a folder they are kept in
    memory only. `tell` is called with the name of each step.
    """

    split: Split
    fingerprint: str = ""  # of the data and its split
    folder: Path | None = None
    seed: int = 0
    captured: float = CAPTURED
    limits: Limits = field(default_factory=Limits)
    tell: Callable[[str], None] = lambda step: None
    _done: dict[str, Any] = field(default_factory=dict, repr=False)

    def once(self, key: str, make: Callable[[], Value]) -> Value:
        """The result of `make`, which is called only the first time that `key` is requested."""
        if key not in self._done:
            self.tell(key)
            self._done[key] = make()
        value: Value = self._done[key]
        return value

    @cached_property
    def smoke_threshold(self) -> float:
        """Smoke threshold τ from the validation part, µg m⁻³."""
        return smoke_threshold(self.split.validation[SMOKE], self.captured)

    def rng(self, study: str) -> np.random.Generator:
        """Random generator of a study, independent of the studies that ran before it."""
        return np.random.default_rng([self.seed, *study.encode()])

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods to compare: those of the paper first, in its order."""
        return (
            "paper-linear", "paper-quadratic", "gp-images", "gp-codes", "recommended",
            *self.limits.neural, "mean-field", "nearest-fire",
        )  # fmt: skip


def is_baseline(name: str) -> bool:
    """Whether the name is that of a baseline."""
    return name in BASELINES


def final_part(part: xr.Dataset, what: str) -> xr.Dataset:
    """The final snapshots of a part of the split; raises if there are none."""
    if "is_final" not in part.variables or not bool(part.is_final.any()):
        raise PlumecastError(
            f"the {what} part has no final snapshots (coordinate is_final); the mean optical depth "
            "needs them, so add is_final to the data"
        )
    return final_snapshots(part)


def bounded(part: xr.Dataset, most: int, rng: np.random.Generator) -> xr.Dataset:
    """A random sample of at most `most` snapshots of a part, in their original order."""
    count = part.sizes[SNAPSHOT]
    if count <= most:
        return part
    return part.isel({SNAPSHOT: np.sort(rng.permutation(count)[:most])})


class Stopwatch:
    """Total seconds of each named step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, step: str, work: Callable[[], Value]) -> Value:
        """Call `work` and add its duration to the step."""
        start = time.perf_counter()
        value = work()
        self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start
        return value
