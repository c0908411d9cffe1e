"""Smoke for many fires, block by block: from a store, or straight from arrival-time rasters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.errors import PlumecastError
from plumecast.export import FOOTPRINT, footprint_of
from plumecast.names import FIRE, SNAPSHOT
from plumecast.snapshot_store import open_snapshots
from plumecast.source.rasters import iter_arrival_times
from plumecast.surrogate import Surrogate

BLOCK = 512
"""Snapshots of a store predicted together."""

Progress = Callable[[int, int, str], object]


def predict_store(
    surrogate: Surrogate,
    path: str | Path,
    *,
    threshold: float | None = None,
    progress: Progress = lambda done, total, what: None,
) -> Iterator[xr.Dataset]:
    """Predicted fields of every snapshot of a store; with `threshold`, footprints beside them."""
    fires = open_snapshots(path, fields=list(surrogate.inputs.names))
    total = fires.sizes[SNAPSHOT]
    for start in range(0, total, BLOCK):
        block = fires.isel({SNAPSHOT: slice(start, start + BLOCK)})
        yield predict_block(surrogate, block, threshold)
        progress(min(start + BLOCK, total), total, "snapshots")


def predict_rasters(
    surrogate: Surrogate,
    paths: Sequence[str | Path],
    *,
    threshold: float | None = None,
    progress: Progress = lambda done, total, what: None,
    **options: Any,
) -> Iterator[xr.Dataset]:
    """The same for arrival-time rasters, put on the surrogate's grid.

    `options` are those of `iter_arrival_times`, without `like`.
    """
    if surrogate.inputs.names != (FIRE,):
        raise PlumecastError(
            f"the surrogate needs {', '.join(surrogate.inputs.names)}; rasters give {FIRE} alone"
        )
    for fires in iter_arrival_times(
        paths,
        like=surrogate.grid,
        progress=lambda done, total: progress(done, total, "files"),
        **options,
    ):
        yield predict_block(surrogate, fires, threshold)


def predict_block(surrogate: Surrogate, fires: xr.Dataset, threshold: float | None) -> xr.Dataset:
    """Predicted fields as a Dataset; with `threshold`, the footprint beside them.

    The footprint is where the detection score exceeds the threshold, for surrogates that have one,
    else where the (first) predicted field does.
    """
    predicted = surrogate.predict(fires)
    fields = predicted.to_dataset() if isinstance(predicted, xr.DataArray) else predicted
    if threshold is None:
        return fields
    name = surrogate.outputs.names[0]
    score = surrogate.predict_footprint(fires) if surrogate.detects else fields[name]
    present = footprint_of(score, threshold).assign_attrs(
        {key: value for key, value in fields[name].attrs.items() if key == "grid_mapping"}
    )
    return fields.assign({FOOTPRINT: present})
