"""Write predicted fields: NetCDF, Zarr, GeoTIFFs, and hourly GeoTIFFs as BlueSky names them."""

from plumecast.workflows.export.bluesky import NAMES, export_bluesky, read_clock, recorded_time
from plumecast.workflows.export.fields import (
    FOOTPRINT,
    FORMATS,
    Exported,
    described,
    export_fields,
    field_grid,
    footprint_of,
    refuse_existing_geotiffs,
    write_geotiff,
)

__all__ = [
    "FOOTPRINT",
    "FORMATS",
    "NAMES",
    "Exported",
    "described",
    "export_bluesky",
    "export_fields",
    "field_grid",
    "footprint_of",
    "read_clock",
    "recorded_time",
    "refuse_existing_geotiffs",
    "write_geotiff",
]
