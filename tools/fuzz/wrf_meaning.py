"""WRF runs that can be read and say something else: labels of units, fire clocks, copies, order.

A variable that is converted and relabelled must give the same snapshots, a label without the
conversion another answer or a refusal; the label must not be ignored.
"""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import netCDF4
import numpy as np
import xarray as xr

from tools.fuzz.commands import run_command
from tools.fuzz.trials import CHANGED, FOUND, LEGITIMATE, REFUSED, TRACEBACK, UNCHANGED, Target

LABELS = {
    "U10": "m s-1", "V10": "m s-1", "U": "m s-1", "V": "m s-1", "PBLH": "m", "TIGN_G": "s",
    "fire_smoke": "g_smoke/kg_air", "P": "Pa", "PB": "Pa", "T": "K", "PH": "m2 s-2",
    "PHB": "m2 s-2", "LFN": "m", "XLAT": "m", "XLONG": "m",
}  # fmt: skip
"""Units as WRF writes them; positions of idealised runs are in metres."""

OTHER_UNITS = {
    "U10": (("knots", 1.9438445), ("km h-1", 3.6), ("mph", 2.2369363), ("cm s-1", 100.0)),
    "PBLH": (("km", 1e-3), ("ft", 1 / 0.3048)),
    "TIGN_G": (("min", 1 / 60), ("h", 1 / 3600)),
    "fire_smoke": (("ug/kg", 1e6), ("kg kg-1", 1e-3), ("mg/kg", 1e3)),
    "P": (("hPa", 0.01), ("kPa", 1e-3)),
    "XLAT": (("km", 1e-3),),
}
TOGETHER = {"U10": ("U10", "V10", "U", "V"), "P": ("P", "PB"), "XLAT": ("XLAT", "XLONG")}
_READ = ("time_since_ignition", "smoke", "wind_u", "wind_v", "boundary_layer_depth", "hours",
         "burned_area", "x", "y")  # fmt: skip


def prepare(folder: Path) -> None:
    """Two runs of four frames with winds and boundary layer, and their snapshots."""
    sys.path.insert(0, "tests")
    from support.wrf_files import NX, NY, NZ, Circle, write_run

    def blow(fields: dict[str, np.ndarray], seconds: float) -> None:
        for name, value in (("U", 5.0), ("V", 2.0)):
            shape = (NZ, NY, NX + 1) if name == "U" else (NZ, NY + 1, NX)
            fields[name] = np.full(shape, value)
        for name, value in (("U10", 3.0), ("V10", 1.0)):
            fields[name] = np.full((NY, NX), value if seconds else 0.0)
        fields["PBLH"] = np.full((NY, NX), 900.0 + 0.02 * seconds)

    for name, x in (("north", 3100.0), ("south", 4100.0)):
        run = folder / "runs" / name
        write_run(run, (0, 1, 2, 3), fire=Circle(x=x), edit=blow)
        _label(run, LABELS)
    code, printed, stored = answer(folder / "runs", folder / "sound.zarr")
    if stored is None:
        raise RuntimeError(f"{code}: {printed}")
    stored.to_netcdf(folder / "sound.nc")
    (folder / "sound.txt").write_text("\n".join(sorted(_said(printed))))


def answer(runs: Path, store: Path) -> tuple[int, str, xr.Dataset | None]:
    """What `ingest wrf` stores of a folder of runs, and what it prints."""
    code, printed = run_command(["ingest", "wrf", *sorted(runs.iterdir()), "-o", store])
    if code:
        return code, printed, None
    import plumecast as pc

    stored = pc.open_snapshots(store).sortby("fire_id")
    kept = [name for name in _READ if name in stored.variables]
    return 0, printed, stored[kept].drop_attrs().load()


def _said(printed: str) -> set[str]:
    return {line for line in printed.splitlines() if "warning" in line or "note:" in line}


def _files(folder: Path) -> list[Path]:
    return sorted(item for item in folder.rglob("wrfout*") if item.is_file())


def _label(folder: Path, labels: dict[str, str]) -> None:
    for path in _files(folder):
        with netCDF4.Dataset(path, "a") as file:
            for name, unit in labels.items():
                if name in file.variables:
                    file[name].units = unit


def _scale(folder: Path, names: tuple[str, ...], factor: float) -> None:
    for path in _files(folder):
        with netCDF4.Dataset(path, "a") as file:
            for name in names:
                file[name][:] = file[name][:] * factor


# -- changes that say the same


def _convert(runs: Path, rng: random.Random) -> None:
    name = rng.choice(list(OTHER_UNITS))
    unit, factor = rng.choice(OTHER_UNITS[name])
    names = TOGETHER.get(name, (name,))
    _scale(runs, names, factor)
    _label(runs, dict.fromkeys(names, unit))


