"""`plumecast predict`: smoke for every snapshot of a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import typer
import xarray as xr

from plumecast.cli import data as options
from plumecast.cli.show import progress, say, wrote
from plumecast.errors import PlumecastError
from plumecast.names import SNAPSHOT
from plumecast.snapshot_store import export_snapshots, open_snapshots
from plumecast.surrogate import Surrogate, load_surrogate

_BLOCK = 512


def command(
    model: Path = typer.Argument(help="A saved surrogate.", show_default=False),
    data: Path = options.DATA,
    out: Path = typer.Option(..., "--out", "-o", help="Where to write: .nc or .zarr."),
    footprint: bool = typer.Option(
        False, help="Also write where smoke is present, by the decision threshold from validation."
    ),
) -> None:
    """Predict the smoke of every snapshot in a store.

    Example: `plumecast predict smoke.plume fires.zarr -o smoke.nc`
    """
    surrogate = load_surrogate(model)
    fires = open_snapshots(data, fields=list(surrogate.inputs.names))
    starts = range(0, fires.sizes[SNAPSHOT], _BLOCK)
    blocks = []
    with progress("predicting", total=len(starts)) as begin:
        for start in starts:
            begin(f"snapshots {start} … {min(start + _BLOCK, fires.sizes[SNAPSHOT])}")
            block = surrogate.predict(fires.isel({SNAPSHOT: slice(start, start + _BLOCK)}))
            blocks.append(block.to_dataset() if isinstance(block, xr.DataArray) else block)
    smoke = xr.concat(blocks, SNAPSHOT, data_vars="minimal", coords="minimal")
    if footprint:
        smoke = smoke.assign(footprint=_footprint(surrogate, smoke, model))
    smoke.attrs = {"source": f"plumecast surrogate {model.name}", "Conventions": "CF-1.11"}
    export_snapshots(smoke, out)
    say(f"predicted {fires.sizes[SNAPSHOT]} snapshots")
    wrote(out, "the smoke")


def _footprint(surrogate: Surrogate, smoke: xr.Dataset, model: Path) -> xr.DataArray:
    alpha = surrogate.training.get("thresholds", {}).get("decision")
    if alpha is None:
        raise PlumecastError(
            f"{model} has no decision threshold (it was trained with --all); train with a split"
        )
    present = smoke[surrogate.outputs.names[0]] > alpha
    flags: xr.DataArray = present.astype(np.int8)
    return flags.assign_attrs(long_name="smoke is present", units="1", decision_threshold=alpha)
