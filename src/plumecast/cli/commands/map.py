"""`plumecast map` and `plumecast report`: fires, smoke and results to look at."""

from __future__ import annotations

from pathlib import Path

import typer

from plumecast.app.maps.draw import FORMATS, draw_map
from plumecast.base.paths import check_output
from plumecast.cli.options import CHECKPOINT_INTERVAL, POINTS, QUANTITY, numbers
from plumecast.cli.show import count, note, say, wrote
from plumecast.scores.reading import Reading


def command(
    source: list[Path] = typer.Argument(
        help="A store, a prediction, ensemble statistics or a comparison; or a store and its "
        "prediction.",
        show_default=False,
    ),
    out: Path = typer.Option(..., "--out", "-o", help="The map: .html, .png or .kmz."),
    model: Path = typer.Option(
        None, help="A saved surrogate: show its prediction beside the observed smoke."
    ),
    fire: list[str] = typer.Option(
        [], help="Show this fire; may be repeated.", show_default="the largest"
    ),
    quantity: str = QUANTITY,
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
    layer: list[str] = typer.Option(
        [], help="Show this variable; may be repeated.", show_default="all; smoke in .png and .kmz"
    ),
    hours: str = typer.Option(
        None,
        help="Hours since ignition to show, separated by commas.",
        show_default="all; four in .png",
    ),
    points: Path = POINTS,
    dem: Path = typer.Option(
        None, help="Elevation model (GeoTIFF or ASCII grid) for a hillshade below the smoke."
    ),
    title: str = typer.Option(None, help="Title of the map.", show_default="from the source"),
    ignition_time: str = typer.Option(
        None,
        help="Time of ignition for a KMZ, in UTC, such as 2026-08-01T18:00Z.",
        show_default="as the fire records it",
    ),
) -> None:
    """Draw fires and their smoke: a page to explore, a figure, or KMZ for GIS programs.

    The page is one file that needs no network: choose fire and layer, move through time, click for
    values. Without --fire it has the largest fires, at most twelve; a figure or a KMZ has one.
    Borders are drawn where the source has a projection.

    Example: `plumecast map ensemble.zarr -o map.html` or
    `plumecast map ensemble.zarr --model smoke.plume --fire fire-7 -o map.png`
    """
    check_output(out, endings=FORMATS, content="an HTML page" if out.suffix == ".html" else None)
    at = numbers(hours, "--hours") if hours else []
    drawn = draw_map(
        source,
        out,
        model=model,
        fire=fire,
        reading=Reading(quantity, hours=at, interval=checkpoint_interval),
        layer=layer,
        points=points,
        dem=dem,
        title=title,
        ignition_time=ignition_time,
    )
    shown = len(drawn.scenes)
    if drawn.fires:
        which = "" if fire or shown == drawn.fires else ", the largest; choose with --fire"
        say(f"drew {shown} of {count(drawn.fires, 'fire')}{which}")
    say(f"layers: {'; '.join(drawn.layers)}")
    for line in drawn.notes:
        note(line)
    wrote(drawn.path, "the map")


def report(
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
    # Imported here: a map needs none of the libraries of reports.
    from plumecast.report.page import write_report
    from plumecast.report.planner import write_decision

    if planner:
        decision = write_decision(results, out)
        if decision.others:
            names = ", ".join(path.name for path in decision.others)
            note(f"left out, because they are no results of ensemble, compare or impact: {names}")
        if decision.missing:
            note(f"not on the page: {', '.join(decision.missing)}; the page names the commands")
        wrote(decision.path, "the page")
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
