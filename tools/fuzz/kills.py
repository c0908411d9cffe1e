"""Writers that are killed at a write call, or find the disk full, while they create or append.

strace kills the writer at its n-th call that writes, renames, links or creates a folder, on any of
its threads. Without strace, it is killed after a random time. Afterwards every acknowledged fire is
there, commands accept or refuse the store in one line, and a resumed run completes it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import plumecast as pc
from plumecast.data.rewrite import tidy_store
from tools.fuzz.commands import is_one_line, run_command
from tools.fuzz.trials import CHANGED, TRACEBACK, UNCHANGED, Target
from tools.fuzz.writers import FIRES, append, ask, difference, start, write_source

_CALLS = ("mkdir,rename,renameat,renameat2,link,linkat,unlink,fsync,fdatasync", "write,pwrite64")
_MOST_CALLS = 30
_FULL = 0.15  # share of the trials with a full disk
_SECONDS = 0.5  # longest delay of a kill by time


def prepare(folder: Path) -> None:
    """Four fires, and a store of the first."""
    write_source(folder / "source.nc")
    work = append(folder / "source.nc", folder / "begun.zarr", FIRES[:1])
    start(folder / "said", None, work).finish()
    tracer = shutil.which("strace")
    if tracer and subprocess.run([tracer, "-o", "/dev/null", "true"], check=False).returncode == 0:
        (folder / "strace").write_text(tracer)


def attempt(originals: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    """Cut a writer off, then resume."""
    source, store, known = originals / "source.nc", scratch / "store.zarr", set[str]()
    if rng.random() < 0.5:
        shutil.copytree(originals / "begun.zarr", store)
        known = {FIRES[0]}
    fires = sorted({*FIRES} - known)
    if rng.random() < _FULL:
        work = append(source, store, fires, most=rng.randint(1, 2500))
        stored, odd, _ = start(scratch / "said", None, work).finish()
    else:
        stored, odd = _killed(originals, store, fires, rng)
    if odd:
        return TRACEBACK, odd
    wrong = ask(scratch, lambda: _resumed(source, store, stored | known))
    return (TRACEBACK if "Traceback" in wrong else CHANGED, wrong) if wrong else UNCHANGED


def _resumed(source: Path, store: Path, acknowledged: set[str]) -> str:
    """What is wrong with a store whose writer was cut off; empty if nothing is."""
    lost = acknowledged - pc.data.stored_fires(store)
    if lost:
        return f"acknowledged and lost: {sorted(lost)}"
    if store.exists():
        code, printed = run_command(["info", store])
        if code and not is_one_line(printed):
            return printed
    data = pc.open_snapshots(source).load()
    for fire in sorted({*FIRES} - pc.data.stored_fires(store)):
        pc.data.append_fire(store, data.isel(snapshot=data.fire_id.values == fire))
    left = tidy_store(store, dry_run=True)
    over = f"left over: {left}" if left.garbage.files or left.leftovers.files else ""
    return difference(store, source, FIRES) or over


def _killed(
    originals: Path, store: Path, fires: Sequence[str], rng: random.Random
) -> tuple[set[str], str]:
    """Run a writer until it is killed; a run that ends before its kill is repeated, sooner."""
    work = append(originals / "source.nc", store, fires)
    calls, when = rng.choice(_CALLS), rng.randint(1, _MOST_CALLS)
    before, go = store.with_name("before"), store.with_name("go")
    if store.exists():
        shutil.copytree(store, before)
    while True:
        writer = start(store.with_name("said"), go, work)
        if (originals / "strace").exists():
            options = ["-e", f"trace={calls}", "-e", f"inject={calls}:signal=KILL:when={when}"]
            tracer = (originals / "strace").read_text()
            command = [tracer, "-f", "-qq", "-o", "/dev/null", *options, "-p", str(writer.pid)]
            tracing = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            _wait_for_tracer(writer.pid)
            go.touch()
            stored, odd, killed = writer.finish()
            tracing.wait()
        else:
            go.touch()
            time.sleep(rng.uniform(0.0, _SECONDS))
            os.kill(writer.pid, signal.SIGKILL)
            stored, odd, killed = writer.finish()
        if killed or odd:
            return stored, odd
        for made in (go, writer.said):
            made.unlink()
        shutil.rmtree(store)
        if before.exists():
            shutil.copytree(before, store)
        when = max(1, when // 2)


def _wait_for_tracer(pid: int) -> None:
    for _ in range(5000):
        if "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text():
            return
        time.sleep(0.001)


TARGET = Target("kills", prepare, attempt, trials=110, limit=120.0)
