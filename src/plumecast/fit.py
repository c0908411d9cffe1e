"""Fit surrogates: from labelled training snapshots to an operator with its provenance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from plumecast import operators
from plumecast._array import Array, Rows, map_arrays, to_numpy
from plumecast._version import __version__
from plumecast.blocks import Runner, whole
from plumecast.device import naming_memory
from plumecast.encode import Basis, Truncation, fit_truncated_basis
from plumecast.errors import PlumecastError
from plumecast.features import monomial_count
from plumecast.fit_plume import PlumeData, PlumeFit, fit_plume
from plumecast.kernel_map import KernelMap, fit_kernel_map
from plumecast.kernel_search import tune_kernel_map
from plumecast.kernels import POLYNOMIAL, has_length_scale
from plumecast.matrix import Layout, fit_layout
from plumecast.memory import show_memory
from plumecast.names import FIRE, SMOKE, SNAPSHOT
from plumecast.operators import CodedOperator, DualMap, Operator, PrimalMap
from plumecast.placement import IN_MEMORY, Placement, choose_placement
from plumecast.plume import PlumeChoices
from plumecast.settings import Settings, choose_settings
from plumecast.snapshot_store import DATA_VERSION
from plumecast.snapshots import check_values
from plumecast.split import group_rows
from plumecast.stored import StoredRows
from plumecast.surrogate import Surrogate

CLUSTER_MEMORY = "1GB"
"""Memory of each block's process where a cluster works on them and no limit is given."""

SPECTRAL_BYTES = 40
"""Bytes of memory per value of the training fields that the spectral family takes at most."""


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
    (preset "recommended"): equivariant operators in `layers`, one per drought where the data has
    several, each drawn to what all have in common; needs `group_by` to leave fires out. Networks:
    family "unet" or "fno", in `epochs`.

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
    stay in their store and are read by blocks (coded family); the result is the same up to
    rounding. A `runner` (`pc.cluster`) has the blocks worked on by the processes of a cluster, each
    within `memory`.
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
    if runner is not None:
        memory = memory or CLUSTER_MEMORY
        if device != "cpu":
            raise PlumecastError(f"give a runner or device '{device}', not both")
    place = choose_placement(device, memory, *_size(train, inputs, outputs))
    data = training_matrices(
        train, inputs, outputs, stored=place.limit is not None, by=group_by, runner=runner
    )
    record: dict[str, Any] = {
        "inputs": data.input_layout,
        "outputs": data.output_layout,
        "nonnegative": nonnegative,
        "settings": asdict(settings),
    }
    with naming_memory(place.device, place.advice(*_size(train, inputs, outputs))):
        if is_plain(settings):
            operator, chosen = fit_coded(data, settings, group_by, place)
            training = {**provenance(train), **chosen}
            return Surrogate(operator=operator, training=training, **record)
        found = _fit_lifted(data.in_memory(place.limit), settings, group_by, place, progress)
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
            f"this surrogate leaves fires out to choose its penalties: it needs at least two "
            f"'{group_by}', the training data has {len(rows_of)}"
        )

    def fit_basis(side: str, matrix: Array) -> Basis:
        rule = settings.fire if side == "inputs" else settings.smoke
        layout = data.input_layout if side == "inputs" else data.output_layout
        return _fit_side(matrix, rule, settings.center, layout, IN_MEMORY)

    def fit_map(codes: Array, targets: Array, parts: list[Array]) -> Operator:
        return fit_code_map(codes, targets, settings, parts)[0]

    choices = PlumeChoices(
        family=settings.family,
        lift=settings.lift or ("identity",),
        products=settings.products,
        bins=settings.age_bins,
        targets=settings.targets,
        layers=settings.layers,
        epochs=settings.epochs,
        fit_basis=fit_basis,
        fit_map=fit_map,
        device=None if place.device.is_host else place.device.name,
    )
    fields = (*data.input_layout.fields, *data.output_layout.fields)
    snapshots = PlumeData(data.snapshots, fields, data.inputs, data.outputs, groups)
    return fit_plume(snapshots, settings, choices, place.device.put, progress)


