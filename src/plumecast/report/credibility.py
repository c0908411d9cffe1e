"""The sixteen recommendations for trustworthy scientific machine learning, answered for one run.

Every answer uses only what the run recorded, and says so if the record is not sufficient. The
recommendations are those of the paper's appendix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.operators.settings import NETWORKS
from plumecast.paper.context import rows_of, select
from plumecast.paper.results import Finished
from plumecast.scores.tally import known_median, known_values
from plumecast.workflows.held_out.record import TRIVIAL

MET, PARTLY, NOT_MET, NOT_APPLICABLE = "met", "partly", "not met", "not applicable"
FOOTPRINTS = ("footprint-linear", "footprint-quadratic", "footprint-recommended")


@dataclass(frozen=True, slots=True)
class Assessment:
    """One recommendation, whether this run meets it, and the evidence."""

    group: str
    recommendation: str
    state: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Facts:
    """The record of a run and its finished studies."""

    run: Mapping[str, Any]
    studies: Mapping[str, Finished]

    def finding(self, name: str) -> xr.Dataset | None:
        """The table of a study; None if it was not run."""
        return self.studies[name].finding if name in self.studies else None

    def rows(self) -> dict[str, dict[str, Any]]:
        """Rows of the summary by method; empty if the summary was not run."""
        summary = self.finding("summary")
        return {} if summary is None else {row["method"]: row for row in rows_of(summary)}

    @property
    def source(self) -> str:
        """The source of the data."""
        return str(self.run.get("source") or "not recorded")

    def has_footprints(self) -> list[Finished]:
        """The finished studies of footprints."""
        return [self.studies[name] for name in FOOTPRINTS if name in self.studies]


Check = Callable[[Facts], tuple[str, str]]


def answer_all(run: Mapping[str, Any], finished: list[Finished]) -> list[Assessment]:
    """All sixteen answers, in the order of the paper's appendix."""
    facts = Facts(run, {item.study.name: item for item in finished})
    return [Assessment(group, text, *check(facts)) for group, text, check in RECOMMENDATIONS]


def _missing(*names: str) -> tuple[str, str]:
    return NOT_MET, f"This run does not show it: study {' or '.join(names)} was not run."


def _purpose(facts: Facts) -> tuple[str, str]:
    text = (
        "The purpose is to predict cumulative column-mean smoke from the time since ignition, for "
        "many fires. The prior knowledge is that smoke is never negative and that no fire makes no "
        "smoke"
    )
    if "footprint-recommended" in facts.studies:
        text += "; the recommended operator also assumes that a fire makes the same plume elsewhere"
    return MET, text + "."


def _domains(facts: Facts) -> tuple[str, str]:
    train, test = facts.run["parts"]["train"], facts.run["parts"]["test"]
    text = (
        f"The surrogates were trained on {train['groups']} groups by {facts.run['by']} and tested "
        f"on {test['groups']} others. The droughts are "
        f"{', '.join(train.get('droughts', {})) or 'unlabelled'}"
    )
    if "burned_area" in train:
        low, _, high = train["burned_area"]
        text += f"; the burned areas range from {low:,.0f} to {high:,.0f} acres"
    return MET, text + ". No claim is made outside this range."


def _quantities(facts: Facts) -> tuple[str, str]:
    has = {"smoke footprint": bool(facts.has_footprints()),
           "mean optical depth": "optical-depth" in facts.studies}  # fmt: skip
    if all(has.values()):
        text = "There are two: the mean optical-depth proxy E[ln(g + 1)] and the footprint g > τ."
        return MET, text
    for name, shown in has.items():
        if shown:
            return PARTLY, f"This run has one of the paper's two, the {name}."
    return _missing("optical-depth", "footprint-linear")


def _structure(facts: Facts) -> tuple[str, str]:
    rows = facts.rows()
    if not rows:
        return _missing("summary")
    chosen = [f"{r['title']} ({r['choices']})" for r in rows.values()
              if r["choices"] and np.isfinite(r["iou"])]  # fmt: skip
    return MET, "The summary records the chosen structures: " + "; ".join(chosen) + "."


def _code(facts: Facts) -> tuple[str, str]:
    general = (
        "The tests of the package compare closed forms with least squares, kernels with explicit "
        "features and the simulator with exact solutions. "
    )
    summary = facts.finding("summary")
    difference = None if summary is None else summary.attrs.get("literal_difference")
    if difference is None:
        return PARTLY, general + "This run did not repeat a check on its own data."
    return MET, (
        f"{general}In this run the quadratic operator differs from the paper's literal normal "
        f"equations by {difference:.0e} (relative)."
    )


def _benchmark(facts: Facts) -> tuple[str, str]:
    has = facts.has_footprints()
    if not has:
        return _missing(*FOOTPRINTS[:1])
    best = max(known_median(item.finding.iou) for item in has)
    text = f"On {has[0].finding.sizes['row']:,} test snapshots the best median IoU is {best:.2f}. "
    if "embedded simulator" in facts.source:
        text += "The fires come from a simulator with reduced physics, not from WRF-Fire."
        return PARTLY, text
    return MET, text + f"The source of the data is {facts.source}."


def _purpose_validation(facts: Facts) -> tuple[str, str]:
    rows = facts.rows()
    if not rows:
        return _missing("summary")
    bar = max(rows[name]["deployable_iou"] for name in TRIVIAL)
    passed = [row["title"] for row in rows.values() if row["deployable_iou"] > bar]
    text = (
        "The requirement is a higher deployable IoU than the mean field and the nearest fire "
        f"({bar:.2f}). "
    )
    text += (
        f"These methods meet it: {', '.join(passed)}."
        if passed
        else ("No surrogate meets it on this data.")
    )
    state = PARTLY if passed else NOT_MET
    return state, text + " There was no comparison with observations."


