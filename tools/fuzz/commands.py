"""Run a command within this process and judge what it printed."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path

from plumecast.cli import main


def run_command(arguments: Sequence[str | Path]) -> tuple[int, str]:
    """The exit code of a command and all it printed. An exception that escapes is raised."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main([str(item) for item in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            return code, printed.getvalue()
    return 0, printed.getvalue()


def is_one_line(printed: str) -> bool:
    """Whether a failed command ended with one line that begins with "error:"."""
    lines = [line for line in printed.splitlines() if line.startswith("error:")]
    return len(lines) == 1 and "Traceback" not in printed
