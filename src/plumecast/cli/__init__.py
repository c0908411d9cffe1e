"""The command line: parse, call, print."""

from __future__ import annotations

import sys

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.version import __version__
from plumecast.cli.commands import (
    demo,
    ensemble,
    evaluate,
    info,
    ingest_rasters,
    ingest_wrf,
    predict,
    report,
    simulate,
    study,
    train,
    tune,
)
from plumecast.cli.show import fail

app = typer.Typer(
    name="plumecast",
    help="Learn the map from a wildfire to its smoke in seconds; predict it in milliseconds.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

_INTERRUPTED = 130  # the shell's code for a program stopped by Ctrl-C; typer returns it too

# typer brings its own copy of click in newer versions; the base of its errors is found through it.
_UsageError: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"plumecast {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options of every command."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for _module in (demo, simulate, train, tune, evaluate, predict, ensemble, study, report, info):
    app.command(name=_module.__name__.rsplit(".", 1)[-1])(_module.command)

_ingest = typer.Typer(help="Read fires that other models made into a store.", no_args_is_help=True)
_ingest.command("wrf")(ingest_wrf.command)
_ingest.command("rasters")(ingest_rasters.command)
app.add_typer(_ingest, name="ingest")


def main(arguments: list[str] | None = None) -> None:
    """Run a command; an error is one line with the next step, and exit code 2."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(given, standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except _UsageError as error:
        fail(f"{error.format_message()} (see plumecast --help)")  # type: ignore[attr-defined]
        sys.exit(2)
    except (PlumecastError, OSError) as error:
        if "--debug" in given:
            raise
        fail(str(error))
        sys.exit(2)
    if code == _INTERRUPTED:
        fail("stopped; what was finished is kept")
    sys.exit(code if isinstance(code, int) else 0)
