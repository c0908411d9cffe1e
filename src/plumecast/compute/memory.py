"""Memory limits: read and write sizes such as "2GB", and compute how many rows fit."""

from __future__ import annotations

import contextlib
import ctypes
import math
import re
from functools import cache

from plumecast.base.errors import PlumecastError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"\s*([\d.]+)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)

FLOAT = 8
"""Bytes of a number in double precision."""

READ = 24
"""Bytes per value of a block that is read: as stored, in float64, checked and centred."""

RESERVE = 0.75
"""Share of a limit that plans may use. The rest is for memory that no plan counts: buffers of
readers and of BLAS, and fragmentation."""


def parse_memory(text: str | int | float) -> int:
    """Bytes of "2GB", "512MiB" or a plain number.

    >>> parse_memory("2GB"), parse_memory("1.5 KiB")
    (2000000000, 1536)
    """
    found = _SIZE.fullmatch(str(text))
    try:
        size = float(found.group(1)) if found else math.nan
    except ValueError:
        size = math.nan
    if found is None or not size > 0.0 or not math.isfinite(size):
        raise PlumecastError(f"memory '{text}' is not a size; write for example 2GB or 512MiB")
    units = _BINARY if found.group(3) else _UNITS
    return int(size * units[found.group(2).upper()])


def show_memory(size: float) -> str:
    """Bytes as text with a unit, such as "1.5 GB"."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"


def rows_within(limit: int, *, fixed: float, per_row: float, what: str, most: int) -> int:
    """Number of rows that fit into a limit beside `fixed` bytes, at most `most`.

    Raises if not even one row fits; `what` names the computation in the message.
    """
    rows = int((RESERVE * limit - fixed) // per_row)
    if rows < 1:
        needed = (fixed + per_row) / RESERVE
        raise PlumecastError(
            f"{what} needs at least {show_memory(needed)} of memory, the limit is "
            f"{show_memory(limit)}; raise the limit, or use fewer cells, modes or channels"
        )
    return min(rows, most)


@cache
def keep_freed_memory() -> None:
    """Let the GNU C library keep freed blocks of up to 32 MB for the next array of this process.

    It returns freed memory to the system above a threshold, and a new array then costs one page
    fault per 4 kB, more than the arithmetic on it. The thresholds grow with the blocks that a
    process frees, unless the environment sets one of them, as Dask does for its workers. Here they
    get the largest values that they would grow to. Other C libraries are not affected.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        change = ctypes.CDLL(None).mallopt
        change(_MMAP_THRESHOLD, KEPT_BLOCK)
        change(_TRIM_THRESHOLD, 2 * KEPT_BLOCK)


KEPT_BLOCK = 32 * 2**20
"""Bytes of the largest block that is kept."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in malloc.h
