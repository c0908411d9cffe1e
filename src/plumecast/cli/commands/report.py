"""`plumecast report`: one page of a folder of results."""

from __future__ import annotations

from pathlib import Path

import typer

from plumecast.base.outputs import check_output
from plumecast.cli.show import note, wrote
from plumecast.studies.report.page import write_report


def command(
    results: Path = typer.Argument(help="Folder that `plumecast study` wrote.", show_default=False),
    out: Path = typer.Option(Path("report.html"), "--out", "-o", help="Where to write the page."),
) -> None:
    """Write one self-contained HTML page: tables, figures, settings, credibility.

    Example: `plumecast report results/ -o report.html`
    """
    check_output(out)
    page = write_report(results, out)
    if page.stale:
        note(
            f"left out, because their data or settings are different: {', '.join(page.stale)}; "
            "run these studies again"
        )
    for name, reason in page.failed.items():
        note(f"study {name} failed: {reason}")
    wrote(page.path, "the report")
