"""`plumecast serve`: the live page."""

from __future__ import annotations

import threading
import time
import webbrowser
from pathlib import Path
from typing import Any

import typer

from plumecast.base.errors import PlumecastError, require
from plumecast.cli.fire_options import landscape_options
from plumecast.cli.options import WORKERS, Given, with_options
from plumecast.cli.show import count, counted, fires_kept, note, progress, say, when_stopped
from plumecast.workflows.simulate import Ground

PORT = 8017


@with_options(landscape=landscape_options)
def command(
    models: list[Path] = typer.Argument(
        None, help="Saved surrogates to offer; without any, one is trained.", show_default=False
    ),
    data: Path = typer.Option(
        None,
        help="Snapshot store to train on and to compare with, as it is at the start. With neither "
        "a store nor a model, a small ensemble is simulated once and kept.",
        show_default=False,
    ),
    host: str = typer.Option(
        "127.0.0.1",
        help="Address to listen at. With the default, only this machine can open the page.",
    ),
    port: int = typer.Option(PORT, help="Port to listen at; 0 for any that is free."),
    allow: list[str] = typer.Option(
        None,
        help="Host name under which other machines open the page; may be repeated.",
        show_default=False,
    ),
    browser: bool = typer.Option(True, "--browser/--no-browser", help="Open the page."),
    folder: Path = typer.Option(
        None, help="Folder of the models trained on the page.", show_default="in the user's cache"
    ),
    workers: int = WORKERS,
    *,
    landscape: Given,
) -> None:
    """Open a live page: light a fire, turn the wind, see its smoke; train and compare.

    Only this machine can open it, unless --host says otherwise. Ctrl-C ends it; models that were
    trained on the page are kept.

    Example: `plumecast serve` or, for your own fires, `plumecast serve smoke.plume --data
    ensemble.zarr`
    """
    require("fastapi", "serve", "the live page")
    require("uvicorn", "serve", "the live page")
    from plumecast.app.server import start

    for path in models or ():
        if not path.is_file():
            raise PlumecastError(f"{path}: no such surrogate; give a file of plumecast train")
    ground = Ground(**landscape)
    where = folder or start.default_folder(data)
    bound = start.listen(host, port)
    choices: dict[str, Any] = {}
    if data is None and not models:
        choices = dict(start.OWN_CHOICES)
        data = _own_fires(where, workers)
    began: list[float] = []
    with progress("preparing", total=None) as begin:

        def step(text: str) -> None:
            began.append(time.monotonic())
            begin(text)
            say(f"training: {text} ({began[-1] - began[0]:.0f} s)")

        page = start.prepare(models or [], data, where, ground=ground, choices=choices, step=step)
        begin("the landscape")
        start.warm_up(page)
    if page.world.simulator is None:
        note(f"fires cannot be lit on the page: {page.world.why_not}")
    if page.store is not None and not choices:
        note(f"the page has the fires that {data} has now; start it again for later ones")
    if not start.is_loopback(host):
        note(f"every machine that can reach {host} can open the page; it asks for no password")
    address = start.url_of(bound, host)

    def ready() -> None:
        say(f"{address} is ready, with {count(len(page.models.all()), 'model')}; Ctrl-C ends it")
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    start.run(page, bound, names=allow or (), ready=ready)
    trained = sum(model.result is not None for model in page.models.all())
    say(f"stopped: {count(trained, 'trained model is', 'trained models are')} kept in {where}")


def _own_fires(where: Path, workers: int) -> Path:
    """The small ensemble of the page: made at the first start, then read from its folder."""
    from plumecast.app.server import start

    if start.is_made(where):
        say(f"the small ensemble and the surrogate of an earlier start are in {where}")
    else:
        say(
            f"first start: {start.IGNITIONS} fires are simulated and a surrogate is trained, which "
            f"takes minutes; they are kept in {where}, so that the next start takes seconds"
        )
    began = time.monotonic()
    with when_stopped(lambda: fires_kept(where / start.FIRES)), counted("simulating") as bar:

        def tell(done: int, total: int, fire: str) -> None:
            bar(done, total, fire)
            if done % 4 == 0 or done == total:  # the bar is seen on a terminal only
                say(f"simulated fire {done} of {total} ({time.monotonic() - began:.0f} s)")

        return start.make_fires(where, tell, workers)
