"""Where a fit's arrays live and how many rows at a time: a device and a memory limit.

Counts bytes of float64 arrays as the numerics make them, stage by stage: a limit is kept by
choosing the rows of a block so that the largest stage fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, Rows
from plumecast.compute.blocks import whole
from plumecast.compute.device import HOST, Device, choose_device
from plumecast.compute.memory import RESERVE, parse_memory, rows_within, show_memory
from plumecast.operators.pca import Basis, Encoded
from plumecast.operators.ridge import GROUP_ROWS

FLOAT = 8
READ = 24
"""Bytes per value of a block being read: as stored, in float64, checked and centred."""

PENALTIES = 40
"""Penalties of a scan, each with a block of every group."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A device, and the bytes a fit may take there; without a limit everything is held."""

    device: Device = HOST
    limit: int | None = None
    taken: float = 0.0  # bytes of the limit that are held already

    def beside(self, size: float) -> Placement:
        """The same with so many bytes held."""
        return replace(self, taken=self.taken + size)

    def hold(self, matrix: Rows) -> Rows:
        """The matrix on the device, or brought there as it is read where there is a limit."""
        if self.limit is None:
            return self.device.put(matrix)
        return self.device.rows(matrix)

    def encode(self, basis: Basis, matrix: Rows) -> Rows:
        """The codes of a held matrix, or codes made as they are read."""
        return basis.encode(matrix) if self.limit is None else Encoded(basis, matrix)

    def codes(self, basis: Basis, matrix: Rows) -> Array:
        """The codes of all rows, held; beside them their parts while they are made."""
        if self.limit is None:
            return basis.encode(matrix)
        count, columns = matrix.shape
        block = rows_within(
            self.limit,
            fixed=self.taken + FLOAT * basis.rank * (columns + 2.0 * count),
            per_row=READ * columns,
            what=f"{basis.rank} codes of {count} snapshots on {columns} cells",
            most=count,
        )
        return whole(Encoded(basis, matrix), block)

    def encode_rows(self, matrix: Rows) -> int | None:
        """Rows of a block while a basis is fitted; None for all."""
        if self.limit is None:
            return None
        count, columns = matrix.shape
        smaller = min(count, columns)
        factorisation = self.taken + 4.0 * FLOAT * smaller**2
        if factorisation > RESERVE * self.limit:
            raise PlumecastError(
                f"the decomposition of {count} snapshots on {columns} cells needs at least "
                f"{show_memory(factorisation / RESERVE)} here for a Gram matrix of {smaller} × "
                f"{smaller}, the limit is {show_memory(self.limit)}; raise the limit, or use fewer "
                "cells or snapshots"
            )
        # A wide matrix is read twice at a time: a panel, and a quarter of it passing by; on a
        # cluster two halves, and up to five tiles that wait to be taken.
        per_row = READ * columns * (1.0 if count > columns else 1.25)
        return rows_within(
            self.limit,
            fixed=self.taken + 2.0 * FLOAT * smaller**2,
            per_row=per_row,
            what=f"encoding {count} snapshots on {columns} cells",
            most=count,
        )

    def map_rows(
        self,
        codes: Rows,
        targets: Rows,
        *,
        features: int | None,
        cells: int,
        group: int,
        closed_form: bool,
    ) -> int | None:
        """Rows of a block while the map is fitted.

        The number of `features` (None: a kernel has no end of them), `cells` of both sides (0 where
        codes are held), at most `group` rows left out together; no system to solve where there is a
        `closed_form`.
        """
        if self.limit is None:
            return None
        count, rank = codes.shape
        outputs = targets.shape[1]
        squares = 8 if features is None else 5  # (M, M) matrices at once: of distances, and kernels
        features = count + 1 if features is None else features
        held = FLOAT * max(rank, outputs) * cells
        per_row = READ * cells + FLOAT * (4 * features + 6 * outputs + 3 * PENALTIES * group)
        if features > count:
            system = squares * count**2 + 2 * count * (rank + outputs)
        elif closed_form:
            system = 3 * features * outputs
        else:
            together = min(GROUP_ROWS, count) if group else 0
            system = 5 * features**2 + 4 * features * outputs + 2 * together * features
        return rows_within(
            self.limit,
            fixed=self.taken + float(held + FLOAT * system),
            per_row=float(per_row),
            what=f"a map of {rank} codes from {count} snapshots",
            most=count,
        )

    def advice(self, rows: int, cells: int) -> str:
        """What to do when the device runs out of memory."""
        free = self.device.free_bytes() or 0
        fit = int(RESERVE * free // (READ * cells))
        return (
            f"a fit of {rows} snapshots does not fit, about {min(fit, rows)} would; give a memory "
            f"limit of at most {show_memory(0.5 * free)} to fit by blocks"
        )


IN_MEMORY = Placement()


def choose_placement(device: str, memory: str | int | None, rows: int, cells: int) -> Placement:
    """A placement for a fit of `rows` snapshots on `cells` of both sides together.

    A GPU that cannot hold all snapshots gets its free memory as the limit.
    """
    place = choose_device(device)
    limit = None if memory is None else parse_memory(memory)
    free = place.free_bytes()
    needed = READ * rows * cells + 5 * FLOAT * min(rows, cells) ** 2
    if free is not None and needed > RESERVE * free:
        limit = free if limit is None else min(limit, free)
    return Placement(place, limit)
