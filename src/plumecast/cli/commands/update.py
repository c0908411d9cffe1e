"""`plumecast update`: take new fires into a surrogate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.files import sole_writer
from plumecast.base.paths import check_output
from plumecast.base.values import check_count, check_number
from plumecast.cli.options import DATA, MODEL
from plumecast.cli.show import count, next_step, note, say, when_stopped, wrote
from plumecast.compute.resources import Resources
from plumecast.data.store import open_snapshots
from plumecast.operators.settings import own_choices
from plumecast.surrogate.error_bars.interval import promise_text
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.update import FIRES, UPDATES, check_updatable, find_new_fires
from plumecast.workflows.fires.update import Taken, take_in_fires, watch_store
from plumecast.workflows.held_out.record import COVERAGE
from plumecast.workflows.held_out.unseen import ignition_count, recommendation


def command(
    model: Path = MODEL,
    data: Path = DATA,
    out: Path = typer.Option(
        None, "--out", "-o", help="File to save the surrogate in.", show_default="the model itself"
    ),
    refit_after: int = typer.Option(
        None, help="Fit again after this many new ignitions, with all choices made anew."
    ),
    training: Path = typer.Option(
        None,
        help="Store that the surrogate was trained on, for --refit-after; not needed if the fires "
        "are in the given store too.",
    ),
    watch: bool = typer.Option(
        False, "--watch", help="Go on and take in every ignition that the store gains (Ctrl-C)."
    ),
    every: float = typer.Option(60.0, help="Seconds between two looks at the store, for --watch."),
    more: int = typer.Option(4, help="Number of further ignitions whose gain is forecast."),
    target: float = typer.Option(None, help="IoU to reach: how many more ignitions it needs."),
    device: str = typer.Option("cpu", help="Where to compute: cpu, cuda, cupy or torch."),
) -> None:
    """Take the new fires of a store into a surrogate, without a new fit.

    The surrogate must have been trained with --updatable. Every new ignition is predicted first,
    which scores it honestly and joins the error bars; then it is learned. The last line says what
    more ignitions would gain. One update at a time writes a surrogate; another one is refused.

    Example: `plumecast update smoke.plume ensemble.zarr`
    """
    check_count("more", more)
    if target is not None:
        check_number("target", target, above=0.0)
        if target >= 1.0:
            raise ArgumentError("target", target, problem="must be an IoU below 1")
    if refit_after is not None:
        check_count("refit_after", refit_after)
    elif training is not None:
        raise ArgumentError("training", training, "give both", problem="is read for --refit-after")
    check_number("every", every, above=0.0)
    where = out or model
    check_output(where, content="a saved surrogate", inputs=[data, training])
    if not model.is_file():
        load_surrogate(model)  # raises, before a lock file is made
    with sole_writer(where):
        session = _Session(model, where, more, target)
        names = [*session.surrogate.inputs.names, *session.surrogate.outputs.names]
        earlier = [] if training is None else [open_snapshots(training, fields=names)]

        def take_in(fires: xr.Dataset) -> Iterator[Taken]:
            # Ignitions that still grow are not among the given fires, but a fit may need them.
            stored = [open_snapshots(data, fields=names)] if watch and refit_after else []
            return take_in_fires(
                session.surrogate, fires, refit_after=refit_after, training=[*earlier, *stored],
                resources=Resources(device),
            )  # fmt: skip

        with when_stopped(session.kept):
            if not watch:
                fires = open_snapshots(data, fields=names)
                session.tell_selection(fires)
                session.follow(take_in(fires))
                session.finish()
                next_step("predict", where, data)
                return
            say(f"watching {data} every {every:g} s; Ctrl-C ends")
            for fires in watch_store(data, every, names):
                if session.follow(take_in(fires)):
                    session.finish()


def _start(model: Path, where: Path) -> Surrogate:
    """The surrogate to begin with: an earlier result in the output file that contains the model."""
    surrogate = load_surrogate(model)
    try:
        check_updatable(surrogate)
    except PlumecastError as error:
        raise PlumecastError(f"{model}: {error}") from None
    if where == model or not where.exists():
        return surrogate
    before = load_surrogate(where)
    continues = surrogate.training[FIRES].items() <= before.training.get(FIRES, {}).items()
    made = [(own_choices(s.settings), s.inputs.names, s.outputs.names) for s in (before, surrogate)]
    if not continues or made[0] != made[1]:
        raise PlumecastError(
            f"{where} is a surrogate of other fires or settings than {model}; choose another --out"
        )
    note(f"{where} contains the fires of {model}; going on with it")
    return before


def _version(path: Path) -> tuple[int, int, int] | None:
    """What changes whenever a file is replaced or written to; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


class _Session:
    """The surrogate as it grows; it is saved after every ignition."""

    def __init__(self, model: Path, out: Path, more: int, target: float | None) -> None:
        self.out, self.version = out, _version(out)
        self.surrogate = _start(model, out)
        self.more, self.target = more, target
        self.taken = 0

    def tell_selection(self, fires: xr.Dataset) -> None:
        """Say which fires are not new; raise if none is."""
        new = find_new_fires(self.surrogate, fires)
        if new.held_out:
            note(f"{count(new.held_out, 'fire')} of the validation and test parts stay apart")
        if new.snapshots.sizes["snapshot"] == 0:
            learned = count(new.known, "fire of the store is", "fires of the store are")
            raise PlumecastError(
                f"there is no new fire: {learned} in the surrogate already; add fires"
            )
        if new.known:
            note(f"{count(new.known, 'fire')} of the store in the surrogate already")

    def follow(self, steps: Iterator[Taken]) -> bool:
        """Save and print every ignition; whether there was any."""
        any_taken = False
        for step in steps:
            self.surrogate, any_taken = step.surrogate, True
            self.save()
            self.taken += 1
            fires, snapshots = count(len(step.fires), "fire"), count(step.snapshots, "snapshot")
            text = f"{step.group}: {fires}, {snapshots}"
            if step.score is not None:
                iou, error = step.score["iou"], step.score["error"]
                text += f"; predicted before, IoU {iou:.2f}, error {error:.2f}"
            elif not step.is_new:
                text += "; further fires of an ignition that was learned, not scored"
            how = "fitted again to all fires" if step.refitted else "learned"
            say(f"{text}; {how} in {step.seconds:.2f} s")
        return any_taken

    def save(self) -> None:
        """Save the surrogate, unless another program such as `train` wrote the file meanwhile."""
        if _version(self.out) != self.version:
            raise PlumecastError(
                f"{self.out} was changed by another program since it was read, and stays so; run "
                "the same command again to take the fires into it"
            )
        self.surrogate.save(self.out)
        self.version = _version(self.out)

    def finish(self) -> None:
        """Print what was kept, what the error bars promise, and what more fires would gain."""
        kept = self.surrogate.training[UPDATES][-1]["kept"]
        if kept:
            say(f"kept from the fit: {', '.join(kept)} (--refit-after chooses them again)")
        if self.surrogate.error_bars is not None:
            say(promise_text(self.surrogate.error_bars, COVERAGE))
        say(recommendation(self.surrogate, self.more, self.target))
        wrote(self.out, f"the surrogate of {count(ignition_count(self.surrogate), 'ignition')}")

    def kept(self) -> str:
        """What is kept after Ctrl-C."""
        if not self.taken:
            return f"nothing was taken in; {self.out} is as it was"
        return f"{self.out} has learned from {count(self.taken, 'ignition')}; run again to go on"
