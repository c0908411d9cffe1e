"""The dose D(t) = ∫₀ᵗ c dt of a column mean c that is known at frames, by the trapezoid rule.

A snapshot stores the sum g = Σ w c over the frames up to its hour, Δ hours apart. Frames count
equally, w = 1, as in the paper. Where the hours between frames differ, Δ is their median and each
frame has the weight w = (hours since the frame before) / Δ, so that Δ g is an integral over time in
either case. Arrays only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plumecast.base.errors import PlumecastError
from plumecast.compute.arrays import Array, array_namespace, take_rows


def running_dose(hours: Sequence[float], totals: Sequence[float]) -> list[float]:
    """∫ c dt from ignition to each of the rising hours, by the trapezoid rule, c = 0 at ignition.

    >>> running_dose([1.0, 3.0], [2.0, 4.0])
    [1.0, 7.0]
    """
    doses, time, before = [0.0], 0.0, 0.0
    for hour, now in zip(hours, totals, strict=True):
        doses.append(doses[-1] + 0.5 * (before + now) * (hour - time))
        time, before = hour, now
    return doses[1:]


def dose_error(hours: Sequence[float], totals: Sequence[float]) -> float:
    """Relative error of the last running dose: its difference to that of every second frame.

    The trapezoid rule of smooth smoke has a third of it; smoke that begins suddenly has it whole.

    >>> dose_error([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
    0.0
    """
    whole = running_dose(hours, totals)
    if not whole or whole[-1] <= 0.0:
        return 0.0
    half = running_dose(hours[::-1][::2][::-1], totals[::-1][::2][::-1])
    return abs(whole[-1] - half[-1]) / whole[-1]


def even_factor(hours: np.ndarray, interval: float) -> np.ndarray:
    """ρ of a column mean that grows evenly since ignition."""
    frames = hours / interval
    even: np.ndarray = np.where(frames < 1.0, 0.5 * frames, frames / (frames + 1.0))
    return even


def stored_dose(
    sums: np.ndarray,
    fire: np.ndarray,
    hours: np.ndarray,
    interval: float,
    scale: np.ndarray | None = None,
) -> np.ndarray:
    """(M, …) sums over frames → (M, …) doses, µg m⁻³ h, by the trapezoid rule from ignition.

    The newest frame of a snapshot is the growth of the sum since the snapshot before, divided by
    the frames in between. The first frame may be less than Δ after ignition. Where earlier
    snapshots are missing, the column mean is taken to grow evenly (`even_factor`). `scale` (M,) is
    the coordinate `dose_scale`, which knows the frames between the snapshots.
    """
    before = previous_snapshot(fire, hours)
    first = np.where(before < 0, np.arange(before.size), before)  # snapshot of the fire
    while (before[first] >= 0).any():
        first = np.where(before[first] < 0, first, before[first])
    shape = (-1,) + (1,) * (sums.ndim - 1)
    gap = hours_since_previous(fire, hours)
    frames = np.maximum(np.round(gap / interval), 1.0)
    newest = np.maximum(sums - sums[before], 0.0)
    newest = newest / np.where(np.isfinite(frames), frames, 1.0).reshape(shape)
    started = hours[first] <= 1.05 * interval  # whether the first frame is that of a snapshot
    early = np.where(started, np.maximum(interval - hours[first], 0.0), 0.0)
    made = interval * (sums - 0.5 * newest) - 0.5 * early.reshape(shape) * sums[first]
    alone = (interval * even_factor(hours, interval)).reshape(shape) * sums
    # Snapshots closer than the frames, of predictions without a table, do not tell the newest one.
    made = np.where(((before < 0) | (gap < 0.9 * interval)).reshape(shape), alone, made)
    made = np.maximum(made, 0.0)
    return np.asarray(made if scale is None else made * scale.reshape(shape))


def hours_since_previous(fire: np.ndarray, hours: np.ndarray) -> np.ndarray:
    """(M,) hours since the snapshot of the same fire before each one; infinite for the first.

    Raises if a fire has two snapshots at one hour: two fires may have one name.
    """
    before = previous_snapshot(fire, hours)
    gap = np.where(before < 0, np.inf, hours - hours[before])
    if (gap <= 0.0).any():
        row = int(np.argmax(gap <= 0.0))
        raise PlumecastError(
            f"fire {fire[row]}: two snapshots at {hours[row]:g} h; every hour may occur once"
        )
    return gap


def limited_by_later(values: Array, fire: np.ndarray, hours: np.ndarray) -> Array:
    """(M, …) predicted doses → the smallest of a fire from each of its snapshots on.

    Doses never fall. A prediction for a later hour knows more of the fire, so that it limits those
    before; the last one does not depend on which other hours are there.

    >>> doses = np.array([[5.0], [3.0], [4.0]])
    >>> limited_by_later(doses, np.array(["a"] * 3), np.array([1.0, 2.0, 3.0])).ravel().tolist()
    [3.0, 3.0, 4.0]
    """
    hours_since_previous(fire, hours)
    xp = array_namespace(values)
    order = np.lexsort((hours, fire))
    names, member, counts = np.unique(fire[order], return_inverse=True, return_counts=True)
    most = int(counts.max(initial=1))
    if most == 1:
        return values
    end = np.cumsum(counts)
    place = np.arange(order.size) - (end - counts)[member]
    table = order[np.minimum((end - counts)[:, None] + np.arange(most), (end - 1)[:, None])]
    parts = [take_rows(values, table[:, number]) for number in range(most)]
    for number in range(most - 2, -1, -1):
        parts[number] = xp.minimum(parts[number], parts[number + 1])
    rows = np.empty(order.size, dtype=np.int64)
    rows[order] = place * names.size + member
    return take_rows(xp.concat(parts, axis=0), rows)


def largest_so_far(values: Array, fire: np.ndarray, hours: np.ndarray) -> Array:
    """(M, …) running maximum over the snapshots of each fire in the order of their hours."""
    hours_since_previous(fire, hours)
    return -limited_by_later(-values, fire, -hours)


LEAST_HOURS = 1e-3
"""Hours at least that a mean in time is taken over; there is no smoke at ignition."""


def growth_rates(doses: np.ndarray, fire: np.ndarray, hours: np.ndarray) -> np.ndarray:
    """(M, …) growth of doses per hour since the snapshot of the fire before, or since ignition."""
    before = previous_snapshot(fire, hours)
    first, shape = before < 0, (-1,) + (1,) * (doses.ndim - 1)
    gap = np.where(first, np.maximum(hours, LEAST_HOURS), hours_since_previous(fire, hours))
    grown = doses - np.where(first.reshape(shape), 0.0, doses[before])
    rates: np.ndarray = np.maximum(grown, 0.0) / gap.reshape(shape)
    return rates


def previous_snapshot(fire: np.ndarray, hours: np.ndarray) -> np.ndarray:
    """(M,) row of the snapshot of the same fire before each one; −1 for the first of a fire.

    >>> previous_snapshot(np.array(["a", "b", "a"]), np.array([12.0, 6.0, 6.0]))
    array([ 2, -1, -1])
    """
    order = np.lexsort((hours, fire))
    before = np.full(fire.size, -1, dtype=np.int64)
    same = fire[order[1:]] == fire[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return before
