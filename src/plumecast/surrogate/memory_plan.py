"""Memory limits of fits and predictions, and the number of rows that they allow at a time."""

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
"""Memory limit of each worker of a cluster that predicts and scores, if none is given."""


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

    If not all snapshots fit on a GPU, its free memory is the limit. On a cluster the limit of each
    process is `cluster_memory` if none is given.
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
    """Raise for a device other than the CPU; workers of a cluster have no other."""
    if device != "cpu":
        raise PlumecastError(f"give a runner or device '{device}', not both")


def advice(resources: Resources, size: tuple[int, int]) -> str:
    """The advice in the error message when a device runs out of memory."""
    rows, cells = size
    free = resources.device.free_bytes() or 0
    fit = int(RESERVE * free // (READ * cells))
    return (
        f"{rows} snapshots need too much, about {min(fit, rows)} would fit; give a memory limit of "
        f"at most {show_memory(0.5 * free)} to fit in blocks"
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
    """Number of snapshots that can be predicted at a time within a memory limit, at most `most`.

    `input_bytes` and `output_bytes` are per cell of a snapshot; `fixed` bytes do not depend on the
    number of snapshots.
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
