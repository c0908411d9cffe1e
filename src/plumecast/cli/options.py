"""Options that several commands share, each declared once, and what they mean."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import os
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, NamedTuple, TypeAlias

import typer

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import FIRE, SMOKE
from plumecast.base.values import setting
from plumecast.cli.show import counted
from plumecast.compute.blocks import Runner
from plumecast.compute.resources import Resources
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
SCHEDULER_HELP = (
    "Compute on a Dask cluster: its address, such as tcp://host:8786, or 'local' to start "
    "processes on this machine."
)
SCHEDULER = typer.Option(None, help=SCHEDULER_HELP)
QUANTITY = typer.Option(
    None,
    help="Quantity of smoke: mean (time mean since ignition, µg m⁻³), dose (µg m⁻³ h) or sum (over "
    "checkpoints, as surrogates predict it).",
    show_default=DEFAULT,
)
CHECKPOINT_INTERVAL = typer.Option(
    None,
    help="Hours between the checkpoints over which smoke is summed.",
    show_default="as the data records it",
)
PRECISION = typer.Option("float64", help="Arithmetic: float64, or float32 for speed.")
POINTS = typer.Option(
    None, help="Table (CSV) of places: name; lat and lon, or x and y; optionally population."
)
POINTS_OUT = typer.Option(
    None,
    help="With --points: also write the table to this file, .csv, .json or .nc.",
    show_default=False,
)


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


def reading_options(
    thresholds: str = typer.Option(
        "",
        help="Values of --quantity above which smoke is scored or counted, separated by commas: "
        "35,100 are µg m⁻³ of the time mean.",
    ),
    quantity: str = QUANTITY,
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
) -> None:
    """How smoke is read."""


def reading_of(given: Given, hours: Sequence[float] = ()) -> Reading:
    """What `reading_options` say, at some hours."""
    levels = numbers(given["thresholds"], "--thresholds") if given["thresholds"] else ()
    return Reading(given["quantity"], levels, hours, given["checkpoint_interval"])


@dataclass(frozen=True, slots=True)
class ResourceOptions:
    """Where a command computes."""

    device: str = setting(
        "cpu", "Where to compute: cpu, cuda (PyTorch), cupy, or torch (PyTorch on the CPU)."
    )
    memory: str | None = setting(
        None, "Read the fields from their store in blocks within this memory, e.g. 2GB."
    )
    scheduler: str | None = setting(None, SCHEDULER_HELP)

    @contextlib.contextmanager
    def running(self, workers: int | None = None) -> Iterator[Runner | None]:
        """A runner on the scheduler; None without one."""
        if self.scheduler is None:
            yield None
            return
        if self.device != "cpu":
            raise PlumecastError(
                f"--scheduler cannot be combined with --device {self.device}; give one"
            )
        from plumecast.compute.cluster import cluster

        with cluster(self.scheduler, workers or os.cpu_count() or 1) as runner:
            yield runner

    @contextlib.contextmanager
    def resources(self, title: str, workers: int | None = None) -> Iterator[Resources]:
        """What to compute with, and a progress bar."""
        with counted(title) as step, self.running(workers) as runner:
            yield Resources(self.device, self.memory, runner, step)


def with_options(**groups: Command | type) -> Callable[[Command], Command]:
    """Give a command groups of options, declared by the parameters of a function or by a class.

    The command has one parameter for each group. It receives an instance of the class, made of the
    options that were given, or the values of the function's parameters as a mapping. An option
    that the command declares itself replaces the group's option of the same name.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)
        members = {
            name: inspect.signature(
                options_of(group) if isinstance(group, type) else group, eval_str=True
            ).parameters
            for name, group in groups.items()
        }
        shown: dict[str, inspect.Parameter] = {}
        for name, parameter in own.parameters.items():
            shown |= {
                key: value.replace(kind=inspect.Parameter.KEYWORD_ONLY)
                for key, value in members.get(name, {name: parameter}).items()
                if key == name or key not in own.parameters
            }

        @functools.wraps(command)
        def call(**values: Any) -> None:
            for name, group in groups.items():
                given = {key: values[key] for key in members[name]}
                values[name] = given
                if isinstance(group, type):
                    values[name] = group(**settings_given(given, group))
            command(**{name: values[name] for name in own.parameters})

        call.__signature__ = own.replace(parameters=list(shown.values()))  # type: ignore[attr-defined]
        call.__annotations__ = {name: value.annotation for name, value in shown.items()}
        return call

    return decorate


