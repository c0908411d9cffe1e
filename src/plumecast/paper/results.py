"""The studies by name, and runs of them into a folder with fingerprints of what is still valid.

A new study is one module with its table, figures, captions and remarks, and one line in `_ALL`.

Finished studies are reused while data and settings are the same. A study that fails leaves its
reason in `failed/NAME.json` until it is run again with success.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.files import atomic_write, write_json
from plumecast.base.names import COVARIATES, DATA_VERSION, FIRE, SMOKE, SNAPSHOT
from plumecast.base.paths import check_regular
from plumecast.base.version import __version__
from plumecast.data.split import Split
from plumecast.paper import footprint, learning_curve, optical_depth, sensitivity, shift, summary
from plumecast.paper.context import Context, Study, columns_of, digest, write_csv
from plumecast.paper.figures import save_all, styled

_ALL = (
    optical_depth.STUDY,
    footprint.LINEAR,
    footprint.QUADRATIC,
    footprint.RECOMMENDED,
    sensitivity.STUDY,
    shift.STUDY,
    learning_curve.WEATHER,
    footprint.PROCESSES,
    summary.STUDY,
    learning_curve.STUDY,
)

STUDIES: dict[str, Study] = {study.name: study for study in _ALL}


def find_studies(names: list[str]) -> list[Study]:
    """The named studies, or all of them for `all`, in the order of the registry."""
    unknown = [name for name in names if name not in STUDIES and name != "all"]
    if unknown:
        raise PlumecastError(
            f"study '{unknown[0]}' does not exist; choose from {', '.join(STUDIES)} or all"
        )
    if not names:
        raise PlumecastError(f"no study is named; choose from {', '.join(STUDIES)} or all")
    return [study for study in _ALL if "all" in names or study.name in names]


# -- The folder of results

RUN = "run.json"
RECORD = "record.json"
TABLE = "table"
FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Record:
    """Record of a finished study: fingerprints, times and names of the figures."""

    study: str
    fingerprint: str
    run: str  # fingerprint of the run it belongs to
    seconds: float
    cpu_seconds: float = 0.0  # CPU time, which a shared machine affects less
    figures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished study, read from its folder."""

    study: Study
    record: Record
    finding: xr.Dataset
    folder: Path

    def figure(self, name: str, ending: str) -> Path:
        """Path of a figure; raises if the record names one that is not in the folder of results."""
        path = self.folder / f"{name}.{ending}"
        inside = path.resolve().is_relative_to(self.folder.parent.resolve())
        if name not in self.study.captions or not inside:
            raise PlumecastError(
                f"{self.folder / RECORD} names the figure '{name}', which is none of study "
                f"{self.study.name} in {self.folder}; run the study again with --fresh"
            )
        return path


def write_study(folder: Path, study: Study, finding: xr.Dataset, record: Record) -> Record:
    """Write table, figures and record of a study to a folder of its own, atomically."""
    with atomic_write(folder / study.name) as partial:
        partial.mkdir()
        columns, clocks = (columns_of(finding, clocks=clocks) for clocks in (False, True))
        write_csv(finding, partial / f"{TABLE}.csv", columns)
        if clocks:
            write_csv(finding, partial / "times.csv", [*columns[:1], *clocks])
        timed = finding.assign_attrs(seconds=record.seconds, cpu_seconds=record.cpu_seconds)
        timed.to_netcdf(partial / f"{TABLE}.nc", engine="netcdf4")
        with styled():
            drawn = study.figures(finding)
            for name, figure in drawn.items():
                save_all(figure, partial, name, ("png", "svg"))
        record = replace(record, figures=list(drawn))
        write_json(partial / RECORD, asdict(record))
    _failure_file(folder, study.name).unlink(missing_ok=True)
    return record


def write_failure(folder: Path, name: str, *, run: str, reason: str) -> None:
    """Record why a study failed; `run` is the fingerprint of the run."""
    write_json(_failure_file(folder, name), {"study": name, "run": run, "reason": reason})


def read_failures(folder: Path, run: str) -> dict[str, str]:
    """Reasons of the studies that failed in a run, by name in the order of the registry."""
    records = {name: _read_json(_failure_file(folder, name)) for name in STUDIES}
    return {
        name: str(record.get("reason"))
        for name, record in records.items()
        if record.get("run") == run
    }


def _failure_file(folder: Path, name: str) -> Path:
    return folder / FAILED / f"{name}.json"


