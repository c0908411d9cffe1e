"""Workers of local clusters are forked from a process that has imported what they need.

A worker that imports everything anew takes two seconds, and these tests start about forty.
"""

from __future__ import annotations

import os

os.environ["DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD"] = "forkserver"

try:
    from distributed.utils import mp_context
except ImportError:  # the tests of this folder are skipped
    pass
else:
    mp_context.set_forkserver_preload(
        ["distributed", "distributed.nanny", "plumecast.cli", "plumecast.studies.registry"]
    )
