"""`plumecast study`: the paper's tables and figures on your own snapshots."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.base.paths import check_output
from plumecast.cli.options import with_options
from plumecast.cli.show import (
    command_line,
    count,
    exit_code,
    fail,
    next_step,
    note,
    pairs,
    progress,
    table,
    when_stopped,
    wrote,
)
from plumecast.data.schema import PAPER_MIN_ACRES
from plumecast.data.split import SplitRecipe
from plumecast.data.store import open_snapshots
from plumecast.paper.context import Context, StudyLimits
from plumecast.paper.methods import neural_methods
from plumecast.paper.results import (
    STUDIES,
    StudyOutcome,
    claim_folder,
    describe_run,
    find_studies,
    read_record,
    read_run,
    run_studies,
)
from plumecast.workflows.evaluate import CAPTURED

FEWEST_IGNITIONS = 20
"""The paper's filter is the default only if it keeps at least this many ignitions."""


@with_options(recipe=SplitRecipe)
def command(
    names: list[str] = typer.Argument(None, help="Names of studies, or all.", show_default=False),
    data: Path = typer.Option(None, help="Snapshot store: Icechunk, Zarr or NetCDF."),
    out: Path = typer.Option(Path("results"), "--out", "-o", help="Folder of the results."),
    listed: bool = typer.Option(False, "--list", help="List the studies and stop."),
    fresh: bool = typer.Option(False, "--fresh", help="Run finished studies again."),
    neural: bool = typer.Option(False, help="Also train networks for the summary; slow."),
    literal: bool = typer.Option(
        True, help="Also time the paper's literal quadratic fit (5 GB, about a minute)."
    ),
    sizes: str = typer.Option(
        "8,16,32,64,100", help="Numbers of training ignitions of the study weather."
    ),
    draws: int = typer.Option(3, min=1, help="Random draws of them."),
    captured: float = typer.Option(
        CAPTURED, help="Share β of the footprint that the smoke threshold captures."
    ),
    min_acres: float = typer.Option(
        None,
        help="Keep snapshots with at least this burned area (acres).",
        show_default=f"1e5, as in the paper, if at least {FEWEST_IGNITIONS} ignitions remain; "
        "else all",
    ),
    *,
    recipe: SplitRecipe,
) -> None:
    """Reproduce tables and figures of the paper; finished ones are reused.

    Example: `plumecast study all --data ensemble.zarr --out results/`, then
    `plumecast report results/ -o report.html`
    """
    if listed:
        pairs("studies", [(study.name, study.title) for study in STUDIES.values()])
        return
    check_output(out, "folder", inputs=[data])
    studies = find_studies(names or [])
    networks = neural_methods() if neural else ()
    try:
        counts = tuple(int(part) for part in sizes.split(","))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1:
        raise ArgumentError(
            "sizes",
            sizes,
            "write for example 8,16,32",
            problem="is not a list of numbers of ignitions",
        )
    if not 0.0 < captured < 1.0:
        raise ArgumentError(
            "captured", captured, "the paper takes 0.95", problem="is not within (0, 1)"
        )
    if data is None:
        raise PlumecastError("name the snapshots to study, e.g. --data ensemble.zarr")
    snapshots = open_snapshots(data)
    recipe = with_paper_filter(replace(recipe, min_acres=min_acres), snapshots)
    split = recipe.split(snapshots)
    for part in (split.train, split.validation, split.test):
        part.load()
    record = recipe.record() | {"inputs": FIRE, "outputs": SMOKE}
    run = describe_run(split, data, record, seed=recipe.seed, command=command_line())
    if recipe.smoke_floor is None and not run["smoke_floor"]:
        note("the data records no smoke floor, so traces count as smoke; set --smoke-floor")
    changed = claim_folder(out, run)
    if changed:
        note(changed)
    with when_stopped(lambda: studies_kept(out)), progress("studying", total=None) as step:
        context = Context(
            split,
            fingerprint=run["fingerprint"],
            folder=out / "surrogates",
            seed=recipe.seed,
            captured=captured,
            limits=StudyLimits(
                literal=literal, neural=networks, weather_sizes=counts, weather_draws=draws
            ),
            tell=step,
        )
        outcomes = run_studies(
            studies, context, out, fresh=fresh, begin=lambda study: step(study.name)
        )
    show_studies(outcomes, out)


def studies_kept(folder: Path) -> str:
    """What is kept of a run of studies that was stopped."""
    run = read_run(folder) or {}
    records = [read_record(folder, name) for name in STUDIES]
    done = sum(item is not None and item.run == run.get("fingerprint") for item in records)
    if not done:
        return f"no study was finished, {folder} holds none"
    kept = count(done, "finished study is", "finished studies are")
    return f"{kept} kept in {folder}; the same command, without --fresh, continues"


def with_paper_filter(recipe: SplitRecipe, snapshots: xr.Dataset) -> SplitRecipe:
    """The recipe with the paper's smallest burned area, if there are enough large fires."""
    if recipe.min_acres is not None:
        return recipe
    snapshots = recipe.select(snapshots)
    large = snapshots.burned_area.values >= PAPER_MIN_ACRES
    kept = set(snapshots[recipe.by].values[large].tolist()) if recipe.by in snapshots else ()
    if len(kept) < FEWEST_IGNITIONS:
        note(
            f"only {len(kept)} ignitions reach the paper's {PAPER_MIN_ACRES:,.0f} acres, so all "
            f"{snapshots.sizes[SNAPSHOT]} snapshots are kept; set a limit with --min-acres"
        )
        return recipe
    return replace(recipe, min_acres=PAPER_MIN_ACRES)


def show_studies(outcomes: list[StudyOutcome], out: Path) -> None:
    """Print the outcome of every study and set the exit code."""
    rows = []
    for item in outcomes:
        state = "failed" if item.problem else "reused" if item.reused else "done"
        rows.append([item.study.name, state, f"{item.seconds:.1f}"])
    table(f"{len(outcomes)} studies", ["study", "", "seconds"], rows)
    failed = [item for item in outcomes if item.problem]
    for item in failed:
        fail(f"{item.study.name}: {item.problem}")
    if len(failed) < len(outcomes):
        wrote(out, "tables and figures")
        next_step("report", out, "-o", "report.html")
    exit_code(failed=len(failed), done=1)
