"""What is asked of the smoke of many fires, and the predicted smoke of a block that answers it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.errors import PlumecastError
from plumecast.base.names import SMOKE, SNAPSHOT, is_smoke
from plumecast.base.values import setting
from plumecast.compute.arrays import Array, array_namespace, to_numpy
from plumecast.compute.dose import limited_by_later
from plumecast.data.layout import Field
from plumecast.data.split import field_digest
from plumecast.operators.family import Conditions
from plumecast.scores.field_statistics import MOST, QUANTILE_ERROR, scaled_by
from plumecast.scores.optical_depth import LOG_SMOKE
from plumecast.scores.quantities import DEFAULT, INTEGRATED, find_quantity, quantity_factors
from plumecast.scores.reading import AS_STORED, Reading
from plumecast.scores.sampling import check_coverage
from plumecast.surrogate.error_bars.calibration import Calibration, Expected, expected_smoke
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import footprint_level, settled_smoke

COVERAGE = 0.95
"""Share of intervals that contain the true value, unless another one is asked for."""

INDEPENDENT_HELP = (
    "Count every fire as an ignition of its own, also fires that begin within a cell of each other "
    "or have equal fields."
)
"""The help of --independent."""

CLUSTERS = ("ignition_id", "fire_id")
"""Coordinates that say which snapshots are not independent; the first one that is there counts."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Which statistics of many fires are made, beside means and exceedances, and of what.

    `quantiles` are shares of the snapshots, such as 0.5. Those of cells have a relative error of at
    most `quantile_error`. Intervals contain the true value with probability `coverage`. `final`
    keeps the last checkpoint of every fire. `precision` is that of the predictions: "float64", or
    "float32" for speed. Fires that begin within a cell of each other, or have equal fields, are one
    ignition, unless they are `independent`.
    """

    quantiles: Iterable[float] = setting(
        (), "Quantiles to compute, separated by commas, e.g. 0.05,0.95."
    )
    quantile_error: float = setting(
        QUANTILE_ERROR, "Largest relative error of a quantile of a cell."
    )
    coverage: float = setting(
        COVERAGE, "Probability with which an interval is to contain the true value."
    )
    final: bool = setting(False, "Use only the last checkpoint of every fire.")
    precision: str = setting("float64", "Arithmetic: float64, or float32 for speed.")
    independent: bool = setting(False, INDEPENDENT_HELP)

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantiles", tuple(map(float, self.quantiles)))
        wrong = [share for share in self.quantiles if not 0.0 < share < 1.0]
        if wrong:
            raise PlumecastError(f"quantile {wrong[0]:g} is not within (0, 1); 0.5 is the median")
        if not 1e-4 <= self.quantile_error <= 0.5:
            raise PlumecastError(
                f"a quantile error of {self.quantile_error:g} is not within 1e-4…0.5"
            )
        check_coverage(self.coverage)


MEANS = Statistics()
"""Means and exceedances of all snapshots."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the smoke of many fires that one surrogate predicts."""

    reading: Reading = AS_STORED
    statistics: Statistics = MEANS
    groups: int = MOST  # clusters of fires that are kept apart
    expected: Expected | None = None  # of a calibrated surrogate: what its smoke lets expect
    bars: Calibration | None = None  # of this surrogate, for the interval of one ignition
    drawn: bool = False  # whether plumecast has drawn the fires (`are_drawn`)

    @property
    def quantity(self) -> str:
        """The quantity of means, thresholds and quantiles."""
        return self.reading.quantity_or("sum")

    @property
    def joins_copies(self) -> bool:
        """Whether fires with equal fields are one ignition."""
        return not (self.drawn or self.statistics.independent)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Values of the quantity, in its unit."""
        return tuple(self.reading.thresholds)

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Shares of the snapshots."""
        return tuple(self.statistics.quantiles)

    @property
    def interval(self) -> float | None:
        """Stated hours between checkpoints."""
        return self.reading.interval

    @property
    def coverage(self) -> float:
        """Share of intervals that contain the true value."""
        return self.statistics.coverage


def request_of(
    surrogate: Surrogate,
    reading: Reading,
    statistics: Statistics,
    *,
    groups: int = MOST,
    corrected: bool = False,
) -> Request:
    """The request of a surrogate; its calibration counts unless true smoke has `corrected` it.

    Without a quantity it is the time mean; fields that are no smoke and record no interval stay as
    they are.
    """
    field = only_output(surrogate)
    summed = field.name in (SMOKE, LOG_SMOKE) or recorded_interval(field.attrs) is not None
    reading = replace(reading, quantity=reading.quantity_or(DEFAULT if summed else "sum"))
    expected = None
    if not corrected and surrogate.error_bars is not None and field.name != LOG_SMOKE:
        expected = expected_smoke(surrogate.error_bars, groups)
    bars = None if expected is None else surrogate.error_bars
    return Request(reading, statistics, groups, expected, bars)


def only_output(surrogate: Surrogate) -> Field:
    """The only output of a surrogate; raises if there are several."""
    if len(surrogate.outputs.fields) != 1:
        raise PlumecastError(
            "ensemble statistics need a surrogate with one output, this one has "
            f"{', '.join(surrogate.outputs.names)}; choose one: "
            f"surrogate.output('{surrogate.outputs.names[0]}')"
        )
    return surrogate.outputs.fields[0]


def column_smoke(surrogate: Surrogate, what: str) -> Surrogate:
    """The surrogate of `smoke` among its outputs; raises, saying what needs it, if it has none."""
    names = surrogate.outputs.names
    if SMOKE not in names:
        raise PlumecastError(
            f"{what} '{SMOKE}', but the surrogate predicts {', '.join(names)}; train one for "
            f"{SMOKE}"
        )
    return surrogate.output(SMOKE)


