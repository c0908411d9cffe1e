"""Reading WRF-Fire output against a plain netCDF4 read of the same variables, in one run.

    python benchmarks/ingest.py --size paper     100 × 80 columns, fire grid 1000 × 800, 12 frames
    python benchmarks/ingest.py --size small     40 × 32 columns, fire grid 400 × 320, 6 frames

The plain read opens each file once and reads each needed variable whole, without masks or scaling.
Both are measured in turn, from the page cache; a ratio is the median over the pairs, and that of
CPU time varies less on a busy machine. Real runs in ../shared are measured too if they exist.
Memory is that of a fresh process, less what it used before reading.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import netCDF4
import numpy as np

from plumecast import read_wrf

NEEDED = ("LFN", "TIGN_G", "fire_smoke", "PH", "PHB", "P", "PB", "T")
CLASSIC, HDF5 = "NETCDF3_64BIT_OFFSET", "NETCDF4"
OTHERS = 200  # variables WRF writes beside those, small here: opening a file costs by their number
CELL, REFINE = 3000.0, 10  # m, fire cells per column
REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "wrf" / "runs"
TARGET = 0.6
FEW, MANY = 6, 48  # frames whose memory is compared


@dataclass(frozen=True)
class Size:
    """Columns, layers and frames of the files that are written."""

    nx: int
    ny: int
    nz: int
    frames: int
    repeats: int


SIZES = {"paper": Size(100, 80, 40, 12, 11), "small": Size(40, 32, 30, 6, 7)}


def fields(size: Size, hours: float) -> dict[str, np.ndarray]:
    """One frame: a round fire and a plume above it, air at rest."""
    x = (np.arange(size.nx * REFINE) + 0.5) * CELL / REFINE
    y = (np.arange(size.ny * REFINE) + 0.5) * CELL / REFINE
    distance = np.hypot(y[:, None] - y.mean(), x - x.mean())
    level = distance - 1000.0 * hours
    arrival = np.where(level < 0, 3.6 * distance, 3600.0 * hours + 20.0)
    height = np.linspace(0.0, 12_000.0, size.nz + 1)[:, None, None]
    middle = 0.5 * (height[1:] + height[:-1])
    ones = np.ones((1, size.ny, size.nx))
    east, north = np.meshgrid(np.linspace(-1, 1, size.nx), np.linspace(-1, 1, size.ny))
    plume = 1e-4 * hours * np.exp(-20 * ((east - 0.03 * hours) ** 2 + north**2)) * ones
    padding = ((0, REFINE), (0, REFINE))
    return {
        "LFN": np.pad(level, padding),
        "TIGN_G": np.pad(arrival, padding),
        "fire_smoke": plume * np.exp(-middle / 1500.0),
        "PH": 0.1 * height * ones,
        "PHB": 9.81 * height * ones,
        "P": 20.0 * np.ones((size.nz, size.ny, size.nx)),
        "PB": 1e5 * np.exp(-middle / 8000.0) * ones,
        "T": 0.004 * middle * ones,
    }


def write(path: Path, size: Size, hours: Sequence[int], form: str) -> None:
    """A wrfout file of the given frames, with as many variables as WRF writes."""
    packed = {"zlib": True, "complevel": 2} if form == HDF5 else {}
    with netCDF4.Dataset(path, "w", format=form) as file:
        for name, length in {
            "Time": None, "DateStrLen": 19, "west_east": size.nx, "south_north": size.ny,
            "bottom_top": size.nz, "bottom_top_stag": size.nz + 1,
            "west_east_subgrid": (size.nx + 1) * REFINE,
            "south_north_subgrid": (size.ny + 1) * REFINE,
        }.items():  # fmt: skip
            file.createDimension(name, length)
        file.setncatts({"TITLE": " OUTPUT FROM WRF V4.3.3 MODEL", "GRID_ID": 1, "MAP_PROJ": 0,
                        "SIMULATION_START_DATE": stamp(0), "DX": CELL, "DY": CELL})  # fmt: skip
        file.createVariable("Times", "S1", ("Time", "DateStrLen"))
        for number in range(OTHERS):
            other = file.createVariable(f"OTHER_{number}", "f4", ("Time",))
            other.setncatts({"MemoryOrder": "0  ", "description": "another", "stagger": ""})
        for number, hour in enumerate(hours):
            file["Times"][number] = np.array(list(stamp(hour)), dtype="S1")
            for name, values in fields(size, hour).items():
                if name not in file.variables:
                    dims = _dims(name)
                    chunks = {"chunksizes": (1, *values.shape)} if packed else {}
                    file.createVariable(name, "f4", dims, **packed, **chunks)
                file[name][number] = values


def _dims(name: str) -> tuple[str, ...]:
    if name in ("LFN", "TIGN_G"):
        return ("Time", "south_north_subgrid", "west_east_subgrid")
    layers = "bottom_top_stag" if name in ("PH", "PHB") else "bottom_top"
    return ("Time", layers, "south_north", "west_east")


def stamp(hour: int) -> str:
    start = np.datetime64("2020-08-01T00:00:00", "s")
    return str(start + np.timedelta64(hour, "h")).replace("T", "_")


def write_run(folder: Path, size: Size, frames: int, form: str, *, parts: bool) -> Path:
    """A run of hourly frames: one file per frame, or all in one."""
    folder.mkdir()
    for hours in [[hour] for hour in range(frames)] if parts else [range(frames)]:
        write(folder / f"wrfout_d01_{stamp(hours[0])}", size, hours, form)
    return folder


def plain_read(run: Path) -> int:
    """Bytes of the needed variables, after reading them."""
    count = 0
    for path in sorted(run.iterdir()):
        with netCDF4.Dataset(path) as file:
            file.set_auto_maskandscale(False)
            count += sum(file[name][:].nbytes for name in NEEDED)
    return count


def seconds(function: Callable[[Path], object], run: Path) -> tuple[float, float]:
    """Wall clock and processor time of one call."""
    start, busy = time.perf_counter(), time.process_time()
    function(run)
    return time.perf_counter() - start, time.process_time() - busy


def compare(name: str, run: Path, repeats: int) -> None:
    count = plain_read(run)
    read_wrf(run)
    pairs = [(seconds(plain_read, run), seconds(read_wrf, run)) for _ in range(repeats)]
    wall, busy = (statistics.median(plain[k] / ours[k] for plain, ours in pairs) for k in (0, 1))
    speed = [count / 1e6 / statistics.median(pair[k][0] for pair in pairs) for k in (0, 1)]
    cells = [name, f"{count / 1e6:.0f}", *(f"{mb:.0f}" for mb in speed), f"{wall:.2f}",
             f"{busy:.2f}", f"≥ {TARGET}"]  # fmt: skip
    print(f"| {' | '.join(cells)} |", flush=True)


def peak(run: Path) -> float:
    """MB a fresh process needs to read a run."""
    command = [sys.executable, __file__, "--peak", str(run)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def bench(size: Size, folder: Path) -> None:
    print("| run | MB needed | plain, MB/s | read_wrf, MB/s | ratio | of CPU time | target |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, form in (("classic", CLASSIC), ("HDF5, deflated", HDF5)):
        for parts in (True, False):
            how = "one frame per file" if parts else f"{size.frames} frames in one file"
            run = write_run(folder / f"{form}-{parts}", size, size.frames, form, parts=parts)
            compare(f"{name}, {how}", run, size.repeats)
    for run in sorted(REAL.iterdir()) if REAL.is_dir() else []:
        compare(f"real: {run.name}", run, size.repeats)
    print(f"\n| peak memory, MB | {FEW} frames | {MANY} frames |\n| --- | --- | --- |")
    for name, form, parts in (("classic, one frame per file", CLASSIC, True),
                              ("HDF5, in one file", HDF5, False)):  # fmt: skip
        runs = [write_run(folder / f"{form}-{n}", size, n, form, parts=parts) for n in (FEW, MANY)]
        print(f"| {name} | {peak(runs[0]):.0f} | {peak(runs[1]):.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="paper")
    parser.add_argument("--peak", metavar="RUN", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        from core import peak_extra_memory  # it imports the studies, which need matplotlib

        print(1e3 * peak_extra_memory(lambda: read_wrf(arguments.peak)))
        return
    size = SIZES[arguments.size]
    print(f"{size.nx} × {size.ny} columns, {size.nz} layers, {REFINE}² fire cells in each\n")
    with tempfile.TemporaryDirectory() as folder:
        bench(size, Path(folder))


if __name__ == "__main__":
    main()
