"""Inputs of WRF-Fire for chosen fires: namelists, sounding, terrain and fuels of an ideal run."""

from plumecast.sources.wrf_inputs.write import check_wrf_inputs, write_wrf_inputs

__all__ = ["check_wrf_inputs", "write_wrf_inputs"]
