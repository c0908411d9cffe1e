"""Tables that commands print: differences of scenarios, and the scores of an evaluation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import shown_units
from plumecast.cli.show import count, note, say, table, warn
from plumecast.impact.comparison import SCENARIO, Comparison
from plumecast.impact.difference import MOST
from plumecast.scores.quantities import QUANTITIES
from plumecast.workflows.held_out.record import Evaluation, judge

NONE = "–"


def show_comparison(comparison: Comparison) -> None:
    """One table for each scenario against the reference, and the notes."""
    found = comparison.places
    level = 100 * found.attrs["coverage"]
    unit = shown_units(found.attrs["units"])
    say(f"{found.attrs['quantity']} ({unit}) at the last snapshot of each fire, mean over fires")
    for name in found[SCENARIO].values:
        one = found.sel({SCENARIO: name})
        columns = [
            "", comparison.reference, str(name), "difference", f"{level:g} % interval", "percent",
            f"its {level:g} % interval", "chance lower", "lower / higher in", "more ignitions",
        ]  # fmt: skip
        rows = [
            _row(one.sel(place=place), found["chance"].size > 1) for place in one["place"].values
        ]
        table(f"{name} − {comparison.reference}: {_compared(one)}", columns, rows)
        for level_ in one["threshold"].values if "threshold" in one.dims else ():
            _show_exceedance(comparison.reference, str(name), one.sel(threshold=level_), unit)
    _show_meaning(found)
    for text in comparison.notes:
        note(text)


def _compared(one: xr.Dataset) -> str:
    ignitions = count(int(one["ignitions"]), "ignition")
    if not bool(one["paired"]):
        return f"unpaired, at least {ignitions} each"
    return f"{count(int(one['pairs']), 'pair')} of {ignitions}"


def _row(place: xr.Dataset, several: bool) -> list[str]:
    """Cells of one place; a star marks what is clear among several."""
    value = {str(name): item.item() for name, item in place.data_vars.items() if not item.dims}
    bounded = math.isfinite(value["relative_lower"])  # a ratio to a mean near 0 tells nothing
    return [
        f"{place['place'].item()}{' *' if several and value['clear'] else ''}",
        _number(value["reference_mean"]),
        _number(value["scenario_mean"]),
        _number(value["difference"], "+"),
        _interval(value["lower"], value["upper"]),
        _number(100 * value["relative"] if bounded else math.nan, "+"),
        _interval(100 * value["relative_lower"], 100 * value["relative_upper"]),
        _chance(value["chance"]),
        NONE if math.isnan(value["better"]) else f"{value['better']:.0%} / {value['worse']:.0%}",
        _more(value),
    ]


def _show_exceedance(reference: str, name: str, one: xr.Dataset, unit: str) -> None:
    rows = []
    for place in one["place"].values:
        at = one.sel(place=place)
        value = {key: 100 * float(at[key]) for key in at.data_vars if "exceedance" in str(key)}
        rows.append([
            str(place), _number(value["reference_exceedance"]),
            _number(value["scenario_exceedance"]), _number(value["exceedance_difference"], "+"),
            _interval(value["exceedance_lower"], value["exceedance_upper"]),
        ])  # fmt: skip
    level = 100 * one.attrs["coverage"]
    columns = ["", reference, name, "difference", f"{level:g} % interval"]
    table(f"percent of fires above {float(one['threshold']):g} {unit}", columns, rows)


def _show_meaning(found: xr.Dataset) -> None:
    tests = found["chance"].notnull().sum().item()
    if tests < 2:
        return
    level = 100 * found.attrs["coverage"]
    say(
        f"intervals hold for one place at a time; * marks what is clear at {level:g} % among all "
        f"{tests} together (Holm)"
    )


def _number(value: float, sign: str = "") -> str:
    return NONE if not math.isfinite(value) else f"{value:{sign}.3g}"


def _interval(low: float, high: float) -> str:
    if math.isnan(low):
        return NONE
    if not math.isfinite(low):
        return "unknown"
    return f"{low:+.3g} … {high:+.3g}"


def _chance(value: float) -> str:
    """A probability, never rounded to certainty."""
    if math.isnan(value):
        return NONE
    return "> 0.999" if value > 0.999 else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _more(value: dict[str, Any]) -> str:
    if value["difference"] == 0.0 and math.isnan(value["lower"]):
        return "no fire differs"
    more = value["more_ignitions"]
    if more == 0:
        return "rough" if value["rough"] else "settled"
    if math.isinf(value["lower"]):
        return NONE
    return f"not with {MOST:,}" if math.isinf(more) else f"{more:.0f}"


def show_results(results: Mapping[str, Evaluation], what: str = "test snapshots") -> None:
    """The tables and verdicts of the evaluations of one or several outputs, by name."""
    first, *others = results.values()
    if not others:
        show_scores(first, what)
        show_exceedances(first)
        show_verdict(first)
        return
    columns = ["output", *_COLUMNS]
    rows = [[name, *row] for name, result in results.items() for row in _rows(result)]
    captured = f"smoke above thresholds that capture {first.captured:.0%} of the footprint"
    table(f"{first.snapshots} {what}, {captured}", columns, rows)
    for name, result in results.items():
        show_exceedances(result, name)
    for name, result in results.items():
        show_verdict(result, f"{name}: ")


_COLUMNS = ["medians", "AUC", "IoU", "deployable IoU", "smoke IoU", "error", "all", "ms"]


def show_scores(result: Evaluation, what: str = "test snapshots") -> None:
    """The table of an evaluation: the surrogate beside the baselines."""
    title = (
        f"{result.snapshots} {what}, smoke above {result.smoke_threshold:.3g} "
        f"(sum over checkpoints; {result.captured:.0%} of the footprint)"
    )
    table(title, _COLUMNS, _rows(result))


def _rows(result: Evaluation) -> list[list[str]]:
    return [
        [
            score.name,
            f"{score.auc:.3f}",
            f"{score.iou:.3f}",
            f"{score.deployable_iou:.3f}",
            shown_score(score.smoke_iou, ".3f"),
            f"{score.snapshot_error:.2f}",
            f"{score.relative_error:.2f}",
            shown_score(score.predict_ms, ".2f"),
        ]
        for score in result.scores
    ]


def show_exceedances(result: Evaluation, output: str = "smoke") -> None:
    """The table of an output above thresholds, over all cells."""
    rows = [
        [
            score.name,
            f"{item.threshold:.3g} ({item.quantity})",
            shown_score(item.hit_rate, ".3f"),
            shown_score(item.false_alarm_ratio, ".3f"),
            shown_score(item.bias, ".2f"),
            f"{item.iou:.3f}",
        ]
        for score in result.scores
        for item in score.exceedances
    ]
    if rows:
        columns = [
            "all cells together",
            f"{output} above",
            "hit rate",
            "false alarms",
            "bias",
            "IoU",
        ]
        table(_exceedance_title(result, output), columns, rows)


def _exceedance_title(result: Evaluation, output: str) -> str:
    """What the thresholds are values of: the quantity of the user, and for τ the sum."""
    used = dict.fromkeys(item.quantity for item in result.scores[0].exceedances)
    known = [QUANTITIES[name] for name in reversed(used)]
    each = [f"{item.name}: {item.long_name}, {item.shown_units}" for item in known]
    return "\n".join([f"predicted {output} above a threshold", *each])


def shown_score(value: float, how: str) -> str:
    """A number in the given format; a dash if it is not known."""
    return "–" if math.isnan(value) else format(value, how)


def show_verdict(result: Evaluation, which: str = "") -> None:
    """Say whether the surrogate, which is first, beats the mean field and the nearest fire."""
    verdict = judge(result.scores)
    if verdict is not None:
        (say if verdict.beats else warn)(f"{which}{verdict.text}")


def refuse_other_scores(where: Path, data: Path, version: object) -> None:
    """Raise if a file has the scores of another store."""
    if not where.is_file():
        return
    try:
        found = json.loads(where.read_text(encoding="utf-8"))
        other, other_version = Path(found["data"]), found["data_version"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return
    if other.absolute() != data.absolute() and (version is None or version != other_version):
        raise PlumecastError(
            f"{where} has the scores of another store, {other}; give --out another file, or remove "
            "this one"
        )
