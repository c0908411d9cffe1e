"""Damaged `.plume` files: a surrogate loads as it was, or is refused.

A third of the trials damage bytes, which the checksum must notice. The others edit an array, a
setting or a record and make the checksum match: what no fit could have given is refused. Another
valid number makes another model, which predicts finite smoke.
"""

from __future__ import annotations

import functools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import xarray as xr

import plumecast as pc
from plumecast.base.integrity import digest_of
from plumecast.surrogate.thresholds import Thresholds
from plumecast.workflows.held_out.scoring import agreeing
from tools.fuzz.data import small_fires
from tools.fuzz.mutations import damage_file
from tools.fuzz.trials import CHANGED, LEGITIMATE, UNCHANGED, Target

FITS: dict[str, dict[str, Any]] = {
    "linear": {"preset": "paper-linear"},
    "quadratic": {"degree": 2, "fire_rank": 4},
    "kernel": {"kernel": "polynomial-1 + matern-5/2", "center": True},
    "quick": {"preset": "quick", "layers": 1},
    "recommended": {"preset": "recommended", "layers": 2},
    "thorough": {"preset": "thorough", "layers": 1},
    "lifted": {"family": "coded", "lift": ["age-bins"], "targets": ["log", "smoke"]},
}
"""Surrogates of all closed-form families; networks need PyTorch, which a trial cannot afford."""

ODD = (None, True, -1, 0, 7, 10**9, 2.5, 1e308, float("nan"), float("inf"), "", "nan", [], [1], {})
"""Values that a number, a text or a list in a header is replaced with."""


def prepare(folder: Path) -> None:
    """Surrogates of a few discs, and what they predict."""
    data = small_fires()
    data.to_netcdf(folder / "fires.nc")
    fits = {name: pc.fit_surrogate(data, **choices) for name, choices in FITS.items()}
    fits["agreeing"] = agreeing(fits["recommended"], Thresholds(0.05, 0.3))
    fits |= {name: pc.surrogate.fit_baseline(name, data) for name in ("mean-field", "gp-codes")}
    for name, surrogate in fits.items():
        path = surrogate.save(folder / f"{name}.plume")
        np.save(folder / f"{name}.npy", pc.load_surrogate(path).predict(data).values)


def attempt(originals: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    """Load a damaged copy and predict."""
    source = rng.choice(sorted(originals.glob("*.plume")))
    path = scratch / "damaged.plume"
    path.write_bytes(source.read_bytes())
    if rng.random() < 1.0 / 3.0:
        damage_file(path, rng)
        edit, allowed = "bytes", False
    else:
        edit, allowed = edit_file(path, rng)
    surrogate = pc.load_surrogate(path)
    smoke = surrogate.predict(_fires(originals / "fires.nc"))
    if not np.isfinite(smoke.values).all():
        return CHANGED, f"{source.stem}: {edit}: predicted NaN or infinite values"
    if np.array_equal(smoke.values, np.load(originals / f"{source.stem}.npy")):
        return UNCHANGED
    return LEGITIMATE if allowed else (CHANGED, f"{source.stem}: {edit}")


@functools.cache
def _fires(path: Path) -> xr.Dataset:
    return pc.open_snapshots(path).load()


def edit_file(path: Path, rng: random.Random) -> tuple[str, bool]:
    """Edit the contents and renew the checksum; what was done, and if it may give a valid model."""
    with safetensors.safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()["plumecast"])
        arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    edit = edit_array(arrays, rng) if rng.random() < 0.5 else edit_header(header["value"], rng)
    del header["checksum"]
    header["checksum"] = digest_of(header, arrays)
    content = safetensors.numpy.save(arrays, metadata={"plumecast": json.dumps(header)})
    path.write_bytes(content)
    return edit


def edit_array(arrays: dict[str, np.ndarray], rng: random.Random) -> tuple[str, bool]:
    """Change one array. Another number, order or precision of an array is a valid model."""
    name = rng.choice(sorted(name for name in arrays if arrays[name].size))
    array = np.array(arrays[name])
    kind = rng.choice(("nan", "inf", "drop", "int", "half", "short", "axis", "turn", "number"))
    if kind == "drop":
        del arrays[name]
        return f"{name} dropped", False
    place = rng.randrange(array.size)
    if kind in ("nan", "inf"):
        array = array.astype(np.float64) if array.dtype.kind != "f" else array
        array.reshape(-1)[place] = np.nan if kind == "nan" else -np.inf
    elif kind in ("int", "half"):
        array = array.astype(np.int32 if kind == "int" else np.float16)
    elif kind == "short":
        array = np.ascontiguousarray(array[:-1])
    elif kind == "axis":
        array = array[..., None]
    elif kind == "turn":
        array = np.ascontiguousarray(array.T)
    else:
        array.reshape(-1)[place] = rng.choice((0.0, 1.0, -3.5, 1e10))
    square = array.shape == arrays[name].shape
    arrays[name] = array
    return f"{name}: {kind}", kind == "number" or (kind == "turn" and square) or "coords" in name


def edit_header(tree: Any, rng: random.Random) -> tuple[str, bool]:
    """Replace or remove one value somewhere in the header."""
    place = ""
    while True:
        keys = sorted(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = rng.choice(keys)
        place += f".{key}"
        inner = tree[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.1:
            break
        tree = inner
    if rng.random() < 0.2:
        del tree[key]
        return f"{place} removed", True
    tree[key] = rng.choice(ODD)
    return f"{place} = {tree[key]!r}", True


TARGET = Target("models", prepare, attempt, trials=3000)
