"""`plumecast info` and `plumecast tidy`: describe a store or a saved surrogate; free the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer
import xarray as xr

from plumecast.base.checkpoints import DOSE_ERROR, recorded_interval, summed_over
from plumecast.base.integrity import PASSED, Finding
from plumecast.base.names import (
    DATA_VERSION,
    FIRE,
    HEIGHT,
    LEVEL,
    LOWEST,
    SMOKE,
    SNAPSHOT,
    WEATHER_HOUR,
)
from plumecast.cli.show import count, note, pairs, say
from plumecast.data.checksums import has_checksums
from plumecast.data.clock import checkpoint_interval
from plumecast.data.findings import QUALITY, check_store
from plumecast.data.rewrite import tidy_store
from plumecast.data.schema import GROUPS, SMOKE_FLOOR, further_outputs
from plumecast.data.store import open_snapshots
from plumecast.operators.lifted import LiftedOperator
from plumecast.operators.settings import own_choices
from plumecast.surrogate.file import is_saved, read_header
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import OutputRecord
from plumecast.surrogate.update import SINCE_FIT
from plumecast.weather.profile import SURFACE
from plumecast.weather.snapshots import has_weather

_UNKNOWN = "not recorded"
_NO_SMOKE = "none: the store has no smoke"


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
    snapshots = open_snapshots(path, fields=(FIRE,))
    if SMOKE in snapshots:
        snapshots = open_snapshots(path)
    _show_store(snapshots, path)
    if check:
        if not has_checksums(snapshots):
            note(
                "this store has no checksums, so that damage to its files may go unseen; "
                "pc.export_snapshots writes a copy that has them"
            )
        _show_findings(check_store(snapshots))


def _show_findings(findings: Mapping[str, tuple[Finding, ...]]) -> None:
    """One line for each finding, the number of clean fires, and the exit code."""
    for fire, of_fire in findings.items():
        for finding in of_fire:
            say(f"{fire or 'store'}: {finding}")
    clean = [not of_fire for fire, of_fire in findings.items() if fire]
    total = sum(map(len, findings.values()))
    if not total:
        say("every value is finite and none is negative")
    say(f"{sum(clean)} of {len(clean)} fires are clean, {count(total, 'finding')}")
    if total:
        raise typer.Exit(1)


def _show_store(snapshots: xr.Dataset, path: Path) -> None:
    """What a store has; optional coordinates may be missing."""
    (y, x), attrs = (snapshots[name].values for name in "yx"), snapshots.attrs
    fires, ignitions = (np.unique(snapshots[name].values).size for name in GROUPS)
    floor = _UNKNOWN
    if SMOKE in snapshots:
        recorded = snapshots[SMOKE].attrs.get(SMOKE_FLOOR, attrs.get(SMOKE_FLOOR))
        if recorded is not None:
            floor = f"{recorded:g} µg m⁻³ of the sum over checkpoints"
    outputs = ", ".join(
        f"{name} ({snapshots[name].attrs.get(LEVEL, LOWEST)})"
        for name in further_outputs(snapshots)
    )
    items = [
        ("snapshots", f"{snapshots.sizes[SNAPSHOT]}"),
        ("fires", f"{fires} from {ignitions} ignitions"),
        *_columns(snapshots),
        ("weather", _weather(snapshots)),
        ("grid", f"{x.size} × {y.size} cells (x by y), {_step(x):g} × {_step(y):g} m"),
        ("checkpoints", _interval(snapshots)),
        ("smoke floor", floor if SMOKE in snapshots else _NO_SMOKE),
        *([("further outputs", outputs)] if outputs else []),
        ("source", str(attrs.get("source", _UNKNOWN))),
        ("version", str(attrs.get(DATA_VERSION, "none (plain Zarr)"))),
    ]
    pairs(str(path), items)
    if SMOKE in snapshots and floor == _UNKNOWN:
        note(
            "without a smoke floor, traces of numerical diffusion count as smoke; "
            "set --smoke-floor of plumecast train"
        )


def _columns(snapshots: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Summaries of optional coordinates, which a store without smoke may lack."""
    values = {str(name): snapshots[name].values for name in snapshots.variables}
    if "drought" in values:
        labels, counts = np.unique(values["drought"], return_counts=True)
        yield "droughts", ", ".join(f"{d} {n}" for d, n in zip(labels, counts, strict=True))
    for name, how, unit in (
        ("hours", "g", ""),
        ("burned_area", ",.0f", " acres"),
        ("fuel_load", ".3g", " kg m⁻²"),
    ):
        if name in values:
            low, high = values[name].min(), values[name].max()
            yield name.replace("_", " "), f"{low:{how}} … {high:{how}}{unit}"
    if QUALITY in values:
        passed = values[QUALITY] == PASSED
        fires = {name: bool(ok) for name, ok in zip(values["fire_id"], passed, strict=True)}
        clean = f"{sum(fires.values())} of {len(fires)} fires passed when they were read"
        yield "checks", clean + ("" if all(fires.values()) else "; --check lists the findings")


