"""Sources of snapshots: WRF files and rasters; all return the same Dataset."""
