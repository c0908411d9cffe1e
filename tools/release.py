"""Check a built sdist and wheel before they are published: `python tools/release.py dist`.

`make release` builds both and runs this, then `twine check`, then a smoke test of the wheel in an
empty environment. Each problem is one line; the exit code is 1 if there is any.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

LARGEST_WHEEL = 5_000_000  # bytes; the vendored map libraries and borders are most of it
LARGEST_FILE = 1_000_000
ALLOWED = ("plumecast/", "plumecast-")
NEEDED = (
    "plumecast/__init__.py",
    "plumecast/py.typed",
    "plumecast/cli/__init__.py",
)
PRIVATE = ("/tests/", ".zarr/", ".plume", ".nc", ".npz", ".pyc", "__pycache__", ".DS_Store")
LICENCE_WORDS = ("license", "licence", "copying")
VENDORED = "/vendor/"


def wheel_problems(path: Path) -> list[str]:
    """What is wrong with the contents of a wheel."""
    with zipfile.ZipFile(path) as wheel:
        sizes = {item.filename: item.file_size for item in wheel.infolist()}
        (metadata,) = [n for n in sizes if n.endswith(".dist-info/METADATA")]
        headers = HeaderParser().parsestr(wheel.read(metadata).decode())
    problems = [f"{name} is missing" for name in NEEDED if name not in sizes]
    problems += [f"{n} is not part of the package" for n in sizes if not n.startswith(ALLOWED)]
    problems += [f"{n} must not be published" for n in sizes if any(p in n for p in PRIVATE)]
    problems += [
        f"{name} has {size:,} bytes; the limit is {LARGEST_FILE:,}"
        for name, size in sizes.items()
        if size > LARGEST_FILE
    ]
    if (total := path.stat().st_size) > LARGEST_WHEEL:
        problems.append(f"{path.name} has {total:,} bytes; the limit is {LARGEST_WHEEL:,}")
    if not any("/licenses/LICENSE" in name for name in sizes):
        problems.append("the licence file of plumecast is missing")
    problems += unlicensed(set(sizes))
    problems += [
        f"the metadata has no {field}"
        for field in ("Name", "Version", "Requires-Python", "License-Expression", "Summary")
        if not headers.get(field)
    ]
    return problems


def unlicensed(names: set[str]) -> list[str]:
    """Folders of vendored files that contain no licence file."""
    vendored = (name.split(VENDORED) for name in names if VENDORED in name)
    folders = {
        f"{above}{VENDORED}{below.split('/')[0]}" for above, below in vendored if "/" in below
    }
    licensed = {
        name[: name.rindex("/")]
        for name in names
        if any(word in name.rsplit("/", 1)[-1].lower() for word in LICENCE_WORDS)
    }
    return [f"{folder} has no licence file" for folder in sorted(folders) if folder not in licensed]


def sdist_problems(path: Path) -> list[str]:
    """What is wrong with the contents of a source distribution."""
    with tarfile.open(path) as archive:
        names = {member.name.split("/", 1)[-1]: member.size for member in archive}
    needed = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "src/plumecast/__init__.py")
    problems = [f"{name} is missing from the sdist" for name in needed if name not in names]
    return problems + [
        f"{name} has {size:,} bytes; the limit is {LARGEST_FILE:,}"
        for name, size in names.items()
        if size > LARGEST_FILE
    ]


def main(folder: Path) -> int:
    """Print the problems of the one wheel and the one sdist in a folder; return the exit code."""
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        print(f"{folder} must hold one wheel and one sdist; it has {len(wheels)} and {len(sdists)}")
        return 1
    problems = wheel_problems(wheels[0]) + sdist_problems(sdists[0])
    for problem in problems:
        print(problem)
    if not problems:
        print(f"{wheels[0].name} and {sdists[0].name}: contents, sizes and licences are right")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
