"""Names and units of the columns of a weather table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from plumecast.base.errors import PlumecastError
from plumecast.sources.weather.units import length_label, speed_label

NAMES = {
    "hour": "hour hours h hr weather_hour time_since_ignition hour_since_ignition "
    "hours_since_ignition",
    "time": "time datetime date_time valid_time timestamp date",
    "height": "height z height_agl height_above_ground agl",
    "altitude": "altitude height_asl height_amsl asl amsl geopotential_height",
    "speed": "speed wind_speed windspeed wind_spd windspd wspd ws ff",
    "direction": "direction wind_direction dir wind_dir winddir wdir wd dd drct",
    "from": "wind_from_direction wind_from from direction_from from_direction dir_from",
    "to": "to wind_to toward towards wind_toward wind_towards dir_to direction_to to_direction "
    "blowing_to",
    "cf_to": "wind_to_direction",
    "u": "u wind_u u_wind uwnd ugrd eastward_wind u_component",
    "v": "v wind_v v_wind vwnd vgrd northward_wind v_component",
    "depth": "depth boundary_layer_depth boundary_layer_height boundary_layer blh pblh hpbl pbl "
    "mixing_height mixing_depth",
    "fire": "fire fire_id fire_name fireid",
}
"""The names that people give to each column, in lower case with underscores."""

_MEANING = {name: meaning for meaning, names in NAMES.items() for name in names.split()}
_BRACKETS = re.compile(r"(.*?)\s*[(\[]\s*([^)\]]*?)\s*[)\]]")
_ANGLES = {"deg", "degree", "degrees", "°", "degt", "deg_true", "degrees_true", "deg from n"}
_HOURS = {"h", "hr", "hours", "hour"}


class Column(NamedTuple):
    """A column of a table: its header, meaning and unit."""

    header: str
    meaning: str
    unit: str | None  # None if the header does not state it


def find_columns(headers: Sequence[str], source: object) -> dict[str, Column]:
    """The known columns by meaning; others are left out. Raises if two have one meaning."""
    found: dict[str, Column] = {}
    for header in headers:
        column = _column(header, source)
        if column is None:
            continue
        if column.meaning in found:
            raise PlumecastError(
                f"{source}: the columns '{found[column.meaning].header}' and '{header}' are both "
                f"the {column.meaning}; keep one"
            )
        found[column.meaning] = column
    return found


def _column(header: str, source: object) -> Column | None:
    text = header.strip().lower()
    bracket = _BRACKETS.fullmatch(text)
    name = _plain(bracket[1] if bracket else text)
    if name in _MEANING:
        return Column(header, _MEANING[name], _unit(bracket[2], name, header, source)
                      if bracket else None)  # fmt: skip
    for cut in (m.start() for m in re.finditer("_", name)):
        base, label = name[:cut], name[cut + 1 :]
        meaning = _MEANING.get(base)
        if meaning and _known_unit(label.replace("_", " "), meaning):
            return Column(header, meaning, _known_unit(label.replace("_", " "), meaning))
    return None


def _plain(text: str) -> str:
    return re.sub(r"[\s\-.]+", "_", text.strip()).strip("_")


def _unit(label: str, name: str, header: str, source: object) -> str | None:
    unit = _known_unit(label, _MEANING[name])
    if unit is None and label:
        raise PlumecastError(f"{source}: the unit of the column '{header}' is not known; change it")
    return unit


def _known_unit(label: str, meaning: str) -> str | None:
    if meaning in ("speed", "u", "v"):
        return speed_label(label)
    if meaning in ("height", "altitude", "depth"):
        return length_label(label)
    if meaning in ("direction", "to", "cf_to"):
        return "degree" if label in _ANGLES else None
    if meaning == "hour":
        return "h" if label in _HOURS else None
    return label or None
