"""Snapshots that are scored, in blocks that keep to a memory limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import xarray as xr

from plumecast.base.names import SNAPSHOT
from plumecast.compute.blocks import Runner, map_over
from plumecast.compute.device import refuse_device
from plumecast.data.clock import by_fire, fire_blocks
from plumecast.data.lazy_store import check_unchanged
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.memory_plan import CLUSTER_MEMORY, prediction_rows

BLOCK = 256
"""Largest number of snapshots scored at a time."""

SCORE_BYTES = 160.0
"""Bytes per cell while a snapshot is scored: about twenty arrays, most of them for the ROC."""


@dataclass(frozen=True, slots=True)
class HeldOutBlocks:
    """Snapshots in blocks, which this process or an executor processes in order."""

    surrogate: Surrogate  # that predicts them, on its device
    snapshots: xr.Dataset
    size: int
    stored: bool  # whether fields are read lazily from files, which may change
    runner: Runner | None

    def visit(self, function: Callable[[xr.Dataset], Any]) -> Iterator[Any]:
        """function(block) of every block, in order."""
        rows = fire_blocks(self.snapshots, self.size)
        shared = (function, self.snapshots, self.stored)
        return map_over(_visit_block, shared, rows, self.runner)


def visit_all(
    parts: Sequence[HeldOutBlocks], make: Callable[[Surrogate], Callable[[xr.Dataset], Any]]
) -> Iterator[Any]:
    """make(surrogate)(block) of every block of every part, in order."""
    return chain.from_iterable(part.visit(make(part.surrogate)) for part in parts)


def _visit_block(shared: tuple[Callable[[xr.Dataset], Any], xr.Dataset, bool], rows: Any) -> Any:
    function, snapshots, stored = shared
    if stored:
        check_unchanged(snapshots)
    return function(snapshots.isel({SNAPSHOT: rows}))


def in_blocks(
    surrogate: Surrogate,
    snapshots: xr.Dataset,
    device: str,
    memory: str | int | None,
    runner: Runner | None,
) -> HeldOutBlocks:
    """Blocks of whole fires that keep to the memory limit; sorting for the ROC needs most of it."""
    if runner is not None:
        memory = memory or CLUSTER_MEMORY
        refuse_device(device)
    size = BLOCK
    if memory is not None:
        size = prediction_rows(
            surrogate,
            memory,
            input_bytes=24.0,
            output_bytes=SCORE_BYTES,
            what="scoring",
            most=BLOCK,
        )
    placed = surrogate.on_device(device)
    return HeldOutBlocks(placed, by_fire(snapshots), size, memory is not None, runner)
