"""Fit surrogates: from labelled training snapshots to an operator with its provenance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import xarray as xr

from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.blocks import Runner
from plumecast.compute.device import advice, choose_resources, naming_memory, no_progress
from plumecast.data.covariates import Covariate
from plumecast.data.training import (
    TrainingMatrices,
    provenance,
    training_matrices,
    training_size,
)
from plumecast.operators.coded.fit import CodedSettings, fit_coded_operator
from plumecast.operators.families import FAMILIES
from plumecast.operators.family import Operator
from plumecast.operators.settings import Settings, choose_settings
from plumecast.surrogate.fit_lifted import fit_lifted
from plumecast.surrogate.ranges import training_ranges
from plumecast.surrogate.surrogate import Surrogate


def fit_surrogate(
    train: xr.Dataset,
    preset: str | None = None,
    *,
    degree: int | None = None,
    penalty: float | None = None,
    fire_rank: int | None = None,
    fire_std_fraction: float | None = None,
    fire_variance_fraction: float | None = None,
    smoke_rank: int | None = None,
    smoke_std_fraction: float | None = None,
    smoke_variance_fraction: float | None = None,
    center: bool | None = None,
    kernel: str | None = None,
    length_scale: float | None = None,
    family: str | None = None,
    lift: str | Sequence[str] | None = None,
    products: str | Sequence[str] | None = None,
    age_bins: int | None = None,
    targets: str | Sequence[str] | None = None,
    covariates: str | Sequence[str] | None = None,
    frame: str | None = None,
    layers: int | None = None,
    correction: bool | None = None,
    epochs: int | None = None,
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
    nonnegative: bool = True,
    group_by: str = "ignition_id",
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Callable[[str], None] = no_progress,
) -> Surrogate:
    """Fit a surrogate to training snapshots.

    Give a preset, single settings by keyword, or a preset with single settings replaced.

    The *coded* family computes a PCA of inputs and outputs and fits a polynomial of some `degree`
    between the codes, or another `kernel`: "matern-5/2", "squared-exponential", or a sum such as
    "polynomial-1 + matern-5/2". Its `length_scale` is in units of the typical distance between
    training snapshots; by default it is chosen together with the penalty. The *spectral* family
    (presets "recommended" and "quick") fits translation-equivariant operators in `layers`. If the
    data has several droughts, each has its own weights, regularised towards the common ones. A
    `correction` predicts the residuals from similar training fires (preset "thorough", which also
    has more channels). The networks are the families "unet" and "fno", trained for `epochs`.

    `lift` names the fields that are computed from the input ("age-bins" has `age_bins` of them),
    `products` the scalars of a fire that multiply them, and `targets` the fitted quantities ("log",
    "smoke", "footprint"). `covariates` are scalars of the snapshots that are further inputs;
    predictions then need them. `frame` "wind" rotates fields with the wind of each snapshot,
    "wind-stretch" also scales them, and "auto" decides by out-of-fold errors.

    `fire_*` truncates the basis of the inputs and `smoke_*` that of the outputs, whatever their
    names. If neither the preset nor `penalty` gives the penalty, it is chosen in closed form by
    leaving out one group of the grouping coordinate `group_by` at a time.

    `device` is where arrays are computed: "cpu", "cuda" (PyTorch) or "cupy"; the fitted surrogate
    is on the host. `progress` is called with each step of a long fit. With `memory` ("2GB") the
    snapshots stay in their store and are read in blocks; the result is the same up to rounding.
    With a `runner` (`pc.cluster`) the workers of a cluster compute the blocks, each within
    `memory`; networks are trained in this process.
    """
    settings = choose_settings(
        preset,
        family=family,
        lift=lift,
        products=products,
        age_bins=age_bins,
        targets=targets,
        covariates=covariates,
        frame=frame,
        layers=layers,
        correction=correction,
        epochs=epochs,
        degree=degree,
        penalty=penalty,
        center=center,
        kernel=kernel,
        length_scale=length_scale,
        fire={
            "rank": fire_rank,
            "std_fraction": fire_std_fraction,
            "variance_fraction": fire_variance_fraction,
        },
        smoke={
            "rank": smoke_rank,
            "std_fraction": smoke_std_fraction,
            "variance_fraction": smoke_variance_fraction,
        },
    )
    return fit_with_settings(
        train,
        settings,
        inputs=inputs,
        outputs=outputs,
        nonnegative=nonnegative,
        group_by=group_by,
        device=device,
        memory=memory,
        runner=runner,
        progress=progress,
    )


def fit_with_settings(
    train: xr.Dataset,
    settings: Settings,
    *,
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
    nonnegative: bool = True,
    group_by: str = "ignition_id",
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Callable[[str], None] = no_progress,
) -> Surrogate:
    """`fit_surrogate` with complete settings."""
    size = training_size(train, inputs, outputs)
    cluster_memory = FAMILIES[settings.family].cluster_memory
    resources = choose_resources(
        device, memory, runner, progress, size=size, cluster_memory=cluster_memory
    )
    data = training_matrices(
        train,
        inputs,
        outputs,
        stored=resources.limit is not None,
        by=group_by if settings.is_plain else None,
        runner=runner,
    )
    described: dict[str, Any] = {"settings": settings.record(), "nonnegative": nonnegative}
    with naming_memory(resources.device, lambda: advice(resources, size)):
        if not settings.is_plain:
            found = fit_lifted(data, settings, group_by, resources)
            return label_operator(
                found.operator,
                data,
                chosen=found.chosen,
                scenario=found.scenario,
                covariates=found.covariates,
                runner=runner,
                **described,
            )
        assert isinstance(settings.own, CodedSettings)
        groups = data.groups(group_by) if settings.own.leaves_out else []
        operator, chosen = fit_coded_operator(
            data.inputs,
            data.outputs,
            settings.own,
            resources,
            groups=groups,
            names=(", ".join(data.input_layout.names), ", ".join(data.output_layout.names)),
        )
    if groups:
        chosen["leave_out"] = group_by
    return label_operator(operator, data, chosen=chosen, runner=runner, **described)


def label_operator(
    operator: Operator,
    data: TrainingMatrices,
    *,
    settings: dict[str, Any] | None = None,
    chosen: dict[str, Any] | None = None,
    nonnegative: bool = True,
    scenario: str | None = None,
    covariates: tuple[Covariate, ...] = (),
    ranges: bool = True,
    runner: Runner | None = None,
) -> Surrogate:
    """Wrap an operator between training matrices as a surrogate, with its provenance.

    With `ranges` it records what the training fires cover, so that predictions beyond are flagged.
    """
    covered = {"ranges": training_ranges(data, operator, runner)} if ranges else {}
    return Surrogate(
        inputs=data.input_layout,
        outputs=data.output_layout,
        operator=operator,
        nonnegative=nonnegative,
        settings=settings or {},
        training={**provenance(data.snapshots), **covered, **(chosen or {})},
        scenario=scenario,
        covariates=covariates,
    )


def wrap_operator(
    operator: Operator,
    train: xr.Dataset,
    *,
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
    nonnegative: bool = True,
) -> Surrogate:
    """Wrap an operator of your own as a surrogate that predicts and is scored like any other.

    The operator maps (M, N) rows of flattened inputs to (M, Ñ) rows of outputs. `train` are the
    snapshots it was fitted to: predictions get their grid, and scoring on their ignitions raises an
    error.
    """
    return label_operator(
        operator, training_matrices(train, inputs, outputs), nonnegative=nonnegative
    )
