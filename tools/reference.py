"""Write what plumecast computes on one store, to compare two versions of it number by number.

    python tools/reference.py write STORE.nc FOLDER     # with the one version
    python tools/reference.py write STORE.nc OTHER      # with the other
    python tools/reference.py compare FOLDER OTHER

Only public names and commands are used, so that any two versions can be compared. Written are the
predictions and the model files of every preset and family, the scores of `evaluate`, the
statistics of `ensemble` and the tables of all studies. `compare` lists every difference beyond
1e-12 of the largest value and ends with exit code 1 if there is one. Timings are left out.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

TOLERANCE = 1e-12

FITS: dict[str, dict[str, Any]] = {
    "paper-linear": {"preset": "paper-linear"},
    "paper-quadratic": {"preset": "paper-quadratic"},
    "quick": {"preset": "quick"},
    "recommended": {"preset": "recommended"},
    "thorough": {"preset": "thorough"},
    "cubic-centred": {"degree": 3, "fire_rank": 12, "smoke_rank": 20, "center": True},
    "matern": {"kernel": "polynomial-1 + matern-5/2"},
    "matern-given": {"kernel": "matern-5/2", "length_scale": 2.0, "penalty": 1e-3},
    "lifted-linear": {"lift": ("age-bins", "burned"), "targets": ("log",)},
    "lifted-kernel": {
        "lift": ("saturating", "burned"),
        "products": ("hours", "area"),
        "targets": ("log", "smoke", "footprint"),
        "kernel": "squared-exponential",
    },
    "covariates": {"preset": "recommended", "covariates": ("hours",), "frame": "map", "layers": 2},
    "wind": {"preset": "recommended", "frame": "wind", "layers": 2},
    "wind-stretch": {"preset": "quick", "frame": "wind-stretch"},
    "streamed": {"preset": "recommended", "memory": "3GB"},
    "streamed-quadratic": {"preset": "paper-quadratic", "memory": "300MB"},
    "torch": {"preset": "recommended", "device": "torch", "layers": 2},
    "unet": {"family": "unet", "epochs": 1},
    "fno": {"family": "fno", "epochs": 1},
}
BASELINES = ("mean-field", "nearest-fire", "gp-images", "gp-codes")


def write(store: Path, folder: Path) -> None:
    """All results of this version in a folder."""
    import plumecast as pc

    folder.mkdir(parents=True, exist_ok=True)
    split = pc.split_by_fire(pc.open_snapshots(store).load(), seed=0)
    surrogates = {}
    for name, choices in FITS.items():
        if choices.get("frame", "").startswith("wind") and "wind_speed" not in split.train.coords:
            continue
        print(name, flush=True)
        # A store on disk, where a fit reads its snapshots by blocks.
        train = split.train
        if "memory" in choices:
            train = pc.split_by_fire(pc.open_snapshots(store), seed=0).train
        surrogates[name] = pc.fit_surrogate(train, **choices)
    for name in BASELINES:
        surrogates[name] = pc.surrogate.fit_baseline(name, split.train)
    for name, surrogate in surrogates.items():
        found = {"smoke": surrogate.predict(split.test).values}
        if surrogate.detects:
            found["score"] = surrogate.predict_footprint(split.test).values
        np.savez(folder / f"{name}.npz", **found)
        surrogate.save(folder / f"{name}.plume")
    _commands(store, folder)


def _commands(store: Path, folder: Path) -> None:
    """What the commands write."""
    model = folder / "trained.plume"
    _run("train", store, "--preset", "recommended", "-o", model)
    _run("evaluate", model, store, "--json", folder / "evaluate.json")
    _run("predict", model, store, "-o", folder / "predicted.nc", "--footprint")
    _run(
        "ensemble", model, store, "-o", folder / "ensemble.nc",
        "--thresholds", "35,100", "--quantiles", "0.5,0.95",
    )  # fmt: skip
    _run("tune", store, "-o", folder / "tune.json", "--families", "coded,lifted")
    _run("study", "all", "--data", store, "--out", folder / "studies")


def _run(*arguments: object) -> None:
    print("plumecast", *arguments, flush=True)
    program = Path(sys.executable).with_name("plumecast")
    ended = subprocess.run([str(program), *map(str, arguments)], check=False)
    if ended.returncode not in (0, 1):  # 1: some studies cannot be run on these fires
        sys.exit(f"plumecast ended with exit code {ended.returncode}")


def compare(one: Path, other: Path) -> int:
    """Print what differs; the number of differences."""
    found = 0
    for path in sorted(one.rglob("*")):
        twin = other / path.relative_to(one)
        reader = READERS.get(path.suffix)
        if reader is None or path.name in ("times.csv", "run.json", "record.json"):
            continue
        if not twin.exists():
            print(f"{twin} is missing")
            found += 1
            continue
        for name, difference in _differences(reader(path), reader(twin)).items():
            print(f"{path.relative_to(one)}: {name} differs by {difference}")
            found += 1
    print(f"{found} differences" if found else "no difference")
    return found


def _differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name, values in one.items():
        if name not in other:
            found[name] = "being absent"
            continue
        a, b = np.asarray(values), np.asarray(other[name])
        if a.shape != b.shape:
            found[name] = f"shape {a.shape} and {b.shape}"
        elif a.dtype.kind not in "fiub":
            if not (a == b).all():
                found[name] = f"text: {a[a != b].ravel()[:1]} and {b[a != b].ravel()[:1]}"
        elif not np.array_equal(a, b, equal_nan=True):
            size = max(float(np.nanmax(np.abs(a))), 1e-300)
            apart = float(np.nanmax(np.abs(a.astype(float) - b.astype(float)))) / size
            if not apart <= TOLERANCE:
                found[name] = f"{apart:.2e} of the largest value"
            else:
                print(f"  {name}: not bit for bit, {apart:.1e}")
    return found


def _read_arrays(path: Path) -> dict[str, Any]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def _read_dataset(path: Path) -> dict[str, Any]:
    with xr.open_dataset(path, decode_timedelta=False) as file:
        return {
            str(name): item.values
            for name, item in file.variables.items()
            if "clock" not in item.attrs and not _is_clock(str(name))
        }


def _is_clock(name: str) -> bool:
    return name in ("encoding", "training", "tuning", "predict_ms", "seconds", "cpu_seconds")


def _read_table(path: Path) -> dict[str, Any]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}


def _read_json(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    flat: dict[str, Any] = {}

    def walk(value: Any, name: str) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk(item, f"{name}.{key}")
        elif isinstance(value, list):
            for number, item in enumerate(value):
                walk(item, f"{name}.{number}")
        elif not any(part in name for part in ("seconds", "_ms", "plumecast", ".model", ".data")):
            flat[name] = value if value is not None else "none"

    walk(content, "")
    return flat


def _read_model(path: Path) -> dict[str, Any]:
    """The arrays of a model file."""
    import safetensors.numpy

    return safetensors.numpy.load_file(path)


READERS = {
    ".npz": _read_arrays,
    ".nc": _read_dataset,
    ".csv": _read_table,
    ".json": _read_json,
    ".plume": _read_model,
}


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        sys.exit(1 if compare(Path(sys.argv[2]), Path(sys.argv[3])) else 0)
