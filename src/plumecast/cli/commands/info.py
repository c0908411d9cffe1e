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
from plumecast.data.repository import Freed
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
        if not has_checksums(snapshots):
            note(
                "this store has no checksums, so that damage to its files may go unseen; "
                "pc.export_snapshots writes a copy that has them"
            )
        _show_findings(check_store(snapshots))


def _show_findings(found: Mapping[str, tuple[Finding, ...]]) -> None:
    """One line for each finding, the number of clean fires, and the exit code."""
    for fire, findings in found.items():
        for finding in findings:
            say(f"{fire or 'store'}: {finding}")
    fires = [findings for fire, findings in found.items() if fire]
    total = sum(map(len, found.values()))
    if not total:
        say("every value is finite and none is negative")
    clean = sum(not findings for findings in fires)
    say(f"{clean} of {len(fires)} fires are clean, {count(total, 'finding')}")
    if total:
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
        ("weather", _weather(snapshots)),
        ("grid", f"{x.size} × {y.size} cells (x by y), {_step(x):g} × {_step(y):g} m"),
        ("checkpoints", _interval(snapshots)),
        ("smoke floor", _floor(snapshots)),
        *_further(snapshots),
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
    if "fuel_load" in snapshots.variables:
        load = snapshots["fuel_load"].values
        yield "fuel load", f"{load.min():.3g} … {load.max():.3g} kg m⁻²"
    if QUALITY in snapshots.variables:
        passed = snapshots[QUALITY].values == PASSED
        fires = {name: bool(ok) for name, ok in zip(snapshots.fire_id.values, passed, strict=True)}
        clean = f"{sum(fires.values())} of {len(fires)} fires passed when they were read"
        yield "checks", clean + ("" if all(fires.values()) else "; --check lists the findings")


def _weather(snapshots: xr.Dataset) -> str:
    if not has_weather(snapshots):
        return _UNKNOWN
    hours, heights = (snapshots[name].values for name in (WEATHER_HOUR, HEIGHT))
    step = _step(hours)
    every = "hourly" if step == 1.0 else f"every {step:g} h" if hours.size > 1 else "one time"
    lowest = f"from {heights[0]:g} m " if heights[0] > SURFACE else ""
    levels = f"{heights.size} height{'s' * (heights.size != 1)}"
    return f"{every} at {levels} {lowest}up to {heights[-1]:g} m, {hours.size} hours"


def _interval(snapshots: xr.Dataset) -> str:
    if SMOKE not in snapshots:
        return "none: the store has no smoke"
    interval = checkpoint_interval(snapshots)
    if interval is None:
        return "the interval is not recorded, or not the same in all fires"
    error = snapshots[SMOKE].attrs.get(DOSE_ERROR)
    known = (
        "" if error is None else f"; the frames of the source leave {error:.1%} of the dose open"
    )
    return f"{interval:g} h apart; smoke is the sum over them{known}"


def _further(snapshots: xr.Dataset) -> list[tuple[str, str]]:
    """The smoke variables in addition to `smoke`, with where they are."""
    found = [
        f"{name} ({snapshots[name].attrs.get(LEVEL, LOWEST)})"
        for name in further_outputs(snapshots)
    ]
    return [("further outputs", ", ".join(found))] if found else []


def _floor(snapshots: xr.Dataset) -> str:
    if SMOKE not in snapshots:
        return "none: the store has no smoke"
    floor = snapshots[SMOKE].attrs.get(SMOKE_FLOOR, snapshots.attrs.get(SMOKE_FLOOR))
    return _UNKNOWN if floor is None else f"{floor:g} µg m⁻³ of the sum over checkpoints"


def _step(values: np.ndarray) -> float:
    return float(np.median(np.diff(values))) if values.size > 1 else float("nan")


def _show_surrogate(surrogate: Surrogate, path: Path) -> None:
    header = read_header(path)
    training, settings = surrogate.training, surrogate.settings
    fires = len(training.get("fire_id", ()))
    chosen = (
        "fire_rank",
        "smoke_rank",
        "penalty",
        "scenarios",
        "frame",
        "physics",
        "transport",
    )
    items = [
        ("preset", str(settings.get("preset") or "none")),
        ("map", f"{_fields(surrogate.inputs)} → {_fields(surrogate.outputs)}"),
        ("settings", _shown(own_choices(settings))),
        ("trained on", f"{training.get('snapshots')} snapshots, {fires} fires"),
        ("chosen", _shown({name: training[name] for name in chosen if name in training})),
        *_left_out(surrogate),
        *(
            (
                f"thresholds of {name}" if number else "thresholds",
                _thresholds(own.record, _summed(own)),
            )
            for number, (name, own) in enumerate(
                (name, surrogate.output(name)) for name in surrogate.outputs.names
            )
        ),
        ("error bars", _error_bars(surrogate)),
        ("new fires", _updates(surrogate)),
        ("data", f"{training.get('source')}, version {training.get('data_version')}"),
        ("file", f"format {header['format']}, plumecast {header['version']}"),
        ("checksum", header["checksum"]),
    ]
    pairs(str(path), items)


def _left_out(surrogate: Surrogate) -> list[tuple[str, str]]:
    """The error by which a fit made its choices, on fires that were left out of it in turn."""
    error = surrogate.training.get("leave_out_error")
    if error is None:
        return []
    meaning = "relative error"
    if isinstance(surrogate.operator, LiftedOperator):
        meaning = "median relative errors of g and of ln(1 + g), added"
    return [("inner error", f"{error:.3g}: {meaning}, of training fires left out in turn")]


def _updates(surrogate: Surrogate) -> str:
    """Whether `plumecast update` can add fires, and how many it has added since the last fit."""
    if surrogate.sums is None:
        return "need a new fit (train --updatable keeps what plumecast update adds them to)"
    added = surrogate.training.get(SINCE_FIT, 0)
    return f"can be added by plumecast update; {count(added, 'ignition')} since the last fit"


def _summed(surrogate: Surrogate) -> str:
    """What the smoke threshold is a value of; nothing for other outputs than smoke."""
    first = surrogate.outputs.fields[0]
    interval = recorded_interval(first.attrs)
    return f" (of the sum over {summed_over(interval)})" if first.name == SMOKE else ""


def _thresholds(record: OutputRecord, summed: str) -> str:
    if record.thresholds is None:
        return "none"
    smoke, decision = record.thresholds.smoke, record.thresholds.decision
    found = _shown({f"smoke{summed}": smoke, "decision": decision})
    return found if record.agreement is None else f"{found}; smoke and footprint agree at them"


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
        say(f"{verb} {_size(done.leftovers)}: {count(done.leftovers.files, 'temporary folder')}")
    if done.garbage.files:
        files = count(done.garbage.files, "file")
        say(f"{verb} {_size(done.garbage)}: {files} of {store} that no version needs")
    if not done.leftovers.files and not done.garbage.files:
        say(f"nothing of {store} is left over")
    if done.old_versions and not old_versions:
        versions = count(done.old_versions, "earlier version")
        note(f"{store} keeps {versions}; --old-versions removes them with the files they need")
    elif done.old_versions:
        removed = "would be removed; their files are not counted" if dry_run else "removed"
        say(f"{count(done.old_versions, 'earlier version')} {removed}")


def _size(freed: Freed) -> str:
    return f"{freed.bytes / 1e6:.2f} MB"
