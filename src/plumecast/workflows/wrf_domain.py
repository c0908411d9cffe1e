"""The files that an ideal WRF-Fire run reads: domain, fuels, ground and sounding.

They are those of `em_fire` in WRF 4.3.3 with one domain. The options of `namelist.input` are those
of a run that was carried through on mountains: 30 layers up to 12 km, open boundaries, a damping
layer, the YSU boundary layer, no moisture physics or radiation, two-way coupling, and the smoke
tracer of `tracer_opt = 3`.

WRF 4.3.3 knows the 13 fuels of Anderson (1982, INT-GTR-122) and 14 for ground that does not burn.
The numbers are those of the file `namelist.fire` that WRF is delivered with. It reads terrain
(`input_ht`) and fuels (`input_fc`) on its staggered sizes, one row and column of cells more than
the domain has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plumecast.base.names import GRAVITY
from plumecast.compute.arrays import Array
from plumecast.physics.fuels import FUEL_CODES
from plumecast.weather.profile import complete_profile

Value = int | float | bool

LAYERS = 30
TOP = 12_000.0
"""Top of the model above the lowest ground, m."""

SECONDS_PER_KM = 6.7
"""Longest time step, s per km of a cell; WRF advises about 6."""

IGNITION_START = 60.0
"""Seconds from the start of the run to the ignition."""

IGNITION_CELLS = 3
"""Radius of the ignited disc in fire cells; a smaller one may be lost on the grid."""

IGNITION_SPEED = 1.0
"""Speed at which the ignited disc grows to its radius, m s⁻¹ (`fire_ignition_ros1`)."""

START_DATE = datetime(2020, 8, 1)
"""Date of the run. An ideal run without radiation has no season."""


STABILITY = 1.6e-4
"""N² of the free troposphere where it is not known, s⁻²: 5 K per km."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Columns of the smoke grid and the fire cells within each."""

    nx: int
    ny: int
    dx: float  # side of a column, m
    refinement: int  # fire cells along one side of a column, `sr_x` and `sr_y`
    corner: tuple[float, float]  # x and y of the south-west corner, m


@dataclass(frozen=True, slots=True)
class Site:
    """Ignition, stability and ground of a fire; without ground the run is flat, with one fuel."""

    x: float  # of the ignition, m, in the coordinates of the store
    y: float
    exact: bool  # whether the ignition is the simulator's own, not estimated from a field
    stability: float = STABILITY  # N² of the free troposphere, s⁻²
    terrain: Array | None = None  # (ny, nx) m on the columns
    fuels: Array | None = None  # (ny·sr, nx·sr) Anderson categories on the fire cells


def time_step(dx: float) -> int:
    """Time step in s: the largest divisor of an hour up to `SECONDS_PER_KM` per km of a cell.

    >>> time_step(3000.0), time_step(1000.0), time_step(150.0)
    (20, 6, 1)
    """
    longest = SECONDS_PER_KM * dx / 1000.0
    return max(step for step in range(1, 3600) if 3600 % step == 0 and step <= longest)


