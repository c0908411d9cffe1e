"""Predict the smoke of many fires block by block, from a store or from arrival-time rasters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import DOSE_OF, hour_ladder
from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SNAPSHOT, is_smoke
from plumecast.compute.arrays import bytes_in
from plumecast.compute.dose import largest_so_far, limited_by_later
from plumecast.compute.resources import LOCAL, Resources, parse_memory, rows_within
from plumecast.data.clock import fire_blocks, whole_fires
from plumecast.data.covariates import ExtrapolationWarning, extrapolating
from plumecast.scores.predicted_dose import without_marks
from plumecast.sources.rasters import ArrivalTimes
from plumecast.surrogate.error_bars.interval import (
    LOWER,
    POSSIBLE,
    UPPER,
    interval_name,
    output_intervals,
    require_calibration,
)
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
from plumecast.surrogate.thresholds import footprint_level, settled_smoke
from plumecast.weather.read import WeatherLike, accepts_winds
from plumecast.workflows.export import FOOTPRINT, footprint_of
from plumecast.workflows.fires.conditions import check_has_weather, user_weather, weather_attributes
from plumecast.workflows.fires.extrapolation import Extrapolation, trained_ignitions, trained_notice
from plumecast.workflows.fires.sources import UNCHANGED, Overrides, map_parts, open_fires

BLOCK = 512
"""Largest number of snapshots predicted at a time; a memory limit may allow fewer."""

BYTES, INTERVAL_BYTES = 48.0, 120.0
"""Bytes per cell of a snapshot that is predicted: as stored, in float64, decoded, clipped, rounded,
as the quantity that is read and as written to a file. The second with error bars: positions, ends
in float64 and rounded, two sets and the score."""

AGREEMENT_BYTES, HISTORY_BYTES, DOSE_BYTES = 48.0, 64.0, 24.0
"""Bytes per cell while smoke and detection score are reconciled (six arrays); of what a snapshot
may hold of its fire (sixteen burned shares); of a dose that is predicted beside the smoke."""

MEASURE = "measure of "
"""What the names of variables with the measures of a block begin with, until they are removed."""

TRAINED = "ignitions of training"
"""Attribute with the ignitions of a block that were in training, until it is removed."""

Notify = Callable[[Notice], object]

CLUSTER_MEMORY = "1GB"
"""Memory limit of each worker of a cluster that predicts and scores, if none is given."""


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
    if interval is not None:
        require_calibration(surrogate.record).bands(interval)
    if resources.device != LOCAL.device:
        surrogate = surrogate.on_device(resources.device)
    predict = partial(predict_block, surrogate, threshold=threshold, interval=interval)
    if isinstance(fires, ArrivalTimes):
        if overrides.any or weather is not None:
            raise PlumecastError(
                "weather and overrides are for stores; state those of rasters in raster_fires(…)"
            )
        yield from _collected(surrogate, fires.map(predict, resources), notify)
        return
    data = open_fires(surrogate, fires, user_weather(weather), overrides)
    size = prediction_rows(
        surrogate,
        resources.memory,
        input_bytes=BYTES,
        output_bytes=BYTES if interval is None else INTERVAL_BYTES,
        what="predicting",
        most=BLOCK,
    )
    parts = list(fire_blocks(data, size))
    if overrides.moves:
        longest = float(np.max(data["hours"].values, initial=1.0))
        count = len(hour_ladder(overrides.hours or [longest], overrides.step))
        parts = list(whole_fires(data["fire_id"].values, max(1, size // count)))
    yield from _collected(surrogate, map_parts(predict, data, overrides, parts, resources), notify)


def predict_fires(
    surrogate: Surrogate,
    fires: xr.Dataset,
    *,
    threshold: float | None = None,
    interval: float | None = None,
    notify: Notify = warn_of,
) -> xr.Dataset:
    """`predict_store` of snapshots in memory, in one block."""
    if interval is not None:
        require_calibration(surrogate.record).bands(interval)
    check_has_weather(surrogate, fires.variables, "the Dataset")
    blocks = iter([predict_block(surrogate, fires, threshold, interval)])
    (predicted,) = _collected(surrogate, blocks, notify)
    return predicted


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
    removes. With an `interval`, error bars of that coverage are added. Sums and footprints of a
    fire never fall with time (`settled_smoke`), as far as its hours are in the block.
    """
    detects = surrogate.detects and (threshold is not None or interval is not None)
    with extrapolating():  # the flags tell it
        predicted, checked = surrogate.predict_checked(fires, score=detects)
    names = surrogate.outputs.names
    predicted, scores = predicted[: len(names)], predicted[len(names) :] or predicted
    alone = predicted, scores[: len(names)]  # as error bars are calibrated
    predicted, scores = _settled(surrogate, predicted, scores)
    fields = xr.Dataset({str(field.name): field for field in predicted})
    for number, name in enumerate(names if threshold is not None else ()):
        record = surrogate.records[name]
        recorded = None if record.thresholds is None else record.thresholds.decision
        level = recorded if number else threshold
        if level is None:
            continue
        attrs = {k: v for k, v in predicted[number].attrs.items() if k == "grid_mapping"}
        if record.agreement is not None and record.agreement.thresholds.decision == level:
            attrs["smoke_threshold"] = record.agreement.thresholds.smoke
        footprint = footprint_of(scores[number], level).assign_attrs(attrs)
        fields[f"{FOOTPRINT}_{name}" if number else FOOTPRINT] = footprint
    if interval is not None:
        bars = output_intervals(surrogate.calibrations(), *alone, interval)
        fields = fields.assign(bars.data_vars)
    fields = without_marks(fields)
    for number, name in enumerate(names):  # the bars contain the smoke, and all that was possible
        ends = [interval_name(end, name if number else None) for end in (LOWER, UPPER, POSSIBLE)]
        labels = _fire_and_hours(predicted[number])
        if labels is None or ends[0] not in fields or not is_smoke(name, fields[name].attrs):
            continue
        smoke, (lower, upper, possible) = fields[name].values, (fields[end].values for end in ends)
        widened = (
            np.minimum(lower, smoke),
            np.maximum(upper, smoke),
            largest_so_far(possible, *labels),
        )
        for end, values in zip(ends, widened, strict=True):
            fields[end] = fields[end].copy(data=np.asarray(values))
    flags = xr.Variable(SNAPSHOT, checked.flags(limits(surrogate)), flag_attributes())
    measures = {MEASURE + name: (SNAPSHOT, values) for name, values in checked.measures.items()}
    made = fields.assign_coords({EXTRAPOLATES: flags}).assign(measures)
    seen = {TRAINED: sorted(trained_ignitions(surrogate, fires))}
    return made.assign_attrs(weather_attributes(surrogate, fires) | seen)


