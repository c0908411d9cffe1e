"""Processes that write to one store by several of its names, or export to one path.

Every fire that was acknowledged is in the store, bit for bit, and those who lose a race say so in
one line. Of two exports one succeeds, and its file is whole.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from plumecast.data.rewrite import tidy_store
from tools.fuzz.trials import CHANGED, TRACEBACK, UNCHANGED, Target
from tools.fuzz.writers import FIRES, append, ask, difference, export, start, write_source


def prepare(folder: Path) -> None:
    """Four fires."""
    write_source(folder / "source.nc")


def attempt(originals: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    """Start the processes together and look at what they leave."""
    race = _exports if rng.random() < 0.5 else _appends
    return race(originals / "source.nc", scratch, rng)


def _appends(source: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    real = scratch / "real" / "store.zarr"
    real.parent.mkdir()
    (scratch / "link.zarr").symlink_to(real)
    (scratch / "folder").symlink_to(real.parent)
    names = [real, scratch / "link.zarr", scratch / "folder" / real.name, scratch / "link.zarr"]
    rng.shuffle(names)
    works = [append(source, name, [fire]) for name, fire in zip(names, FIRES, strict=True)]
    stored, odd = _run_together(works, scratch)
    if odd:
        return TRACEBACK, odd
    wrong = ask(scratch, lambda: _whole(real, source, stored))
    return (TRACEBACK if "Traceback" in wrong else CHANGED, wrong) if wrong else UNCHANGED


def _whole(store: Path, source: Path, stored: list[str]) -> str:
    left = tidy_store(store, dry_run=True)
    over = f"left over: {left}" if left.garbage.files or left.leftovers.files else ""
    return difference(store, source, stored) or over


def _exports(source: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    path = scratch / "out" / rng.choice(("out.nc", "out.zarr"))
    stored, odd = _run_together([export(source, path, fire) for fire in FIRES[:2]], scratch)
    if odd:
        return TRACEBACK, odd
    if len(stored) != 1:
        return CHANGED, f"{len(stored)} of two exports said that they succeeded"
    others = sorted(item.name for item in path.parent.iterdir() if item != path)
    wrong = ask(scratch, lambda: difference(path, source, stored))
    wrong = wrong or (f"left over: {others}" if others else "")
    return (CHANGED, wrong) if wrong else UNCHANGED


def _run_together(works: list[Callable], scratch: Path) -> tuple[list[str], str]:
    """Let the processes begin at once; the fires that they said are stored, and odd lines."""
    go = scratch / "go"
    children = [start(scratch / f"said{number}", go, work) for number, work in enumerate(works)]
    go.touch()
    said = [child.finish() for child in children]
    fires = sorted(set().union(*(stored for stored, _, _ in said)))
    return fires, "\n".join(odd for _, odd, _ in said if odd)


TARGET = Target("races", prepare, attempt, trials=20, limit=120.0)
