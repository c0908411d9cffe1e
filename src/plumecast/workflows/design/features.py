"""What a `recommended` surrogate sees of fires, as rows of numbers: their spectra at large scales.

The channels are those of the surrogate: lifted fields and, where the weather is known, smoke that
it carries, in the wind frame where winds differ. A spectral surrogate is equivariant: what it
learns of a fire it knows of the same fire elsewhere. Spectra are therefore taken about the centre
of the burned cells. The inner product of two rows is that of the channels, low-pass filtered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.names import FIRE
from plumecast.compute.arrays import Array, to_complex
from plumecast.compute.blocks import row_blocks, sampled_rows
from plumecast.data.conditions.covariates import own_winds, read_wind
from plumecast.data.layout import Field, fit_layout
from plumecast.operators.family import Conditions
from plumecast.operators.fields.framed import CarriedFields, EncodedFields
from plumecast.operators.fields.lift import Lift, fit_lift
from plumecast.operators.fields.wind_frame import WindFrame
from plumecast.operators.physics.transport import ColumnTransport, plan_transport
from plumecast.operators.settings import PRESETS, Settings
from plumecast.operators.spectral.transform import (
    Frequencies,
    choose_frequencies,
    make_transform,
)
from plumecast.surrogate.fit_lifted import grid_spacing, wind_frame_of
from plumecast.surrogate.weather import fire_history, fuel_loads, weather_known, weather_series

WAVELENGTH = 16.0
"""Shortest wavelength that is kept, in cells: where plumes differ, they differ at large scales."""

BLOCK = 64
"""Snapshots whose channels are in memory at a time."""

LIFT_ROWS = 512
"""Snapshots from which the knots and scales of the channels are computed."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The snapshots of one data set as a surrogate reads them."""

    fire: EncodedFields
    carried: CarriedFields | None

    def channels(self, lift: Lift, rows: Array | slice) -> Array:
        """(B, C, *grid) float32."""
        physics = None if self.carried is None else self.carried[rows]
        return np.asarray(lift(self.fire[rows], None, physics))


def surrogate_features(
    parts: Sequence[xr.Dataset], groups: Array, settings: Settings = PRESETS["recommended"]
) -> list[Array]:
    """(M, D) float32 features of the snapshots of every data set; all on one grid.

    Frame, physics and channels are planned for the first data set, whose `groups` (M,) are numbers
    of ignitions, and are the same for all.
    """
    first = parts[0]
    field = fit_layout(first, [FIRE]).fields[0]
    wind = read_wind(first)
    frame = None
    if field.dims == ("y", "x") and own_winds(first, groups, wind, ("hours",)):
        frame = wind_frame_of(first, field, wind, "wind")
    carrier = None
    if field.dims == ("y", "x") and weather_known(first):
        carrier = _carrier(first, field)
    seen = [_seen(part, field, frame, carrier) for part in parts]
    some = sampled_rows(first.sizes["snapshot"], LIFT_ROWS)
    lift = fit_lift(
        seen[0].fire[some],
        settings.lift,
        settings.products,
        bins=settings.age_bins,
        physics=None if seen[0].carried is None else seen[0].carried[some],
    )
    return [_spectral_rows(part, lift) for part in seen]


def _carrier(snapshots: xr.Dataset, field: Field) -> ColumnTransport:
    fuel = fuel_loads(snapshots, field.dims)
    return plan_transport(
        weather_series(snapshots),
        grid_spacing(snapshots, field),
        float(snapshots.attrs.get(INTERVAL, 1.0)),
        load=None if fuel is None else fuel.mean(),
    )


def _seen(
    snapshots: xr.Dataset,
    field: Field,
    frame: WindFrame | None,
    carrier: ColumnTransport | None,
) -> _Seen:
    values = snapshots[FIRE].transpose("snapshot", *field.dims).values.astype(np.float32)
    wind = read_wind(snapshots)
    carried = None
    if carrier is not None:
        given = Conditions(
            wind=wind,
            weather=weather_series(snapshots),
            fuel=fuel_loads(snapshots, field.dims),
            history=fire_history(snapshots, values),
        )
        carried = CarriedFields(values, carrier, given, frame, lambda array: array)
    return _Seen(EncodedFields(values, field.shape, (), frame, wind), carried)


def _spectral_rows(seen: _Seen, lift: Lift) -> Array:
    """(M, D): low frequencies of the channels about the centre of the burned cells."""
    count, *grid = seen.fire.shape
    frequencies = _large_scales((int(grid[0]), int(grid[1])))
    weight = np.sqrt(frequencies.weight() / np.prod(frequencies.padded))
    parts = []
    for rows in row_blocks(count, BLOCK):
        channels = seen.channels(lift, rows)
        transform = make_transform(frequencies, channels)
        pairs = transform.spectra(np.moveaxis(channels, (0, 1), (-2, -1)))  # (F, 2, B, C)
        spectra = to_complex(pairs[:, 0, ...], pairs[:, 1, ...])
        turned = spectra * _centring(seen.fire[rows], frequencies)[..., None]
        flat = np.moveaxis(turned * weight[:, None, None], 0, -1).reshape(channels.shape[0], -1)
        parts.append(np.hstack([flat.real, flat.imag]).astype(np.float32))
    return np.concatenate(parts)


def _large_scales(grid: tuple[int, int]) -> Frequencies:
    """Frequencies of the padded grid with a wavelength of at least WAVELENGTH along each axis."""
    padded = choose_frequencies(grid).padded
    highest = tuple(max(1, min(n // 2, int(n / WAVELENGTH))) for n in padded)
    return Frequencies(grid, padded, highest)


def _centring(fire: Array, frequencies: Frequencies) -> Array:
    """(F, B) phases that move the centre of the burned cells to that of the grid."""
    burned = (fire > 0.0).astype(np.float64)
    total = np.maximum(burned.sum(axis=(1, 2)), 1.0)
    rows, columns = (np.arange(n) - 0.5 * (n - 1) for n in fire.shape[1:])
    centre = (burned.sum(axis=2) @ rows / total, burned.sum(axis=1) @ columns / total)
    waves = [
        2.0 * np.pi * axis / n
        for axis, n in zip(frequencies.axes(), frequencies.padded, strict=True)
    ]
    angle = waves[0][:, None, None] * centre[0] + waves[1][None, :, None] * centre[1]
    return np.exp(1j * angle).reshape(-1, fire.shape[0]).astype(np.complex64)
