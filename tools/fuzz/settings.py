"""Odd values of options, and edited settings files: one line and exit code 2, or a valid result."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import plumecast as pc
from tools.fuzz.commands import is_one_line, run_command
from tools.fuzz.data import small_fires
from tools.fuzz.mutations import ODD_NUMBERS, mutate_text
from tools.fuzz.trials import CHANGED, LEGITIMATE, REFUSED, TRACEBACK, Target

TRAIN = (
    *("--penalty", "--degree", "--fire-rank", "--smoke-rank", "--fire-std", "--smoke-std"),
    *("--length-scale", "--age-bins", "--layers", "--folds", "--seed", "--min-acres"),
    *("--smoke-floor", "--fractions", "--kernel", "--frame", "--lift", "--products", "--targets"),
    *("--covariates", "--preset", "--family", "--by", "--inputs", "--outputs", "--drought"),
    "--memory",
)
TUNE = ("--folds", "--confirm", "--candidates", "--budget-seconds", "--degrees", "--std-fractions")
PREDICT = ("--horizon", "--hours", "--nodata", "--wind-speed", "--wind-from", "--precision")


def prepare(folder: Path) -> None:
    """A store, a surrogate and the settings that `plumecast tune` writes."""
    store = pc.export_snapshots(small_fires(), folder / "fires.nc")
    pc.train_surrogate(store, "paper-linear").save(folder / "smoke.plume")
    settings = {"degree": 1, "fire_rank": 3, "smoke_std_fraction": 0.9, "center": False}
    recipe = pc.SplitRecipe().record() | {"inputs": "time_since_ignition", "outputs": "smoke"}
    content = {"settings": settings, "recipe": recipe, "candidates": []}
    (folder / "tuned.json").write_text(json.dumps(content, indent=1))


def attempt(originals: Path, scratch: Path, rng: random.Random) -> str | tuple[str, str]:
    """Run one command with one odd value."""
    arguments = rng.choice(_ATTEMPTS)(originals, scratch, rng)
    code, printed = run_command(arguments)
    said = f"{' '.join(map(str, arguments[3:]))}\n{printed[-600:]}"
    if "Traceback" in printed:
        return TRACEBACK, said
    if code == 2:
        return (REFUSED, said) if is_one_line(printed) else (TRACEBACK, said)
    written = [path for path in (scratch / "out.plume", scratch / "out.nc") if path.exists()]
    if code != 0 or not all(map(_is_finite, written)):
        return CHANGED, f"exit {code}: {said}"
    return LEGITIMATE, said


def _is_finite(path: Path) -> bool:
    """Whether a surrogate predicts, or predicted smoke is, finite numbers."""
    if path.suffix == ".plume":
        fires = np.ones((1, *pc.load_surrogate(path).inputs.fields[0].shape))
        return bool(np.isfinite(pc.load_surrogate(path).predict(_labelled(fires))).all())
    import xarray as xr

    with xr.open_dataset(path) as smoke:
        return bool(np.isfinite(smoke.smoke).all())


def _labelled(fires: np.ndarray) -> Any:
    data = small_fires().isel(snapshot=[0])
    return data.assign(time_since_ignition=data.time_since_ignition.copy(data=fires))


def _odd(rng: random.Random) -> str:
    return rng.choice((*ODD_NUMBERS, "0.5", "2", "x", "1,2,3", "nan,nan,nan", "a b", "$x", "\n"))


def _train(originals: Path, scratch: Path, rng: random.Random) -> list[str | Path]:
    out = scratch / "out.plume"
    option = rng.choice(TRAIN)
    start = ["--degree", "1"] if rng.random() < 0.5 else ["--preset", "quick", "--layers", "1"]
    return ["train", originals / "fires.nc", "-o", out, *start, f"{option}={_odd(rng)}"]


def _tuned(originals: Path, scratch: Path, rng: random.Random) -> list[str | Path]:
    text = (originals / "tuned.json").read_text()
    path = scratch / "tuned.json"
    content = json.loads(text)
    if rng.random() < 0.5:
        part = content[rng.choice(("settings", "recipe"))]
        key = rng.choice([*part, "new"])
        part[key] = rng.choice((None, True, -1, 0, 1e308, float("nan"), "x", "", [1], {"a": 1}))
        text = json.dumps(content)
    else:
        text = mutate_text(text, rng) if rng.random() < 0.9 else "[" * 100_000
    path.write_text(text, encoding="utf-8")
    out = scratch / "out.plume"
    return ["train", originals / "fires.nc", "-o", out, "--settings", path]


def _tune(originals: Path, scratch: Path, rng: random.Random) -> list[str | Path]:
    few = ["--families=coded", "--degrees=1", "--kernels=", "--std-fractions=0.5", "--confirm=1"]
    given = f"{rng.choice(TUNE)}={_odd(rng)}"
    return ["tune", originals / "fires.nc", "-o", scratch / "out.json", *few, given]


def _evaluate(originals: Path, scratch: Path, rng: random.Random) -> list[str | Path]:
    model, store = originals / "smoke.plume", originals / "fires.nc"
    options = ("--captured", "--baselines", "--memory", "--device")
    given = f"{rng.choice(options)}={_odd(rng)}"
    return ["evaluate", model, store, "-o", scratch / "out.json", "--baselines=none", given]


def _predict(originals: Path, scratch: Path, rng: random.Random) -> list[str | Path]:
    model, store = originals / "smoke.plume", originals / "fires.nc"
    given = f"{rng.choice((*PREDICT, '--memory', '--device', '--drought'))}={_odd(rng)}"
    return ["predict", model, store, "-o", scratch / "out.nc", given]


_ATTEMPTS: tuple[Callable[[Path, Path, random.Random], list[str | Path]], ...] = (
    *(_train, _train, _tuned, _tuned),
    *(_tune, _evaluate, _predict),
)

TARGET = Target("settings", prepare, attempt, trials=1000, limit=60.0)
