"""Predict the smoke of many fires block by block, from a store or from arrival-time rasters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import hour_ladder
from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT
from plumecast.compute.arrays import bytes_in
from plumecast.compute.memory import parse_memory, rows_within
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.clock import fire_blocks, whole_fires
from plumecast.data.covariates import ExtrapolationWarning, extrapolating
from plumecast.scores.predicted_dose import without_marks
from plumecast.sources.rasters import ArrivalTimes
from plumecast.surrogate.error_bars.interval import LOWER, output_intervals, require_calibration
from plumecast.surrogate.guards import (
    EXTRAPOLATES,
    Checked,
    Notice,
    flag_attributes,
    limits,
    notices,
    snapshot_labels,
)
from plumecast.surrogate.surrogate import Surrogate
from plumecast.weather.read import WeatherLike, accepts_winds
from plumecast.workflows.export import FOOTPRINT, footprint_of
from plumecast.workflows.fires.conditions import check_has_weather, user_weather, weather_attributes
from plumecast.workflows.fires.extrapolation import Extrapolation, trained_ignitions, trained_notice
from plumecast.workflows.fires.sources import UNCHANGED, Overrides, map_parts, open_fires

BLOCK = 512
"""Largest number of snapshots predicted at a time; a memory limit may allow fewer."""

BYTES = 48.0
"""Bytes per cell of a snapshot that is predicted: as stored, in float64, decoded, clipped, rounded,
as the quantity that is read and as written to a file."""

INTERVAL_BYTES = 120.0
"""The same with error bars: positions, ends in float64 and rounded, two sets and the score."""

MEASURE = "measure of "
"""What the names of variables with the measures of a block begin with, until they are removed."""

TRAINED = "ignitions of training"
"""Attribute with the ignitions of a block that were in training, until it is removed."""

Notify = Callable[[Notice], object]

CLUSTER_MEMORY = "1GB"
"""Memory limit of each worker of a cluster that predicts and scores, if none is given."""

AGREEMENT_BYTES = 48.0
"""Bytes per cell while smoke and detection score are reconciled: six arrays."""


HISTORY_BYTES = 64.0
"""Bytes per cell of what a snapshot may hold of its fire: sixteen burned shares."""


DOSE_BYTES = 24.0
"""Bytes per cell of a dose that is predicted beside the smoke: in float64, rounded, as written."""


def warn_of(notice: Notice) -> None:
    """Warn of a loud notice; the flags of the snapshots tell the others."""
    if notice.loud:
        warnings.warn(notice.text, ExtrapolationWarning, stacklevel=2)


@accepts_winds
@folded_arguments(overrides=Overrides, resources=Resources)
def predict_store(
    surrogate: Surrogate,
    fires: xr.Dataset | str | Path | ArrivalTimes,
    overrides: Overrides = UNCHANGED,
    *,
    threshold: float | None = None,
    interval: float | None = None,
    weather: WeatherLike | None = None,
    resources: Resources = LOCAL,
    notify: Notify = warn_of,
) -> Iterator[xr.Dataset]:
    """Predicted fields of every snapshot of a store, fire by fire and block by block.

    Parameters
    ----------
    surrogate
        On its device, where it predicts; `resources` may name another one than the processor.
    fires
        A store, a Dataset, or arrival-time rasters (`raster_fires`), a few files at a time.
    overrides
        Hours since ignition, fuels and a drought label that replace those of the store.
    threshold
        Adds footprints: where the detection score is above this decision threshold.
    interval
        Adds error bars of this coverage, such as 0.9: those of `Surrogate.predict_interval`.
    weather
        As for `with_weather`; it replaces that of the store.
    resources
        Blocks keep to its memory. With a runner (`pc.cluster`) the workers of a cluster read and
        predict them.
    notify
        Called after the last block, once for every kind of extrapolation, and once if fires were
        in training. The coordinate `extrapolates` flags snapshots beyond the training fires.
    """
    _check_interval(surrogate, interval)
    if resources.device != LOCAL.device:
        surrogate = surrogate.on_device(resources.device)
    predict = partial(predict_block, surrogate, threshold=threshold, interval=interval)
    if isinstance(fires, ArrivalTimes):
        if overrides.any or weather is not None:
            raise PlumecastError(
                "weather and overrides are for stores; state those of rasters in raster_fires(…)"
            )
        blocks = fires.map(predict, resources)
    else:
        data = open_fires(surrogate, fires, user_weather(weather), overrides)
        parts = _parts(surrogate, data, overrides, resources.memory, bars=interval is not None)
        blocks = map_parts(predict, data, overrides, parts, resources)
    yield from _collected(surrogate, blocks, notify)


def _parts(
    surrogate: Surrogate,
    fires: xr.Dataset,
    overrides: Overrides,
    memory: str | int | None,
    *,
    bars: bool,
) -> list[slice | np.ndarray]:
    """The rows of blocks whose prediction, perhaps with error bars, keeps to the memory."""
    size = prediction_rows(
        surrogate,
        memory,
        input_bytes=BYTES,
        output_bytes=INTERVAL_BYTES if bars else BYTES,
        what="predicting",
        most=BLOCK,
    )
    if not overrides.moves:
        return list(fire_blocks(fires, size))
    longest = float(np.max(fires["hours"].values, initial=1.0))
    count = len(hour_ladder(overrides.hours or [longest], overrides.step))
    return list(whole_fires(fires["fire_id"].values, max(1, size // count)))


def predict_fires(
    surrogate: Surrogate,
    fires: xr.Dataset,
    *,
    threshold: float | None = None,
    interval: float | None = None,
    notify: Notify = warn_of,
) -> xr.Dataset:
    """`predict_store` of snapshots in memory, in one block."""
    _check_interval(surrogate, interval)
    check_has_weather(surrogate, fires.variables, "the Dataset")
    blocks = iter([predict_block(surrogate, fires, threshold, interval)])
    (predicted,) = _collected(surrogate, blocks, notify)
    return predicted


def _check_interval(surrogate: Surrogate, interval: float | None) -> None:
    """Raise before any prediction if error bars of this coverage cannot be made."""
    if interval is not None:
        require_calibration(surrogate.record).bands(interval)


def predict_block(
    surrogate: Surrogate,
    fires: xr.Dataset,
    threshold: float | None,
    interval: float | None = None,
) -> xr.Dataset:
    """Predicted fields as a Dataset; with a `threshold`, also the footprint.

    The footprint is where the detection score exceeds the threshold; for surrogates without a
    score, where the (first) predicted field does. Its attribute `smoke_threshold` is the smoke that
    is exceeded in the same cells, if they agree. Further outputs have a footprint of their own, at
    their recorded thresholds. The measures of the guards are added as variables, which `_collected`
    removes. With an `interval`, error bars of that coverage are added.
    """
    detects = surrogate.detects and (threshold is not None or interval is not None)
    with extrapolating():  # the flags tell it
        predicted, checked = surrogate.predict_checked(fires, score=detects)
    names = surrogate.outputs.names
    predicted, scores = predicted[: len(names)], predicted[len(names) :] or predicted
    fields = xr.Dataset({str(field.name): field for field in predicted})
    if threshold is not None:
        fields = fields.assign(_footprints(surrogate, threshold, predicted, scores))
    if interval is not None:
        bars = output_intervals(surrogate.calibrations(), predicted, scores[: len(names)], interval)
        fields = fields.assign(bars.data_vars)
    fields = without_marks(fields)
    flags = xr.Variable(SNAPSHOT, checked.flags(limits(surrogate)), flag_attributes())
    measures = {MEASURE + name: (SNAPSHOT, values) for name, values in checked.measures.items()}
    made = fields.assign_coords({EXTRAPOLATES: flags}).assign(measures)
    known = {TRAINED: sorted(trained_ignitions(surrogate, fires))}
    return made.assign_attrs(weather_attributes(surrogate, fires) | known)


def _footprints(
    surrogate: Surrogate,
    threshold: float,
    predicted: Sequence[xr.DataArray],
    scores: Sequence[xr.DataArray],
) -> dict[str, xr.DataArray]:
    """The footprint of every output whose decision threshold is known, by name."""
    found = {}
    for number, (name, field, score) in enumerate(
        zip(surrogate.outputs.names, predicted, scores, strict=True)
    ):
        record = surrogate.records[name]
        own = record.thresholds
        level = threshold if number == 0 else None if own is None else own.decision
        if level is None:
            continue
        attrs = {k: value for k, value in field.attrs.items() if k == "grid_mapping"}
        agreement = record.agreement
        if agreement is not None and agreement.thresholds.decision == level:
            attrs["smoke_threshold"] = agreement.thresholds.smoke
        footprint = footprint_of(score, level).assign_attrs(attrs)
        found[FOOTPRINT if number == 0 else f"{FOOTPRINT}_{name}"] = footprint
    return found


def _collected(
    surrogate: Surrogate, blocks: Iterable[xr.Dataset], notify: Notify
) -> Iterator[xr.Dataset]:
    """The blocks without their measures; at the end one notice for every kind of excess.

    A last notice tells that fires were in training.
    """
    known, total, bars = limits(surrogate), Extrapolation(), False
    for block in blocks:
        measured = [str(name) for name in block.data_vars if str(name).startswith(MEASURE)]
        measures = {name.removeprefix(MEASURE): block[name].values for name in measured}
        excesses = Checked(measures, snapshot_labels(block, [SNAPSHOT])).excesses(known)
        total += Extrapolation(excesses=excesses, trained=frozenset(block.attrs[TRAINED]))
        bars = bars or LOWER in block
        kept = {name: value for name, value in block.attrs.items() if name != TRAINED}
        yield block.drop_vars(measured).drop_attrs(deep=False).assign_attrs(kept)
    seen = trained_notice(total.trained, "error bars" if bars else None)
    for notice in (*notices(total.excesses, known), *([] if seen is None else [seen])):
        notify(notice)


def prediction_rows(
    surrogate: Surrogate,
    memory: str | int | None,
    *,
    input_bytes: float,
    output_bytes: float,
    fixed: float = 0.0,
    what: str,
    most: int,
) -> int:
    """Number of snapshots that can be predicted at a time within a memory limit, at most `most`.

    `input_bytes` and `output_bytes` are per cell of a snapshot; `fixed` bytes do not depend on the
    number of snapshots.
    """
    if memory is None:
        return most
    work, per_row = surrogate.operator.working_bytes()
    if surrogate.operator.needs_weather:
        input_bytes += HISTORY_BYTES
        output_bytes += DOSE_BYTES
    if any(record.agreement for record in surrogate.records.values()):
        output_bytes += AGREEMENT_BYTES
    cells = input_bytes * surrogate.inputs.size + output_bytes * surrogate.outputs.size
    return rows_within(
        parse_memory(memory),
        fixed=bytes_in(surrogate.operator) + work + fixed,
        per_row=cells + per_row,
        what=what,
        most=most,
    )
