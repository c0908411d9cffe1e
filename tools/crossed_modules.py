"""Count the modules of plumecast that one command runs through.

A module counts when at least one of its functions, methods or properties is called; importing it
does not count. The number says how many files a reader must open to follow the command.

    python tools/crossed_modules.py train ensemble.nc --preset recommended -o /tmp/smoke.plume
"""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import plumecast

PACKAGE = Path(plumecast.__file__).parent


def crossed_modules(arguments: list[str]) -> dict[str, set[str]]:
    """Run a command; the names of the functions called, by module."""
    called: dict[str, set[str]] = {}

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_name == "<module>" or not code.co_filename.startswith(str(PACKAGE)):
            return
        # A class body runs when its module is imported, and has the module's name in its globals.
        if code.co_name == code.co_qualname and not code.co_flags & 0x2:
            return
        name = Path(code.co_filename).relative_to(PACKAGE).with_suffix("").as_posix()
        called.setdefault(name.replace("/", "."), set()).add(code.co_qualname)

    from plumecast.cli import main

    # What runs while modules are imported is no step of the command.
    importlib.import_module(f"plumecast.cli.commands.{arguments[0]}")
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        main(arguments)
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return called


def _print() -> None:
    found = crossed_modules(sys.argv[1:])
    for module in sorted(found):
        print(f"{module:40s} {len(found[module]):3d} functions")
    print(f"{len(found)} modules")


if __name__ == "__main__":
    _print()
