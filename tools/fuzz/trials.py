"""Run many trials of a target in worker processes, each trial within a time limit.

A trial is a number: it seeds the random choices, so one trial can be repeated by itself. A worker
that hangs or dies is replaced, and the trial it was at is a failure.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import random
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

from plumecast.base.errors import PlumecastError

REFUSED = "refused"
"""An error that names the file or the value."""
UNCHANGED = "unchanged"
"""The values read are those of the original."""
FOUND = "found"
"""Other values were read, with a finding or a warning."""
LEGITIMATE = "legitimate"
"""The edit made another valid input, such as another number in a text raster."""
CHANGED = "changed"
"""A failure: other values were read without a word."""
TRACEBACK = "traceback"
"""A failure: an exception that is no PlumecastError, or a command that printed a traceback."""
HANG = "hang"
"""A failure: the trial ran past its limit."""
CRASH = "crash"
"""A failure: the process died."""
FAILURES = (CHANGED, TRACEBACK, HANG, CRASH)


@dataclass(frozen=True, slots=True)
class Target:
    """What is attacked. `prepare` writes the originals; `attempt` mutates a copy and reads it."""

    name: str
    prepare: Callable[[Path], None]
    """Called once with an empty folder."""
    attempt: Callable[[Path, Path, random.Random], str | tuple[str, str]]
    """Called with the folder of originals (not to be changed), an empty folder and the source of
    random choices; returns a verdict, or a verdict and a detail. A PlumecastError that it raises
    is "refused", any other exception "traceback"."""
    trials: int
    """Number of trials of a whole run."""
    limit: float = 20.0
    """Seconds for one trial."""


@dataclass
class Tally:
    """The verdicts of one target."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str, str]] = field(default_factory=list)  # trial, verdict, detail

    def add(self, trial: int, verdict: str, detail: str) -> None:
        """Count a verdict; keep the failures."""
        self.counts[verdict] += 1
        if verdict in FAILURES:
            self.failures.append((trial, verdict, detail))


def run_trial(target: Target, originals: Path, seed: int, trial: int) -> tuple[str, str]:
    """The verdict of one trial, with its detail."""
    rng = random.Random(f"{target.name}/{seed}/{trial}")
    scratch = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = target.attempt(originals, scratch, rng)
        return verdict if isinstance(verdict, tuple) else (verdict, "")
    except PlumecastError as error:
        return REFUSED, str(error)
    except Exception:  # whatever it is, it is a failure to report
        return TRACEBACK, traceback.format_exc(limit=-4)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def run_target(target: Target, originals: Path, seed: int, trials: range, workers: int) -> Tally:
    """Run trials in `workers` processes."""
    tally, left = Tally(), iter(trials)
    context = mp.get_context("forkserver")
    pool = [_Worker(context, target, originals, seed) for _ in range(workers)]
    busy = [worker for worker in pool if worker.start(next(left, None))]
    while busy:
        ready = wait([worker.pipe for worker in busy], timeout=0.2)
        for worker in list(busy):
            answer = worker.answer(worker.pipe in ready)
            if answer is None:
                continue
            tally.add(worker.trial, *answer)
            if not worker.start(next(left, None)):
                busy.remove(worker)
    for worker in pool:
        worker.stop()
    return tally


class _Worker:
    """A process that runs one trial after another; it is replaced when it hangs or dies."""

    def __init__(self, context: mp.context.ForkServerContext, *task: object) -> None:
        self._context, self._task, self.trial = context, task, -1
        self._target: Target = task[0]  # type: ignore[assignment]
        self._begin()

    def _begin(self) -> None:
        self.pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_work, args=(theirs, *self._task), daemon=True)
        self._process.start()
        theirs.close()
        self._fresh = True

    def start(self, trial: int | None) -> bool:
        """Give the worker its next trial; False if there is none."""
        if trial is None:
            return False
        self.trial, self._since = trial, time.monotonic()
        self.pipe.send(trial)
        return True

    def answer(self, ready: bool) -> tuple[str, str] | None:
        """The verdict, or None while the trial goes on."""
        if ready:
            try:
                self._fresh = False
                return self.pipe.recv()  # type: ignore[no-any-return]
            except EOFError:
                self._process.join()
                code = self._process.exitcode
                self._begin()
                return CRASH, f"the process ended with code {code}"
        # The first trial of a process also imports the libraries.
        if time.monotonic() - self._since < self._target.limit + (60.0 if self._fresh else 0.0):
            return None
        self._process.kill()
        self._process.join()
        self._begin()
        return HANG, f"more than {self._target.limit:g} s"

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def _work(pipe: Connection, target: Target, originals: Path, seed: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    while True:
        pipe.send(run_trial(target, originals, seed, pipe.recv()))
