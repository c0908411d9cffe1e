"""A landscape's projection goes from its rasters to the store, the surrogate and the maps."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import xarray as xr

import plumecast as pc
from plumecast.cli import main
from plumecast.data.store import append_fire
from support.raster_files import write_landscape

SHAPE, CELL = (65, 83), 600.0  # what does not fill a smoke cell of ten is cut off
LEFT, BOTTOM = -1_200_000.0, 1_900_000.0  # in Utah, EPSG:5070
FEW = ("--droughts", "high", "--checkpoints", "1")
HOURS = 6


def call(*words: object) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert stopped.value.code == 0


class Trained(NamedTuple):
    ground: dict[str, Path]
    store: Path
    model: Path


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Trained:
    """A surrogate of fires on a hill in Utah."""
    pytest.importorskip("pyproj")
    folder = tmp_path_factory.mktemp("utah")
    ground = write_landscape(folder, SHAPE, CELL, (LEFT, BOTTOM))
    made = Trained(ground, folder / "own.zarr", folder / "own.plume")
    call("simulate", "--ignitions", 6, *FEW, *rasters_of(ground), "-o", made.store)
    call("train", made.store, "--preset", "paper-linear", "--all", "-o", made.model)
    return made


def rasters_of(ground: dict[str, Path]) -> tuple[object, ...]:
    return ("--dem", ground["dem"], "--fuels", ground["fuels"])


def write_fire(path: Path, dem: Path, crs: str | None = "dem", shift: float = 0.0) -> Path:
    """Arrival times in minutes on the DEM's own cells: a disc around its centre, 5 h to its rim."""
    rasterio = pytest.importorskip("rasterio")
    with rasterio.open(dem) as file:
        shape, at = file.shape, file.transform
        crs = file.crs if crs == "dem" else crs
    row, column = np.indices(shape)
    away = np.hypot(row - shape[0] / 2, column - shape[1] / 2) / (0.2 * min(shape))
    arrival = np.where(away < 1, 300.0 * away, -9999.0).astype(np.float32)
    at = rasterio.Affine(at.a, 0, at.c + shift, 0, at.e, at.f)
    driver = "AAIGrid" if path.suffix == ".asc" else "GTiff"
    memory = {"height": shape[0], "width": shape[1], "count": 1, "dtype": "float32"}
    options = memory | {"driver": driver, "nodata": -9999.0, "crs": crs, "transform": at}
    with rasterio.open(path, "w", **options) as file:
        file.write(arrival, 1)
    return path


def assert_on_the_dem(path: Path, dem: Path) -> None:
    """Each cell of a map is 10 by 10 cells of the DEM, from its south-west corner."""
    rasterio = pytest.importorskip("rasterio")
    with rasterio.open(path) as file, rasterio.open(dem) as ground:
        assert file.crs == ground.crs
        rows, columns = (size // 10 for size in ground.shape)
        assert file.shape == (rows, columns)
        assert (file.bounds.left, file.bounds.bottom) == (ground.bounds.left, ground.bounds.bottom)
        at, own = file.transform, ground.transform
        assert (at.a, at.b, at.d, at.e) == (10 * own.a, 0, 0, 10 * own.e)


def smoke_at_the_centre(path: Path) -> float:
    """Largest smoke in the four by four cells around the middle of a map, where the fire is."""
    rasterio = pytest.importorskip("rasterio")
    with rasterio.open(path) as file:
        row, column = file.height // 2, file.width // 2
        return float(file.read(1)[row - 2 : row + 2, column - 2 : column + 2].max())


def test_store_has_the_projected_coordinates_of_its_rasters(trained):
    pyproj = pytest.importorskip("pyproj")
    stored = pc.open_snapshots(trained.store)
    np.testing.assert_array_equal(stored.x, LEFT + 10 * CELL * (np.arange(8) + 0.5))
    np.testing.assert_array_equal(stored.y, BOTTOM + 10 * CELL * (np.arange(6) + 0.5))
    assert stored.smoke.attrs["grid_mapping"] == "crs"
    crs = pyproj.CRS.from_cf(dict(stored.crs.attrs))
    assert crs == pyproj.CRS("EPSG:5070")
    move = pyproj.Transformer.from_crs("EPSG:4269", crs, always_xy=True).transform
    x, y = move(stored.lon.values, stored.lat.values)
    np.testing.assert_allclose(x, np.broadcast_to(stored.x, x.shape), atol=0.02)  # 2 cm
    np.testing.assert_allclose(y, np.broadcast_to(stored.y.values[:, None], y.shape), atol=0.02)
    grid = pc.load_surrogate(trained.model).grid
    assert grid.crs.attrs["grid_mapping_name"] == "albers_conical_equal_area"
    for name in ("x", "y", "lat", "lon"):
        xr.testing.assert_equal(grid[name].variable, stored[name].load().variable)


def without_warnings(said: str) -> str:
    """What was said but for warnings: the fires here are larger than those of training."""
    lines = said.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("warning:"))


