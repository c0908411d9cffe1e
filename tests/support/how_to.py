"""Follow a how-to page: its blocks are run as they stand, in order, in a folder."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from support.places import REPOSITORY

BLOCK = re.compile(r"^```([^`\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUN = ("", "python")  # blocks in other languages are for machines the tests do not have

# The shell hands every call of plumecast to the process of the tests and waits for its exit code.
# A process of its own for each call would spend most of its time on imports.
FORWARD = r"""
plumecast() {{
    printf '%s\0' "$#" "$@" >&{calls}
    local code
    read -r code <&{codes}
    return "$code"
}}
"""


def follow(page: str, run: Callable[..., Any]) -> str:
    """Run the blocks of a page in the current folder; returns what they printed.

    `run` is the fixture that runs one command of plumecast.
    """
    text = (REPOSITORY / "docs" / "how-to" / page).read_text(encoding="utf-8")
    printed = ""
    for language, block in BLOCK.findall(text):
        if language in RUN:
            printed += run_python(block) if language else run_shell(block, run)
    return printed


def page_module(page: str, name: str) -> ModuleType:
    """The module of a page whose docstring begins with "The" and its name."""
    text = (REPOSITORY / "docs" / "how-to" / page).read_text(encoding="utf-8")
    (code,) = (own for _, own in BLOCK.findall(text) if own.startswith(f'"""The {name}'))
    module = sys.modules[name] = ModuleType(name)
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)
    return module


def run_python(block: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "a how-to page", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


def run_shell(block: str, run: Callable[..., Any]) -> str:
    """Run a block in a shell; it must succeed."""
    calls_out, calls_in = os.pipe()
    codes_out, codes_in = os.pipe()
    script = FORWARD.format(calls=calls_in, codes=codes_out) + block
    shell = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script], pass_fds=(calls_in, codes_out),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(calls_in)
    os.close(codes_out)
    said = ""
    with os.fdopen(calls_out, "rb") as calls, os.fdopen(codes_in, "w") as codes:
        while count := read_word(calls):
            result = run(*(read_word(calls) for _ in range(int(count))))
            said += result.out + result.err
            codes.write(f"{result.code}\n")
            codes.flush()
    out, err = shell.communicate()
    assert shell.returncode == 0, f"{block}\n{said}\n{out}\n{err}"
    return said + out


def read_word(stream: io.BufferedReader) -> str:
    """The next word up to its NUL byte; empty at the end of the stream."""
    word = bytearray()
    while (byte := stream.read(1)) not in (b"", b"\0"):
        word += byte
    return word.decode()
