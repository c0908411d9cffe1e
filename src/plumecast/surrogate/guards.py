"""Guards of a prediction: what the training fires cover, and which snapshots lie beyond it.

A *measure* is one number per snapshot, such as the age of its fire. Training gives each measure an
interval; a snapshot outside of it is flagged, and a sentence says by how much.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE
from plumecast.compute.arrays import Array, array_namespace, to_numpy
from plumecast.data.covariates import read_scalar
from plumecast.operators.family import Conditions
from plumecast.operators.settings import FAMILIES
from plumecast.surrogate.ranges import (
    fire_columns,
    mean_growth,
    mean_load,
    represented_share,
)

if TYPE_CHECKING:
    from plumecast.surrogate.surrogate import Surrogate


FLAGS = {
    "empty_prediction": 1,
    "outside_training_region": 2,
    "hours_beyond_training": 4,
    "burned_area_beyond_training": 8,
    "wind_beyond_training": 16,
    "covariate_beyond_training": 32,
    "far_from_training_fires": 64,
    "at_training_maximum": 128,
    "fuel_beyond_training": 256,
}
"""Bits of the flag of a snapshot, by their CF meaning."""

EXTRAPOLATES = "extrapolates"
"""Coordinate of predicted fields that holds the flags."""

COVARIATE = "covariate "
"""What the measures of covariates begin with."""

EMPTY = 1e-6  # of the peak training smoke: a prediction below it everywhere is empty
OUTSIDE = 0.1  # share of the burned cells that may lie outside the training region
LONGER, LARGER, WINDIER = 1.02, 1.5, 1.1
"""Factors on the largest training value. New fires from the same distribution exceed it a little:
hours by minutes, the burned area most."""
WEAKER = 0.8
"""Factor on the weakest training wind and the shallowest boundary layer."""
HEAVIER = 1.1
"""Factor on the heaviest fuel load of training, a mean over the burned cells."""
SATURATED = 3
"""Cells of a prediction that may have the largest value of training, at which predictions end."""
SLOWER = 0.33
"""Factor on the mean growth of the slowest training fire: a fire below it is smaller than any."""
NEARNESS = 0.5
"""A fire is far from training if the basis represents less than this fraction of the share that it
represents of the worst training fire."""


# -- measures of a prediction


def measure_rows(
    surrogate: Surrogate,
    inputs: Array,
    given: Conditions,
    made: Mapping[str, Array],
    stated: Mapping[str, Array],
) -> dict[str, Array]:
    """(M,) of every measure that the training of this surrogate has an interval for.

    `inputs` (M, N) are rows in the layout of the surrogate, on the host; `made` are the
    `output_measures` of the prediction, none if it was not decoded; `stated` the `stated_measures`.
    """
    ranges = surrogate.training.get("ranges", {})
    fires = (inputs != 0.0).any(axis=1)
    measures = {name: np.where(fires, values, np.nan) for name, values in made.items()}
    columns = fire_columns(surrogate.inputs)
    if columns is not None and "hours" in ranges:
        fire = inputs[:, columns]
        burned = fire != 0.0
        cells = burned.sum(axis=1)
        oldest = fire.max(axis=1)
        hours = np.maximum(oldest, stated["hours"]) if "hours" in stated else oldest
        measures |= {"hours": hours, "burned_cells": cells.astype(np.float64)}
        if "growth" in ranges:
            # A fire that is too old is told as such: its mean growth is small for that reason.
            covered = hours <= LONGER * ranges["hours"][1]
            measures["growth"] = np.where(covered, mean_growth(fire, stated.get("hours")), np.nan)
        part = surrogate.inputs.fields[surrogate.inputs.names.index(FIRE)]
        outside = np.ones(part.shape, dtype=bool)
        outside[tuple(slice(first, last + 1) for first, last in ranges["region"])] = False
        measures["region"] = burned[:, outside.ravel()].sum(axis=1) / np.maximum(cells, 1)
        if "fuel_load" in ranges and given.fuel is not None:
            measures["fuel_load"] = mean_load(burned, given.fuel.maps, given.fuel.number)
    if "wind_speed" in ranges and given.wind is not None:
        measures["wind_speed"] = np.hypot(*given.wind.T)
    if "represented" in ranges:
        share = represented_share(surrogate.operator, inputs)
        if share is not None:
            measures["represented"] = share
    measures |= {name: values for name, values in stated.items() if name != "hours"}
    column = 0
    for item in surrogate.covariates:
        if item.kind == "number" and given.covariates is not None:
            values = given.covariates[:, column].astype(np.float64) * item.scale + item.mean
            measures[COVARIATE + item.name] = values
        column += item.width
    return measures


def largest_sizes(outputs: Array) -> Array:
    """(M,) largest absolute value of each row; NaN if the row has one."""
    return np.maximum(outputs.max(axis=1), -outputs.min(axis=1))


def output_measures(surrogate: Surrogate, outputs: Array) -> dict[str, Array]:
    """(M,) measures of predictions (M, Ñ) on any device, of which these alone are copied.

    They are the largest size of an output, and the number of cells with the largest value of
    training, at which operators end.
    """
    xp = array_namespace(outputs)
    made = {"peak": to_numpy(xp.max(xp.abs(outputs), axis=1))}
    ceilings = surrogate.operator.ceilings
    if ceilings and outputs.shape[1] == surrogate.outputs.size:
        width = surrogate.outputs.size // len(ceilings)
        made["saturated"] = np.zeros(outputs.shape[0])
        for number, ceiling in enumerate(ceilings):
            own = outputs[:, number * width : (number + 1) * width]
            made["saturated"] += to_numpy(xp.sum(own >= (1.0 - 1e-6) * ceiling, axis=1))
    return made


def refuse_infinite(*sums: Any) -> None:
    """Raise if sums over predictions show that one of them is NaN or infinite."""
    if not all(np.isfinite(part).all() for part in sums):
        raise PlumecastError(
            "a prediction is not finite: its inputs lie far beyond those of training; check the "
            "values and units of the fires (plumecast info --check)"
        )


# -- intervals, flags and sentences


@dataclass(frozen=True, slots=True)
class Limit:
    """The interval of a measure within which a prediction does not extrapolate."""

    flag: str  # a key of FLAGS
    low: float = -np.inf
    high: float = np.inf
    sentence: str = ""  # with {value} and {times}, the ratio of the value to the training value
    known: float = 1.0  # the largest training value
    loud: bool = True  # otherwise a note: the method is made for it

    def excess(self, values: Array) -> Array:
        """How far values lie outside the interval; 0 within it and where they are NaN."""
        return np.nan_to_num(np.maximum(self.low - values, values - self.high)).clip(0.0, None)


def limits(surrogate: Surrogate) -> dict[str, Limit]:
    """The intervals of the measures that the training record has ranges of."""
    ranges = surrogate.training.get("ranges", {})
    tau = surrogate.training.get("thresholds", {}).get("smoke", 0.0)
    peak = ranges["peak"][1] if "peak" in ranges else tau
    name = surrogate.outputs.names[0]
    found = {
        "peak": Limit(
            "empty_prediction",
            low=np.nextafter(EMPTY * peak, np.inf),
            sentence=f"the predicted {name} is zero everywhere although there is fire: the "
            "surrogate knows no fire like it; train on fires of that place and kind",
        )
    }
    if surrogate.operator.ceilings:
        found["saturated"] = Limit(
            "at_training_maximum",
            high=SATURATED,
            sentence=f"the predicted {name} ends at the largest value of training in {{value:.0f}} "
            "cells: more than this surrogate can predict is possible there; train on fires with "
            "more smoke",
        )
    if "hours" in ranges:
        found |= _fire_limits(surrogate, ranges)
    if "wind_speed" in ranges:
        low, high = ranges["wind_speed"]
        found["wind_speed"] = _between(
            "wind_beyond_training", (WEAKER * low, WINDIER * high),
            f"a wind of {{value:.3g}} m/s lies outside the {low:.3g} … {high:.3g} m/s", "wind",
        )  # fmt: skip
    if "profile_wind" in ranges:
        found["profile_wind"] = Limit(
            "wind_beyond_training",
            high=WINDIER,
            sentence="at some height the wind is {value:.3g} times the strongest of the training "
            "fires there: the prediction extrapolates; train on fires with such wind",
        )
    if "weakest_wind" in ranges:
        found["weakest_wind"] = Limit(
            "wind_beyond_training",
            low=WEAKER,
            sentence="the wind is at every height at most {value:.2g} times the weakest of the "
            "training fires there: the prediction extrapolates; train on fires with such wind",
        )
    if "boundary_layer_depth" in ranges:
        low, high = ranges["boundary_layer_depth"]
        found["boundary_layer_depth"] = _between(
            "covariate_beyond_training", (WEAKER * low, WINDIER * high),
            "the largest boundary_layer_depth, {value:.4g} m, lies outside the "
            f"{low:.4g} … {high:.4g} m", "weather",
        )  # fmt: skip
    if "represented" in ranges:
        least = ranges["represented"][0]
        found["represented"] = Limit(
            "far_from_training_fires",
            low=NEARNESS * least,
            sentence="the basis represents {value:.2%} of the fire, but at least "
            f"{least:.2%} of every training fire: the prediction ignores the rest; train on fires "
            "like it, or use a surrogate of the preset recommended",
        )
    for item in surrogate.covariates:
        if item.kind == "number":
            slack = 1e-5 * max(abs(item.low), abs(item.high))  # columns are in single precision
            found[COVARIATE + item.name] = _between(
                "covariate_beyond_training", (item.low - slack, item.high + slack),
                f"{item.name} {{value:.4g}} lies outside the {item.low:.4g} … {item.high:.4g}",
                "values",
            )  # fmt: skip
    return found


def _between(flag: str, interval: tuple[float, float], text: str, such: str) -> Limit:
    """The interval of a measure that fires have in any strength."""
    told = f"{text} of training: the prediction extrapolates; train on fires with such {such}"
    return Limit(flag, *interval, told)


def _fire_limits(surrogate: Surrogate, ranges: Mapping[str, Any]) -> dict[str, Limit]:
    """The intervals of age, burned area and place."""
    hours, cells = ranges["hours"], ranges["burned_cells"]
    part = surrogate.inputs.fields[surrogate.inputs.names.index(FIRE)]
    box = []
    for dim, (first, last) in zip(part.dims, ranges["region"], strict=True):
        places = part.coords[dim].values if dim in part.coords else np.arange(last + 1)
        box.append(f"{dim} {places[first]:g} … {places[last]:g}")
    family = FAMILIES.get(surrogate.settings.get("family", ""))
    region = f"{{value:.0%}} of the burned cells lie outside the training region ({', '.join(box)})"
    bound = family is not None and not family.equivariant
    if bound:
        region += (
            ": this surrogate has learned nothing there; train on fires of that place, or use a "
            "surrogate of the preset recommended"
        )
    elif family is not None:
        region += (
            "; this surrogate does not use the location, so it can be applied there, but it was "
            "not trained on that terrain"
        )
    found = {
        "hours": Limit(
            "hours_beyond_training",
            high=LONGER * hours[1],
            sentence=f"{{value:.4g}} h since ignition are {{times:.1f}} times the {hours[1]:.4g} h "
            "of the longest training fire: the prediction extrapolates; predict fewer hours, check "
            "the unit of the arrival times, or train on longer fires",
            known=hours[1],
        ),
        "burned_cells": Limit(
            "burned_area_beyond_training",
            high=LARGER * cells[1],
            sentence=f"the fire burns {{value:.0f}} cells, {{times:.1f}} times the {cells[1]:.0f} "
            "of the largest training fire: the prediction extrapolates; train on larger fires",
            known=float(cells[1]),
        ),
        "region": Limit("outside_training_region", high=OUTSIDE, sentence=region, loud=bound),
    }
    if "fuel_load" in ranges:
        heaviest = float(ranges["fuel_load"][1])
        found["fuel_load"] = Limit(
            "fuel_beyond_training",
            high=HEAVIER * heaviest,
            sentence="what burns is {value:.3g} kg/m² in the mean, {times:.2g} times the "
            f"{heaviest:.3g} kg/m² of the training fire with the heaviest fuel: the prediction "
            "extrapolates; train on fires with such fuel",
            known=heaviest,
        )
    if "growth" in ranges:
        least = float(ranges["growth"][0])
        found["growth"] = Limit(
            "burned_area_beyond_training",
            low=SLOWER * least,
            sentence="the burned area grows by {value:.2g} cells an hour in the mean, {times:.2g} "
            "times that of the slowest training fire: the prediction extrapolates; check the unit "
            "of the arrival times, or train on smaller fires",
            known=least,
        )
    return found


@dataclass(frozen=True, slots=True)
class Excess:
    """The snapshots outside one interval: their number, the first of them, the worst value."""

    count: int
    first: str
    worst: float
    excess: float

    def __add__(self, other: Excess) -> Excess:
        worse = other if other.excess > self.excess else self
        return Excess(self.count + other.count, self.first, worse.worst, worse.excess)


@dataclass(frozen=True, slots=True)
class Checked:
    """The measures of some predictions, and the names of their snapshots."""

    measures: Mapping[str, Array]  # (M,) each
    labels: Sequence[str]

    def flags(self, known: Mapping[str, Limit]) -> Array:
        """(M,) bit mask of FLAGS."""
        flags = np.zeros(len(self.labels), dtype=np.int16)
        for name, values in self.measures.items():
            flags[known[name].excess(values) > 0.0] |= FLAGS[known[name].flag]
        return flags

    def excesses(self, known: Mapping[str, Limit]) -> dict[str, Excess]:
        """The measures that leave their interval, by name."""
        found = {}
        for name, values in self.measures.items():
            excess = known[name].excess(values)
            rows = np.flatnonzero(excess)
            if rows.size:
                worst = int(np.argmax(excess))
                first = self.labels[int(rows[0])]
                found[name] = Excess(
                    int(rows.size), first, float(values[worst]), float(excess[worst])
                )
        return found


class Notice(NamedTuple):
    """What is said of one excess; a loud one warns, the others inform."""

    measure: str
    text: str
    loud: bool


def notices(found: Mapping[str, Excess], known: Mapping[str, Limit]) -> list[Notice]:
    """One notice for every excess: the first fire, the worst value, the range of training."""
    said = []
    for name, item in found.items():
        limit = known[name]
        text = limit.sentence.format(value=item.worst, times=item.worst / (limit.known or 1.0))
        some = f"{item.first} and {item.count - 1} more snapshots" if item.count > 1 else item.first
        said.append(Notice(name, f"{some}: {text}", limit.loud))
    return said


def flag_attributes() -> dict[str, Any]:
    """The CF attributes of the coordinate with the flags."""
    return {
        "long_name": "the prediction extrapolates beyond the training fires",
        "flag_masks": np.array(list(FLAGS.values()), dtype=np.int16),
        "flag_meanings": " ".join(FLAGS),
    }


def flag_meanings(flags: int) -> str:
    """The meanings of the bits that are set, such as "empty_prediction"; "no" if there are none."""
    return " ".join(name for name, bit in FLAGS.items() if flags & bit) or "no"


def snapshot_labels(like: xr.DataArray | xr.Dataset, lead: Sequence[Hashable]) -> list[str]:
    """A name for every row of fields with the sample dimensions `lead`, in C order."""
    sizes = {dim: like.sizes[dim] for dim in lead}
    count = math.prod(sizes.values())
    if "fire_id" not in like.coords or not set(like.fire_id.dims) <= set(lead):
        return [f"snapshot {row}" for row in range(count)]
    names = read_scalar(like.coords.to_dataset(), "fire_id", sizes).astype(str).tolist()
    if "hours" not in like.coords or not set(like.hours.dims) <= set(lead):
        return [f"fire {name}" for name in names]
    hours = read_scalar(like.coords.to_dataset(), "hours", sizes)
    return [f"fire {name} at {hour:.4g} h" for name, hour in zip(names, hours, strict=True)]
