"""`plumecast tune`: choose degree, rank and penalty."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import typer

from plumecast.cli import data as options
from plumecast.cli.data import Recipe
from plumecast.cli.show import counted, say, table, write_json
from plumecast.errors import PlumecastError
from plumecast.tune import STD_FRACTIONS, tune_surrogate

Number = TypeVar("Number", int, float)


def command(
    data: Path = options.DATA,
    out: Path = typer.Option(
        Path("tuned.json"), "--out", "-o", help="Where to write the settings."
    ),
    degrees: str = typer.Option("1,2,3", help="Degrees to try, separated by commas."),
    std_fractions: str = typer.Option(
        ",".join(map(str, STD_FRACTIONS)), help="Shares of Σσ of the input to try."
    ),
    rank_by: str = typer.Option(
        "iou", help="Score to rank by: iou, deployable_iou, auc, relative_error."
    ),
    min_acres: float = options.MIN_ACRES,
    drought: str = options.DROUGHT,
    smoke_floor: float = options.FLOOR,
    seed: int = options.SEED,
    by: str = options.BY,
    fractions: str = options.FRACTIONS,
    inputs: str = options.INPUT,
    outputs: str = options.OUTPUT,
) -> None:
    """Choose degree and rank on validation, and each penalty on training without refits.

    Example: `plumecast tune ensemble.zarr -o tuned.json`, then
    `plumecast train ensemble.zarr --settings tuned.json`
    """
    recipe = Recipe().override(
        min_acres=min_acres,
        drought=drought,
        smoke_floor=smoke_floor,
        seed=seed,
        by=by,
        fractions=fractions,
        inputs=inputs,
        outputs=outputs,
    )
    split = recipe.split(data)
    with counted("tuning") as step:
        candidates = tune_surrogate(
            split.train.load(),
            split.validation.load(),
            degrees=_numbers(degrees, int),
            std_fractions=_numbers(std_fractions, float),
            inputs=recipe.input_names,
            outputs=recipe.outputs,
            group_by=recipe.by,
            rank_by=rank_by,
            progress=lambda done, total: step(done, total, "candidates"),
        )
    columns = ["degree", "rank", "λ", "left out", "error", "AUC", "IoU", "depl. IoU", "s"]
    rows = [
        [
            str(c.degree), str(c.fire_rank), f"{c.penalty:.3g}", f"{c.leave_out_error:.3f}",
            f"{c.relative_error:.3f}", f"{c.auc:.3f}", f"{c.iou:.3f}", f"{c.deployable_iou:.3f}",
            f"{c.seconds:.2f}",
        ]
        for c in candidates
    ]  # fmt: skip
    table(f"validation scores, best first by {rank_by}", columns, rows)
    content = {
        "settings": candidates[0].settings(),
        "recipe": recipe.record(),
        "candidates": [asdict(c) for c in candidates],
    }
    write_json(out, content, "the best settings")
    say(f"next: plumecast train {data} --settings {out}")


def _numbers(text: str, kind: type[Number]) -> list[Number]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise PlumecastError(f"'{text}' is not a list of numbers separated by commas") from None
