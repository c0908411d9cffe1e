"""Compile a function with numba, and keep the machine code on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

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
