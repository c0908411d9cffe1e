"""`solar_loss`: what solar plants lose to the smoke of fires, predicted or stored."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import DOSE_OF, LOCAL_HOUR, recorded_interval
from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.base.names import IGNITION_TIME, SMOKE, SNAPSHOT
from plumecast.data.store import open_snapshots
from plumecast.impact.solar.loss import Conditions, SmokeAt, interval_begins, losses
from plumecast.impact.solar.optics import (
    KNOWN_DEPTH,
    Optics,
    optical_depth,
    sample_optics,
)
from plumecast.impact.solar.optics import (
    column_depth as depth_of,
)
from plumecast.impact.solar.plants import ALTITUDE, Panels, plants_of
from plumecast.impact.solar.result import Fires, labelled
from plumecast.impact.solar.sun import read_ignition_time, read_ignition_times
from plumecast.scores.quantities import as_integrals, checkpoint_hours
from plumecast.scores.sampling import check_coverage
from plumecast.sources.places import Places, read_places
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.origin import fires_origin
from plumecast.workflows.held_out.record import model_record
from plumecast.workflows.predict import StoreFires
from plumecast.workflows.statistics.place_samples import PlaceSamples, predicted_at, stored_at
from plumecast.workflows.statistics.smoke import column_smoke

COLUMN = "optical depth is that of a column of smoke,"
"""Begin of the message for a surrogate of something else."""

LONGEST = 12.0
"""Hours between snapshots beyond which a warning says that day and night are averaged."""


STEP = 1.0
"""Hours between the snapshots at which smoke is predicted, whatever hours are asked for: the loss
of an hour depends on its sun."""


def solar_loss(
    fires: xr.Dataset | str | Path | PlaceSamples,
    places: Places | str | Path,
    *,
    ignition_time: str | None = None,
    surrogate: Surrogate | None = None,
    like: xr.Dataset | None = None,
    lower: np.ndarray | None = None,
    upper: np.ndarray | None = None,
    column_depth: float | None = None,
    checkpoint_interval: float | None = None,
    latitude: float | None = None,
    optics: Optics | None = None,
    panels: Panels | None = None,
    coverage: float = 0.9,
    optics_samples: int = 64,
    seed: int = 0,
) -> xr.Dataset:
    """Energy that solar plants lose to the smoke of fires, with intervals split by causes.

    `fires` is a store or a Dataset with smoke; with a `surrogate`, fires whose smoke it predicts;
    or samples of smoke at the places (with `like`, their grid). `places` is a table (CSV) with the
    column megawatts (AC), and optionally tilt, azimuth and elevation. `ignition_time` is that of
    all fires ("2020-09-08T14:00-07:00"; without an offset, local solar time); by default each fire
    ignites when its coordinate `ignition_time` says. `lower` and `upper`
    (M, P) are bands of the smoke at the places: sums over checkpoints, as the smoke itself; those
    of predicted smoke (`lower` and `upper` in the Dataset) and of a surrogate with error bars are
    used without saying so.
    `column_depth` (m), `checkpoint_interval` (h) and `latitude` are for smoke and grids that do not
    record them.

    The Dataset has, for every plant and all plants (`row`), the means over fires of the energy
    under a clear sky and the energy lost, in MWh and percent, with intervals for each `part`:
    optics, surrogate, sampling and total.
    """
    check_coverage(coverage)
    optics, panels = optics or Optics(), panels or Panels()
    mee, ssa = sample_optics(optics, optics_samples, seed)
    surrogate = None if surrogate is None else column_smoke(surrogate, COLUMN)
    grid = _grid(fires, surrogate) if like is None else like
    where = places if isinstance(places, Places) else read_places(places, grid)
    plants = plants_of(where, grid, latitude)
    local_hour = grid.attrs.get(LOCAL_HOUR)
    known = isinstance(fires, PlaceSamples) or records_ignition(grid)
    if ignition_time is not None or not known:
        read_ignition_time(ignition_time, local_hour)  # refused before the smoke is predicted
    samples = _samples(fires, where, surrogate)
    recorded = samples.labels.get(IGNITION_TIME, np.full(samples.hours.size, ""))
    groups = read_ignition_times(ignition_time, recorded, local_hour)
    given = Conditions(plants, groups[0][0], optics, panels, mee, ssa)
    if lower is None and upper is None:
        if surrogate is None:
            lower, upper = stored_bands(where, grid)
        else:
            lower, upper = predicted_bands(surrogate, samples, coverage)
    smoke, names = smoke_at(
        samples,
        depth=column_depth, interval=checkpoint_interval, lower=lower, upper=upper,
    )  # fmt: skip
    found = reduce(
        add,
        (
            losses(smoke.at(rows, later), replace(given, ignition=start), KNOWN_DEPTH)
            for start, rows, later in groups
        ),
    )
    aod = optical_depth(smoke.concentration, smoke.depth, optics.mee, optics.growth)
    largest = np.zeros((names.names.size, len(where)))
    np.maximum.at(largest, smoke.fire, aod)
    if found.beyond > 0.0:
        _warn_of_depth(smoke, aod, names, where, found.beyond / float(found.lost.sum()))
    _warn_of_gaps(smoke, names)
    made = labelled(found, names, given, largest, coverage)
    stated: dict[str, Any] = {} if surrogate is None else model_record(surrogate)
    if ignition_time is None:
        stated["ignition_time"] = _span(recorded)
    if not isinstance(fires, PlaceSamples):
        stated["fires_from"] = fires_origin(fires)
    return made.assign_attrs(
        column_depth_m=smoke.depth, places=where.source, optics_seed=seed, **stated
    )


def records_ignition(data: xr.Dataset) -> bool:
    """Whether all fires record their time of ignition."""
    return IGNITION_TIME in data.variables and bool((data[IGNITION_TIME].values != "").all())


def _span(recorded: np.ndarray) -> str:
    """The recorded times of ignition in words."""
    times = sorted(set(recorded.tolist()))
    clock = "" if times[0].endswith("Z") else " local solar time"
    if len(times) == 1:
        return f"{times[0]}{clock}, as recorded"
    return f"{times[0]} to {times[-1]}{clock}, as each fire records"


def _grid(fires: xr.Dataset | str | Path | PlaceSamples, surrogate: Surrogate | None) -> xr.Dataset:
    """The grid of the smoke, with the local hour of ignition as far as the fires record it."""
    if isinstance(fires, PlaceSamples):
        raise PlumecastError("samples at places need `like`, the grid that the places lie on")
    if surrogate is None:
        return fires if isinstance(fires, xr.Dataset) else open_snapshots(fires, fields=[SMOKE])
    return grid_for(surrogate, fires)


def grid_for(surrogate: Surrogate, fires: xr.Dataset | str | Path) -> xr.Dataset:
    """The grid of a surrogate's smoke, with what fires record of the ground and of their start.

    These are the altitude of the surface and the local hour of ignition.
    """
    names = list(surrogate.inputs.names)
    data = fires if isinstance(fires, xr.Dataset) else open_snapshots(fires, fields=names)
    known = {LOCAL_HOUR: data.attrs[LOCAL_HOUR]} if LOCAL_HOUR in data.attrs else {}
    grid = surrogate.grid.assign_attrs(known)
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


def predicted_bands(
    surrogate: Surrogate, samples: PlaceSamples, coverage: float
) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """The error bars (M, P) of predicted smoke at places; None for a surrogate without them."""
    if surrogate.error_bars is None:
        return None, None
    return surrogate.error_bars.interval(samples.values, coverage, samples.hours)


def _samples(
    fires: xr.Dataset | str | Path | PlaceSamples, places: Places, surrogate: Surrogate | None
) -> PlaceSamples:
    if isinstance(fires, PlaceSamples):
        return fires
    if surrogate is None:
        return stored_at(places, fires)
    stores = StoreFires(surrogate, [fires], step=STEP)
    return predicted_at(places, surrogate, stores, settled=False)


def smoke_at(
    samples: PlaceSamples,
    *,
    depth: float | None = None,
    interval: float | None = None,
    lower: np.ndarray | None = None,
    upper: np.ndarray | None = None,
) -> tuple[SmokeAt, Fires]:
    """Concentrations between snapshots, from smoke (sums over checkpoints) at places."""
    if not np.isfinite(samples.hours).all():
        row = int(np.argmin(np.isfinite(samples.hours)))
        raise PlumecastError(
            f"fire {samples.fires[row]}: the hours since ignition are unknown; add the coordinate "
            "'hours'"
        )
    if (lower is None) != (upper is None):
        raise PlumecastError("give both lower and upper, or neither")
    names, first, fire = np.unique(samples.fires, return_index=True, return_inverse=True)
    last = np.zeros(names.size)
    np.maximum.at(last, fire, samples.hours)
    concentration = np.asarray(samples.between(interval), dtype=np.float64)
    array = samples.as_array()
    spacing = checkpoint_hours(array, interval)
    bands = [_band(end, samples, concentration, spacing) for end in (lower, upper)]
    made = SmokeAt(
        concentration,
        begin=interval_begins(samples.fires, samples.hours),
        end=samples.hours,
        fire=fire.reshape(-1),
        fires=names.size,
        depth=depth_of(array, depth),
        lower=bands[0],
        upper=bands[1],
    )
    return made, Fires(names, samples.ignitions[first], last)


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
    known = samples.values > 0.0
    ratio = np.maximum(end, 0.0) / np.where(known, samples.values, 1.0)
    made: np.ndarray = np.where(known, concentration * ratio, even)
    return made


def _warn_of_depth(
    smoke: SmokeAt, aod: np.ndarray, fires: Fires, places: Places, share: float
) -> None:
    """Warn of optical depths beyond what is known, with their share of the loss."""
    row, plant = np.unravel_index(int(np.argmax(aod)), aod.shape)
    warnings.warn(
        f"the optical depth of the smoke reaches {aod.max():.3g} (fire "
        f"{fires.names[smoke.fire[row]]} at {places.names[plant]}, {smoke.end[row]:g} h); "
        f"{share:.0%} of the lost energy is from depths beyond {KNOWN_DEPTH:g}, where no "
        "measurements confirm the models of the sky",
        PlumecastWarning,
        stacklevel=3,
    )


def _warn_of_gaps(smoke: SmokeAt, fires: Fires) -> None:
    """Warn of snapshots that are many hours apart."""
    gap = smoke.end - smoke.begin
    if gap.max() > LONGEST:
        longest = int(np.argmax(gap))
        warnings.warn(
            f"fire {fires.names[smoke.fire[longest]]}: {gap[longest]:g} h lie between snapshots, "
            "over which the smoke is averaged by day and night alike; snapshots every 6 h or less "
            "give a better loss",
            PlumecastWarning,
            stacklevel=3,
        )
