"""Wind and weather of fires: read, units, true and grid north, profiles, and the mean wind.

A weather is a Dataset of hourly (u, v) at fixed heights and boundary-layer depths, for one fire or
for several; a wind is a weather without hours. Files → soundings at their own hours and heights →
completed by the default profile → hourly → given to snapshots (`with_weather`).
"""

from plumecast.weather.options import DefaultProfile, Site
from plumecast.weather.read import constant_weather, read_weather
from plumecast.weather.snapshots import with_weather

__all__ = ["DefaultProfile", "Site", "constant_weather", "read_weather", "with_weather"]
