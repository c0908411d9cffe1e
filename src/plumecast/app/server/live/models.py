"""The surrogates that the page offers, by opaque id."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plumecast.app.server.live.kept import new_id
from plumecast.base.errors import PlumecastError
from plumecast.surrogate.surrogate import Surrogate


@dataclass(frozen=True, slots=True)
class Model:
    """A surrogate with its name on the page, and its scores if it was trained here."""

    name: str
    surrogate: Surrogate
    result: Mapping[str, Any] | None = None
    id: str = field(default_factory=new_id)

    @property
    def threshold(self) -> float | None:
        """The decision threshold of its footprint, if it has one."""
        found = self.surrogate.record.thresholds
        return None if found is None else found.decision

    @property
    def calibrated(self) -> bool:
        """Whether it has error bars."""
        return self.surrogate.error_bars is not None

    def record(self) -> dict[str, Any]:
        """What the page shows of it."""
        training, settings = self.surrogate.training, self.surrogate.settings
        return {
            "id": self.id,
            "name": self.name,
            "preset": settings.get("preset"),
            "family": settings.get("family"),
            "snapshots": training.get("snapshots"),
            "ignitions": len(training.get("ignition_id", ())) or None,
            "needs_weather": bool(
                self.surrogate.operator.needs_weather or self.surrogate.operator.needs_wind
            ),
            "needs_drought": self.surrogate.scenario is not None,
            "calibrated": self.calibrated,
            "result": self.result,
        }


class Models:
    """All models; those that were given stay, and new ones are added."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._models: dict[str, Model] = {}

    def add(self, model: Model) -> Model:
        """Add a model; it becomes the last."""
        with self._lock:
            self._models[model.id] = model
        return model

    def all(self) -> list[Model]:
        """The models in the order in which they came."""
        with self._lock:
            return list(self._models.values())

    def get(self, key: str | None) -> Model:
        """The model of an id, or the latest without one."""
        models = self.all()
        if key is None and models:
            return models[-1]
        with self._lock:
            found = None if key is None else self._models.get(key)
        if found is None:
            raise PlumecastError("there is no such model; choose one of the state")
        return found

    @property
    def full(self) -> bool:
        """Whether no further model can be kept."""
        return len(self.all()) >= self.most
