"""Fit the coded family: PCA of inputs and outputs, and a map between the codes. Arrays only.

The memory plan counts the bytes of the float64 arrays that every stage of a fit allocates, and says
how many rows a block may have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.base.values import check_fields, check_number, setting
from plumecast.compute.arrays import (
    Array,
    Rows,
    array_namespace,
    bytes_in,
    map_arrays,
    take_rows,
    to_numpy,
)
from plumecast.compute.blocks import Passes
from plumecast.compute.resources import FLOAT, READ, RESERVE, Budget, rows_within, show_memory
from plumecast.operators.coded.kernel_tuning import tune_kernel_map
from plumecast.operators.coded.kernels import (
    MAX_DEGREE,
    POLYNOMIAL,
    KernelMap,
    check_degree,
    check_kernel,
    fit_kernel_map,
    has_length_scale,
    monomial_count,
)
from plumecast.operators.coded.operator import (
    CodedMap,
    CodedOperator,
    CodedOutOfFold,
    FoldedLinear,
    code_size,
    join_codes,
    lifted_rows,
    target_rows,
)
from plumecast.operators.coded.polynomial_map import (
    DualMap,
    PrimalMap,
    fit_linear_map,
    fit_polynomial_map,
    intercept_constant,
    tune_polynomial_map,
)
from plumecast.operators.coded.update import CodedSums
from plumecast.operators.family import Family, FittedMap, TrainingSet
from plumecast.operators.lift import fit_lift
from plumecast.operators.pca import Basis, EncodedRows, Truncation, fit_truncated_basis
from plumecast.operators.ridge import GROUP_ROWS
from plumecast.operators.targets import check_choice, target_sizes

if TYPE_CHECKING:
    from plumecast.operators.settings import Settings


PENALTIES = 40
"""Penalties of a scan, each with a residual block of every group."""


def on_device(resources: Budget, matrix: Rows) -> Rows:
    """The matrix on the device; with a limit, its rows are copied there when they are read."""
    if resources.limit is None:
        return resources.put(matrix)
    return resources.device.rows(matrix)


def codes_of(resources: Budget, basis: Basis, matrix: Rows) -> Rows:
    """The codes of a matrix; with a limit, they are computed when they are read."""
    return basis.encode(matrix) if resources.limit is None else EncodedRows(basis, matrix)


def all_codes(resources: Budget, basis: Basis, matrix: Rows) -> Array:
    """The codes of all rows in memory."""
    if resources.limit is None:
        return basis.encode(matrix)
    count, columns = matrix.shape
    block = rows_within(
        resources.limit,
        fixed=resources.taken + FLOAT * basis.rank * (columns + 2.0 * count),
        per_row=READ * columns,
        what=f"{basis.rank} codes of {count} snapshots on {columns} cells",
        most=count,
    )
    return Passes(block, resources.runner).whole(EncodedRows(basis, matrix))


def pca_rows(resources: Budget, shape: tuple[int, ...]) -> int | None:
    """Rows of a block while a basis is fitted to an (M, N) matrix; None for all."""
    if resources.limit is None:
        return None
    count, columns = shape
    smaller = min(count, columns)
    factorisation = resources.taken + 4.0 * FLOAT * smaller**2
    if factorisation > RESERVE * resources.limit:
        raise PlumecastError(
            f"the decomposition of {count} snapshots on {columns} cells needs at least "
            f"{show_memory(factorisation / RESERVE)} in this process for a Gram matrix of "
            f"{smaller} × {smaller}, the limit is {show_memory(resources.limit)}; raise the limit, "
            "or use fewer cells or snapshots"
        )
    # For a wide matrix, one and a quarter panels are in memory at once; on a cluster, two half
    # panels, and up to five tiles that this process has not fetched yet.
    per_row = READ * columns * (1.0 if count > columns else 1.25)
    return rows_within(
        resources.limit,
        fixed=resources.taken + 2.0 * FLOAT * smaller**2,
        per_row=per_row,
        what=f"encoding {count} snapshots on {columns} cells",
        most=count,
    )


def map_rows(
    resources: Budget,
    codes: tuple[int, ...],
    outputs: int,
    *,
    features: int | None,
    cells: int,
    group: int,
    closed_form: bool,
) -> int | None:
    """Rows of a block while the map between codes is fitted; None for all.

    `codes` is (M, r). `features` is None for a kernel. `cells` counts the cells of inputs and
    outputs; it is 0 if the codes are in memory. `group` is the size of the largest group that is
    left out. With `closed_form` there is no system to solve.
    """
    if resources.limit is None:
        return None
    count, rank = codes
    squares = 8 if features is None else 5  # (M, M) matrices in memory: distances, kernels
    features = count + 1 if features is None else features
    stored = FLOAT * max(rank, outputs) * cells
    per_row = READ * cells + FLOAT * (4 * features + 6 * outputs + 3 * PENALTIES * group)
    if features > count:
        system = squares * count**2 + 2 * count * (rank + outputs)
    elif closed_form:
        system = 3 * features * outputs
    else:
        together = min(GROUP_ROWS, count) if group else 0
        system = 5 * features**2 + 4 * features * outputs + 2 * together * features
    return rows_within(
        resources.limit,
        fixed=resources.taken + float(stored + FLOAT * system),
        per_row=float(per_row),
        what=f"a map of {rank} codes from {count} snapshots",
        most=count,
    )


PAPER_TRUNCATION = Truncation(std_fraction=0.95)


@dataclass(frozen=True, slots=True)
class CodedSettings:
    """Choices of the coded family."""

    degree: int = setting(1, f"Degree of the polynomial, 1 to {MAX_DEGREE}.")
    penalty: float | None = setting(  # 0: plain least squares
        None,
        "Regularisation λ.",
        default_text="the preset's, or chosen by leaving out one group at a time",
    )
    fire: Truncation = setting(PAPER_TRUNCATION, "the input")
    smoke: Truncation = setting(PAPER_TRUNCATION, "the output")
    center: bool = setting(False, "Subtract the mean fields before encoding.")
    kernel: str = setting(  # POLYNOMIAL: of that degree; or a term of `kernels`, or a sum of terms
        POLYNOMIAL,
        "polynomial, matern-5/2, squared-exponential, or 'polynomial-1 + matern-5/2'.",
    )
    length_scale: float | None = setting(
        None,
        "Length scale of the kernel; 1 is the typical distance between fires.",
        default_text="chosen with the penalty",
    )

    def __post_init__(self) -> None:
        check_fields(self)
        check_degree(self.degree)
        check_kernel(self.kernel, self.length_scale)
        if self.penalty is not None:
            check_number("penalty", self.penalty, least=0.0)

    def simplified(self) -> CodedSettings:
        """The settings themselves; no cheaper ones are known that compare frames as well."""
        return self

    @property
    def is_polynomial(self) -> bool:
        """Whether the map is a polynomial of some degree, not a sum of kernels."""
        return self.kernel == POLYNOMIAL

    @property
    def leaves_out(self) -> bool:
        """Whether the penalty or the length scale is chosen by leaving groups out."""
        stationary = not self.is_polynomial and has_length_scale(self.kernel)
        return self.penalty is None or (stationary and self.length_scale is None)

    @property
    def is_closed_form(self) -> bool:
        """Whether Theorem 1 of the paper gives the map: linear, without a penalty."""
        return self.is_polynomial and self.degree == 1 and self.penalty == 0.0

    def refuse_degree(self, degree: int, kernel: str | None) -> None:
        """Raise if a degree is given with a kernel whose terms name their degrees."""
        if (kernel or self.kernel) != POLYNOMIAL:
            raise ArgumentError(
                "degree",
                degree,
                f"name it in the kernel instead, as in 'polynomial-{degree} + matern-5/2'",
                problem=f"belongs to kernel '{POLYNOMIAL}'",
            )


def fit_coded_operator(
    inputs: Rows,
    outputs: Rows,
    own: CodedSettings,
    resources: Budget,
    *,
    groups: list[Array],
    names: tuple[str, str],
) -> tuple[CodedOperator, dict[str, Any]]:
    """Encode (M, N) inputs and (M, Ñ) outputs and fit the map between the codes.

    Also returns the chosen ranks and penalties by name. `groups` are the row indices of every
    group, needed if `own.leaves_out`.
    """
    inputs, outputs = on_device(resources, inputs), on_device(resources, outputs)
    input_basis = fit_side(inputs, own.fire, own.center, names[0], resources)
    output_basis = fit_side(outputs, own.smoke, own.center, names[1], resources)
    codes = codes_of(resources, input_basis, inputs)
    targets = codes_of(resources, output_basis, outputs)
    block = map_rows(
        resources,
        codes.shape,
        targets.shape[1],
        features=monomial_count(input_basis.rank, own.degree) if own.is_polynomial else None,
        cells=inputs.shape[1] + outputs.shape[1],
        group=max((rows.size for rows in groups), default=0),
        closed_form=own.is_closed_form,
    )
    passes = Passes(block, resources.runner)
    code_map: PrimalMap | DualMap | KernelMap
    if own.is_closed_form:
        code_map = fit_linear_map(codes, input_basis.singular_values, targets, passes)
        chosen: dict[str, Any] = {"penalty": 0.0}
    elif own.is_polynomial:
        energy = float(array_namespace(input_basis.modes).sum(input_basis.singular_values**2))
        square = energy / inputs.shape[0]
        code_map, chosen = _fit_polynomial(codes, targets, own, groups, square, passes)
    else:
        code_map, chosen = _fit_kernel(passes.whole(codes), passes.whole(targets), own, groups)
    ranks = {"fire_rank": input_basis.rank, "smoke_rank": output_basis.rank}
    operator = CodedOperator(input_basis, code_map, output_basis)
    return map_arrays(operator, to_numpy), ranks | chosen


def fit_side(matrix: Rows, rule: Truncation, center: bool, name: str, resources: Budget) -> Basis:
    """The basis of inputs or outputs; an error names their variables."""
    passes = Passes(pca_rows(resources, matrix.shape), resources.runner)
    try:
        return fit_truncated_basis(matrix, rule, center, passes)
    except PlumecastError as error:
        raise PlumecastError(f"{name}: {error}") from None


def fit_code_map(
    codes: Array, targets: Array, own: CodedSettings, groups: list[Array], resources: Budget
) -> tuple[PrimalMap | DualMap | KernelMap, dict[str, Any]]:
    """The map between in-memory codes, and the chosen penalty and length scale by name.

    With a memory limit, the rows of every group must be consecutive.
    """
    left_out = groups if own.leaves_out else []
    block = map_rows(
        resources,
        codes.shape,
        targets.shape[1],
        features=monomial_count(codes.shape[1], own.degree) if own.is_polynomial else None,
        cells=0,
        group=max((rows.size for rows in left_out), default=0),
        closed_form=False,
    )
    if not own.is_polynomial:
        return _fit_kernel(codes, targets, own, left_out)
    square = float(array_namespace(codes).sum(codes**2)) / codes.shape[0]
    return _fit_polynomial(codes, targets, own, groups, square, Passes(block))


def _fit_polynomial(
    codes: Rows,
    targets: Rows,
    own: CodedSettings,
    groups: list[Array],
    square: float,
    passes: Passes,
) -> tuple[PrimalMap | DualMap, dict[str, Any]]:
    """A polynomial of codes whose mean squared norm is `square`, with its penalty.

    Products of centred codes have a mean, which an intercept represents. In an uncentred basis the
    empty fire has the code 0 and must give no smoke.
    """
    constant = intercept_constant(square, own.degree) if own.center else 0.0
    if own.penalty is not None:
        fitted = fit_polynomial_map(
            codes,
            targets,
            degree=own.degree,
            penalty=own.penalty,
            constant=constant,
            passes=passes,
        )
        return fitted, {"penalty": own.penalty}
    tuned, scan = tune_polynomial_map(
        codes,
        targets,
        degree=own.degree,
        groups=groups,
        penalties=None,
        constant=constant,
        passes=passes,
    )
    return tuned, {"penalty": scan.best, "leave_out_error": scan.error}


def _fit_kernel(
    codes: Array, targets: Array, own: CodedSettings, groups: list[Array]
) -> tuple[KernelMap, dict[str, Any]]:
    """A map by a sum of kernels; its length scale and penalty are chosen unless they are given.

    In an uncentred basis the code 0 is the empty fire, which is known to give no smoke.
    """
    anchored = not own.center
    if not own.leaves_out:
        assert own.penalty is not None
        given = {"length_scale": own.length_scale or 1.0, "penalty": own.penalty}
        fitted = fit_kernel_map(codes, targets, kernel=own.kernel, anchored=anchored, **given)
        return fitted, given
    fitted, scan = tune_kernel_map(
        codes,
        targets,
        kernel=own.kernel,
        groups=groups,
        length_scale=own.length_scale,
        penalty=own.penalty,
        anchored=anchored,
    )
    found = {"length_scale": scan.length_scale, "penalty": scan.penalty}
    return fitted, {**found, "leave_out_error": scan.error}


def fit_coded_fields(training: TrainingSet, settings: Settings, resources: Budget) -> FittedMap:
    """The coded family on lifted fields, several targets and covariates.

    The bases are fitted to all snapshots; out-of-fold predictions are those of the last fold, by a
    map between codes that was fitted without it. The fitted map is on the host.
    """
    own = settings.family_settings
    assert isinstance(own, CodedSettings)
    targets, given = training.targets, training.given
    check_choice(targets.shape, resources.limit)
    lift = fit_lift(training.fire, settings.lift or ("identity",), settings.products,
                    bins=settings.age_bins, physics=given.physics)  # fmt: skip
    scales, *_ = target_sizes(targets)
    inputs, codes = _encode(
        lifted_rows(lift, training.fire, given.physics),
        own.fire,
        own.center,
        training.names[0],
        resources,
    )
    outputs, goal = _encode(
        target_rows(targets, scales),
        own.smoke,
        own.center,
        training.names[1],
        resources.with_taken(bytes_in((inputs, codes))),
    )
    size = code_size(codes)
    codes = join_codes(codes, given.scalars(), size)
    used = resources.with_taken(bytes_in((inputs, outputs, codes, goal)))

    def fit(parts: list[Array]) -> CodedMap:
        rows = np.concatenate(parts)
        # Consecutive groups can be left out block by block.
        consecutive = np.split(np.arange(rows.size), np.cumsum([p.size for p in parts])[:-1])
        some, right = take_rows(codes, rows), take_rows(goal, rows)
        remaining = used.with_taken(bytes_in((some, right)))
        code_map, _ = fit_code_map(some, right, own, consecutive, remaining)
        return CodedMap(lift, inputs, code_map, outputs, size, scales)

    groups = [np.flatnonzero(training.groups == name) for name in np.unique(training.groups)]
    folds = training.folds()
    kept = [rows for rows in groups if folds[rows[0]] != folds.max()]
    if len(kept) == 1:  # only one group remains: choose the penalty by leaving snapshots out
        kept = list(kept[0][:, None])
    left_out = np.flatnonzero(folds == folds.max())
    without = CodedOutOfFold(fit(kept), take_rows(codes, left_out), targets.shape[1:])
    return FittedMap(map_arrays(fit(groups), to_numpy), left_out, without)


def _encode(
    matrix: Rows, rule: Truncation, center: bool, name: str, resources: Budget
) -> tuple[Basis, Array]:
    """The basis of a matrix, and the codes of all its rows in memory."""
    rows = on_device(resources, matrix if resources.limit is not None else Passes().whole(matrix))
    basis = fit_side(rows, rule, center, name, resources)
    return basis, all_codes(resources, basis, rows)


CODED = Family(
    name="coded",
    title="Coded",
    summary="PCA of inputs and outputs, a polynomial or another kernel between the codes",
    settings=CodedSettings,
    fit=fit_coded_fields,
    saved=(CodedOperator, FoldedLinear, CodedMap, PrimalMap, DualMap, KernelMap, CodedSums),
    cluster_memory="1GB",
    scenarios=False,
)
