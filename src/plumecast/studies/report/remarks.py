"""What a study found, in sentences made from its table."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from plumecast.studies import paper
from plumecast.studies.cases import optical_depth
from plumecast.studies.cases.shift import OTHERS
from plumecast.studies.methods.methods import title_of
from plumecast.studies.table import rows_of, select


def remarks_of(name: str, found: xr.Dataset) -> list[str]:
    """Sentences with numbers of this run; none for a study without any to say."""
    return _REMARKS[name](found) if name in _REMARKS else []


def _median(values: xr.DataArray) -> float:
    known = values.values[~np.isnan(values.values)]
    return float(np.median(known)) if known.size else math.nan


def _footprint(found: xr.Dataset) -> list[str]:
    out = []
    for name in found.attrs["methods"].split(","):
        part = select(found, name=name)
        text = (
            f"{title_of(name)}: median AUC {_median(part.auc):.2f}, IoU {_median(part.iou):.2f}, "
            f"deployable IoU {_median(part.deployable_iou):.2f}, relative error "
            f"{_median(part.relative_error):.2f} over {part.sizes['row']:,} test snapshots"
        )
        known = paper.TABLE.get(name)
        if known is not None:
            text += f" (paper: AUC {known.auc:.2f}, IoU {known.iou:.2f})"
        out.append(text + ".")
    part = select(found, name=found.attrs["methods"].split(",")[0])
    size, iou = part.extent.values, part.iou.values
    if size.size > 2 and np.ptp(size) > 0.0 and np.ptp(iou) > 0.0:
        rank = np.corrcoef(_ranks(size), _ranks(iou))[0, 1]
        out.append(f"Rank correlation of IoU with the footprint's extent: {rank:+.2f}.")
    return out


def _ranks(values: np.ndarray) -> np.ndarray:
    ranks = np.empty(values.size)
    ranks[np.argsort(values, kind="stable")] = np.arange(values.size)
    return ranks


def _optical_depth(found: xr.Dataset) -> list[str]:
    needs = {n: found.attrs[f"{n} samples_needed"] for n in optical_depth.ESTIMATORS}
    most = int(found.samples.max())
    listed = ", ".join(
        f"{label} {needs[name]:.0f}" if math.isfinite(needs[name])
        else f"{label} more than {most}"
        for name, label in optical_depth.ESTIMATORS.items()
    )  # fmt: skip
    part = select(found, estimator="corrected")
    return [
        f"Samples needed for {found.attrs['wanted']:.0%} error: {listed}. In the paper Monte Carlo "
        f"needs about {paper.EXTRA_SAMPLES} more than the operator.",
        f"Within two standard errors of the corrected estimate lie {_median(part.covered):.0%} of "
        f"the smoky cells; its median coefficient is {_median(part.coefficient):.2f} (1: the "
        "operator is trusted whole).",
        f"{found.attrs['final_test']} final test snapshots, {found.attrs['repeats']} draws; Monte "
        "Carlo draws with replacement.",
    ]


def _sensitivity(found: xr.Dataset) -> list[str]:
    out = []
    for name, label in (("captured", "β"), ("std_fraction", "the std fraction"), ("penalty", "λ")):
        rows = rows_of(select(found, parameter=name))
        best = max(rows, key=lambda row: row["iou"])
        out.append(
            f"Over {label} the IoU on validation runs from {min(r['iou'] for r in rows):.2f} to "
            f"{best['iou']:.2f} (best at {best['value']:.3g}), the AUC from "
            f"{min(r['auc'] for r in rows):.2f} to {max(r['auc'] for r in rows):.2f}."
        )
    return out


def _shift(found: xr.Dataset) -> list[str]:
    out = []
    droughts = found.attrs["droughts"].split(",")
    for method, with_covariates in sorted(
        set(zip(found.method.values.tolist(), found.covariates.values.tolist(), strict=True))
    ):
        part = select(found, method=method, covariates=with_covariates)
        same = [_median(select(part, trained_on=d, tested_on=d).iou) for d in droughts]
        other = [
            _median(select(part, trained_on=a, tested_on=b).iou)
            for a in droughts for b in droughts if a != b
        ]  # fmt: skip
        text = (
            f"{title_of(method)}{' told the wind' if with_covariates else ''}: median IoU "
            f"{np.mean(same):.2f} on the drought of training, {np.mean(other):.2f} on another"
        )
        if len(droughts) > 2:
            rest = [_median(select(part, trained_on=OTHERS, tested_on=d).iou) for d in droughts]
            text += f", {np.mean(rest):.2f} on one left out of three"
        out.append(text + " (means over droughts).")
    if not found.attrs["covariates"]:
        out.append("The wind is not told: it is not in this data, or never differs.")
    out.append(
        f"Spectral surrogates were trained on at most {found.attrs['shift_train']} snapshots each."
    )
    return out


def _gaussian_process(found: xr.Dataset) -> list[str]:
    scales = ", ".join(
        f"{title_of(n)} {found.attrs[f'{n} length_scale']:.3g}"
        for n in found.attrs["methods"].split(",")
    )
    return [*_footprint(found)[:2], f"Trained on {found.attrs['samples']} snapshots; l: {scales}."]


def _summary(found: xr.Dataset) -> list[str]:
    facts = found.attrs
    rows = {row["method"]: row for row in rows_of(found)}
    out = [
        f"τ = {facts['smoke_threshold']:.3g} µg m⁻³ captures {facts['captured']:.0%} of the "
        f"footprint (paper: {paper.SMOKE_THRESHOLD}); 95 % std keeps r = "
        f"{facts['fire_rank']} modes of the "
        f"fire and r̃ = {facts['smoke_rank']} of the smoke (paper: {paper.FIRE_RANK}, "
        f"{paper.SMOKE_RANK}), which leave {facts['fire_projection_error']:.0%} and "
        f"{facts['smoke_projection_error']:.0%} of validation out (paper: "
        f"{paper.FIRE_PROJECTION_ERROR:.0%}, {paper.SMOKE_PROJECTION_ERROR:.0%})."
    ]
    out.append(_quadratic_times(facts, rows))
    return out


def _plain(seconds: float) -> str:
    """Two digits, and no powers of ten."""
    return f"{seconds:,.0f}" if seconds >= 100.0 else f"{seconds:.2g}"


def _quadratic_times(facts: dict[str, Any], rows: dict[str, dict[str, Any]]) -> str:
    ours, literal = rows["paper-quadratic"], rows.get("paper-quadratic-literal")
    known = paper.TABLE["paper-quadratic"]
    text = (
        f"The quadratic operator trains in {_plain(ours['training'])} s after encoding (paper: "
        f"{known.training:.0f} s) and is tuned over {facts['penalties_scanned']} penalties in "
        f"{_plain(ours['tuning'])} s (paper: {known.tuning:.0f} s)"
    )
    if literal is None or math.isnan(literal["training"]):
        why = facts.get("literal_problem", "it was not asked for")
        return f"{text}; the literal method was not timed: {why}."
    alone, tuned = _plain(literal["training"]), _plain(literal["tuning"])
    return (
        f"{text}; the literal method takes {alone} s on this machine, and for as many penalties "
        f"{tuned} s (one solve timed, times their number), with the same predictions to "
        f"{facts['literal_difference']:.0e}."
    )


def _learning_curve(found: xr.Dataset) -> list[str]:
    out = []
    smallest = int(found.ignitions.min())
    few = rows_of(select(found, ignitions=smallest))
    listed = ", ".join(f"{title_of(row['method'])} {row['deployable_iou']:.2f}" for row in few)
    out.append(f"Deployable IoU with {smallest} training ignitions: {listed}.")
    if found.attrs["recommended_left_out"]:
        out.append(
            f"The recommended operator was not fitted to subsets of more than "
            f"{found.attrs['curve_train']:,} snapshots other than the whole."
        )
    out.append(f"Scored on {found.attrs['test_snapshots']} random test snapshots; one nested draw.")
    return out


_REMARKS: dict[str, Callable[[xr.Dataset], list[str]]] = {
    "optical-depth": _optical_depth,
    "footprint-linear": _footprint,
    "footprint-quadratic": _footprint,
    "footprint-recommended": _footprint,
    "sensitivity": _sensitivity,
    "shift": _shift,
    "gaussian-process": _gaussian_process,
    "summary": _summary,
    "learning-curve": _learning_curve,
}
