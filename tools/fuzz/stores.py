"""Damaged snapshot stores: read as they were, refused, or with a finding of `info --check`."""

from __future__ import annotations

import functools
import json
import random
import shutil
import warnings
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.integrity import ChangedWarning
from plumecast.base.names import DATA_VERSION
from plumecast.data.findings import check_store
from plumecast.data.schema import check_values
from plumecast.data.store import append_fire, export_snapshots, open_snapshots
from tools.fuzz.mutations import ODD_NUMBERS, damage_file, damage_folder
from tools.fuzz.trials import CHANGED, FOUND, REFUSED, UNCHANGED, Target

_KINDS = ("store", "store", "store", "plain.zarr", "plain.zarr", "plain.zarr", "file.nc")
_FIRES, _CHECKPOINTS, _NX, _NY = 4, 5, 8, 6
_DEEP = 20_000  # levels of nested JSON


def prepare(folder: Path) -> None:
    """The same few fires as an Icechunk store, as Zarr and as NetCDF."""
    for number in range(_FIRES):
        append_fire(folder / "store", _fire(number))
    snapshots = open_snapshots(folder / "store").load()
    for name in ("plain.zarr", "file.nc"):
        export_snapshots(snapshots, folder / name)


def _fire(number: int) -> xr.Dataset:
    rng = np.random.default_rng(number)
    hours = np.arange(1.0, _CHECKPOINTS + 1.0)
    shape = (_CHECKPOINTS, _NY, _NX)
    ages = np.maximum(hours[:, None, None] - rng.uniform(0.0, 9.0, shape[1:]), 0.0)
    smoke = np.cumsum(rng.exponential(10.0, shape), axis=0)
    text = np.full(_CHECKPOINTS, f"fire-{number}")
    return xr.Dataset(
        {
            "time_since_ignition": (("snapshot", "y", "x"), ages, {"units": "h"}),
            "smoke": (("snapshot", "y", "x"), smoke, {"units": "ug m-3"}),
        },
        coords={
            "fire_id": ("snapshot", text),
            "ignition_id": ("snapshot", text),
            "hours": ("snapshot", hours, {"units": "h"}),
            "drought": ("snapshot", np.full(_CHECKPOINTS, "low")),
            "burned_area": ("snapshot", 1e3 * (number + hours), {"units": "acre"}),
            "is_final": ("snapshot", hours == hours[-1]),
            "x": ("x", 300.0 * np.arange(_NX), {"units": "m"}),
            "y": ("y", 300.0 * np.arange(_NY), {"units": "m"}),
        },
        attrs={"source": "fuzz"},
    )


def attempt(originals: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    """Damage a copy, read it as `train` does and as `info --check` does."""
    name = rng.choice(_KINDS)
    path = scratch / name
    if name == "file.nc":
        shutil.copyfile(originals / name, path)
        damage_file(path, rng)
        what = name
    else:
        shutil.copytree(originals / name, path)
        edit = name == "plain.zarr" and rng.random() < 0.3
        what = f"{name}/{_edit_json(path, rng) if edit else damage_folder(path, rng)}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        snapshots = open_snapshots(path)
    warned = any(issubclass(item.category, ChangedWarning) for item in caught)
    findings = sum(map(len, check_store(snapshots).values()))
    try:
        values = _unversioned(check_values(snapshots.compute()))
    except PlumecastError as error:
        return (REFUSED, what) if findings else (CHANGED, f"{what}: only train says {error}")
    if values.identical(_original(originals)):
        return UNCHANGED
    if warned and findings:
        return FOUND, what
    return CHANGED, f"{what}: {_difference(values, originals)}"


@functools.cache
def _original(originals: Path) -> xr.Dataset:
    return _unversioned(open_snapshots(originals / "store").load())


def _unversioned(snapshots: xr.Dataset) -> xr.Dataset:
    snapshots.attrs.pop(DATA_VERSION, None)
    return snapshots[sorted(map(str, snapshots.variables))]


def _difference(values: xr.Dataset, originals: Path) -> str:
    try:
        xr.testing.assert_identical(values, _original(originals))
    except AssertionError as error:
        return str(error)
    return ""


def _edit_json(path: Path, rng: random.Random) -> Path:
    """Edit the metadata as a person would, or worse: a value replaced, removed, nested deeply."""
    file = rng.choice(sorted(path.rglob("zarr.json")))
    if rng.random() < 0.05:
        file.write_text("[" * _DEEP + "]" * _DEEP)
        return file.relative_to(path)
    content = json.loads(file.read_text())
    place: object = content
    while True:
        assert isinstance(place, dict | list)
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = rng.choice(keys)
        inner = place[key]  # type: ignore[index]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
            place = inner
            continue
        if rng.random() < 0.3:
            del place[key]  # type: ignore[arg-type]
        else:
            odd: list[object] = [
                *ODD_NUMBERS,
                0,
                -1,
                2,
                10**9,
                10**15,
                1.5,
                None,
                [],
                {},
                "int8",
                True,
            ]
            place[key] = rng.choice(odd)  # type: ignore[index,call-overload]
        break
    file.write_text(json.dumps(content))
    return file.relative_to(path)


TARGET = Target("stores", prepare, attempt, trials=3500)
