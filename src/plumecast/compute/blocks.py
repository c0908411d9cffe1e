"""A matrix by blocks of its rows, and sums over them. Arrays only, no labels.

Everything a fit needs of many snapshots is a sum over them, so a matrix that does not fit memory
is read block by block and the partial results added; a matrix that fits is a single block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from plumecast.compute.arrays import Array, Rows, array_namespace, read_rows

VALUES = 150_000
"""Values of fields looked at together where a pass over them only adds something up."""


def row_blocks(rows: int, size: int | None) -> Iterator[slice]:
    """Consecutive slices of at most `size` rows; one slice without a size."""
    step = rows if size is None else max(1, size)
    for start in range(0, rows, max(step, 1)):
        yield slice(start, min(start + step, rows))


def field_blocks(fields: Array) -> Iterator[slice]:
    """Slices of the rows of (M, …) fields that hold about VALUES, at least one row each."""
    return row_blocks(fields.shape[0], VALUES // max(1, math.prod(fields.shape[1:])))


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


def drawn_rows(count: int, most: int) -> Array:
    """At most so many of the first `count` numbers, rising: drawn, because snapshots come in the
    order of their hours and droughts, and a stride would meet only some; always the same."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, most, replace=False))


class Runner(Protocol):
    """Something that works on items elsewhere: the processes of a cluster."""

    def sum(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """Σ function(item), in an order that does not depend on who finishes first."""
        ...

    def map(
        self, function: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]
    ) -> Iterator[Any]:
        """function(shared, item) of every item, in order."""
        ...


def sum_over(function: Callable[[Any], Any], items: Iterable[Any], source: Rows) -> Any:
    """Σ function(item): here, one after another, or wherever the source's runner does it."""
    runner: Runner | None = getattr(source, "runner", None)
    return add_up(map(function, items)) if runner is None else runner.sum(function, items)


def map_over(
    function: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any], runner: Runner | None
) -> Iterator[Any]:
    """function(shared, item) of every item, in order: here as they are taken, or by a runner."""
    if runner is None:
        return (function(shared, item) for item in items)
    return runner.map(function, shared, items)


def add_up(parts: Iterable[Any]) -> Any:
    """The sum of arrays (or what else can be added), in place of the first."""
    remaining = iter(parts)
    total = next(remaining)
    for part in remaining:
        total += part
    return total


def whole(rows: Rows, size: int | None = None) -> Array:
    """All rows as one array."""
    slices = row_blocks(rows.shape[0], size)
    parts = list(map_over(read_rows, rows, slices, getattr(rows, "runner", None)))
    return parts[0] if len(parts) == 1 else array_namespace(parts[0]).concat(parts)
