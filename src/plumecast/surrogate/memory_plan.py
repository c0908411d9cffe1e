"""How much memory a fit or a prediction may take, and how many rows that allows at a time."""

from __future__ import annotations

from collections.abc import Callable

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import bytes_in
from plumecast.compute.blocks import Runner
from plumecast.compute.device import Resources, choose_device
from plumecast.compute.memory import RESERVE, parse_memory, rows_within, show_memory
from plumecast.operators.coded.memory import FLOAT, READ
from plumecast.surrogate.surrogate import Surrogate

CLUSTER_MEMORY = "1GB"
"""Memory of each process of a cluster that predicts and scores, where no limit is given."""


def choose_resources(
    device: str,
    memory: str | int | None,
    runner: Runner | None,
    progress: Callable[[str], None],
    *,
    size: tuple[int, int],
    cluster_memory: str,
) -> Resources:
    """The resources of a fit of `size` = (snapshots, cells of inputs and outputs).

    A GPU that cannot hold all snapshots gets its free memory as the limit; on a cluster the limit
    of each process is `cluster_memory` if none is given.
    """
    if runner is not None:
        memory = memory or cluster_memory
        refuse_device(device)
    place = choose_device(device)
    limit = None if memory is None else parse_memory(memory)
    free = place.free_bytes()
    rows, cells = size
    needed = READ * rows * cells + 5 * FLOAT * min(rows, cells) ** 2
    if free is not None and needed > RESERVE * free:
        limit = free if limit is None else min(limit, free)
    return Resources(place, limit, runner, progress)


def refuse_device(device: str) -> None:
    """Raise where a GPU is named beside an executor."""
    if device != "cpu":
        raise PlumecastError(f"give a runner or device '{device}', not both")


def advice(resources: Resources, size: tuple[int, int]) -> str:
    """What to do when the device runs out of memory."""
    rows, cells = size
    free = resources.device.free_bytes() or 0
    fit = int(RESERVE * free // (READ * cells))
    return (
        f"a fit of {rows} snapshots does not fit, about {min(fit, rows)} would; give a memory "
        f"limit of at most {show_memory(0.5 * free)} to fit by blocks"
    )


def prediction_rows(
    surrogate: Surrogate,
    memory: str | int | None,
    *,
    input_bytes: float,
    output_bytes: float,
    fixed: float = 0.0,
    what: str,
    most: int,
) -> int:
    """Snapshots that can be predicted together within a memory limit, at most `most`.

    `input_bytes` and `output_bytes` are per cell of a snapshot, `fixed` does not grow with them.
    """
    if memory is None:
        return most
    work, per_row = surrogate.operator.working_bytes()
    cells = input_bytes * surrogate.inputs.size + output_bytes * surrogate.outputs.size
    return rows_within(
        parse_memory(memory),
        fixed=bytes_in(surrogate.operator) + work + fixed,
        per_row=cells + per_row,
        what=what,
        most=most,
    )
