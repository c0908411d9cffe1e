"""What the studies of one run share: the split, and work that is done once."""

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
from plumecast.studies.methods.encoding import Encodings, encode_both
from plumecast.surrogate.baselines import BASELINES
from plumecast.workflows.evaluate import CAPTURED

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much work the studies may do; part of what decides whether a result can be reused."""

    repeats: int = 40  # draws of the optical-depth study
    shift_train: int = 400  # training snapshots of a spectral surrogate in `shift`
    curve_train: int = 1200  # and in `learning-curve`, beside the whole training part
    scored: int = 600  # test snapshots scored in `shift` and `learning-curve`
    curves: int = 60  # ROC curves drawn
    literal: bool = True  # time the paper's literal quadratic fit for `summary`
    neural: tuple[str, ...] = ()  # networks trained for `summary`


@dataclass
class Context:
    """The split, the seed and the limits of a run, and a cache of what several studies need.

    `folder` keeps fitted surrogates between runs; without one they live as long as the context.
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
        """What `make` returns, made the first time only."""
        if key not in self._done:
            self.tell(key)
            self._done[key] = make()
        value: Value = self._done[key]
        return value

    @cached_property
    def smoke_threshold(self) -> float:
        """τ from the validation smoke."""
        return smoke_threshold(self.split.validation[SMOKE], self.captured)

    @cached_property
    def encodings(self) -> Encodings:
        """Both sides of the training part decomposed once, for every rank."""
        self.tell("encoding both sides")
        return encode_both(self.split.train)

    def rng(self, study: str) -> np.random.Generator:
        """Random numbers of a study: the same whichever studies ran before it."""
        return np.random.default_rng([self.seed, *study.encode()])

    @property
    def methods(self) -> tuple[str, ...]:
        """Every method compared, the paper's order first."""
        return (
            "paper-linear", "paper-quadratic", "gp-images", "gp-codes", "recommended",
            *self.limits.neural, "mean-field", "nearest-fire",
        )  # fmt: skip


def is_baseline(name: str) -> bool:
    """Whether a method is a baseline by name."""
    return name in BASELINES


def final_part(part: xr.Dataset, what: str) -> xr.Dataset:
    """The final snapshots of a part of the split, or a reason why there are none."""
    if "is_final" not in part.variables or not bool(part.is_final.any()):
        raise PlumecastError(
            f"the {what} part has no final snapshots (is_final); the mean optical depth is of "
            "fires at their end"
        )
    return final_snapshots(part)


def bounded(part: xr.Dataset, most: int, rng: np.random.Generator) -> xr.Dataset:
    """At most `most` snapshots of a part, drawn at random, in their order."""
    count = part.sizes[SNAPSHOT]
    if count <= most:
        return part
    return part.isel({SNAPSHOT: np.sort(rng.permutation(count)[:most])})


class Stopwatch:
    """Seconds of named steps, added up."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, step: str, work: Callable[[], Value]) -> Value:
        """Do the work and add its seconds to the step."""
        start = time.perf_counter()
        value = work()
        self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start
        return value
