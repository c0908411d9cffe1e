"""`plumecast tidy`: free the disk of leftovers."""

from __future__ import annotations

from pathlib import Path

import typer

from plumecast.cli.show import count, note, say
from plumecast.data.repository import Freed
from plumecast.data.rewrite import tidy_store


def command(
    store: Path = typer.Argument(
        help="A store; or a surrogate, an export or a folder of results.", show_default=False
    ),
    old_versions: bool = typer.Option(
        False, "--old-versions", help="Also remove all versions of the store but the newest."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Remove nothing; say what would be."),
) -> None:
    """Remove what killed commands left, and files of a store that no version needs.

    Every fire stays. A command that is running is not disturbed: its temporary files are kept, and
    a store that is being written is refused.

    Example: `plumecast tidy ensemble.zarr --dry-run`
    """
    done = tidy_store(store, old_versions=old_versions, dry_run=dry_run)
    verb = "would free" if dry_run else "freed"
    if done.leftovers.files:
        say(f"{verb} {_size(done.leftovers)}: {count(done.leftovers.files, 'temporary folder')}")
    if done.garbage.files:
        files = count(done.garbage.files, "file")
        say(f"{verb} {_size(done.garbage)}: {files} of {store} that no version needs")
    if not done.leftovers.files and not done.garbage.files:
        say(f"nothing of {store} is left over")
    if done.old_versions and not old_versions:
        versions = count(done.old_versions, "earlier version")
        note(f"{store} keeps {versions}; --old-versions removes them with the files they need")
    elif done.old_versions:
        removed = "would be removed; their files are not counted" if dry_run else "removed"
        say(f"{count(done.old_versions, 'earlier version')} {removed}")


def _size(freed: Freed) -> str:
    return f"{freed.bytes / 1e6:.2f} MB"
