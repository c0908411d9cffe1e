"""Solar plants: what a table of places says of them, the sun above them, and their power."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError, require
from plumecast.base.values import setting
from plumecast.data.crs import as_crs, crs_of, import_extra
from plumecast.sources.places import Places

ALTITUDE = "surface_altitude"
"""Name of the height of the ground above sea level on a grid, m."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """What all plants share: modules, inverters and the air around them, as in PVWatts."""

    dc_ac_ratio: float = setting(1.2, "Power of the modules divided by that of the inverters.")
    temperature_coefficient: float = -0.0035  # of the power, per °C
    system_loss: float = 0.14  # soiling, wiring, mismatch, availability
    inverter_efficiency: float = 0.96
    air_temperature: float = setting(25.0, "Temperature of the air by day, °C.")
    wind_speed: float = 2.0  # m s⁻¹
    albedo: float = 0.2  # of the ground

    def __post_init__(self) -> None:
        limits = {"dc_ac_ratio": (0.5, 3.0), "air_temperature": (-50.0, 60.0)}
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise ArgumentError(name, value, problem=f"must lie within {low:g} … {high:g}")


@dataclass(frozen=True, slots=True)
class Plants:
    """Plants with all that their power depends on; arrays (P,)."""

    names: tuple[str, ...]
    megawatts: np.ndarray  # AC
    latitude: np.ndarray  # degrees
    longitude: np.ndarray | None  # degrees; None if unknown
    tilt: np.ndarray  # degrees from the horizontal
    azimuth: np.ndarray  # degrees from north over east that the panels face
    elevation: np.ndarray  # m above sea level

    @property
    def pressure(self) -> np.ndarray:
        """Pressure of the standard atmosphere, Pa."""
        return np.asarray(101_325.0 * (1.0 - 2.25577e-5 * self.elevation) ** 5.25588)


def plants_of(places: Places, like: xr.Dataset, latitude: float | None = None) -> Plants:
    """The plants of a table of places on the grid `like`.

    Without a column, the tilt is the latitude (at most 60°), the panels face the equator, and the
    elevation is that of the grid (`surface_altitude`) or 0. Places in x and y take latitude and
    longitude from the grid; `latitude` replaces them where the grid has none.
    """
    megawatts = places.numbers.get("megawatts")
    if megawatts is None:
        raise PlumecastError(
            f"{places.source}: the column megawatts (or capacity_kw) is missing: the AC capacity"
        )
    if np.isnan(megawatts).any():
        row = int(np.argmax(np.isnan(megawatts)))
        raise PlumecastError(
            f"{places.where(row)}: megawatts is empty; give the AC capacity of the plant"
        )
    lat, lon = _latlon(places, like, latitude)
    ground = np.zeros(len(places))
    if ALTITUDE in like.variables:
        ground = places.at(like[ALTITUDE]).values.astype(float)
    usual = {
        "tilt": np.minimum(np.abs(lat), 60.0),
        "azimuth": np.where(lat >= 0.0, 180.0, 0.0),
        "elevation": ground,
    }
    for name, default in usual.items():
        values = places.numbers.get(name, default)
        usual[name] = np.where(np.isnan(values), default, values)
    return Plants(places.names, megawatts, lat, lon, **usual)


def _latlon(
    places: Places, like: xr.Dataset, latitude: float | None
) -> tuple[np.ndarray, np.ndarray | None]:
    lat, lon = places.numbers.get("lat"), places.numbers.get("lon")
    if lat is not None and lon is not None:
        return lat, lon
    if "lat" in like.coords and "lon" in like.coords:
        return places.at(like["lat"]).values.astype(float), places.at(like["lon"]).values
    crs = crs_of(like)
    if crs is not None:
        plane = as_crs(crs, places.source)
        pyproj = import_extra("pyproj", places.source)
        move = pyproj.Transformer.from_crs(plane, 4326, always_xy=True)
        lon, lat = move.transform(places.numbers["x"], places.numbers["y"])
        return np.asarray(lat), np.asarray(lon)
    if latitude is None:
        raise ArgumentError(
            "latitude",
            None,
            f"{places.source}: the grid has no latitudes, which the sun depends on; state that of "
            "the plants in degrees",
        )
    if not -90.0 <= latitude <= 90.0:
        raise ArgumentError("latitude", latitude, problem="must lie within -90 … 90 degrees")
    return np.full(len(places), float(latitude)), None


@dataclass(frozen=True, slots=True)
class Exposure:
    """How the sun meets panels: N pairs of a time and a plant."""

    zenith: np.ndarray  # degrees
    azimuth: np.ndarray  # degrees, of the sun
    tilt: np.ndarray
    facing: np.ndarray


def ac_power(
    seen: Exposure, beam: np.ndarray, diffuse: np.ndarray, *, extra: float, panels: Panels
) -> np.ndarray:
    """AC power per MW of capacity at N pairs of a time and a plant, (N, …) like the irradiance.

    Plane of array by Hay and Davies, cell temperature by Faiman, DC and AC power by PVWatts.
    """
    require("pvlib", "power", "solar power")
    from pvlib import inverter, irradiance, pvsystem, temperature

    shape = (-1,) + (1,) * (beam.ndim - 1)
    zenith, azimuth, tilt, facing = (
        item.reshape(shape) for item in (seen.zenith, seen.azimuth, seen.tilt, seen.facing)
    )
    above = np.cos(np.radians(zenith))
    facing_sun = np.maximum(irradiance.aoi_projection(tilt, facing, zenith, azimuth), 0.0)
    sky = irradiance.haydavies(
        tilt, facing, diffuse, beam, extra, projection_ratio=facing_sun / np.maximum(above, 0.01745)
    )
    ground = irradiance.get_ground_diffuse(tilt, beam * above + diffuse, albedo=panels.albedo)
    plane = beam * facing_sun + sky + ground
    cell = temperature.faiman(plane, panels.air_temperature, panels.wind_speed)
    modules = panels.dc_ac_ratio * (1.0 - panels.system_loss)
    dc = pvsystem.pvwatts_dc(plane, cell, modules, panels.temperature_coefficient)
    efficiency = panels.inverter_efficiency
    return np.asarray(inverter.pvwatts(dc, 1.0 / efficiency, eta_inv_nom=efficiency))


EXAMPLE = "2020-09-08T14:00-07:00"


@dataclass(frozen=True, slots=True)
class Ignition:
    """When the fires ignite: in UTC, or in the local solar time of every plant."""

    time: datetime  # without a time zone
    is_utc: bool

    @property
    def day(self) -> int:
        """Day of the year."""
        return self.time.timetuple().tm_yday


SAME_SUN = 10
"""Days within which fires share a distance to the sun: it changes the irradiance by < .6 %."""


def read_ignition_times(
    text: str | None, recorded: np.ndarray, local_hour: float | None = None
) -> list[tuple[Ignition, np.ndarray, np.ndarray]]:
    """Groups of snapshots: when the group ignites, its rows, and hours by which each is later.

    A stated time is that of all fires. Otherwise `recorded` (M,) has the time of every snapshot's
    fire, empty where it is unknown; fires within `SAME_SUN` days of each other are one group.
    """
    if text is not None or not (recorded != "").any():
        everything = np.arange(recorded.size)
        return [(read_ignition_time(text, local_hour), everything, np.zeros(recorded.size))]
    if (recorded == "").any():
        raise ArgumentError(
            "ignition_time",
            None,
            f"{int((recorded == '').sum())} of {recorded.size} snapshots record no time of "
            f"ignition, and others do; state one for all, such as {EXAMPLE}",
        )
    times = {text: read_ignition_time(text) for text in np.unique(recorded).tolist()}
    members: dict[tuple[bool, int, int], list[int]] = {}
    for row, text in enumerate(recorded.tolist()):
        time = times[text]
        key = time.is_utc, time.time.year, time.day // SAME_SUN
        members.setdefault(key, []).append(row)
    groups = []
    for _, rows in sorted(members.items()):
        fire_times = [times[recorded[row]] for row in rows]
        first = min(fire_times, key=lambda time: time.time)
        later = [(time.time - first.time) / timedelta(hours=1) for time in fire_times]
        groups.append((first, np.array(rows), np.array(later)))
    return groups


def read_ignition_time(text: str | None, local_hour: float | None = None) -> Ignition:
    """The time of ignition from ISO 8601 text.

    With an offset from UTC it is a time of the clock; without one, local solar time (the sun is
    highest at 12:00). A date alone takes the hour `local_hour` that the fires record.

    >>> read_ignition_time("2020-09-08T14:00-07:00").time.hour
    21
    """
    if text is None:
        raise ArgumentError(
            "ignition_time",
            None,
            f"the sun needs the time of ignition; state {EXAMPLE}, or without the offset in local "
            "solar time",
        )
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentError(
            "ignition_time", text, f"write it as {EXAMPLE}", problem="is not a date and time"
        ) from None
    if len(text.strip()) <= len("2020-09-08"):
        if local_hour is None:
            raise ArgumentError(
                "ignition_time",
                text,
                f"write it as {EXAMPLE}, or without the offset in local solar time",
                problem="has no hour, and the fires record none",
            )
        return Ignition(time + timedelta(hours=local_hour), is_utc=False)
    if time.tzinfo is None:
        return Ignition(time, is_utc=False)
    return Ignition(time.astimezone(UTC).replace(tzinfo=None), is_utc=True)


def sun_position(
    ignition: Ignition, hours: np.ndarray, latitude: np.ndarray, longitude: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Zenith angle and azimuth (from north over east) in degrees, (T, P), at hours since ignition.

    cos z = sin φ sin δ + cos φ cos δ cos ω, with the declination δ and the equation of time E of
    Spencer (1971), from pvlib, and the hour angle ω = 15° (t − 12) of the solar time
    t = UTC + λ / 15° + E. Refraction, below 0.1° for a sun higher than 10°, is left out. The
    azimuth is not pvlib's, which is south at noon also where the sun is in the north.
    """
    sun = require("pvlib.solarposition", "power", "solar power")
    midnight = datetime(ignition.time.year, ignition.time.month, ignition.time.day)
    clock = (ignition.time - midnight).total_seconds() / 3600.0 + hours
    day = ignition.day + clock / 24.0
    tilt = sun.declination_spencer71(day)[:, np.newaxis]
    solar = clock[:, np.newaxis] + np.zeros(latitude.size)
    if ignition.is_utc:
        if longitude is None:
            raise PlumecastError(
                f"the time of ignition, {ignition.time.isoformat(timespec='minutes')}Z, is in UTC "
                "and needs the longitude of the plants; give lat and lon in the table, or state "
                "ignition_time in local solar time, without an offset"
            )
        solar = solar + longitude / 15.0 + sun.equation_of_time_spencer71(day)[:, np.newaxis] / 60.0
    turn = np.radians(15.0 * (solar - 12.0))
    north = np.radians(latitude)
    up = np.sin(north) * np.sin(tilt) + np.cos(north) * np.cos(tilt) * np.cos(turn)
    east = -np.cos(tilt) * np.sin(turn)
    ahead = np.cos(north) * np.sin(tilt) - np.sin(north) * np.cos(tilt) * np.cos(turn)
    zenith = np.degrees(np.arccos(np.clip(up, -1.0, 1.0)))
    return zenith, np.degrees(np.arctan2(east, ahead)) % 360.0
