"""A folder of results: one run, its studies, and fingerprints that show whether they are valid.

A study that fails leaves its reason in `failed/NAME.json` until it is run again with success.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.files import atomic_write, write_json
from plumecast.base.paths import check_regular
from plumecast.studies.figures.style import save_all, styled
from plumecast.studies.registry import STUDIES
from plumecast.studies.study import Study
from plumecast.studies.table import columns_of, write_csv

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
