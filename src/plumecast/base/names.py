"""One table of names: dimensions, variables, units, and the symbol each has in the paper.

Also physical constants and unit conversions, with their source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DATA_VERSION = "data_version"
"""Attribute of an opened store: its commit id (Icechunk) or the hash of its file (NetCDF)."""

SIMULATION = "simulation"
"""Attribute of simulated snapshots: the simulator's settings, as JSON."""

SNAPSHOT = "snapshot"
"""The sample dimension: one (fire, checkpoint) pair."""


@dataclass(frozen=True, slots=True)
class Name:
    """One variable: its name, dimensions, meaning, unit and symbol in the paper."""

    name: str
    dims: tuple[str, ...]
    kind: str  # "float", "string" or "bool"
    long_name: str
    units: str | None = None
    standard_name: str | None = None
    symbol: str | None = None

    @property
    def attrs(self) -> dict[str, str]:
        """The CF attributes that are known."""
        attrs = {name: getattr(self, name) for name in ("units", "long_name", "standard_name")}
        return {name: value for name, value in attrs.items() if value is not None}


_FIELD = (SNAPSHOT, "y", "x")
_SCALAR = (SNAPSHOT,)

FIELDS = (
    Name("time_since_ignition", _FIELD, "float", "time since ignition, 0 where unburned", "h",
         symbol="f"),
    Name("smoke", _FIELD, "float", "cumulative column-mean smoke concentration", "ug m-3",
         symbol="g"),
)  # fmt: skip

FURTHER = (
    Name("surface_smoke", _FIELD, "float", "cumulative smoke concentration in the lowest model "
         "layer", "ug m-3"),
)  # fmt: skip
"""Further outputs with a name of their own; those of tracers are named after the tracer. All are
sums over checkpoints in µg m⁻³, as smoke is."""

LEVEL = "vertical_level"
"""Attribute of further outputs: one of LEVELS. It makes a variable one of the contract."""

LEVELS = COLUMN, LOWEST = ("column mean", "lowest model layer")

COORDINATES = (
    Name("fire_id", _SCALAR, "string", "one ignition under one weather"),
    Name("ignition_id", _SCALAR, "string", "one ignition, under any weather"),
    Name("hours", _SCALAR, "float", "time of the checkpoint since ignition", "h", symbol="t_k"),
    Name("drought", _SCALAR, "string", "drought scenario"),
    Name("burned_area", _SCALAR, "float", "burned area", "acre"),
    Name("is_final", _SCALAR, "bool", "last checkpoint of its fire"),
)

GRID = (
    Name("y", ("y",), "float", "distance north", "m", "projection_y_coordinate"),
    Name("x", ("x",), "float", "distance east", "m", "projection_x_coordinate"),
)

GEOGRAPHY = (
    Name("lat", ("y", "x"), "float", "latitude", "degrees_north", "latitude"),
    Name("lon", ("y", "x"), "float", "longitude", "degrees_east", "longitude"),
)

COVARIATES = (
    Name("fuel_moisture", _SCALAR, "float", "dead fuel moisture, water per dry fuel by mass",
         "1"),
    Name("wind_speed", _SCALAR, "float", "mean 10 m wind speed since ignition", "m s-1",
         "wind_speed"),
    Name("wind_from_direction", _SCALAR, "float", "mean direction the 10 m wind came from since "
         "ignition", "degree", "wind_from_direction"),
)  # fmt: skip

WEATHER_HOUR, HEIGHT = "weather_hour", "height"
_PROFILE = (SNAPSHOT, WEATHER_HOUR, HEIGHT)

WEATHER = (
    Name("wind_u", _PROFILE, "float", "ambient wind towards east", "m s-1", "eastward_wind"),
    Name("wind_v", _PROFILE, "float", "ambient wind towards north", "m s-1", "northward_wind"),
    Name("boundary_layer_depth", (SNAPSHOT, WEATHER_HOUR), "float", "depth of the boundary layer",
         "m", "atmosphere_boundary_layer_thickness"),
)  # fmt: skip
"""Hourly weather of every fire, where it is known."""

WEATHER_NAMES = tuple(entry.name for entry in WEATHER)
WIND = ("wind_speed", "wind_from_direction")
"""The mean wind of a snapshot, which defines the wind frame."""

WEATHER_AXES = (
    Name(WEATHER_HOUR, (WEATHER_HOUR,), "float", "time of the weather since ignition", "h"),
    Name(HEIGHT, (HEIGHT,), "float", "height above ground", "m", "height"),
)

