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
from plumecast.base.files import atomic_write, find_leftovers, write_json, write_text


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
