"""WRF-Fire runs with the hours that `ingest wrf` gives them, beside the same fires at whole hours.

    python benchmarks/wrf_clock.py RUNS --out clock.json

RUNS holds `run_NNN.nc` (wrfout files) and `fire_NNN.npz` (the same fires as the runner's own
frames: f, g, wind, boundary layer), as a runner of WRF writes them. Both become stores. On each,
the recommended surrogate is trained on the fires whose number leaves 0 or 1 when divided by three,
and scored on the others (with `--develop`: trained on those with 0, scored on those with 1). Scores
are the IoU of smoke above τ, relative errors, total smoke and the coverage of bands of 90 %, by
hour. The fires are also predicted with all their hours shifted. Cut wrfout files have no fuel load;
`--fuel` names a store that has it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import xarray as xr

import plumecast as pc
from plumecast.base.checkpoints import INTERVAL
from plumecast.weather.snapshots import with_mean_winds

HEIGHTS = np.array([10.0, 50, 200, 500, 1000, 1500, 2000, 3000, 4000, 6000])
FLOOR = 0.01  # µg m⁻³, below which smoke is set to 0


def ingested(runs: Path, numbers: list[int]) -> xr.Dataset:
    """The fires through the reader of WRF files, with the hours that it gives them."""
    fires = [
        pc.read_wrf(
            runs / f"run_{n:03d}.nc",
            pc.sources.WrfOptions(floor=FLOOR),
            fire_id=f"fire_{n:03d}",
            drought="own",
        )
        for n in numbers
    ]
    return xr.concat(fires, "snapshot", data_vars="minimal", coords="minimal", compat="override",
                     combine_attrs="override")  # fmt: skip


def whole_hours(runs: Path, numbers: list[int], like: xr.Dataset) -> xr.Dataset:
    """The same fires as the runner's own frames, at whole hours."""
    return xr.concat([_frames(runs / f"fire_{n:03d}.npz", n, like) for n in numbers], "snapshot",
                     data_vars="minimal", coords="minimal", compat="override")  # fmt: skip


def _frames(path: Path, number: int, like: xr.Dataset) -> xr.Dataset:
    with np.load(path) as file:
        data = {name: file[name] for name in file.files}
    hours = np.round(data["seconds"] / 3600.0)
    count = hours.size - 1
    height = data["height"].mean(axis=0) - data["terrain"].mean()
    wind = {}
    for name, surface in (("u", "u10"), ("v", "v10")):
        near = data[surface].copy()
        near[0] = near[1]  # WRF writes 0 in frame 0
        levels = np.append(10.0, height)
        values = np.column_stack([near, data[name]])
        wind[name] = np.stack([np.interp(HEIGHTS, levels, row) for row in values])
    depth = data["pblh"].copy()
    depth[0] = depth[1]  # WRF writes 0 in frame 0
    smoke = np.where(data["g"][1:] < FLOOR, 0.0, data["g"][1:]).astype(np.float32)
    own = np.repeat(f"fire_{number:03d}", count)
    profile = ("snapshot", "weather_hour", "height")

    def repeated(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values.astype(np.float32), (count, *values.shape))

    made = xr.Dataset(
        {
            "time_since_ignition": (("snapshot", "y", "x"), data["f"][1:], {"units": "h"}),
            "smoke": (("snapshot", "y", "x"), smoke, {"units": "ug m-3", INTERVAL: 1.0}),
            "wind_u": (profile, repeated(wind["u"]), {"units": "m s-1"}),
            "wind_v": (profile, repeated(wind["v"]), {"units": "m s-1"}),
            "boundary_layer_depth": (profile[:2], repeated(depth), {"units": "m"}),
        },
        coords={
            "fire_id": ("snapshot", own),
            "ignition_id": ("snapshot", own),
            "hours": ("snapshot", hours[1:], {"units": "h"}),
            "drought": ("snapshot", np.repeat("own", count)),
            "burned_area": ("snapshot", np.repeat(float(data["acres"]), count), {"units": "acre"}),
            "is_final": ("snapshot", np.arange(count) == count - 1),
            "weather_hour": ("weather_hour", hours, {"units": "h"}),
            "height": ("height", HEIGHTS, {"units": "m"}),
            "y": ("y", like.y.values, like.y.attrs),
            "x": ("x", like.x.values, like.x.attrs),
        },
    )
    return with_mean_winds(made)


