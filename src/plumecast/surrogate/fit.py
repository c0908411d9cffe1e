"""Fit surrogates: from labelled training snapshots to an operator with its provenance."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.names import DOSE_SCALE, FIRE, SMOKE, SNAPSHOT, is_smoke
from plumecast.compute.arrays import Array, read_rows
from plumecast.compute.blocks import Runner, row_blocks
from plumecast.compute.device import advice, choose_budget, naming_memory, no_progress
from plumecast.data.conditions.covariates import Covariate
from plumecast.data.layout import Layout
from plumecast.data.samples import read_samples
from plumecast.data.training import (
    TrainingMatrices,
    provenance,
    training_matrices,
    training_size,
)
from plumecast.operators.coded.fit import CodedSettings, fit_coded_operator
from plumecast.operators.coded.update import coded_sums
from plumecast.operators.families import FAMILIES
from plumecast.operators.family import Operator
from plumecast.operators.settings import Settings, choose_settings, for_signed
from plumecast.scores.quantities import dose_table
from plumecast.surrogate.covered.ranges import training_ranges
from plumecast.surrogate.fit_lifted import fit_lifted
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.updating.new_fires import updatable_record
from plumecast.weather.complete import complete_weather
from plumecast.weather.snapshots import with_mean_winds


class SignWarning(UserWarning):
    """Training outputs are negative where the settings expect non-negative ones."""


def fit_surrogate(
    train: xr.Dataset | Array,
    y: Array | str | None = None,
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
    physics: str | None = None,
    layers: int | None = None,
    correction: bool | None = None,
    epochs: int | None = None,
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
    nonnegative: bool | None = None,
    updatable: bool = False,
    group_by: str | Array = "ignition_id",
    sample_dim: str | None = None,
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Callable[[str], None] = no_progress,
) -> Surrogate:
    """Fit a surrogate to training snapshots.

    Give a preset, single settings by keyword, or a preset with single settings replaced:
    `fit_surrogate(train, "recommended", layers=2)`.

    `train` is a Dataset, or the inputs (M, *grid) as an array, with the outputs (M, *grid) as `y`:
    `fit_surrogate(X, y, "recommended")`. Arrays are NumPy, PyTorch or CuPy arrays, or DataArrays.
    The sample dimension of a Dataset is `sample_dim`, by default "snapshot" or else the first
    dimension of all variables.

    The *coded* family computes a PCA of inputs and outputs and fits a polynomial of some `degree`
    between the codes, or another `kernel`: "matern-5/2", "squared-exponential", or a sum such as
    "polynomial-1 + matern-5/2". Its `length_scale` is in units of the typical distance between
    training snapshots; by default it is chosen together with the penalty. The *spectral* family
    (presets "recommended" and "quick") fits translation-equivariant operators in `layers`. If the
    data has several droughts, each has its own weights, regularised towards the common ones. A
    `correction` predicts the residuals from similar training fires (preset "thorough", which also
    has more channels). The networks are the families "unet", "fno" and "deeponet",
    trained for `epochs`.

    `lift` names the fields that are computed from the input ("age-bins" has `age_bins` of them),
    `products` the scalars of a fire that multiply them, and `targets` the fitted quantities ("log",
    "smoke", "footprint"). `covariates` are scalars of the snapshots that are further inputs;
    predictions then need them. `frame` "wind" rotates fields with the wind of each snapshot,
    "wind-stretch" also scales them, and "auto" decides by out-of-fold errors. `physics` adds smoke
    that the weather of every fire carries to the channels ("column", "layers" for three parts of
    the column, or "calibrated" for a column whose constants are chosen on the training fires);
    "auto" decides by out-of-fold errors where the weather is known.

    `fire_*` truncates the basis of the inputs and `smoke_*` that of the outputs, whatever their
    names. If neither the preset nor `penalty` gives the penalty, it is chosen in closed form by
    leaving out one group of the grouping coordinate `group_by` at a time. It may also be an array
    of M labels. Samples of arrays, and samples along another dimension than "snapshot" without that
    coordinate, are groups of their own.

    With `updatable` the surrogate keeps what new fires can be added to without a new fit (see
    `Surrogate.update`): sums or factors, which make its file several times as large.

    With `nonnegative`, negative predictions are set to zero. By default this is so if no training
    output is negative.

    `device` is where arrays are computed: "cpu", "cuda" (PyTorch) or "cupy"; the fitted surrogate
    is on the host. `progress` is called with each step of a long fit. With `memory` ("2GB") the
    snapshots stay in their store and are read in blocks; the result is the same up to rounding.
    With a `runner` (`pc.cluster`) the workers of a cluster compute the blocks, each within
    `memory`; networks are trained in this process.
    """
    if isinstance(y, str):  # fit_surrogate(train, "recommended")
        if preset is not None:
            raise PlumecastError(f"two presets are given, '{y}' and '{preset}'; give one")
        y, preset = None, y
    settings = choose_settings(
        preset,
        family=family,
        lift=lift,
        products=products,
        age_bins=age_bins,
        targets=targets,
        covariates=covariates,
        frame=frame,
        physics=physics,
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
    settings = replace(settings, updatable=updatable)
    samples = read_samples(
        train, y, inputs=inputs, outputs=outputs, sample_dim=sample_dim, group_by=group_by
    )
    return fit_with_settings(
        samples.snapshots,
        settings,
        inputs=samples.inputs,
        outputs=samples.outputs,
        nonnegative=nonnegative,
        group_by=samples.group_by,
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
    nonnegative: bool | None = None,
    group_by: str = "ignition_id",
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Callable[[str], None] = no_progress,
) -> Surrogate:
    """`fit_surrogate` with complete settings."""
    train = complete_weather(train)
    train = with_mean_winds(train) if SNAPSHOT in train.dims else train
    size = training_size(train, inputs, outputs)
    cluster_memory = FAMILIES[settings.family].cluster_memory
    resources = choose_budget(
        device, memory, runner, progress, size=size, cluster_memory=cluster_memory
    )
    data = training_matrices(
        train,
        inputs,
        outputs,
        stored=resources.limit is not None,
        by=group_by if settings.is_plain else None,
        scaled=settings.is_plain,  # targets of a lift are scaled one by one
        runner=runner,
    )
    lowest = data.lowest_output()
    described: dict[str, Any] = {"nonnegative": _nonnegative(nonnegative, lowest)}
    with naming_memory(resources.device, lambda: advice(resources, size)):
        if not settings.is_plain:
            settings = _keep_sign(settings, data, lowest)
            described["settings"] = settings.record()
            found = fit_lifted(data, settings, group_by, resources, signed=lowest[1] < 0.0)
            return label_operator(
                found.operator,
                data,
                chosen=found.chosen,
                scenario=found.scenario,
                covariates=found.covariates,
                sums=found.sums,
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
        sums = None
        if settings.updatable:
            sums = coded_sums(operator, data.inputs, data.outputs, chosen["penalty"])
    if groups:
        chosen["leave_out"] = group_by
    described |= {"settings": settings.record(), "chosen": chosen, "sums": sums}
    return label_operator(operator, data, runner=runner, **described)


def _nonnegative(given: bool | None, lowest_output: tuple[str, float]) -> bool:
    """Whether predictions below zero are set to zero; by default if no training output is."""
    name, lowest = lowest_output
    if given and lowest < 0.0:
        warnings.warn(
            f"nonnegative=True sets negative predictions to zero, but '{name}' has values down to "
            f"{lowest:g} in training; leave out nonnegative to keep them",
            SignWarning,
            stacklevel=4,
        )
    return lowest >= 0.0 if given is None else given


def _keep_sign(
    settings: Settings, data: TrainingMatrices, lowest_output: tuple[str, float]
) -> Settings:
    """The settings for data with signed fields; a warning names the targets that are left out."""
    name, lowest = lowest_output
    kept = for_signed(settings, inputs=data.lowest_input()[1] < 0.0, outputs=lowest < 0.0)
    lost = [name for name in settings.targets if name not in kept.targets]
    if lost:
        warnings.warn(
            f"'{name}' has values down to {lowest:g} in training, but targets='{','.join(lost)}' "
            f"needs non-negative ones; fitted with targets='{','.join(kept.targets)}' alone",
            SignWarning,
            stacklevel=4,
        )
    return kept


def label_operator(
    operator: Operator,
    data: TrainingMatrices,
    *,
    settings: dict[str, Any] | None = None,
    chosen: dict[str, Any] | None = None,
    nonnegative: bool | None = None,
    scenario: str | None = None,
    covariates: tuple[Covariate, ...] = (),
    sums: Any = None,
    ranges: bool = True,
    runner: Runner | None = None,
) -> Surrogate:
    """Wrap an operator between training matrices as a surrogate, with its provenance.

    With `ranges` it records what the training fires cover, so that predictions beyond are flagged;
    with `sums` the fingerprints of its fires, so that new ones are told from them.
    """
    if sums is not None:
        names = [*data.input_layout.names, *data.output_layout.names]
        chosen = (chosen or {}) | updatable_record(data.snapshots, names)
    covered = {"ranges": training_ranges(data, operator, runner)} if ranges else {}
    return Surrogate(
        inputs=data.input_layout,
        outputs=with_dose_tables(data),
        operator=operator,
        nonnegative=(
            _nonnegative(None, data.lowest_output()) if nonnegative is None else nonnegative
        ),
        settings=settings or {},
        training={**provenance(data.snapshots), **covered, **(chosen or {})},
        scenario=scenario,
        covariates=covariates,
        sums=sums,
    )


def with_dose_tables(data: TrainingMatrices) -> Layout:
    """The layout of the outputs; smoke has the factors of its dose by hour, where they are known.

    See `scores.quantities`: they turn predicted sums over frames into a dose.
    """
    snapshots, layout = data.snapshots, data.output_layout
    intervals = [recorded_interval(part.attrs) for part in layout.fields]
    if not any(intervals) or not {"fire_id", "hours"} <= set(snapshots.variables):
        return layout
    fire, hours = snapshots["fire_id"].values.astype(str), snapshots["hours"].values
    count = data.outputs.shape[0]
    if hours.shape != (count,) or hours.dtype.kind not in "fiu" or not np.isfinite(hours).all():
        return layout
    scale = (
        snapshots[DOSE_SCALE].values.astype(float) if DOSE_SCALE in snapshots.variables else None
    )
    totals = np.zeros((count, len(intervals)))
    for rows in row_blocks(count, TOTAL_ROWS):
        parts = layout.split(read_rows(data.outputs, rows))
        for number, part in enumerate(parts):
            totals[rows, number] = part.reshape(part.shape[0], -1).sum(axis=1, dtype=np.float64)
    fields = []
    for interval, part, total in zip(intervals, layout.fields, totals.T, strict=True):
        known = interval is not None and is_smoke(part.name, part.attrs)
        own = scale if part.name == SMOKE else None
        if known and interval:
            table = dose_table(fire, hours.astype(float), total, interval, own)
        else:
            table = {}
        fields.append(replace(part, attrs={**part.attrs, **table}))
    return replace(layout, fields=tuple(fields))


TOTAL_ROWS = 64
"""Snapshots whose total smoke is summed at a time."""


def wrap_operator(
    operator: Operator,
    train: xr.Dataset,
    *,
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
    nonnegative: bool | None = None,
) -> Surrogate:
    """Wrap an operator of your own as a surrogate that predicts and is scored like any other.

    The operator maps (M, N) rows of flattened inputs to (M, Ñ) rows of outputs. `train` are the
    snapshots it was fitted to: predictions get their grid, and scoring on their ignitions raises an
    error.
    """
    return label_operator(
        operator, training_matrices(train, inputs, outputs), nonnegative=nonnegative
    )
