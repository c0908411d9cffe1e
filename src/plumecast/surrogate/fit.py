"""Fit surrogates: from labelled training snapshots to an operator with its provenance."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.deprecated import deprecate, folded_arguments
from plumecast.base.names import DOSE_SCALE, FIRE, SMOKE, SNAPSHOT, is_smoke
from plumecast.compute.arrays import Array, read_rows
from plumecast.compute.blocks import Runner, row_blocks
from plumecast.compute.resources import LOCAL, Budget, Resources, advice, hears_names, naming_memory
from plumecast.data.checksums import fire_fingerprints
from plumecast.data.covariates import Covariate
from plumecast.data.layout import Layout
from plumecast.data.training import (
    TrainingMatrices,
    provenance,
    read_samples,
    training_matrices,
    training_size,
)
from plumecast.operators.coded.fit import CodedSettings, fit_coded_operator
from plumecast.operators.coded.update import coded_sums
from plumecast.operators.family import FamilySettings, Operator
from plumecast.operators.settings import FAMILIES, Settings, choose_settings, for_signed
from plumecast.scores.quantities import dose_table
from plumecast.surrogate.fit_lifted import FittedOperator, fit_lifted
from plumecast.surrogate.ranges import training_ranges
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.update import FIRES
from plumecast.weather.snapshots import complete_weather, with_mean_winds


class SignWarning(UserWarning):
    """Training outputs are negative where the settings expect non-negative ones."""


P = ParamSpec("P")
Result = TypeVar("Result")


def _old_arguments(function: Callable[P, Result]) -> Callable[P, Result]:
    """Accept `fit(X, y, preset)` and `train=`, with a deprecation warning."""

    @functools.wraps(function)
    def call(*positional: P.args, **keywords: P.kwargs) -> Result:
        values: list[Any] = list(positional)
        named: dict[str, Any] = dict(keywords)
        if "train" in named:
            deprecate("fit_surrogate(train=…)", "fit_surrogate(data)")
            values.insert(0, named.pop("train"))
        paired = len(values) > 2 or (len(values) == 2 and not isinstance(values[1], str | None))
        if "y" in named or paired:
            y = named.pop("y") if "y" in named else values.pop(1)
            if y is not None:
                deprecate("fit_surrogate(X, y)", "fit_surrogate((X, y))")
                values[0] = (values[0], y)
        return function(*values, **named)

    return call


@_old_arguments
@folded_arguments(resources=Resources, adapted={"progress": hears_names})
def fit_surrogate(
    data: xr.Dataset | tuple[Array, Array],
    preset: str | None = None,
    *,
    settings: Settings | FamilySettings | None = None,
    inputs: str | Sequence[str] = FIRE,
    outputs: str | Sequence[str] = SMOKE,
    group_by: str | Array = "ignition_id",
    sample_dim: str | None = None,
    nonnegative: bool | None = None,
    resources: Resources = LOCAL,
    **choices: Any,
) -> Surrogate:
    """Fit a surrogate to training snapshots.

    Give a preset, settings, single choices by keyword, or one with single choices replaced:
    `fit_surrogate(data, "recommended", layers=2)`, which is the same as
    `fit_surrogate(data, "recommended", settings=SpectralSettings(layers=2))`.

    Parameters
    ----------
    data
        A Dataset, or a pair `(X, y)` of inputs and outputs (M, *grid) as NumPy, PyTorch or CuPy
        arrays, or as DataArrays.
    preset
        "paper-linear", "paper-quadratic", "quick", "recommended" or "thorough".
    settings
        `Settings`, which are complete, or those of one family, such as `CodedSettings`.
    inputs, outputs
        Names of the variables of a Dataset.
    group_by
        Grouping coordinate, or an array of M labels. Where a penalty is chosen, one group at a time
        is left out. Samples of arrays, and samples along another dimension than "snapshot" without
        that coordinate, are groups of their own.
    sample_dim
        Sample dimension of a Dataset, by default "snapshot" or else the first dimension of all
        variables.
    nonnegative
        Whether negative predictions are set to zero; by default if no training output is negative.
    resources
        Where arrays are computed; the fitted surrogate is on the host. With `memory` the snapshots
        stay in their store and are read in blocks; the result is the same up to rounding. With a
        `runner` the workers of a cluster compute the blocks, each within `memory`; networks are
        trained in this process.
    **choices
        Fields of `Settings` and of the settings class of the family, as below.

    Notes
    -----
    The *coded* family computes a PCA of inputs and outputs and fits a polynomial of some `degree`
    between the codes, or another `kernel`: "matern-5/2", "squared-exponential", or a sum such as
    "polynomial-1 + matern-5/2". Its `length_scale` is in units of the typical distance between
    training snapshots; by default it is chosen together with the penalty. `fire_rank`,
    `fire_std_fraction` or `fire_variance_fraction` truncates the basis of the inputs, and
    `smoke_…` that of the outputs, whatever their names. The *spectral* family (presets
    "recommended" and "quick") fits translation-equivariant operators in `layers`. If the data has
    several droughts, each has its own weights, regularised towards the common ones. A `correction`
    predicts the residuals from similar training fires (preset "thorough", which also has more
    channels). The networks are families of their own (`FAMILIES`), trained for `epochs`.

    `lift` names the fields that are computed from the input ("age-bins" has `age_bins` of them),
    `products` the scalars of a fire that multiply them, and `targets` the fitted quantities ("log",
    "smoke", "footprint"). `covariates` are scalars of the snapshots that are further inputs;
    predictions then need them. `frame` "wind" rotates fields with the wind of each snapshot,
    "wind-stretch" also scales them, and "auto" decides by out-of-fold errors. `physics` adds smoke
    that the weather of every fire carries to the channels ("column", "layers" for three parts of
    the column, or "calibrated" for a column whose constants are chosen on the training fires);
    "auto" decides by out-of-fold errors where the weather is known.

    If neither the preset nor `penalty` gives the penalty, it is chosen in closed form by leaving
    out one group at a time. With `updatable` the surrogate keeps what new fires can be added to
    without a new fit (see `Surrogate.update`): sums or factors, which make its file several times
    as large.
    """
    chosen = choose_settings(preset, settings, **choices)
    samples = read_samples(
        *(data if isinstance(data, tuple) else (data,)),
        inputs=inputs,
        outputs=outputs,
        sample_dim=sample_dim,
        group_by=group_by,
    )
    train = complete_weather(samples.snapshots)
    train = with_mean_winds(train) if SNAPSHOT in train.dims else train
    size = training_size(train, samples.inputs, samples.outputs)
    cluster_memory = FAMILIES[chosen.family].cluster_memory
    budget = resources.budget(size=size, cluster_memory=cluster_memory)
    matrices = training_matrices(
        train,
        samples.inputs,
        samples.outputs,
        stored=budget.limit is not None,
        by=samples.group_by if chosen.is_plain else None,
        scaled=chosen.is_plain,  # targets of a lift are scaled one by one
        runner=resources.runner,
    )
    lowest = matrices.lowest("outputs")
    nonnegative = _nonnegative(nonnegative, lowest)
    if not chosen.is_plain:
        chosen = _keep_sign(chosen, matrices, lowest)
    with naming_memory(budget.device, lambda: advice(budget, size)):
        if chosen.is_plain:
            fitted = _fit_plain(matrices, chosen, samples.group_by, budget)
        else:
            signed = lowest[1] < 0.0
            fitted = fit_lifted(matrices, chosen, samples.group_by, budget, signed=signed)
        return label_operator(
            fitted.operator,
            matrices,
            settings=chosen.record(),
            chosen=fitted.chosen,
            nonnegative=nonnegative,
            scenario=fitted.scenario,
            covariates=fitted.covariates,
            sums=fitted.sums,
            runner=budget.runner,
        )


def _fit_plain(
    data: TrainingMatrices, settings: Settings, group_by: str, budget: Budget
) -> FittedOperator:
    """The paper's operator between codes of the fields themselves."""
    coded = settings.family_settings
    assert isinstance(coded, CodedSettings)
    groups = data.groups(group_by) if coded.leaves_out else []
    names = (", ".join(data.input_layout.names), ", ".join(data.output_layout.names))
    operator, chosen = fit_coded_operator(
        data.inputs, data.outputs, coded, budget, groups=groups, names=names
    )
    sums = None
    if settings.updatable:
        sums = coded_sums(operator, data.inputs, data.outputs, chosen["penalty"])
    return FittedOperator(operator, chosen | ({"leave_out": group_by} if groups else {}), sums)


