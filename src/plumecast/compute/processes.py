"""Worker processes that exit when their parent process ends."""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """Make this worker process exit when its parent ends. To be called first in a worker.

    A parent that is killed cannot stop its workers; they would wait for work and keep their memory.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
