"""Predict the smoke of many fires block by block, from a store or from arrival-time rasters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import hour_ladder
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SNAPSHOT
from plumecast.compute.blocks import Runner, map_over
from plumecast.compute.resources import Resources
from plumecast.data.clock import by_fire, fire_blocks, whole_fires
from plumecast.data.conditions.covariates import ExtrapolationWarning, extrapolating
from plumecast.data.lazy_store import check_unchanged
from plumecast.data.schema import label_drought
from plumecast.data.store import open_snapshots
from plumecast.scores.predicted_dose import without_marks
from plumecast.sources.rasters import ArrivalTimes, RasterOptions
from plumecast.surrogate.covered.guards import (
    EXTRAPOLATES,
    Checked,
    Excess,
    Notice,
    flag_attributes,
    limits,
    notices,
    snapshot_labels,
)
from plumecast.surrogate.error_bars.interval import LOWER, output_intervals, require_calibration
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import output_record, stored_agreement, stored_thresholds
from plumecast.weather.read import WeatherLike, accepts_winds
from plumecast.workflows.export import FOOTPRINT, footprint_of
from plumecast.workflows.fires.extrapolation import trained_ignitions, trained_notice
from plumecast.workflows.fires.fuels import Fuels, FuelsGiven, as_fuels, with_fuels
from plumecast.workflows.fires.hours import moved_to, warn_of_ends
from plumecast.workflows.fires.memory_plan import prediction_rows
from plumecast.workflows.fires.weather import (
    check_has_weather,
    check_raster_fires,
    user_weather,
    weather_attributes,
    with_user_weather,
)

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

Progress = Callable[[int, int, str], object]
Notify = Callable[[Notice], object]


def warn_of(notice: Notice) -> None:
    """Warn of a loud notice; the flags of the snapshots tell the others."""
    if notice.loud:
        warnings.warn(notice.text, ExtrapolationWarning, stacklevel=2)


@accepts_winds
def predict_store(
    surrogate: Surrogate,
    path: xr.Dataset | str | Path,
    *,
    threshold: float | None = None,
    interval: float | None = None,
    weather: WeatherLike | None = None,
    fuels: FuelsGiven | None = None,
    drought: str | None = None,
    hours: Sequence[float] | None = None,
    step: float | None = None,
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, what: None,
    notify: Notify = warn_of,
) -> Iterator[xr.Dataset]:
    """Predicted fields of every snapshot of a store, fire by fire and block by block.

    With `hours` or `step`, every fire is predicted at these hours since ignition instead
    (`at_hours`).

    With a `threshold` footprints are added, with an `interval` (such as 0.9) error bars of that
    coverage, those of `Surrogate.predict_interval`. `weather`, as for `with_weather`, replaces that
    of the store, and `fuels`, as for `with_fuels`, its fuel load. `drought` labels fires without
    one of their own; another label than a fire's own is refused. Blocks keep to `memory` ("2GB").
    With a `runner` (`pc.cluster`) the workers of a cluster read and predict them. The coordinate
    `extrapolates` flags snapshots beyond the training fires; after the last block, `notify` is
    called once for every kind of extrapolation, and once if fires were in training.
    """
    _check_interval(surrogate, interval)
    fires = open_fires(surrogate, path, user_weather(weather))
    fires = fires if drought is None else label_drought(fires, drought)
    warn_of_ends(fires, hours)
    total = fires.sizes[SNAPSHOT]
    size = prediction_rows(
        surrogate,
        memory,
        input_bytes=BYTES,
        output_bytes=BYTES if interval is None else INTERVAL_BYTES,
        what="predicting",
        most=BLOCK,
    )
    parts: list[Any] = list(fire_blocks(fires, size))
    if hours is not None or step is not None:
        longest = float(np.max(fires["hours"].values, initial=1.0))
        count = len(hour_ladder(hours or [longest], step))
        parts = list(whole_fires(fires["fire_id"].values, max(1, size // count)))
    ground = None if fuels is None else as_fuels(fuels, fires)
    shared = (surrogate, fires, ground, threshold, interval, (hours, step))
    blocks = map_over(_predict_part, shared, parts, runner)
    done = 0
    for rows, block in zip(parts, _collected(surrogate, blocks, notify), strict=True):
        yield block
        done += np.arange(total)[rows].size
        progress(done, total, "snapshots")


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


def open_fires(
    surrogate: Surrogate, source: xr.Dataset | str | Path, weather: xr.Dataset | None = None
) -> xr.Dataset:
    """A Dataset or an opened store, fire by fire, with the weather that was given for them.

    Raises if the surrogate needs a wind or a weather and there is none.
    """
    if isinstance(source, xr.Dataset):
        fires, where = source, "the Dataset"
    else:
        fires, where = open_snapshots(source, fields=list(surrogate.inputs.names)), str(source)
    fires = with_user_weather(by_fire(fires), weather)
    check_has_weather(surrogate, fires.variables, where)
    return fires


_Shared = tuple[
    Surrogate,
    xr.Dataset,
    Fuels | None,
    float | None,
    float | None,
    tuple[Sequence[float] | None, float | None],
]


def _predict_part(shared: _Shared, rows: slice | np.ndarray) -> xr.Dataset:
    surrogate, fires, fuels, threshold, interval, (hours, step) = shared
    check_unchanged(fires)
    part = fires.isel({SNAPSHOT: rows})
    part = moved_to(part, hours, step=step)
    part = part if fuels is None else with_fuels(part, fuels)
    return predict_block(surrogate, part, threshold, interval)


@accepts_winds
def predict_rasters(
    surrogate: Surrogate,
    paths: Sequence[str | Path],
    *,
    threshold: float | None = None,
    interval: float | None = None,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, what: None,
    notify: Notify = warn_of,
    **options: Any,
) -> Iterator[xr.Dataset]:
    """`predict_store` for arrival-time rasters, which are regridded to the surrogate's grid.

    A few files are read and predicted at a time, with a `runner` by the workers of a cluster.
    `options` are those of `raster_fires`.
    """
    _check_interval(surrogate, interval)
    fires = raster_fires(surrogate, paths, **options)
    predict = partial(predict_block, surrogate, threshold=threshold, interval=interval)
    blocks = fires.map(predict, Resources(runner=runner, progress=progress))
    yield from _collected(surrogate, blocks, notify)


def refuse_other_inputs(surrogate: Surrogate, source: str) -> None:
    """Raise if a surrogate has other inputs than the time since ignition."""
    if surrogate.inputs.names != (FIRE,):
        raise PlumecastError(
            f"the surrogate needs {', '.join(surrogate.inputs.names)}, but {source} give only "
            f"{FIRE}; predict from a store instead"
        )


@dataclass(frozen=True, slots=True)
class StoreFires:
    """Fires of stores at other hours than their snapshots, made when their smoke is predicted."""

    surrogate: Surrogate
    stores: Sequence[xr.Dataset | str | Path]
    hours: Sequence[float] | None = None  # since ignition; None: each fire to its own end
    step: float | None = None  # hours between snapshots before
    weather: xr.Dataset | None = None

    @property
    def paths(self) -> Sequence[str | Path]:
        """The stores that are files."""
        return [store for store in self.stores if not isinstance(store, xr.Dataset)]

    def sums(
        self,
        function: Callable[[xr.Dataset], Any],
        runner: Runner | None,
        progress: Progress,
    ) -> Iterator[Any]:
        """`function` of the snapshots of a few fires at a time."""
        for store in self.stores:
            fires = open_fires(self.surrogate, store, self.weather)
            warn_of_ends(fires, self.hours)
            total = fires.sizes[SNAPSHOT]
            parts = list(whole_fires(fires["fire_id"].values, TOGETHER))
            shared = (function, fires, self.hours, self.step)
            done = 0
            for rows, part in zip(parts, map_over(_at_hours, shared, parts, runner), strict=True):
                yield part
                done += rows.size
                progress(done, total, "snapshots")


TOGETHER = 64
"""Stored snapshots of whole fires that are taken to other hours at a time."""


def _at_hours(
    shared: tuple[Callable[[xr.Dataset], Any], xr.Dataset, Sequence[float] | None, float | None],
    rows: np.ndarray,
) -> Any:
    function, fires, hours, step = shared
    check_unchanged(fires)
    return function(moved_to(fires.isel({SNAPSHOT: rows}), hours, step=step))


@accepts_winds
def raster_fires(
    surrogate: Surrogate,
    paths: Sequence[str | Path],
    *,
    weather: WeatherLike | None = None,
    fuels: FuelsGiven | None = None,
    batch: int = 64,
    on_error: Callable[[Path, str], None] | None = None,
    on_note: Callable[[str], object] | None = None,
    words: Callable[[PlumecastError], str] = str,
    **options: Any,
) -> ArrivalTimes:
    """Arrival-time rasters on a surrogate's grid, read when their smoke is predicted.

    `weather`, as for `with_weather`, and `fuels`, as for `with_fuels`, are those of the fires.
    `options` are the fields of `RasterOptions` without `like`; the others are of `ArrivalTimes`.
    """
    refuse_other_inputs(surrogate, "rasters")
    checked = user_weather(weather)
    if checked is None:
        check_has_weather(surrogate, (), "rasters contain no wind")
    read = RasterOptions(like=surrogate.grid, **options)
    ground = None if fuels is None else as_fuels(fuels, surrogate.grid, read.crs)
    fires = ArrivalTimes(
        paths,
        read,
        batch,
        prepare=partial(_with_conditions, checked, ground),
        on_error=on_error,
        on_note=on_note,
        words=words,
    )
    check_raster_fires(checked, fires.files, read.format)
    return fires


def _with_conditions(
    weather: xr.Dataset | None, fuels: Fuels | None, fires: xr.Dataset
) -> xr.Dataset:
    """The fires with the weather and the fuels that were given for them."""
    fires = with_user_weather(fires, weather)
    return fires if fuels is None else with_fuels(fires, fuels)


def _check_interval(surrogate: Surrogate, interval: float | None) -> None:
    """Raise before any prediction if error bars of this coverage cannot be made."""
    if interval is not None:
        require_calibration(surrogate.error_bars, surrogate.training).bands(interval)


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
        record = output_record(surrogate.training, surrogate.outputs.names, name)
        own = stored_thresholds(record)
        level = threshold if number == 0 else None if own is None else own.decision
        if level is None:
            continue
        attrs = {k: value for k, value in field.attrs.items() if k == "grid_mapping"}
        agreement = stored_agreement(record)
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
    known = limits(surrogate)
    found: dict[str, Excess] = {}
    trained: set[str] = set()
    bars = False
    for block in blocks:
        measured = [str(name) for name in block.data_vars if str(name).startswith(MEASURE)]
        measures = {name.removeprefix(MEASURE): block[name].values for name in measured}
        checked = Checked(measures, snapshot_labels(block, [SNAPSHOT]))
        for name, item in checked.excesses(known).items():
            found[name] = found[name] + item if name in found else item
        trained |= set(block.attrs[TRAINED])
        bars = bars or LOWER in block
        kept = {name: value for name, value in block.attrs.items() if name != TRAINED}
        yield block.drop_vars(measured).drop_attrs(deep=False).assign_attrs(kept)
    seen = trained_notice(trained, "error bars" if bars else None)
    for notice in (*notices(found, known), *([] if seen is None else [seen])):
        notify(notice)
