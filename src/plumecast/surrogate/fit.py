"""Fit surrogates: from labelled training snapshots to an operator with its provenance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.arrays import Array, Rows
from plumecast.compute.blocks import Runner, whole
from plumecast.compute.device import naming_memory
from plumecast.data.training import TrainingMatrices, provenance, training_matrices, training_size
from plumecast.operators.coded.memory import Placement, choose_placement
from plumecast.operators.coded.operator import Operator
from plumecast.operators.lifted import PlumeChoices
from plumecast.operators.pca import Basis
from plumecast.operators.settings import Settings, choose_settings
from plumecast.surrogate.fit_coded import fit_code_map, fit_coded, fit_side
from plumecast.surrogate.fit_lifted import PlumeData, PlumeFit, fit_plume
from plumecast.surrogate.surrogate import Surrogate

CLUSTER_MEMORY, SPECTRAL_CLUSTER_MEMORY = "1GB", "16GB"
"""Memory of each block's process where a cluster works on them and no limit is given; the systems
of the spectral family, which are held here, are larger than its blocks."""


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
    progress: Callable[[str], None] = lambda step: None,
) -> Surrogate:
    """Fit a surrogate to training snapshots.

    The *coded* family: PCA of both sides, then a polynomial of the codes of some `degree`, or
    another `kernel`: "matern-5/2", "squared-exponential", or a sum such as
    "polynomial-1 + matern-5/2". Its `length_scale` is in units of the typical distance between
    training snapshots; without one it is chosen together with the penalty. The *spectral* family
    (presets "recommended" and "quick"): equivariant operators in `layers`, one per drought where
    the data has several, each drawn to what all have in common; needs `group_by` to leave fires
    out. A `correction` adds what it left over for the training fires most alike (preset "thorough",
    which also has more channels). Networks: family "unet" or "fno", in `epochs`.

    `lift` names the fields made of the input ("age-bins" has `age_bins` of them), `products` the
    scalars of a fire that multiply them, `targets` what is fitted ("log", "smoke", "footprint").
    `covariates` are scalars of the snapshots that join the operator; predictions then need them.
    `frame` "wind" turns fields with the wind of each snapshot, "wind-stretch" also stretches them,
    "auto" turns where that serves fires that were left out.

    A preset, every choice by keyword, or a preset with single choices replaced. `fire_*` truncates
    the input basis and `smoke_*` the output basis, whatever the variables are called. Without a
    `penalty` (and with a preset that leaves it open) it is chosen by leaving out one `group_by`
    at a time, in closed form.

    `device` says where the arithmetic runs: "cpu", "cuda" (PyTorch) or "cupy"; the surrogate comes
    back as NumPy's. `progress` hears the steps of a long fit. With `memory` ("2GB") the snapshots
    stay in their store and are read by blocks; the result is the same up to rounding. A `runner`
    (`pc.cluster`) has the blocks worked on by the processes of a cluster, each within `memory`;
    networks are trained here.
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
    return _fit(
        train,
        settings,
        (inputs, outputs),
        nonnegative=nonnegative,
        group_by=group_by,
        device=device,
        memory=memory,
        runner=runner,
        progress=progress,
    )


def _fit(
    train: xr.Dataset,
    settings: Settings,
    variables: tuple[str | Sequence[str], str | Sequence[str]],
    *,
    nonnegative: bool,
    group_by: str,
    device: str,
    memory: str | int | None,
    runner: Runner | None,
    progress: Callable[[str], None],
) -> Surrogate:
    """Fit with every choice made: where the arrays live, the matrices, the operator."""
    plain = is_plain(settings)
    if runner is not None:
        coded = settings.family == "coded"
        memory = memory or (CLUSTER_MEMORY if coded else SPECTRAL_CLUSTER_MEMORY)
        if device != "cpu":
            raise PlumecastError(f"give a runner or device '{device}', not both")
    size = training_size(train, *variables)
    place = choose_placement(device, memory, *size)
    data = training_matrices(
        train,
        *variables,
        stored=place.limit is not None,
        by=group_by if plain else None,
        runner=runner,
    )
    record: dict[str, Any] = {
        "inputs": data.input_layout,
        "outputs": data.output_layout,
        "nonnegative": nonnegative,
        "settings": asdict(settings),
    }
    with naming_memory(place.device, place.advice(*size)):
        if plain:
            operator, chosen = fit_coded(data, settings, group_by, place)
            training = {**provenance(train), **chosen}
            return Surrogate(operator=operator, training=training, **record)
        found = _fit_lifted(data, settings, group_by, place, progress)
    return Surrogate(
        operator=found.operator,
        training={**provenance(train), **found.chosen},
        scenario=found.scenario,
        covariates=found.covariates,
        **record,
    )


def is_plain(settings: Settings) -> bool:
    """Whether a surrogate is the paper's: fields encoded as they are, smoke from their codes."""
    plain = settings.targets == ("smoke",) and not settings.lift and not settings.covariates
    return plain and settings.family == "coded" and settings.frame == "map"


def _fit_lifted(
    data: TrainingMatrices,
    settings: Settings,
    group_by: str,
    place: Placement,
    progress: Callable[[str], None],
) -> PlumeFit:
    groups = np.empty(data.inputs.shape[0], dtype=np.int64)
    rows_of = data.groups(group_by)
    for number, rows in enumerate(rows_of):
        groups[rows] = number
    if len(rows_of) < 2:
        raise PlumecastError(
            f"this surrogate leaves fires out to choose its penalties: it needs at least 2 "
            f"'{group_by}', the training data has {len(rows_of)}"
        )

    def encode_side(side: str, matrix: Rows, held: int) -> tuple[Basis, Array]:
        rule = settings.fire if side == "inputs" else settings.smoke
        layout = data.input_layout if side == "inputs" else data.output_layout
        rows = place.hold(whole(matrix) if place.limit is None else matrix)
        beside = place.beside(held)
        basis = fit_side(rows, rule, settings.center, layout, beside)
        return basis, beside.codes(basis, rows)

    def fit_map(codes: Array, targets: Array, parts: list[Array], held: int) -> Operator:
        copied = codes.nbytes + targets.nbytes
        return fit_code_map(codes, targets, settings, parts, place.beside(held + copied))[0]

    choices = PlumeChoices(
        family=settings.family,
        lift=settings.lift or ("identity",),
        products=settings.products,
        bins=settings.age_bins,
        targets=settings.targets,
        layers=settings.layers,
        correction=settings.correction,
        epochs=settings.epochs,
        encode_side=encode_side,
        fit_map=fit_map,
        device="cpu" if place.device.is_host else place.device.name,
    )
    fields = (*data.input_layout.fields, *data.output_layout.fields)
    snapshots = PlumeData(data.snapshots, fields, *data.on_grids(), groups)
    return fit_plume(snapshots, settings, choices, place, progress)
