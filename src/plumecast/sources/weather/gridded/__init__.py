"""NetCDF extracts of reanalyses and weather models → soundings at one place."""

from plumecast.sources.weather.gridded.profiles import read_netcdf

__all__ = ["read_netcdf"]
