"""Weather of fires: tables, FARSITE streams and NetCDF extracts → hourly winds at fixed heights.

file → soundings at its own hours and heights → completed by the default profile → hourly, labelled.
"""

from plumecast.sources.weather.checks import check_covers, check_fires, check_weather, fires_of
from plumecast.sources.weather.constant import constant_weather
from plumecast.sources.weather.read import read_weather

__all__ = [
    "check_covers",
    "check_fires",
    "check_weather",
    "constant_weather",
    "fires_of",
    "read_weather",
]
