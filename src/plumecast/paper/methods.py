"""The methods that studies compare: each is fitted once per run, timed step by step and saved.

Coded surrogates come from one PCA of fire and smoke: a smaller rank is a slice of the same codes,
another penalty a division in the same eigendecomposition. No study refits a basis.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError, require
from plumecast.base.files import write_json
from plumecast.base.names import FIRE, SMOKE
from plumecast.base.version import __version__
from plumecast.compute.arrays import Array, array_namespace, contiguous
from plumecast.compute.resources import Resources
from plumecast.data.covariates import weather_known
from plumecast.data.training import TrainingMatrices, training_matrices
from plumecast.operators.baselines import fit_gaussian_process, sample_rows
from plumecast.operators.carried.calibration import calibrate
from plumecast.operators.carried.transport import ColumnTransport, plan_transport
from plumecast.operators.coded.operator import CodedOperator, CodeMap
from plumecast.operators.coded.polynomial_map import (
    DualMap,
    PolynomialPath,
    PrimalMap,
    fit_linear_map,
    fit_polynomial_map,
    polynomial_path,
)
from plumecast.operators.family import NOTHING, Conditions, Operator
from plumecast.operators.pca import Basis, Truncation, fit_truncated_basis
from plumecast.operators.ridge import PenaltyScan, penalty_grid, scan_penalties
from plumecast.operators.settings import NETWORKS, PRESETS, choose_settings
from plumecast.paper.context import Context, Stopwatch, is_baseline
from plumecast.scores.footprint import smoke_threshold
from plumecast.surrogate.baselines import PAPER_STD_FRACTION, fit_baseline
from plumecast.surrogate.fit import fit_surrogate, label_operator
from plumecast.surrogate.load import load_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.weather import (
    fire_history,
    frame_interval,
    fuel_loads,
    weather_series,
)
from plumecast.weather.snapshots import STATE_WEATHER

# -- Coded surrogates from one PCA

LARGEST_STD = 0.99
"""Std fraction that the bases keep; studies use ranks up to it."""


@dataclass(frozen=True, slots=True)
class Encodings:
    """Training matrices, the bases of fire and smoke, and the codes of the training snapshots."""

    data: TrainingMatrices
    inputs: Basis
    outputs: Basis
    input_codes: Array  # (M, r)
    output_codes: Array  # (M, r̃)
    seconds: float  # of the PCA

    def truncate(self, fire: Truncation, smoke: Truncation) -> Encodings:
        """The same encodings cut to the ranks that the two rules give."""
        inputs = self.inputs.truncate(min(fire.count(self.inputs.spectrum), self.inputs.rank))
        outputs = self.outputs.truncate(min(smoke.count(self.outputs.spectrum), self.outputs.rank))
        return replace(
            self,
            inputs=inputs,
            outputs=outputs,
            input_codes=self.input_codes[:, : inputs.rank],
            output_codes=self.output_codes[:, : outputs.rank],
        )

    def surrogate(self, code_map: CodeMap, settings: dict[str, Any], **training: Any) -> Surrogate:
        """The surrogate that encodes the fire, applies `code_map` and decodes the smoke."""
        ranks = {"fire_rank": self.inputs.rank, "smoke_rank": self.outputs.rank}
        operator = CodedOperator(self.inputs, code_map, self.outputs)
        return label_operator(operator, self.data, settings=settings, chosen=ranks | training)


def encodings_of(context: Context) -> Encodings:
    """The encodings of the training part, computed once per run."""
    return context.once("encoding both sides", lambda: encode_both(context.split.train))


def encode_both(train: xr.Dataset) -> Encodings:
    """PCA of fire and smoke, with the codes of the training snapshots."""
    data = training_matrices(train, FIRE, SMOKE)
    rule = Truncation(std_fraction=LARGEST_STD)
    start = time.perf_counter()
    inputs = fit_truncated_basis(data.inputs, rule)
    outputs = fit_truncated_basis(data.outputs, rule)
    codes, targets = inputs.encode(data.inputs), outputs.encode(data.outputs)
    return Encodings(data, inputs, outputs, codes, targets, time.perf_counter() - start)


def linear_surrogate(encodings: Encodings) -> Surrogate:
    """The paper's linear operator on slices of the PCA (Theorem 1)."""
    settings = PRESETS["paper-linear"]
    part = encodings.truncate(settings.family_settings.fire, settings.family_settings.smoke)
    code_map = fit_linear_map(part.input_codes, part.inputs.singular_values, part.output_codes)
    return part.surrogate(code_map, settings.record(), penalty=0.0)


@dataclass(frozen=True, slots=True)
class Quadratic:
    """The paper's quadratic operator at every penalty, from one eigendecomposition."""

    part: Encodings  # cut to the ranks of the preset
    path: PolynomialPath
    scan: PenaltyScan
    seconds: float  # of the eigendecomposition and the leave-one-group-out scan


