"""Small wrfout files with WRF's structure: a circular fire on a padded fire grid, five levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import netCDF4
import numpy as np
import xarray as xr

from plumecast.base.names import CP_DRY, P0, R_DRY
from plumecast.sources.wrf import WrfOptions, read_wrf

NY, NX, REFINE, CELL = 6, 8, 4, 1000.0
HEIGHTS = np.array([0.0, 100.0, 300.0, 700.0, 1500.0])  # m, layer faces
NZ = HEIGHTS.size - 1
START = "2020-08-01_12:00:00"
STEP = 20.0  # s, WRF's time step
HOURS = range(7)
FILE = "wrfout_d01_2020-08-01_12_00_00"

Fields = dict[str, np.ndarray]


@dataclass(frozen=True)
class Circle:
    """A fire that grows at a constant speed from one point."""

    x: float = 3100.0
    y: float = 2100.0
    speed: float = 0.2  # m/s
    ignition: float = 600.0  # s

    def distance(self) -> np.ndarray:
        size = CELL / REFINE
        x = (np.arange(NX * REFINE) + 0.5) * size - self.x
        y = (np.arange(NY * REFINE) + 0.5) * size - self.y
        return np.hypot(y[:, None], x)

    def arrival(self) -> np.ndarray:
        return self.ignition + self.distance() / self.speed

    def level(self, seconds: float) -> np.ndarray:
        """Distance to the front, negative inside."""
        if seconds < self.ignition:
            return self.distance() + 1e4
        return self.distance() - self.speed * (seconds - self.ignition)


def plume(seconds: float) -> np.ndarray:
    """Mixing ratio (NZ, NY, NX) in g/kg: smoke in the two lowest layers, increasing with time."""
    field = np.zeros((NZ, NY, NX))
    field[:2, 2:4, 3:5] = 1e-3 * seconds / 3600.0
    return field


def pad(field: np.ndarray) -> np.ndarray:
    """Add the padding of WRF: one more coarse cell in each direction, with zeros."""
    return np.pad(field, ((0, REFINE), (0, REFINE)))


def air() -> Fields:
    """Pressure, potential temperature and geopotential of an atmosphere at rest."""
    middle = 0.5 * (HEIGHTS[1:] + HEIGHTS[:-1])
    ones = np.ones((1, NY, NX))
    return {
        "P": 20.0 * np.ones((NZ, NY, NX)),
        "PB": 1e5 * np.exp(-middle / 8000.0)[:, None, None] * ones,
        "T": (4.0 + 0.004 * middle)[:, None, None] * ones,
        "PH": 9.81 * 0.01 * HEIGHTS[:, None, None] * ones,
        "PHB": 9.81 * HEIGHTS[:, None, None] * ones,
    }


def frame(seconds: float, fire: Circle, smoke: np.ndarray, name: str) -> Fields:
    """One frame as WRF stores it."""
    level = fire.level(seconds)
    arrival = np.where(level < 0, fire.arrival(), seconds + STEP)
    return {"LFN": pad(level), "TIGN_G": pad(arrival), name: smoke, **air()}


ATTRIBUTES: dict[str, object] = {
    "TITLE": " OUTPUT FROM WRF V4.3.3 MODEL",
    "START_DATE": START,
    "SIMULATION_START_DATE": START,
    "DX": np.float32(CELL),
    "DY": np.float32(CELL),
    "MAP_PROJ": np.int32(0),
    "GRID_ID": np.int32(1),
}

_DIMS = {
    2: ("south_north", "west_east"),
    3: ("bottom_top", "south_north", "west_east"),
}


def write_wrfout(
    path: Path,
    seconds: Sequence[float],
    *,
    fire: Circle | None = None,
    smoke: Callable[[float], np.ndarray] = plume,
    smoke_name: str = "fire_smoke",
    smoke_units: str = "g_smoke/kg_air",
    drop: Sequence[str] = (),
    attributes: Mapping[str, object] | None = None,
    places: tuple[np.ndarray, np.ndarray] | None = None,
    edit: Callable[[Fields, float], None] | None = None,
    fire_grid: bool = True,
    format: str = "NETCDF4",
) -> Path:
    """Write the frames at `seconds` after START.

    `edit` changes the fields of a frame in place; `places` are the latitudes and longitudes of a
    real domain.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {**ATTRIBUTES, **(attributes or {})}
    with netCDF4.Dataset(path, "w", format=format) as file:
        sizes = {"Time": None, "DateStrLen": 19, "west_east": NX, "south_north": NY,
                 "bottom_top": NZ, "bottom_top_stag": NZ + 1, "west_east_stag": NX + 1,
                 "south_north_stag": NY + 1}  # fmt: skip
        if fire_grid:
            sizes["west_east_subgrid"] = (NX + 1) * REFINE
            sizes["south_north_subgrid"] = (NY + 1) * REFINE
        for name, size in sizes.items():
            file.createDimension(name, size)
        file.setncatts({key: value for key, value in settings.items() if value is not None})
        file.createVariable("Times", "S1", ("Time", "DateStrLen"))
        start = np.datetime64(START.replace("_", "T"), "s")
        for number, time in enumerate(seconds):
            stamp = str(start + np.timedelta64(int(time), "s")).replace("T", "_")
            file["Times"][number] = np.array(list(stamp), dtype="S1")
            fields = frame(time, fire or Circle(), smoke(time), smoke_name)
            fields["XLAT"], fields["XLONG"] = places or _metres()
            if edit is not None:
                edit(fields, time)
            for name, values in fields.items():
                if name in drop or (name in ("LFN", "TIGN_G") and not fire_grid):
                    continue
                if name not in file.variables:
                    variable = file.createVariable(name, "f4", ("Time", *_dims(name, values)))
                    variable.units = smoke_units if name == smoke_name else ""
                file[name][number] = values
    return path


