"""Cheap physics without learning: carried smoke times one factor, as a surrogate.

The carried smoke of `operators.physics`, with constants calibrated on the training snapshots, is in
any unit. The factor c makes it smoke: the median, over the training snapshots, of the least-squares
factor Σpg / Σp² of each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE
from plumecast.compute.arrays import Array, array_namespace
from plumecast.data.training import training_matrices
from plumecast.operators.family import NOTHING, Conditions, Operator
from plumecast.operators.physics.calibration import calibrate
from plumecast.operators.physics.transport import ColumnTransport, plan_transport
from plumecast.scores.footprint import smoke_threshold
from plumecast.surrogate.fit import label_operator
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.weather import (
    fire_history,
    frame_interval,
    fuel_loads,
    weather_known,
    weather_series,
)
from plumecast.weather.snapshots import STATE_WEATHER

PHYSICS_ALONE = "physics-alone"


@dataclass(frozen=True, slots=True)
class CarriedSmoke(Operator):
    """Smoke that the weather of every fire carries, times a factor."""

    transport: ColumnTransport
    factor: float
    shape: tuple[int, int]

    @property
    def needs_weather(self) -> bool:
        """Always."""
        return True

    @property
    def uses_fuel(self) -> bool:
        """Whether smoke is released by the fuel load of every cell."""
        return self.transport.load is not None

    def predict(self, inputs: Array, given: Conditions = NOTHING) -> Array:
        """(M, N) ages → (M, N) smoke."""
        if given.weather is None:
            raise PlumecastError(f"carried smoke needs the weather of every fire; {STATE_WEATHER}")
        xp = array_namespace(inputs)
        fire = xp.reshape(inputs, (-1, *self.shape))
        carried = self.transport.smoke(fire, given.weather, given.fuel, given.history)[:, 0]
        return self.factor * xp.astype(xp.reshape(carried, inputs.shape), xp.float64)


def fit_physics_alone(train: xr.Dataset) -> Surrogate:
    """Fit the factor of carried smoke; raises if the weather is unknown."""
    if not weather_known(train):
        raise PlumecastError(f"carried smoke needs the weather of every fire; {STATE_WEATHER}")
    data = training_matrices(train, FIRE, SMOKE)
    weather, fuel = weather_series(train), fuel_loads(train, ("y", "x"))
    rows, columns = train[SMOKE].sizes["y"], train[SMOKE].sizes["x"]
    spacing = [float(np.mean(np.diff(train[dim].values))) for dim in ("y", "x")]
    transport = plan_transport(
        weather,
        (spacing[0], spacing[1]),
        frame_interval(train),
        load=None if fuel is None else fuel.mean(),
    )
    grid = (-1, rows, columns)
    fire, smoke = (np.reshape(matrix[:], grid) for matrix in (data.inputs, data.outputs))
    tau = smoke_threshold(smoke)
    past = fire_history(train, fire)
    transport = calibrate(transport, fire, smoke, weather, threshold=tau, fuel=fuel, history=past)
    unit = CarriedSmoke(transport, 1.0, (rows, columns))
    given = Conditions(weather=weather, fuel=fuel, history=past)
    carried, smoke = unit.predict(data.inputs, given), data.outputs
    squares = np.sum(carried**2, axis=1)
    known = squares > 0.0
    if not known.any():
        raise PlumecastError("no training snapshot has carried smoke; check fires and weather")
    factors = np.sum(carried[known] * smoke[known], axis=1) / squares[known]
    operator = replace(unit, factor=float(np.median(factors)))
    chosen = {"factor": operator.factor, "physics": "calibrated", "frame": "map"}
    return label_operator(operator, data, settings={"preset": PHYSICS_ALONE}, chosen=chosen)
