"""A store that was opened before a fork: the child gets an error, where it would wait for ever."""

from __future__ import annotations

import _thread
import pickle
import subprocess
import sys
import threading
import time

import numpy as np

from plumecast.data.repository import wait_for_threads
from plumecast.data.store import append_fire, open_snapshots

FORKS = """
import os, signal, sys
import plumecast as pc

opened = pc.open_snapshots(sys.argv[1])
for read in (lambda: opened.smoke[1].values, lambda: pc.open_snapshots(sys.argv[1])):
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends a child that hangs
        try:
            read()
        except pc.PlumecastError as error:
            print(error, flush=True)
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
print(opened.smoke[1].values.sum() > 0)
"""


def test_a_forked_child_says_that_it_cannot_read(tmp_path, snapshots):
    append_fire(tmp_path / "store.zarr", snapshots)
    command = [sys.executable, "-W", "ignore", "-c", FORKS, str(tmp_path / "store.zarr")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    first, second, third = done.stdout.splitlines()
    assert first == second
    assert "store.zarr cannot be read in a process that was forked" in first
    assert third == "True"


def test_the_end_waits_for_threads_that_are_not_pythons_but_not_for_ever():
    """Ending while such a thread is within Python aborts the process."""
    stop, ended = threading.Event(), threading.Event()

    def work() -> None:
        stop.wait(0.2)
        ended.set()
        stop.wait()

    _thread.start_new_thread(work, ())  # unknown to `threading`, as a thread of Rust
    while not set(sys._current_frames()) - {thread.ident for thread in threading.enumerate()}:
        time.sleep(0.001)  # until it runs
    begin = time.monotonic()
    wait_for_threads(0.5)
    assert ended.is_set()
    assert time.monotonic() - begin < 10.0  # a hang guard, not a timing
    stop.set()


def test_an_opened_store_still_travels_to_workers(tmp_path, snapshots):
    append_fire(tmp_path / "store.zarr", snapshots)
    opened = open_snapshots(tmp_path / "store.zarr")
    again = pickle.loads(pickle.dumps(opened))
    np.testing.assert_array_equal(again.smoke[[5, 2], 3], snapshots.smoke[[5, 2], 3])
    np.testing.assert_array_equal(opened.smoke[::7, :, 2:4], snapshots.smoke[::7, :, 2:4])
