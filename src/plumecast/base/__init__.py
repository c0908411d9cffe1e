"""What every other room uses: errors, names and units, constants, paths, files, version."""
