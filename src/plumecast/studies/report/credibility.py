"""The sixteen recommendations for trustworthy scientific machine learning, answered for one run.

Every answer is made from what the run recorded; where the record does not show it, it says so.
The recommendations are those the paper's appendix goes through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from plumecast.studies.results import Finished
from plumecast.studies.table import rows_of, select

MET, PARTLY, NOT_MET, NOT_APPLICABLE = "met", "partly", "not met", "not applicable"
FOOTPRINTS = ("footprint-linear", "footprint-quadratic", "footprint-recommended")


@dataclass(frozen=True, slots=True)
class Answer:
    """One recommendation and what this run has to say to it."""

    group: str
    recommendation: str
    state: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a run recorded."""

    run: Mapping[str, Any]
    studies: Mapping[str, Finished]

    def finding(self, name: str) -> xr.Dataset | None:
        """The table of a study, if it was run."""
        found = self.studies.get(name)
        return None if found is None else found.finding

    def rows(self) -> dict[str, dict[str, Any]]:
        """The summary by method."""
        found = self.finding("summary")
        return {} if found is None else {row["method"]: row for row in rows_of(found)}

    @property
    def simulated(self) -> bool:
        """Whether the snapshots come from the embedded simulator."""
        return "embedded simulator" in str(self.run.get("source"))


Check = Callable[[Facts], tuple[str, str]]


def answer_all(run: Mapping[str, Any], finished: list[Finished]) -> list[Answer]:
    """All sixteen, in the order of the paper's appendix."""
    facts = Facts(run, {item.study.name: item for item in finished})
    return [Answer(group, text, *check(facts)) for group, text, check in RECOMMENDATIONS]


def _missing(*names: str) -> tuple[str, str]:
    return NOT_MET, f"not shown by this run: study {' or '.join(names)} was not run"


def _purpose(facts: Facts) -> tuple[str, str]:
    return MET, (
        "Purpose: cumulative column-mean smoke from the time since ignition, for many fires. "
        "Prior knowledge used: smoke is never negative, an empty fire makes none"
        + (", and, for the recommended operator, the same fire elsewhere makes the same plume."
           if "footprint-recommended" in facts.studies else ".")
    )  # fmt: skip


def _domains(facts: Facts) -> tuple[str, str]:
    train, test = facts.run["parts"]["train"], facts.run["parts"]["test"]
    text = (
        f"Trained on {train['groups']} and tested on {test['groups']} other groups by "
        f"{facts.run['by']}; droughts {', '.join(train.get('droughts', {})) or 'unlabelled'}"
    )
    if "burned_area" in train:
        low, _, high = train["burned_area"]
        text += f"; burned areas of {low:,.0f} to {high:,.0f} acres"
    return MET, text + ". Nothing is claimed outside this range."


def _quantities(facts: Facts) -> tuple[str, str]:
    has = [name for name in FOOTPRINTS if name in facts.studies]
    depth = "optical-depth" in facts.studies
    if has and depth:
        return MET, "Two: the mean optical-depth proxy E[ln(g + 1)] and the smoke footprint g > τ."
    if has or depth:
        return PARTLY, "One of the paper's two: " + ("the footprint." if has else "optical depth.")
    return _missing("optical-depth", "footprint-linear")


def _structure(facts: Facts) -> tuple[str, str]:
    rows = facts.rows()
    if not rows:
        return _missing("summary")
    chosen = [f"{r['title']} ({r['choices']})" for r in rows.values()
              if r["choices"] and np.isfinite(r["iou"])]  # fmt: skip
    return MET, "As recorded in the summary: " + "; ".join(chosen) + "."


def _code(facts: Facts) -> tuple[str, str]:
    found = facts.finding("summary")
    general = (
        "The package's tests check closed forms against least squares, kernels against explicit "
        "features and the simulator against exact solutions"
    )
    difference = None if found is None else found.attrs.get("literal_difference")
    if difference is None:
        return PARTLY, general + "; this run did not repeat a check on its own data."
    return MET, general + (
        f"; in this run the quadratic operator agreed with the paper's literal normal equations "
        f"to {difference:.0e}."
    )


def _benchmark(facts: Facts) -> tuple[str, str]:
    has = [facts.studies[name] for name in FOOTPRINTS if name in facts.studies]
    if not has:
        return _missing(*FOOTPRINTS[:1])
    best = max(float(item.finding.iou.median()) for item in has)
    text = f"{has[0].finding.sizes['row']:,} held-out snapshots, best median IoU {best:.2f}"
    if facts.simulated:
        return PARTLY, text + "; of simulated fires with reduced physics, not of WRF-Fire."
    return MET, text + f"; source: {facts.run.get('source') or 'not recorded'}."


def _calibration(facts: Facts) -> tuple[str, str]:
    return NOT_APPLICABLE, "No inverse problem is solved, as in the paper."


def _purpose_validation(facts: Facts) -> tuple[str, str]:
    rows = facts.rows()
    if not rows:
        return _missing("summary")
    bar = max(rows[name]["deployable_iou"] for name in ("mean-field", "nearest-fire"))
    passed = [row["title"] for row in rows.values() if row["deployable_iou"] > bar]
    text = (
        "Requirement: at one threshold from validation, beat the mean field and the nearest fire "
        f"(deployable IoU {bar:.2f}). "
    )
    if not passed:
        return NOT_MET, text + "No surrogate does on this data. No observations were compared with."
    return PARTLY, text + f"Met by {', '.join(passed)}. No observations were compared with."


