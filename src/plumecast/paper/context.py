"""What studies share: their tables, the split and limits of a run, and what a study is.

A table has one row per observation and is saved as CSV and NetCDF. A finding is one data set: its
variables on `row` are the table; its other variables (curves, maps) are needed by the figures.
Measured times are marked and stay out of `table.csv`, so that two runs with the same seed write the
same file, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from plumecast.base.files import write_json
from plumecast.base.names import SMOKE, SNAPSHOT
from plumecast.base.tables import write_table
from plumecast.base.version import __version__
from plumecast.data.split import Split
from plumecast.scores.footprint import smoke_threshold
from plumecast.workflows.evaluate import CAPTURED

# -- Tables

ROW = "row"
CLOCK = "clock"
"""Attribute of a column that holds measured times, which differ between runs."""


def tidy(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, tuple[str, str]],
    clocks: Sequence[str] = (),
) -> xr.Dataset:
    """Rows as a data set; `columns` maps each column, in order, to its long name and unit.

    A value that a row lacks is NaN, or empty text where other rows have text in that column.
    """
    data = {}
    for name, (long_name, units) in columns.items():
        values = [row.get(name) for row in rows]
        attrs: dict[str, Any] = {"long_name": long_name, "units": units}
        if name in clocks:
            attrs[CLOCK] = 1
        data[name] = (ROW, _column(values), attrs)
    return xr.Dataset(data)


def _column(values: list[Any]) -> np.ndarray:
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else str(value) for value in values], dtype=str)
    if values and all(isinstance(value, int | np.integer) for value in values):
        return np.array(values, dtype=np.int64)
    return np.array([np.nan if value is None else float(value) for value in values])


def columns_of(finding: xr.Dataset, *, clocks: bool) -> list[str]:
    """Names of the columns with measured times (`clocks`), or of all other columns."""
    return [
        str(name)
        for name, item in finding.data_vars.items()
        if item.dims == (ROW,) and (CLOCK in item.attrs) == clocks
    ]


def rows_of(finding: xr.Dataset) -> list[dict[str, Any]]:
    """The table as a list of rows with plain Python values."""
    names = [str(name) for name, item in finding.data_vars.items() if item.dims == (ROW,)]
    values = {name: finding[name].values.tolist() for name in names}
    count = finding.sizes.get(ROW, 0)
    return [{name: values[name][index] for name in names} for index in range(count)]


def select(finding: xr.Dataset, **wanted: Any) -> xr.Dataset:
    """The rows in which every named column equals the given value."""
    keep = np.ones(finding.sizes[ROW], dtype=bool)
    for name, value in wanted.items():
        keep &= finding[name].values == value
    return finding.isel({ROW: np.flatnonzero(keep)})


def write_csv(finding: xr.Dataset, path: Path, names: Sequence[str]) -> None:
    """Write columns as CSV; numbers in the shortest form that reads back without loss."""
    columns = [finding[name].values.tolist() for name in names]
    write_table(path, names, zip(*columns, strict=True), missing="nan")


Value = TypeVar("Value")


# -- The run that a study is part of


@dataclass(frozen=True, slots=True)
class StudyLimits:
    """Bounds on the work of the studies. A finished study is reused only with equal limits."""

    repeats: int = 40  # random draws of the optical-depth study
    shift_train: int = 400  # training snapshots of a spectral surrogate in `shift`
    curve_train: int = 1200  # the same in `learning-curve`; the whole training part is always used
    scored: int = 600  # test snapshots scored in `shift` and `learning-curve`
    curves: int = 60  # ROC curves drawn
    literal: bool = True  # `summary` times the paper's literal quadratic fit
    neural: tuple[str, ...] = ()  # networks that `summary` trains; `weather` trains the U-Net
    weather_sizes: tuple[int, ...] = (8, 16, 32, 64, 100)  # training ignitions of `weather`
    weather_draws: int = 3  # random draws of them
    weather_tested: int = 60  # largest number of test ignitions of `weather`


@dataclass
class Context:
    """Split, seed and limits of a run, with a cache of results that several studies need.

    Fitted surrogates are saved in `folder` for later runs; without a folder they are kept in
    memory only. `tell` is called with the name of each step.
    """

    split: Split
    fingerprint: str = ""  # of the data and its split
    folder: Path | None = None
    seed: int = 0
    captured: float = CAPTURED
    limits: StudyLimits = field(default_factory=StudyLimits)
    tell: Callable[[str], None] = lambda step: None
    _done: dict[str, Any] = field(default_factory=dict, repr=False)

    def once(self, key: str, make: Callable[[], Value]) -> Value:
        """The result of `make`, which is called only the first time that `key` is requested."""
        if key not in self._done:
            self.tell(key)
            self._done[key] = make()
        value: Value = self._done[key]
        return value

    def kept(
        self, key: str, limits: Sequence[str], make: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """The row that `make` computes, or the one that an earlier run with the same data kept.

        `limits` are those on which it depends. Without a folder, rows are always computed.
        """
        path = self.folder and self.folder / "rows" / f"{'-'.join(key.split())}.json"
        bounds = {name: getattr(self.limits, name) for name in limits}
        mark = digest([__version__, self.fingerprint, key, bounds, self.captured])
        row = None if path is None else read_kept(path, mark)
        if row is None:
            self.tell(key)
            row = make()
            if path is not None:
                write_kept(path, mark, row)
        return row

    @cached_property
    def smoke_threshold(self) -> float:
        """Smoke threshold τ from the validation part, µg m⁻³."""
        return smoke_threshold(self.split.validation[SMOKE], self.captured)

    def rng(self, study: str) -> np.random.Generator:
        """Random generator of a study, independent of the studies that ran before it."""
        return np.random.default_rng([self.seed, *study.encode()])

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods to compare: those of the paper first, in its order."""
        return (
            "paper-linear", "paper-quadratic", "gp-images", "gp-codes", "recommended",
            *self.limits.neural, "mean-field", "nearest-fire",
        )  # fmt: skip


