"""What two scenarios must have in common, and what a reader of their difference must know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import DATA_VERSION
from plumecast.data.layout import GRID_TOLERANCE, grid_template
from plumecast.data.writers import describe_grid
from plumecast.impact.scenarios.matching import Pairs, match
from plumecast.impact.scenarios.samples import CONTENT, grid_of
from plumecast.surrogate.surrogate import Surrogate
from plumecast.workflows.fires.reduce import FireSource
from plumecast.workflows.statistics.place_samples import PlaceSamples

LONGER = 0.01
"""Relative difference of the hours of two scenarios above which a note is given: the smoke of
longer fires cannot be compared with that of shorter ones."""

ERROR_BAR = 0.9
"""Coverage of the error bar that a note states."""


def refuse_same_store(sources: Mapping[str, xr.Dataset | FireSource]) -> None:
    """Raise if two scenarios are the same fires of the same version of a store."""
    seen: dict[tuple[str, tuple[str, ...]], str] = {}
    for name, source in sources.items():
        if isinstance(source, FireSource) or DATA_VERSION not in source.attrs:
            continue
        key = str(source.attrs[DATA_VERSION]), tuple(source.fire_id.values.astype(str))
        if key in seen:
            raise PlumecastError(
                f"scenarios '{seen[key]}' and '{name}' are the same store, or copies of it; give "
                "two different ones"
            )
        seen[key] = name


def common_grid(
    sources: Mapping[str, xr.Dataset | FireSource], surrogate: Surrogate | None
) -> xr.Dataset:
    """The smoke grid of all scenarios."""
    if surrogate is not None:
        return grid_template(surrogate.outputs.fields[0])
    first, *others = sources
    grid = grid_of(sources[first])
    for name in others:
        other = grid_of(sources[name])
        if not all(_same_axis(grid, other, axis) for axis in ("y", "x")):
            raise PlumecastError(
                f"scenarios '{first}' and '{name}' are on different grids: {describe_grid(grid)}, "
                f"and {describe_grid(other)}; bring them to one grid"
            )
    return grid


def _same_axis(one: xr.Dataset, two: xr.Dataset, axis: str) -> bool:
    if one.sizes.get(axis) != two.sizes.get(axis):
        return False
    known = [part[axis].values for part in (one, two) if axis in part.coords]
    if len(known) < 2:
        return True
    reach = GRID_TOLERANCE * max(float(np.abs(known[0]).max()), 1.0)
    return bool(np.abs(known[0] - known[1]).max() <= reach)


def refuse_other_interval(samples: Mapping[str, PlaceSamples]) -> None:
    """Raise if sums over checkpoints have different intervals."""
    known = {name: part.interval for name, part in samples.items() if part.interval is not None}
    (first, hours), *others = known.items() or [("", None)]
    for name, other in others:
        if other != hours:
            raise PlumecastError(
                f"quantity='sum' is summed over checkpoints {hours:g} h apart in '{first}' and "
                f"{other:g} h apart in '{name}'; compare the time mean, quantity='mean'"
            )


def refuse_identical(one: PlaceSamples, two: PlaceSamples, names: tuple[str, str]) -> None:
    """Raise if all fires of two scenarios are identical."""
    if np.array_equal(np.sort(one.labels[CONTENT]), np.sort(two.labels[CONTENT])):
        raise PlumecastError(
            f"all {one.fires.size} fires of '{names[0]}' and '{names[1]}' are identical, fire and "
            "smoke: there is nothing to compare; give other fires, or a change that they reach"
        )


def pair_notes(
    pairs: Pairs | None, one: PlaceSamples, two: PlaceSamples, names: tuple[str, str]
) -> list[str]:
    """Notes on the durations of two scenarios, and on fires that are left out of the pairs."""
    found = []
    if pairs is not None:
        unused = [int((part < 0).sum()) for part in (pairs.first, pairs.second)]
        if any(unused):
            found.append(
                f"{pairs.ignitions.size} pairs of {pairs.shared} common ignitions are compared; "
                f"{unused[0]} fires of '{names[0]}' and {unused[1]} of '{names[1]}' have no "
                "partner and are left out"
            )
        if pairs.moved:
            found.append(
                f"{pairs.moved} names occur in '{names[0]}' and '{names[1]}', but begin at other "
                "places: they are not counted as the same ignition"
            )
    hours = [float(np.mean(part.hours)) for part in (one, two)]
    if abs(hours[1] - hours[0]) > LONGER * hours[0]:
        found.append(
            f"the fires of '{names[0]}' last {hours[0]:.3g} h and those of '{names[1]}' "
            f"{hours[1]:.3g} h in the mean: the difference contains that of the durations"
        )
    elif pairs is not None:
        first, second = pairs.means(one.hours[:, None], two.hours[:, None])
        other = int((np.abs(second - first) > LONGER * first).sum())
        if other:
            found.append(
                f"{other} of {first.size} pairs do not last equally long: their "
                "difference contains that of the durations; --hours gives a common one"
            )
    return found


def why_unpaired(one: PlaceSamples, two: PlaceSamples, columns: int, names: tuple[str, str]) -> str:
    """What scenarios that are not paired have in common."""
    pairs = match(one, two, columns)
    text = (
        f"'{names[0]}' and '{names[1]}' share {pairs.shared} ignitions and are compared as "
        "independent fires; with the same ignitions in both, far fewer fires are needed"
    )
    if pairs.moved:
        text += f" ({pairs.moved} have the same name but begin at other places)"
    return text


def rough_note(table: xr.Dataset) -> list[str]:
    """A note that names the places whose intervals are too short for their skewed differences."""
    names = [str(name) for name in table["place"].values[table["rough"].values.any(axis=0)]]
    if not names:
        return []
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return [
        f"a few fires make most of the difference at {shown}: intervals there are too short; add "
        "fires"
    ]


def error_note(surrogate: Surrogate, samples: Sequence[PlaceSamples]) -> list[str]:
    """A note on the size of the surrogate's error at the mean of the predicted smoke."""
    values = np.concatenate([part.values[part.values > 0.0] for part in samples])
    if surrogate.error_bars is None:
        return ["this surrogate has no error bars; `plumecast train STORE --all` makes them"]
    if values.size == 0:
        return []
    mean = values.mean()
    lower, upper = surrogate.error_bars.interval(np.array([mean]), ERROR_BAR)
    return [
        "the surrogate's error for one fire in one cell: where it predicts the mean of its smoky "
        f"cells, {100 * ERROR_BAR:g} % of the true values are {lower[0] / mean:.2g} to "
        f"{upper[0] / mean:.2g} times the prediction, for fires like those of training"
    ]