def _rename_runs(runs: Path, rng: random.Random) -> None:
    for number, run in enumerate(sorted(runs.iterdir())):
        run.rename(runs / f"run_{number + 3:02d}")


def _split_files(runs: Path, rng: random.Random) -> None:
    """One file for each frame, as WRF's frames_per_outfile = 1 writes."""
    for path in _files(runs):
        with xr.open_dataset(path, decode_times=False) as file:
            whole = file.load()
        for number in range(whole.sizes["Time"]):
            name = f"wrfout_d01_2020-08-01_{12 + number:02d}_00_00"
            whole.isel(Time=[number]).to_netcdf(path.with_name(f"{name}.part"))
        path.unlink()
        for part in path.parent.glob("*.part"):
            part.rename(part.with_suffix(""))


# -- changes that make a run wrong


def _label_only(runs: Path, rng: random.Random) -> None:
    name = rng.choice(list(OTHER_UNITS))
    unit, _ = rng.choice(OTHER_UNITS[name])
    _label(runs, dict.fromkeys(TOGETHER.get(name, (name,)), unit))


def _no_clock(runs: Path, rng: random.Random) -> None:
    _scale(runs, ("TIGN_G",), 0.0)


def _fill(runs: Path, rng: random.Random) -> None:
    path = rng.choice(_files(runs))
    with netCDF4.Dataset(path, "a") as file:
        name = rng.choice(("U10", "V10", "U", "V", "PBLH", "fire_smoke", "TIGN_G", "T"))
        frame = rng.randrange(1, 4)
        file[name][frame] = rng.choice((-9999.0, 9.96921e36, 1e20, -999.0))


def _implausible(runs: Path, rng: random.Random) -> None:
    name, factor = rng.choice(
        (("U10", 200.0), ("U", 100.0), ("PBLH", 100.0), ("PBLH", -1.0), ("T", 0.0), ("PH", 50.0))
    )
    _scale(runs, (name,), factor)


def _rotated_poles(runs: Path, rng: random.Random) -> None:
    for path in _files(runs):
        with netCDF4.Dataset(path, "a") as file:
            file.MAP_PROJ = np.int32(6)


def _copy(runs: Path, rng: random.Random) -> None:
    shutil.copytree(runs / "north", runs / "zz_copy")


Change = Callable[[Path, random.Random], None]
SAME: tuple[Change, ...] = (_convert, _convert, _rename_runs, _split_files)
WRONG: tuple[Change, ...] = (
    _label_only, _label_only, _no_clock, _fill, _implausible, _rotated_poles, _copy,
)  # fmt: skip


def attempt(originals: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    """One change of both runs; what is stored, beside what the sound runs give."""
    runs = scratch / "runs"
    shutil.copytree(originals / "runs", runs)
    change = rng.choice(SAME if rng.random() < 0.4 else WRONG)
    change(runs, rng)
    units = {name: _units(runs, name) for name in OTHER_UNITS}
    name = f"{change.__name__[1:]} {[unit for key, unit in units.items() if unit != LABELS[key]]}"
    _, printed, stored = answer(runs, scratch / "out.zarr")
    if stored is None:
        named = "error:" in printed and "Traceback" not in printed  # a line for each run
        return (REFUSED if named else TRACEBACK), f"{name}\n{printed}"
    with xr.open_dataset(originals / "sound.nc") as file:
        sound = file.load()
    more = _said(printed) - set((originals / "sound.txt").read_text().splitlines())
    equal = _equal(stored, sound)
    if change is _label_only and units["XLAT"] == LABELS["XLAT"]:
        verdict = CHANGED if equal and not more else LEGITIMATE
        return verdict, f"{name}: the label is ignored\n{printed}"
    if equal:  # also another label of positions: they are not read in idealised runs
        return UNCHANGED, name
    return (FOUND if more else CHANGED), f"{name}\n{printed}"


def _units(runs: Path, name: str) -> str:
    with netCDF4.Dataset(_files(runs)[0]) as file:
        return str(file[name].units)


def _equal(stored: xr.Dataset, sound: xr.Dataset) -> bool:
    if set(stored.variables) < set(sound.variables) - {"fire_id"}:
        return False
    return all(
        stored[name].shape == sound[name].shape
        and np.allclose(stored[name], sound[name], rtol=1e-4, atol=1e-4, equal_nan=True)
        for name in _READ
        if name in sound.variables
    )


TARGET = Target("wrf_meaning", prepare, attempt, trials=1000, limit=60.0)
