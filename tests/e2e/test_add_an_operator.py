"""The how-to page on operators of one's own: its code runs as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plumecast import export_snapshots
from support.places import REPOSITORY
from support.snapshots import make_snapshots

PAGE = (REPOSITORY / "docs" / "how-to" / "add-an-operator.md").read_text(encoding="utf-8")
OWN, FAMILY, USE = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path) -> Path:
    export_snapshots(make_snapshots(fires=24), tmp_path / "ensemble.nc")
    return tmp_path


def run(code: str, folder: Path) -> str:
    """What a block prints in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_an_operator_of_ones_own_is_scored_beside_the_baselines(folder):
    printed = run(OWN, folder)
    names = re.findall(r"^(.*): IoU [\d.]+, relative error [\d.]+$", printed, re.MULTILINE)
    assert names == ["mine", "mean-field", "nearest-fire"]


def test_the_new_family_is_fitted_and_scored(folder):
    (folder / "pointwise.py").write_text(FAMILY, encoding="utf-8")
    assert re.fullmatch(r"pointwise: IoU [\d.]+\n", run(USE, folder))


def test_the_page_shows_the_line_of_the_registry():
    (line,) = re.findall(r"^-(FAMILIES.*)$", PAGE, re.MULTILINE)
    registry = REPOSITORY / "src" / "plumecast" / "operators" / "settings.py"
    assert line in registry.read_text(encoding="utf-8").splitlines()
