"""Blocks of snapshots on their way into a spectral operator: inputs, equations, predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from plumecast.compute.arrays import (
    Array,
    array_namespace,
    is_array_api_obj,
    is_numpy_array,
    like,
    take_rows,
    to_complex,
)
from plumecast.operators.fields.lift import Lift
from plumecast.operators.spectral.equations import Equations
from plumecast.operators.spectral.map import (
    Steps,
    fire_block,
    lifted_spectra,
    ramps_of,
    row_parts,
    snapshot_first,
    target_block,
    through,
)
from plumecast.operators.spectral.transform import Transform


@dataclass(frozen=True, slots=True)
class SpectralBlocks:
    """Training snapshots on the device, or copied to it block by block."""

    fire: Array  # (M, *grid)
    targets: Array  # (M, T, *grid)
    physics: Array | None  # (M, K, *grid)
    covariates: Array | None
    scales: Array  # (T,), divide the targets
    lift: Lift
    transform: Transform
    block: int
    put: Callable[[Array], Array]  # copies an array to the device
    leading: int  # number of targets whose predictions are inputs of the next layer

    def _on_device(self, fields: Array, rows: Array) -> Array:
        """Some snapshots, of an array on the device or of one that is read by rows on the host."""
        if is_array_api_obj(fields) and not is_numpy_array(fields):
            return take_rows(fields, rows)
        return self.put(fields[rows])

    def lifted(self, rows: Array) -> Array:
        """(F, 2, B, C) spectra of the lifted fire."""
        own = None if self.covariates is None else self.covariates[rows]
        carried = None if self.physics is None else self._on_device(self.physics, rows)
        fire = fire_block(self._on_device(self.fire, rows))
        return lifted_spectra(self.lift, self.transform, fire, own, carried)

    def inputs(self, rows: Array, steps: Steps) -> Array:
        """(F, 2, B, C) inputs of a layer: the lifted fire, then ramps of the previous layer."""
        lifted = self.lifted(rows)
        if not steps:
            return lifted
        before = steps[-1][0]
        assert before is not None
        ramps = ramps_of(through(lifted, self.transform, steps), before)
        return array_namespace(lifted).concat([lifted, self.transform.spectra(ramps)], axis=3)

    def equations(self, rows: Array, steps: Steps) -> Equations:
        """Normal equations of some snapshots, whose inputs pass through the previous layers."""
        total: Equations | None = None
        for some in row_parts(rows, self.block):
            targets = target_block(self._on_device(self.targets, some), self.scales)
            pairs = self.inputs(some, steps), self.transform.spectra(targets)
            part = Equations.of(*(to_complex(own[:, 0, ...], own[:, 1, ...]) for own in pairs))
            total = part if total is None else total + part
        assert total is not None
        return total

    def predictions(self, rows: Array, steps: Steps) -> Array:
        """(B, T, *grid) targets of some snapshots, in their own units."""
        parts = []
        for some in row_parts(rows, self.block):
            values = through(self.lifted(some), self.transform, steps)
            parts.append(snapshot_first(values * like(self.scales, values, values.dtype)))
        return array_namespace(parts[0]).concat(parts)