@dataclass(frozen=True, slots=True)
class TrainingMatrices:
    """Training snapshots as matrices, with the layouts that label their columns."""

    snapshots: xr.Dataset
    input_layout: Layout
    output_layout: Layout
    inputs: Array  # (M, N), or rows read from a store
    outputs: Array  # (M, Ñ), or rows read from a store

    def in_memory(self, limit: int | None = None) -> TrainingMatrices:
        """The same with whole matrices; refused where they exceed the limit."""
        if isinstance(self.inputs, StoredRows) and isinstance(self.outputs, StoredRows):
            count, cells = self.inputs.shape[0], self.inputs.shape[1] + self.outputs.shape[1]
            needed = SPECTRAL_BYTES * count * cells
            if limit is not None and needed > limit:
                raise PlumecastError(
                    f"this family holds all {count} snapshots in memory, about "
                    f"{show_memory(needed)}; raise the limit of {show_memory(limit)}, or choose a "
                    "coded preset"
                )
            rows = slice(0, count)
            return replace(self, inputs=self.inputs.read(rows), outputs=self.outputs.read(rows))
        return self

    def groups(self, by: str) -> list[Array]:
        """Rows that belong together."""
        if by not in self.snapshots.variables:
            raise PlumecastError(
                f"choosing a penalty leaves one '{by}' out at a time, but the training data has no "
                "such coordinate; add it or give the penalty"
            )
        return group_rows(self.snapshots[by].values)