def test_fire_in_the_crs_of_the_dem_is_predicted_in_its_place(trained, run, tmp_path):
    fire = write_fire(tmp_path / "fire.tif", trained.ground["dem"])
    out = tmp_path / "smoke.tif"
    words = ("--format", "farsite", "--hours", HOURS, "--drought", "high")
    result = run("predict", trained.model, fire, *words, "-o", out)
    assert (result.code, without_warnings(result.err)) == (0, "")
    assert_on_the_dem(out, trained.ground["dem"])
    assert smoke_at_the_centre(out) > 0
    store = tmp_path / "fires.zarr"
    result = run("ingest", "rasters", fire, *words, "--like", trained.model, "-o", store)
    assert (result.code, result.err) == (0, "")
    field = pc.open_snapshots(store, fields=("time_since_ignition",)).time_since_ignition[0]
    for axis, middle in (("x", LEFT + SHAPE[1] * CELL / 2), ("y", BOTTOM + SHAPE[0] * CELL / 2)):
        centre = float((field * field[axis]).sum() / field.sum())
        assert centre == pytest.approx(middle, abs=CELL)


def test_fire_without_crs_is_placed_and_said(trained, run, tmp_path):
    placed = write_fire(tmp_path / "placed.tif", trained.ground["dem"])
    bare = [write_fire(tmp_path / f"bare{n}.asc", trained.ground["dem"], crs=None) for n in (0, 1)]
    words = ("--format", "farsite", "--hours", HOURS, "--drought", "high")

    def predict(out: str, *more: object) -> tuple[str, xr.Dataset]:
        result = run("predict", trained.model, *more, *words, "-o", tmp_path / out)
        assert result.code == 0, result.err
        return without_warnings(result.err), xr.load_dataset(tmp_path / out)

    said, expected = predict("placed.nc", placed)
    assert said == ""
    assert expected.smoke.attrs["grid_mapping"] == "crs"
    assert expected.crs.attrs["projected_crs_name"] == "NAD83 / Conus Albers"
    said, assumed = predict("assumed.nc", *bare)
    assert said.startswith(f"note: no CRS in {bare[0]}: assumed that of the target grid, NAD83")
    said, stated = predict("stated.nc", *bare, "--crs", "EPSG:5070")
    assert said == ""
    for found in (assumed, stated):
        for row in (0, 1):
            np.testing.assert_array_equal(found.smoke[row], expected.smoke[0])
    result = run("ensemble", trained.model, *bare, *words, "-o", tmp_path / "stats.nc")
    assert result.code == 0
    assert result.err.count(f"note: no CRS in {bare[0]}") == result.err.count("no CRS") == 1
    assert xr.load_dataset(tmp_path / "stats.nc").mean_log_smoke.attrs["grid_mapping"] == "crs"


def test_fire_without_crs_off_the_grid_is_refused_with_both_extents(trained, run, tmp_path):
    away = write_fire(tmp_path / "away.asc", trained.ground["dem"], crs=None, shift=1e6)
    words = ("--format", "farsite", "--hours", HOURS, "-o", tmp_path / "smoke.nc")
    result = run("predict", trained.model, away, *words)
    assert result.code == 2
    assert "100.0% of the burned area is outside the target grid: the fire" in result.err
    assert f"the grid at x {LEFT:.7g} … {LEFT + 80 * CELL:.7g}, y {BOTTOM:.7g} …" in result.err
    assert result.err.endswith("; give the CRS of the file, EPSG:…\n")
    assert not (tmp_path / "smoke.nc").exists()


def test_store_without_projection_is_continued_in_its_own_coordinates(trained, run, tmp_path):
    """As an earlier version wrote it: without a CRS, x and y from the corner."""
    path = tmp_path / "before.zarr"
    new = pc.open_snapshots(trained.store).load().drop_vars(["lat", "lon", "crs"])
    for name in ("time_since_ignition", "smoke"):
        del new[name].attrs["grid_mapping"]
    shifted = {"x": new.x - LEFT, "y": new.y - BOTTOM}
    old = new.assign_coords({n: (n, v.values, new[n].attrs) for n, v in shifted.items()})
    append_fire(path, old)
    result = run("simulate", "--ignitions", 7, *FEW, *rasters_of(trained.ground), "-o", path)
    assert result.code == 0
    assert f"note: {path} was begun without a coordinate system" in result.err
    longer = pc.open_snapshots(path)
    assert longer.sizes["snapshot"] == 7
    assert "crs" not in longer.variables
    np.testing.assert_array_equal(longer.x, 10 * CELL * (np.arange(8) + 0.5))


def test_rasters_of_another_place_are_refused(trained, refused, tmp_path):
    other = write_landscape(tmp_path, SHAPE, CELL, (LEFT + 6000.0, BOTTOM))
    words = ("ensemble", trained.model, "--simulate", 2, "-o", tmp_path / "a.nc")
    assert refused(*words, *rasters_of(other)) == (
        "the rasters begin at x -1194000, y 1900000, but the surrogate's grid at x -1200000, "
        "y 1900000; give the rasters of its training fires"
    )
