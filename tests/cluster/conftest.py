"""Workers of local clusters are forked from a process that has imported what they need.

A worker that imports everything anew takes two seconds, and these tests start about forty.
"""

from __future__ import annotations

import importlib.util
import os

NEEDED = [
    "distributed",
    "distributed.nanny",
    "plumecast.cli",
    "plumecast.simulator.ensemble",
]

if importlib.util.find_spec("distributed") is not None:  # else these tests are skipped
    os.environ["DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD"] = "forkserver"
    from distributed.utils import get_mp_context

    # The first call chooses what is imported in advance; this choice replaces it.
    get_mp_context().set_forkserver_preload(NEEDED)
