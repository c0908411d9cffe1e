"""Reduced-physics fire and smoke model: landscape, weather, fire spread, emission, transport.

The coupling is one-way: the wind drives the fire and transports its smoke, and neither fire nor
smoke changes the wind. Modules compile their loops with `compiled`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from plumecast.base.errors import require

njit = require("numba", "simulator", "the simulator").njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Decorator: compile a function at its first call; `options` are those of `numba.njit`.

    The machine code is stored for the next process beside the module, in NUMBA_CACHE_DIR or in the
    home folder. If none of them can be written, as in a read-only install without a home, every
    process compiles for itself.
    """

    def decorate(function: Function) -> Function:
        try:
            made: Function = njit(cache=True, **options)(function)
        except (RuntimeError, OSError):  # numba: "cannot cache function: no locator available"
            made = njit(**options)(function)
        return made

    return decorate
