"""The audit names the locked packages, their licences, and whether it could ask at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import audit


def test_locked_packages(tmp_path):
    path = tmp_path / "constraints.txt"
    path.write_text("# locked\nnumpy==2.0  # arrays\n\nzarr[remote]>=3; python_version > '3'\n")
    assert audit.locked(path) == ["numpy", "zarr"]
    assert "numpy" in audit.locked(Path(__file__).parents[2] / "constraints.txt")


def test_licences():
    assert "BSD" in audit.licence("numpy")
    assert audit.licence("no-such-package") == "not installed"
    found = {"a": "MIT", "b": "GPL-3.0-only", "c": audit.UNKNOWN, "d": "LGPL-2.1", "e": "MPL-2.0"}
    assert audit.doubtful(found) == ["b", "c"]


@pytest.mark.parametrize(("code", "words"), [(2, "NOT looked up"), (1, ""), (0, "")])
def test_no_network_is_said_plainly(tmp_path, monkeypatch, capsys, code, words):
    path = tmp_path / "constraints.txt"
    path.write_text("numpy==2.0\n")
    monkeypatch.setattr(audit, "vulnerabilities", lambda path: code)
    assert audit.main(str(path)) == code
    assert words in capsys.readouterr().err