class _Setting(NamedTuple):
    """A field of a settings class as an option."""

    name: str  # of the parameter and the keyword
    option: str
    kind: type  # that the option reads; text for lists
    items: type | None  # of the items of a list
    help: str
    default: str | None  # of the field
    default_text: str | None  # shown in the place of the default


def _settings_of(kind: type, prefix: str = "", what: str = "") -> Iterator[_Setting]:
    """The fields that have a help text; those of a settings class within it by its name."""
    hints = typing.get_type_hints(kind)
    for item in dataclasses.fields(kind):
        if "help" not in item.metadata:
            continue
        name, text = f"{prefix}{item.name}", item.metadata["help"]
        if is_dataclass(hints[item.name]):
            yield from _settings_of(hints[item.name], f"{name}_", text)
            continue
        hint, items = _read_as(hints[item.name])
        option = f"{prefix}{item.metadata.get('option') or item.name}".replace("_", "-")
        if hint is bool and "/" not in option:
            option = f"{option}/--no-{option}"
        words = item.metadata.get("default_text")
        default = words or _default_text(item.default)
        text = text.replace("{}", what)
        yield _Setting(name, f"--{option}", hint, items, text, default, words)


def _default_text(default: Any) -> str | None:
    """How the help shows the default of a field; None if it shows none."""
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    is_shown = isinstance(default, str | int | float) and not isinstance(default, bool)
    return f"{default:g}" if isinstance(default, float) else str(default) if is_shown else None


def _read_as(hint: Any) -> tuple[type, type | None]:
    """The type that an option of a field reads, and that of the items if it is a list."""
    kinds = [hint]
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
    for kind in kinds:
        if typing.get_origin(kind) in (tuple, list, Sequence, Iterable):
            return str, typing.get_args(kind)[0]
    return (str if str in kinds or Any in kinds else kinds[0]), None


def options_of(*kinds: type | Command, defaults: bool = True) -> Command:
    """A group of options for `with_options`: one for each field of settings classes with a help.

    A function among the classes adds its parameters. An option that is not given is None, for which
    the settings keep their value. With `defaults`, the help shows those of the fields.
    """
    made: dict[str, inspect.Parameter] = {}
    for kind in kinds:
        if not isinstance(kind, type):
            made |= inspect.signature(kind, eval_str=True).parameters
            continue
        for one in _settings_of(kind):
            default = one.default if defaults else one.default_text
            option = typer.Option(None, one.option, help=one.help, show_default=default or False)
            made[one.name] = inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=one.kind
            )

    def group(**values: Any) -> None:
        """The options of these classes."""

    keyword = inspect.Parameter.KEYWORD_ONLY
    made = {name: value.replace(kind=keyword) for name, value in made.items()}
    group.__signature__ = inspect.Signature(list(made.values()))  # type: ignore[attr-defined]
    return group


def settings_given(values: Given, *kinds: type) -> dict[str, Any]:
    """The options that were given, as values of the fields of settings classes."""
    made = {}
    for one in (one for kind in kinds for one in _settings_of(kind)):
        value = values.get(one.name)
        if value is not None and one.items in (int, float):
            value = numbers(value, one.option, one.items)
        elif value is not None and one.items is not None:
            value = [part.strip() for part in value.split(",") if part.strip()]
        if value is not None:
            made[one.name] = value
    return made


def variables(given: Given, base: Given | None = None) -> tuple[list[str], list[str]]:
    """The input and the output variables: given, of `base`, or of the contract."""
    names = {"inputs": FIRE, "outputs": SMOKE} | dict(base or {})
    names |= {name: value for name, value in given.items() if value is not None}
    return names["inputs"].split(","), names["outputs"].split(",")


def numbers(text: str, option: str, kind: type = float) -> list[Any]:
    """The numbers of an option that takes several, separated by commas."""
    try:
        values = [kind(part) for part in text.split(",")]
    except ValueError:
        whole = "whole " if kind is int else ""
        problem = f"is not a list of {whole}numbers separated by commas"
        raise ArgumentError(option, text, problem=problem) from None
    for value in values:
        check_number("", option, value)
    return values


def check_number(name: str, option: str, value: object) -> None:
    """Raise for a number that no option takes: NaN, infinity, or one beyond 64 bits.

    Options in LEAST have a smallest value too. `nodata` may be NaN or infinite.
    """
    if isinstance(value, float) and not math.isfinite(value) and name != "nodata":
        raise ArgumentError(option, value, "give another value", problem="is not a finite number")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise PlumecastError(f"{option}={value} is too large; give at most {_LARGEST}")
    if value < LEAST.get(name, value):
        raise PlumecastError(f"{option}={value}; give at least {LEAST[name]}")
