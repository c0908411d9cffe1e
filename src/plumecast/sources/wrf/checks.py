"""Can a fire be learned from? Arrival times that stay, smoke that follows the fire, no gaps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plumecast.compute.arrays import Array

MOVED_SECONDS = 60.0
"""A burned cell whose arrival time changes by more than this between frames has moved, s."""

EDGE_SHARE = 0.01
"""The plume is at the boundary when the outermost ring holds this share of the column's peak."""

_UNEVEN = 0.01  # share of the step; adaptive time steps put frames a few seconds late
_FOLLOWS = 0.1  # smoke mass grows by at least this share of the burned area's relative growth
_GROWN = 1.2  # burned area must grow by this factor before its smoke is judged
_DEFECTIVE = ((4, 6, 0), (4, 7, 1))  # first and last WRF release with the one-column emission


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about a fire before learning from it."""

    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


@dataclass(frozen=True, slots=True)
class FrameSummary:
    """What the checks need from one frame."""

    seconds: float  # since the simulation's start
    burned_cells: int
    lost_cells: int  # burned in the frame before, unburned now
    moved_cells: int  # burned in both, arrival changed by more than MOVED_SECONDS
    smoke_mass: float  # airborne, kg
    peak: float  # largest column mean, µg m⁻³
    edge_share: float  # largest column mean on the outermost ring / peak, 0 without smoke


def edge_share(column: Array) -> float:
    """max over the outermost ring / max over all, (ny, nx) ≥ 0; 0 where there is no smoke."""
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
    """No column holds more than `floor` µg m⁻³ before the first cell burns."""
    early = [frame for frame in frames if frame.burned_cells == 0 and frame.peak > floor]
    if not early:
        return []
    peak = max(frame.peak for frame in early)
    return [
        Finding("smoke before fire", f"{peak:.3g} µg m⁻³ at {_hours(early[0])}, nothing burned yet")
    ]


def smoke_not_following_fire(
    frames: Sequence[FrameSummary], version: str | None = None
) -> list[Finding]:
    """Airborne smoke mass M grows with the burned area A until the plume leaves the domain.

    Judged between the first burning frame and the last before the plume is at the boundary, where
    A grew by at least a fifth: (M/M₀ − 1) ≥ 0.1 (A/A₀ − 1). A fire without any smoke fails too.
    Where that gives no verdict, a WRF release known to emit from one column only is reported.
    """
    burning = [frame for frame in frames if frame.burned_cells > 0]
    name = "smoke does not follow fire"
    if burning and all(frame.smoke_mass <= 0 for frame in burning):
        return [Finding(name, f"{burning[-1].burned_cells} fire cells burn without any smoke")]
    inside = _before_boundary(burning)
    if len(inside) >= 2:
        area = inside[-1].burned_cells / inside[0].burned_cells
        mass = inside[-1].smoke_mass / max(inside[0].smoke_mass, 1e-30)
        if area >= _GROWN:
            if mass - 1 >= _FOLLOWS * (area - 1):
                return []
            advice = "; WRF 4.6.0 to 4.7.1 emits fire_smoke from one column only"
            message = f"burned area grows {area:.1f}-fold, smoke mass {mass:.2f}-fold{advice}"
            return [Finding(name, message)]
    if _is_defective(version):
        return [Finding(name, f"not judged, and WRF {version} emits fire_smoke from one column")]
    return []


def plume_at_boundary(frames: Sequence[FrameSummary], floor: float) -> list[Finding]:
    """Smoke that leaves the domain is lost to the column means."""
    out = [frame for frame in frames if frame.edge_share > EDGE_SHARE and frame.peak > floor]
    if not out:
        return []
    worst = max(frame.edge_share for frame in out)
    message = f"from {_hours(out[0])} on, up to {worst:.0%} of the peak on the outermost ring"
    return [Finding("plume at boundary", message)]


def missing_frames(seconds: Sequence[float], step: float | None = None) -> list[Finding]:
    """Gaps of a whole number of steps; `step` defaults to the median spacing, s."""
    gaps, step = _gaps(seconds, step)
    lost = [round(gap / step) - 1 for gap in gaps]
    if not any(count > 0 for count in lost):
        return []
    where = next(i for i, count in enumerate(lost) if count > 0)
    message = (
        f"{sum(count for count in lost if count > 0)} at a step of {step / 3600:g} h, "
        f"first after {seconds[where] / 3600:g} h; the cumulative smoke leaves them out"
    )
    return [Finding("missing frames", message)]


def uneven_steps(seconds: Sequence[float], step: float | None = None) -> list[Finding]:
    """Spacings that are no whole number of steps (to 1 %)."""
    gaps, step = _gaps(seconds, step)
    odd = [gap for gap in gaps if abs(gap / step - max(1, round(gap / step))) > _UNEVEN]
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
) -> tuple[Finding, ...]:
    """Every check on the frames of one fire, in time order; `step` is the wanted spacing, s."""
    seconds = [frame.seconds for frame in frames]
    return (
        *non_monotone_arrival(frames),
        *smoke_before_fire(frames, floor),
        *smoke_not_following_fire(frames, version),
        *plume_at_boundary(frames, floor),
        *missing_frames(seconds, step),
        *uneven_steps(seconds, step),
    )


def wrf_version(title: str) -> str | None:
    """The release in a wrfout's TITLE, e.g. " OUTPUT FROM WRF V4.3.3 MODEL" → "4.3.3"."""
    found = re.search(r"V(\d+(?:\.\d+)+)", title)
    return found.group(1) if found else None


def _is_defective(version: str | None) -> bool:
    if version is None:
        return False
    parts = [int(part) for part in version.split(".")][:3]
    release = tuple(parts + [0] * (3 - len(parts)))
    return _DEFECTIVE[0] <= release <= _DEFECTIVE[1]


def _before_boundary(frames: Sequence[FrameSummary]) -> list[FrameSummary]:
    inside = []
    for frame in frames:
        if frame.edge_share > EDGE_SHARE:
            break
        inside.append(frame)
    return inside


def _gaps(seconds: Sequence[float], step: float | None) -> tuple[list[float], float]:
    gaps = np.diff(np.asarray(seconds, dtype=float))
    return gaps.tolist(), step or float(np.median(gaps)) if gaps.size else 1.0


def _hours(frame: FrameSummary) -> str:
    return f"{frame.seconds / 3600:g} h"
