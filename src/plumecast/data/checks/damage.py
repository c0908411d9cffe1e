"""The error for a store that does not hold what was written to it, and how damage shows itself."""

from __future__ import annotations

import struct

from plumecast.base.errors import PlumecastError, PlumecastWarning

RESTORE = "restore it from a copy, or make it again from its sources"
"""What to do about a damaged store."""

_LONGEST_REASON = 200  # characters; some libraries quote whole files


class DamagedError(PlumecastError):
    """A store does not hold what was written to it."""


class ChangedWarning(PlumecastWarning):
    """The attributes of a store were changed after it was written."""


def is_damage(error: Exception) -> bool:
    """Whether Zarr, Icechunk, their codecs and the NetCDF library raise this for damaged data.

    They parse metadata without checking it first, so that any of these may come up. A panic of the
    Rust code of Icechunk has a class that cannot be imported.
    """
    import icechunk

    known = (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError,
            RuntimeError, ArithmeticError, MemoryError, ImportError, struct.error,
            icechunk.IcechunkError)  # fmt: skip
    return isinstance(error, known) or type(error).__name__ == "RustPanic"


def short_reason(error: Exception) -> str:
    """The first line of an error, or its kind if it says nothing."""
    lines = [line.strip(" x×|") for line in str(error).splitlines() if line.strip(" x×|")]
    return lines[0][:_LONGEST_REASON] if lines else type(error).__name__
