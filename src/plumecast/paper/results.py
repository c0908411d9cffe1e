"""Run studies into a folder: one run, its studies, and fingerprints that show what is still valid.

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
from dataclasses import asdict, dataclass, field
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
from plumecast.paper.context import Context, Study, columns_of, write_csv
from plumecast.paper.figures import save_all, styled
from plumecast.paper.studies import STUDIES

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


def write_study(
    folder: Path,
    study: Study,
    finding: xr.Dataset,
    *,
    fingerprint: str,
    run: str,
    seconds: float,
    cpu_seconds: float,
) -> Record:
    """Write table, figures and record of a study to a folder of its own, atomically."""
    with atomic_write(folder / study.name) as partial:
        partial.mkdir()
        write_csv(finding, partial / f"{TABLE}.csv", columns_of(finding, clocks=False))
        clocks = columns_of(finding, clocks=True)
        if clocks:
            first = columns_of(finding, clocks=False)[:1]
            write_csv(finding, partial / "times.csv", [*first, *clocks])
        timed = finding.assign_attrs(seconds=seconds, cpu_seconds=cpu_seconds)
        timed.to_netcdf(partial / f"{TABLE}.nc", engine="netcdf4")
        with styled():
            drawn = study.figures(finding)
            for name, figure in drawn.items():
                save_all(figure, partial, name, ("png", "svg"))
        record = Record(study.name, fingerprint, run, seconds, cpu_seconds, list(drawn))
        write_json(partial / RECORD, asdict(record))
    _failure_file(folder, study.name).unlink(missing_ok=True)
    return record


def write_failure(folder: Path, name: str, *, run: str, reason: str) -> None:
    """Record why a study failed; `run` is the fingerprint of the run."""
    write_json(_failure_file(folder, name), {"study": name, "run": run, "reason": reason})


def read_failures(folder: Path, run: str) -> dict[str, str]:
    """Reasons of the studies that failed in a run, by name in the order of the registry."""
    reasons = {}
    for name in STUDIES:
        try:
            content = json.loads(_failure_file(folder, name).read_text(encoding="utf-8"))
            if content["run"] == run:
                reasons[name] = str(content["reason"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return reasons


def _failure_file(folder: Path, name: str) -> Path:
    return folder / FAILED / f"{name}.json"


def read_record(folder: Path, name: str) -> Record | None:
    """The record of a study in this folder; None unless it is finished and has its table."""
    if not (folder / name / f"{TABLE}.nc").exists():
        return None
    try:
        return Record(**json.loads((folder / name / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
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
        where = folder / name
        finished.append(Finished(study, record, _read_table(where / f"{TABLE}.nc"), where))
    return run, finished, stale


def _read_table(path: Path) -> xr.Dataset:
    try:
        with xr.open_dataset(path, engine="netcdf4", decode_timedelta=False) as on_disk:
            return on_disk.load()
    except (OSError, RuntimeError, ValueError) as error:  # netCDF4 and xarray raise these
        raise PlumecastError(
            f"{path} cannot be read ({error}); run the study again with --fresh"
        ) from error


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
    parts = {"train": split.train, "validation": split.validation, "test": split.test}
    known = split.train.attrs
    data_version = known.get(DATA_VERSION) or _content_version(split)
    decisive = {"data_version": data_version, "recipe": recipe, "seed": seed, "by": split.by}
    return {
        "fingerprint": _digest([__version__, decisive]),
        "data": str(data),
        **decisive,
        "source": known.get("source"),
        "smoke_floor": known.get("smoke_floor", split.train[SMOKE].attrs.get("smoke_floor")),
        "parts": {name: _describe_part(part, split.by) for name, part in parts.items()},
        "grid": {str(dim): int(split.train.sizes[dim]) for dim in split.train[SMOKE].dims[1:]},
        "spacing_m": _spacing(split),
        "covariates": [c.name for c in COVARIATES if c.name in split.train.variables],
        "plumecast": __version__,
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "command": command,
        "written": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def _describe_part(part: Any, by: str) -> dict[str, Any]:
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


def _spacing(split: Split) -> float | None:
    x = split.train.coords.get("x")
    return None if x is None or x.size < 2 else float(abs(x.values[1] - x.values[0]))


def _content_version(split: Split) -> str:
    """Hash of the values, for stores without a data version."""
    digest = hashlib.sha256()
    for part in (split.train, split.validation, split.test):
        for name in (FIRE, SMOKE):
            digest.update(np.ascontiguousarray(part[name].values).data)
        digest.update("\n".join(part.fire_id.values.astype(str).tolist()).encode())
    return f"sha256:{digest.hexdigest()[:20]}"


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


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
            seconds = time.perf_counter() - start
            write_study(
                folder,
                study,
                finding,
                fingerprint=mark,
                run=context.fingerprint,
                seconds=seconds,
                cpu_seconds=time.process_time() - cpu,
            )
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
    return _digest(
        [
            context.fingerprint,
            study.name,
            study.version,
            {name: getattr(context.limits, name) for name in study.limits},
            context.captured,
        ]
    )
