"""Gram matrices of a matrix that is read by blocks of rows. Arrays only, no labels."""

from __future__ import annotations

from plumecast.compute.arrays import Array, Rows, array_namespace, device_of, read_rows
from plumecast.compute.blocks import Runner, row_blocks, sum_over
from plumecast.compute.linalg import gram


def cell_gram(matrix: Rows, block: int | None = None) -> Array:
    """Xᵀ X, (N, N): a sum over blocks of rows, one pass over them."""
    parts = row_blocks(matrix.shape[0], block)
    return sum_over(lambda part: gram(read_rows(matrix, part).T), parts, matrix)


def snapshot_gram(matrix: Rows, block: int | None = None) -> Array:
    """X Xᵀ, (M, M), tile by tile: here, or wherever the matrix' runner makes the tiles."""
    runner: Runner | None = getattr(matrix, "runner", None)
    return _gram_here(matrix, block) if runner is None else _gram_of_tiles(matrix, block, runner)


def _gram_here(matrix: Rows, block: int | None) -> Array:
    """A panel of `block` rows is held while those before it pass by in quarters of that, so the
    rows are read about M / 2·block times."""
    count = matrix.shape[0]
    panels = list(row_blocks(count, block))
    first = read_rows(matrix, panels[0])
    if len(panels) == 1:
        return gram(first)
    out = _empty(count, first)
    for panel in panels:
        held = read_rows(matrix, panel)
        out[panel, panel] = gram(held)
        for before in row_blocks(panel.start, max(1, (block or count) // 4)):
            _place(out, panel, before, held @ read_rows(matrix, before).T)
    return out


def _gram_of_tiles(matrix: Rows, block: int | None, runner: Runner) -> Array:
    """A tile is one task: two panels of half a `block` each, read where the task runs. Only the
    tiles up to the diagonal are made; this process holds the result and one tile."""
    count = matrix.shape[0]
    panels = list(row_blocks(count, max(1, (block or count) // 2)))
    pairs = [(one, other) for n, one in enumerate(panels) for other in panels[: n + 1]]
    out: Array = None
    for (one, other), tile in zip(pairs, runner.map(_tile, matrix, pairs), strict=True):
        out = _empty(count, tile) if out is None else out
        _place(out, one, other, tile)
    return out


def _tile(matrix: Rows, pair: tuple[slice, slice]) -> Array:
    one, other = pair
    rows = read_rows(matrix, one)
    return gram(rows) if one == other else rows @ read_rows(matrix, other).T


def _empty(count: int, like: Array) -> Array:
    return array_namespace(like).empty((count, count), dtype=like.dtype, device=device_of(like))


def _place(out: Array, rows: slice, columns: slice, tile: Array) -> None:
    """A tile and its mirror image; one on the diagonal is its own."""
    out[rows, columns] = tile
    if rows != columns:
        out[columns, rows] = tile.T
