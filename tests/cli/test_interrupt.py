"""Ctrl-C: one line, exit code 130, no traceback, and true words about what is kept."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import plumecast as pc
import plumecast.cli.commands.demo
import plumecast.cli.commands.study
from plumecast.data.store import append_fire
from support.snapshots import fires_of, make_snapshots
from support.wrf_files import write_run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends a signal to a group of processes")


def heed_ctrl_c() -> None:
    """A shell ignores Ctrl-C in what it runs in the background, and processes inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stop(arguments: list[object], ready: Callable[[int], bool]) -> subprocess.CompletedProcess[str]:
    """Start a command, wait until `ready`, and send Ctrl-C twice to it and all its processes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "plumecast", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_ctrl_c,  # noqa: PLW1509
    )
    deadline = time.monotonic() + 120.0
    while not ready(process.pid) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    for _ in range(2):
        with contextlib.suppress(ProcessLookupError):  # it may have ended after the first
            os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.02)
    try:
        out, err = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess([], process.returncode, out, err)


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, which does not depend on how busy the machine is."""
    fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


IMPORTED = 4.0  # s of CPU time, about twice what the imports of a command take


def fires_in(store: Path) -> int:
    try:
        return len(pc.data.stored_fires(store))
    except pc.PlumecastError:  # the first commit is being written
        return 0


def test_stopped_ingest_with_workers_counts_what_it_kept(tmp_path):
    store = tmp_path / "ensemble.zarr"
    runs = [write_run(tmp_path / f"fire_{number:03d}", range(3)) for number in range(30)]
    result = stop(
        ["ingest", "wrf", *runs, "-o", store, "--workers", 3], lambda pid: fires_in(store) > 0
    )
    assert result.returncode == 130
    kept = fires_in(store)
    assert 0 < kept < 30
    words = f"{kept} fire is" if kept == 1 else f"{kept} fires are"
    assert result.stderr == (
        f"stopped: {words} saved in {store}; run the same command again to continue\n"
    )


def test_stopped_study_and_demo_say_what_is_kept(run, tmp_path, monkeypatch):
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    store = tmp_path / "ensemble.zarr"
    append_fire(store, make_snapshots(fires=24))
    out = tmp_path / "results"
    monkeypatch.setattr(plumecast.cli.commands.study, "run_studies", interrupt)
    result = run("study", "sensitivity", "--data", store, "-o", out)
    assert result.code == 130
    assert result.err.endswith(f"stopped: no study was finished, {out} holds none\n")

    demo = tmp_path / "demo"
    demo.mkdir()
    append_fire(demo / "ensemble.zarr", fires_of(make_snapshots(fires=2))[0])
    monkeypatch.setattr(plumecast.cli.commands.demo, "simulate", interrupt)
    result = run("demo", "-o", demo, "--workers", 2)
    assert result.code == 130
    assert result.err == (
        f"stopped: 1 fire is saved in {demo / 'ensemble.zarr'}; run the same command again to "
        "continue\n"
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads CPU times from /proc")
@pytest.mark.parametrize("seconds", [0.4, IMPORTED])
def test_ctrl_c_during_imports_and_tuning_is_one_line(tmp_path, seconds):
    store = tmp_path / "ensemble.zarr"
    append_fire(store, make_snapshots(fires=48, shape=(20, 24)))  # tuning takes longer than a load
    out = tmp_path / "tuned.json"
    result = stop(["tune", store, "-o", out], lambda pid: cpu_seconds(pid) > seconds)
    assert (result.returncode, result.stderr) == (130, "stopped: nothing was written\n")
    assert not out.exists()


AT_EXIT = """
import atexit, os, signal, sys
import plumecast.__main__ as entry
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.argv = ["plumecast", *sys.argv[1:]]
entry.main()
"""


def in_python(code: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, preexec_fn=heed_ctrl_c,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_ctrl_c_after_the_command_has_ended_changes_nothing(tmp_path):
    """While Python ends, there is nothing left to stop."""
    result = in_python(AT_EXIT, "info", "absent.zarr", cwd=tmp_path)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "stopped" not in result.stderr


STUCK = """
import signal, sys, time
import plumecast.__main__ as entry
import plumecast.cli
entry.PATIENCE = 0.2

def command(*, loaded):
    loaded()
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.raise_signal(signal.SIGINT)  # at once: ignored
        time.sleep(0.5)
        print("not stuck", flush=True)
        signal.raise_signal(signal.SIGINT)
        print("never reached", flush=True)

plumecast.cli.main = command
entry.main()
"""


def test_a_second_ctrl_c_ends_only_a_way_out_that_takes_long(tmp_path):
    result = in_python(STUCK, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (130, "not stuck\n")
    assert result.stderr == "stopped at once: temporary files may be left (plumecast tidy)\n"
