"""Checks that a WRF-Fire run is fit for training.

Arrival times must not change, smoke must grow with the fire and stay in the domain, and no frame
may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
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

    @property
    def hours(self) -> str:
        """The time in hours, as text."""
        return f"{self.seconds / 3600:g} h"


def edge_share(column: Array) -> float:
    """Largest boundary value / largest value of a field (ny, nx) ≥ 0; 0 without smoke."""
    peak = float(column.max())
    ring = max(float(side.max()) for side in (column[0], column[-1], column[:, 0], column[:, -1]))
    return ring / peak if peak > 0 else 0.0


def check_fire(
    frames: Sequence[FrameSummary],
    *,
    floor: float,
    step: float | None = None,
    version: str | None = None,
    has_arrival: bool = True,
) -> tuple[Finding, ...]:
    """Run every check on the frames of one fire, in time order.

    `floor` is the least smoke that counts, µg m⁻³; `step` the spacing of the frames, s, by default
    its median; `version` that of WRF. `has_arrival` says whether the run has TIGN_G.
    """
    return (
        *(() if has_arrival else _estimated_arrival(frames)),
        *_changed_arrival(frames),
        *_negative_smoke(frames),
        *_smoke_before_fire(frames, floor),
        *_smoke_not_following_fire(frames, version),
        *_plume_at_boundary(frames, floor),
        *_steps(frames, step),
    )


def _estimated_arrival(frames: Sequence[FrameSummary]) -> Iterator[Finding]:
    """Without TIGN_G the ignition is known only to lie between two frames."""
    first = next((i for i, frame in enumerate(frames) if frame.burned_cells), None)
    if first is None:
        return
    between = f"the fire burns in the first frame, so hours count from {frames[0].hours}"
    if first:
        before, after = frames[first - 1], frames[first]
        between = (
            f"the ignition is between {before.hours} and {after.hours}, so hours may be off by "
            f"up to {(after.seconds - before.seconds) / 3600:.2g} h"
        )
    text = f"arrival times are estimated from LFN; {between}; write TIGN_G in later runs"
    yield Finding("no TIGN_G", text)


def check_clock(burned_cells: int) -> Finding:
    """TIGN_G was constant, so that it is no arrival time, and LFN was read alone."""
    text = (
        f"TIGN_G is the same in all {burned_cells} burned cells of the last frame, so it is no "
        "arrival time and was not used"
    )
    return Finding("constant TIGN_G", text)


def check_projection(attributes: Mapping[str, Any], *, has_plane: bool) -> tuple[Finding, ...]:
    """Whether the map projection of a real domain has a plane in metres."""
    if has_plane:
        return ()
    text = (
        f"MAP_PROJ = {attributes.get('MAP_PROJ')} has no plane in metres: x and y count from the "
        "south-west corner of the domain and there is no CRS; lat and lon are those of the run"
    )
    return (Finding("no map plane", text),)


def _changed_arrival(frames: Sequence[FrameSummary]) -> Iterator[Finding]:
    """A burned cell stays burned and keeps its arrival time."""
    for field, change in (
        ("lost_cells", "burned cells become unburned"),
        ("moved_cells", "burned cells change their arrival time"),
    ):
        counts = [getattr(frame, field) for frame in frames]
        if any(counts):
            first = frames[next(i for i, count in enumerate(counts) if count)].hours
            yield Finding("non-monotone arrival", f"{sum(counts)} {change}, first at {first}")


def _negative_smoke(frames: Sequence[FrameSummary]) -> Iterator[Finding]:
    """Advection leaves small negative values; larger ones than the plume's are an error."""
    lowest = min((frame.lowest for frame in frames), default=0.0)
    highest = max((frame.highest for frame in frames), default=0.0)
    if lowest < 0.0 and -lowest > highest:
        text = f"values from {lowest:.3g} to {highest:.3g}; negative values were set to 0"
        yield Finding("negative smoke", text)


