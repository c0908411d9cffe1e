"""The domain of a WRF-Fire run and its `namelist.input` (em_fire of WRF 4.3.3, one domain).

The options are those of a run that was carried through on mountains: 30 layers up to 12 km, open
boundaries, a damping layer, the YSU boundary layer, no moisture physics or radiation, two-way
coupling, and the smoke tracer of `tracer_opt = 3`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

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


@dataclass(frozen=True, slots=True)
class Domain:
    """Columns of the smoke grid and the fire cells within each."""

    nx: int
    ny: int
    dx: float  # side of a column, m
    refinement: int  # fire cells along one side of a column, `sr_x` and `sr_y`
    corner: tuple[float, float]  # x and y of the south-west corner, m

    @property
    def fire_cell(self) -> float:
        """Side of a fire cell, m."""
        return self.dx / self.refinement


@dataclass(frozen=True, slots=True)
class Ignition:
    """Where and when a fire starts, and how long it is run."""

    x: float  # m, in the coordinates of the store
    y: float
    local_hour: float  # local solar time of the start of the run
    hours: int  # length of the run


@dataclass(frozen=True, slots=True)
class GroundFiles:
    """Which files of the ground the run reads; without them it is flat, with one fuel."""

    terrain: bool
    fuels: bool
    category: int  # of the fuel where `input_fc` is missing


def time_step(dx: float) -> int:
    """Time step in s: the largest divisor of an hour up to `SECONDS_PER_KM` per km of a cell.

    >>> time_step(3000.0), time_step(1000.0), time_step(150.0)
    (20, 6, 1)
    """
    longest = SECONDS_PER_KM * dx / 1000.0
    return max(step for step in range(1, 3600) if 3600 % step == 0 and step <= longest)


def _step(dx: float) -> dict[str, Value]:
    """The time step as WRF reads it: seconds, and below one second a fraction of it."""
    longest = SECONDS_PER_KM * dx / 1000.0
    if longest >= 1.0:
        return {"time_step": time_step(dx)}
    return {
        "time_step": 0, "time_step_fract_num": 1, "time_step_fract_den": math.ceil(1.0 / longest),
    }  # fmt: skip


def namelist_input(domain: Domain, ignition: Ignition, ground: GroundFiles) -> str:
    """Text of `namelist.input`; the ignition counts in metres from the corner of the domain."""
    start = START_DATE + timedelta(hours=round(ignition.local_hour))
    end = start + timedelta(hours=ignition.hours)
    groups: dict[str, dict[str, Value]] = {
        "time_control": _times(start, end, ignition.hours),
        "domains": _domains(domain),
        "physics": _PHYSICS,
        "fdda": {},
        "dynamics": _DYNAMICS,
        "bdy_control": _BOUNDARIES,
        "grib2": {},
        "namelist_quilt": {"nio_tasks_per_group": 0, "nio_groups": 1},
        "fire": _fire(domain, ignition, ground),
    }
    return "\n".join(_group(name, options) for name, options in groups.items())


def _group(name: str, options: dict[str, Value]) -> str:
    lines = [f" {key} = {_value(value)}," for key, value in options.items()]
    return "\n".join([f"&{name}", *lines, "/\n"])


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return f".{str(value).lower()}."
    return str(value) if isinstance(value, int) else f"{value:.10g}" + "." * value.is_integer()


def _times(start: datetime, end: datetime, hours: int) -> dict[str, Value]:
    dates = {
        f"{when}_{part}": getattr(time, part)
        for when, time in (("start", start), ("end", end))
        for part in ("year", "month", "day", "hour")
    }
    return {
        "run_hours": hours, **dates, "history_interval": 60, "frames_per_outfile": 1000,
        "restart": False, "io_form_history": 2, "io_form_restart": 2, "io_form_input": 2,
        "io_form_boundary": 2,
    }  # fmt: skip


def _domains(domain: Domain) -> dict[str, Value]:
    return {
        **_step(domain.dx), "max_dom": 1, "s_we": 1, "e_we": domain.nx + 1,
        "s_sn": 1, "e_sn": domain.ny + 1, "s_vert": 1, "e_vert": LAYERS + 1, "dx": domain.dx,
        "dy": domain.dx, "ztop": TOP, "grid_id": 1, "parent_id": 0, "i_parent_start": 0,
        "j_parent_start": 0, "parent_grid_ratio": 1, "parent_time_step_ratio": 1, "feedback": 0,
        "smooth_option": 0, "sr_x": domain.refinement, "sr_y": domain.refinement,
    }  # fmt: skip


def _fire(domain: Domain, ignition: Ignition, ground: GroundFiles) -> dict[str, Value]:
    radius = IGNITION_CELLS * domain.fire_cell
    x, y = (
        float(place - edge)
        for place, edge in zip((ignition.x, ignition.y), domain.corner, strict=True)
    )
    return {
        "ifire": 2, "fire_fuel_read": 2 if ground.fuels else 0, "fire_fuel_cat": ground.category,
        "fire_num_ignitions": 1, "fire_ignition_ros1": IGNITION_SPEED,
        "fire_ignition_start_x1": x, "fire_ignition_start_y1": y,
        "fire_ignition_end_x1": x, "fire_ignition_end_y1": y,
        "fire_ignition_radius1": radius, "fire_ignition_start_time1": IGNITION_START,
        "fire_ignition_end_time1": IGNITION_START + radius / IGNITION_SPEED,
        "fire_wind_height": 6.1, "fire_print_msg": 0, "fire_print_file": 0,
        "fire_mountain_type": 0, "fire_read_atm_ht": ground.terrain,
        "fire_topo_from_atm": 1, "fire_atm_feedback": 1.0, "fire_tracer_smoke": 0.02,
        "fire_fuel_left_irl": 2, "fire_fuel_left_jrl": 2, "fire_grows_only": 1,
        "fire_viscosity": 0.4, "fire_upwinding": 9, "fire_fuel_left_method": 1,
        "fire_lfn_ext_up": 1.0,
    }  # fmt: skip


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