def _settled(
    surrogate: Surrogate, smoke: Sequence[xr.DataArray], scores: Sequence[xr.DataArray]
) -> tuple[list[xr.DataArray], list[xr.DataArray]]:
    """Predicted sums, their doses and detection scores, so that they never fall within a fire.

    A footprint is where smoke has been predicted until then. Fields that are no smoke, and
    snapshots without the name and the hours of their fire, stay as they are.
    """
    made, found = list(smoke), list(scores)
    labels = _fire_and_hours(smoke[0])
    if labels is None:
        return made, found
    fire, hours = labels
    for number, (field, record) in enumerate(zip(smoke, surrogate.records.values(), strict=True)):
        if not is_smoke(str(field.name), field.attrs):
            continue
        level = footprint_level(record, surrogate.detects)
        values = settled_smoke(field.values, fire, hours, level)
        made[number] = field.copy(data=np.asarray(values, dtype=field.dtype))
        if (dose := field.attrs.get(DOSE_OF)) is not None:
            limited = limited_by_later(field[dose].values, fire, hours)
            made[number] = made[number].assign_coords({dose: field[dose].copy(data=limited)})
        score = scores[number]
        found[number] = made[number] if score is field else score.copy(
            data=np.asarray(largest_so_far(score.values, fire, hours))
        )  # fmt: skip
    return made, found


def _fire_and_hours(field: xr.DataArray) -> tuple[np.ndarray, np.ndarray] | None:
    """(M,) names of the fires of snapshots and their hours; None if they have none."""
    labels = [field.coords[name] for name in ("fire_id", "hours") if name in field.coords]
    if len(labels) < 2 or any(label.dims != field.dims[:1] for label in labels):
        return None
    return labels[0].values.astype(str), labels[1].values.astype(np.float64)


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
