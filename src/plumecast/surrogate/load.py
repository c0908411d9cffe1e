"""Load a surrogate from its file: the classes that files contain, also those of older versions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plumecast.base.checkpoints import recorded_interval
from plumecast.base.errors import PlumecastError, PlumecastWarning
from plumecast.data.conditions.covariates import Covariate
from plumecast.data.layout import Coordinate, Field, Layout
from plumecast.operators.baselines import GaussianProcess, MeanField, NearestFire
from plumecast.operators.coded.correction import CorrectedMap
from plumecast.operators.family import FieldMap
from plumecast.operators.lift import Lift
from plumecast.operators.lifted import LiftedOperator, LiftedSums
from plumecast.operators.pca import Basis
from plumecast.operators.physics.channels import PhysicsChannels
from plumecast.operators.physics.transport import ColumnTransport
from plumecast.operators.settings import FAMILIES
from plumecast.operators.targets import Targets
from plumecast.operators.wind_frame import WindFrame
from plumecast.scores.quantities import DOSE_HOURS
from plumecast.surrogate.error_bars.calibration import Calibration, TimeTable
from plumecast.surrogate.file import load_value
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.verify import verify


def _plume_operator(
    labels: tuple[str, ...],
    fields: FieldMap,
    targets: Targets,
    shape: tuple[int, ...],
    frame: WindFrame | None = None,
    correction: Any = None,
    detect: bool = False,
) -> LiftedOperator:
    """The `PlumeOperator` of files of version 0.1.0, as a `LiftedOperator`."""
    field_map = fields if correction is None else CorrectedMap(fields, correction)
    return LiftedOperator(labels, field_map, targets, shape, frame)


SHARED_CLASSES: tuple[type, ...] = (
    Surrogate,
    Layout,
    Field,
    Coordinate,
    Covariate,
    Calibration,
    TimeTable,
    LiftedOperator,
    LiftedSums,
    Basis,
    Lift,
    Targets,
    WindFrame,
    PhysicsChannels,
    ColumnTransport,
    MeanField,
    NearestFire,
    GaussianProcess,
)
"""Classes that the file of a surrogate of any family may contain."""


def saved_classes() -> dict[str, Callable[..., Any]]:
    """Classes that a file may contain, by their names in it: shared ones and those of families."""
    of_families = (kind for family in FAMILIES.values() for kind in family.saved)
    known: dict[str, Callable[..., Any]] = {
        kind.__name__: kind for kind in (*SHARED_CLASSES, *of_families)
    }
    return known | {"PlumeOperator": _plume_operator}


def load_surrogate(path: str | Path) -> Surrogate:
    """Read a surrogate; its predictions equal those of the saved one bit for bit."""
    value = load_value(path, saved_classes())
    if not isinstance(value, Surrogate):
        raise PlumecastError(f"{path} holds a {type(value).__name__}, not a surrogate")
    try:
        verify(value)
    except PlumecastError as error:
        raise PlumecastError(f"{path} cannot be used: {error}; train again") from None
    smoke = value.outputs.fields[0].attrs
    if value.operator.needs_weather and recorded_interval(smoke) and DOSE_HOURS not in smoke:
        warnings.warn(
            f"{path} was trained by an earlier version, without the history of its fires: it "
            "predicts at any hour, and is more accurate if you train it again",
            OlderSurrogate,
            stacklevel=2,
        )
    return value


class OlderSurrogate(PlumecastWarning):
    """A surrogate was trained by an earlier version with another release of smoke."""
