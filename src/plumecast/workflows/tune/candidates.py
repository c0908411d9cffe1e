"""What `tune` tries: candidates, which are named sets of keywords of `fit_surrogate`, and folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.names import SNAPSHOT, WIND
from plumecast.base.values import setting
from plumecast.compute.arrays import Array
from plumecast.compute.resources import DEFAULT_BUDGET
from plumecast.data.covariates import own_covariates, own_winds, read_wind
from plumecast.data.layout import fit_layout
from plumecast.data.training import TrainingMatrices, field_names, training_matrices
from plumecast.operators.coded.fit import PAPER_TRUNCATION, CodedSettings, fit_code_map
from plumecast.operators.coded.kernels import check_kernel, monomial_count
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.family import fold_numbers
from plumecast.operators.lift import field_count, product_count
from plumecast.operators.neural.map import check_torch
from plumecast.operators.pca import Basis, Truncation, fit_truncated_basis, rank_for_std
from plumecast.operators.settings import NETWORKS, Settings, choose_settings
from plumecast.operators.spectral.fit import SpectralSettings
from plumecast.operators.targets import BLENDED
from plumecast.surrogate.fit import fit_surrogate, label_operator
from plumecast.surrogate.surrogate import Surrogate

STD_FRACTIONS = (0.5, 0.7, 0.8, 0.9, 0.95)
"""Shares of Σσ tried for the input basis; ranks are limited by MAX_RANK."""

MAX_RANK = {1: 2000, 2: 400, 3: 200, 4: 100}
"""Largest input rank tried at each degree; products of codes beyond it are noise."""

KERNELS = ("matern-5/2", "polynomial-1 + matern-5/2", "squared-exponential")
"""Kernels that are tried, each at every second rank, because distances hardly depend on the last
modes."""

SPECTRAL: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "recommended": {},
        "1 layer": {"layers": 1},
        "2 layers": {"layers": 2},
        "5 age bins": {"age_bins": 5},
        "position": {"lift": ("age-bins", "burned", "position")},
        "saturating": {"lift": ("saturating", "burned")},
        "no product": {"products": ()},
        "hours and area": {"products": ("hours", "area")},
        "corrected": {"correction": True},
        "quick": {"preset": "quick"},
        "thorough": {"preset": "thorough"},
    }
)
"""Changes of the preset "recommended" that are tried on any data, one at a time, and the presets
"quick" and "thorough"."""

LIFT = ("age-bins", "burned")

LIFTED_MAPS: Mapping[str, dict[str, Any]] = MappingProxyType(
    {"linear": {"degree": 1}, "matern-5/2": {"kernel": "polynomial-1 + matern-5/2"}}
)
LIFTED_TARGETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"log": ("log",), "all targets": BLENDED}
)
"""Maps and targets of the coded family on lifted fields; all pairs are tried."""

CLOSED_FORM = ("coded", "lifted", "spectral")
"""Groups of candidates other than networks; "lifted" is the coded family on lifted fields."""

KERNEL_COST, SPECTRAL_COST, CORRECTION_COST, NETWORK_COST = 8.0, 5.0, 80.0, 1e4
"""Rough times of a fit relative to that of a polynomial: of a kernel, of one channel in a spectral
layer with all targets, of a correction, of a network. They only determine the order of trying."""

FRAME_COST = 2.0
"""About how many times more cells the wind frame has than the map."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A candidate before it is tried: the keywords of `fit_surrogate` and a name for them."""

    name: str
    family: str
    choices: dict[str, Any]
    cost: float  # relative


def spectral_plans(*, winds: bool, covariates: Sequence[str]) -> list[Plan]:
    """The recommended preset and single changes of it.

    If `winds` differ between fires, the wind frames are tried too. The `covariates` in which fires
    differ are tried one at a time, but those of the wind together and on the map.
    """
    changes = dict(SPECTRAL)
    if winds:
        changes |= {f"{frame} frame": {"frame": frame} for frame in ("wind", "wind-stretch")}
    wind = tuple(name for name in covariates if name in WIND)
    if wind:
        changes["wind as covariate"] = {"covariates": wind, "frame": "map"}
    for name in covariates:
        if name not in wind:
            changes[f"{name} as covariate"] = {"covariates": (name,)}
    plans = []
    for name, change in changes.items():
        choices = {"preset": "recommended", **change}
        cost = _spectral_cost(choose_settings(**choices))
        plans.append(Plan(f"spectral, {name}", "spectral", choices, cost))
    return plans


