"""Show the scores of an evaluation in the terminal, and keep its file from being replaced."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

from plumecast.base.errors import PlumecastError
from plumecast.cli.show import say, table, warn
from plumecast.scores.quantities import QUANTITIES
from plumecast.workflows.held_out.record import Evaluation, judge


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
