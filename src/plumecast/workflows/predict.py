"""Predict the smoke of many fires block by block, from a store or from arrival-time rasters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SNAPSHOT
from plumecast.compute.blocks import Runner, map_over, row_blocks
from plumecast.data.covariates import ExtrapolationWarning, extrapolating
from plumecast.data.lazy_store import check_unchanged
from plumecast.data.schema import label_drought
from plumecast.data.store import open_snapshots
from plumecast.sources.rasters import find_rasters, map_arrival_times, reduce_arrival_times
from plumecast.surrogate.guards import (
    EXTRAPOLATES,
    Checked,
    Finding,
    Notice,
    flag_attributes,
    limits,
    notices,
    snapshot_labels,
)
from plumecast.surrogate.memory_plan import prediction_rows
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.export import FOOTPRINT, footprint_of
from plumecast.workflows.fires.winds import (
    Winds,
    WindsGiven,
    as_winds,
    check_raster_winds,
    check_winds,
    with_winds,
)

BLOCK = 512
"""Largest number of snapshots predicted at a time; a memory limit may allow fewer."""

BYTES = 40.0
"""Bytes per cell of a snapshot that is predicted: as stored, in float64, decoded, clipped, rounded
and as written to a file."""

MEASURE = "measure of "
"""What the names of variables with the measures of a block begin with, until they are removed."""

Progress = Callable[[int, int, str], object]
Notify = Callable[[Notice], object]


def warn_of(notice: Notice) -> None:
    """Warn of a loud notice; the flags of the snapshots tell the others."""
    if notice.loud:
        warnings.warn(notice.text, ExtrapolationWarning, stacklevel=2)


def predict_store(
    surrogate: Surrogate,
    path: str | Path,
    *,
    threshold: float | None = None,
    winds: WindsGiven | None = None,
    drought: str | None = None,
    memory: str | int | None = None,
    runner: Runner | None = None,
    progress: Progress = lambda done, total, what: None,
    notify: Notify = warn_of,
) -> Iterator[xr.Dataset]:
    """Predicted fields of every snapshot of a store, block by block.

    With a `threshold` footprints are added. `winds`, as for `with_winds`, replace those of the
    store. `drought` labels fires that have no drought of their own; another label than a fire's own
    is refused. Blocks keep to `memory` ("2GB"). With a `runner` (`pc.cluster`) the workers of a
    cluster read and predict them. The coordinate `extrapolates` flags snapshots beyond the training
    fires; after the last block, `notify` is called once for every kind of extrapolation.
    """
    fires = open_fires(surrogate, path, winds)
    fires = fires if drought is None else label_drought(fires, drought)
    total = fires.sizes[SNAPSHOT]
    size = prediction_rows(
        surrogate, memory, input_bytes=BYTES, output_bytes=BYTES, what="predicting", most=BLOCK
    )
    parts = list(row_blocks(total, size))
    shared = (surrogate, fires, threshold)
    blocks = map_over(_predict_part, shared, parts, runner)
    for rows, block in zip(parts, _collected(surrogate, blocks, notify), strict=True):
        yield block
        progress(rows.stop, total, "snapshots")


def open_fires(
    surrogate: Surrogate, source: xr.Dataset | str | Path, winds: WindsGiven | None = None
) -> xr.Dataset:
    """A Dataset or an opened store, with the winds that were given.

    Raises if the surrogate needs winds and there are none.
    """
    if isinstance(source, xr.Dataset):
        fires, where = source, "the Dataset"
    else:
        fires, where = open_snapshots(source, fields=list(surrogate.inputs.names)), str(source)
    fires = fires if winds is None else with_winds(fires, winds)
    check_winds(surrogate, fires.variables, where)
    return fires


def _predict_part(shared: tuple[Surrogate, xr.Dataset, float | None], rows: slice) -> xr.Dataset:
    surrogate, fires, threshold = shared
    check_unchanged(fires)
    return predict_block(surrogate, fires.isel({SNAPSHOT: rows}), threshold)


def predict_rasters(
    surrogate: Surrogate,
    paths: Sequence[str | Path],
    *,
    threshold: float | None = None,
    winds: WindsGiven | None = None,
    progress: Progress = lambda done, total, what: None,
    notify: Notify = warn_of,
    **options: Any,
) -> Iterator[xr.Dataset]:
    """`predict_store` for arrival-time rasters, which are regridded to the surrogate's grid.

    A few files are read and predicted at a time, with a `runner` by the workers of a cluster.
    `winds`, as for `with_winds`, are those of the fires. `options` are those of
    `iter_arrival_times`, without `like`.
    """
    refuse_other_inputs(surrogate, "rasters")
    given = _raster_winds(surrogate, paths, winds, options)
    predict = partial(predict_block, surrogate, threshold=threshold)
    blocks = map_arrival_times(
        predict if given is None else partial(_of_windy, predict, given),
        paths,
        like=surrogate.grid,
        progress=lambda done, total: progress(done, total, "files"),
        **options,
    )
    yield from _collected(surrogate, blocks, notify)


def _raster_winds(
    surrogate: Surrogate,
    paths: Sequence[str | Path],
    winds: WindsGiven | None,
    options: Mapping[str, Any],
) -> Winds | None:
    """The winds that were given for rasters; raises if they lack a fire that needs one."""
    if winds is None:
        check_winds(surrogate, (), "rasters contain no wind")
        return None
    given = as_winds(winds)
    check_raster_winds(given, find_rasters(paths), options.get("format"))
    return given


def _of_windy(function: Callable[[xr.Dataset], Any], winds: Winds, fires: xr.Dataset) -> Any:
    return function(with_winds(fires, winds))


def refuse_other_inputs(surrogate: Surrogate, source: str) -> None:
    """Raise if a surrogate has other inputs than the time since ignition."""
    if surrogate.inputs.names != (FIRE,):
        raise PlumecastError(
            f"the surrogate needs {', '.join(surrogate.inputs.names)}, but {source} give only "
            f"{FIRE}; predict from a store instead"
        )


@dataclass(frozen=True, slots=True)
class RasterFires:
    """Fires of arrival-time rasters on a surrogate's grid, read when their smoke is predicted."""

    grid: xr.Dataset
    paths: Sequence[str | Path]
    options: Mapping[str, Any]  # of `reduce_arrival_times`
    winds: Winds | None = None

    def sums(
        self,
        function: Callable[[xr.Dataset], Any],
        runner: Runner | None,
        progress: Progress,
    ) -> Iterator[Any]:
        """`function` of the snapshots of a batch of files at a time, where they are read."""
        return reduce_arrival_times(
            function if self.winds is None else partial(_of_windy, function, self.winds),
            self.paths,
            like=self.grid,
            runner=runner,
            progress=lambda done, total: progress(done, total, "files"),
            **self.options,
        )


