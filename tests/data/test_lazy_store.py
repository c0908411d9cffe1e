"""The parts of xarray that lazy variables need and that xarray may change without notice."""

from __future__ import annotations

import _thread
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import xarray as xr

from plumecast.data.lazy_store import is_loaded, lazy_variable
from plumecast.data.repository import wait_for_threads
from plumecast.data.store import append_fire, export_snapshots, open_snapshots

CHANGED = (
    "xarray changed what plumecast.data.lazy_store uses; adapt that module, or lower the newest "
    "supported version of xarray"
)


def test_a_lazy_variable_reads_only_what_is_asked():
    stored = xr.Variable(("row", "column"), np.arange(12.0).reshape(3, 4))
    keys: list[tuple] = []

    def read(key: tuple) -> np.ndarray:
        keys.append(key)
        return stored[key].values

    lazy = lazy_variable(stored, read)
    assert not is_loaded(lazy), CHANGED
    part = lazy.isel(row=slice(1, 3), column=[0, 2])
    assert keys == [], CHANGED
    np.testing.assert_array_equal(part.values, stored.values[1:3][:, [0, 2]])
    ((rows, columns),) = keys
    np.testing.assert_array_equal(np.arange(3)[rows], [1, 2], CHANGED)
    np.testing.assert_array_equal(columns, [0, 2])


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("store.nc", export_snapshots),
        ("store.zarr", lambda data, path: append_fire(path, data)),
    ],
)
def test_an_opened_store_is_lazy_until_it_is_loaded(tmp_path, snapshots, name, write):
    write(snapshots, tmp_path / name)
    opened = open_snapshots(tmp_path / name)
    assert is_loaded(opened.fire_id.variable), CHANGED
    for field in ("time_since_ignition", "smoke"):
        assert not is_loaded(opened[field].variable), CHANGED
        assert is_loaded(opened.load()[field].variable), CHANGED
        opened = open_snapshots(tmp_path / name)


# Threads, and a store that was opened before a fork


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
