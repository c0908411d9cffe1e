"""Attack plumecast with mutated inputs, kills and races; print what came of them.

    python -m tools.fuzz                         everything
    python -m tools.fuzz models --trials 50      fifty trials of one target
    python -m tools.fuzz models --only 17        one trial again, with its detail

The exit code is 1 if any trial failed.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.fuzz.trials import FAILURES, Target, run_target, run_trial

TARGETS = ("models", "rasters", "geotiff", "wrf", "stores", "settings", "kills", "races",
           "semantics", "wrf_meaning")  # fmt: skip
"""Modules of this folder; each has a Target named TARGET."""

_VERDICTS = ("refused", "unchanged", "found", "legitimate", *FAILURES)
_SHOWN = 10  # failures printed per target


def main() -> int:
    """Run the targets; print a table and the failures."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=TARGETS, metavar="TARGET")
    parser.add_argument("--trials", type=int, help="trials per target (default: its own number)")
    parser.add_argument("--only", type=int, help="repeat one trial and print its detail")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-heading", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.no_heading and given.only is None:
        print("| target | trials | " + " | ".join(_VERDICTS) + " | seconds |")
        print("| --- " * (len(_VERDICTS) + 3) + "|", flush=True)
    if len(given.targets) == 1:
        return _run(given.targets[0], given)
    codes = []
    for name in given.targets:
        # A process of its own: Icechunk cannot be used in a fork of a process that has used it.
        options = [word for word in sys.argv[1:] if word not in given.targets]
        command = [sys.executable, "-m", "tools.fuzz", name, *options, "--no-heading"]
        codes.append(subprocess.run(command, check=False).returncode)
    return max(codes)


def _run(name: str, given: argparse.Namespace) -> int:
    """Run the trials of one target; 1 if any failed."""
    target: Target = importlib.import_module(f"tools.fuzz.{name}").TARGET
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
        originals, since = Path(folder), time.monotonic()
        target.prepare(originals)
        if given.only is not None:
            print(*run_trial(target, originals, given.seed, given.only), sep="\n")
            return 0
        number = target.trials if given.trials is None else given.trials
        tally = run_target(target, originals, given.seed, range(number), given.workers)
    counts = " | ".join(str(tally.counts[verdict]) for verdict in _VERDICTS)
    print(f"| {name} | {number} | {counts} | {time.monotonic() - since:.0f} |", flush=True)
    for trial, verdict, detail in sorted(tally.failures)[:_SHOWN]:
        print(f"  trial {trial}: {verdict}\n    " + detail.strip().replace("\n", "\n    "))
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