def _smoke_before_fire(frames: Sequence[FrameSummary], floor: float) -> Iterator[Finding]:
    """No column may exceed `floor` µg m⁻³ before the first cell burns."""
    early = [frame for frame in frames if frame.burned_cells == 0 and frame.peak > floor]
    if early:
        peak = max(frame.peak for frame in early)
        text = f"{peak:.3g} µg m⁻³ at {early[0].hours}, no cell burned yet"
        yield Finding("smoke before fire", text)


def _smoke_not_following_fire(
    frames: Sequence[FrameSummary], version: str | None
) -> Iterator[Finding]:
    """Airborne smoke mass M grows with the burned area A until the plume leaves the domain.

    The check compares the first burning frame with the last one before the plume reaches the
    boundary, if A has grown by at least a fifth: (M/M₀ − 1) ≥ 0.1 (A/A₀ − 1). A fire without any
    smoke fails too. If the frames do not allow the comparison, a WRF release that is known to emit
    from one column only is reported.
    """
    burning = [frame for frame in frames if frame.burned_cells > 0]
    name = "smoke does not follow fire"
    if burning and all(frame.smoke_mass <= 0 for frame in burning):
        yield Finding("no smoke", f"{burning[-1].burned_cells} fire cells burn without any smoke")
        return
    inside = list(takewhile(lambda frame: frame.edge_share <= EDGE_SHARE, burning))
    if len(inside) >= 2:
        area = inside[-1].burned_cells / inside[0].burned_cells
        mass = inside[-1].smoke_mass / max(inside[0].smoke_mass, 1e-30)
        if area >= _MIN_FIRE_GROWTH:
            if mass - 1 < _MIN_SMOKE_GROWTH * (area - 1):
                yield Finding(
                    name,
                    f"burned area grows {area:.1f}-fold, smoke mass {mass:.2f}-fold; "
                    "WRF 4.6.0 to 4.7.1 emits fire_smoke from one column only",
                )
            return
    release = [int(part) for part in (version or "0").split(".")][:3]
    release += [0] * (3 - len(release))
    if _ONE_COLUMN_RELEASES[0] <= tuple(release) <= _ONE_COLUMN_RELEASES[1]:
        text = f"not checked, but WRF {version} emits fire_smoke from one column only"
        yield Finding(name, text)


def _plume_at_boundary(frames: Sequence[FrameSummary], floor: float) -> Iterator[Finding]:
    """Smoke on the boundary leaves the domain and is missing from later column means."""
    out = [frame for frame in frames if frame.edge_share > EDGE_SHARE and frame.peak > floor]
    if out:
        worst = max(frame.edge_share for frame in out)
        text = f"from {out[0].hours} on, up to {worst:.0%} of the peak in the boundary columns"
        yield Finding("plume at boundary", text)


def _steps(frames: Sequence[FrameSummary], step: float | None) -> Iterator[Finding]:
    """Frames that are missing, and spacings that are not a whole number of steps, to 1 %."""
    gaps = np.diff(np.array([frame.seconds for frame in frames]))
    if not gaps.size:
        return
    step = step or float(np.median(gaps))
    steps = gaps / step
    lost = np.maximum(np.round(steps) - 1.0, 0.0).astype(int)
    if lost.any():
        where = frames[int(np.flatnonzero(lost)[0])]
        text = f"{lost.sum()} at a step of {step / 3600:g} h, first after {where.hours}"
        yield Finding("missing frames", f"{text}; the frame after a gap counts for it")
    odd = gaps[abs(steps - np.maximum(1.0, np.round(steps))) > _STEP_TOLERANCE]
    if odd.size:
        text = f"{odd.size} of {gaps.size} differ from {step / 3600:g} h, e.g. {odd[0] / 3600:g} h"
        yield Finding("uneven time steps", text)


def smoke_scheme(attributes: Mapping[str, Any]) -> int | None:
    """The smoke scheme that the attributes of a file state; None if they do not."""
    scheme = {key.lower(): value for key, value in attributes.items()}.get(SMOKE_SCHEME)
    return None if scheme is None else int(scheme)


def wrf_version(title: str) -> str | None:
    """WRF release from the attribute TITLE: " OUTPUT FROM WRF V4.3.3 MODEL" → "4.3.3"."""
    version = re.search(r"V(\d+(?:\.\d+)+)", title)
    return version[1] if version else None
