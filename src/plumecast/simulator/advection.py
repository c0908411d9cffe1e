"""Advection of smoke through cell faces: one sweep per direction, second order with a limiter.

A sweep moves air and smoke together. With air mass A (kg m⁻²), smoke mass S and mixing ratio
q = S / A, the air mass a through a face in one step transports a · q̂ of smoke, where

    q̂ = q + ½ (1 − c) Δq,   c = |a| / A,   of the upwind cell.

Δq is the monotonized central slope (van Leer 1977, J. Comput. Phys. 23, 263): the mean of the
differences to both neighbours, at most twice the smaller difference, and 0 at an extremum. It is
weighted for layers of unequal depth. Air and smoke change by the difference of the transport
through their two faces. Mass is therefore conserved, and a uniform q stays uniform even if the
wind of a single direction diverges (Easter 1993, Mon. Weather Rev. 121, 297). No new extremum of q
arises as long as no cell is emptied in one sweep; `turnover_rates` limits the step for that. Sweeps
act on the box of cells with smoke. The edge cells of the box are empty except at the boundary of
the domain, where outflow has the mixing ratio of the edge cell and inflow that of `ambient`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from plumecast.compute.arrays import Field
from plumecast.simulator import compiled

Box: TypeAlias = npt.NDArray[np.int64]
"""Active cells [top, south, north, west, east]: the half-open ranges of layers 0:top, rows
south:north and columns west:east."""

SlopeWeights: TypeAlias = tuple[float, float]
_EQUAL_CELLS = (0.5, 0.5)


@compiled(error_model="numpy")
def limited_slope(behind: float, ahead: float, weight: SlopeWeights) -> float:
    """Monotonized central slope from the differences to the cells behind and ahead."""
    central = weight[0] * behind + weight[1] * ahead
    size = min(abs(central), 2.0 * min(abs(behind), abs(ahead)))
    signed = size if central > 0.0 else -size
    return signed if behind * ahead > 0.0 else 0.0


@compiled(error_model="numpy")
def _face_transport(
    out: Field, amount: Field, q: tuple[Field, Field, Field, Field], air: tuple[Field, Field],
    weights: tuple[SlopeWeights, SlopeWeights], spread: float,
) -> None:  # fmt: skip
    """Write the smoke through a row of faces to `out`.

    `q` has the mixing ratios of the two cells behind and the two cells ahead of each face; `air` is
    that of the nearest ones; `amount` is the air through the faces; `spread` times the difference
    of q is the diffusive transport.
    """
    q0, q1, q2, q3 = q
    air1, air2 = air
    for i in range(out.size):
        across = q2[i] - q1[i]
        back = limited_slope(q1[i] - q0[i], across, weights[0])
        front = limited_slope(across, q3[i] - q2[i], weights[1])
        from_behind = q1[i] + 0.5 * (1.0 - amount[i] / air1[i]) * back
        from_ahead = q2[i] - 0.5 * (1.0 + amount[i] / air2[i]) * front
        out[i] = amount[i] * (from_behind if amount[i] > 0.0 else from_ahead) - spread * across


@compiled(error_model="numpy")
def _edge_transport(out: Field, amount: Field, inward: float, ambient: float) -> float:
    """Set the inflow to `ambient` air; returns the net smoke that leaves through the edge."""
    left = 0.0
    for i in range(out.size):
        if inward * amount[i] > 0.0:
            out[i] = amount[i] * ambient
        left -= inward * out[i]
    return left


@compiled(error_model="numpy")
def sweep_x(
    smoke: Field, air: Field, east: Field, dt: float, box: Box, spread: Field, ambient: float
) -> float:
    """Advect along x in place; returns the smoke that left the domain, kg m⁻² of a cell."""
    top, south, north, west, end = box
    n = end - west
    q, mass = np.empty(n + 4), np.empty(n + 2)
    amount, passed = np.empty(n + 1), np.empty(n + 1)
    left = 0.0
    for k in range(top):
        for j in range(south, north):
            s, a, flux = smoke[k, j, west:end], air[k, j, west:end], east[k, j, west : end + 1]
            for i in range(n):
                q[i + 2] = s[i] / a[i]
                mass[i + 1] = a[i]
            for i in range(n + 1):
                amount[i] = dt * flux[i]
            q[0] = q[1] = q[2]
            q[n + 2] = q[n + 3] = q[n + 1]
            mass[0], mass[n + 1] = mass[1], mass[n]
            _face_transport(
                passed, amount, (q[0:], q[1:], q[2:], q[3:]), (mass[0:], mass[1:]),
                (_EQUAL_CELLS, _EQUAL_CELLS), spread[k],
            )  # fmt: skip
            left += _edge_transport(passed[:1], amount[:1], 1.0, ambient)
            left += _edge_transport(passed[n:], amount[n:], -1.0, ambient)
            for i in range(n):
                s[i] += passed[i] - passed[i + 1]
                a[i] += amount[i] - amount[i + 1]
    return left


@compiled(error_model="numpy")
def sweep_y(
    smoke: Field, air: Field, north: Field, dt: float, box: Box, spread: Field, ambient: float
) -> float:
    """Advect along y in place; returns the smoke that left the domain, kg m⁻² of a cell."""
    top, south, end, west, east = box
    equal_rows = np.full((end - south, 2), 0.5)
    left = 0.0
    for k in range(top):
        left += _sweep_rows(
            smoke, air, north, dt, (k, south), (0, 1), (west, east), equal_rows, spread[k], ambient
        )
    return left


@compiled(error_model="numpy")
def sweep_z(
    smoke: Field, air: Field, up: Field, dt: float, box: Box, weights: Field, ambient: float
) -> float:
    """Advect vertically in place with `slope_weights`; returns the smoke that left."""
    top, south, north, west, east = box
    left = 0.0
    for j in range(south, north):
        left += _sweep_rows(
            smoke, air, up, dt, (0, j), (1, 0), (west, east), weights[:top], 0.0, ambient
        )
    return left


@compiled(error_model="numpy")
def _sweep_rows(
    smoke: Field, air: Field, flux: Field, dt: float,
    first: tuple[int, int], stride: tuple[int, int], columns: tuple[int, int],
    weights: Field, spread: float, ambient: float,
) -> float:  # fmt: skip
    """Advect from row to row, where rows are `stride` (layer, row) apart; vectorized along rows."""
    (k0, j0), (dk, dj), (west, east) = first, stride, columns
    last, n = weights.shape[0] - 1, east - west
    q = np.empty((last + 1, n))
    amount, passed = np.empty((2, n)), np.empty((2, n))
    for r in range(last + 1):
        s, a = smoke[k0 + dk * r, j0 + dj * r, west:east], air[k0 + dk * r, j0 + dj * r, west:east]
        ratio = q[r]
        for i in range(n):
            ratio[i] = s[i] / a[i]
    left = 0.0
    for face in range(last + 2):
        behind, ahead = max(face - 1, 0), min(face, last)
        through, now = passed[face % 2], amount[face % 2]
        entered, before = passed[1 - face % 2], amount[1 - face % 2]
        rate = flux[k0 + dk * face, j0 + dj * face, west:east]
        for i in range(n):
            now[i] = dt * rate[i]
        s = smoke[k0 + dk * behind, j0 + dj * behind, west:east]
        a = air[k0 + dk * behind, j0 + dj * behind, west:east]
        _face_transport(
            through, now,
            (q[max(face - 2, 0)], q[behind], q[ahead], q[min(face + 1, last)]),
            (a, air[k0 + dk * ahead, j0 + dj * ahead, west:east]),
            ((weights[behind, 0], weights[behind, 1]), (weights[ahead, 0], weights[ahead, 1])),
            spread,
        )  # fmt: skip
        if face == 0:
            left += _edge_transport(through, now, 1.0, ambient)
            continue
        if face == last + 1:
            left += _edge_transport(through, now, -1.0, ambient)
        for i in range(n):
            s[i] += entered[i] - through[i]
            a[i] += before[i] - now[i]
    return left


@compiled(error_model="numpy")
def turnover_rates(east: Field, north: Field, up: Field, mass: Field) -> Field:
    """Largest rate, s⁻¹, at which a sweep empties a cell of each layer, (L,).

    With dt · rate ≤ 1 no cell loses more air in a sweep than it has at that stage, both in the
    order x, y, z and in the order z, y, x. The air before a sweep is that of the layer, less the
    net outflow of the earlier sweeps of the step.
    """
    rates, largest = np.zeros(mass.size), np.empty(up.shape[2])
    for k in range(mass.size):
        largest[:] = 0.0
        for j in range(up.shape[1]):
            x_row, south, north_, below, above = (
                east[k, j], north[k, j], north[k, j + 1], up[k, j], up[k + 1, j],
            )  # fmt: skip
            for i in range(largest.size):
                net_x, net_z = x_row[i + 1] - x_row[i], above[i] - below[i]
                x = max(x_row[i + 1], 0.0) - min(x_row[i], 0.0) - min(net_x, 0.0)
                y = max(north_[i], 0.0) - min(south[i], 0.0) + max(net_x, net_z, 0.0)
                z = max(above[i], 0.0) - min(below[i], 0.0) - min(net_z, 0.0)
                largest[i] = max(largest[i], x, y, z)
        rates[k] = largest.max() / mass[k]
    return rates


def slope_weights(depth: Field) -> Field:
    """Weights of the differences to the layers below and above in each layer's slope, (L, 2).

    The slope is the derivative of the parabola through three layer middles, times the depth of the
    middle layer; the weights are ½, ½ for equal depths. The lowest and highest layers have no
    slope, so their weights are not used.
    """
    weights = np.full((depth.size, 2), 0.5)
    below = 0.5 * (depth[:-2] + depth[1:-1])
    above = 0.5 * (depth[1:-1] + depth[2:])
    weights[1:-1, 0] = depth[1:-1] * above / (below * (below + above))
    weights[1:-1, 1] = depth[1:-1] * below / (above * (below + above))
    return weights
