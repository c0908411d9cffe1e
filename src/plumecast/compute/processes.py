"""Worker processes that end with the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """To be called first in a worker: a parent that is killed does not leave it waiting for work.

    A killed parent cannot tell its workers; they would hold their memory until the machine stops.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
