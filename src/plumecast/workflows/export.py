"""Write predicted fields and statistics as CF NetCDF, as Zarr, or as Cloud-Optimised GeoTIFFs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import INTERVAL, recorded_interval, smoke_comment
from plumecast.base.errors import PlumecastError
from plumecast.base.files import (
    atomic_write,
    publish,
    published_together,
    refuse_existing,
    temporary_folder,
)
from plumecast.base.integrity import field_checksums
from plumecast.base.names import LEVEL, LOWEST, SNAPSHOT, SURFACE_SMOKE, TABLE, is_smoke
from plumecast.base.version import __version__
from plumecast.compute.arrays import Array
from plumecast.compute.regrid import Grid, grid_from_centres
from plumecast.data.crs import as_crs, grid_mapping, import_extra, is_mapping
from plumecast.data.writers import (
    netcdf_encoding,
    netcdf_errors,
    quiet_zarr,
    write_blocks,
    zarr_encoding,
)
from plumecast.sources.rasters.files import open_geotiff
from plumecast.surrogate.guards import EXTRAPOLATES, flag_meanings
from plumecast.workflows.statistics.estimates import INTERVAL_PARTS, SURROGATE_PART, TRUTH_PARTS

FORMATS = (".nc", ".zarr", ".tif")
FOOTPRINT = "footprint"
HISTORY = f"plumecast {__version__} predict"

_NO_FLAG = -1
"""Value of cells without data in a GeoTIFF of flags."""

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


class Exported(NamedTuple):
    """The path that was written, and what it holds."""

    where: Path  # for several files, the pattern of their names
    snapshots: int
    has_crs: bool


def export_fields(
    blocks: Iterable[xr.Dataset],
    path: str | Path,
    *,
    title: str,
    history: str = HISTORY,
) -> Exported:
    """Write blocks of predicted fields in the format that the ending of `path` names.

    `.nc` and `.zarr` hold all fields and follow the CF conventions; `.tif` writes one file per
    snapshot and variable. `history` tells how the fields were made. Only one block is in memory at
    a time. Existing files are never overwritten. Without blocks, nothing is written.
    """
    where = refuse_existing(Path(path))
    if where.suffix not in FORMATS:
        raise PlumecastError(
            f"{where}: unknown file ending '{where.suffix}'; use .nc, .zarr or .tif"
        )
    remaining = iter(blocks)
    first = next(remaining, None)
    if first is None:
        return Exported(where, 0, has_crs=False)
    count = 0

    def counted() -> Iterator[xr.Dataset]:
        nonlocal count
        for block in chain([first], remaining):
            count += block.sizes[SNAPSHOT]
            yield block

    if where.suffix == ".tif":
        where = _write_geotiffs(counted(), where, history)
    else:
        write_blocks((_described(block, title, history) for block in counted()), where)
    return Exported(where, count, has_crs=grid_mapping(first) is not None)


def footprint_of(score: xr.DataArray, threshold: float) -> xr.DataArray:
    """1 where a field is above the decision threshold, 0 elsewhere."""
    flags: xr.DataArray = (score > threshold).astype(np.int8)
    return flags.drop_attrs().assign_attrs(
        long_name="smoke is present",
        units="1",
        flag_values=np.array([0, 1], dtype=np.int8),
        flag_meanings="absent present",
        decision_threshold=threshold,
    )


def _described(fields: xr.Dataset, title: str, history: str) -> xr.Dataset:
    """The same fields with the attributes that CF requires: long names, a title and a history.

    The grid mapping becomes a data variable, because it is not a coordinate of the fields.
    """
    changed = fields.reset_coords([name for name in fields.coords if is_mapping(fields[name])])
    for name in map(str, changed.variables):
        described = TABLE[name].attrs if name in TABLE else {}
        changed[name].attrs = {**described, **changed[name].attrs}
        if is_smoke(name, changed[name].attrs):
            changed[name].attrs.setdefault("comment", _smoke_comment(changed[name]))
        if not {"long_name", "standard_name"} & set(changed[name].attrs) and name != SNAPSHOT:
            changed[name].attrs["long_name"] = name.replace("_", " ")
    return changed.assign_attrs(Conventions="CF-1.11", title=title, history=history)


def _smoke_comment(field: xr.DataArray) -> str:
    lowest = field.attrs.get(LEVEL) == LOWEST or field.name == SURFACE_SMOKE
    return smoke_comment(recorded_interval(field.attrs), lowest=lowest)


def _write_geotiffs(blocks: Iterable[xr.Dataset], where: Path, history: str) -> Path:
    """Write all files to a temporary folder, then rename them; return the pattern of their names.

    A single file is named `where`; several names add the fire, its hours and the variable. Raises
    as soon as one of several exists.
    """
    with temporary_folder(where) as folder:
        files: list[Path] = []
        for block in blocks:
            for path in _write_block(block, folder, where.stem, history):
                files.append(path)
                for file in files if len(files) == 2 else files[-1:] if len(files) > 2 else ():
                    refuse_existing(where.with_name(file.name))
        finals = [where] if len(files) == 1 else [where.with_name(path.name) for path in files]
        with published_together():
            for path, final in zip(files, finals, strict=True):
                publish(path, final, overwrite=False)
    return where if len(files) == 1 else where.with_name(f"{where.stem}_*.tif")


def refuse_existing_geotiffs(
    path: Path, labels: Sequence[tuple[str, float]], variables: Sequence[str]
) -> None:
    """Raise if a GeoTIFF of these (fire, hours) exists, to find it before the work."""
    if len(labels) * len(variables) > 1:
        for fire, hours in labels:
            for number, variable in enumerate(variables):
                name = _file_name(path.stem, _label(fire, hours), number, variable)
                refuse_existing(path.with_name(name))


def _file_name(stem: str, label: str, number: int, variable: str) -> str:
    """Only the first variable is not named."""
    return f"{stem}_{label}{f'_{variable}' if number else ''}.tif"


def _write_block(block: xr.Dataset, folder: Path, stem: str, history: str) -> Iterator[Path]:
    """Write every snapshot of every field to a file of its own in `folder`."""
    grid, wkt = field_grid(block), _wkt(block, stem)
    for row in range(block.sizes[SNAPSHOT]):
        snapshot = block.isel({SNAPSHOT: row})
        label, more = str(row), {"history": history}
        if "fire_id" in snapshot.variables:
            hours = float(snapshot.hours) if "hours" in snapshot.variables else None
            label = _label(str(snapshot.fire_id.values[()]), hours)
        for coordinate in ("fire_id", "hours", "drought"):
            if coordinate in snapshot.variables:
                more[coordinate] = str(snapshot[coordinate].values[()])
        if EXTRAPOLATES in snapshot.variables:
            more[EXTRAPOLATES] = flag_meanings(int(snapshot[EXTRAPOLATES]))
        for number, (name, field) in enumerate(snapshot.data_vars.items()):
            path = folder / _file_name(stem, label, number, str(name))
            if path.exists():
                raise PlumecastError(
                    f"two snapshots would be named {path.name}; rename one of their fires"
                )
            of_field = dict(more)
            if is_smoke(str(name), field.attrs) and "comment" not in field.attrs:
                of_field["comment"] = _smoke_comment(field)
            tags = _tags(field, ("long_name", "units", "comment", INTERVAL), of_field)
            write_geotiff(path, field.values, grid, wkt=wkt, tags=tags)
            yield path


def write_geotiff(
    path: Path, values: Array, grid: Grid, *, wkt: str | None, tags: dict[str, str]
) -> None:
    """Write a Cloud-Optimised GeoTIFF, the northernmost row first, as GIS programs expect.

    GDAL may not report a full disk: it makes the file in memory, and Python writes it, which
    raises. The values are then read back and compared.
    """
    rasterio = import_extra("rasterio", path)
    top = grid.bottom + grid.ny * grid.dy
    options = {
        "driver": "COG",
        "height": grid.ny,
        "width": grid.nx,
        "count": 1,
        "dtype": values.dtype.name,
        "crs": wkt,
        "transform": rasterio.Affine(grid.dx, 0.0, grid.left, 0.0, -grid.dy, top),
        "compress": "DEFLATE",
        "nodata": np.nan if values.dtype.kind == "f" else _NO_FLAG,
    }
    raster = np.ascontiguousarray(values[::-1])
    with rasterio.MemoryFile() as memory:
        with memory.open(**options) as file:
            file.write(raster, 1)
            file.update_tags(**tags)
            file.set_band_description(1, tags["long_name"])
            file.set_band_unit(1, tags.get("units", ""))
        path.write_bytes(memory.getbuffer())
    with open_geotiff(path) as file:
        written = file.read(1)
    if not np.array_equal(field_checksums(written), field_checksums(raster)):
        raise PlumecastError(
            f"{path.name} does not read back as it was written; check the disk, or choose another "
            "output path"
        )


def field_grid(block: xr.Dataset) -> Grid:
    """The grid of fields with the coordinates x and y."""
    if "x" not in block.coords or "y" not in block.coords:
        raise PlumecastError("a GeoTIFF needs the coordinates x and y; write .nc or .zarr")
    return grid_from_centres(block.x.values, block.y.values, "the surrogate's grid")


def _wkt(fields: xr.Dataset, name: str) -> str | None:
    """The coordinate system of fields as text; None if they have none."""
    mapping = grid_mapping(fields)
    return None if mapping is None else as_crs(mapping, name).to_wkt()


def _tags(field: xr.DataArray, names: Sequence[str], more: Mapping[str, str]) -> dict[str, str]:
    """The attributes of a field that a GeoTIFF keeps, with its name if nothing describes it."""
    kept = {name: str(field.attrs[name]) for name in names if name in field.attrs}
    return {"long_name": str(field.name), **kept, **more, "software": f"plumecast {__version__}"}


def _label(fire: str, hours: float | None) -> str:
    """Part of a file name that identifies the snapshot, such as "fire-7_012h".

    The hours are padded so that the names sort by them.
    """
    name = re.sub(r"[^\w.-]+", "-", fire)
    if hours is None:
        return name
    whole, point, rest = f"{hours:.6g}".partition(".")
    return f"{name}_{whole.zfill(3)}{point}{rest}h"


def export_statistics(statistics: xr.Dataset, path: str | Path) -> Path:
    """Write statistics in the format that the ending of `path` names; never overwrites.

    `.tif` writes a file for each statistic, threshold and quantile, such as
    `stats_exceedance_35.tif` for `stats.tif`. Returns the path, or the pattern of the names.
    """
    where = Path(path)
    if where.suffix == ".tif":
        return _write_statistics(statistics, where)
    plain = statistics.reset_coords([n for n in statistics.coords if is_mapping(statistics[n])])
    with atomic_write(where, overwrite=False) as partial:
        if where.suffix == ".nc":
            write_netcdf(plain, partial, where)
        else:
            encoding = zarr_encoding(plain)
            with quiet_zarr():
                plain.to_zarr(
                    partial, mode="w", consolidated=False, zarr_format=3, encoding=encoding
                )
    return where


def write_netcdf(data: xr.Dataset, partial: Path, where: Path) -> None:
    """Write a Dataset to a temporary file; errors name the file that it becomes."""
    with netcdf_errors(where):
        data.to_netcdf(partial, engine="netcdf4", encoding=netcdf_encoding(data))


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


def _write_statistics(statistics: xr.Dataset, where: Path) -> Path:
    grid, wkt = field_grid(statistics), _wkt(statistics, where.stem)
    of_all = {name: str(statistics.attrs[name]) for name in STATED if name in statistics.attrs}
    with temporary_folder(where) as folder:
        finals = []
        for name, item in statistics.data_vars.items():
            if not {"y", "x"} <= set(item.dims):
                continue
            axis = next((axis for axis in AXES if axis in item.dims), None)
            for part in [item] if axis is None else item.transpose(axis, ...):
                value = {} if axis is None else {axis: float(part[axis])}
                final = refuse_existing(_named(where, str(name), *value.values()))
                more = {axis: f"{number:g}" for axis, number in value.items()} | of_all
                tags = _tags(item, TAGS, more)
                raster = part.transpose("y", "x").values.astype("float32")
                write_geotiff(folder / final.name, raster, grid, wkt=wkt, tags=tags)
                finals.append(final)
        with published_together():
            for final in finals:
                publish(folder / final.name, final, overwrite=False)
    return where.with_name(f"{where.stem}_*.tif")
