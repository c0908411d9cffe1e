"""`solar_loss`: what solar plants lose to the smoke of fires, predicted or stored."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import DOSE_OF, LOCAL_HOUR, recorded_interval
from plumecast.base.deprecated import folded_arguments
from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.names import IGNITION_TIME, SMOKE, SNAPSHOT
from plumecast.base.values import setting
from plumecast.compute.dose import previous_snapshot
from plumecast.compute.resources import LOCAL, Resources
from plumecast.data.store import open_snapshots
from plumecast.impact.loss import LossSettings, SmokeAt, losses
from plumecast.impact.loss_result import labelled
from plumecast.impact.optics import KNOWN_DEPTH, Optics, optical_depth, sample_optics
from plumecast.impact.optics import (
    column_depth as depth_of,
)
from plumecast.impact.plants import (
    ALTITUDE,
    Panels,
    plants_of,
    read_ignition_time,
    read_ignition_times,
)
from plumecast.scores.quantities import as_integrals, checkpoint_hours
from plumecast.scores.reading import AS_STORED, Reading
from plumecast.scores.sampling import check_coverage
from plumecast.sources.places import Places, read_places
from plumecast.sources.rasters import ArrivalTimes
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.sources import (
    Fires,
    FireSource,
    Overrides,
    StoreFires,
    fires_origin,
    listed,
)
from plumecast.workflows.held_out.record import model_record
from plumecast.workflows.predict import Notify
from plumecast.workflows.statistics.request import Statistics, column_smoke
from plumecast.workflows.statistics.samples import PlaceSamples, predicted_at, stored_at

COLUMN = "optical depth is that of a column of smoke,"
"""Begin of the message for a surrogate of something else."""

LONGEST = 12.0
"""Hours between snapshots beyond which a warning says that day and night are averaged."""


STEP = 1.0
"""Hours between the snapshots at which smoke is predicted, whatever hours are asked for: the loss
of an hour depends on its sun."""


@dataclass(frozen=True, slots=True, eq=False)
class Unrecorded:
    """What smoke, fires and grids do not record themselves.

    `column_depth` (m) is the height that smoke is a mean over, `latitude` (degrees) that of plants
    on a grid without one, `like` the grid of places where samples of smoke are given.
    """

    column_depth: float | None = None
    latitude: float | None = None
    like: xr.Dataset | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """How the intervals of losses are made.

    `lower` and `upper` (M, P) are bands of the smoke at the places, sums over checkpoints as the
    smoke itself; by default those of predicted smoke (`lower` and `upper` in the Dataset), or of a
    surrogate with error bars. The properties of smoke are sampled `optics_samples` times.
    """

    coverage: float = setting(0.9, "Coverage of the intervals.")
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    optics_samples: int = 64
    seed: int = setting(0, "Seed of the samples of optical properties.")

    def __post_init__(self) -> None:
        check_coverage(self.coverage)


RECORDED, USUAL = Unrecorded(), Uncertainty()


@folded_arguments(
    reading=Reading,
    unrecorded=Unrecorded,
    uncertainty=Uncertainty,
    renamed={"checkpoint_interval": "interval"},
)
def solar_loss(
    fires: xr.Dataset | str | Path | PlaceSamples,
    places: Places | str | Path,
    *,
    ignition_time: str | None = None,
    surrogate: Surrogate | None = None,
    reading: Reading = AS_STORED,
    unrecorded: Unrecorded = RECORDED,
    uncertainty: Uncertainty = USUAL,
    optics: Optics | None = None,
    panels: Panels | None = None,
    resources: Resources = LOCAL,
) -> xr.Dataset:
    """Energy that solar plants lose to the smoke of fires, with intervals split by causes.

    Parameters
    ----------
    fires
        A store or a Dataset with smoke; with a `surrogate`, fires whose smoke it predicts; or
        samples of smoke at the places.
    places
        A table (CSV) with the column megawatts (AC), and optionally tilt, azimuth and elevation.
    ignition_time
        That of all fires ("2020-09-08T14:00-07:00"; without an offset, local solar time); by
        default each fire ignites when its coordinate `ignition_time` says.
    surrogate
        Predicts the smoke of the fires.
    reading
        The hours until which smoke is predicted, and the interval between checkpoints of smoke
        that does not record it. The loss is always that of the concentration between snapshots.
    unrecorded, uncertainty
        What the fires do not record, and how intervals are made.
    optics, panels
        Properties of the smoke and of the plants.
    resources
        Where the smoke is predicted.

    Returns
    -------
    xr.Dataset
        For every plant and all plants (`row`), the means over fires of the energy under a clear sky
        and the energy lost, in MWh and percent, with intervals for each `part`: optics, surrogate,
        sampling and total.
    """
    optics, panels = optics or Optics(), panels or Panels()
    mee, ssa = sample_optics(optics, uncertainty.optics_samples, uncertainty.seed)
    surrogate = None if surrogate is None else column_smoke(surrogate, COLUMN)
    grid = _grid(fires, surrogate) if unrecorded.like is None else unrecorded.like
    where = places if isinstance(places, Places) else read_places(places, grid)
    plants = plants_of(where, grid, unrecorded.latitude)
    local_hour = grid.attrs.get(LOCAL_HOUR)
    recorded = isinstance(fires, PlaceSamples) or records_ignition(grid)
    if ignition_time is not None or not recorded:
        read_ignition_time(ignition_time, local_hour)  # refused before the smoke is predicted
    if isinstance(fires, PlaceSamples):
        samples = fires
    elif surrogate is None:
        samples = stored_at(where, fires)
    else:
        samples = dense_samples(where, surrogate, fires, reading, resources=resources)
    times = samples.labels.get(IGNITION_TIME, np.full(samples.hours.size, ""))
    groups = read_ignition_times(ignition_time, times, local_hour)
    settings = LossSettings(plants, groups[0][0], optics, panels, mee, ssa)
    bands = uncertainty.lower, uncertainty.upper
    if bands[0] is None and bands[1] is None:
        if surrogate is None:
            bands = stored_bands(where, grid)
        elif surrogate.error_bars is not None:
            coverage = uncertainty.coverage
            bands = surrogate.error_bars.interval(samples.values, coverage, samples.hours)
    smoke = smoke_at(samples, bands, depth=unrecorded.column_depth, interval=reading.interval)
    parts = (
        losses(smoke.at(rows, later), replace(settings, ignition=start))
        for start, rows, later in groups
    )
    lost = reduce(add, parts)
    aod = optical_depth(smoke.concentration, smoke.depth, optics.mee, optics.growth)
    largest = np.zeros((smoke.names.size, len(where)))
    np.maximum.at(largest, smoke.fire, aod)
    beyond = lost.beyond / float(lost.lost.sum()) if lost.beyond > 0.0 else 0.0
    _warn_of_smoke(smoke, aod, where, beyond)
    record: dict[str, Any] = {} if surrogate is None else model_record(surrogate)
    if ignition_time is None:
        record["ignition_time"] = _span(times)
    if not isinstance(fires, PlaceSamples):
        record["fires_from"] = fires_origin(fires)
    made = labelled(lost, smoke, settings, largest, uncertainty.coverage)
    if where.counties:
        made = made.assign_coords(county=("row", [*where.counties, ""]))
    return made.assign_attrs(
        column_depth_m=smoke.depth, places=where.source, optics_seed=uncertainty.seed, **record
    )


def dense_samples(
    places: Places,
    surrogate: Surrogate,
    fires: Fires | ArrivalTimes,
    reading: Reading = AS_STORED,
    *,
    weather: xr.Dataset | None = None,
    precision: str = "float64",
    independent: bool = False,
    resources: Resources = LOCAL,
    notify: Notify | None = None,
) -> PlaceSamples:
    """The predicted smoke of fires at places every `STEP` hours, until the hours of the reading.

    Ignitions are those of `predicted_at`, or every fire is one if they are `independent`.
    """
    source: FireSource
    if isinstance(fires, ArrivalTimes):  # they are read at the hours that were asked for
        source = fires
    else:
        overrides = Overrides(tuple(reading.hours) or None, STEP)
        source = StoreFires(surrogate, listed(fires), overrides, weather)
    return predicted_at(
        places,
        surrogate,
        source,
        statistics=Statistics(precision=precision, independent=independent),
        settled=False,
        resources=resources,
        notify=notify,
    )


def _span(recorded: np.ndarray) -> str:
    """The recorded times of ignition in words."""
    times = sorted(set(recorded.tolist()))
    clock = "" if times[0].endswith("Z") else " local solar time"
    if len(times) == 1:
        return f"{times[0]}{clock}, as recorded"
    return f"{times[0]} to {times[-1]}{clock}, as each fire records"


def records_ignition(data: xr.Dataset) -> bool:
    """Whether all fires record their time of ignition."""
    return IGNITION_TIME in data.variables and bool((data[IGNITION_TIME].values != "").all())


def _grid(fires: xr.Dataset | str | Path | PlaceSamples, surrogate: Surrogate | None) -> xr.Dataset:
    """The grid of the smoke, with the local hour of ignition as far as the fires record it."""
    if isinstance(fires, PlaceSamples):
        raise PlumecastError(
            "samples at places need unrecorded=Unrecorded(like=…), the grid that the places lie on"
        )
    if surrogate is None:
        return fires if isinstance(fires, xr.Dataset) else open_snapshots(fires, fields=[SMOKE])
    return grid_for(surrogate, fires)


def grid_for(surrogate: Surrogate, fires: xr.Dataset | str | Path) -> xr.Dataset:
    """The grid of a surrogate's smoke, with what fires record of the ground and of their start.

    These are the altitude of the surface and the local hour of ignition.
    """
    names = list(surrogate.inputs.names)
    data = fires if isinstance(fires, xr.Dataset) else open_snapshots(fires, fields=names)
    hour = {LOCAL_HOUR: data.attrs[LOCAL_HOUR]} if LOCAL_HOUR in data.attrs else {}
    grid = surrogate.grid.assign_attrs(hour)
    if records_ignition(data):
        grid = grid.assign_coords({IGNITION_TIME: data[IGNITION_TIME].variable})
    if ALTITUDE in data.variables and data[ALTITUDE].dims == ("y", "x"):
        same = all(np.array_equal(data[dim].values, grid[dim].values) for dim in ("y", "x"))
        grid = grid.assign_coords({ALTITUDE: data[ALTITUDE].variable}) if same else grid
    return grid


def stored_bands(
    places: Places, data: xr.Dataset
) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """The bands (M, P) that a prediction with error bars holds at places; None without them."""
    if not {"lower", "upper"} <= set(data.data_vars):
        return None, None
    interval = recorded_interval(data[SMOKE].attrs)
    ends = []
    for name in ("lower", "upper"):
        end = places.at(data[name]).transpose(SNAPSHOT, "place")
        end = as_integrals(end, interval) if DOSE_OF in end.attrs else end
        ends.append(end.values.astype(np.float64))
    return ends[0], ends[1]


def smoke_at(
    samples: PlaceSamples,
    bands: tuple[np.ndarray | None, np.ndarray | None],
    *,
    depth: float | None = None,
    interval: float | None = None,
) -> SmokeAt:
    """Concentrations between snapshots, from smoke (sums over checkpoints) at places."""
    if not np.isfinite(samples.hours).all():
        row = int(np.argmin(np.isfinite(samples.hours)))
        raise PlumecastError(
            f"fire {samples.fires[row]}: the hours since ignition are unknown; add the coordinate "
            "'hours'"
        )
    if (bands[0] is None) != (bands[1] is None):
        raise PlumecastError("give both lower and upper, or neither")
    names, first, fire = np.unique(samples.fires, return_index=True, return_inverse=True)
    last = np.zeros(names.size)
    np.maximum.at(last, fire, samples.hours)
    before = previous_snapshot(samples.fires, samples.hours)
    concentration = np.asarray(samples.between(interval), dtype=np.float64)
    array = samples.as_array()
    spacing = checkpoint_hours(array, interval)
    lower, upper = (_band(end, samples, concentration, spacing) for end in bands)
    return SmokeAt(
        concentration,
        begin=np.where(before < 0, 0.0, samples.hours[before]),
        end=samples.hours,
        fire=fire.reshape(-1),
        names=names,
        ignitions=samples.ignitions[first],
        last=last,
        depth=depth_of(array, depth),
        lower=lower,
        upper=upper,
    )


def _band(
    end: np.ndarray | None, samples: PlaceSamples, concentration: np.ndarray, spacing: float
) -> np.ndarray | None:
    """An end of the band of the sums as one of the concentration between snapshots.

    The relative error of a sum is taken for that of its last part. Where the predicted sum is 0,
    the end is spread evenly over the hours since ignition.
    """
    if end is None:
        return None
    if end.shape != samples.values.shape:
        raise PlumecastError(
            f"the band has shape {end.shape}, but there are {samples.values.shape[0]} snapshots "
            f"at {samples.values.shape[1]} places"
        )
    even = np.maximum(end, 0.0) * (spacing / np.maximum(samples.hours, spacing))[:, np.newaxis]
    smoky = samples.values > 0.0
    ratio = np.maximum(end, 0.0) / np.where(smoky, samples.values, 1.0)
    return np.asarray(np.where(smoky, concentration * ratio, even))


def _warn_of_smoke(smoke: SmokeAt, aod: np.ndarray, places: Places, share: float) -> None:
    """Warn of optical depths beyond what is known, and of snapshots that are many hours apart.

    `share` is the part of the loss that is from such depths.
    """
    row, plant = np.unravel_index(int(np.argmax(aod)), aod.shape)
    gap = smoke.end - smoke.begin
    longest = int(np.argmax(gap))
    if share > 0.0:
        warnings.warn(
            f"the optical depth of the smoke reaches {aod.max():.3g} (fire "
            f"{smoke.names[smoke.fire[row]]} at {places.names[plant]}, {smoke.end[row]:g} h); "
            f"{share:.0%} of the lost energy is from depths beyond {KNOWN_DEPTH:g}, where no "
            "measurements confirm the models of the sky",
            PlumecastWarning,
            stacklevel=3,
        )
    if gap[longest] > LONGEST:
        warnings.warn(
            f"fire {smoke.names[smoke.fire[longest]]}: {gap[longest]:g} h lie between snapshots, "
            "over which the smoke is averaged by day and night alike; snapshots every 6 h or less "
            "give a better loss",
            PlumecastWarning,
            stacklevel=3,
        )