def scores(surrogate: pc.Surrogate, test: xr.Dataset, truth: xr.Dataset) -> dict[str, object]:
    """Scores of the test fires by hour, and of all of them."""
    found = surrogate.predict_interval(test)
    tau = surrogate.training["thresholds"]["smoke"]
    guess, seen = (item.values.astype(np.float64) for item in (found.smoke, truth.smoke))
    called, smoky = guess > tau, seen > tau
    axes = (1, 2)
    either = (called | smoky).sum(axes)
    iou = np.where(either > 0, (called & smoky).sum(axes) / np.maximum(either, 1), 1.0)
    rel = np.sqrt(((guess - seen) ** 2).sum(axes) / (seen**2).sum(axes))
    logs = [np.log1p(values) for values in (guess, seen)]
    rel_ln = np.sqrt(((logs[0] - logs[1]) ** 2).sum(axes) / (logs[1] ** 2).sum(axes))
    mass = guess.sum(axes) / seen.sum(axes)
    inside = (seen >= found.lower.values) & (seen <= found.upper.values)
    relevant = called | smoky
    covered = (inside & relevant).sum(axes) / np.maximum(relevant.sum(axes), 1)
    hour = np.round(truth.hours.values).astype(int)
    names = {"iou": iou, "rel": rel, "rel_ln": rel_ln, "mass": mass, "covered": covered}
    made: dict[str, object] = {
        f"median {name}": round(float(np.median(values)), 3) for name, values in names.items()
    }
    made |= {f"mean {name}": round(float(values.mean()), 3) for name, values in names.items()}
    made["mass 10-90 %"] = np.quantile(mass, [0.1, 0.9]).round(3).tolist()
    for name in ("iou", "rel", "mass", "covered"):
        made[f"{name} by hour"] = [
            round(float(names[name][hour == h].mean()), 3) for h in np.unique(hour)
        ]
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--fuel", type=Path, help="store with the fuel load of the region")
    parser.add_argument("--develop", action="store_true", help="leave the test fires alone")
    given = parser.parse_args()
    numbers = sorted(int(path.stem[4:]) for path in given.runs.glob("run_*.nc"))
    if given.develop:
        numbers = [n for n in numbers if n % 3 != 2]
    held = 1 if given.develop else 2
    train = [n for n in numbers if n % 3 != held]
    read = ingested(given.runs, numbers)
    stores = {"ingested": read, "whole hours": whole_hours(given.runs, numbers, read)}
    if given.fuel is not None:
        load = xr.open_dataset(given.fuel).fuel_load
        stores = {name: data.assign(fuel_load=load.variable) for name, data in stores.items()}
    results: dict[str, object] = {"training fires": len(train)}
    for name, data in stores.items():
        number = np.array([int(text[5:]) for text in data.fire_id.values.astype(str)])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "store.nc"
            fit_on = data.isel(snapshot=np.flatnonzero(np.isin(number, train)))
            fit_on.to_netcdf(path)
            surrogate = pc.train_surrogate(pc.open_snapshots(path).load(), split=None)
        test = data.isel(snapshot=np.flatnonzero(~np.isin(number, train)))
        results[name] = scores(surrogate, test, test)
        chosen = {key: surrogate.training.get(key) for key in ("frame", "physics", "transport")}
        results[f"{name}: chosen"] = chosen
        for shift in (-0.06, 0.05):
            moved = test.assign_coords(hours=test.hours + shift)
            results[f"{name}, hours {shift:+}"] = scores(surrogate, moved, test)
        print(json.dumps({key: results[key] for key in results if name in key}, indent=1))
    if given.out is not None:
        given.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