def namelist_input(domain: Domain, site: Site, local_hour: float, hours: int) -> str:
    """Text of `namelist.input` of a run of some hours that starts at a local solar time.

    The ignition counts in metres from the corner of the domain.
    """
    start = START_DATE + timedelta(hours=round(local_hour))
    times = (("start", start), ("end", start + timedelta(hours=hours)))
    dates: dict[str, Value] = {
        f"{when}_{part}": getattr(time, part)
        for when, time in times
        for part in ("year", "month", "day", "hour")
    }
    longest = SECONDS_PER_KM * domain.dx / 1000.0
    step = {"time_step": time_step(domain.dx)} if longest >= 1.0 else {
        "time_step": 0, "time_step_fract_num": 1, "time_step_fract_den": math.ceil(1.0 / longest),
    }  # fmt: skip
    radius = IGNITION_CELLS * domain.dx / domain.refinement
    x, y = float(site.x - domain.corner[0]), float(site.y - domain.corner[1])
    groups: dict[str, Mapping[str, Value]] = {
        "time_control": {
            "run_hours": hours, **dates, "history_interval": 60, "frames_per_outfile": 1000,
            "restart": False, "io_form_history": 2, "io_form_restart": 2, "io_form_input": 2,
            "io_form_boundary": 2,
        },
        "domains": {
            **step, "max_dom": 1, "s_we": 1, "e_we": domain.nx + 1, "s_sn": 1,
            "e_sn": domain.ny + 1, "s_vert": 1, "e_vert": LAYERS + 1, "dx": domain.dx,
            "dy": domain.dx, "ztop": TOP, "grid_id": 1, "parent_id": 0, "i_parent_start": 0,
            "j_parent_start": 0, "parent_grid_ratio": 1, "parent_time_step_ratio": 1,
            "feedback": 0, "smooth_option": 0, "sr_x": domain.refinement,
            "sr_y": domain.refinement,
        },
        "physics": _PHYSICS,
        "fdda": {},
        "dynamics": _DYNAMICS,
        "bdy_control": _BOUNDARIES,
        "grib2": {},
        "namelist_quilt": {"nio_tasks_per_group": 0, "nio_groups": 1},
        "fire": {
            "ifire": 2, "fire_fuel_read": 0 if site.fuels is None else 2,
            "fire_fuel_cat": DEFAULT_CATEGORY,
            "fire_num_ignitions": 1, "fire_ignition_ros1": IGNITION_SPEED,
            "fire_ignition_start_x1": x, "fire_ignition_start_y1": y,
            "fire_ignition_end_x1": x, "fire_ignition_end_y1": y,
            "fire_ignition_radius1": radius, "fire_ignition_start_time1": IGNITION_START,
            "fire_ignition_end_time1": IGNITION_START + radius / IGNITION_SPEED,
            "fire_wind_height": 6.1, "fire_print_msg": 0, "fire_print_file": 0,
            "fire_mountain_type": 0, "fire_read_atm_ht": site.terrain is not None,
            "fire_topo_from_atm": 1, "fire_atm_feedback": 1.0, "fire_tracer_smoke": 0.02,
            "fire_fuel_left_irl": 2, "fire_fuel_left_jrl": 2, "fire_grows_only": 1,
            "fire_viscosity": 0.4, "fire_upwinding": 9, "fire_fuel_left_method": 1,
            "fire_lfn_ext_up": 1.0,
        },
    }  # fmt: skip
    texts = []
    for name, options in groups.items():
        lines = [f" {key} = {_value(value)}," for key, value in options.items()]
        texts.append("\n".join([f"&{name}", *lines, "/\n"]))
    return "\n".join(texts)


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return f".{str(value).lower()}."
    return str(value) if isinstance(value, int) else f"{value:.10g}" + "." * value.is_integer()


_PHYSICS: dict[str, Value] = {
    "mp_physics": 0, "ra_lw_physics": 0, "ra_sw_physics": 0, "radt": 30, "sf_sfclay_physics": 1,
    "sf_surface_physics": 0, "bl_pbl_physics": 1, "bldt": 0, "cu_physics": 0, "cudt": 0,
    "isfflx": 1, "ifsnow": 0, "icloud": 0, "num_soil_layers": 5,
}  # fmt: skip

_DYNAMICS: dict[str, Value] = {
    "hybrid_opt": 0, "rk_ord": 3, "diff_opt": 1, "km_opt": 4, "damp_opt": 3, "zdamp": 3000.0,
    "dampcoef": 0.2, "khdif": 0.0, "kvdif": 0.0, "smdiv": 0.1, "emdiv": 0.01, "epssm": 0.5,
    "non_hydrostatic": True, "h_mom_adv_order": 5, "v_mom_adv_order": 3, "h_sca_adv_order": 5,
    "v_sca_adv_order": 3, "time_step_sound": 6, "moist_adv_opt": 1, "scalar_adv_opt": 1,
    "tracer_adv_opt": 1, "tracer_opt": 3,
}  # fmt: skip

_BOUNDARIES: dict[str, Value] = {
    f"{kind}_{side}": kind == "open" if len(side) == 2 else False
    for kind, sides in (
        ("periodic", ("x", "y")),
        ("symmetric", ("xs", "xe", "ys", "ye")),
        ("open", ("xs", "xe", "ys", "ye")),
    )
    for side in sides
}


NO_FUEL = 14

DEFAULT_CATEGORY = 10
"""Timber with litter and understory: the one fuel of a run whose fuels are not known."""

