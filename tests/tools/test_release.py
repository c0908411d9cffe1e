"""The check of a release finds what must not be published."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tools.release import LARGEST_FILE, main, unlicensed, wheel_problems

METADATA = """Metadata-Version: 2.4
Name: plumecast
Version: 1.0
Summary: smoke
Requires-Python: >=3.11
License-Expression: BSD-3-Clause
"""
GOOD = {
    "plumecast/__init__.py": "",
    "plumecast/py.typed": "",
    "plumecast/cli/__init__.py": "",
    "plumecast/app/assets/vendor/README.md": "",
    "plumecast/app/assets/vendor/leaflet/LICENSE": "",
    "plumecast/app/assets/vendor/leaflet/leaflet.js": "",
    "plumecast-1.0.dist-info/METADATA": METADATA,
    "plumecast-1.0.dist-info/licenses/LICENSE": "",
}


def make_wheel(folder: Path, files: dict[str, str]) -> Path:
    path = folder / "plumecast-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def without(name: str) -> dict[str, str]:
    return {key: text for key, text in GOOD.items() if key != name}


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (without("plumecast/py.typed"), "plumecast/py.typed is missing"),
        (GOOD | {"tests/test_x.py": ""}, "tests/test_x.py is not part of the package"),
        (GOOD | {"plumecast/data/fires.nc": ""}, "plumecast/data/fires.nc must not be published"),
        (GOOD | {"plumecast/big.json": " " * (LARGEST_FILE + 1)}, "plumecast/big.json has"),
        (without("plumecast-1.0.dist-info/licenses/LICENSE"), "the licence file of plumecast"),
        (without("plumecast/app/assets/vendor/leaflet/LICENSE"), "vendor/leaflet has no licence"),
        (GOOD | {"plumecast-1.0.dist-info/METADATA": METADATA.replace("Summary", "Sum")},
         "the metadata has no Summary"),
    ],
)  # fmt: skip
def test_each_fault_of_a_wheel_is_named(tmp_path, files, problem):
    (found,) = wheel_problems(make_wheel(tmp_path, files))
    assert problem in found


def test_what_is_good_has_no_problem_and_what_is_missing_is_named(tmp_path, capsys):
    assert wheel_problems(make_wheel(tmp_path, GOOD)) == []
    names = {"p/vendor/a/a.js", "p/vendor/b/b.js", "p/vendor/b/LICENSE", "p/LICENSE"}
    assert unlicensed(names) == ["p/vendor/a has no licence file"]
    assert main(tmp_path) == 1
    assert "must hold one wheel and one sdist" in capsys.readouterr().out
