"""The methods that studies compare: each is fitted once per run, timed step by step and saved.

Coded surrogates come from one PCA of fire and smoke: a smaller rank is a slice of the same codes,
another penalty a division in the same eigendecomposition. No study refits a basis.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError, require
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
    PolynomialPath,
    fit_linear_map,
    fit_polynomial_map,
    polynomial_path,
)
from plumecast.operators.family import NOTHING, Conditions, Operator
from plumecast.operators.pca import Basis, Truncation, fit_truncated_basis
from plumecast.operators.ridge import PenaltyScan, penalty_grid, scan_penalties
from plumecast.operators.settings import NETWORKS, PRESETS, choose_settings
from plumecast.paper.context import Context, digest, read_kept, timed, write_kept
from plumecast.scores.footprint import smoke_threshold
from plumecast.surrogate.baselines import BASELINES, PAPER_STD_FRACTION, fit_baseline
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
        r = min(fire.count(self.inputs.spectrum), self.inputs.rank)
        q = min(smoke.count(self.outputs.spectrum), self.outputs.rank)
        codes = self.input_codes[:, :r], self.output_codes[:, :q]
        bases = self.inputs.truncate(r), self.outputs.truncate(q)
        return Encodings(self.data, *bases, *codes, self.seconds)

    def surrogate(self, code_map: CodeMap, settings: dict[str, Any], **training: Any) -> Surrogate:
        """The surrogate that encodes the fire, applies `code_map` and decodes the smoke."""
        ranks = {"fire_rank": self.inputs.rank, "smoke_rank": self.outputs.rank}
        operator = CodedOperator(self.inputs, code_map, self.outputs)
        return label_operator(operator, self.data, settings=settings, chosen=ranks | training)


def encodings_of(context: Context) -> Encodings:
    """PCA of fire and smoke of the training part with its codes, computed once per run."""

    def encode() -> Encodings:
        data = training_matrices(context.split.train, FIRE, SMOKE)
        rule, start = Truncation(std_fraction=LARGEST_STD), time.perf_counter()
        inputs = fit_truncated_basis(data.inputs, rule)
        outputs = fit_truncated_basis(data.outputs, rule)
        codes, targets = inputs.encode(data.inputs), outputs.encode(data.outputs)
        return Encodings(data, inputs, outputs, codes, targets, time.perf_counter() - start)

    return context.once("encoding both sides", encode)


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
    """Penalties of the paper's quadratic operator by leave-one-group-out, once per run."""

    def scan() -> Quadratic:
        settings = PRESETS["paper-quadratic"].family_settings
        part = encodings_of(context).truncate(settings.fire, settings.smoke)
        codes, targets = contiguous(part.input_codes), contiguous(part.output_codes)
        start = time.perf_counter()
        path = polynomial_path(codes, targets, settings.degree)
        groups = part.data.groups(context.split.by)
        scanned = scan_penalties(path.path, penalty_grid(path.mean_diagonal), groups)
        return Quadratic(part, path, scanned, time.perf_counter() - start)

    return context.once("penalty path", scan)


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
    shape = train[SMOKE].sizes["y"], train[SMOKE].sizes["x"]
    dy, dx = (float(np.mean(np.diff(train[dim].values))) for dim in ("y", "x"))
    load = None if fuel is None else fuel.mean()
    transport = plan_transport(weather, (dy, dx), frame_interval(train), load=load)
    fire, smoke = (np.reshape(matrix[:], (-1, *shape)) for matrix in (data.inputs, data.outputs))
    past = fire_history(train, fire)
    transport = calibrate(
        transport, fire, smoke, weather, threshold=smoke_threshold(smoke), fuel=fuel, history=past
    )
    unit = PhysicsAlone(transport, 1.0, shape)
    conditions = Conditions(weather=weather, fuel=fuel, history=past)
    carried, smoke = unit.predict(data.inputs, conditions), data.outputs
    squares = np.sum(carried**2, axis=1)
    smoky = squares > 0.0
    if not smoky.any():
        raise PlumecastError("no training snapshot has carried smoke; check fires and weather")
    factors = np.sum(carried[smoky] * smoke[smoky], axis=1) / squares[smoky]
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
    if context.folder is None or name in BASELINES:
        return _fit(context, name)
    where = context.folder / f"{name}.plume"
    record = where.with_suffix(".json")
    settings = choose_settings(**_choice(name)).record()
    mark = digest([__version__, context.fingerprint, name, settings])
    seconds = read_kept(record, mark)
    if seconds is not None:
        try:
            return Fitted(load_surrogate(where), seconds)
        except (OSError, ValueError, PlumecastError):
            pass  # damaged: fit it again
    fresh = _fit(context, name)
    fresh.surrogate.save(where)
    write_kept(record, mark, fresh.seconds)
    return fresh


def _choice(name: str) -> dict[str, Any]:
    return {"family": name} if name in NETWORKS else {"preset": name}


def _fit(context: Context, name: str) -> Fitted:
    """A method fitted now; the paper's share one PCA."""
    train, by = context.split.train, context.split.by
    if name not in ("paper-linear", "paper-quadratic", "gp-codes"):
        tell = Resources(progress=lambda done, total, what: context.tell(f"{name}: {what}"))

        def fit() -> Surrogate:
            if name in BASELINES:
                return fit_baseline(name, train, seed=context.seed)
            return fit_surrogate(train, group_by=by, resources=tell, **_choice(name))

        made, training = timed(fit)
        return Fitted(made, {"training": training})
    encodings = encodings_of(context)
    seconds = {"encoding": encodings.seconds}
    if name == "paper-linear":
        made, seconds["training"] = timed(lambda: linear_surrogate(encodings))
    elif name == "paper-quadratic":
        quadratic = quadratic_of(context)
        path, penalty = quadratic.path, quadratic.scan.best
        code_map, seconds["training"] = timed(
            lambda: fit_polynomial_map(path.codes, path.targets, degree=2, penalty=penalty)
        )
        seconds["tuning"] = quadratic.seconds
        made = quadratic.part.surrogate(
            code_map, PRESETS[name].record(), penalty=penalty, leave_out=by,
            leave_out_error=min(quadratic.scan.errors),
        )  # fmt: skip
    else:
        rule = Truncation(std_fraction=PAPER_STD_FRACTION)
        part = encodings.truncate(rule, rule)
        rows = sample_rows(part.input_codes.shape[0], context.seed)
        codes, targets = part.input_codes[rows], part.output_codes[rows]
        process, seconds["training"] = timed(lambda: fit_gaussian_process(codes, targets))
        made = part.surrogate(process, {"preset": name, "seed": context.seed})
    return Fitted(made, seconds)
