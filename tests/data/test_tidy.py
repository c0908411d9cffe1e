"""Tidying: garbage and leftovers go, every fire and every running process stays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.files import temporary_folder
from plumecast.data.repository import Transaction, writer
from plumecast.data.rewrite import relabel_fires, tidy_store
from plumecast.data.store import append_fire, open_snapshots, write_fire
from support.snapshots import fires_of


@pytest.fixture
def store(tmp_path, snapshots) -> Path:
    """A store with four versions, and a transaction that was not finished."""
    path = tmp_path / "ensemble.zarr"
    for fire in fires_of(snapshots)[:3]:
        append_fire(path, fire)
    relabel_fires(path, {"drought": {"fire-00-low": "medium"}})
    with writer(path) as real:
        write_fire(Transaction(real).store, fires_of(snapshots)[3], first=False)
    (path / "chunks" / "ABCDEFGHIJ#1").write_text("half a chunk")
    return path


def files_of(store: Path) -> set[str]:
    return {str(path.relative_to(store)) for path in store.rglob("*") if path.is_file()}


def test_only_what_no_version_needs_is_removed(store):
    before, names = open_snapshots(store).load(), files_of(store)
    planned = tidy_store(store, dry_run=True)
    assert files_of(store) == names
    done = tidy_store(store)
    assert done == planned
    assert done.garbage.files == len(names) - len(files_of(store)) >= 3
    assert done.garbage.bytes > 0
    assert done.old_versions == 3
    xr.testing.assert_identical(open_snapshots(store).load(), before)
    assert tidy_store(store).garbage.files == 0


def test_old_versions_go_when_asked(store, snapshots):
    before = open_snapshots(store).load()
    tidy_store(store)
    done = tidy_store(store, old_versions=True)
    assert (done.old_versions, tidy_store(store).old_versions) == (3, 0)
    assert done.garbage.files > 10
    xr.testing.assert_identical(open_snapshots(store).load(), before)
    append_fire(store, fires_of(snapshots)[4])
    assert open_snapshots(store).sizes["snapshot"] == before.sizes["snapshot"] + 4


def test_a_store_that_is_being_written_or_is_not_there_is_refused(store, tmp_path):
    with writer(store), pytest.raises(PlumecastError, match="is being written by another process"):
        tidy_store(store)
    with pytest.raises(PlumecastError, match=re.escape(f"{tmp_path / 'none'} does not exist")):
        tidy_store(tmp_path / "none")


def test_folders_of_running_processes_stay(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    with temporary_folder(results / "table.json") as running:
        (running / "half").write_text("half")
        assert tidy_store(results).leftovers.files == 0
        assert (running / "half").exists()