def write_run(directory: Path, hours: Sequence[float], **options: object) -> Path:
    """A directory with one wrfout file of frames at `hours` after START."""
    seconds = [3600.0 * hour for hour in hours]
    write_wrfout(directory / FILE, seconds, **options)  # type: ignore[arg-type]
    return directory


def read_run(
    directory: Path, hours: Sequence[float] = HOURS, read: Mapping[str, object] = {}, **made: object
) -> xr.Dataset:
    """The snapshots of `write_run`, called "f", with the options `read`."""
    return read_wrf(write_run(directory, hours, **made), WrfOptions(**read), fire_id="f")


def blowing(
    wind: Callable[[float], tuple[float, float]] = lambda seconds: (3.0, 4.0),
) -> Callable[[Fields, float], None]:
    """An `edit` that adds U10 and V10 of a uniform wind; as WRF does, zero in the first frame."""

    def edit(fields: Fields, seconds: float) -> None:
        for name, value in zip(
            ("U10", "V10"), wind(seconds) if seconds else (0.0, 0.0), strict=True
        ):
            fields[name] = np.full((NY, NX), value)

    return edit


def airy(*, fuel: float | None = None, levels: bool = True) -> Callable[[Fields, float], None]:
    """An `edit` that adds the wind (3, 4) m/s, 900 m of mixing and, with `fuel`, the load FGIP."""

    def edit(fields: Fields, seconds: float) -> None:
        on = 1.0 if seconds else 0.0  # WRF computes surface values in its first step
        if levels:
            fields["U"] = np.full((NZ, NY, NX + 1), 3.0)
            fields["V"] = np.full((NZ, NY + 1, NX), 4.0)
        fields["U10"], fields["V10"] = np.full((NY, NX), on * 3.0), np.full((NY, NX), on * 4.0)
        fields["PBLH"] = np.full((NY, NX), on * 900.0)
        if fuel is not None:
            fields["FGIP"] = pad(np.full((NY * REFINE, NX * REFINE), fuel))

    return edit


def _dims(name: str, values: np.ndarray) -> tuple[str, ...]:
    if name in ("LFN", "TIGN_G", "FGIP"):
        return ("south_north_subgrid", "west_east_subgrid")
    if name in ("PH", "PHB"):
        return ("bottom_top_stag", "south_north", "west_east")
    if name in ("U", "V"):
        return ("bottom_top", *(("south_north", "west_east_stag") if name == "U" else
                                ("south_north_stag", "west_east")))  # fmt: skip
    return _DIMS[values.ndim]


def _metres() -> tuple[np.ndarray, np.ndarray]:
    """XLAT and XLONG of idealised runs, in metres."""
    x, y = np.meshgrid((np.arange(NX) + 0.5) * CELL, (np.arange(NY) + 0.5) * CELL)
    return y, x


def expected_age(seconds: float, fire: Circle) -> np.ndarray:
    age = np.maximum(seconds - fire.arrival(), 0) * (fire.level(seconds) < 0) / 3600
    return age.reshape(NY, REFINE, NX, REFINE).mean(axis=(1, 3))


def expected_column(smoke: np.ndarray) -> np.ndarray:
    """Σ q ρ Δz / Σ Δz with ρ from the ideal gas law, µg m⁻³, q in g/kg."""
    state = air()
    pressure = state["P"] + state["PB"]
    temperature = (state["T"] + 300) * (pressure / P0) ** (R_DRY / CP_DRY)
    depth = 1.01 * np.diff(HEIGHTS)[:, None, None]
    mass = 1e6 * np.maximum(smoke, 0) * pressure / (R_DRY * temperature) * depth
    return mass.sum(axis=0) / depth.sum()


def broken(tmp_path: Path, name: str) -> Path:
    """A run with one fault."""
    run = tmp_path / name
    run.mkdir()
    file = run / FILE
    if name == "empty":
        return run
    if name == "text":
        file.write_text("hello" * 100)
    elif name in ("truncated", "classic"):
        form = "NETCDF4" if name == "truncated" else "NETCDF3_64BIT_OFFSET"
        write_wrfout(file, [0.0, 3600.0], format=form)
        file.write_bytes(file.read_bytes()[: -(file.stat().st_size // 5)])
    elif name == "header":
        write_wrfout(file, [0.0], format="NETCDF3_64BIT_OFFSET")
        file.write_bytes(file.read_bytes()[:100])
    elif name == "no_smoke":
        write_wrfout(file, [0.0, 3600.0], drop=["fire_smoke"])
    elif name == "no_air":
        write_wrfout(file, [0.0, 3600.0], drop=["PHB", "T"])
    elif name == "no_level":
        write_wrfout(file, [0.0, 3600.0], drop=["LFN"])
    elif name == "no_burn":
        write_wrfout(file, [0.0, 3600.0], fire=Circle(ignition=1e9))
    elif name == "no_frames":
        write_wrfout(file, [])
    elif name == "folder":
        file.mkdir()
    else:
        write_wrfout(file, [0.0, 3600.0], edit=FAULTS[name])
    return run


def nan_column(fields, seconds):
    fields["fire_smoke"][1, 2, 3] = np.nan


def nan_level(fields, seconds):
    fields["LFN"][3, 3] = np.nan


def unwritten(fields, seconds):
    for name in ("PH", "PHB", "fire_smoke"):
        fields[name] = np.full_like(fields[name], 9.96921e36)


FAULTS = {"nan_column": nan_column, "nan_level": nan_level, "unwritten": unwritten}
