"""Print the outcome of every fire, and set the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from plumecast.base.files import write_json
from plumecast.cli.show import count, fail, note, say, table, wrote
from plumecast.data.clock import checkpoint_interval
from plumecast.data.store import open_snapshots, stored_fires
from plumecast.workflows.fires.growing_store import Outcome

SOME_FAILED, NOTHING_DONE = 1, 2
STATES = ("read", "skipped", "failed")
RELABELLED = "relabelled"
COLUMNS = ("fire", "", "snapshots", "hours", "acres", "checks")
_MOST_ROWS = 60  # of the table
_MOST_PROBLEMS = 20
_MOST_NAMES = 5  # fires in one line


def fires_kept(store: Path) -> str:
    """What is kept of a store whose command was stopped."""
    fires = len(stored_fires(store))
    if not fires:
        return f"no fire was finished, {store} holds none"
    saved = f"{count(fires, 'fire is', 'fires are')} saved in {store}"
    return f"{saved}; run the same command again to continue"


def note_mixed_intervals(store: Path) -> None:
    """Print a note if the checkpoints of the fires in a store are not equally far apart."""
    if stored_fires(store) and checkpoint_interval(open_snapshots(store)) is None:
        note(
            f"the checkpoints in {store} are not all equally far apart; smoke is a sum over them, "
            "so that amounts of different fires cannot be compared: set one interval with --every"
        )


def show_outcomes(outcomes: Sequence[Outcome], out: Path, report: Path | None) -> None:
    """Print the table of fires, the findings of the checks and the errors; set the exit code."""
    if report is not None:
        write_json(report, [asdict(item) | {"state": item.state} for item in outcomes])
    rows = [
        [
            item.fire_id,
            item.state,
            *([str(item.snapshots), f"{item.hours:.4g}", f"{item.acres:,.0f}"] if item.snapshots
              else ["", "", ""]),
            _checks(item),
        ]
        for item in outcomes[:_MOST_ROWS]
    ]  # fmt: skip
    counts = {state: sum(item.state == state for item in outcomes) for state in STATES}
    relabelled = sum(item.relabelled for item in outcomes)
    shown = counts | ({RELABELLED: relabelled} if relabelled else {})
    title = ", ".join(f"{count} {state}" for state, count in shown.items())
    table(f"{len(outcomes)} fires: {title}", COLUMNS, rows)
    if len(outcomes) > _MOST_ROWS:
        say(f"… and {len(outcomes) - _MOST_ROWS} more; --json writes all of them")
    for item in outcomes[:_MOST_ROWS]:
        for found in item.quality:
            note(f"{item.fire_id}: {found}")
    _show_differences(outcomes)
    show_problems([item.problem for item in outcomes if item.problem])
    if report is not None:
        wrote(report, "the table")
    done = counts["read"] + counts["skipped"] + relabelled
    if done:
        total = sum(item.snapshots for item in outcomes if item.state == "read")
        say(f"added {total} snapshots of {counts['read']} fires to {out}")
    exit_code(failed=counts["failed"], done=done)


def _show_differences(outcomes: Sequence[Outcome]) -> None:
    """One line for each difference between the stored fires and what was asked for."""
    fires: dict[str, list[str]] = {}
    for item in outcomes:
        kept = [f"{text}; the label is kept, --relabel replaces it" for text in item.other_labels]
        kept += [
            f"{text}; the fire is kept, --replace reads it again" for text in item.other_settings
        ]
        for text in kept:
            fires.setdefault(f"already stored with {text}", []).append(item.fire_id)
    for text, names in fires.items():
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        note(f"{', '.join(names[:_MOST_NAMES])}{more}: {text}")


def _checks(item: Outcome) -> str:
    if item.state != "read":
        return item.state if item.relabelled else "already stored" if item.stored else ""
    return count(len(item.quality), "finding") if item.quality else "passed"


def show_problems(problems: Sequence[str]) -> None:
    """Print the first errors, one line each."""
    for problem in problems[:_MOST_PROBLEMS]:
        fail(problem)
    if len(problems) > _MOST_PROBLEMS:
        fail(f"{len(problems) - _MOST_PROBLEMS} more failed")


def exit_code(*, failed: int, done: int) -> None:
    """Exit with 1 if some failed and with 2 if all failed; return if none did."""
    if failed:
        raise typer.Exit(SOME_FAILED if done else NOTHING_DONE)