def _spectral_cost(settings: Settings) -> float:
    scalars = 1 + product_count(settings.products) + len(settings.covariates)
    channels = field_count(settings.lift, settings.age_bins) * scalars
    framed = FRAME_COST if settings.frame.startswith("wind") else 1.0
    spectral = settings.family_settings
    assert isinstance(spectral, SpectralSettings)
    corrected = CORRECTION_COST if spectral.correction else 0.0
    share = len(settings.targets) / len(BLENDED)
    return SPECTRAL_COST * spectral.layers * channels * framed * share + corrected


def priority(plan: Plan) -> tuple[bool, float]:
    """Sort key of the order of trying: candidates of the caller, `recommended`, then by cost.

    No budget thus leaves out the candidate that is most likely to be the best.
    """
    later = plan.cost > 0.0 and plan.choices != {"preset": "recommended"}
    return later, plan.cost


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What `tune_surrogate` tries.

    `families` are "coded" (ranks, degrees and kernels), "lifted" (the coded family on lifted
    fields), "spectral" (the recommended preset and single changes of it), "unet" and "fno".
    `candidates` are your own: keywords of `fit_surrogate` by a name of your choice.
    `degrees`, `kernels` and `std_fractions` (shares of Σσ of the input) are those of the coded
    family; `smoke` truncates the basis of its output.
    """

    families: Sequence[str] = setting(CLOSED_FORM, "Families to try, separated by commas.")
    candidates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    degrees: Sequence[int] = setting((1, 2, 3), "Degrees to try, separated by commas.")
    kernels: Sequence[str] = setting(KERNELS, "Kernels to try, separated by commas; '' for none.")
    std_fractions: Sequence[float] = setting(STD_FRACTIONS, "Shares of Σσ of the input to try.")
    smoke: Truncation = PAPER_TRUNCATION

    def __post_init__(self) -> None:
        families = (*CLOSED_FORM, *NETWORKS)
        unknown = [name for name in self.families if name not in families]
        if unknown:
            raise PlumecastError(
                f"family '{unknown[0]}' is unknown; choose from {', '.join(families)}"
            )

    def plans(self, train: xr.Dataset, inputs: str | Sequence[str], group_by: str) -> list[Plan]:
        """Everything to try on some training snapshots, in the order of trying."""
        networks = [name for name in NETWORKS if name in self.families]
        if networks:
            check_torch()
        plans = [Plan(name, "given", dict(one), 0.0) for name, one in self.candidates.items()]
        if "spectral" in self.families:
            groups = train[group_by].values
            try:
                winds = own_winds(train, groups, read_wind(train))
            except PlumecastError:  # not finite: the candidates that need them will fail
                winds = False
            plans += spectral_plans(winds=winds, covariates=own_covariates(train, groups))
        if "lifted" in self.families:
            plans += self._lifted_plans()
        plans += [Plan(name, name, {"family": name}, NETWORK_COST) for name in networks]
        if "coded" in self.families:
            plans += self._coded_plans(train, inputs)
        if not plans:
            raise PlumecastError("there is nothing to try; name a family or give candidates")
        return sorted(plans, key=priority)

    def _coded_plans(self, train: xr.Dataset, inputs: str | Sequence[str]) -> list[Plan]:
        """Polynomials and kernels between codes, at the input ranks that the shares of Σσ give."""
        if not self.std_fractions or not (self.degrees or self.kernels):
            raise PlumecastError(
                "give at least one of std_fractions to try, and one of degrees or kernels"
            )
        fires = fit_layout(train, field_names(inputs)).to_matrix(train)
        basis = fit_truncated_basis(fires, Truncation(std_fraction=max(self.std_fractions)))
        ranks = sorted({rank_for_std(basis.spectrum, share) for share in self.std_fractions})
        plans = []
        for degree in self.degrees:
            if degree not in MAX_RANK:
                raise ArgumentError("degree", degree, problem=f"is not one of 1…{max(MAX_RANK)}")
            for rank in sorted({min(r, MAX_RANK[degree]) for r in ranks}):
                choices = {"degree": degree, "fire_rank": rank, **self._output_rule()}
                size = min(monomial_count(rank, degree) / train.sizes[SNAPSHOT], 1.0)
                plans.append(Plan(f"degree {degree}, rank {rank}", "coded", choices, size))
        for kernel in self.kernels:
            check_kernel(kernel, None)
            for rank in ranks[::-2]:
                choices = {"kernel": kernel, "fire_rank": rank, **self._output_rule()}
                plans.append(Plan(f"{kernel}, rank {rank}", "coded", choices, KERNEL_COST))
        return plans

    def _lifted_plans(self) -> list[Plan]:
        """The coded family on lifted fields, with one target and with all targets."""
        plans = []
        for (map_name, of_map), (name, targets) in product(
            LIFTED_MAPS.items(), LIFTED_TARGETS.items()
        ):
            choices = {"lift": LIFT, "targets": targets, **of_map, **self._output_rule()}
            cost = (1.0 if "degree" in of_map else KERNEL_COST) * (1 + len(targets))
            plans.append(Plan(f"lifted {map_name}, {name}", "lifted", choices, cost))
        return plans

    def _output_rule(self) -> dict[str, Any]:
        rules = ("rank", "std_fraction", "variance_fraction")
        shares = {f"smoke_{rule}": getattr(self.smoke, rule) for rule in rules}
        return {name: value for name, value in shares.items() if value is not None}


def fold_rows(labels: Array, folds: int, by: str) -> list[Array]:
    """Rows of every fold: groups, sorted by label, are assigned to the folds in turn."""
    groups = np.unique(np.asarray(labels).astype(str)).size
    if folds < 2:
        raise ArgumentError("folds", folds, "give at least 2", problem="leaves nothing out")
    if groups < folds:
        raise PlumecastError(
            f"{groups} {by}(s) in training cannot make {folds} folds; add fires or lower folds"
        )
    if groups - -(-groups // folds) < 2:
        raise PlumecastError(
            f"{folds} folds of {groups} {by}(s) leave a single one to train on, but choosing "
            "a penalty needs two; add fires or raise folds"
        )
    numbers = fold_numbers(labels, folds)
    return [np.flatnonzero(numbers == fold) for fold in range(folds)]


@dataclass(frozen=True)
class Fold:
    """A fold that is left out, and the rest to train on; the rest is encoded once."""

    whole: xr.Dataset
    rows: Array  # of the fold, which is left out
    fields: Mapping[str, Any]  # inputs, outputs and group_by of `fit_surrogate`
    fire: Truncation  # keeps at least as many modes as every candidate
    smoke: Truncation

    @cached_property
    def held_out(self) -> xr.Dataset:
        """The snapshots left out."""
        return self.whole.isel({SNAPSHOT: self.rows})

    @property
    def rest(self) -> xr.Dataset:
        """The snapshots to train on."""
        others = np.setdiff1d(np.arange(self.whole.sizes[SNAPSHOT]), self.rows)
        return self.whole.isel({SNAPSHOT: others})

    @cached_property
    def encoded(self) -> tuple[TrainingMatrices, Basis, Basis, Array, Array]:
        """The snapshots to train on, the bases of inputs and outputs, and the codes in these."""
        data = training_matrices(self.rest, self.fields["inputs"], self.fields["outputs"])
        fire = fit_truncated_basis(data.inputs, self.fire)
        smoke = fit_truncated_basis(data.outputs, self.smoke)
        return data, fire, smoke, fire.encode(data.inputs), smoke.encode(data.outputs)

    def fit(self, plan: Plan) -> Surrogate:
        """A candidate fitted to the snapshots that are not left out.

        Coded candidates differ only in the map between the codes, which are computed once.
        """
        if plan.family != "coded":
            return fit_surrogate(self.rest, **self.fields, **plan.choices)
        data, whole, output_basis, codes, targets = self.encoded
        # A fold has fewer snapshots than the whole, and perhaps fewer modes.
        rank = min(plan.choices["fire_rank"], whole.rank)
        settings = CodedSettings(
            **{n: plan.choices[n] for n in ("degree", "kernel") if n in plan.choices}
        )
        groups = data.groups(self.fields["group_by"])
        code_map, _ = fit_code_map(codes[:, :rank], targets, settings, groups, DEFAULT_BUDGET)
        operator = CodedOperator(whole.truncate(rank), code_map, output_basis)
        return label_operator(operator, data, ranges=False)
