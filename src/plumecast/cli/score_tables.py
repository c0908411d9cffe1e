"""Tables that commands print of the scores of an evaluation, and its verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping

from plumecast.cli.show import say, table, warn
from plumecast.scores.quantities import QUANTITIES
from plumecast.workflows.held_out.record import Evaluation, judge


def show_results(results: Mapping[str, Evaluation], what: str = "test snapshots") -> None:
    """The tables and verdicts of the evaluations of one or several outputs, by name."""
    first, *others = results.values()
    if not others:
        show_scores(first, what)
        _show_exceedances(first)
        _show_verdict(first)
        return
    columns = ["output", *_COLUMNS]
    rows = [[name, *row] for name, result in results.items() for row in _rows(result)]
    captured = f"smoke above thresholds that capture {first.captured:.0%} of the footprint"
    table(f"{first.snapshots} {what}, {captured}", columns, rows)
    _show_masses(first)
    for name, result in results.items():
        _show_exceedances(result, name)
    for name, result in results.items():
        _show_verdict(result, f"{name}: ")


_COLUMNS = ["medians", "AUC", "IoU", "deployable IoU", "smoke", "error", "all", "mass", "ms"]


def show_scores(result: Evaluation, what: str = "test snapshots") -> None:
    """The table of an evaluation: the surrogate beside the baselines."""
    title = (
        f"{result.snapshots} {what}, smoke above {result.smoke_threshold:.3g} "
        f"(sum over checkpoints; {result.captured:.0%} of the footprint)"
    )
    table(title, _COLUMNS, _rows(result))
    _show_masses(result)


def _rows(result: Evaluation) -> list[list[str]]:
    return [
        [
            score.name,
            f"{score.auc:.3f}",
            f"{score.iou:.3f}",
            f"{score.deployable_iou:.3f}",
            _shown(score.smoke_iou, ".3f"),
            f"{score.snapshot_error:.2f}",
            f"{score.relative_error:.2f}",
            _shown(score.mass_ratio, ".2f"),
            _shown(score.predict_ms, ".2f"),
        ]
        for score in result.scores
    ]


def _show_masses(result: Evaluation) -> None:
    """The range of the mass ratios over fires of the surrogate, which is first."""
    score = result.scores[0]
    if not math.isnan(score.mass_ratio):
        say(
            "mass: total predicted over total observed smoke at the end of a fire; the median of "
            f"'{score.name}' is {score.mass_ratio:.2f}, and 80 % of the fires lie within "
            f"{score.mass_ratio_low:.2f} … {score.mass_ratio_high:.2f}"
        )


def _show_exceedances(result: Evaluation, output: str = "smoke") -> None:
    """The table of an output above thresholds, over all cells."""
    rows = [
        [
            score.name,
            f"{item.threshold:.3g} ({item.quantity})",
            _shown(item.hit_rate, ".3f"),
            _shown(item.false_alarm_ratio, ".3f"),
            _shown(item.bias, ".2f"),
            f"{item.iou:.3f}",
        ]
        for score in result.scores
        for item in score.exceedances
    ]
    if not rows:
        return
    used = dict.fromkeys(item.quantity for item in result.scores[0].exceedances)
    quantities = [QUANTITIES[name] for name in reversed(used)]  # the user's, then the sum for τ
    each = [f"{item.name}: {item.long_name}, {item.shown_units}" for item in quantities]
    title = "\n".join([f"predicted {output} above a threshold", *each])
    columns = ["hit rate", "false alarms", "bias", "IoU"]
    table(title, ["all cells together", f"{output} above", *columns], rows)


def _shown(value: float, how: str) -> str:
    """A number in the given format; a dash if it is not known."""
    return "–" if math.isnan(value) else format(value, how)


def _show_verdict(result: Evaluation, which: str = "") -> None:
    """Say whether the surrogate, which is first, beats the mean field and the nearest fire."""
    verdict = judge(result.scores)
    if verdict is not None:
        (say if verdict.beats else warn)(f"{which}{verdict.text}")
