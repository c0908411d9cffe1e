"""Writing to a store: one writer by whatever name, durable commits, and kills that do no harm."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import icechunk
import numpy as np
import pytest
import xarray as xr

from plumecast.base import files
from plumecast.base.errors import PlumecastError
from plumecast.base.files import temporary_folder
from plumecast.data.repository import Transaction, writer
from plumecast.data.rewrite import relabel_fires, tidy_store
from plumecast.data.store import append_fire, open_snapshots, stored_fires, write_fire
from support.snapshots import fires_of, select_fire

KILLED_AT_FLUSH = """
import os, signal, sys
import icechunk
from plumecast import append_fire, open_snapshots

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

fire = open_snapshots(sys.argv[2]).load()
icechunk.Session.flush = die
append_fire(sys.argv[1], fire.isel(snapshot=fire.fire_id.values == sys.argv[3]))
"""


@pytest.fixture
def store(tmp_path, snapshots) -> Path:
    path = tmp_path / "real" / "ensemble.zarr"
    append_fire(path, fires_of(snapshots)[0])
    return path


def test_a_store_has_one_lock_whatever_it_is_called(store, tmp_path, snapshots):
    """A link to it, a link to its folder, and a way round."""
    first, second = fires_of(snapshots)[1:3]
    (tmp_path / "link.zarr").symlink_to(store)
    (tmp_path / "folder").symlink_to(store.parent)
    around = store.parent / ".." / store.parent.name / store.name
    others = [tmp_path / "link.zarr", tmp_path / "folder" / store.name, around]
    with writer(store):
        for path in others:
            with pytest.raises(PlumecastError, match=f"{path} is being written by another"):
                append_fire(path, first)
    append_fire(others[0], first)
    assert len(stored_fires(store)) == 2
    (tmp_path / "new.zarr").symlink_to(tmp_path / "far" / "real.zarr")
    append_fire(tmp_path / "new.zarr", second)
    assert (tmp_path / "new.zarr").is_symlink()
    assert len(stored_fires(tmp_path / "far" / "real.zarr")) == 1


def test_a_lost_race_is_one_line(store, snapshots, monkeypatch):
    """Where locks do not work, the branch may have moved; a fire of the other writer stays."""
    mine, theirs = fires_of(snapshots)[1:3]
    flush = icechunk.Session.flush

    def overtaken(session, *arguments):
        monkeypatch.undo()
        monkeypatch.setattr(files, "try_lock", lambda file: True)
        append_fire(store, theirs)
        return flush(session, *arguments)

    monkeypatch.setattr(icechunk.Session, "flush", overtaken)
    with pytest.raises(PlumecastError, match=f"{store} was changed by another .* again$"):
        append_fire(store, mine)
    assert stored_fires(store) == {
        fires_of(snapshots)[0].fire_id.values[0],
        theirs.fire_id.values[0],
    }


# A beginning


def beginnings(path: Path) -> list[Path]:
    """The states through which Icechunk creates a repository, up to its branch."""
    whole = path / "whole"
    icechunk.Repository.create(icechunk.local_filesystem_storage(str(whole)))
    (first,) = (whole / "snapshots").iterdir()
    steps = [
        ("snapshots", None),
        (f"snapshots/{first.name}#1", first.read_bytes()[:50]),
        (f"snapshots/{first.name}", first.read_bytes()),
        ("refs", None),
        ("refs/branch.main", None),
        ("refs/branch.main/ref.json#1", b'{"snap'),
    ]
    begun = [path / f"{number}.zarr" for number in range(len(steps) + 1)]
    for number, store in enumerate(begun):
        store.mkdir()
        for name, content in steps[:number]:
            (store / name).mkdir() if content is None else (store / name).write_bytes(content)
    return begun


def test_a_store_whose_creation_was_cut_off_is_read_as_empty_and_replaced(tmp_path, snapshots):
    fire = fires_of(snapshots)[0]
    for begun in beginnings(tmp_path):
        assert stored_fires(begun) == frozenset()
        empty = "holds no fire yet" if any(begun.iterdir()) else "neither an Icechunk nor a Zarr"
        with pytest.raises(PlumecastError, match=f"{begun} .*{empty}"):
            open_snapshots(begun)
        append_fire(begun, fire)
        np.testing.assert_array_equal(open_snapshots(begun).smoke, fire.smoke)


def test_a_store_that_lost_its_branch_is_not_taken_for_a_beginning(store, snapshots):
    (store / "refs" / "branch.main" / "ref.json").unlink()
    chunks = sorted((store / "chunks").iterdir())
    with pytest.raises(PlumecastError, match=f"{store}"):
        append_fire(store, fires_of(snapshots)[1])
    assert sorted((store / "chunks").iterdir()) == chunks


def test_a_killed_append_changes_nothing_and_what_it_wrote_is_removed(store, tmp_path, snapshots):
    before, names = open_snapshots(store).load(), {path.name for path in store.rglob("*")}
    whole = tmp_path / "whole.zarr"
    append_fire(whole, snapshots)
    fires = [str(fire.fire_id.values[0]) for fire in fires_of(snapshots)[1:3]]
    command = [sys.executable, "-c", KILLED_AT_FLUSH, str(store), str(whole), fires[0]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    orphans = {path.name for path in store.rglob("*")} - names
    assert len(orphans) >= 2  # chunks of the fire and the smoke
    xr.testing.assert_identical(open_snapshots(store).load(), before)
    append_fire(store, select_fire(snapshots, fires[1]))
    assert not orphans & {path.name for path in store.rglob("*")}
    opened = select_fire(open_snapshots(store), fires[1])
    np.testing.assert_array_equal(opened.smoke, select_fire(snapshots, fires[1]).smoke)


# Durability


def test_every_file_is_flushed_before_the_branch_names_it(store, snapshots, monkeypatch):
    flushed: list[Path] = []
    flush, reset = files._flush, icechunk.Repository.reset_branch

    def recorded(path):
        flushed.append(path)
        flush(path)

    def before_reset(*arguments, **options):
        new = {path for path in store.rglob("*") if path.is_file()} - before
        assert new
        assert new <= set(flushed)
        assert {path.parent for path in new} <= set(flushed)
        flushed.clear()
        return reset(*arguments, **options)

    monkeypatch.setattr(files, "_flush", recorded)
    monkeypatch.setattr(icechunk.Repository, "reset_branch", before_reset)
    for write in (
        lambda: append_fire(store, fires_of(snapshots)[1]),
        lambda: relabel_fires(store, {"drought": {"fire-00-low": "medium"}}),
    ):
        before = {path for path in store.rglob("*") if path.is_file()}
        write()
        branch = store / "refs" / "branch.main"
        assert set(flushed) == {branch, branch / "ref.json"}


def test_a_full_disk_is_one_line_and_the_store_stays_as_it_was(store, snapshots):
    before = open_snapshots(store).load()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))  # bytes that fit into a file
    try:
        with pytest.raises(PlumecastError) as caught:
            append_fire(store, fires_of(snapshots)[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    expected = f"{store} cannot be written (File too large); check its permissions and the free"
    assert str(caught.value) == f"{expected} space"
    np.testing.assert_array_equal(open_snapshots(store).smoke, before.smoke)
    append_fire(store, fires_of(snapshots)[1])


# Tidying: garbage and leftovers go, every fire and every running process stays


@pytest.fixture
def untidy(tmp_path, snapshots) -> Path:
    """A store with four versions, and a transaction that was not finished."""
    path = tmp_path / "ensemble.zarr"
    for fire in fires_of(snapshots)[:3]:
        append_fire(path, fire)
    relabel_fires(path, {"drought": {"fire-00-low": "medium"}})
    with writer(path) as real:
        write_fire(Transaction(real).store, fires_of(snapshots)[3], first=False)
    (path / "chunks" / "ABCDEFGHIJ#1").write_text("half a chunk")
    return path


def files_of(untidy: Path) -> set[str]:
    return {str(path.relative_to(untidy)) for path in untidy.rglob("*") if path.is_file()}


def test_only_what_no_version_needs_is_removed(untidy):
    before, names = open_snapshots(untidy).load(), files_of(untidy)
    planned = tidy_store(untidy, dry_run=True)
    assert files_of(untidy) == names
    done = tidy_store(untidy)
    assert done == planned
    assert done.garbage.files == len(names) - len(files_of(untidy)) >= 3
    assert done.garbage.bytes > 0
    assert done.old_versions == 3
    xr.testing.assert_identical(open_snapshots(untidy).load(), before)
    assert tidy_store(untidy).garbage.files == 0


def test_old_versions_go_when_asked(untidy, snapshots):
    before = open_snapshots(untidy).load()
    tidy_store(untidy)
    done = tidy_store(untidy, old_versions=True)
    assert (done.old_versions, tidy_store(untidy).old_versions) == (3, 0)
    assert done.garbage.files > 10
    xr.testing.assert_identical(open_snapshots(untidy).load(), before)
    append_fire(untidy, fires_of(snapshots)[4])
    assert open_snapshots(untidy).sizes["snapshot"] == before.sizes["snapshot"] + 4


def test_a_store_that_is_being_written_or_is_not_there_is_refused(untidy, tmp_path):
    with writer(untidy), pytest.raises(PlumecastError, match="is being written by another process"):
        tidy_store(untidy)
    with pytest.raises(PlumecastError, match=re.escape(f"{tmp_path / 'none'} does not exist")):
        tidy_store(tmp_path / "none")


def test_folders_of_running_processes_stay(tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    with temporary_folder(results / "table.json") as running:
        (running / "half").write_text("half")
        assert tidy_store(results).leftovers.files == 0
        assert (running / "half").exists()
