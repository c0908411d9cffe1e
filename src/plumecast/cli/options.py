"""Options that several commands share, each declared once, and what they mean."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.blocks import Runner
from plumecast.data.split import SplitRecipe
from plumecast.scores.quantities import DEFAULT
from plumecast.scores.reading import Reading

Command: TypeAlias = Callable[..., None]
Given: TypeAlias = Mapping[str, Any]
"""The values of a group of options by name; None for an option that was not given."""

LEAST = {"batch": 1, "min_acres": 0, "seed": 0, "workers": 1}
"""Smallest values of options that mean the same in every command."""

_LARGEST = 2**63 - 1

DATA = typer.Argument(help="Snapshot store: Icechunk, Zarr or NetCDF.", show_default=False)
MODEL = typer.Argument(help="A saved surrogate.", show_default=False)
STORE = typer.Option(..., "--out", "-o", help="The store to write or to continue.")
STORE_ENDINGS = (".zarr", ".icechunk", "")
WORKERS = typer.Option(
    os.cpu_count() or 1, help="Number of processes; the result does not depend on it."
)
TABLE = typer.Option(None, "--json", help="Also write the table of fires to this file.")
SCHEDULER = typer.Option(
    None,
    help="Compute on a Dask cluster: its address, such as tcp://host:8786, or 'local' to start "
    "processes on this machine.",
)
QUANTITY = typer.Option(
    DEFAULT,
    help="Quantity that thresholds refer to: mean (time mean since ignition, µg m⁻³), dose "
    "(µg m⁻³ h) or sum (over checkpoints, as surrogates predict it).",
)
CHECKPOINT_INTERVAL = typer.Option(
    None,
    help="Hours between the checkpoints over which smoke is summed.",
    show_default="as the data records it",
)
PRECISION = typer.Option("float64", help="Arithmetic: float64, or float32 for speed.")


def split_options(
    min_acres: float = typer.Option(
        None, help="Keep snapshots with at least this burned area (acres); the paper uses 1e5."
    ),
    drought: str = typer.Option(None, help="Keep these drought scenarios, separated by commas."),
    smoke_floor: float = typer.Option(None, help="Set smoke below this value (µg m⁻³) to zero."),
    seed: int = typer.Option(None, help="Seed of the random split.", show_default="0"),
    by: str = typer.Option(
        None,
        help="Grouping coordinate, ignition_id or fire_id: all snapshots of a group stay in the "
        "same part of the split.",
        show_default="ignition_id",
    ),
    fractions: str = typer.Option(
        None, help="Shares of training, validation and test.", show_default="0.45,0.1,0.45"
    ),
) -> None:
    """How to filter and split the snapshots."""


def variable_options(
    inputs: str = typer.Option(
        None, help="Input variables, separated by commas.", show_default=FIRE
    ),
    outputs: str = typer.Option(
        None,
        help="Output variables, separated by commas, which `train` fits together, e.g. "
        "smoke,surface_smoke.",
        show_default=SMOKE,
    ),
) -> None:
    """Which variables the surrogate maps."""


def place_options(
    device: str = typer.Option(
        "cpu", help="Where to compute: cpu, cuda (PyTorch), cupy, or torch (PyTorch on the CPU)."
    ),
    memory: str = typer.Option(
        None, help="Read the fields from their store in blocks within this memory, e.g. 2GB."
    ),
    scheduler: str = SCHEDULER,
) -> None:
    """Where to compute."""


def with_options(**groups: Command) -> Callable[[Command], Command]:
    """Give a command groups of options, each declared by the parameters of a function.

    The command has one parameter for each group and receives the group's values as a mapping. An
    option that the command declares itself replaces the group's option of the same name.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)
        members = {name: inspect.signature(group, eval_str=True) for name, group in groups.items()}
        shown: dict[str, inspect.Parameter] = {}
        for name, parameter in own.parameters.items():
            shared = members[name].parameters if name in members else {name: parameter}
            shown |= {
                key: value.replace(kind=inspect.Parameter.KEYWORD_ONLY)
                for key, value in shared.items()
                if key == name or key not in own.parameters
            }

        @functools.wraps(command)
        def call(**values: Any) -> None:
            given = {
                name: {key: values[key] for key in members[name].parameters} for name in groups
            }
            kept = {name: value for name, value in values.items() if name in own.parameters}
            command(**kept, **given)

        call.__signature__ = own.replace(parameters=list(shown.values()))  # type: ignore[attr-defined]
        call.__annotations__ = {name: value.annotation for name, value in shown.items()}
        return call

    return decorate


def split_recipe(given: Given, base: SplitRecipe | None = None) -> SplitRecipe:
    """A recipe with the options that were given in place of its own values."""
    changes = {name: given[name] for name in inspect.signature(split_options).parameters}
    changes = {name: value for name, value in changes.items() if value is not None}
    if "drought" in changes:
        changes["drought"] = changes["drought"].split(",")
    if "fractions" in changes:
        changes["fractions"] = numbers(changes["fractions"], "--fractions")
    return replace(base or SplitRecipe(), **changes)


def variables(given: Given, base: Given | None = None) -> tuple[list[str], list[str]]:
    """The input and the output variables: given, of `base`, or of the contract."""
    known = {"inputs": FIRE, "outputs": SMOKE} | dict(base or {})
    known |= {name: value for name, value in given.items() if value is not None}
    inputs, outputs = (known[name].split(",") for name in ("inputs", "outputs"))
    return inputs, outputs


def numbers(text: str, option: str) -> list[float]:
    """The numbers of an option that takes several, separated by commas."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        raise PlumecastError(
            f"{option} '{text}' is not a list of numbers separated by commas"
        ) from None
    for value in found:
        check_number("", option, value)
    return found


def threshold_reading(thresholds: str, quantity: str, interval: float | None) -> Reading:
    """The values at which predictions are scored, of --thresholds, --quantity and the interval."""
    values = numbers(thresholds, "--thresholds") if thresholds else ()
    return Reading(quantity, values, interval=interval)


def check_number(name: str, option: str, value: object) -> None:
    """Raise for a number that no option takes: NaN, infinity, or one beyond 64 bits.

    Options in LEAST have a smallest value too. `nodata` may be NaN or infinite.
    """
    if isinstance(value, float) and not math.isfinite(value) and name != "nodata":
        raise PlumecastError(f"{option}={value} is not a finite number; give another value")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise PlumecastError(f"{option}={value} is too large; give at most {_LARGEST}")
    if value < LEAST.get(name, value):
        raise PlumecastError(f"{option}={value}; give at least {LEAST[name]}")


@contextlib.contextmanager
def running(
    scheduler: str | None, workers: int | None = None, device: str = "cpu"
) -> Iterator[Runner | None]:
    """A runner on the given scheduler; None without a scheduler."""
    if scheduler is None:
        yield None
        return
    if device != "cpu":
        raise PlumecastError(f"--scheduler cannot be combined with --device {device}; give one")
    from plumecast.compute.cluster import cluster

    with cluster(scheduler, workers or os.cpu_count() or 1) as runner:
        yield runner