GROUND = (
    Name("fuel_load", ("y", "x"), "float", "surface fuel load, dry, block mean", "kg m-2"),
)  # fmt: skip

NOTES = (
    Name("quality", _SCALAR, "string", "what the checks on reading its fire found"),
    Name("dose_scale", _SCALAR, "float", "dose of smoke over all times of its source, relative to "
         "the trapezoid over the frames of the snapshots", "1"),
    Name("ignition_time", _SCALAR, "string", "time of ignition, UTC (Z) or local"),
)  # fmt: skip
"""What readers know beside; empty, or 1, where they do not."""

_ENTRIES = (
    *FIELDS, *FURTHER, *COORDINATES, *GRID, *GEOGRAPHY, *COVARIATES, *WEATHER, *WEATHER_AXES,
    *GROUND, *NOTES,
)  # fmt: skip
TABLE = {entry.name: entry for entry in _ENTRIES}
FIRE, SMOKE = (entry.name for entry in FIELDS)
OUTPUTS = {SMOKE: TABLE[SMOKE]} | {entry.name: entry for entry in FURTHER}
QUALITY, DOSE_SCALE, IGNITION_TIME = (entry.name for entry in NOTES)
SURFACE_SMOKE = FURTHER[0].name

HISTORY = "history"
"""Dimension of what a snapshot may hold of its fire at other hours, earlier and later."""

HISTORY_SHARE, HISTORY_HOURS = "history_burned_share", "history_hours"
"""Burned shares of the cells (snapshot, history, y, x), and their hours or NaN, rising."""


def tracer_output(tracer: str, *, surface: bool = False) -> str:
    """The variable of a tracer of another model.

    >>> tracer_output("co"), tracer_output("co", surface=True)
    ('smoke_co', 'surface_smoke_co')
    """
    return f"{SURFACE_SMOKE if surface else SMOKE}_{tracer}"


def is_smoke(name: str, attrs: Mapping[str, Any]) -> bool:
    """Whether a variable is smoke of the contract: not negative, µg m⁻³, a sum over checkpoints."""
    return name in OUTPUTS or attrs.get(LEVEL) in LEVELS


def shown_units(units: str) -> str:
    """Units for people.

    >>> shown_units("ug m-3 h"), shown_units("m s-1")
    ('µg m⁻³ h', 'm s⁻¹')
    """
    return units.replace("ug", "µg").replace("-1", "⁻¹").replace("-2", "⁻²").replace("-3", "⁻³")


# -- constants

R_DRY = 287.0
"""Specific gas constant of dry air, J kg⁻¹ K⁻¹ (WRF: 287)."""

CP_DRY = 1005.0
"""Specific heat of dry air at constant pressure, J kg⁻¹ K⁻¹ (the paper; WRF: 7R/2 = 1004.5)."""

P0 = 1.0e5
"""Reference pressure of potential temperature, Pa."""

GRAVITY = 9.81
"""Gravitational acceleration, m s⁻² (WRF: 9.81)."""

M2_PER_ACRE = 4046.8564224
"""Square metres in an international acre (exact)."""

SURFACE_LAYER = 100.0
"""Winds up to this height above ground, m, count as winds near the ground."""

SURFACE_WIND_LIMIT = 60.0
"""Larger speeds, m s⁻¹, are not believed near the ground: the wind of a strong hurricane."""

ALOFT_WIND_LIMIT = 120.0
"""Larger speeds, m s⁻¹, are not believed at any height: more than the strongest jet streams."""

DEEPEST_BOUNDARY_LAYER = 2e4
"""Larger depths, m, are not believed: no boundary layer is deeper than the troposphere."""

HEAVIEST_FUEL = 200.0
"""Larger loads, kg m⁻², are not believed: the heaviest slash has 13."""

FILL_VALUES = (-9999.0, -999.0, -99999.0, -32768.0)
"""Values that stand for a missing one in many programs; so do all from LARGEST_VALUE on."""

LARGEST_VALUE = 1e18
"""No quantity of a fire is as large; the fill value of NetCDF is 9.97e36."""

LIKELY = {
    "fuel_moisture": (0.0, 3.0),
    "wind_speed": (0.0, SURFACE_WIND_LIMIT),
    "wind_from_direction": (-360.0, 360.0),
}
"""Lowest and highest credible value of the covariates of the contract."""
