"""CPU seconds until the command line answers, beside those of importing NumPy, in one run.

    python benchmarks/startup.py

The target: `plumecast --help` and `--version` take no longer than importing NumPy plus 0.2 s. The
median of several repeats is printed; runs alternate, so that the load of the machine is shared.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

REPEATS = 9
ALLOWED = 0.2  # s beyond the import of NumPy

RUNS = {
    "import numpy": ("-c", "import numpy"),
    "plumecast --version": ("-m", "plumecast", "--version"),
    "plumecast --help": ("-m", "plumecast", "--help"),
    "plumecast train --help": ("-m", "plumecast", "train", "--help"),
}


def cpu_seconds(arguments: tuple[str, ...]) -> float:
    """CPU time of one run of Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure() -> dict[str, float]:
    """Median CPU seconds of every run."""
    rounds = [{name: cpu_seconds(run) for name, run in RUNS.items()} for _ in range(REPEATS)]
    return {name: statistics.median(one[name] for one in rounds) for name in RUNS}


def main() -> None:
    found = measure()
    print("| | CPU s | beyond NumPy |")
    print("| --- | --- | --- |")
    for name, seconds in found.items():
        print(f"| `{name}` | {seconds:.2f} | {seconds - found['import numpy']:+.2f} |")
    slowest = max(found["plumecast --version"], found["plumecast --help"])
    met = slowest <= found["import numpy"] + ALLOWED
    print(f"within {ALLOWED} s of importing NumPy: {'yes' if met else 'no'}")


if __name__ == "__main__":
    main()