def _names(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _size(
    train: xr.Dataset, inputs: str | Sequence[str], outputs: str | Sequence[str]
) -> tuple[int, int]:
    """Snapshots, and the cells of both sides together; 0 for what is not there."""
    rows = train.sizes.get(SNAPSHOT, 0)
    known = [train[n] for n in (*_names(inputs), *_names(outputs)) if n in train]
    return rows, sum(item.size // max(rows, 1) for item in known)


def training_matrices(
    train: xr.Dataset,
    inputs: str | Sequence[str],
    outputs: str | Sequence[str],
    *,
    stored: bool = False,
    by: str = "ignition_id",
    runner: Runner | None = None,
) -> TrainingMatrices:
    """Check training snapshots and lay their fields out as matrices.

    `stored` ones stay in their store and are read by rows, those of one group after another.
    """
    input_names, output_names = _names(inputs), _names(outputs)
    if SNAPSHOT not in train.dims or train.sizes[SNAPSHOT] == 0:
        raise PlumecastError("there are no training snapshots")
    input_layout = fit_layout(train, input_names)
    output_layout = fit_layout(train, output_names)
    check_values(train, [*input_names, *output_names])
    if stored:
        if by in train.variables:
            train = train.isel({SNAPSHOT: np.concatenate(group_rows(train[by].values))})
        return TrainingMatrices(
            snapshots=train,
            input_layout=input_layout,
            output_layout=output_layout,
            inputs=StoredRows(input_layout, train, runner),
            outputs=StoredRows(output_layout, train, runner),
        )
    return TrainingMatrices(
        snapshots=train,
        input_layout=input_layout,
        output_layout=output_layout,
        inputs=input_layout.to_matrix(train),
        outputs=output_layout.to_matrix(train),
    )


def fit_coded(
    data: TrainingMatrices, settings: Settings, group_by: str, place: Placement = IN_MEMORY
) -> tuple[CodedOperator, dict[str, Any]]:
    """Encode both sides and fit the map between the codes; also what was chosen on the way."""
    inputs, outputs = place.hold(data.inputs), place.hold(data.outputs)
    input_basis = _fit_side(inputs, settings.fire, settings.center, data.input_layout, place)
    output_basis = _fit_side(outputs, settings.smoke, settings.center, data.output_layout, place)
    codes, targets = place.encode(input_basis, inputs), place.encode(output_basis, outputs)
    chosen: dict[str, Any] = {"fire_rank": input_basis.rank, "smoke_rank": output_basis.rank}
    of_distance = settings.kernel != POLYNOMIAL
    groups = data.groups(group_by) if _leaves_out(settings) else []
    closed_form = settings.degree == 1 and settings.penalty == 0.0 and not of_distance
    block = place.map_rows(
        codes,
        targets,
        features=None if of_distance else monomial_count(input_basis.rank, settings.degree),
        cells=inputs.shape[1] + outputs.shape[1],
        group=max((rows.size for rows in groups), default=0),
        closed_form=closed_form,
    )
    code_map: PrimalMap | DualMap | KernelMap
    if of_distance:
        code_map, more = _fit_kernel(
            whole(codes, block), whole(targets, block), settings, groups or None
        )
        chosen |= more | ({"leave_out": group_by} if groups else {})
    elif settings.penalty is None:
        code_map, scan = operators.tune_polynomial_map(
            codes, targets, degree=settings.degree, groups=groups, penalties=None, block=block
        )
        chosen |= {"penalty": scan.best, "leave_out": group_by, "leave_out_error": min(scan.errors)}
    elif closed_form:
        code_map = operators.fit_linear_map(codes, input_basis.singular_values, targets, block)
        chosen |= {"penalty": 0.0}
    else:
        code_map = operators.fit_polynomial_map(
            codes, targets, degree=settings.degree, penalty=settings.penalty, block=block
        )
        chosen |= {"penalty": settings.penalty}
    return map_arrays(CodedOperator(input_basis, code_map, output_basis), to_numpy), chosen


def fit_code_map(
    codes: Array, targets: Array, settings: Settings, groups: list[Array]
) -> tuple[PrimalMap | DualMap | KernelMap, dict[str, Any]]:
    """The map between codes held in memory; what is left open is chosen by leaving out `groups`."""
    if settings.kernel != POLYNOMIAL:
        return _fit_kernel(codes, targets, settings, groups if _leaves_out(settings) else None)
    if settings.penalty is None:
        code_map, scan = operators.tune_polynomial_map(
            codes, targets, degree=settings.degree, groups=groups, penalties=None
        )
        return code_map, {"penalty": scan.best}
    fitted = operators.fit_polynomial_map(
        codes, targets, degree=settings.degree, penalty=settings.penalty
    )
    return fitted, {"penalty": settings.penalty}


def _leaves_out(settings: Settings) -> bool:
    of_distance = settings.kernel != POLYNOMIAL and has_length_scale(settings.kernel)
    return settings.penalty is None or (of_distance and settings.length_scale is None)


def _fit_kernel(
    codes: Array, targets: Array, settings: Settings, groups: list[Array] | None
) -> tuple[KernelMap, dict[str, Any]]:
    """A kernel other than the polynomial; what is left open is chosen by leaving out `groups`.

    In an uncentred basis the code 0 is the empty fire, whose smoke is known: none.
    """
    anchored = not settings.center
    if groups is None:
        assert settings.penalty is not None
        given = {"length_scale": settings.length_scale or 1.0, "penalty": settings.penalty}
        fitted = fit_kernel_map(codes, targets, kernel=settings.kernel, anchored=anchored, **given)
        return fitted, given
    fitted, scan = tune_kernel_map(
        codes,
        targets,
        kernel=settings.kernel,
        groups=groups,
        length_scale=settings.length_scale,
        penalty=settings.penalty,
        anchored=anchored,
    )
    found = {"length_scale": scan.length_scale, "penalty": scan.penalty}
    return fitted, {**found, "leave_out_error": scan.error}


def _fit_side(
    matrix: Rows, rule: Truncation, center: bool, layout: Layout, place: Placement
) -> Basis:
    try:
        return fit_truncated_basis(matrix, rule, center, place.encode_rows(matrix))
    except PlumecastError as error:
        raise PlumecastError(f"{', '.join(layout.names)}: {error}") from None


def provenance(train: xr.Dataset) -> dict[str, Any]:
    """Where a fit comes from: package and data version, source, snapshots and their groups."""
    record: dict[str, Any] = {
        "plumecast": __version__,
        "data_version": train.attrs.get(DATA_VERSION),
        "source": train.attrs.get("source"),
        "snapshots": int(train.sizes[SNAPSHOT]),
    }
    for name in ("fire_id", "ignition_id"):
        if name in train.variables:
            record[name] = np.unique(train[name].values.astype(str)).tolist()
    return record
