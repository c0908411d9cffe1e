"""One table of names: dimensions, variables, units, and the symbol each has in the paper."""

from __future__ import annotations

from dataclasses import dataclass

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
        pairs = {
            "units": self.units,
            "long_name": self.long_name,
            "standard_name": self.standard_name,
        }
        return {key: value for key, value in pairs.items() if value is not None}


_FIELD = (SNAPSHOT, "y", "x")
_SCALAR = (SNAPSHOT,)

FIELDS = (
    Name("time_since_ignition", _FIELD, "float", "time since ignition, 0 where unburned", "h",
         symbol="f"),
    Name("smoke", _FIELD, "float", "cumulative column-mean smoke concentration", "ug m-3",
         symbol="g"),
)  # fmt: skip

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

NOTES = (
    Name("quality", _SCALAR, "string", "what the checks on reading its fire found"),
)  # fmt: skip

TABLE = {
    entry.name: entry for entry in (*FIELDS, *COORDINATES, *GRID, *GEOGRAPHY, *COVARIATES, *NOTES)
}
FIRE, SMOKE = (entry.name for entry in FIELDS)
