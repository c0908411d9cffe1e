"""Snapshots as a family sees them: targets encoded, smoke carried, fields in the wind frame.

Fields are computed when their rows are read, or all at once. Arrays only, no labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from plumecast.compute.arrays import Array, to_numpy
from plumecast.compute.blocks import field_blocks, row_blocks
from plumecast.compute.device import Budget
from plumecast.operators.family import Conditions, TrainingSet
from plumecast.operators.fields.targets import Targets, encode_outputs
from plumecast.operators.fields.wind_frame import WindFrame
from plumecast.operators.physics.transport import ColumnTransport


@dataclass(frozen=True, slots=True)
class EncodedFields:
    """Fields of snapshots that are encoded as targets and rotated into a frame when they are read.

    Indexing by rows gives an array, (B, *grid), or (B, T, *grid) for targets.
    """

    source: Array  # (M, *grid) or (M, K, *grid), or an object that gives it when indexed by rows
    grid: tuple[int, ...]
    encode: tuple[Targets, ...] = ()  # of every output
    frame: WindFrame | None = None
    wind: Array | None = None  # (M, 2)

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, *grid) or (M, T, *grid)."""
        kinds = (sum(len(own.names) for own in self.encode),) if self.encode else ()
        grid = self.grid if self.frame is None else self.frame.canvas
        return (self.source.shape[0], *kinds, *grid)

    def __getitem__(self, rows: Array | slice) -> Array:
        values = self.source[rows]
        if self.encode:
            values = encode_outputs(self.encode, values)
        if self.frame is None or self.wind is None:
            return values
        return self.frame.to_wind(values, self.wind[rows])

    def in_memory(self) -> Array:
        """All fields in one array, for a fit that reads them several times."""
        if not self.encode and self.frame is None:
            return self.source[:]
        out = np.empty(self.shape, dtype=np.float32)
        for rows in field_blocks(self):
            out[rows] = self[rows]
        return out


@dataclass(frozen=True, slots=True)
class CarriedFields:
    """Smoke that the weather carries, computed and rotated into a frame when it is read.

    Indexing by rows gives (B, K, *grid).
    """

    fire: Array  # (M, *grid), an array or an object that gives one when indexed by rows
    physics: ColumnTransport
    given: Conditions  # weather, fuel, history and wind
    frame: WindFrame | None
    put: Callable[[Array], Array]  # copies an array to the device

    @property
    def shape(self) -> tuple[int, ...]:
        """(M, K, *grid)."""
        count, *grid = self.fire.shape
        kinds = len(self.physics.groups) - 1
        return (count, kinds, *(grid if self.frame is None else self.frame.canvas))

    def __getitem__(self, rows: Array | slice) -> Array:
        fire, given = self.put(self.fire[rows]), self.given.at(rows).loaded()
        assert given.weather is not None
        carried = self.physics.smoke(fire, given.weather, given.fuel, given.history)
        if self.frame is not None and given.wind is not None:
            carried = self.frame.to_wind(carried, given.wind)
        return to_numpy(carried)

    def in_memory(self) -> Array:
        """All fields in one array, for a fit that reads them several times."""
        out = np.empty(self.shape, dtype=np.float32)
        for rows in row_blocks(self.shape[0], CARRIED_ROWS):
            out[rows] = self[rows]
        return out


CARRIED_ROWS = 2048
"""Snapshots whose smoke is carried at a time; many, because they are sorted by their hours."""


def in_frame(
    training: TrainingSet,
    targets: tuple[Targets, ...],
    frame: WindFrame | None,
    physics: ColumnTransport | None,
    resources: Budget,
    *,
    mirrored: bool,
) -> TrainingSet:
    """Snapshots on the map as a family sees them: encoded, with physics, in the wind frame.

    Without a limit on memory all fields are arrays; with one they are computed when they are read.
    """
    given, shape = training.given, tuple(int(n) for n in training.fire.shape[1:])
    fire: Array = EncodedFields(training.fire, shape, (), frame, given.wind)
    encoded: Array = EncodedFields(training.targets, shape, targets, frame, given.wind)
    if physics is not None:
        assert given.weather is not None
        carried: Array = CarriedFields(training.fire, physics, given, frame, resources.device.put)
        carried = carried.in_memory() if resources.limit is None else carried
        given = replace(given, physics=carried)
    if resources.limit is None:
        fire, encoded = fire.in_memory(), encoded.in_memory()
    leading = len(targets[0].names)
    framed = replace(training, fire=fire, targets=encoded, given=given, leading=leading)
    if mirrored:
        framed = framed.with_mirrored()
        if resources.limit is None:
            framed = framed.in_memory()
    return framed