def _nonnegative(given: bool | None, lowest_output: tuple[str, float]) -> bool:
    """Whether predictions below zero are set to zero; by default if no training output is."""
    name, lowest = lowest_output
    if given and lowest < 0.0:
        warnings.warn(
            f"nonnegative=True sets negative predictions to zero, but '{name}' has values down to "
            f"{lowest:g} in training; leave out nonnegative to keep them",
            SignWarning,
            stacklevel=5,
        )
    return lowest >= 0.0 if given is None else given


def _keep_sign(
    settings: Settings, data: TrainingMatrices, lowest_output: tuple[str, float]
) -> Settings:
    """The settings for data with signed fields; a warning names the targets that are left out."""
    name, lowest = lowest_output
    kept = for_signed(settings, inputs=data.lowest("inputs")[1] < 0.0, outputs=lowest < 0.0)
    lost = [target for target in settings.targets if target not in kept.targets]
    if lost:
        warnings.warn(
            f"'{name}' has values down to {lowest:g} in training, but targets='{','.join(lost)}' "
            f"needs non-negative ones; fitted with targets='{','.join(kept.targets)}' alone",
            SignWarning,
            stacklevel=5,
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
        chosen = (chosen or {}) | {FIRES: fire_fingerprints(data.snapshots, names)}
    covered = {"ranges": training_ranges(data, operator, runner)} if ranges else {}
    return Surrogate(
        inputs=data.input_layout,
        outputs=with_dose_tables(data),
        operator=operator,
        nonnegative=(
            _nonnegative(None, data.lowest("outputs")) if nonnegative is None else nonnegative
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
    for rows in row_blocks(count, 64):
        for number, part in enumerate(layout.split(read_rows(data.outputs, rows))):
            totals[rows, number] = part.reshape(part.shape[0], -1).sum(axis=1, dtype=np.float64)
    fields = []
    for interval, part, total in zip(intervals, layout.fields, totals.T, strict=True):
        table = {}
        if interval and is_smoke(part.name, part.attrs):
            factors = scale if part.name == SMOKE else None
            table = dose_table(fire, hours.astype(float), total, interval, factors)
        fields.append(replace(part, attrs={**part.attrs, **table}))
    return replace(layout, fields=tuple(fields))


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
