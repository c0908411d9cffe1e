"""Freed arrays are kept for the next one, also where the environment forbids it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap

import pytest

MEASURE = textwrap.dedent(
    """
    import resource
    import numpy as np
    from plumecast.compute.resources import keep_freed_memory
    if {kept}:
        keep_freed_memory()
    for _ in range(3):
        np.ones(4_000_000, dtype=np.uint8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        np.ones(4_000_000, dtype=np.uint8)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    """
)


def page_faults(*, kept: bool) -> int:
    """Page faults of 50 arrays of 4 MB in a process with the environment of a Dask worker."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(kept=kept)],
        env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_arrays_of_a_dask_worker_reuse_freed_memory():
    pages = 50 * 4_000_000 // resource.getpagesize()
    if page_faults(kept=False) < pages // 10:
        pytest.skip("this C library keeps freed memory anyway, or has large pages")
    assert page_faults(kept=True) < pages // 10
