"""Run studies into a folder. Finished studies are reused while data and settings are the same."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_json
from plumecast.base.names import COVARIATES, FIRE, SMOKE, SNAPSHOT
from plumecast.base.version import __version__
from plumecast.data.split import Split
from plumecast.data.store import DATA_VERSION
from plumecast.studies.context import Context
from plumecast.studies.results import RUN, read_record, read_run, write_failure, write_study
from plumecast.studies.study import Study

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
