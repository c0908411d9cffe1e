"""Chosen designs against a random one with real WRF-Fire runs: train on each, score on others.

    export PYTHONPATH=src
    python benchmarks/design_wrf.py mountains.nc random/ chosen/ --draws 5 --out scores.jsonl

A folder has one wrfout file per run, `run_000.nc`, `run_001.nc`, …, in the order of the design. The
preset `recommended` is fitted on the first k runs of each folder and scored on all fires of
`mountains.nc`, which are in none: the same region and fuel map, other ignitions and weathers. Fuel
loads are those of `mountains.nc`. The smoke threshold τ of the observed footprint is the same for
all fits, that of `mountains.nc`; nothing is chosen on those fires. The first folder has random
runs. With `--draws` they are also taken in other random orders, which shows how much one draw
means. Finished lines of `--out` are not repeated.

IoU, rel and rel ln are medians over the snapshots; "worst" is the fire with the lowest median IoU,
or the highest median error. Cells have the values of the runs as ordered and, of several draws, the
range.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

import plumecast as pc
from plumecast.paper.scoring import score_surrogate
from plumecast.weather.snapshots import on_weather_hours

FLOOR = 0.01  # µg m⁻³, that of mountains.nc
COLUMNS = ("IoU", "rel", "rel ln", "worst IoU", "worst rel", "worst rel ln")


def read_runs(folder: Path, like: xr.Dataset) -> xr.Dataset:
    """The fires of a folder, named in the order of the design and labelled like the test fires."""
    label = str(like.drought.values[0])
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "runs.zarr"
        for file in sorted(folder.glob("run_*.nc")):
            name = f"{folder.name}-{file.stem}"
            fire = pc.read_wrf(
                file, pc.sources.WrfOptions(every="1h", floor=FLOOR), fire_id=name, drought=label
            )
            # A run that was cut short has fewer hours of weather.
            pc.data.append_fire(store, on_weather_hours(fire, like.weather_hour.values))
        fires = pc.open_snapshots(store).load()
    return fires.assign(fuel_load=like.fuel_load)


def orders(count: int, size: int, draws: int) -> Iterator[np.ndarray]:
    """The first runs of the design and, for draws above 1, as many of other random orders."""
    yield np.arange(size)
    for seed in range(1, draws):
        yield np.random.default_rng(seed).permutation(count)[:size]


def score(train: xr.Dataset, test: xr.Dataset, tau: float) -> dict[str, float]:
    """Medians over all snapshots, and those of the worst fire."""
    surrogate = pc.fit_surrogate(train, "recommended")
    [scored] = score_surrogate(surrogate, train, [test], tau=tau)
    found = {
        "IoU": scored.scores.iou.values,
        "rel": scored.scores.relative_error.values,
        "rel ln": scored.scores.log_error.values,
    }
    out = {name: float(np.nanmedian(values)) for name, values in found.items()}
    fires = test.fire_id.values
    for name, worst in (("IoU", min), ("rel", max), ("rel ln", max)):
        medians = [float(np.nanmedian(found[name][fires == one])) for one in np.unique(fires)]
        out[f"worst {name}"] = worst(medians)
    return out


def measure(
    folders: Sequence[Path], test: xr.Dataset, sizes: Sequence[int], draws: int, out: Path
) -> None:
    tau = float(pc.scores.smoke_threshold(test.smoke))
    done = {(line["folder"], line["runs"], line["draw"]) for line in read_lines(out)}
    for number, folder in enumerate(folders):
        repeats = 1 if number else draws
        fires = read_runs(folder, test)
        names = np.unique(fires.fire_id.values)
        for size in [size for size in sizes if size <= names.size]:
            for draw, rows in enumerate(orders(names.size, size, repeats)):
                if (folder.name, size, draw) in done or (draw and size == names.size):
                    continue
                chosen = np.isin(fires.fire_id.values, names[rows])
                train = fires.isel(snapshot=np.flatnonzero(chosen))
                line = {"folder": folder.name, "runs": size, "draw": draw}
                line |= score(train, test, tau)
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


def read_lines(path: Path) -> list[dict]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(lines: Sequence[dict]) -> str:
    """One row per folder and number of runs."""
    rows = [f"| runs | | {' | '.join(COLUMNS)} |", "|" + " --- |" * (len(COLUMNS) + 2)]
    for size, folder in sorted({(line["runs"], line["folder"]) for line in lines}):
        mine = [line for line in lines if (line["runs"], line["folder"]) == (size, folder)]
        cells = [_cell([line[name] for line in mine]) for name in COLUMNS]
        rows.append(f"| {size} | {folder} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(values: Sequence[float]) -> str:
    own = f"{values[0]:.3f}"
    return own if len(values) == 1 else f"{own} ({min(values):.3f} to {max(values):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("test", type=Path, help="mountains.nc")
    parser.add_argument("folders", type=Path, nargs="+", help="the random runs first")
    parser.add_argument("--sizes", default="6,8,10,12")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("design_wrf.jsonl"))
    given = parser.parse_args()
    test = pc.data.apply_smoke_floor(pc.open_snapshots(given.test).load(), FLOOR)
    sizes = [int(size) for size in given.sizes.split(",")]
    measure(given.folders, test, sizes, given.draws, given.out)
    print(table(read_lines(given.out)))


if __name__ == "__main__":
    main()
