"""Atomic writes: the whole file or the old one, never leftovers, any number of writers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from plumecast.base.errors import PlumecastError
from plumecast.base.files import (
    atomic_write,
    find_leftovers,
    published_together,
    refuse_existing,
    remove_leftover,
    write_json,
    write_text,
)


def make(kind: str, path: Path, text: str) -> None:
    """A file, or a folder with two files, that holds a text."""
    if kind == "folder":
        (path / "inner").mkdir(parents=True)
        (path / "inner" / "one.txt").write_text(text)
        path = path / "two.txt"
    path.write_text(text)


def texts(path: Path) -> set[str]:
    """The texts of a file or of all files in a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return {file.read_text() for file in files}


def write_half(kind: str, target: Path, error: type[BaseException]) -> None:
    """A writer that fails in the middle."""
    with atomic_write(target) as partial:
        make(kind, partial, "half")
        raise error


def write_while_another_does(kind: str, target: Path) -> None:
    """Two writers that may not overwrite; the second one finishes first."""
    with atomic_write(target, overwrite=False) as slow:
        make(kind, slow, "slow")
        with atomic_write(target, overwrite=False) as fast:
            make(kind, fast, "fast")


KINDS = pytest.mark.parametrize("kind", ["file", "folder"])


@KINDS
def test_a_result_replaces_the_old_one_and_leaves_nothing_else(tmp_path, kind):
    target = tmp_path / "new" / "result"
    for text in ("first", "second"):
        with atomic_write(target) as partial:
            make(kind, partial, text)
        assert texts(target) == {text}
    assert list(target.parent.iterdir()) == [target]


@KINDS
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_the_old_result_and_nothing_else(tmp_path, kind, error):
    target = tmp_path / "result"
    make(kind, target, "old")
    with pytest.raises(error):
        write_half(kind, target, error)
    assert texts(target) == {"old"}
    assert list(tmp_path.iterdir()) == [target]


@KINDS
def test_a_rename_that_fails_leaves_the_old_result_and_nothing_else(tmp_path, kind, monkeypatch):
    target = tmp_path / "result"
    make(kind, target, "old")
    rename = Path.rename

    def full(path, other):
        if other == target and "replaced" not in path.name:
            raise OSError("disk full")
        return rename(path, other)

    monkeypatch.setattr(Path, "rename", full)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="disk full"), atomic_write(target) as partial:
        make(kind, partial, "new")
    assert texts(target) == {"old"}
    assert list(tmp_path.iterdir()) == [target]


@KINDS
def test_writers_at_the_same_time_do_not_disturb_each_other(tmp_path, kind):
    target = tmp_path / "result"
    barrier, count = threading.Barrier(6), 6
    failed: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for _ in range(5):
                with atomic_write(target) as partial:
                    barrier.wait(timeout=120)  # all temporary paths exist together
                    make(kind, partial, str(number))
        except BaseException as error:
            failed.append(error)
            barrier.abort()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    (text,) = texts(target)
    assert int(text) in range(count)
    assert list(tmp_path.iterdir()) == [target]


@KINDS
def test_of_two_writers_that_may_not_overwrite_the_second_to_finish_is_refused(tmp_path, kind):
    target = tmp_path / "result"
    message = f"{target} exists; remove it or choose another path"
    with pytest.raises(PlumecastError, match=message):
        write_while_another_does(kind, target)
    assert texts(target) == {"fast"}
    with pytest.raises(PlumecastError, match=message), atomic_write(target, overwrite=False):
        pytest.fail("nothing should be written")
    assert list(tmp_path.iterdir()) == [target]


