"""Fits each method once per run, measures its steps and saves the surrogate on disk."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumecast.base.errors import PlumecastError, require
from plumecast.base.files import write_json
from plumecast.base.version import __version__
from plumecast.operators.baselines import fit_gaussian_process, sample_rows
from plumecast.operators.families import NETWORKS
from plumecast.operators.pca import Truncation
from plumecast.operators.settings import choose_settings
from plumecast.studies.context import Context, Stopwatch, is_baseline
from plumecast.studies.methods.encoding import (
    encodings_of,
    linear_surrogate,
    quadratic_fit,
    quadratic_of,
    quadratic_surrogate,
)
from plumecast.surrogate.baselines import PAPER_STD_FRACTION, fit_baseline
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate

HYPERPARAMETERS = {
    "paper-linear": "r, r̃, α",
    "paper-quadratic": "r, r̃, α, λ",
    "gp-images": "l, α",
    "gp-codes": "l, r, r̃, α",
    "recommended": "λ per ring and layer, blend, α",
    "mean-field": "α",
    "nearest-fire": "α",
}
"""The hyperparameters of each method, in the notation of the paper's table."""

TITLES = {
    "paper-linear": "Linear operator",
    "paper-quadratic": "Quadratic operator",
    "gp-images": "Gaussian process (images)",
    "gp-codes": "Gaussian process (codes)",
    "recommended": "Recommended (spectral)",
    "unet": "U-Net",
    "fno": "Fourier neural operator",
    "spectral-no-physics": "Spectral without physics",
    "spectral-on-map": "Spectral on the map with physics",
    "physics-alone": "Physics alone",
    "mean-field": "Mean field",
    "nearest-fire": "Nearest fire",
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A surrogate and the seconds that its `encoding`, `training` and `tuning` took."""

    surrogate: Surrogate
    seconds: dict[str, float]


def title_of(name: str) -> str:
    """Title of a method in tables and figures."""
    return TITLES.get(name, name)


def neural_methods() -> tuple[str, ...]:
    """Names of the neural networks; raises if PyTorch is not installed."""
    require("torch", "neural", "a neural network")
    return NETWORKS


def fitted(context: Context, name: str) -> Fitted:
    """A method trained on the whole training part: from memory, from disk, or fitted now."""
    return context.once(f"fitting {name}", lambda: _load_or_fit(context, name))


def _load_or_fit(context: Context, name: str) -> Fitted:
    if context.folder is None or is_baseline(name):
        return _fit(context, name)
    where = context.folder / f"{name}.plume"
    mark = _fingerprint(context, name)
    found = _load(where, mark)
    if found is not None:
        return found
    fresh = _fit(context, name)
    fresh.surrogate.save(where)
    record = {"fingerprint": mark, "seconds": fresh.seconds}
    write_json(where.with_suffix(".json"), record)
    return fresh


def _fingerprint(context: Context, name: str) -> str:
    content = [__version__, context.fingerprint, name, choose_settings(**_choice(name)).record()]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]


def _choice(name: str) -> dict[str, Any]:
    return {"family": name} if name in NETWORKS else {"preset": name}


def _load(where: Path, mark: str) -> Fitted | None:
    try:
        record = json.loads(where.with_suffix(".json").read_text(encoding="utf-8"))
        if record["fingerprint"] != mark:
            return None
        return Fitted(load_surrogate(where), dict(record["seconds"]))
    except (OSError, ValueError, KeyError, PlumecastError):
        return None


def _fit(context: Context, name: str) -> Fitted:
    if name == "paper-linear":
        return _fit_linear(context)
    if name == "paper-quadratic":
        return _fit_quadratic(context)
    if name == "gp-codes":
        return _fit_gp_codes(context)
    train = context.split.train
    watch = Stopwatch()
    if is_baseline(name):
        found = watch.time("training", lambda: fit_baseline(name, train, seed=context.seed))
    else:
        by, tell = context.split.by, lambda step: context.tell(f"{name}: {step}")
        found = watch.time(
            "training", lambda: fit_surrogate(train, group_by=by, progress=tell, **_choice(name))
        )
    return Fitted(found, watch.seconds)


def _fit_linear(context: Context) -> Fitted:
    encodings = encodings_of(context)
    watch = Stopwatch()
    found = watch.time("training", lambda: linear_surrogate(encodings))
    return Fitted(found, {"encoding": encodings.seconds, **watch.seconds})


def _fit_quadratic(context: Context) -> Fitted:
    quadratic = quadratic_of(context)
    code_map, seconds = quadratic_fit(quadratic)
    return Fitted(
        quadratic_surrogate(quadratic, code_map, context.split.by),
        {
            "encoding": encodings_of(context).seconds,
            "training": seconds,
            "tuning": quadratic.seconds,
        },
    )


def _fit_gp_codes(context: Context) -> Fitted:
    encodings = encodings_of(context)
    rule = Truncation(std_fraction=PAPER_STD_FRACTION)
    part = encodings.truncate(rule, rule)
    rows = sample_rows(part.input_codes.shape[0], context.seed)
    codes, targets = part.input_codes[rows], part.output_codes[rows]
    watch = Stopwatch()
    code_map = watch.time("training", lambda: fit_gaussian_process(codes, targets))
    found = part.surrogate(code_map, {"preset": "gp-codes", "seed": context.seed})
    return Fitted(found, {"encoding": encodings.seconds, **watch.seconds})
