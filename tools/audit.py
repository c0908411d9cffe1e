"""Audit the locked dependencies: known vulnerabilities (needs a network) and licences.

    python tools/audit.py [constraints.txt]

Exit code 0: nothing was found; 1: something was found; 2: the vulnerabilities could not be looked
up, because there is no network.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

UNKNOWN = "unknown"
COPYLEFT = re.compile(r"\b(A?GPL|GNU (Affero )?General Public)", re.IGNORECASE)
"""Licences that would bind a program which uses the package; LGPL and MPL do not."""

STATED_IN_FILES = {"icechunk": "Apache-2.0"}
"""Licences of packages that state them in a file only."""

_PATIENCE = 120.0  # s
_LONGEST = 60  # characters; longer texts are the licence itself, not its name


def locked(path: Path) -> list[str]:
    """The names of the packages that a file of constraints pins."""
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [re.split(r"[=<>!~ ;\[]", line)[0] for line in lines if line]


def licence(name: str) -> str:
    """The licence that an installed package states; `unknown` if it states none."""
    try:
        stated = metadata(name)
    except PackageNotFoundError:
        return "not installed"
    expression = stated.get("License-Expression")
    classes = [
        text.rpartition("::")[2].strip()
        for text in stated.get_all("Classifier", [])
        if text.startswith("License ::") and not text.endswith(":: OSI Approved")
    ]
    text = (stated.get("License") or "").strip().split("\n")[0]
    short = text if len(text) <= _LONGEST else ""
    return expression or ", ".join(classes) or short or STATED_IN_FILES.get(name, UNKNOWN)


def doubtful(licences: dict[str, str]) -> list[str]:
    """The packages whose licence is unknown or binds programs that use them."""
    return [n for n, text in licences.items() if text == UNKNOWN or COPYLEFT.search(text)]


def vulnerabilities(constraints: Path) -> int:
    """Run pip-audit, in an environment of its own; 2 if it cannot be installed or cannot ask."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "bin" / "python"
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--retries=0",
            "--timeout=5",
            "pip-audit",
        ]
        audit = [python, "-m", "pip_audit", "--no-deps", "--disable-pip", "-r", constraints]
        if _call([sys.executable, "-m", "venv", folder]) or _call(install):
            return 2
        done = subprocess.run([*map(str, audit)], capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr, end="")
        offline = "ConnectionError" in done.stderr or "ServiceError" in done.stderr
        return 2 if offline else int(done.returncode != 0)


def _call(command: Iterable[object]) -> int:
    try:
        done = subprocess.run(
            [*map(str, command)], capture_output=True, check=False, timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired:  # a network that never answers
        return 1
    return done.returncode


def main(path: str = "constraints.txt") -> int:
    """Print both tables and return the exit code."""
    licences = {name: licence(name) for name in locked(Path(path))}
    for name, text in sorted(licences.items()):
        print(f"{name:<32} {text}")
    found = doubtful(licences)
    print(f"{len(licences)} locked packages; to check by hand: {', '.join(found) or 'none'}")
    code = vulnerabilities(Path(path))
    if code == 2:
        print(
            "error: known vulnerabilities were NOT looked up: pip-audit needs a network, and there "
            "is none here; run `make audit` where there is one",
            file=sys.stderr,
        )
    return code or int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