def test_links_are_followed_and_text_may_be_printed(tmp_path, capsys):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    write_text("/dev/null", "gone")
    assert not Path("/dev/null").is_file()
    write_text("/dev/stdout", "shown")
    assert capsys.readouterr().out == "shown"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_names_the_result_and_keeps_the_old_one(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(OSError, match=r"page\.html") as raised, atomic_write(path):
        Path("/dev/full").write_text("new")
    assert raised.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_json_has_null_for_what_is_not_a_number(tmp_path):
    path = tmp_path / "content.json"
    write_json(path, {"a": [1.5, float("nan")], 2: (float("inf"), "µg"), "b": {"c": None}})
    expected = {"a": [1.5, None], "2": [None, "µg"], "b": {"c": None}}
    assert json.loads(path.read_text(encoding="utf-8")) == expected


# Several files, and kills between their renames

KILLED_AT_RENAME = """
import os, sys
from pathlib import Path
from plumecast.base.files import atomic_write, published_together, write_text

def work(folder):
    with published_together():
        write_text(folder / "table.csv", "new", overwrite=False)
        with atomic_write(folder / "sub" / "fire", overwrite=False) as partial:
            partial.mkdir()
            (partial / "namelist").write_text("new")
        write_text(folder / "map.png", "new")
    with atomic_write(folder / "study") as partial:
        partial.mkdir()
        (partial / "record").write_text("new")

def dying(function, left=[0]):
    def call(*arguments, **options):
        if not left[0]:
            os._exit(9)
        left[0] -= 1
        return function(*arguments, **options)
    return call, left

for number in range(100):
    folder = Path(sys.argv[1]) / str(number)
    (folder / "study").mkdir(parents=True)
    (folder / "study" / "record").write_text("old")
    (folder / "map.png").write_text("old")
    child = os.fork()
    if not child:
        for name in ("rename", "replace", "link"):
            call, left = dying(getattr(os, name))
            left[0] = number
            setattr(os, name, call)
        work(folder)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a kill between two renames")
def test_a_kill_between_renames_loses_nothing_and_leaves_no_half_set(tmp_path):
    """Whoever refuses one of the files, or tidies, finishes what the killed process began."""
    words = [sys.executable, "-c", KILLED_AT_RENAME, str(tmp_path)]
    subprocess.run(words, check=True)
    killed = sorted(tmp_path.iterdir(), key=lambda path: int(path.name))
    assert len(killed) >= 8
    written = []
    for folder in killed:
        paths = [folder / name for name in ("table.csv", "sub/fire/namelist", "map.png")]
        if paths[0].exists():
            with pytest.raises(PlumecastError, match="exists; remove it"):
                refuse_existing(paths[0])
        else:
            for place in (folder, folder / "sub"):
                for leftover in find_leftovers(place) if place.exists() else ():
                    assert remove_leftover(leftover) is not None
        found = [path.read_text() if path.exists() else None for path in paths]
        assert found in ([None, None, "old"], ["new", "new", "new"])
        written.append(found[0])
        for leftover in find_leftovers(folder):
            assert remove_leftover(leftover) is not None
        assert (folder / "study" / "record").read_text() in ("old", "new")
        assert {path.name for path in folder.iterdir()} <= {"table.csv", "sub", "map.png", "study"}
    assert None in written
    assert "new" in written


def test_an_error_in_one_of_several_files_leaves_none(tmp_path):
    (tmp_path / "second").write_text("mine")

    def write_three() -> None:
        with published_together():
            write_text(tmp_path / "first", "new", overwrite=False)
            write_text(tmp_path / "third", "new")
            write_text(tmp_path / "second", "new", overwrite=False)

    with pytest.raises(PlumecastError, match="second exists"):
        write_three()
    assert [path.name for path in tmp_path.iterdir()] == ["second"]


# Leftovers of killed processes

KILLED = """
import os, signal, sys
from plumecast.base.files import atomic_write

with atomic_write(sys.argv[1]) as partial:
    partial.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    target, other = tmp_path / "model.plume", tmp_path / "model.plume2"
    for path in (target, other):
        done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
        assert done.returncode == -9
    (mine,), (others,) = find_leftovers(tmp_path, target.name), find_leftovers(tmp_path, other.name)
    with atomic_write(target) as first, atomic_write(target) as second:
        assert not mine.exists()
        first.write_text("first")  # the second writer has not taken the first for a leftover
        second.write_text("second")
    assert target.read_text() == "first"
    assert sorted(tmp_path.iterdir()) == sorted([target, others])


@KINDS
def test_a_result_and_the_folder_that_names_it_are_flushed(tmp_path, kind, monkeypatch):
    flushed: list[str] = []
    fsync = os.fsync

    def recorded(descriptor):
        flushed.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    with atomic_write(tmp_path / "result") as partial:
        make(kind, partial, "new")
        parts = {str(partial), *map(str, partial.rglob("*"))}
    assert set(flushed[:-1]) == parts
    assert flushed[-1] == str(tmp_path)