def _read_json(path: Path) -> dict[str, Any]:
    """A JSON object; empty if there is none, or none that can be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def read_record(folder: Path, name: str) -> Record | None:
    """The record of a study in this folder; None unless it is finished and has its table."""
    if not (folder / name / f"{TABLE}.nc").exists():
        return None
    try:
        return Record(**_read_json(folder / name / RECORD))
    except TypeError:
        return None


def read_run(folder: Path) -> dict[str, Any] | None:
    """The description of the run in a folder; None if there is none."""
    try:
        content = json.loads(check_regular(folder / RUN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise PlumecastError(
            f"{folder / RUN} cannot be read ({error}); remove it or choose another folder"
        ) from None
    if not isinstance(content, dict) or not isinstance(content.get("fingerprint"), str):
        raise PlumecastError(
            f"{folder / RUN} does not describe a run of studies; remove it or choose another folder"
        )
    return content


def read_results(folder: Path) -> tuple[dict[str, Any], list[Finished], list[str]]:
    """The run, its finished studies, and the names of studies that belong to another run."""
    run = read_run(folder)
    if run is None:
        raise PlumecastError(
            f"{folder} holds no results; run: plumecast study all --data STORE "
            f"--out {shlex.quote(str(folder))}"
        )
    finished, stale = [], []
    for name, study in STUDIES.items():
        record = read_record(folder, name)
        if record is None:
            continue
        if record.run != run["fingerprint"]:
            stale.append(name)
            continue
        path = folder / name / f"{TABLE}.nc"
        try:
            with xr.open_dataset(path, engine="netcdf4", decode_timedelta=False) as on_disk:
                finished.append(Finished(study, record, on_disk.load(), folder / name))
        except (OSError, RuntimeError, ValueError) as error:  # netCDF4 and xarray raise these
            raise PlumecastError(
                f"{path} cannot be read ({error}); run the study again with --fresh"
            ) from error
    return run, finished, stale


# -- Running studies

LIBRARIES = ("numpy", "scipy", "xarray", "matplotlib")


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """Result of running a study: computed, reused, or failed with a `problem`."""

    study: Study
    seconds: float
    reused: bool = False
    problem: str | None = None


def describe_run(
    split: Split, data: Path, recipe: dict[str, Any], *, seed: int, command: str
) -> dict[str, Any]:
    """Describe data, split and versions of a run.

    The fingerprint covers everything on which the tables depend.
    """
    attrs, train = split.train.attrs, split.train
    parts = {"train": train, "validation": split.validation, "test": split.test}
    data_version = attrs.get(DATA_VERSION) or _content_version(parts)
    decisive = {"data_version": data_version, "recipe": recipe, "seed": seed, "by": split.by}
    x = train.coords.get("x")
    return {
        "fingerprint": digest([__version__, decisive]),
        "data": str(data),
        **decisive,
        "source": attrs.get("source"),
        "smoke_floor": attrs.get("smoke_floor", train[SMOKE].attrs.get("smoke_floor")),
        "parts": {name: _describe_part(part, split.by) for name, part in parts.items()},
        "grid": {str(dim): int(train.sizes[dim]) for dim in train[SMOKE].dims[1:]},
        "spacing_m": None if x is None or x.size < 2 else float(abs(x.values[1] - x.values[0])),
        "covariates": [c.name for c in COVARIATES if c.name in train.variables],
        "plumecast": __version__,
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "command": command,
        "written": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def _describe_part(part: xr.Dataset, by: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "snapshots": int(part.sizes[SNAPSHOT]),
        "fires": len(np.unique(part.fire_id.values)),
        "groups": len(np.unique(part[by].values)),
    }
    if "drought" in part.variables:
        names, counts = np.unique(part.drought.values.astype(str), return_counts=True)
        described["droughts"] = dict(zip(names.tolist(), counts.tolist(), strict=True))
    for name in ("hours", "burned_area"):
        if name in part.variables:
            values = part[name].values
            described[name] = [float(values.min()), float(np.median(values)), float(values.max())]
    if "is_final" in part.variables:
        described["final"] = int(part.is_final.sum())
    return described


def _content_version(parts: dict[str, xr.Dataset]) -> str:
    """Hash of the values, for stores without a data version."""
    hashed = hashlib.sha256()
    for part in parts.values():
        for name in (FIRE, SMOKE):
            hashed.update(np.ascontiguousarray(part[name].values).data)
        hashed.update("\n".join(part.fire_id.values.astype(str).tolist()).encode())
    return f"sha256:{hashed.hexdigest()[:20]}"


def claim_folder(folder: Path, run: dict[str, Any]) -> str | None:
    """Write the description of the run into the folder; raise if it has results of other data.

    Returns a message if the data or the settings have changed since the last run, else None.
    """
    if folder.exists() and not folder.is_dir():
        raise PlumecastError(f"{folder} is a file; choose a folder for the results with --out")
    before = read_run(folder)
    changed = None
    if before is not None and before.get("fingerprint") != run["fingerprint"]:
        if before.get("data") != run["data"]:
            raise PlumecastError(
                f"{folder} holds results of another data set, {before.get('data')}; "
                "choose another folder with --out"
            )
        same = before.get("data_version") == run["data_version"]
        what = "settings have" if same else "data has"
        changed = f"the {what} changed since the results in {folder}; studies are run again"
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / RUN, run)
    return changed


def run_studies(
    studies: Sequence[Study],
    context: Context,
    folder: Path,
    *,
    fresh: bool = False,
    begin: Callable[[Study], None] = lambda study: None,
) -> list[StudyOutcome]:
    """Run the studies in order. If one fails, its outcome gives the reason; the others go on.

    Any failure counts: of the work, of its figures or of writing them.
    """
    outcomes = []
    for study in studies:
        begin(study)
        mark = study_fingerprint(study, context)
        before = None if fresh else read_record(folder, study.name)
        if before is not None and before.fingerprint == mark:
            outcomes.append(StudyOutcome(study, before.seconds, reused=True))
            continue
        start, cpu = time.perf_counter(), time.process_time()
        try:
            finding = study.run(context)
            seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
            record = Record(study.name, mark, context.fingerprint, seconds, cpu_seconds)
            write_study(folder, study, finding, record)
        except Exception as error:  # whatever it is, it is recorded and the others go on
            problem = _reason(error)
            write_failure(folder, study.name, run=context.fingerprint, reason=problem)
            outcomes.append(StudyOutcome(study, time.perf_counter() - start, problem=problem))
            continue
        outcomes.append(StudyOutcome(study, seconds))
    return outcomes


def _reason(error: Exception) -> str:
    """The cause of a failure in one line; the kind of error too, unless it is one for users."""
    text = " ".join(str(error).split())
    if isinstance(error, PlumecastError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def study_fingerprint(study: Study, context: Context) -> str:
    """Hash of everything on which the table of a study depends: run, limits and its version."""
    limits = {name: getattr(context.limits, name) for name in study.limits}
    return digest([context.fingerprint, study.name, study.version, limits, context.captured])
