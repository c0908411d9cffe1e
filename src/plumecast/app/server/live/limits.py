"""Limits of what requests can make the server do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The numbers that the page shows in its state."""

    fires: int = 64  # kept; the least recently used is dropped
    fires_waiting: int = 24
    fire_threads: int = 2
    jobs: int = 64  # kept
    jobs_waiting: int = 4
    models: int = 64
    points: int = 200  # of a line to ignite
    places: int = 200
    clients: int = 256  # whose places are kept
    wind_speed: float = 40.0  # m s⁻¹
