"""How many snapshots of an ensemble lie beyond the training fires: counts that can be added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from plumecast.base.ignitions import one_ignition
from plumecast.base.names import SIMULATION
from plumecast.compute.arrays import Array
from plumecast.data.layout import leading_dims
from plumecast.data.training import provenance
from plumecast.operators.family import Conditions
from plumecast.surrogate.guards import (
    EXTRAPOLATES,
    FLAGS,
    Checked,
    Excess,
    Notice,
    limits,
    measure_rows,
    notices,
    output_measures,
    snapshot_labels,
)
from plumecast.surrogate.ranges import stated_measures
from plumecast.surrogate.surrogate import Surrogate

GROUP = "ignition_id"


def is_same_simulation(surrogate: Surrogate, snapshots: xr.Dataset) -> bool:
    """False if simulated fires differ in their settings: equal names are then other fires.

    Fires that were taken in after the fit count too.
    """
    simulation, training = provenance(snapshots).get(SIMULATION), surrogate.training
    later = [item[SIMULATION] for item in training.get("updates", ()) if SIMULATION in item]
    return simulation in [training.get(SIMULATION), *later]


@dataclass
class FlagCounts:
    """How many predicted snapshots have the flag `extrapolates`, in all and by reason."""

    snapshots: int = 0
    beyond: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def counted(self, blocks: Iterable[xr.Dataset]) -> Iterator[xr.Dataset]:
        """The same blocks, counted as they pass."""
        for block in blocks:
            flags = block[EXTRAPOLATES].values
            self.snapshots += flags.size
            self.beyond += int(np.count_nonzero(flags))
            self.reasons.update({n: int((flags & bit > 0).sum()) for n, bit in FLAGS.items()})
            yield block

    def text(self, promise: bool) -> str | None:
        """One line, if any snapshot is flagged; with `promise`, what this means for error bars."""
        if not self.beyond:
            return None
        which = "all" if self.beyond == self.snapshots else f"{self.beyond} of"
        reasons = ", ".join(f"{name} {n}" for name, n in self.reasons.most_common() if n)
        text = f"{which} {self.snapshots} snapshots lie beyond the training fires ({reasons})"
        return f"{text}: error bars promise nothing for these" if promise else text


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """Snapshots of some fires that lie beyond training, in all and by measure."""

    warned: int = 0  # snapshots with an excess to warn of
    noted: int = 0  # snapshots with any excess
    excesses: Mapping[str, Excess] = field(default_factory=dict)
    trained: frozenset[str] = frozenset()  # ignitions that the surrogate was trained on

    def __add__(self, other: Extrapolation) -> Extrapolation:
        both = dict(self.excesses)
        for name, item in other.excesses.items():
            both[name] = both[name] + item if name in both else item
        counts = self.warned + other.warned, self.noted + other.noted
        return Extrapolation(*counts, both, self.trained | other.trained)

    def notices(self, surrogate: Surrogate, snapshots: int) -> list[Notice]:
        """What is to be said of the whole ensemble."""
        bars = "corrected values and intervals" if surrogate.error_bars is not None else None
        both = (self.notice(surrogate, snapshots), trained_notice(self.trained, bars))
        return [item for item in both if item is not None]

    def notice(self, surrogate: Surrogate, snapshots: int) -> Notice | None:
        """One notice for the whole ensemble: the most frequent excess, and counts of the others.

        None if no snapshot lies beyond training.
        """
        bounds = limits(surrogate)
        loud = self.warned > 0
        chosen = {name: item for name, item in self.excesses.items() if bounds[name].loud == loud}
        if not chosen:
            return None
        first, *others = sorted(chosen, key=lambda name: -chosen[name].count)
        text = (
            f"{self.warned if loud else self.noted} of {snapshots} snapshots lie beyond the "
            f"training fires: {notices({first: chosen[first]}, bounds)[0].text}"
        )
        if others:
            more = (f"{bounds[name].flag} ({chosen[name].count})" for name in others)
            text += f"; also {', '.join(more)}"
        return Notice(first, text, loud)


def extrapolation_of(
    surrogate: Surrogate,
    fires: xr.Dataset,
    rows: tuple[np.ndarray, Conditions],
    predicted: Array | None,
) -> Extrapolation:
    """What the guards say of one block of fires; fields that were not decoded are None.

    `rows` are the inputs and conditions of the block, `predicted` (M, Ñ) is on any device.
    """
    inputs, conditions = rows
    like = fires[surrogate.inputs.fields[0].name]
    lead = leading_dims(like, surrogate.inputs.fields[0])
    measured = stated_measures(surrogate.training.get("ranges", {}), fires, like, lead)
    made = {} if predicted is None else output_measures(surrogate, predicted)
    measures = measure_rows(surrogate, inputs, conditions, made, measured)
    checked, bounds = Checked(measures, snapshot_labels(like, lead)), limits(surrogate)
    flags = checked.flags(bounds).astype(int)
    loud = sum({FLAGS[limit.flag] for limit in bounds.values() if limit.loud})
    return Extrapolation(
        int(np.count_nonzero(flags & loud)),
        int(np.count_nonzero(flags)),
        checked.excesses(bounds),
        trained_ignitions(surrogate, fires),
    )


def trained_notice(trained: Collection[str], only_new: str | None = None) -> Notice | None:
    """A notice that fires were in training; `only_new` names what holds for new fires alone."""
    if not trained:
        return None
    text = (
        f"{len(trained)} of the ignitions are those of training, where the surrogate errs less "
        "than for new fires"
    )
    return Notice(GROUP, f"{text}: {only_new} are for new ones" if only_new else text, False)


def copies_notice(
    names: Collection[str], copies: Collection[tuple[str, str]], *, grouped: bool = False
) -> Notice | None:
    """A notice that ignitions with other names have equal fields (`one_ignition`)."""
    before, after = (len(set(one_ignition(names, part).values())) for part in ((), copies))
    if after == before:
        return None
    text = (
        f"{before - after} of {before} ignitions have the same fields as others under another name "
        "and count as one with these; remove the copies, or, if all fires are independent, give "
        "--independent (independent=True)"
    )
    if grouped:
        text += "; of so many fires the intervals still count copies as independent: remove them"
    return Notice(GROUP, text, True)


def trained_ignitions(surrogate: Surrogate, fires: xr.Dataset) -> frozenset[str]:
    """Ignitions of some fires that the surrogate was trained on."""
    if GROUP not in fires.variables or not is_same_simulation(surrogate, fires):
        return frozenset()
    ignitions = set(np.ravel(fires[GROUP].values).astype(str).tolist())
    return frozenset(ignitions & set(surrogate.training.get(GROUP, ())))
