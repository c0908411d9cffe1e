"""Train a surrogate: filter, split, fit, choose thresholds on validation, record how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.blocks import Runner
from plumecast.data.split import SplitRecipe
from plumecast.data.store import open_snapshots
from plumecast.surrogate.fit import fit_surrogate
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.evaluate import fit_thresholds

PAPER_SPLIT = SplitRecipe()
"""No filters, the paper's shares, whole ignitions."""

ALL_SNAPSHOTS = SplitRecipe(fractions=None)

READING, FITTING, THRESHOLDS = "reading", "fitting", "thresholds"
"""The steps that `progress` is called with."""


def train_surrogate(
    data: str | Path | xr.Dataset,
    preset: str | None = None,
    *,
    split: SplitRecipe | None = PAPER_SPLIT,
    inputs: str | Sequence[str] = FIRE,
    outputs: str = SMOKE,
    device: str = "cpu",
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Callable[[str], None] = lambda step: None,
    **choices: Any,
) -> Surrogate:
    """Train a surrogate on a snapshot store or a Dataset, as `plumecast train` does.

    `split` says how to filter the snapshots and how to split them. The surrogate is fitted to the
    training part. The smoke threshold and the decision threshold are chosen on the validation part.
    The test part is not used: `plumecast evaluate` repeats the recorded split and scores there.
    `split=None` trains on all snapshots and chooses no thresholds.

    `preset` and `choices` are those of `fit_surrogate`; its `group_by` is `split.by`. With
    `memory` or a `runner` the fields stay in their store and are read in blocks. `progress` is
    called with the name of each step as it begins.
    """
    recipe = ALL_SNAPSHOTS if split is None else split
    names = [inputs] if isinstance(inputs, str) else list(inputs)
    place: dict[str, Any] = {"device": device, "memory": memory, "runner": runner}
    progress(READING)
    if not isinstance(data, xr.Dataset):
        data = open_snapshots(data, fields=[*names, outputs])
    lazy = memory is not None or runner is not None
    whole = recipe.fractions is None
    if whole:
        train, validation = recipe.select(data, outputs), None
    else:
        parts = recipe.split(data, outputs)
        train, validation = parts.train, parts.validation
    train = train if lazy else train.compute()
    progress(FITTING)
    surrogate = fit_surrogate(
        train,
        preset,
        inputs=names,
        outputs=outputs,
        group_by=recipe.by,
        progress=lambda step: progress(f"{FITTING}: {step}"),
        **choices,
        **place,
    )
    variables = {"inputs": ",".join(names), "outputs": outputs}
    record: dict[str, Any] = {"split": recipe.record() | variables | {"all": whole}}
    if validation is not None:
        progress(THRESHOLDS)
        validation = validation if lazy else validation.compute()
        thresholds = fit_thresholds(surrogate, validation, **place)
        record["thresholds"] = {"smoke": thresholds.smoke, "decision": thresholds.decision}
    return replace(surrogate, training=surrogate.training | record)