def _uncertainty(facts: Facts) -> tuple[str, str]:
    found = facts.finding("optical-depth")
    if found is None:
        return _missing("optical-depth")
    part = select(found, estimator="corrected")
    covered = float(np.nanmedian(part.covered.values))
    text = (
        f"The corrected mean optical depth carries an error bar; {covered:.0%} of smoky cells lie "
        "within two standard errors (95 % if it is honest). "
    )
    state = MET if 0.85 <= covered <= 0.99 else PARTLY
    return state, text + "Scores are shown as distributions; single predictions have no error bar."


def _data(facts: Facts) -> tuple[str, str]:
    parts = facts.run["parts"]
    text = (
        f"{sum(p['snapshots'] for p in parts.values()):,} snapshots of "
        f"{sum(p['fires'] for p in parts.values())} fires, version {facts.run['data_version']}, "
        f"source: {facts.run.get('source') or 'not recorded'}. "
    )
    if "learning-curve" in facts.studies:
        return MET, text + "The effect of less data is the learning curve."
    return PARTLY, text + "The effect of less data was not studied (learning-curve)."


def _processing(facts: Facts) -> tuple[str, str]:
    recipe = facts.run["recipe"]
    floor = recipe.get("smoke_floor") or facts.run.get("smoke_floor")
    text = (
        "; ".join(
            [
                f"smoke below {floor:g} µg m⁻³ set to zero" if floor else "no smoke floor recorded",
                f"snapshots of at least {recipe['min_acres']:,.0f} acres"
                if recipe.get("min_acres")
                else "no filter by burned area",
                f"split {recipe['fractions']} by {facts.run['by']}, seed {facts.run['seed']}",
            ]
        )
        + "."
    )
    return (MET if floor else PARTLY), text[0].upper() + text[1:]


def _sensitivities(facts: Facts) -> tuple[str, str]:
    found = facts.finding("sensitivity")
    if found is None:
        return _missing("sensitivity")
    spans = []
    for name, label in (("captured", "β"), ("std_fraction", "the std fraction"), ("penalty", "λ")):
        values = select(found, parameter=name).iou.values
        spans.append(f"{label} moves the IoU by {np.nanmax(values) - np.nanmin(values):.2f}")
    text = "On validation, " + ", ".join(spans) + "."
    if "shift" in facts.studies:
        return MET, text + " Shift between droughts is shown."
    return PARTLY, text + " Shift between droughts was not run."


def _selection(facts: Facts) -> tuple[str, str]:
    rows = facts.rows()
    if "paper-quadratic" not in rows:
        return _missing("summary")
    found = facts.finding("summary")
    assert found is not None
    return MET, (
        f"λ by leaving out one group at a time over {found.attrs['penalties_scanned']} penalties "
        "on training; ranks as in the paper; τ and α on validation. The test part was used for "
        "scores only."
    )


def _reproducible(facts: Facts) -> tuple[str, str]:
    run = facts.run
    return MET, (
        f"plumecast {run['plumecast']}, Python {run['python']}, data version "
        f"{run['data_version']}, seed {run['seed']}: the command below repeats the tables digit by "
        "digit on the same machine (times excepted). The package is tested with every change."
    )


def _alternatives(facts: Facts) -> tuple[str, str]:
    rows = facts.rows()
    scored = {name: row for name, row in rows.items() if not math.isnan(row["iou"])}
    if len(scored) < 3:
        return _missing("summary")
    best = max(scored.values(), key=lambda row: row["deployable_iou"])
    neural = any(name in scored for name in ("unet", "fno"))
    text = (
        f"{len(scored)} methods on the same split; best deployable IoU "
        f"{best['deployable_iou']:.2f} by {best['title']}. "
    )
    if neural:
        return MET, text + "Neural networks are among them."
    return PARTLY, text + "No neural network was trained in this run."


def _mechanism(facts: Facts) -> tuple[str, str]:
    if not facts.studies.keys() & set(FOOTPRINTS):
        return _missing(*FOOTPRINTS[:1])
    return MET, (
        "Linear and quadratic operators are explicit weights between modes; the recommended one is "
        "a sum of convolutions of the age of burn. Maps show where each errs."
    )


_ONE, _TWO, _THREE, _FOUR = (
    "Problem definition",
    "Verification",
    "Validation",
    "Continuous credibility",
)

RECOMMENDATIONS: tuple[tuple[str, str, Check], ...] = (
    (_ONE, "Prior knowledge and purpose of the model", _purpose),
    (_ONE, "Domains of verification, calibration, validation and application", _domains),
    (_ONE, "Quantities of interest", _quantities),
    (_ONE, "Structure of the model", _structure),
    (_TWO, "Code verified on idealised problems", _code),
    (_TWO, "Accuracy verified on realistic benchmarks", _benchmark),
    (_THREE, "Probabilistic calibration", _calibration),
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
