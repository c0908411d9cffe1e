"""Checks that a WRF-Fire run is fit for training.

Arrival times must not change, smoke must grow with the fire and stay in the domain, and no frame
may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plumecast.base.integrity import Finding
from plumecast.compute.arrays import Array

SMOKE_SCHEME = "fire_smk_scheme"
"""Attribute: the smoke scheme of a run, which sets the heights that its fire releases smoke at."""

ARRIVAL_TOLERANCE = 60.0
"""Largest change of a burned cell's arrival time between frames, s."""

EDGE_SHARE = 0.01
"""The plume is at the boundary if a boundary column exceeds this share of the largest column."""

_STEP_TOLERANCE = 0.01  # relative to the step; adaptive time steps write frames seconds late
_MIN_SMOKE_GROWTH = 0.1  # of smoke mass, relative to the growth of the burned area
_MIN_FIRE_GROWTH = 1.2  # factor by which burned area must grow for the check of the smoke
_ONE_COLUMN_RELEASES = ((4, 6, 0), (4, 7, 1))  # first and last WRF that emit from one column only


@dataclass(frozen=True, slots=True)
class FrameSummary:
    """Numbers of one frame that the checks use."""

    seconds: float  # since the simulation's start
    burned_cells: int
    lost_cells: int  # burned in the previous frame, unburned in this one
    moved_cells: int  # burned in both, arrival changed by more than ARRIVAL_TOLERANCE
    smoke_mass: float  # airborne, kg
    peak: float  # largest column mean, µg m⁻³
    edge_share: float  # largest column mean on the boundary / peak, 0 without smoke
    lowest: float = 0.0  # smallest and largest value of the smoke variable, in its unit
    highest: float = 0.0
    depth: float = 0.0  # of the columns, mean over the domain, m


def edge_share(column: Array) -> float:
    """Largest boundary value / largest value of a field (ny, nx) ≥ 0; 0 without smoke."""
    peak = float(column.max())
    ring = max(float(side.max()) for side in (column[0], column[-1], column[:, 0], column[:, -1]))
    return ring / peak if peak > 0 else 0.0


def non_monotone_arrival(frames: Sequence[FrameSummary]) -> list[Finding]:
    """A burned cell stays burned and keeps its arrival time."""
    found = []
    for name, counts in (
        ("burned cells become unburned", [frame.lost_cells for frame in frames]),
        ("burned cells change their arrival time", [frame.moved_cells for frame in frames]),
    ):
        if any(counts):
            first = _hours(frames[next(i for i, count in enumerate(counts) if count)])
            found.append(Finding("non-monotone arrival", f"{sum(counts)} {name}, first at {first}"))
    return found


def smoke_before_fire(frames: Sequence[FrameSummary], floor: float) -> list[Finding]:
    """No column may exceed `floor` µg m⁻³ before the first cell burns."""
    early = [frame for frame in frames if frame.burned_cells == 0 and frame.peak > floor]
    if not early:
        return []
    peak = max(frame.peak for frame in early)
    return [
        Finding("smoke before fire", f"{peak:.3g} µg m⁻³ at {_hours(early[0])}, no cell burned yet")
    ]


def smoke_not_following_fire(
    frames: Sequence[FrameSummary], version: str | None = None
) -> list[Finding]:
    """Airborne smoke mass M grows with the burned area A until the plume leaves the domain.

    The check compares the first burning frame with the last one before the plume reaches the
    boundary, if A has grown by at least a fifth: (M/M₀ − 1) ≥ 0.1 (A/A₀ − 1). A fire without any
    smoke fails too. If the frames do not allow the comparison, a WRF release that is known to emit
    from one column only is reported.
    """
    burning = [frame for frame in frames if frame.burned_cells > 0]
    name = "smoke does not follow fire"
    if burning and all(frame.smoke_mass <= 0 for frame in burning):
        message = f"{burning[-1].burned_cells} fire cells burn without any smoke"
        return [Finding("no smoke", message)]
    inside = _before_boundary(burning)
    if len(inside) >= 2:
        area = inside[-1].burned_cells / inside[0].burned_cells
        mass = inside[-1].smoke_mass / max(inside[0].smoke_mass, 1e-30)
        if area >= _MIN_FIRE_GROWTH:
            if mass - 1 >= _MIN_SMOKE_GROWTH * (area - 1):
                return []
            cause = "; WRF 4.6.0 to 4.7.1 emits fire_smoke from one column only"
            message = f"burned area grows {area:.1f}-fold, smoke mass {mass:.2f}-fold{cause}"
            return [Finding(name, message)]
    if _emits_from_one_column(version):
        message = f"not checked, but WRF {version} emits fire_smoke from one column only"
        return [Finding(name, message)]
    return []


def negative_smoke(frames: Sequence[FrameSummary]) -> list[Finding]:
    """Advection leaves small negative values; larger ones than the plume's are an error."""
    lowest = min((frame.lowest for frame in frames), default=0.0)
    highest = max((frame.highest for frame in frames), default=0.0)
    if lowest >= 0.0 or -lowest <= highest:
        return []
    message = f"values from {lowest:.3g} to {highest:.3g}; negative values were set to 0"
    return [Finding("negative smoke", message)]


