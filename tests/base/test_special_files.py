"""A pipe, socket or device as an input is refused before it is opened."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from plumecast.base.errors import PlumecastError
from plumecast.base.paths import check_regular

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="special files of POSIX")


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.nc")
    return tmp_path / "pipe.nc"


def test_only_files_and_folders_are_regular(tmp_path, monkeypatch, pipe):
    (tmp_path / "file").touch()
    for fine in (tmp_path, tmp_path / "file", tmp_path / "missing"):
        assert check_regular(fine) == fine
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # the path of a socket must be short
        server.bind("socket")
        for special in (pipe, tmp_path / "socket", "/dev/null"):
            with pytest.raises(PlumecastError, match="is a pipe, socket or device; write its"):
                check_regular(special)


@pytest.mark.parametrize("command", [
    ["info", "PIPE"],
    ["train", "PIPE", "-o", "x.plume"],
    ["predict", "PIPE", "PIPE", "-o", "x.nc"],
    ["evaluate", "PIPE", "PIPE"],
    ["report", "PIPE", "-o", "x.html"],
    ["ingest", "wrf", "PIPE", "-o", "x.zarr"],
    ["ingest", "rasters", "PIPE", "--unit", "h", "-o", "x.zarr"],
    ["ingest", "wrf", "somewhere", "--drought-from", "PIPE", "-o", "x.zarr"],
], ids=" ".join)  # fmt: skip
def test_commands_refuse_a_pipe(run, tmp_path, monkeypatch, pipe, command):
    """Opening it would wait for ever."""
    monkeypatch.chdir(tmp_path)
    result = run(*[str(pipe) if word == "PIPE" else word for word in command])
    assert result.code in (1, 2)  # 1: that fire failed
    errors = [line for line in result.err.splitlines() if line.startswith("error:")]
    assert len(errors) == 1
    assert str(pipe) in errors[0]
