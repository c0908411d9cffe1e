"""Words everyone shares: errors, names and units, constants, paths, version."""
