"""`plumecast report`: one page of a folder of results."""

from __future__ import annotations

from pathlib import Path

import typer

from plumecast.base.paths import check_output
from plumecast.cli.show import note, wrote
from plumecast.report.page import write_report
from plumecast.report.planner import write_decision


def command(
    results: Path = typer.Argument(
        help="Folder that `plumecast study` wrote; with --planner, folder with the files that "
        "`ensemble`, `compare` and `impact` wrote.",
        show_default=False,
    ),
    out: Path = typer.Option(Path("report.html"), "--out", "-o", help="Where to write the page."),
    planner: bool = typer.Option(
        False, "--planner", help="Write the page for a planner: maps, places, differences, energy."
    ),
) -> None:
    """Write one self-contained HTML page: tables, figures, settings, credibility.

    With --planner the page answers in plain words: where the smoke goes, how much of it places get,
    what scenarios change, what solar plants lose, how far to trust that, and what was assumed. It
    collects the .nc and .json files of `ensemble` (-o, --points-out), `compare` (-o, --json) and
    `impact` (-o) in the folder, whatever their names; what is missing is left out.

    Example: `plumecast report results/ -o report.html` or, for a planner, `plumecast report
    decision/ --planner -o decision.html`
    """
    check_output(out, content="an HTML page", inputs=[results])
    if planner:
        _write_planner(results, out)
        return
    page = write_report(results, out)
    if page.stale:
        note(
            f"left out, because their data or settings are different: {', '.join(page.stale)}; "
            "run these studies again"
        )
    for name, reason in page.failed.items():
        note(f"study {name} failed: {reason}")
    wrote(page.path, "the report")


def _write_planner(folder: Path, out: Path) -> None:
    page = write_decision(folder, out)
    if page.others:
        names = ", ".join(path.name for path in page.others)
        note(f"left out, because they are no results of ensemble, compare or impact: {names}")
    if page.missing:
        note(f"not on the page: {', '.join(page.missing)}; the page names the commands")
    wrote(page.path, "the page")
