"""The entry point of the command line: `plumecast`, and `python -m plumecast`.

It imports next to nothing, so that Ctrl-C while the libraries are imported ends in one line too.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import warnings
from typing import Any

INTERRUPTED = 130
"""The shell's code for a program that Ctrl-C stopped."""


def main() -> None:
    """Run a command; Ctrl-C before the command begins ends the process at once."""
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:  # so it is in the background of a shell
        signal.signal(signal.SIGINT, _stop)
    from plumecast.cli import main as run

    during = _Interrupt() if before == signal.default_int_handler else before
    run(loaded=lambda: signal.signal(signal.SIGINT, during))


PATIENCE = 10.0
"""Seconds in which a command ends after Ctrl-C before another one ends the process at once."""


class _Interrupt:
    """Raise KeyboardInterrupt once, and print nothing of what its way out leaves behind.

    Event loops that are half made, and coroutines that nobody awaits, complain when they are
    deleted; the only words after Ctrl-C are those about what is kept. Another Ctrl-C does not cut
    off the way out, on which files are completed or removed, unless it takes long.
    """

    def __init__(self) -> None:
        self.since: float | None = None

    def __call__(self, *_: Any) -> None:
        if self.since is None:
            self.since = time.monotonic()
            sys.unraisablehook = _print_nothing
            warnings.showwarning = _print_nothing
            raise KeyboardInterrupt
        if time.monotonic() - self.since > PATIENCE:
            os.write(2, b"stopped at once: temporary files may be left (plumecast tidy)\n")
            os._exit(INTERRUPTED)


def _print_nothing(*_: Any, **__: Any) -> None:
    """Take the place of a function that prints."""


def _stop(*_: Any) -> None:
    """End without cleaning up: nothing was written, and half-imported libraries can raise."""
    os.write(2, b"stopped: nothing was written\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
