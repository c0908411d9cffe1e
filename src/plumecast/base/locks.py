"""Advisory locks: the system releases the lock of a process that ends, however it ends."""

from __future__ import annotations

from typing import IO, Any


def has_locks() -> bool:
    """Whether this system has advisory locks; where not, callers must run a single writer."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return True


def try_lock(file: IO[Any]) -> bool:
    """Lock an open file until it is closed; False if another process has locked it.

    Raises OSError where the file system has no locks. Without locks on this system, always True.
    """
    if not has_locks():
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
