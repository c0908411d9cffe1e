"""A study: one table of the paper's case, its figures and the remarks on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import xarray as xr
from matplotlib.figure import Figure

from plumecast.studies.context import Context


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
    limits: tuple[str, ...] = ()  # fields of `Limits` on which the table depends
    version: int = 1  # raise it when the study computes a different table
