"""Any terminal, encoding, pipe or disk: every number is shown, and no traceback."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import plumecast
import plumecast.cli.commands.info
import plumecast.cli.commands.train
from plumecast.cli import show
from plumecast.data.store import append_fire
from support.snapshots import make_snapshots

COLUMNS = ["median over snapshots", "AUC", "deployable IoU", "error"]
ROWS = [["paper-quadratic", "0.987", "0.654", "0.32"], ["nearest-fire", "0.876", "0.543", "1.00"]]
NUMBERS = [cell for row in ROWS for cell in row]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def store(tmp_path) -> Path:
    path = tmp_path / "fires.zarr"
    append_fire(path, make_snapshots(fires=2))
    return path


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_a_table_shows_every_number_at_any_width(monkeypatch, width, kind):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setenv("NO_COLOR", "1")
    show.table("2 surrogates", COLUMNS, ROWS)
    text = terminal.getvalue()
    assert "…" not in text
    assert [number for number in NUMBERS if number not in text] == []
    assert (f"{COLUMNS[0]}: {ROWS[0][0]}" in text) == (width <= 40)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colours_for_those_who_want_or_have_none(monkeypatch, name, value):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", Terminal())
    show.pairs("title", [("name", "value")])
    assert "\x1b[" in sys.stdout.getvalue()
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(sys, "stderr", Terminal())
    show.pairs("title", [("name", "value")])
    show.fail("a problem")
    if name == "TERM":
        with show.counted("reading") as step:
            step(1, 2, "a fire")
    assert "\x1b" not in sys.stdout.getvalue() + sys.stderr.getvalue()


def in_a_process(*arguments: object, **environment: str) -> subprocess.Popen[bytes]:
    source = str(Path(plumecast.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "plumecast", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": source} | environment,
    )


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("latin-1", b"0.01 \xb5g m\\u207b\xb3"), ("ascii", "0.01 µg m⁻³".encode())],  # UTF-8 then
    ids=["latin-1", "ascii"],
)
def test_output_that_cannot_be_encoded_is_escaped(store, encoding, shown):
    process = in_a_process("info", store, PYTHONIOENCODING=encoding, LANG="C", LC_ALL="C")
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, b"")
    assert shown in out


@pytest.mark.skipif(os.name != "posix", reason="closes a pipe")
def test_a_reader_that_goes_away_is_no_error(store):
    process = in_a_process("info", store)
    process.stdout.close()
    with process.stderr as stream:
        assert stream.read() == b""
    assert process.wait(timeout=300) == 141


def test_scores_are_written_before_they_are_shown(run, ensemble, trained, tmp_path, monkeypatch):
    """`evaluate … | true` must not lose them."""

    def closed(*arguments: object, **options: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(show.typer, "echo", closed)
    scores = tmp_path / "scores.json"
    result = run("evaluate", trained, ensemble.store, "--baselines", "none", "-o", scores)
    assert (result.code, result.err) == (141, "")
    assert scores.exists()


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FULL, "a.plume: no space left on device; free space or choose another output path"),
        (
            MemoryError("Unable to allocate 69 GiB"),
            "the memory is not enough (Unable to allocate 69 GiB); give fewer or smaller fires, or "
            "--memory",
        ),
        (
            RecursionError("maximum recursion depth exceeded"),
            "a file is nested too deeply to be read (maximum recursion depth exceeded); write it "
            "again",
        ),
    ],
    ids=["disk", "array", "nesting"],
)
def test_errors_of_the_machine_are_one_line(refused, store, monkeypatch, error, message):
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.chdir(store.parent)
    monkeypatch.setattr(plumecast.cli.commands.train, "train_surrogate", fail)
    assert refused("train", store, "-o", "a.plume") == message


@pytest.mark.parametrize("text", ["[" * 100_000, "{", '{"settings": {}}'])
def test_settings_edited_by_hand(refused, store, tmp_path, text):
    path = tmp_path / "tuned.json"
    path.write_text(text)
    message = refused("train", store, "--settings", path, "-o", tmp_path / "a.plume")
    assert message == f"--settings {path} has no settings; write them with plumecast tune"