def _weather(snapshots: xr.Dataset) -> str:
    if not has_weather(snapshots):
        return _UNKNOWN
    hours, heights = (snapshots[name].values for name in (WEATHER_HOUR, HEIGHT))
    step = _step(hours)
    every = "hourly" if step == 1.0 else f"every {step:g} h" if hours.size > 1 else "one time"
    lowest = f"from {heights[0]:g} m " if heights[0] > SURFACE else ""
    levels = count(heights.size, "height")
    return f"{every} at {levels} {lowest}up to {heights[-1]:g} m, {hours.size} hours"


def _interval(snapshots: xr.Dataset) -> str:
    if SMOKE not in snapshots:
        return _NO_SMOKE
    interval = checkpoint_interval(snapshots)
    if interval is None:
        return "the interval is not recorded, or not the same in all fires"
    error = snapshots[SMOKE].attrs.get(DOSE_ERROR)
    dose = "" if error is None else f"; the frames of the source leave {error:.1%} of the dose open"
    return f"{interval:g} h apart; smoke is the sum over them{dose}"


def _step(values: np.ndarray) -> float:
    return float(np.median(np.diff(values))) if values.size > 1 else float("nan")


_CHOSEN = ("fire_rank", "smoke_rank", "penalty", "scenarios", "frame", "physics", "transport")


def _show_surrogate(surrogate: Surrogate, path: Path) -> None:
    header = read_header(path)
    training, settings = surrogate.training, surrogate.settings
    fires = len(training.get("fire_id", ()))
    thresholds = []
    for number, name in enumerate(surrogate.outputs.names):
        output = surrogate.output(name)
        interval = recorded_interval(output.outputs.fields[0].attrs)
        summed = f" (of the sum over {summed_over(interval)})" if name == SMOKE else ""
        title = f"thresholds of {name}" if number else "thresholds"
        thresholds.append((title, _thresholds(output.record, summed)))
    inner = []
    error = training.get("leave_out_error")
    if error is not None:  # by which a fit made its choices
        meaning = "relative error"
        if isinstance(surrogate.operator, LiftedOperator):
            meaning = "median relative errors of g and of ln(1 + g), added"
        inner = [("inner error", f"{error:.3g}: {meaning}, of training fires left out in turn")]
    updates = "need a new fit (train --updatable keeps what plumecast update adds them to)"
    if surrogate.sums is not None:
        added = count(training.get(SINCE_FIT, 0), "ignition")
        updates = f"can be added by plumecast update; {added} since the last fit"
    items = [
        ("preset", str(settings.get("preset") or "none")),
        ("map", f"{_fields(surrogate.inputs)} → {_fields(surrogate.outputs)}"),
        ("settings", _shown(own_choices(settings))),
        ("trained on", f"{training.get('snapshots')} snapshots, {fires} fires"),
        ("chosen", _shown({name: training[name] for name in _CHOSEN if name in training})),
        *inner,
        *thresholds,
        ("error bars", _error_bars(surrogate)),
        ("new fires", updates),
        ("data", f"{training.get('source')}, version {training.get('data_version')}"),
        ("file", f"format {header['format']}, plumecast {header['version']}"),
        ("checksum", header["checksum"]),
    ]
    pairs(str(path), items)


def _thresholds(record: OutputRecord, summed: str) -> str:
    if record.thresholds is None:
        return "none"
    smoke, decision = record.thresholds.smoke, record.thresholds.decision
    shown = _shown({f"smoke{summed}": smoke, "decision": decision})
    return shown if record.agreement is None else f"{shown}; smoke and footprint agree at them"


def _error_bars(surrogate: Surrogate) -> str:
    table = surrogate.error_bars
    if table is None:
        return "none; train with --all makes them"
    text = f"calibrated on {table.smoky_groups} groups of {table.by}, for predict --interval"
    _, *further = surrogate.records.items()
    others = [name for name, record in further if record.error_bars is not None]
    return f"{text}; also of {', '.join(others)}" if others else text


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


def tidy(
    store: Path = typer.Argument(
        help="A store; or a surrogate, an export or a folder of results.", show_default=False
    ),
    old_versions: bool = typer.Option(
        False, "--old-versions", help="Also remove all versions of the store but the newest."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Remove nothing; say what would be."),
) -> None:
    """Remove what killed commands left, and files of a store that no version needs.

    Every fire stays. A command that is running is not disturbed: its temporary files are kept, and
    a store that is being written is refused.

    Example: `plumecast tidy ensemble.zarr --dry-run`
    """
    done = tidy_store(store, old_versions=old_versions, dry_run=dry_run)
    verb = "would free" if dry_run else "freed"
    if done.leftovers.files:
        folders = count(done.leftovers.files, "temporary folder")
        say(f"{verb} {done.leftovers.bytes / 1e6:.2f} MB: {folders}")
    if done.garbage.files:
        files = count(done.garbage.files, "file")
        size = f"{done.garbage.bytes / 1e6:.2f} MB"
        say(f"{verb} {size}: {files} of {store} that no version needs")
    if not done.leftovers.files and not done.garbage.files:
        say(f"nothing of {store} is left over")
    if done.old_versions and not old_versions:
        versions = count(done.old_versions, "earlier version")
        note(f"{store} keeps {versions}; --old-versions removes them with the files they need")
    elif done.old_versions:
        removed = "would be removed; their files are not counted" if dry_run else "removed"
        say(f"{count(done.old_versions, 'earlier version')} {removed}")
