"""Select the frames of a run that serve as checkpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from plumecast.base.errors import ArgumentError, PlumecastError
from plumecast.sources.wrf.files import Frame

_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_TOLERANCE = 0.1  # largest distance of a frame from its checkpoint, relative to `every`


def thin(frames: Sequence[Frame], every: float | None) -> list[Frame]:
    """The frame nearest each multiple of `every` seconds after the first, within a tenth of it."""
    if every is None or len(frames) < 2:
        return list(frames)
    seconds = np.array([frame.seconds for frame in frames])
    spacing = float(np.diff(seconds).min())
    if every < (1 - _TOLERANCE) * spacing:
        raise PlumecastError(
            f"{frames[0].path}: every={every / 3600:g} h is finer than the frames, which are "
            f"{spacing / 3600:g} h apart; give at least that"
        )
    even = float(np.diff(seconds).max()) < (1 + _TOLERANCE) * spacing
    if even and abs(every / spacing - round(every / spacing)) > _TOLERANCE:
        raise PlumecastError(
            f"{frames[0].path}: every={every / 3600:g} h is no multiple of the "
            f"{spacing / 3600:g} h between the frames; give one"
        )
    targets = np.arange(seconds[0], seconds[-1] + _TOLERANCE * every, every)
    nearest = np.abs(seconds - targets[:, None]).argmin(axis=1)
    close = np.abs(seconds[nearest] - targets) <= _TOLERANCE * every
    return [frames[number] for number in nearest[close]]


def interval_seconds(every: str | float | None) -> float | None:
    """Seconds of "6h", "30min", "1d" or a number of hours.

    >>> interval_seconds("30min"), interval_seconds(6)
    (1800.0, 21600.0)
    """
    if every is None:
        return None
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*(s|min|h|d)?\s*", str(every))
    if not found or float(found[1]) <= 0:
        raise ArgumentError(
            "every",
            every,
            'give e.g. "6h", "30min", "1d" or a number of hours',
            problem="is no interval",
        )
    return float(found[1]) * _SECONDS[found[2] or "h"]