def quadratic_of(context: Context) -> Quadratic:
    """The penalty path of the paper's quadratic operator, computed once per run."""
    by = context.split.by
    return context.once("penalty path", lambda: quadratic_path(encodings_of(context), by))


def quadratic_path(encodings: Encodings, by: str) -> Quadratic:
    """Eigendecompose the quadratic kernel and score the penalties by leave-one-group-out."""
    settings = PRESETS["paper-quadratic"].family_settings
    part = encodings.truncate(settings.fire, settings.smoke)
    codes, targets = contiguous(part.input_codes), contiguous(part.output_codes)
    start = time.perf_counter()
    path = polynomial_path(codes, targets, settings.degree)
    grid = penalty_grid(path.mean_diagonal)
    scan = scan_penalties(path.path, grid, encodings.data.groups(by))
    return Quadratic(part, path, scan, time.perf_counter() - start)


def quadratic_fit(quadratic: Quadratic) -> tuple[PrimalMap | DualMap, float]:
    """The quadratic map at its best penalty by one factorisation, and the seconds it took."""
    start = time.perf_counter()
    code_map = fit_polynomial_map(
        quadratic.path.codes, quadratic.path.targets, degree=2, penalty=quadratic.scan.best
    )
    return code_map, time.perf_counter() - start


def quadratic_surrogate(quadratic: Quadratic, code_map: PrimalMap | DualMap, by: str) -> Surrogate:
    """The quadratic map as a surrogate."""
    return quadratic.part.surrogate(
        code_map,
        PRESETS["paper-quadratic"].record(),
        penalty=quadratic.scan.best,
        leave_out=by,
        leave_out_error=min(quadratic.scan.errors),
    )


# -- Physics alone

PHYSICS_ALONE = "physics-alone"


@dataclass(frozen=True, slots=True)
class PhysicsAlone(Operator):
    """Cheap physics without learning: smoke that the weather of every fire carries, times a factor.

    The constants of the carried smoke are calibrated on the training snapshots; it is in any unit.
    The factor c makes it smoke: the median, over the training snapshots, of the least-squares
    factor Σpg / Σp² of each.
    """

    transport: ColumnTransport
    factor: float
    shape: tuple[int, int]

    @property
    def needs_weather(self) -> bool:
        """Always."""
        return True

    @property
    def uses_fuel(self) -> bool:
        """Whether smoke is released by the fuel load of every cell."""
        return self.transport.load is not None

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) ages → (M, N) smoke."""
        if given.weather is None:
            raise PlumecastError(f"carried smoke needs the weather of every fire; {STATE_WEATHER}")
        xp = array_namespace(inputs)
        fire = xp.reshape(inputs, (-1, *self.shape))
        carried = self.transport.smoke(fire, given.weather, given.fuel, given.history)[:, 0]
        return self.factor * xp.astype(xp.reshape(carried, inputs.shape), xp.float64)


def fit_physics_alone(train: xr.Dataset) -> Surrogate:
    """Fit the factor of carried smoke; raises if the weather is unknown."""
    if not weather_known(train):
        raise PlumecastError(f"carried smoke needs the weather of every fire; {STATE_WEATHER}")
    data = training_matrices(train, FIRE, SMOKE)
    weather, fuel = weather_series(train), fuel_loads(train, ("y", "x"))
    rows, columns = train[SMOKE].sizes["y"], train[SMOKE].sizes["x"]
    spacing = [float(np.mean(np.diff(train[dim].values))) for dim in ("y", "x")]
    transport = plan_transport(
        weather,
        (spacing[0], spacing[1]),
        frame_interval(train),
        load=None if fuel is None else fuel.mean(),
    )
    grid = (-1, rows, columns)
    fire, smoke = (np.reshape(matrix[:], grid) for matrix in (data.inputs, data.outputs))
    tau = smoke_threshold(smoke)
    past = fire_history(train, fire)
    transport = calibrate(transport, fire, smoke, weather, threshold=tau, fuel=fuel, history=past)
    unit = PhysicsAlone(transport, 1.0, (rows, columns))
    given = Conditions(weather=weather, fuel=fuel, history=past)
    carried, smoke = unit.predict(data.inputs, given), data.outputs
    squares = np.sum(carried**2, axis=1)
    known = squares > 0.0
    if not known.any():
        raise PlumecastError("no training snapshot has carried smoke; check fires and weather")
    factors = np.sum(carried[known] * smoke[known], axis=1) / squares[known]
    operator = replace(unit, factor=float(np.median(factors)))
    chosen = {"factor": operator.factor, "physics": "calibrated", "frame": "map"}
    return label_operator(operator, data, settings={"preset": PHYSICS_ALONE}, chosen=chosen)


# -- Every method by its name

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
        by = context.split.by
        tell = Resources(progress=lambda done, total, what: context.tell(f"{name}: {what}"))
        found = watch.time(
            "training", lambda: fit_surrogate(train, group_by=by, resources=tell, **_choice(name))
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
