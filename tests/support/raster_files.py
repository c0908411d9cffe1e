"""Small arrival-time rasters of one fire, in every format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from plumecast.sources.rasters import RasterOptions, read_arrival_times

SIZE, NX, NY, LEFT, BOTTOM = 30.0, 20, 12, 1000.0, 5000.0
COARSE = xr.Dataset(coords={"x": 900.0 + 130 * np.arange(8), "y": 4900.0 + 110 * np.arange(7)})
NAN = np.nan


def fire(minutes_per_cell: float = 10.0) -> np.ndarray:
    """Arrival times in minutes, north row first: an L, long arm east, short arm north."""
    arrival = np.full((NY, NX), NAN)
    arrival[8, 3:15] = minutes_per_cell * np.arange(12)
    arrival[5:8, 3] = minutes_per_cell * np.array([3, 2, 1])
    return arrival


def write_ascii(path: Path, arrival: np.ndarray, *, centre: bool = False, **header: object) -> Path:
    kind, shift = ("CENTER", SIZE / 2) if centre else ("CORNER", 0.0)
    lines = {"NCOLS": NX, "NROWS": NY, f"XLL{kind}": LEFT + shift, f"YLL{kind}": BOTTOM + shift,
             "CELLSIZE": SIZE, "NODATA_VALUE": -9999.0, **header}  # fmt: skip
    text = [f"{key} {value}" for key, value in lines.items() if value is not None]
    text += [" ".join(f"{v:g}" for v in row) for row in np.where(np.isnan(arrival), -9999, arrival)]
    path.write_text("\n".join(text) + "\n")
    return path


def write_tiff(path: Path, bands: np.ndarray, *, crs: str | None = None, **profile: object) -> Path:
    rasterio = pytest.importorskip("rasterio")
    bands = np.atleast_3d(bands.T).T.astype(np.float32)
    transform = rasterio.Affine(SIZE, 0, LEFT, 0, -SIZE, BOTTOM + NY * SIZE)
    options = {"transform": transform, "nodata": -9999.0, "crs": crs, **profile}
    with rasterio.open(path, "w", driver="GTiff", height=bands.shape[1], width=bands.shape[2],
                       count=bands.shape[0], dtype="float32", **options) as file:  # fmt: skip
        file.write(np.where(np.isnan(bands), -9999.0, bands))
    return path


def dataset(arrival: np.ndarray, **attrs: str) -> xr.Dataset:
    """The arrival times as a Dataset, south row first, as in most NetCDF files."""
    x = LEFT + (np.arange(NX) + 0.5) * SIZE
    y = BOTTOM + (np.arange(NY) + 0.5) * SIZE
    field = xr.DataArray(arrival[::-1], {"y": y, "x": x}, ("y", "x"), attrs=attrs)
    return xr.Dataset({"arrival": field})


def read(path: Path | str | list[Path | str], **options: object) -> xr.Dataset:
    """The fires of rasters in minutes, unless another unit or format is given."""
    options = options if "format" in options else {"unit": "min", **options}
    return read_arrival_times(path, RasterOptions(**options))


def integral(ds: xr.Dataset, cell: float) -> np.ndarray:
    return ds.time_since_ignition.astype(float).sum(("y", "x")).values * cell


def write_landscape(
    folder: Path,
    shape: tuple[int, int],
    cell: float,
    corner: tuple[float, float] = (0.0, 0.0),
) -> dict[str, Path]:
    """GeoTIFFs of a hill and of its timber fuels, with cells of `cell` metres.

    `corner` is x and y of the south-west corner in EPSG:5070.
    """
    rasterio = pytest.importorskip("rasterio")
    y, x = np.indices(shape) / max(shape)
    hill = 1000.0 + 500.0 * np.exp(-8.0 * ((x - 0.5) ** 2 + (y - 0.5) ** 2))
    bands = {"dem": hill.astype(np.float32), "fuels": np.full(shape, 185, dtype=np.int16)}
    paths = {name: folder / f"{name}.tif" for name in bands}
    size = {"height": shape[0], "width": shape[1], "count": 1}
    place = {
        "crs": "EPSG:5070",
        "transform": rasterio.Affine(cell, 0, corner[0], 0, -cell, corner[1] + shape[0] * cell),
    }
    for name, band in bands.items():
        options = {"driver": "GTiff", "dtype": band.dtype, **size, **place}
        with rasterio.open(paths[name], "w", **options) as file:
            file.write(band, 1)
    return paths
