"""Write the statistics of an ensemble as NetCDF, as Zarr, or as one GeoTIFF for each field."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import xarray as xr

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.files import atomic_write, publish, refuse_existing, temporary_folder
from plumecast.base.version import __version__
from plumecast.data.crs import as_crs, grid_mapping, is_mapping
from plumecast.data.writers import netcdf_encoding, netcdf_errors, quiet_zarr, zarr_encoding
from plumecast.workflows.export import field_grid, write_geotiff
from plumecast.workflows.statistics.labels import INTERVAL_PARTS, SURROGATE_PART, TRUTH_PARTS

AXES = ("threshold", "quantile")
"""Dimensions of statistics beside those of the grid."""

STATED = (
    "fires",
    "snapshots",
    "ignitions",
    "true_ignitions",
    "training_ignitions_left_out",
    "calibration_ignitions",
    "quantity",
    "coverage",
    "intervals_contain",
)
"""Attributes of the statistics that every GeoTIFF has as tags."""

TAGS = ("long_name", "units", "comment", INTERVAL, "relative_error")


def export_statistics(statistics: xr.Dataset, path: str | Path) -> Path:
    """Write statistics in the format that the ending of `path` names; never overwrites.

    `.tif` writes a file for each statistic, threshold and quantile, such as
    `stats_exceedance_35.tif` for `stats.tif`. Returns the path, or the pattern of the names.
    """
    where = Path(path)
    if where.suffix == ".tif":
        return _write_geotiffs(statistics, where)
    mappings = [name for name in statistics.coords if is_mapping(statistics[name])]
    with atomic_write(where, overwrite=False) as partial:
        plain = statistics.reset_coords(mappings)
        if where.suffix == ".nc":
            with netcdf_errors(where):
                plain.to_netcdf(partial, engine="netcdf4", encoding=netcdf_encoding(plain))
        else:
            with quiet_zarr():
                encoding = zarr_encoding(plain)
                plain.to_zarr(
                    partial, mode="w", consolidated=False, zarr_format=3, encoding=encoding
                )
    return where


def geotiff_names(
    path: Path,
    thresholds: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    *,
    truth: bool = False,
) -> Iterator[Path]:
    """The GeoTIFFs that `export_statistics` may write, to check them before the work."""
    further = TRUTH_PARTS if truth else (SURROGATE_PART,)
    parts = ("", "_error", *(f"_{part}" for part in (*INTERVAL_PARTS, *further)))
    for name in ("mean_smoke", "mean_log_smoke"):
        yield from (_named(path, name + part) for part in parts)
    for value in thresholds:
        yield from (_named(path, f"exceedance{part}", value) for part in parts)
    yield from (_named(path, "smoke_quantile", value) for value in quantiles)


def _named(path: Path, statistic: str, *values: float) -> Path:
    return path.with_name("_".join([path.stem, statistic, *(f"{v:.10g}" for v in values)]) + ".tif")


def _write_geotiffs(statistics: xr.Dataset, where: Path) -> Path:
    grid, mapping = field_grid(statistics), grid_mapping(statistics)
    wkt = None if mapping is None else as_crs(mapping, where.stem).to_wkt()
    with temporary_folder(where) as folder:
        finals = []
        for field in _fields(statistics):
            values = [float(field[axis]) for axis in AXES if axis in field.coords]
            final = refuse_existing(_named(where, str(field.name), *values))
            tags = {name: str(field.attrs[name]) for name in TAGS if name in field.attrs}
            tags |= {axis: f"{float(field[axis]):g}" for axis in AXES if axis in field.coords}
            tags |= {
                name: str(statistics.attrs[name]) for name in STATED if name in statistics.attrs
            }
            tags["software"] = f"plumecast {__version__}"
            raster = field.values.astype("float32")
            write_geotiff(folder / final.name, raster, grid, wkt=wkt, tags=tags)
            finals.append(final)
        for final in finals:
            publish(folder / final.name, final, overwrite=False)
    return where.with_name(f"{where.stem}_*.tif")


def _fields(statistics: xr.Dataset) -> Iterator[xr.DataArray]:
    """Every field (y, x) of the statistics."""
    for name, item in statistics.data_vars.items():
        if not {"y", "x"} <= set(item.dims):
            continue
        lead = next((axis for axis in AXES if axis in item.dims), None)
        parts = [item] if lead is None else [item.isel({lead: i}) for i in range(item.sizes[lead])]
        for part in parts:
            kept = part.drop_vars([axis for axis in AXES if axis in part.coords and axis != lead])
            yield kept.transpose("y", "x").rename(name)
