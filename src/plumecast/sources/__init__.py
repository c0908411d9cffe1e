"""Sources of snapshots: WRF files, rasters, and a simulator; all return the same Dataset."""