def _uncertainty(facts: Facts) -> tuple[str, str]:
    found = facts.finding("optical-depth")
    if found is None:
        return _missing("optical-depth")
    part = select(found, estimator="corrected")
    covered = known_median(part.covered)
    text = (
        "The corrected mean optical depth has a standard error. The share of cells with smoke "
        f"within two standard errors is {covered:.0%}, where 95 % would be exact. "
    )
    state = MET if 0.85 <= covered <= 0.99 else PARTLY
    return state, text + "Scores are shown as distributions. Single predictions have no interval."


def _data(facts: Facts) -> tuple[str, str]:
    parts = facts.run["parts"]
    text = (
        f"The data has {sum(p['snapshots'] for p in parts.values()):,} snapshots of "
        f"{sum(p['fires'] for p in parts.values())} fires. Its version is "
        f"{facts.run['data_version']} and its source is {facts.source}. "
    )
    if "learning-curve" in facts.studies:
        return MET, text + "The learning curve shows the effect of less data."
    absent = "The effect of less data is not shown, because study learning-curve was not run."
    return PARTLY, text + absent


def _processing(facts: Facts) -> tuple[str, str]:
    recipe = facts.run["recipe"]
    floor = recipe.get("smoke_floor") or facts.run.get("smoke_floor")
    area = recipe.get("min_acres")
    smoke = (
        f"Smoke below {floor:g} µg m⁻³ was set to zero."
        if floor
        else ("No smoke floor is recorded.")
    )
    filtered = (
        f"Only snapshots of at least {area:,.0f} acres were kept."
        if area
        else ("Snapshots were not filtered by burned area.")
    )
    split = f"{recipe['fractions']} by {facts.run['by']} with seed {facts.run['seed']}"
    return (MET if floor else PARTLY), f"{smoke} {filtered} The split is {split}."


def _sensitivities(facts: Facts) -> tuple[str, str]:
    table = facts.finding("sensitivity")
    if table is None:
        return _missing("sensitivity")
    spans = []
    for name, label in (("captured", "β"), ("std_fraction", "the std fraction"), ("penalty", "λ")):
        span = float(np.ptp(known_values(select(table, parameter=name).iou)))
        spans.append(f"{label} changes the IoU by up to {span:.2f}")
    text = f"On validation {', '.join(spans[:-1])} and {spans[-1]}."
    if "shift" in facts.studies:
        return MET, text + " Study shift shows the effect of another drought."
    absent = " The effect of another drought is not shown, because study shift was not run."
    return PARTLY, text + absent


def _selection(facts: Facts) -> tuple[str, str]:
    summary = facts.finding("summary")
    if summary is None or "paper-quadratic" not in facts.rows():
        return _missing("summary")
    return MET, (
        f"λ was chosen among {summary.attrs['penalties_scanned']} penalties by leaving out one "
        "group of the training part at a time. The ranks follow the paper's rule. τ and α were "
        "chosen on validation. The test part was used only for scores."
    )


def _reproducible(facts: Facts) -> tuple[str, str]:
    run = facts.run
    return MET, (
        f"The run used plumecast {run['plumecast']}, Python {run['python']}, data version "
        f"{run['data_version']} and seed {run['seed']}. The command below repeats the tables digit "
        "by digit on the same machine, except for the times. The tests of the package run with "
        "every change."
    )


def _alternatives(facts: Facts) -> tuple[str, str]:
    scored = {name: row for name, row in facts.rows().items() if not math.isnan(row["iou"])}
    if len(scored) < 3:
        return _missing("summary")
    best = max(scored.values(), key=lambda row: row["deployable_iou"])
    text = (
        f"{len(scored)} methods were compared on the same split. The best deployable IoU is "
        f"{best['deployable_iou']:.2f} ({best['title']}). "
    )
    if any(name in scored for name in NETWORKS):
        return MET, text + "Neural networks are among them."
    return PARTLY, text + "No neural network was trained in this run."


def _mechanism(facts: Facts) -> tuple[str, str]:
    if not facts.has_footprints():
        return _missing(*FOOTPRINTS[:1])
    return MET, (
        "Linear and quadratic operators consist of explicit weights between modes. The recommended "
        "operator is a sum of convolutions of the age of burn. The maps show the errors of each."
    )


_NO_INVERSE_PROBLEM = NOT_APPLICABLE, "Here, as in the paper, no inverse problem is solved."
_ONE, _TWO, _THREE, _FOUR = (
    "Problem definition", "Verification", "Validation", "Continuous credibility",
)  # fmt: skip

RECOMMENDATIONS: tuple[tuple[str, str, Check], ...] = (
    (_ONE, "Prior knowledge and purpose of the model", _purpose),
    (_ONE, "Domains of verification, calibration, validation and application", _domains),
    (_ONE, "Quantities of interest", _quantities),
    (_ONE, "Structure of the model", _structure),
    (_TWO, "Code verified on idealised problems", _code),
    (_TWO, "Accuracy verified on realistic benchmarks", _benchmark),
    (_THREE, "Probabilistic calibration", lambda facts: _NO_INVERSE_PROBLEM),
    (_THREE, "Validation against requirements of the purpose", _purpose_validation),
    (_THREE, "Uncertainty of predictions", _uncertainty),
    (_FOUR, "Characteristics of the data and their impact", _data),
    (_FOUR, "Processing of the data", _processing),
    (_FOUR, "Sensitivities of the model", _sensitivities),
    (_FOUR, "Selection of hyperparameters", _selection),
    (_FOUR, "Software tests and reproducibility", _reproducible),
    (_FOUR, "Comparison with alternatives", _alternatives),
    (_FOUR, "Mechanism of prediction explained", _mechanism),
)