def digest(content: Any) -> str:
    """Hash of JSON content: equal content has an equal one in every run."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def with_groups(part: xr.Dataset, by: str, groups: np.ndarray) -> xr.Dataset:
    """The snapshots of a part whose grouping coordinate is one of `groups`."""
    return part.isel({SNAPSHOT: np.flatnonzero(np.isin(part[by].values.astype(str), groups))})


def bounded(part: xr.Dataset, most: int, rng: np.random.Generator) -> xr.Dataset:
    """A random sample of at most `most` snapshots of a part, in their original order."""
    count = part.sizes[SNAPSHOT]
    if count <= most:
        return part
    return part.isel({SNAPSHOT: np.sort(rng.permutation(count)[:most])})


def timed(work: Callable[[], Value]) -> tuple[Value, float]:
    """The result of `work`, and the seconds that it took."""
    start = time.perf_counter()
    value = work()
    return value, time.perf_counter() - start


def read_kept(path: Path, mark: str) -> dict[str, Any] | None:
    """What `write_kept` kept of an earlier run with the same fingerprint; None if there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return dict(content["kept"]) if content["fingerprint"] == mark else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not kept, or damaged


def write_kept(path: Path, mark: str, content: Mapping[str, Any]) -> None:
    """Keep JSON content for later runs with the same fingerprint."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"fingerprint": mark, "kept": dict(content)})


@dataclass(frozen=True, slots=True)
class Study:
    """What a study is called, how it is computed, drawn and described.

    `run` returns the finding: a data set whose variables on `row` are the table. `figures` and
    `remarks` need only the finding, so that a page can be written from a saved one.
    """

    name: str
    title: str
    question: str
    run: Callable[[Context], xr.Dataset]
    figures: Callable[[xr.Dataset], dict[str, Figure]]
    remarks: Callable[[xr.Dataset], list[str]]  # complete sentences with numbers of the finding
    captions: Mapping[str, str]  # by figure
    bitmap: tuple[str, ...] = ()  # figures embedded as PNG: maps, which are large as SVG
    limits: tuple[str, ...] = ()  # fields of `StudyLimits` on which the table depends
    version: int = 1  # raise it when the study computes a different table
