"""The coded family: PCA of both sides, and a map between the codes."""

from __future__ import annotations

from typing import Any

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, Rows, array_namespace, map_arrays, to_numpy
from plumecast.compute.blocks import whole
from plumecast.data.layout import Layout
from plumecast.data.training import TrainingMatrices
from plumecast.operators.coded import polynomial_map
from plumecast.operators.coded.kernel_map import KernelMap, fit_kernel_map
from plumecast.operators.coded.kernel_tuning import tune_kernel_map
from plumecast.operators.coded.kernels import POLYNOMIAL, has_length_scale
from plumecast.operators.coded.memory import IN_MEMORY, Placement
from plumecast.operators.coded.monomials import monomial_count
from plumecast.operators.coded.operator import CodedOperator
from plumecast.operators.coded.polynomial_map import DualMap, PrimalMap
from plumecast.operators.pca import Basis, Truncation, fit_truncated_basis
from plumecast.operators.settings import Settings


def fit_coded(
    data: TrainingMatrices, settings: Settings, group_by: str, place: Placement = IN_MEMORY
) -> tuple[CodedOperator, dict[str, Any]]:
    """Encode both sides and fit the map between the codes; also what was chosen on the way."""
    inputs, outputs = place.hold(data.inputs), place.hold(data.outputs)
    input_basis = fit_side(inputs, settings.fire, settings.center, data.input_layout, place)
    output_basis = fit_side(outputs, settings.smoke, settings.center, data.output_layout, place)
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
    elif closed_form:
        code_map = polynomial_map.fit_linear_map(codes, input_basis.singular_values, targets, block)
        chosen |= {"penalty": 0.0}
    else:
        energy = float(array_namespace(input_basis.modes).sum(input_basis.singular_values**2))
        code_map, more = _fit_polynomial(
            codes, targets, settings, groups, block, energy / inputs.shape[0]
        )
        chosen |= more | ({"leave_out": group_by} if groups else {})
    return map_arrays(CodedOperator(input_basis, code_map, output_basis), to_numpy), chosen


def fit_code_map(
    codes: Array,
    targets: Array,
    settings: Settings,
    groups: list[Array],
    place: Placement = IN_MEMORY,
) -> tuple[PrimalMap | DualMap | KernelMap, dict[str, Any]]:
    """The map between codes held in memory; what is left open is chosen by leaving out `groups`,
    which with a limit follow each other."""
    of_distance = settings.kernel != POLYNOMIAL
    block = place.map_rows(
        codes,
        targets,
        features=None if of_distance else monomial_count(codes.shape[1], settings.degree),
        cells=0,
        group=max(rows.size for rows in groups) if _leaves_out(settings) else 0,
        closed_form=False,
    )
    if of_distance:
        return _fit_kernel(codes, targets, settings, groups if _leaves_out(settings) else None)
    square = float(array_namespace(codes).sum(codes**2)) / codes.shape[0]
    return _fit_polynomial(codes, targets, settings, groups, block, square)


def _fit_polynomial(
    codes: Rows,
    targets: Rows,
    settings: Settings,
    groups: list[Array],
    block: int | None,
    square: float,
) -> tuple[PrimalMap | DualMap, dict[str, Any]]:
    """A polynomial of codes of mean square norm `square`; a penalty that is left open is chosen by
    leaving out `groups`.

    Products of centred codes have a mean, which an intercept takes; in an uncentred basis the empty
    fire has the code 0 and makes no smoke.
    """
    degree, penalty = settings.degree, settings.penalty
    constant = polynomial_map.intercept_constant(square, degree) if settings.center else 0.0
    if penalty is not None:
        fitted = polynomial_map.fit_polynomial_map(
            codes, targets, degree=degree, penalty=penalty, block=block, constant=constant
        )
        return fitted, {"penalty": penalty}
    tuned, scan = polynomial_map.tune_polynomial_map(
        codes,
        targets,
        degree=degree,
        groups=groups,
        penalties=None,
        block=block,
        constant=constant,
    )
    return tuned, {"penalty": scan.best, "leave_out_error": scan.error}


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


def fit_side(
    matrix: Rows, rule: Truncation, center: bool, layout: Layout, place: Placement
) -> Basis:
    """The basis of one side; an error names its variables."""
    try:
        return fit_truncated_basis(matrix, rule, center, place.encode_rows(matrix))
    except PlumecastError as error:
        raise PlumecastError(f"{', '.join(layout.names)}: {error}") from None
