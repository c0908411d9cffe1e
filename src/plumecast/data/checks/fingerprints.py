"""Fingerprints of fires: the same for the same fields, whatever the store or its order of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.blocks import row_blocks
from plumecast.data.checks.checksums import field_checksums
from plumecast.data.split import group_rows

_BLOCK = 256  # snapshots read at once


def fire_fingerprints(snapshots: xr.Dataset, fields: Sequence[str]) -> dict[str, str]:
    """A short digest of the fields of every fire in single precision, by `fire_id`."""
    if "fire_id" not in snapshots.variables:
        raise PlumecastError(
            "coordinate 'fire_id' is missing, so that it is unknown which fires are new; add it"
        )
    count = snapshots.sizes[SNAPSHOT]
    sums = np.empty((count, len(fields)), dtype=np.uint32)
    for rows in row_blocks(count, _BLOCK):
        for column, name in enumerate(fields):
            part = snapshots[name].isel({SNAPSHOT: rows}).transpose(SNAPSHOT, ...)
            sums[rows, column] = field_checksums(part.values.astype(np.float32))
    names = snapshots["fire_id"].values.astype(str)
    found = {}
    for rows in group_rows(names):
        texts = sorted(" ".join(map(str, row)) for row in sums[rows].tolist())
        digest = hashlib.blake2b(";".join(texts).encode(), digest_size=8)
        found[str(names[rows[0]])] = digest.hexdigest()
    return found
