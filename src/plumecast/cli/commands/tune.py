"""`plumecast tune`: choose the family of a surrogate and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from plumecast.base.errors import PlumecastError
from plumecast.base.files import write_json
from plumecast.base.paths import check_output
from plumecast.cli.options import (
    DATA,
    Given,
    numbers,
    options_of,
    settings_given,
    variable_options,
    variables,
    with_options,
)
from plumecast.cli.show import counted, next_step, note, table, wrote
from plumecast.compute.resources import Resources
from plumecast.data.lazy_store import one_version
from plumecast.data.split import SplitRecipe
from plumecast.data.store import open_snapshots
from plumecast.operators.settings import NETWORKS
from plumecast.workflows.tune.candidates import (
    CLOSED_FORM,
    KERNELS,
    STD_FRACTIONS,
    SearchSpace,
)
from plumecast.workflows.tune.tune import Candidate, SearchLimits, tune_surrogate


@with_options(
    limits=options_of(SearchLimits), split=options_of(SplitRecipe), names=variable_options
)
def command(
    data: Path = DATA,
    out: Path = typer.Option(
        Path("tuned.json"), "--out", "-o", help="File to write the settings to."
    ),
    families: str = typer.Option(
        ",".join(CLOSED_FORM), help="Families to try, separated by commas."
    ),
    neural: bool = typer.Option(
        False, "--neural", help=f"Also try networks: {', '.join(NETWORKS)}; needs PyTorch."
    ),
    degrees: str = typer.Option("1,2,3", help="Degrees to try, separated by commas."),
    kernels: str = typer.Option(
        ",".join(KERNELS), help="Kernels to try, separated by commas; '' for none."
    ),
    std_fractions: str = typer.Option(
        ",".join(map(str, STD_FRACTIONS)), help="Shares of Σσ of the input to try."
    ),
    rank_by: str = typer.Option(
        "iou", help="Score that ranks candidates: iou, deployable_iou, auc, relative_error."
    ),
    *,
    limits: Given,
    split: Given,
    names: Given,
) -> None:
    """Choose the settings of a surrogate by cross-validation within the training part.

    The best candidates are then compared on the validation part.

    Example: `plumecast tune ensemble.zarr -o tuned.json --budget-seconds 600`, then
    `plumecast train ensemble.zarr --settings tuned.json`
    """
    check_output(out, content="settings", inputs=[data])
    search = SearchLimits(**settings_given(limits, SearchLimits))
    recipe = SplitRecipe(**settings_given(split, SplitRecipe))
    inputs, (outputs, *others) = variables(names)
    if others:
        raise PlumecastError(
            f"--outputs={names['outputs']}: settings are chosen on one output; give --outputs "
            f"{outputs}, and all of them to plumecast train"
        )
    snapshots = open_snapshots(data, fields=[*inputs, outputs])
    parts = recipe.split(snapshots, outputs)
    with one_version(snapshots), counted("tuning") as step:
        found = tune_surrogate(
            parts.train.load(),
            parts.validation.load(),
            space=SearchSpace(
                families=[*_words(families), *(NETWORKS if neural else ())],
                degrees=_whole_numbers(degrees, "--degrees"),
                kernels=_words(kernels),
                std_fractions=numbers(std_fractions, "--std-fractions"),
            ),
            limits=search,
            inputs=inputs,
            outputs=outputs,
            group_by=recipe.by,
            rank_by=rank_by,
            resources=Resources(progress=step),
        )
    content = {
        "settings": found[0].settings(),
        "recipe": recipe.record() | {"inputs": ",".join(inputs), "outputs": outputs},
        "candidates": [asdict(candidate) for candidate in found],
    }
    write_json(out, content)
    _show(found, rank_by, search.folds)
    wrote(out, f"the settings of '{found[0].name}'")
    next_step("train", data, "--settings", out)


def _show(found: Sequence[Candidate], rank_by: str, folds: int) -> None:
    columns = ["candidate", "error", "AUC", "IoU", "depl.", "s", "valid."]
    rows = []
    for candidate in found:
        scores = candidate.folds
        if scores is None:
            continue
        values = (scores.relative_error, scores.auc, scores.iou, scores.deployable_iou)
        confirmed = candidate.validation
        rows.append(
            [
                candidate.name,
                *(f"{value:.3f}" for value in values),
                f"{candidate.seconds:.1f}",
                "" if confirmed is None else f"{getattr(confirmed, rank_by):.3f}",
            ]
        )
    table(f"{folds} folds of training; valid.: {rank_by} on validation, best first", columns, rows)
    failed = [c for c in found if c.problem is not None and not c.problem.startswith("not tried")]
    for candidate in failed:
        note(f"{candidate.name}: {candidate.problem}")
    untried = [c for c in found if c.problem is not None and c not in failed]
    if untried:
        names = "; ".join(candidate.name for candidate in untried)
        note(f"{untried[0].problem}: {names}")


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _whole_numbers(text: str, option: str) -> list[int]:
    found = numbers(text, option)
    if any(value != int(value) for value in found):
        raise PlumecastError(f"{option} '{text}' is not a list of whole numbers")
    return [int(value) for value in found]
