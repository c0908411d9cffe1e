"""Concatenation of datasets along the snapshot dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import xarray as xr

from plumecast.base.names import SNAPSHOT


def concat_snapshots(
    parts: Sequence[xr.Dataset], *, combine_attrs: Literal["identical", "override"] = "identical"
) -> xr.Dataset:
    """Concatenate datasets on one grid along the snapshots; the first gives the grid.

    `combine_attrs` is xarray's: "identical" raises where attributes differ, "override" keeps those
    of the first dataset.
    """
    if len(parts) == 1:
        return parts[0]
    return xr.concat(
        parts, SNAPSHOT, data_vars="minimal", coords="minimal", compat="override", join="exact",
        combine_attrs=combine_attrs,
    )  # fmt: skip
