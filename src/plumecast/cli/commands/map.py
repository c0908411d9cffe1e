"""`plumecast map`: see fires and their smoke."""

from __future__ import annotations

from pathlib import Path

import typer

from plumecast.app.maps.draw import FORMATS, draw_map
from plumecast.base.paths import check_output
from plumecast.cli.options import numbers
from plumecast.cli.show import count, note, say, wrote
from plumecast.scores.quantities import DEFAULT
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
    quantity: str = typer.Option(
        DEFAULT,
        help="Quantity of smoke to show: mean (time mean since ignition, µg m⁻³), dose (µg m⁻³ h) "
        "or sum (over checkpoints).",
    ),
    checkpoint_interval: float = typer.Option(
        None,
        help="Hours between the checkpoints over which smoke is summed.",
        show_default="as the source records it",
    ),
    layer: list[str] = typer.Option(
        [], help="Show this variable; may be repeated.", show_default="all; smoke in .png and .kmz"
    ),
    hours: str = typer.Option(
        None,
        help="Hours since ignition to show, separated by commas.",
        show_default="all; four in .png",
    ),
    points: Path = typer.Option(
        None, help="Table (CSV) of places: name, and lat, lon or x, y in metres."
    ),
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
    drawn = draw_map(
        source,
        out,
        model=model,
        fire=fire,
        reading=Reading(
            quantity,
            hours=[] if hours is None else numbers(hours, "--hours"),
            interval=checkpoint_interval,
        ),
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