def raster_fires(
    surrogate: Surrogate,
    paths: Sequence[str | Path],
    *,
    winds: WindsGiven | None = None,
    **options: Any,
) -> RasterFires:
    """Arrival-time rasters as the fires of `ensemble_statistics`."""
    refuse_other_inputs(surrogate, "rasters")
    return RasterFires(
        surrogate.grid, paths, options, _raster_winds(surrogate, paths, winds, options)
    )


def predict_block(surrogate: Surrogate, fires: xr.Dataset, threshold: float | None) -> xr.Dataset:
    """Predicted fields as a Dataset; with a `threshold`, also the footprint.

    The footprint is where the detection score exceeds the threshold; for surrogates without a
    score, where the (first) predicted field does. The measures of the guards are added as
    variables, which `_collected` removes.
    """
    detects = threshold is not None and surrogate.detects
    with extrapolating():  # the flags tell it
        predicted, checked = surrogate.predict_checked(fires, score=detects)
    score = predicted.pop() if detects else predicted[0]
    fields = xr.Dataset({str(field.name): field for field in predicted})
    if threshold is not None:
        attrs = predicted[0].attrs
        present = footprint_of(score, threshold).assign_attrs(
            {key: value for key, value in attrs.items() if key == "grid_mapping"}
        )
        fields = fields.assign({FOOTPRINT: present})
    flags = xr.Variable(SNAPSHOT, checked.flags(limits(surrogate)), flag_attributes())
    measures = {MEASURE + name: (SNAPSHOT, values) for name, values in checked.measures.items()}
    return fields.assign_coords({EXTRAPOLATES: flags}).assign(measures)


def _collected(
    surrogate: Surrogate, blocks: Iterable[xr.Dataset], notify: Notify
) -> Iterator[xr.Dataset]:
    """The blocks without their measures; at the end one notice for every kind of finding."""
    known = limits(surrogate)
    found: dict[str, Finding] = {}
    for block in blocks:
        measured = [str(name) for name in block.data_vars if str(name).startswith(MEASURE)]
        measures = {name.removeprefix(MEASURE): block[name].values for name in measured}
        checked = Checked(measures, snapshot_labels(block, [SNAPSHOT]))
        for name, item in checked.findings(known).items():
            found[name] = found[name] + item if name in found else item
        yield block.drop_vars(measured)
    for notice in notices(found, known):
        notify(notice)