def estimated_arrival(frames: Sequence[FrameSummary], has_arrival: bool) -> list[Finding]:
    """Without TIGN_G the ignition is known only to lie between two frames."""
    if has_arrival:
        return []
    first = next((i for i, frame in enumerate(frames) if frame.burned_cells), None)
    if first is None:
        return []
    between = f"the fire burns in the first frame, so hours count from {_hours(frames[0])}"
    if first:
        before, after = frames[first - 1], frames[first]
        between = (
            f"the ignition is between {_hours(before)} and {_hours(after)}, so hours may be off by "
            f"up to {(after.seconds - before.seconds) / 3600:.2g} h"
        )
    message = f"arrival times are estimated from LFN; {between}; write TIGN_G in later runs"
    return [Finding("no TIGN_G", message)]


def plume_at_boundary(frames: Sequence[FrameSummary], floor: float) -> list[Finding]:
    """Smoke on the boundary leaves the domain and is missing from later column means."""
    out = [frame for frame in frames if frame.edge_share > EDGE_SHARE and frame.peak > floor]
    if not out:
        return []
    worst = max(frame.edge_share for frame in out)
    message = f"from {_hours(out[0])} on, up to {worst:.0%} of the peak in the boundary columns"
    return [Finding("plume at boundary", message)]


def missing_frames(seconds: Sequence[float], step: float | None = None) -> list[Finding]:
    """Frames missing in gaps of several steps; `step` (s) defaults to the median spacing."""
    gaps, step = _gaps(seconds, step)
    lost = [round(gap / step) - 1 for gap in gaps]
    if not any(count > 0 for count in lost):
        return []
    where = next(i for i, count in enumerate(lost) if count > 0)
    message = (
        f"{sum(count for count in lost if count > 0)} at a step of {step / 3600:g} h, "
        f"first after {seconds[where] / 3600:g} h; the frame after a gap counts for it"
    )
    return [Finding("missing frames", message)]


def uneven_steps(seconds: Sequence[float], step: float | None = None) -> list[Finding]:
    """Spacings that are not a whole number of steps, to 1 %; `step` as in `missing_frames`."""
    gaps, step = _gaps(seconds, step)
    odd = [gap for gap in gaps if abs(gap / step - max(1, round(gap / step))) > _STEP_TOLERANCE]
    if not odd:
        return []
    message = f"{len(odd)} of {len(gaps)} differ from {step / 3600:g} h, e.g. {odd[0] / 3600:g} h"
    return [Finding("uneven time steps", message)]


def check_fire(
    frames: Sequence[FrameSummary],
    *,
    floor: float,
    step: float | None = None,
    version: str | None = None,
    has_arrival: bool = True,
) -> tuple[Finding, ...]:
    """Run every check on the frames of one fire, in time order; `step` is their spacing, s.

    `has_arrival` says whether the run has TIGN_G.
    """
    seconds = [frame.seconds for frame in frames]
    return (
        *estimated_arrival(frames, has_arrival),
        *non_monotone_arrival(frames),
        *negative_smoke(frames),
        *smoke_before_fire(frames, floor),
        *smoke_not_following_fire(frames, version),
        *plume_at_boundary(frames, floor),
        *missing_frames(seconds, step),
        *uneven_steps(seconds, step),
    )


def smoke_scheme(attributes: Mapping[str, Any]) -> int | None:
    """The smoke scheme that the attributes of a file state; None if they do not."""
    found = {key.lower(): value for key, value in attributes.items()}.get(SMOKE_SCHEME)
    return None if found is None else int(found)


def wrf_version(title: str) -> str | None:
    """WRF release from the attribute TITLE: " OUTPUT FROM WRF V4.3.3 MODEL" → "4.3.3"."""
    found = re.search(r"V(\d+(?:\.\d+)+)", title)
    return found.group(1) if found else None


def _emits_from_one_column(version: str | None) -> bool:
    if version is None:
        return False
    parts = [int(part) for part in version.split(".")][:3]
    release = tuple(parts + [0] * (3 - len(parts)))
    return _ONE_COLUMN_RELEASES[0] <= release <= _ONE_COLUMN_RELEASES[1]


def _before_boundary(frames: Sequence[FrameSummary]) -> list[FrameSummary]:
    """The frames before the plume first reaches the boundary."""
    inside = []
    for frame in frames:
        if frame.edge_share > EDGE_SHARE:
            break
        inside.append(frame)
    return inside


def _gaps(seconds: Sequence[float], step: float | None) -> tuple[list[float], float]:
    """Spacings of the frames and the step to compare them with, both in s."""
    gaps = np.diff(np.asarray(seconds, dtype=float))
    return gaps.tolist(), step or float(np.median(gaps)) if gaps.size else 1.0


def _hours(frame: FrameSummary) -> str:
    return f"{frame.seconds / 3600:g} h"
