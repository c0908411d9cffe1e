"""Gram matrices of a matrix that is read in blocks of rows. Arrays only, no labels."""

from __future__ import annotations

from plumecast.compute.arrays import Array, Rows, array_namespace, device_of, read_rows
from plumecast.compute.blocks import ONE_PASS, Passes, Runner, row_blocks
from plumecast.compute.linalg import gram


def cell_gram(matrix: Rows, passes: Passes = ONE_PASS) -> Array:
    """Xᵀ X, (N, N), as a sum over blocks of rows."""
    return passes.sum(lambda part: gram(read_rows(matrix, part).T), matrix.shape[0])


def snapshot_gram(matrix: Rows, passes: Passes = ONE_PASS) -> Array:
    """X Xᵀ, (M, M), computed tile by tile; with an executor, every tile is one task."""
    if passes.runner is None:
        return _gram_in_process(matrix, passes.block)
    return _gram_of_tasks(matrix, passes.block, passes.runner)


def _gram_in_process(matrix: Rows, block: int | None) -> Array:
    """A panel of `block` rows stays in memory while all earlier rows are read in blocks of a
    quarter of its size, so that every row is read about M / 2·block times."""
    count = matrix.shape[0]
    panels = list(row_blocks(count, block))
    first = read_rows(matrix, panels[0])
    if len(panels) == 1:
        return gram(first)
    out = _empty(count, first)
    for panel in panels:
        panel_rows = read_rows(matrix, panel)
        out[panel, panel] = gram(panel_rows)
        for before in row_blocks(panel.start, max(1, (block or count) // 4)):
            _place(out, panel, before, panel_rows @ read_rows(matrix, before).T)
    return out


def _gram_of_tasks(matrix: Rows, block: int | None, runner: Runner) -> Array:
    """A task reads two panels of half a `block` each and multiplies them. Only tiles on and below
    the diagonal are computed; this process stores the result and one tile."""
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
    """Store a tile and its transpose."""
    out[rows, columns] = tile
    if rows != columns:
        out[columns, rows] = tile.T