# The category whose spread rate in WRF is nearest to that of the fuel model: smallest mean of
# |ln ratio| at 0, 3 and 6 m/s of wind at 20 ft with dead fuel of 8 %. A category of the same kind
# (grass, shrub, timber, slash) is preferred if its rate is within a factor of 2. No category is as
# slow as SH1, SH2, TL1, TL2, TL3 and TL4: there category 8 spreads two and a half to eight times as
# fast.
_NEAREST = {
    1: "GR3 GR5",
    2: "GR2 GS3 GS4 SH4",
    3: "GR4 GR6 GR7 GR8",
    4: "GR9",
    5: "SH5 SH7 SH9",
    8: "SH1 SH2 SH3 TU1 TL1 TL2 TL3 TL4 TL5 TL6 TL7 TL8 SB1",
    9: "GR1 TU2 TU4 TU5 TL9",
    10: "SH8 TU3",
    11: "GS1 GS2 SH6 SB2 SB3",
    12: "SB4",
    NO_FUEL: "NB1 NB2 NB3 NB8 NB9",
}

CATEGORIES: dict[str, int] = {
    name: category for category, names in _NEAREST.items() for name in names.split()
}
"""Name of a Scott and Burgan fuel model → Anderson category."""


def anderson_categories(fuel: npt.NDArray[np.int16]) -> Array:
    """Categories of fuel codes, of any shape."""
    table = np.full(max(FUEL_CODES.values()) + 1, NO_FUEL)
    for name, category in CATEGORIES.items():
        table[FUEL_CODES[name]] = category
    return np.asarray(table[fuel])


def namelist_fire(moisture: float) -> str:
    """Text of `namelist.fire`: WRF's own fuels with this moisture of the ground fuel, a fraction.

    WRF 4.3.3 has one moisture for all dead fuel of a run.
    """
    lines = [
        "&fuel_scalars",
        " cmbcnst = 17.433e+06",
        " hfgl = 17.e4",
        f" fuelmc_g = {moisture:.4f}",
        " fuelmc_c = 1.00",
        f" nfuelcats = {NO_FUEL - 1}",
        f" no_fuel_cat = {NO_FUEL}",
        "/",
        "",
        "&fuel_categories",
        " fuel_name = " + ", ".join(f"'{number}'" for number in range(1, NO_FUEL + 1)),
    ]
    for name, values in _FUELS.items():
        of_fuel = values if isinstance(values, tuple) else (values,) * NO_FUEL
        lines.append(f" {name} = {', '.join(f'{value:g}' for value in of_fuel)}")
    return "\n".join([*lines, "/", ""])


_FUELS: dict[str, tuple[float, ...] | float] = {
    "windrf": (0.36, 0.36, 0.44, 0.55, 0.42, 0.44, 0.44, 0.36, 0.36, 0.36, 0.36, 0.43, 0.46, 1e-7),
    "fgi": (0.166, 0.897, 0.675, 2.468, 0.785, 1.345, 1.092, 1.121, 0.780, 2.694, 2.582, 7.749,
            13.024, 1e-7),
    "fueldepthm": (0.305, 0.305, 0.762, 1.829, 0.61, 0.762, 0.762, 0.061, 0.061, 0.305, 0.305,
                   0.701, 0.914, 0.305),
    "savr": (3500.0, 2784.0, 1500.0, 1739.0, 1683.0, 1564.0, 1562.0, 1889.0, 2484.0, 1764.0,
             1182.0, 1145.0, 1159.0, 3500.0),
    "fuelmce": (0.12, 0.15, 0.25, 0.20, 0.20, 0.25, 0.40, 0.30, 0.25, 0.25, 0.15, 0.20, 0.25,
                0.12),
    "fueldens": 32.0,
    "st": 0.0555,
    "se": 0.010,
    "weight": (7.0, 7.0, 7.0, 180.0, 100.0, 100.0, 100.0, 900.0, 900.0, 900.0, 900.0, 900.0, 900.0,
               7.0),
}  # fmt: skip
"""Wind reduction, load (kg m⁻²), depth (m), surface-area-to-volume ratio (ft⁻¹), moisture of
extinction, density (lb ft⁻³), minerals and burnout weight (s) of the 13 fuels and of none."""


RIM = 6
"""Columns at each edge over which terrain falls to the lowest ground, for calm open boundaries."""


