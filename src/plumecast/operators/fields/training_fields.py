"""Training fields as an operator sees them, made as they are read. Arrays only, no labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plumecast.compute.arrays import Array
from plumecast.compute.blocks import Runner, field_blocks
from plumecast.operators.fields.targets import Targets
from plumecast.operators.fields.wind_frame import WindFrame


@dataclass(frozen=True, slots=True)
class TrainingFields:
    """Fields of snapshots, encoded as targets and turned into a frame where there is one.

    Indexed by rows, it gives an array of them: (B, *grid), or (B, T, *grid) for targets.
    """

    source: Array  # (M, *grid), an array or what gives one of some rows
    targets: Targets | None = None
    frame: WindFrame | None = None
    wind: Array | None = None  # (M, 2)

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, *grid) or (M, T, *grid)."""
        count, *grid = self.source.shape
        kinds = () if self.targets is None else (len(self.targets.names),)
        return (count, *kinds, *(grid if self.frame is None else self.frame.canvas))

    @property
    def runner(self) -> Runner | None:
        """Who works on blocks of these rows; None: this process."""
        return getattr(self.source, "runner", None)

    def __getitem__(self, rows: Array | slice) -> Array:
        values = self.source[rows]
        if self.targets is not None:
            values = self.targets.encode(values)
        if self.frame is None or self.wind is None:
            return values
        return self.frame.to_wind(values, self.wind[rows])

    def held(self) -> Array:
        """All of them in memory, for who reads them several times."""
        if self.targets is None and self.frame is None:
            return self.source[:]
        out = np.empty(self.shape, dtype=np.float32)
        for rows in field_blocks(self):
            out[rows] = self[rows]
        return out
