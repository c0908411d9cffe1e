"""`plumecast simulate`: an ensemble of fires and their smoke from the embedded simulator."""

from __future__ import annotations

from pathlib import Path

import typer

from plumecast.base.names import SNAPSHOT
from plumecast.base.paths import check_output
from plumecast.cli.fire_options import landscape_options
from plumecast.cli.options import (
    SCHEDULER,
    STORE,
    STORE_ENDINGS,
    WORKERS,
    Given,
    ResourceOptions,
    with_options,
)
from plumecast.cli.show import count, fires_kept, next_step, note, say, when_stopped, wrote
from plumecast.weather.snapshots import has_weather
from plumecast.workflows.simulate import Ground, simulate


@with_options(landscape=landscape_options)
def command(
    out: Path = STORE,
    preset: str = typer.Option(
        None,
        help="demo (a minute on two cores), paper (about 7,300 snapshots over 10⁵ acres) or "
        "weathers (400 fires with a weather each).",
    ),
    ignitions: int = typer.Option(
        None, help="Number of ignitions; replaces that of the preset.", show_default=False
    ),
    droughts: str = typer.Option(
        None,
        help="Scenarios, separated by commas; all fires of one share its weather.",
        show_default="low,medium,high",
    ),
    weathers: int = typer.Option(
        None,
        help="Instead of droughts: burn each ignition under this many weathers of its own, drawn "
        "at random.",
        show_default="0; 1 with --preset weathers",
    ),
    checkpoints: int = typer.Option(None, help="Snapshots of each fire, six hours apart."),
    seed: int = typer.Option(0, help="Seed of landscape, weather and ignitions."),
    workers: int = WORKERS,
    *,
    landscape: Given,
    scheduler: str = SCHEDULER,
) -> None:
    """Simulate an ensemble of large fires and their smoke.

    Every finished fire is stored at once, so that the same command continues after an interruption.

    The hourly wind profile and boundary layer are stored with every fire.

    Example: `plumecast simulate --preset demo -o ensemble.zarr` or, for fires that each have a
    weather of their own, `plumecast simulate --preset weathers -o windy.zarr`
    """
    inputs = [landscape["dem"], landscape["fuels"]]
    check_output(out, "store", endings=STORE_ENDINGS, inputs=inputs)
    with (
        when_stopped(lambda: fires_kept(out)),
        ResourceOptions(scheduler=scheduler).resources("simulating fires", workers) as resources,
    ):
        snapshots = simulate(
            out,
            preset=preset,
            ignitions=ignitions,
            droughts=None if droughts is None else droughts.split(","),
            weathers=weathers,
            checkpoints=checkpoints,
            seed=seed,
            ground=Ground(**landscape),
            workers=workers,
            resources=resources,
        )
    fires = len(set(snapshots.fire_id.values.tolist()))
    say(f"{count(fires, 'fire')}, {snapshots.sizes[SNAPSHOT]} snapshots")
    wrote(out, "the ensemble")
    if landscape["dem"] is not None and "crs" not in snapshots.coords:
        note(
            f"{out} was begun without a coordinate system and counts x and y from the corner of "
            "the rasters; for maps in their CRS, simulate to another path"
        )
    if not has_weather(snapshots):
        note(
            f"{out} was begun by a version that did not store the hourly weather, and is continued "
            "without it; to have it, simulate to another path"
        )
    next_step("train", out)