def rimmed_terrain(elevation: Array) -> Array:
    """Terrain (ny, nx) above its lowest ground, m, times min(d / RIM, 1) at d columns from an edge.

    The sounding starts at height 0, so the lowest ground must be there.
    """
    ny, nx = elevation.shape
    rows, columns = np.arange(ny)[:, np.newaxis], np.arange(nx)
    edge = np.minimum(np.minimum(rows, ny - 1 - rows), np.minimum(columns, nx - 1 - columns))
    return (elevation - elevation.min()) * np.minimum(edge / RIM, 1.0)


def input_ht(terrain: Array) -> str:
    """Text of `input_ht` from terrain (ny, nx) on the columns, m."""
    return _table(np.pad(terrain, ((0, 1), (0, 1)), mode="edge"), ".1f")


def input_fc(categories: Array, domain: Domain) -> str:
    """Text of `input_fc` from fuel categories (ny·sr, nx·sr) on the fire cells."""
    more = (0, domain.refinement)
    return _table(np.pad(categories, (more, more), mode="edge"), "d")


def _table(values: Array, form: str) -> str:
    """WRF reads the two sizes, then one line for each index in x with all values along y."""
    ny, nx = values.shape
    lines = [" ".join(f"{value:{form}}" for value in values[:, column]) for column in range(nx)]
    return "\n".join([f"{nx} {ny}", *lines]) + "\n"


SURFACE_PRESSURE = 1000.0  # hPa
MIXED_TEMPERATURE = 302.0
"""Potential temperature of the boundary layer, K: a dry summer day."""

INVERSION = 2.0
"""Rise of the potential temperature across the top of the boundary layer, K."""

INVERSION_DEPTH = 100.0
"""Depth of the layer in which it rises, m."""

SHALLOWEST = 100.0
"""Least depth of the boundary layer in a sounding, m."""

VAPOUR = 4.0
"""Water vapour at the ground, g kg⁻¹; it falls with the height `VAPOUR_HEIGHT`."""

VAPOUR_HEIGHT = 2500.0

ABOVE_WEATHER = (9000.0, TOP + 500.0)
"""Levels above the stored weather, m; WRF needs a sounding beyond its top."""


class Profile(NamedTuple):
    """The weather of a fire at one hour."""

    height: Array  # (n,) m above ground
    u: Array  # (n,) m s⁻¹ towards east
    v: Array
    depth: float  # of the boundary layer, m


def sounding_table(weather: Profile, stability: float) -> Array:
    """(level, 5) of height m, θ K, vapour g kg⁻¹, u and v m s⁻¹.

    The levels are those of the weather, the two edges of the inversion, and `ABOVE_WEATHER`, where
    the wind is that of the highest level of the weather. Between levels winds are linear in ln z.
    θ = θ₀ for z ≤ h, the top of the boundary layer, then θ₀ + Δθ (z − h)/d over the
    d = `INVERSION_DEPTH` of the inversion, and θ₀ + Δθ + (z − h − d) N² θ₀ / g above.
    """
    depth = max(weather.depth, SHALLOWEST)
    edges = (depth, depth + INVERSION_DEPTH)
    heights = np.unique(np.round([*weather.height, *edges, *ABOVE_WEATHER], 1))
    wind = (weather.height, weather.u, weather.v)
    u, v = complete_profile(wind, heights, local_hour=12.0, depth=depth, veer=0.0)
    above = np.maximum(heights - depth, 0.0)
    gradient = stability * MIXED_TEMPERATURE / GRAVITY
    theta = MIXED_TEMPERATURE + INVERSION * np.minimum(above / INVERSION_DEPTH, 1.0)
    theta += gradient * np.maximum(above - INVERSION_DEPTH, 0.0)
    return np.stack([heights, theta, VAPOUR * np.exp(-heights / VAPOUR_HEIGHT), u, v], axis=1)


def input_sounding(table: Array) -> str:
    """Text of `input_sounding`: surface pressure (hPa), θ and vapour, then one line per level."""
    lines = [f"{SURFACE_PRESSURE:.1f} {table[0, 1]:.2f} {VAPOUR:.2f}"]
    lines += [f"{z:.1f} {theta:.3f} {q:.4f} {u:.3f} {v:.3f}" for z, theta, q, u, v in table]
    return "\n".join(lines) + "\n"