def nonnegative_smoke(surrogate: Surrogate, predicted: Array) -> Array:
    """Non-negative smoke, from its logarithm if the surrogate predicts that."""
    xp = array_namespace(predicted)
    clipped = xp.clip(predicted, 0.0, None)
    return xp.expm1(clipped) if surrogate.outputs.names == (LOG_SMOKE,) else clipped


def predicted_smoke(
    surrogate: Surrogate,
    quantity: str,
    rows: tuple[np.ndarray, Conditions],
    block: xr.Dataset,
    factors: np.ndarray | None,
) -> tuple[Array, Array, Array]:
    """The prediction, its non-negative smoke, and what a quantity is read from by the factors.

    The last is the integral of the smoke, if the surrogate predicts one and the quantity is one.
    `block` has the labels of the rows: the sums and doses of a fire never fall (`settled_smoke`,
    `limited_by_later`).
    """
    integrated = read_from(surrogate, quantity)
    if integrated is not surrogate:
        rows = rows[0], surrogate.prepared(*rows)
    predicted = surrogate.predict_rows(*rows)
    smoke, integrals = nonnegative_smoke(surrogate, predicted), None
    if integrated is not surrogate:
        integrals = nonnegative_smoke(surrogate, integrated.predict_rows(*rows))
    labels = [block[name].values for name in ("fire_id", "hours") if name in block.variables]
    if len(labels) < 2 or labels[0].shape != labels[1].shape:
        return predicted, smoke, smoke if integrals is None else integrals
    fires, hours = labels[0].astype(str), labels[1].astype(np.float64)
    smoke = settled_sums(surrogate, smoke, fires, hours)
    read = smoke if integrals is None else integrals
    if factors is not None:
        read = limited(read, quantity, fires, hours, factors)
    return predicted, smoke, read


def settled_sums(surrogate: Surrogate, smoke: Array, fires: np.ndarray, hours: np.ndarray) -> Array:
    """Sums (M, N) of the only output, so that they never fall within a fire (`settled_smoke`).

    Fields that are no smoke, and integrals, stay as they are.
    """
    field = only_output(surrogate)
    if not is_smoke(field.name, field.attrs) or INTEGRATED in field.attrs:
        return smoke
    level = footprint_level(surrogate.record, surrogate.detects)
    return settled_smoke(smoke, fires, hours, level)


def limited(
    read: Array, quantity: str, fires: np.ndarray, hours: np.ndarray, factors: np.ndarray
) -> Array:
    """Values (M, N) of fires and hours (M,), so that what they are by the factors never falls.

    Of a time mean, this is its dose (`limited_by_later`).
    """
    if np.unique(fires).size == fires.size:
        return read
    to_dose = factors / find_quantity(quantity).factor(hours)
    to_dose = np.where(to_dose > 0.0, to_dose, 1.0)  # at ignition
    return scaled_by(limited_by_later(scaled_by(read, to_dose), fires, hours), 1.0 / to_dose)


def read_from(surrogate: Surrogate, quantity: str) -> Surrogate:
    """The surrogate whose predictions a quantity is read from: of sums, or of their integrals."""
    return surrogate.integrated() if find_quantity(quantity).needs_interval else surrogate


def block_factors(
    block: xr.Dataset, surrogate: Surrogate, quantity: str, interval: float | None
) -> np.ndarray | None:
    """(M,) factors from what `predicted_smoke` reads to a quantity; None for smoke as it is."""
    if not find_quantity(quantity).needs_interval:
        return None
    field = only_output(read_from(surrogate, quantity))
    smoke = xr.DataArray(0.0, attrs=field.attrs, name=field.name)
    return quantity_factors(block, smoke, quantity, interval)


def interval_ends(
    request: Request, read: Array, hours: np.ndarray | None, factors: np.ndarray | None
) -> np.ndarray:
    """(2, M, N) ends of the error bars of the quantity of snapshots; `read` is as predicted.

    The errors of the snapshots of one ignition are taken to be alike, so that the interval of a
    mean over them is the mean of the intervals.
    """
    assert request.bars is not None
    smoke = to_numpy(read)
    ends = np.stack(request.bars.interval(smoke, request.coverage, hours))
    return ends if factors is None else ends * factors[:, np.newaxis]


def copy_marks(block: xr.Dataset, fields: np.ndarray) -> np.ndarray:
    """(M,) marks that only fires with equal fields (M, N) share, at the last snapshot of each.

    Empty at other snapshots, where nothing burns, and of fires without names or hours.
    """
    marks = np.full(fields.shape[0], "", dtype="U64")
    if not {"fire_id", "hours"} <= set(block.variables):
        return marks
    fires = np.broadcast_to(block["fire_id"].values.astype(str), marks.shape)
    hours = np.broadcast_to(block["hours"].values.astype(np.float64), marks.shape)
    order = np.lexsort((hours, fires))
    last = order[np.append(fires[order][1:] != fires[order][:-1], True)]
    for row in last[(fields[last] != 0.0).any(axis=1)]:
        marks[row] = f"{hours[row]:.6g} {field_digest(fields[row])}"
    return marks


def are_drawn(fires: object) -> bool:
    """Whether plumecast has drawn the fires: their ignitions are then independent."""
    return hasattr(fires, "plans")


def cluster_names(block: xr.Dataset, independent: bool = False) -> np.ndarray | None:
    """(M,) names of the ignitions of snapshots, or of their fires; None if they have no names."""
    for name in CLUSTERS[1:] if independent else CLUSTERS:
        if name in block.variables:
            return np.broadcast_to(block[name].values.astype(str), (block.sizes[SNAPSHOT],))
    return None
