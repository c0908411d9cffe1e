"""How many snapshots can be predicted at a time within a memory limit."""

from __future__ import annotations

from plumecast.compute.arrays import bytes_in
from plumecast.compute.memory import parse_memory, rows_within
from plumecast.surrogate.surrogate import Surrogate

CLUSTER_MEMORY = "1GB"
"""Memory limit of each worker of a cluster that predicts and scores, if none is given."""

AGREEMENT_BYTES = 48.0
"""Bytes per cell while smoke and detection score are reconciled: six arrays."""


HISTORY_BYTES = 64.0
"""Bytes per cell of what a snapshot may hold of its fire: sixteen burned shares."""


DOSE_BYTES = 24.0
"""Bytes per cell of a dose that is predicted beside the smoke: in float64, rounded, as written."""


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
    if surrogate.operator.needs_weather:
        input_bytes += HISTORY_BYTES
        output_bytes += DOSE_BYTES
    if any(record.agreement for record in surrogate.records.values()):
        output_bytes += AGREEMENT_BYTES
    cells = input_bytes * surrogate.inputs.size + output_bytes * surrogate.outputs.size
    return rows_within(
        parse_memory(memory),
        fixed=bytes_in(surrogate.operator) + work + fixed,
        per_row=cells + per_row,
        what=what,
        most=most,
    )
