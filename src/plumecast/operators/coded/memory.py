"""Memory plan of the coded family: how many rows a block may have at every stage of a fit.

The plan counts the bytes of the float64 arrays that a stage allocates. Arrays only, no labels.
"""

from __future__ import annotations

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, Rows
from plumecast.compute.blocks import Passes
from plumecast.compute.device import Budget
from plumecast.compute.memory import FLOAT, READ, RESERVE, rows_within, show_memory
from plumecast.operators.pca import Basis, EncodedRows
from plumecast.operators.ridge import GROUP_ROWS

PENALTIES = 40
"""Penalties of a scan, each with a residual block of every group."""


def on_device(resources: Budget, matrix: Rows) -> Rows:
    """The matrix on the device; with a limit, its rows are copied there when they are read."""
    if resources.limit is None:
        return resources.put(matrix)
    return resources.device.rows(matrix)


def codes_of(resources: Budget, basis: Basis, matrix: Rows) -> Rows:
    """The codes of a matrix; with a limit, they are computed when they are read."""
    return basis.encode(matrix) if resources.limit is None else EncodedRows(basis, matrix)


def all_codes(resources: Budget, basis: Basis, matrix: Rows) -> Array:
    """The codes of all rows in memory."""
    if resources.limit is None:
        return basis.encode(matrix)
    count, columns = matrix.shape
    block = rows_within(
        resources.limit,
        fixed=resources.taken + FLOAT * basis.rank * (columns + 2.0 * count),
        per_row=READ * columns,
        what=f"{basis.rank} codes of {count} snapshots on {columns} cells",
        most=count,
    )
    return Passes(block, resources.runner).whole(EncodedRows(basis, matrix))


def pca_rows(resources: Budget, shape: tuple[int, ...]) -> int | None:
    """Rows of a block while a basis is fitted to an (M, N) matrix; None for all."""
    if resources.limit is None:
        return None
    count, columns = shape
    smaller = min(count, columns)
    factorisation = resources.taken + 4.0 * FLOAT * smaller**2
    if factorisation > RESERVE * resources.limit:
        raise PlumecastError(
            f"the decomposition of {count} snapshots on {columns} cells needs at least "
            f"{show_memory(factorisation / RESERVE)} in this process for a Gram matrix of "
            f"{smaller} × {smaller}, the limit is {show_memory(resources.limit)}; raise the limit, "
            "or use fewer cells or snapshots"
        )
    # For a wide matrix, one and a quarter panels are in memory at once; on a cluster, two half
    # panels, and up to five tiles that this process has not fetched yet.
    per_row = READ * columns * (1.0 if count > columns else 1.25)
    return rows_within(
        resources.limit,
        fixed=resources.taken + 2.0 * FLOAT * smaller**2,
        per_row=per_row,
        what=f"encoding {count} snapshots on {columns} cells",
        most=count,
    )


def map_rows(
    resources: Budget,
    codes: tuple[int, ...],
    outputs: int,
    *,
    features: int | None,
    cells: int,
    group: int,
    closed_form: bool,
) -> int | None:
    """Rows of a block while the map between codes is fitted; None for all.

    `codes` is (M, r). `features` is None for a kernel. `cells` counts the cells of inputs and
    outputs; it is 0 if the codes are in memory. `group` is the size of the largest group that is
    left out. With `closed_form` there is no system to solve.
    """
    if resources.limit is None:
        return None
    count, rank = codes
    squares = 8 if features is None else 5  # (M, M) matrices in memory: distances, kernels
    features = count + 1 if features is None else features
    stored = FLOAT * max(rank, outputs) * cells
    per_row = READ * cells + FLOAT * (4 * features + 6 * outputs + 3 * PENALTIES * group)
    if features > count:
        system = squares * count**2 + 2 * count * (rank + outputs)
    elif closed_form:
        system = 3 * features * outputs
    else:
        together = min(GROUP_ROWS, count) if group else 0
        system = 5 * features**2 + 4 * features * outputs + 2 * together * features
    return rows_within(
        resources.limit,
        fixed=resources.taken + float(stored + FLOAT * system),
        per_row=float(per_row),
        what=f"a map of {rank} codes from {count} snapshots",
        most=count,
    )
