"""Coarse column transport: smoke in a few layers, carried by the weather of its fire. Arrays only.

The weather is the same above all cells, so in one step all smoke of a layer moves by one
displacement. Along each axis this is a product with a matrix: linear interpolation between cells,
then the diffusion of the step. It is positive and conserves smoke; smoke that leaves the grid is
lost. Smoke released during a step is spread along the displacement δ by halving:
the mean over 2^q equally long delays is the product of (1 + S(δ/2^j)) / 2 for j = 1 … q, where S
moves smoke. Turbulence exchanges smoke between layers, by one small matrix per fire and step. The
cells release smoke as they burn (`release`); the heat of the fire sets the height.

Cumulative smoke is a sum over frames, and the frames of a snapshot are counted backwards from its
own hour h: h, h − Δ, h − 2 Δ, … since ignition. Steps are counted so too, so that every frame is at
the end of a step, whatever the hour. Ignition then lies within the first step: what this step
releases moves and rises for the part of it after ignition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from plumecast.compute.arrays import (
    Array,
    array_namespace,
    assembled,
    is_numpy_array,
    like,
    positive_part,
    take_rows,
)
from plumecast.compute.blocks import cores, map_threads, row_blocks
from plumecast.compute.resources import free_bytes
from plumecast.operators.carried.release import (
    FireHistory,
    FuelLoads,
    Release,
    WeatherSeries,
    partial_release_of,
    release_of,
)
from plumecast.physics.air import HORIZONTAL_DIFFUSIVITY, mixing_matrices
from plumecast.physics.plume import (
    HEAT_OF_COMBUSTION,
    RADIATIVE_FRACTION,
    injection_profile,
    mean_plume_lift,
    plume_top,
)

EDGES = (0.0, 200.0, 600.0, 1200.0, 2200.0, 3600.0, 6000.0)
"""Edges of the layers, m above ground."""


@dataclass(frozen=True, slots=True)
class Carried:
    """One entry of CARRIED: which layers are summed to one field each, by their edges."""

    summary: str
    groups: tuple[int, ...]  # numbers of the edges between the fields, ascending


CARRIED = {
    "column": Carried("smoke carried by the weather of every fire, summed over the column", (0, 6)),
    "layers": Carried("the same, summed over three parts of the column", (0, 2, 4, 6)),
    "calibrated": Carried(
        "as column, with its spread, rise and speed chosen on the training fires", (0, 6)
    ),
}
"""Kinds of carried smoke, whose fields are channels of the operators."""

DIFFUSIVITY = HORIZONTAL_DIFFUSIVITY
"""The value of a transport that is not calibrated, m² s⁻¹."""

STABILITY = 1.2e-4
"""N² of the free troposphere, s⁻²: stored weather does not contain it."""

HEAT = HEAT_OF_COMBUSTION * RADIATIVE_FRACTION
"""Radiated heat of burned fuel, MJ kg⁻¹."""

BLOCK, DEVICE_BLOCK = 8, 8192
"""Snapshots carried at a time on the host, where their state stays in the cache, and at most on a
GPU."""

DEVICE_SHARE = 0.4
"""Share of the free memory of a GPU that their states and matrices may use."""

STEP_ROWS = 24
"""Steps times snapshots whose matrices are made at a time; single fires need fewer calls."""

SECONDS = 3600.0
ROUNDING = 1e-6  # hours
SURFACE = 10.0  # m, height of the wind that makes turbulence
MOST_HALVINGS = 3


@dataclass(frozen=True, slots=True)
class ColumnTransport:
    """The grid and the steps of the transport, and the fuel it burns."""

    spacing: tuple[float, float]  # cell size along y and x, m; negative if an axis descends
    interval: float  # Δ, hours between the frames that cumulative smoke sums over
    step: float  # h, a divisor of the interval
    halvings: int  # q
    groups: tuple[int, ...]
    load: Array | None = None  # (ny, nx) fuel load of training, kg m⁻²; None: 1 everywhere
    partial: bool = False  # whether cells may burn in part; False in older files
    # What `calibration` chooses; older files have the defaults.
    diffusivity: float = DIFFUSIVITY  # horizontal, m² s⁻¹
    rise: float = 1.0  # factor of the height of plumes
    drift: float = 1.0  # factor of the winds that carry smoke

    def smoke(
        self,
        fire: Array,
        weather: WeatherSeries,
        fuel: FuelLoads | None = None,
        history: FireHistory | None = None,
    ) -> Array:
        """(M, ny, nx) ages → (M, K, ny, nx) cumulative smoke of K groups of layers, any unit.

        The loads of `fuel` replace that of training. A transport without a load, whose smoke is in
        another unit, takes none. Where the `history` tells more than the map, it sets the release.
        Snapshots are carried in the order of their hours, so that those of a block start together.
        """
        return self.summed(fire, weather, fuel, history, integrals=False)[:, 0, ...]

    def summed(
        self,
        fire: Array,
        weather: WeatherSeries,
        fuel: FuelLoads | None = None,
        history: FireHistory | None = None,
        *,
        integrals: bool = True,
    ) -> Array:
        """(M, ny, nx) ages → (M, 2, K, ny, nx): `smoke`, and ∫ c dt / Δ instead of the sum Σ c.

        The integral is the trapezoid rule over the steps. Without `integrals` it is left out.
        """
        count, *grid = fire.shape
        shape = (count, 1 + integrals, len(self.groups) - 1, *grid)
        order = np.argsort(weather.until, kind="stable")
        told = np.zeros(order.size, dtype=bool)
        if history is not None and self.partial:
            told = history.known()
        size = self._block(fire, 0 if history is None else history.rows.shape[1])
        parts = [
            rows[start : start + size]
            for rows in (order[told[order]], order[~told[order]])
            for start in range(0, rows.size, size)
        ]

        def carry(rows: Array) -> Array:
            loads = None if fuel is None else fuel.at(rows)
            past = history.at(rows) if history is not None and told[rows[0]] else None
            part = take_rows(fire, rows)
            return self._carried(part, weather.at(rows), loads, past, integrals=integrals)

        threads = min(cores(), len(parts)) if is_numpy_array(fire) else 1
        carried = map_threads(carry, parts, max(threads, 1))
        return assembled(zip(parts, carried, strict=True), shape, fire)

    def _block(self, fire: Array, nodes: int) -> int:
        """Snapshots carried at a time: those that the cache holds, or the free memory of a GPU."""
        free = free_bytes(fire)
        if free is None:
            return BLOCK
        ny, nx = fire.shape[1:]
        row = 4.0 * nodes * 3 * ny * nx
        row += 4.0 * (len(EDGES) - 1) * (8 * ny * nx + 2 * (self.halvings + 1) * (ny**2 + nx**2))
        return max(BLOCK, min(DEVICE_BLOCK, int(DEVICE_SHARE * free / row)))

    def spread_cells(self) -> float:
        """Standard deviation of the diffusion in a step, in cells of the finer axis."""
        size = min(map(abs, self.spacing))
        return math.sqrt(2.0 * self.diffusivity * self.step * SECONDS) / size

    def working_bytes(self, cells: int) -> float:
        """Working bytes on a grid of `cells`: states, sources and matrices of blocks at work."""
        return 4.0 * 8.0 * BLOCK * cores() * (len(EDGES) - 1) * cells

    def _carried(
        self,
        fire: Array,
        weather: WeatherSeries,
        fuel: FuelLoads | None,
        history: FireHistory | None,
        *,
        integrals: bool,
    ) -> Array:
        """The smoke of one block of snapshots. All end together; the youngest start last."""
        xp = array_namespace(fire)
        fire = xp.astype(fire, xp.float32, copy=False)
        until = np.asarray(weather.until, dtype=np.float64)
        steps = math.ceil(float(np.max(until, initial=0.0)) / self.step - 1e-9)
        ends = until - self.step * np.arange(steps, -1, -1)[:, None]  # (n + 1, M)
        # Parts of the steps after ignition; 1 also before it, where nothing burns.
        split = (ends[:-1] < -ROUNDING) & (ends[1:] > ROUNDING)
        burning = np.where(split, ends[1:] / self.step, 1.0)
        air = _Air.over(weather, (ends[1:] - 0.5 * self.step).T, self, fire)
        if history is None:
            of = partial_release_of if self.partial else release_of
            release: Release = of(fire, like(until.astype(np.float32)[:, None, None], fire))
        else:
            release = history.release(fire)
        load = self.load
        if load is not None:
            load = like(load, fire, fire.dtype) if fuel is None else fuel.on(fire)
        count, ny, nx = fire.shape
        layers = len(EDGES) - 1
        state = at_frames = always = like(np.zeros((count, layers, ny, nx), dtype=np.float32), fire)
        per = max(1, round(self.interval / self.step))
        weights = like(_trapezoid(self.step / self.interval * burning), fire)
        for some in row_blocks(steps, STEP_ROWS // max(1, count)):
            hours = ends[some.start : some.stop + 1]
            since = like(burning[some.start : some.stop].astype(np.float32), fire)
            burned, shares = self._released(release.by(hours), load, air.depth[:, some], since)
            along = self._matrices(air, some, (ny, nx), since)
            for i, n in enumerate(range(some.start, some.stop)):
                source = shares[i, ...] * burned[i, ...]
                for j in range(self.halvings):
                    source = source + _moved(source, *(halves[j, i, ...] for halves, _ in along))
                state = _moved(state, *(whole[i, ...] for _, whole in along)) + source
                mixed = air.mixing[:, n, ...] @ xp.reshape(state, (count, layers, ny * nx))
                state = xp.reshape(mixed, state.shape)
                if (steps - 1 - n) % per == 0:
                    at_frames = at_frames + state
                if integrals:
                    always = always + weights[n, :, None, None, None] * state
        bounds = list(zip(self.groups[:-1], self.groups[1:], strict=True))
        sums = [
            xp.stack([xp.sum(part[:, low:high, :, :], axis=1) for low, high in bounds], axis=1)
            for part in ((at_frames, always) if integrals else (at_frames,))
        ]
        return xp.stack(sums, axis=1)

    def _released(
        self, burned_by: Array, load: Array | None, depth: Array, burning: Array
    ) -> tuple[Array, Array]:
        """Fuel (n, M, 1, ny, nx) burned in some steps, and its shares (n, M, L, 1, 1) by layer.

        `burned_by` (n + 1, M, ny, nx) are the burned shares at their ends, `depth` (M, n) the
        boundary layers and `burning` (n, M) the parts of the steps after ignition. The shares by
        layer are divided by 2^q: the halvings of a step only add. A fire has one plume: its top is
        that of `physics.plume` with the mean lift of the burning cells, times `rise`.
        """
        xp = array_namespace(burned_by)
        # The shares are sums of products, whose rounding may let them fall.
        burned = xp.clip(burned_by[1:, ...] - burned_by[:-1, ...], 0.0, None)
        if load is not None:
            burned = burned * load
        area = abs(self.spacing[0] * self.spacing[1])
        power = burned / burning[..., None, None] * (HEAT * area / (self.step * SECONDS))
        lift = mean_plume_lift(power, burned, STABILITY)
        top = self.rise * plume_top(xp.permute_dims(depth, (1, 0)), lift)
        shares = injection_profile(xp.clip(top, EDGES[1], EDGES[-1]), EDGES)
        return burned[:, :, None, :, :], (0.5**self.halvings * shares)[..., None, None]

    def _matrices(
        self, air: _Air, steps: slice, grid: tuple[int, int], burning: Array
    ) -> list[tuple[Array, Array]]:
        """Matrices of both axes in some steps: of the q halvings (q, n, M, L, …), and of a step.

        Smoke is released in the part `burning` (n, M) of a step, and spread along its displacement.
        """
        xp = array_namespace(air.east)
        halves = like((0.5 ** np.arange(1, self.halvings + 1)).astype(np.float32), air.east)
        made = []
        for size, spacing, winds in zip(grid, self.spacing, (air.north, air.east), strict=True):
            move = xp.permute_dims(winds[:, steps, :], (1, 0, 2))
            released = burning[..., None] * move
            spread = _diffusion(self.diffusivity, self.step, spacing)
            halved = shift_matrices(size, halves[:, None, None, None] * released, np.ones(1))
            made.append((halved, shift_matrices(size, move, spread)))
        return made


def _trapezoid(lengths: Array) -> Array:
    """(n, M) weights of the ends of steps of these lengths; there is no smoke at the first begin.

    >>> _trapezoid(np.array([[0.5], [1.0], [1.0]])).ravel().tolist()
    [0.75, 1.0, 0.5]
    """
    after = np.concatenate([lengths[1:], np.zeros_like(lengths[:1])])
    return (0.5 * (lengths + after)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class _Air:
    """The air in all steps, on the device of the fire."""

    east: Array  # (M, n, L) displacements in cells
    north: Array  # (M, n, L)
    depth: Array  # (M, n) of the boundary layer, m
    mixing: Array  # (M, n, L, L)

    @staticmethod
    def over(weather: WeatherSeries, times: Array, grid: ColumnTransport, fire: Array) -> _Air:
        xp = array_namespace(fire)
        edges = np.asarray(EDGES)
        heights = np.append(0.5 * (edges[1:] + edges[:-1]), SURFACE)
        u, v, depth = weather.at_times(times, heights, fire)
        speed = xp.sqrt(u[..., -1] ** 2 + v[..., -1] ** 2)
        seconds = grid.step * SECONDS
        return _Air(
            u[..., :-1] * (grid.drift * seconds / grid.spacing[1]),
            v[..., :-1] * (grid.drift * seconds / grid.spacing[0]),
            depth,
            mixing_matrices(edges, depth, speed, seconds),
        )


def _moved(fields: Array, along_y: Array, along_x: Array) -> Array:
    """(M, L, ny, nx) fields after a step with the matrices of both axes."""
    return along_y @ fields @ array_namespace(fields).matrix_transpose(along_x)


def _diffusion(diffusivity: float, step: float, size: float) -> Array:
    """(2p + 1,) shares of a cell's smoke in its neighbours after a step of diffusion.

    The kernel (r, 1 − 2 r, r) has the variance 2 r cells. It is applied p times, with r at most
    1/4, to give 2 D Δt / Δx² in all.
    """
    whole = diffusivity * step * SECONDS / size**2
    times = max(1, math.ceil(4.0 * whole))
    once = np.array([whole / times, 1.0 - 2.0 * whole / times, whole / times])
    kernel = np.ones(1)
    for _ in range(times):
        kernel = np.convolve(kernel, once)
    return kernel


def shift_matrices(size: int, move: Array, spread: Array) -> Array:
    """(…) displacements in cells → (…, size, size): share of cell j that reaches cell i.

    `spread` (2p + 1,) are the shares of a cell and its neighbours after diffusion. An entry depends
    on i − j alone, so that only 2 · size − 1 values are computed.
    """
    xp = array_namespace(move)
    # Descending i − j, so that a row of the matrix is a run of consecutive values.
    apart = like(np.arange(size - 1, -size, -1, dtype=np.float32), move) - move[..., None]
    values: Array = 0.0
    for offset, share in zip(range(-(spread.size // 2), spread.size // 2 + 1), spread, strict=True):
        values = values + float(share) * positive_part(1.0 - xp.abs(apart - float(offset)))
    # Row i is the run of values from size − 1 − i on. NumPy copies runs faster than elements.
    if is_numpy_array(values):
        runs = np.lib.stride_tricks.sliding_window_view(values, size, axis=-1)
        return np.ascontiguousarray(runs[..., ::-1, :])
    places = np.arange(size)
    index = like((size - 1 - places[:, None] + places[None, :]).reshape(-1), values)
    return xp.reshape(xp.take(values, index, axis=-1), (*values.shape[:-1], size, size))


def plan_transport(
    weather: WeatherSeries,
    spacing: tuple[float, float],
    interval: float,
    *,
    kind: str = "column",
    load: Array | None = None,
) -> ColumnTransport:
    """A transport for fires like those of training.

    Steps are at most an hour, or half an hour for fires of at most a day. Smoke released in a step
    is spread until parts of it are at most a cell apart, in the faster winds of training.
    """
    longest = 0.5 if float(np.max(weather.until, initial=0.0)) <= 24.0 else 1.0
    step = interval / math.ceil(interval / longest - 1e-9)
    speed = float(np.quantile(np.hypot(weather.u, weather.v), 0.95)) if weather.u.size else 0.0
    cells = speed * step * SECONDS / min(map(abs, spacing))
    halvings = min(MOST_HALVINGS, max(1, math.ceil(math.log2(max(cells, 1.0)))))
    groups = CARRIED[kind].groups
    return ColumnTransport(spacing, interval, step, halvings, groups, load, partial=True)
