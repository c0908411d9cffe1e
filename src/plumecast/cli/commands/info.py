"""`plumecast info`: describe a store or a saved surrogate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer
import xarray as xr

from plumecast.base.findings import PASSED, Finding
from plumecast.base.names import FIRE, SMOKE, SNAPSHOT
from plumecast.cli.show import note, pairs, say
from plumecast.data.checks.checkpoints import checkpoint_interval
from plumecast.data.checks.findings import QUALITY, check_store
from plumecast.data.schema import GROUPS, SMOKE_FLOOR
from plumecast.data.store import DATA_VERSION, open_snapshots
from plumecast.operators.settings import own_choices
from plumecast.surrogate.file import is_saved, read_header
from plumecast.surrogate.surrogate import Surrogate, load_surrogate

_UNKNOWN = "not recorded"


def command(
    path: Path = typer.Argument(help="A snapshot store or a saved surrogate.", show_default=False),
    check: bool = typer.Option(False, "--check", help="Read and check every value of a store."),
) -> None:
    """Describe a snapshot store or a saved surrogate.

    With --check, every finding is listed with its fire: those recorded when the fire was read, and
    those of its values now. The exit code is 1 if there are any.

    Example: `plumecast info ensemble.zarr --check`
    """
    if path.is_file() and is_saved(path):
        _show_surrogate(load_surrogate(path), path)
        return
    snapshots = _open(path)
    _show_store(snapshots, path)
    if check:
        _show_findings(check_store(snapshots))


def _show_findings(found: Mapping[str, tuple[Finding, ...]]) -> None:
    """One line for each finding, the number of clean fires, and the exit code."""
    for fire, findings in found.items():
        for finding in findings:
            say(f"{fire or 'store'}: {finding}")
    fires = [findings for fire, findings in found.items() if fire]
    count = sum(map(len, found.values()))
    if not count:
        say("every value is finite and none is negative")
    clean = sum(not findings for findings in fires)
    say(f"{clean} of {len(fires)} fires are clean, {count} finding{'s' * (count != 1)}")
    if count:
        raise typer.Exit(1)


def _open(path: Path) -> xr.Dataset:
    """A store of fires and smoke, or of fires alone."""
    fires = open_snapshots(path, fields=(FIRE,))
    return open_snapshots(path) if SMOKE in fires else fires


def _show_store(snapshots: xr.Dataset, path: Path) -> None:
    y, x = snapshots.y.values, snapshots.x.values
    fires, ignitions = (np.unique(snapshots[name].values).size for name in GROUPS)
    items = [
        ("snapshots", f"{snapshots.sizes[SNAPSHOT]}"),
        ("fires", f"{fires} from {ignitions} ignitions"),
        *_columns(snapshots),
        ("grid", f"{x.size} × {y.size} cells (x by y), {_step(x):g} × {_step(y):g} m"),
        ("checkpoints", _interval(snapshots)),
        ("smoke floor", _floor(snapshots)),
        ("source", str(snapshots.attrs.get("source", "not recorded"))),
        ("version", str(snapshots.attrs.get(DATA_VERSION, "none (plain Zarr)"))),
    ]
    pairs(str(path), items)
    if _floor(snapshots) == _UNKNOWN:
        note(
            "without a smoke floor, traces of numerical diffusion count as smoke; "
            "set --smoke-floor of plumecast train"
        )


def _columns(snapshots: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Summaries of optional coordinates, which a store without smoke may lack."""
    if "drought" in snapshots.variables:
        labels, counts = np.unique(snapshots.drought.values, return_counts=True)
        yield "droughts", ", ".join(f"{d} {n}" for d, n in zip(labels, counts, strict=True))
    if "hours" in snapshots.variables:
        hours = snapshots.hours.values
        yield "hours", f"{hours.min():g} … {hours.max():g}"
    if "burned_area" in snapshots.variables:
        area = snapshots.burned_area.values
        yield "burned area", f"{area.min():,.0f} … {area.max():,.0f} acres"
    if QUALITY in snapshots.variables:
        passed = snapshots[QUALITY].values == PASSED
        fires = {name: bool(ok) for name, ok in zip(snapshots.fire_id.values, passed, strict=True)}
        clean = f"{sum(fires.values())} of {len(fires)} fires passed when they were read"
        yield "checks", clean + ("" if all(fires.values()) else "; --check lists the findings")


def _interval(snapshots: xr.Dataset) -> str:
    if SMOKE not in snapshots:
        return "none: the store has no smoke"
    interval = checkpoint_interval(snapshots)
    if interval is None:
        return "the interval is not recorded, or not the same in all fires"
    return f"{interval:g} h apart; smoke is the sum over them"


def _floor(snapshots: xr.Dataset) -> str:
    if SMOKE not in snapshots:
        return "none: the store has no smoke"
    floor = snapshots[SMOKE].attrs.get(SMOKE_FLOOR, snapshots.attrs.get(SMOKE_FLOOR))
    return _UNKNOWN if floor is None else f"{floor:g} µg m⁻³"


def _step(values: np.ndarray) -> float:
    return float(np.median(np.diff(values))) if values.size > 1 else float("nan")


def _show_surrogate(surrogate: Surrogate, path: Path) -> None:
    header = read_header(path)
    training, settings = surrogate.training, surrogate.settings
    fires = len(training.get("fire_id", ()))
    chosen = ("fire_rank", "smoke_rank", "penalty", "leave_out_error", "scenarios", "frame")
    items = [
        ("preset", str(settings.get("preset") or "none")),
        ("map", f"{_fields(surrogate.inputs)} → {_fields(surrogate.outputs)}"),
        ("settings", _shown(own_choices(settings))),
        ("trained on", f"{training.get('snapshots')} snapshots, {fires} fires"),
        ("chosen", _shown({name: training[name] for name in chosen if name in training})),
        ("thresholds", _shown(training.get("thresholds", {})) or "none"),
        ("data", f"{training.get('source')}, version {training.get('data_version')}"),
        ("file", f"format {header['format']}, plumecast {header['version']}"),
        ("checksum", header["checksum"]),
    ]
    pairs(str(path), items)


def _fields(layout: Any) -> str:
    return " + ".join(
        f"{part.name} [{part.attrs.get('units', '?')}] {' × '.join(map(str, part.shape))}"
        for part in layout.fields
    )


def _shown(items: dict[str, Any]) -> str:
    return "; ".join(f"{name} {_value(value)}" for name, value in items.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_value(v)}" for k, v in value.items() if v is not None)
    if isinstance(value, tuple | list):
        return " + ".join(map(str, value)) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
