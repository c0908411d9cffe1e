"""`plumecast design`: which fires are worth an expensive run."""

from __future__ import annotations

from pathlib import Path

import typer

from plumecast.base.errors import ArgumentError, require
from plumecast.base.files import published_together
from plumecast.base.names import FIRE
from plumecast.base.paths import check_output
from plumecast.cli.show import count, note, progress, say, table, wrote
from plumecast.data.store import open_snapshots
from plumecast.workflows.design.design import (
    DEFAULT_METHOD,
    HOLD_OUT_REASON,
    Design,
    Run,
    design_runs,
    read_values,
    write_runs,
)
from plumecast.workflows.design.kernel import METHODS
from plumecast.workflows.wrf_inputs import check_wrf_inputs, write_wrf_inputs


def command(
    candidates: Path = typer.Argument(
        ..., help="Snapshot store of cheap fires to choose from; smoke is not needed."
    ),
    n: int = typer.Option(..., "-n", help="Number of ignitions to choose."),
    given: Path = typer.Option(
        None, help="Snapshot store of runs that exist already, on the same grid."
    ),
    method: str = typer.Option(DEFAULT_METHOD, help=f"How to choose: {', '.join(METHODS)}."),
    weights: str = typer.Option(
        None,
        help="How probable the candidates are: CSV table with ignition_id and weight, or a "
        "coordinate of the store.",
        show_default="all alike",
    ),
    costs: str = typer.Option(
        None,
        help="Costs of the runs: CSV table with ignition_id and cost, or a coordinate.",
        show_default="all alike",
    ),
    must_have: list[str] = typer.Option(
        [], help="An ignition that is among the chosen ones; may be repeated."
    ),
    hold_out: int = typer.Option(
        0, help="Ignitions to draw at random first, to run and keep for error bars."
    ),
    seed: int = typer.Option(0, help="Seed of the hold-out and of methods that draw."),
    out: Path = typer.Option(
        Path("runs.csv"), "--out", "-o", help="CSV table of the runs, in order."
    ),
    map: Path = typer.Option(None, help="Also draw a map of the choice (.png)."),
    wrf: Path = typer.Option(
        None, help="Also write inputs of WRF-Fire for every run, into folders in this one."
    ),
    wrf_hours: int = typer.Option(
        None,
        min=1,
        help="Length of the WRF-Fire runs in hours.",
        show_default="until the last snapshot",
    ),
) -> None:
    """Choose the fires that are worth an expensive run, before any of them is run.

    Whole ignitions are chosen, with their weather. The expected error says how far the mean
    uncertainty of a surrogate over the candidates falls with every run, relative to none (or to
    the given runs alone). It does not depend on the smoke, so that no run is needed for it.

    Example: `plumecast design cheap.zarr -n 12 --hold-out 4 -o runs.csv --map runs.png --wrf runs`
    """
    if wrf is not None:
        check_wrf_inputs(open_snapshots(candidates, fields=(FIRE,)), hours=wrf_hours)
    elif wrf_hours is not None:
        raise ArgumentError(
            "wrf_hours", wrf_hours, "add --wrf FOLDER", problem="is for WRF-Fire inputs"
        )
    sources = [candidates, given, *(Path(text) for text in (weights, costs) if text)]
    check_output(out, endings=(".csv",), inputs=sources)
    if map is not None:
        check_output(map, endings=(".png",), inputs=sources)
        require("matplotlib", "report", "a map")
    with progress("design", 3) as step:  # reading, features, choosing
        design = design_runs(
            candidates,
            n,
            given=given,
            method=method,
            weights=_values(weights, "weight"),
            costs=_values(costs, "cost"),
            must_have=must_have,
            hold_out=hold_out,
            seed=seed,
            progress=step,
        )
    _show(design, given)
    with published_together():
        if wrf is not None:  # of the chosen ignitions and the hold-out, in their order
            wanted = [run.ignition_id for run in design.runs]
            fires = open_snapshots(candidates, fields=(FIRE,))
            folders = write_wrf_inputs(fires, wrf, ignitions=wanted, hours=wrf_hours)
        write_runs(design, out)
        if map is not None:
            from plumecast.app.maps.figure import write_design_png

            write_design_png(design, map)
    if wrf is not None:
        wrote(wrf, f"inputs of WRF-Fire for {count(len(folders), 'fire')}")
        note(f"{folders[0] / 'README.md'} says how to run it, what is assumed and what is missing")
    wrote(out, count(len(design.runs), "run"))
    if map is not None:
        wrote(map, "the map")


def _values(text: str | None, what: str) -> dict[str, float] | str | None:
    """The values in a table, or the name of a coordinate."""
    if text is None or not (text.endswith(".csv") or Path(text).is_file()):
        return text
    return read_values(text, what)


def _show(design: Design, given: Path | None) -> None:
    pool = design.places.sizes["ignition_id"]
    base = "no run" if given is None else "the given runs alone"
    table(
        f"{len(design.chosen)} of {pool} ignitions by {design.method}",
        ["ignition", "rank", "role", "x (km)", "y (km)", "wind (m/s)", "from (°)", "error after"],
        [_row(run) for run in design.runs],
    )
    if design.held_out:
        note(f"hold-out of {len(design.held_out)}: {HOLD_OUT_REASON}")
    else:
        note(
            "no hold-out: chosen fires are not like those of the pool, so that error bars from "
            "them alone may mislead; --hold-out 4 sets random ones aside"
        )
    errors = [run.expected_error for run in design.runs if run.expected_error is not None]
    half = (len(errors) + 1) // 2
    say(
        f"expected error, relative to {base}: {errors[half - 1]:.2f} after {count(half, 'run')}, "
        f"{errors[-1]:.2f} after all {len(errors)}"
    )


def _row(run: Run) -> list[str]:
    speed, direction = run.wind_speed, run.wind_from_direction
    return [
        run.ignition_id,
        str(run.rank),
        run.role,
        f"{run.x / 1e3:.1f}",
        f"{run.y / 1e3:.1f}",
        "" if speed is None else f"{speed:.1f}",
        "" if direction is None else f"{direction:.0f}",
        "" if run.expected_error is None else f"{run.expected_error:.3f}",
    ]
