"""A matrix by blocks of its rows, and sums over them. Arrays only, no labels.

Everything a fit needs of many snapshots is a sum over them, so a matrix that does not fit memory
is read block by block and the partial results added; a matrix that fits is a single block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from plumecast._array import Array, Rows, array_namespace, read_rows


def row_blocks(rows: int, size: int | None) -> Iterator[slice]:
    """Consecutive slices of at most `size` rows; one slice without a size."""
    step = rows if size is None else max(1, size)
    for start in range(0, rows, max(step, 1)):
        yield slice(start, min(start + step, rows))


def group_blocks(groups: Sequence[Array], size: int | None) -> Iterator[tuple[slice, list[Array]]]:
    """Slices of at most `size` rows that tear no group apart, with the groups' rows within them.

    A larger group makes a slice of its own. Without a size, one slice and the groups as they are;
    with one, the groups must be consecutive runs of rows, in order.
    """
    total = int(sum(rows.shape[0] for rows in groups))
    if size is None:
        yield slice(0, total), list(groups)
        return
    start = 0
    held: list[Array] = []
    for rows in groups:
        count = int(rows.shape[0])
        filled = int(sum(part.shape[0] for part in held))
        if held and filled + count > size:
            yield slice(start, start + filled), held
            start, held = start + filled, []
        held.append(rows - start)
    yield slice(start, total), held


def add_up(parts: Iterable[Array]) -> Array:
    """The sum of arrays of one shape, in place of the first."""
    remaining = iter(parts)
    total = next(remaining)
    for part in remaining:
        total += part
    return total


def whole(rows: Rows, size: int | None = None) -> Array:
    """All rows as one array."""
    parts = [read_rows(rows, part) for part in row_blocks(rows.shape[0], size)]
    return parts[0] if len(parts) == 1 else array_namespace(parts[0]).concat(parts)
