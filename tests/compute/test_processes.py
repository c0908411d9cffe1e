"""Processes that end with their parent; one with a time limit, from which nothing spreads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from plumecast.base.errors import PlumecastError
from plumecast.compute.processes import DiedError, HungError, LimitedProcess, report_step

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def own_id(*_: object) -> int:
    return os.getpid()


def slow_steps(count: int, pause: float) -> int:
    for number in range(count):
        report_step(f"step {number}")
        time.sleep(pause)
    return count


def hang(step: str) -> None:
    report_step(step)
    time.sleep(60.0)


def die(step: str, number: int) -> None:
    report_step(step)
    os.kill(os.getpid(), number)


def print_much() -> str:
    print("noise" * 1000, flush=True)
    os.write(1, b"from a library\n")
    return "answer"


def refuse(text: str) -> None:
    raise PlumecastError(text)


def test_one_process_is_used_for_all_tasks_and_replaced_after_it_hung_or_died():
    with LimitedProcess(1.5) as process:
        first = process.call(own_id)
        assert first != os.getpid()
        assert process.call(print_much) == "answer"
        with pytest.raises(PlumecastError, match="bad value"):
            process.call(refuse, "bad value")
        assert process.call(own_id) == first
        since = time.monotonic()
        with pytest.raises(HungError, match="file a"):
            process.call(hang, "file a")
        assert time.monotonic() - since < 30.0
        second = process.call(own_id)
        assert second != first
        with pytest.raises(DiedError, match="file b") as info:
            process.call(die, "file b", signal.SIGSEGV)
        assert info.value.code == -signal.SIGSEGV
        assert process.call(own_id) not in (first, second)
        # The limit is for one step, not for the whole task.
        assert process.call(slow_steps, 4, 0.5) == 4


LIMITED = """
from compute.test_processes import hang, own_id
from plumecast.compute.processes import LimitedProcess

process = LimitedProcess(60.0)
print(process.call(own_id), flush=True)
process.call(hang, "a")
"""
"""Without `if __name__ == "__main__"`, which such a process does not need."""

POOL = """
import os, time
from plumecast.compute.processes import new_pool, submit

if __name__ == "__main__":
    print(submit(new_pool(1), os.getpid).result(), flush=True)
    time.sleep(60)
"""


def runs(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:  # noqa: PTH123
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the state from /proc")
@pytest.mark.parametrize(
    ("script", "kill"), [(LIMITED, signal.SIGKILL), (POOL, signal.SIGKILL), (POOL, signal.SIGTERM)]
)
def test_a_process_ends_with_its_parent_in_the_midst_of_a_task(tmp_path, script, kill):
    (tmp_path / "parent.py").write_text(script)
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, tmp_path / "parent.py"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert runs(child)
        parent.send_signal(kill)
    deadline = time.monotonic() + 20.0
    while runs(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs(child)
