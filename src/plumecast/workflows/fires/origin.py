"""Where fires come from, in words, to be recorded with results: files with versions, or a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import xarray as xr

from plumecast.base.names import DATA_VERSION
from plumecast.data.store import open_snapshots

SHOWN = 3  # sources that are named; of more, only the number


@runtime_checkable
class _Simulated(Protocol):
    @property
    def settings(self) -> Mapping[str, Any]: ...


@runtime_checkable
class _FromFiles(Protocol):
    @property
    def paths(self) -> Sequence[str | Path]: ...


def fires_origin(fires: Any) -> str:
    """Names of stores with the versions of their data, or of files, or the seed of a simulation."""
    if isinstance(fires, str | Path | xr.Dataset):
        return _store(fires)
    if isinstance(fires, _Simulated):
        return f"simulated, seed {fires.settings.get('seed', 'unknown')}"
    if isinstance(fires, _FromFiles):
        return files_origin(fires.paths)
    if isinstance(fires, list | tuple):
        return _listed([fires_origin(item) for item in fires[:SHOWN]], "stores", len(fires))
    return "not recorded"


def files_origin(paths: Sequence[str | Path]) -> str:
    """Names of files that have no version."""
    return _listed([Path(path).name for path in paths], "files")


def _store(store: str | Path | xr.Dataset) -> str:
    data = store if isinstance(store, xr.Dataset) else open_snapshots(store, fields=())
    version = data.attrs.get(DATA_VERSION)
    name = "data" if isinstance(store, xr.Dataset) else Path(store).name
    return name if version is None else f"{name}, version {version}"


def _listed(names: list[str], what: str, count: int | None = None) -> str:
    total = len(names) if count is None else count
    if total > SHOWN:
        return f"{total} {what}, the first {names[0]}"
    return "; ".join(names)
