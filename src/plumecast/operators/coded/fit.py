"""Fit the coded family: PCA of inputs and outputs, and a map between the codes. Arrays only.

The memory plan counts the bytes of the float64 arrays that every stage of a fit allocates, and says
how many rows a block may have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from plumecast.base.errors import PlumecastError
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
from plumecast.operators.family import ComputedFields, Family, FittedMap, TrainingSet
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


def map_passes(
    resources: Budget,
    codes: Rows,
    targets: Rows,
    settings: CodedSettings,
    groups: list[Array],
    *,
    cells: int = 0,
) -> Passes:
    """How rows are read while the map between codes is fitted.

    `cells` counts the cells of inputs and outputs, from which codes are computed when they are
    read; it is 0 if the codes are in memory, of which the closed form is not used.
    """
    runner = resources.runner if cells else None
    if resources.limit is None:
        return Passes(None, runner)
    (count, rank), outputs = codes.shape, targets.shape[1]
    group = max((rows.size for rows in groups), default=0) if settings.leaves_out else 0
    features, squares = count + 1, 8  # (M, M) matrices in memory: distances, kernels
    if settings.is_polynomial:
        features, squares = monomial_count(rank, settings.degree), 5
    stored = FLOAT * max(rank, outputs) * cells
    per_row = READ * cells + FLOAT * (4 * features + 6 * outputs + 3 * PENALTIES * group)
    if features > count:
        system = squares * count**2 + 2 * count * (rank + outputs)
    elif settings.is_closed_form and cells:
        system = 3 * features * outputs
    else:
        together = min(GROUP_ROWS, count) if group else 0
        system = 5 * features**2 + 4 * features * outputs + 2 * together * features
    block = rows_within(
        resources.limit,
        fixed=resources.taken + float(stored + FLOAT * system),
        per_row=float(per_row),
        what=f"a map of {rank} codes from {count} snapshots",
        most=count,
    )
    return Passes(block, runner)


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


def fit_coded_operator(
    inputs: Rows,
    outputs: Rows,
    settings: CodedSettings,
    resources: Budget,
    *,
    groups: list[Array],
    names: tuple[str, str],
) -> tuple[CodedOperator, dict[str, Any]]:
    """Encode (M, N) inputs and (M, Ñ) outputs and fit the map between the codes.

    Also returns the chosen ranks and penalties by name. `groups` are the row indices of every
    group, needed if `settings.leaves_out`.
    """
    inputs, outputs = on_device(resources, inputs), on_device(resources, outputs)
    source = fit_side(inputs, settings.fire, settings.center, names[0], resources)
    target = fit_side(outputs, settings.smoke, settings.center, names[1], resources)
    codes: Rows = EncodedRows(source, inputs)  # with a limit, computed when they are read
    goal: Rows = EncodedRows(target, outputs)
    if resources.limit is None:
        codes, goal = source.encode(inputs), target.encode(outputs)
    cells = inputs.shape[1] + outputs.shape[1]
    passes = map_passes(resources, codes, goal, settings, groups, cells=cells)
    code_map: PrimalMap | DualMap | KernelMap
    if settings.is_closed_form:
        code_map = fit_linear_map(codes, source.singular_values, goal, passes)
        chosen: dict[str, Any] = {"penalty": 0.0}
    else:
        energy = float(array_namespace(source.modes).sum(source.singular_values**2))
        square = energy / inputs.shape[0]
        code_map, chosen = _fit_map(codes, goal, settings, groups, square, passes)
    ranks = {"fire_rank": source.rank, "smoke_rank": target.rank}
    operator = CodedOperator(source, code_map, target)
    return map_arrays(operator, to_numpy), ranks | chosen


def fit_side(matrix: Rows, rule: Truncation, center: bool, name: str, resources: Budget) -> Basis:
    """The basis of inputs or outputs; an error names their variables."""
    passes = Passes(pca_rows(resources, matrix.shape), resources.runner)
    try:
        return fit_truncated_basis(matrix, rule, center, passes)
    except PlumecastError as error:
        raise PlumecastError(f"{name}: {error}") from None


def fit_code_map(
    codes: Array, targets: Array, settings: CodedSettings, groups: list[Array], resources: Budget
) -> tuple[PrimalMap | DualMap | KernelMap, dict[str, Any]]:
    """The map between in-memory codes, and the chosen penalty and length scale by name.

    With a memory limit, the rows of every group must be consecutive.
    """
    passes = map_passes(resources, codes, targets, settings, groups)
    square = float(array_namespace(codes).sum(codes**2)) / codes.shape[0]
    return _fit_map(codes, targets, settings, groups, square, passes)


def _fit_map(
    codes: Rows,
    targets: Rows,
    own: CodedSettings,
    groups: list[Array],
    square: float,
    passes: Passes,
) -> tuple[PrimalMap | DualMap | KernelMap, dict[str, Any]]:
    """The map, and the penalty and length scale, which are chosen unless they are given.

    In an uncentred basis the code 0 is the empty fire, which must give no smoke: kernels are
    anchored there. Products of centred codes, whose mean squared norm is `square`, have a mean,
    which an intercept represents.
    """
    if own.is_polynomial:
        constant = intercept_constant(square, own.degree) if own.center else 0.0
        choices: dict[str, Any] = {"degree": own.degree, "constant": constant, "passes": passes}
        if own.penalty is not None:
            fitted = fit_polynomial_map(codes, targets, penalty=own.penalty, **choices)
            return fitted, {"penalty": own.penalty}
        fitted, scan = tune_polynomial_map(codes, targets, groups=groups, penalties=None, **choices)
        return fitted, {"penalty": scan.best, "leave_out_error": scan.error}
    codes, targets = passes.whole(codes), passes.whole(targets)
    kind: dict[str, Any] = {"kernel": own.kernel, "anchored": not own.center}
    if not own.leaves_out:
        given: Any = {"length_scale": own.length_scale or 1.0, "penalty": own.penalty}
        return fit_kernel_map(codes, targets, **kind, **given), given
    kernel_map, tuned = tune_kernel_map(
        codes, targets, groups=groups, length_scale=own.length_scale, penalty=own.penalty, **kind
    )
    chosen = {"length_scale": tuned.length_scale, "penalty": tuned.penalty}
    return kernel_map, {**chosen, "leave_out_error": tuned.error}


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

    def encoded(
        matrix: Rows, rule: Truncation, name: str, resources: Budget
    ) -> tuple[Basis, Array]:
        """The basis of a matrix, and the codes of all its rows in memory."""
        stored = matrix if resources.limit is not None else Passes().whole(matrix)
        rows = on_device(resources, stored)
        basis = fit_side(rows, rule, own.center, name, resources)
        return basis, all_codes(resources, basis, rows)

    names = training.names
    lifted = lifted_rows(lift, training.fire, given.physics)
    inputs, codes = encoded(lifted, own.fire, names[0], resources)
    taken = resources.with_taken(bytes_in((inputs, codes)))
    outputs, goal = encoded(target_rows(targets, scales), own.smoke, names[1], taken)
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
    without, shape = fit(kept), targets.shape[1:]
    others = take_rows(codes, left_out)

    def predicted(rows: Any) -> Array:
        fields = without.decode(without.code_map.predict(take_rows(others, rows)), shape)
        xp = array_namespace(fields)
        return xp.astype(fields, xp.float32)

    out_of_fold = ComputedFields((left_out.size, *shape), predicted)
    return FittedMap(map_arrays(fit(groups), to_numpy), left_out, out_of_fold)


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
