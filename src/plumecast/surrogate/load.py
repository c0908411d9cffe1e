"""Load a surrogate from its file, and verify it: a correct checksum can cover wrong contents.

Its arrays must be finite and have the dimensions of the table below; the grids, spacings and
frequencies of its parts must agree; its settings and its training record must have the types and
ranges that a fit gives them; and it must predict an empty fire.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from plumecast.base.checkpoints import INTERVAL
from plumecast.base.errors import PlumecastError
from plumecast.base.names import FIRE, SMOKE
from plumecast.base.values import check_count, check_fields, check_number, shown
from plumecast.compute.arrays import arrays_in
from plumecast.data.covariates import Covariate
from plumecast.data.layout import GRID_TOLERANCE, Coordinate, Field, Layout, grid_template
from plumecast.operators.baselines import GaussianProcess, MeanField, NearestFire
from plumecast.operators.carried.calibration import LADDERS
from plumecast.operators.carried.transport import CARRIED, MOST_HALVINGS, ColumnTransport
from plumecast.operators.family import Conditions
from plumecast.operators.lift import Lift, PhysicsChannels
from plumecast.operators.lifted import LiftedOperator, LiftedSums
from plumecast.operators.pca import Basis
from plumecast.operators.settings import FAMILIES, check_record
from plumecast.operators.spectral.map import SpectralMap
from plumecast.operators.spectral.transform import choose_frequencies
from plumecast.operators.targets import Targets
from plumecast.operators.wind_frame import WindFrame, fit_wind_frame
from plumecast.surrogate.error_bars.calibration import Calibration, TimeTable
from plumecast.surrogate.file import load_value
from plumecast.surrogate.fit_lifted import grid_spacing
from plumecast.surrogate.surrogate import Surrogate
from plumecast.surrogate.thresholds import AGREE, FURTHER
from plumecast.surrogate.weather import HOURLY, MEAN_WIND, constant_series

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


def load_surrogate(path: str | Path) -> Surrogate:
    """Read a surrogate; its predictions equal those of the saved one bit for bit.

    Parameters
    ----------
    path
        A file of `Surrogate.save` or `plumecast train`.
    """
    of_families = (kind for family in FAMILIES.values() for kind in family.saved)
    value = load_value(path, {kind.__name__: kind for kind in (*SHARED_CLASSES, *of_families)})
    if not isinstance(value, Surrogate):
        raise PlumecastError(f"{path} holds a {type(value).__name__}, not a surrogate")
    try:
        verify(value)
    except PlumecastError as error:
        raise PlumecastError(f"{path} cannot be used: {error}; train again") from None
    return value


DIMENSIONS: dict[str, dict[str, str]] = {
    "Basis": {"modes": "r n", "spectrum": "s", "mean": "n"},
    "PrimalMap": {"weights": "p q", "intercept": "q"},
    "DualMap": {"support": "m r", "dual_weights": "m q", "power_weights": "p q", "intercept": "q"},
    "KernelMap": {"support": "m r", "dual_weights": "m q"},
    "FoldedLinear": {"left": "n k", "right": "k o", "constant": "o"},
    "MeanField": {"mean": "o"},
    "NearestFire": {"inputs": "m n", "outputs": "m o"},
    "GaussianProcess": {"support": "m n", "weights": "m o"},
    "Lift": {"knots": "k", "scales": "s h"},
    "Layer": {"weights": "s f c T 2", "knots": "U r", "limits": "T"},
    "SpectralMap": {"target_scales": "T"},
    "CodedMap": {"target_scales": "T"},
    "NeuralMap": {"target_scales": "T", "limits": "T", "indicators": "T"},
    "PhysicsChannels": {"floors": "K", "knots": "K r", "scales": "c"},
    "ColumnTransport": {"load": "y x"},
}
"""Dimensions of the arrays and tuples of saved classes. Equal letters have equal sizes: small ones
within one object, capital ones within the operator. Arrays of other classes are only tried, by a
prediction."""

Sizes = dict[str, int]

LEAST_STEP = 0.25
"""Hours of a step of transport at least, unless the frames are closer; see `plan_transport`."""

MOST_SPREAD = 100.0
"""Cells over which a step may spread smoke; the time of a prediction grows with its square."""


def verify(surrogate: Surrogate) -> None:
    """Raise if a surrogate is not one that a fit could have given."""
    for _, value in _objects(surrogate, "surrogate"):
        check_fields(value)
    for layout in (surrogate.inputs, surrogate.outputs):
        check_count("fields", len(layout.fields))
        for field in layout.fields:
            _check_field(field)
        if len(layout.fields) == 1 and layout.fields[0].scale != 1.0:
            raise PlumecastError(f"scale={layout.fields[0].scale:g} of a single field is not 1")
    _check_operator(surrogate.operator)
    if isinstance(surrogate.operator, LiftedOperator):
        _check_grid(surrogate.operator, surrogate.inputs.fields[0])
        _check_interval(surrogate.operator, surrogate.outputs)
    check_record(surrogate.settings)
    further = surrogate.training.get(FURTHER, {})
    if not isinstance(further, Mapping) or not set(further) <= set(surrogate.outputs.names[1:]):
        raise PlumecastError(f"{FURTHER}={shown(further)} are not records of its further outputs")
    for record in (surrogate.training, *further.values()):
        _check_record_of_output(surrogate, record)
    _check_ranges(surrogate)
    bars = surrogate.further_bars or {}
    if not set(bars) <= set(surrogate.outputs.names[1:]):
        raise PlumecastError(f"further_bars={shown(list(bars))} are not its further outputs")
    for table in filter(None, (surrogate.error_bars, *bars.values())):
        if table.detects != surrogate.detects:
            raise PlumecastError(
                "its error bars and its operator do not agree on a detection score"
            )
        table.check()
    _try(surrogate)


def _check_field(field: Field) -> None:
    """The grid of a field: sizes, coordinates and scale."""
    if len(field.shape) != len(field.dims):
        raise PlumecastError(f"'{field.name}' has dimensions {field.dims} and shape {field.shape}")
    for dim, size in zip(field.dims, field.shape, strict=True):
        check_count(f"{field.name}.{dim}", size)
    check_number(f"{field.name}.scale", field.scale, above=0.0)
    if not isinstance(field.attrs.get("units", ""), str):
        raise PlumecastError(f"the unit of '{field.name}' is {shown(field.attrs['units'])}")
    sizes = dict(zip(field.dims, field.shape, strict=True))
    for name, coordinate in field.coords.items():
        values, shape = coordinate.values, tuple(sizes.get(dim) for dim in coordinate.dims)
        if not isinstance(values, np.ndarray) or values.shape != shape or values.dtype.kind == "b":
            raise PlumecastError(f"coordinate '{name}' of '{field.name}' does not fit its grid")
        if name in field.dims and not np.isfinite(values).all():
            raise PlumecastError(f"coordinate '{name}' of '{field.name}' has values that are NaN")


def _check_operator(operator: Any) -> None:
    shared: Sizes = {}
    for place, value in _objects(operator, "operator"):
        own: Sizes = {}
        for name, dims in DIMENSIONS.get(type(value).__name__, {}).items():
            array = getattr(value, name)
            if array is not None:
                _check_array(f"{place}.{name}", array, dims.split(), own, shared)
    if isinstance(operator, LiftedOperator):
        names = sum((own.names for own in (operator.targets, *operator.further)), ())
        _check_array("operator.targets.names", names, ["T"], {}, shared)
        _check_array("operator.targets.names", operator.targets.names, ["U"], {}, shared)
    for array in arrays_in(operator):
        if array.dtype not in (np.float32, np.float64):
            raise PlumecastError(f"an array of its operator has the type {array.dtype}")
        if not np.isfinite(array).all():
            raise PlumecastError("an array of its operator has values that are NaN or infinite")


def _check_grid(operator: LiftedOperator, field: Field) -> None:
    """The operator, its transport and its wind frame are on the grid of the fire."""
    spacing = grid_spacing(grid_template(field), field)
    _equal("shape of its operator", operator.shape, field.shape)
    if operator.frame is not None:
        _check_frame(operator.frame, field.shape, spacing)
    if operator.physics is not None:
        _check_transport(operator.physics, field.shape, spacing)
    grid = operator.shape if operator.frame is None else operator.frame.canvas
    for place, value in _objects(operator.field_map, "operator.field_map"):
        if isinstance(value, PhysicsChannels) and operator.physics is not None:
            kinds = (len(operator.physics.groups) - 1,)
            _equal(f"shape of {place}.floors", value.floors.shape, kinds)
        elif isinstance(value, SpectralMap):
            _check_frequencies(f"{place}.frequencies", value, grid)


def _check_interval(operator: LiftedOperator, outputs: Layout) -> None:
    """The carried smoke sums over the frames that the smoke sums over."""
    for field in outputs.fields:
        interval = field.attrs.get(INTERVAL)
        if interval is None:
            continue
        check_number(f"{field.name}.{INTERVAL}", interval, above=0.0)
        if field.name == SMOKE and operator.physics is not None:
            carried = operator.physics.interval
            if not math.isclose(carried, interval, rel_tol=1e-3):
                raise PlumecastError(
                    f"interval={carried:g} of its transport is not that of its smoke, {interval:g}"
                )


def _check_frequencies(place: str, spectral: SpectralMap, grid: tuple[int, ...]) -> None:
    frequencies = spectral.frequencies
    _equal(f"{place}.grid", frequencies.grid, grid)
    _equal(f"{place}.padded", frequencies.padded, choose_frequencies(grid).padded)
    _equal(f"size of {place}.highest", (len(frequencies.highest),), (len(grid),))
    for high, size in zip(frequencies.highest, frequencies.padded, strict=True):
        check_count(f"{place}.highest", high, most=size // 2)
    for layer in spectral.layers:
        _equal(f"number of {place}", layer.weights.shape[1:2], (frequencies.count,))


def _check_frame(frame: WindFrame, shape: tuple[int, ...], spacing: tuple[float, float]) -> None:
    _equal("grid of its wind frame", frame.grid, shape)
    _check_spacing("wind frame", frame.spacing, spacing)
    if frame.speed is not None:
        check_number("speed of its wind frame", frame.speed, above=0.0)
    wind = np.array([[1.0 if frame.speed is None else frame.speed, 0.0]])
    fitted = fit_wind_frame(frame.grid, frame.spacing, wind, stretch=frame.speed is not None)
    _equal("canvas of its wind frame", frame.canvas, fitted.canvas)


def _check_transport(
    transport: ColumnTransport, shape: tuple[int, ...], spacing: tuple[float, float]
) -> None:
    """Constants that no fit chooses would make a prediction wrong, or take for ever."""
    within = {name: (min(ladder), max(ladder)) for name, ladder in LADDERS.items()}
    within |= {"halvings": (0, MOST_HALVINGS), "interval": (1e-3, 1e4)}
    within["step"] = (0.99 * min(transport.interval, LEAST_STEP), 1.0)
    for name, (low, high) in within.items():
        value = getattr(transport, name)
        if not low <= value <= high:
            raise PlumecastError(
                f"{name}={value:g} of its transport is not within {low:g} … {high:g}"
            )
    if abs(transport.interval / transport.step - round(transport.interval / transport.step)) > 1e-6:
        raise PlumecastError(
            f"step={transport.step:g} of its transport does not divide its interval of "
            f"{transport.interval:g} h"
        )
    _check_spacing("transport", transport.spacing, spacing)
    if transport.spread_cells() > MOST_SPREAD:
        raise PlumecastError(
            f"spacing={shown(transport.spacing)} of its transport is too fine: a step spreads "
            f"smoke over {transport.spread_cells():.0f} cells"
        )
    known = {kind.groups for kind in CARRIED.values()}
    if transport.groups not in known:
        raise PlumecastError(f"groups={shown(transport.groups)} of its transport are unknown")
    if transport.load is not None:
        _equal("load of its transport", transport.load.shape, shape)


def _check_spacing(what: str, spacing: tuple[float, ...], grid: tuple[float, float]) -> None:
    if len(spacing) != 2 or not np.allclose(spacing, grid, rtol=GRID_TOLERANCE, atol=0.0):
        raise PlumecastError(
            f"spacing={shown(spacing)} of its {what} is not that of its grid, {shown(grid)}"
        )


def _equal(what: str, value: tuple[int, ...], grid: tuple[int, ...]) -> None:
    if tuple(value) != tuple(grid):
        raise PlumecastError(f"the {what} is {shown(value)}, but {shown(grid)} elsewhere")


def _objects(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """A dataclass and all dataclasses within it, each with its place."""
    if isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _objects(item, f"{place}.{number}")
    elif isinstance(value, dict):
        yield from _objects(tuple(value.values()), place)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield place, value
        for field in dataclasses.fields(value):
            yield from _objects(getattr(value, field.name), f"{place}.{field.name}")


def _check_array(place: str, array: Any, dims: list[str], own: Sizes, shared: Sizes) -> None:
    shape = (len(array),) if isinstance(array, tuple) else getattr(array, "shape", ())
    if len(shape) != len(dims):
        raise PlumecastError(f"{place} has shape {shape}, not ({', '.join(dims)})")
    for dim, size in zip(dims, shape, strict=True):
        expected = (
            int(dim) if dim.isdigit() else (shared if dim.isupper() else own).setdefault(dim, size)
        )
        if size != expected:
            raise PlumecastError(f"{place} has shape {shape}, but {dim} = {expected} elsewhere")


def _check_record_of_output(surrogate: Surrogate, record: Any) -> None:
    """The thresholds of an output, and the constants with which its smoke and score agree."""
    if not isinstance(record, Mapping):
        raise PlumecastError(f"{FURTHER}={shown(record)} is no record of an output")
    thresholds, constants = record.get("thresholds", {}), record.get(AGREE)
    if not isinstance(thresholds, Mapping):
        raise PlumecastError(f"thresholds={shown(thresholds)} are no thresholds")
    for name, value in thresholds.items():
        check_number(f"thresholds.{name}", value)
    if constants is None:
        return
    if not isinstance(constants, Mapping) or set(constants) != {"weight", "scale", "thick"}:
        told = f"{AGREE}={shown(constants)} does not say how smoke and footprint agree"
        raise PlumecastError(told)
    for name, value in constants.items():
        check_number(f"{AGREE}.{name}", value, least=0.0)
    if not {"smoke", "decision"} <= set(thresholds) or not surrogate.detects:
        raise PlumecastError(f"{AGREE} needs both thresholds and a detection score")
    if any(part.scale != 1.0 for part in surrogate.outputs.fields):
        raise PlumecastError(f"{AGREE} is for outputs in their own units, not scaled ones")


def _check_ranges(surrogate: Surrogate) -> None:
    """The ranges of training, which predictions are compared with.

    The region of the fires lies within the grid, and has the burned cells beside it.
    """
    training = surrogate.training
    if training.get("weather", HOURLY) not in (HOURLY, MEAN_WIND):
        raise PlumecastError(f"weather={shown(training['weather'])} is no kind of weather")
    ranges = training.get("ranges", {})
    if not isinstance(ranges, Mapping):
        raise PlumecastError(f"ranges={shown(ranges)} are no ranges")
    for name, pair in ranges.items():
        check = check_count if name == "region" else check_number
        tables = ("region", "profile_wind", "weakest_wind")
        several = name in tables and isinstance(pair, list)
        for item in pair if several and pair else [pair]:
            if not isinstance(item, list) or len(item) != 2:
                raise PlumecastError(f"ranges.{name}={shown(item)} is no pair of numbers")
            for value in item:
                check(f"ranges.{name}", value, least=0)
    if "hours" in ranges:
        region = ranges.get("region")
        shapes = {field.name: field.shape for field in surrogate.inputs.fields}
        grid = shapes.get(FIRE, ())
        if "burned_cells" not in ranges or region is None or len(region) != len(grid):
            raise PlumecastError("its ranges have no region or no burned cells")
        for pair, size in zip(region, grid, strict=True):
            if max(pair) >= size:
                raise PlumecastError(f"ranges.region={shown(pair)} is not within the grid {grid}")


def _try(surrogate: Surrogate) -> None:
    """Predict an empty fire of every scenario: arrays that do not fit together fail here."""
    labels = getattr(surrogate.operator, "labels", ())
    count = max(1, len(labels))
    columns = sum(item.width for item in surrogate.covariates)
    wind = np.tile([1.0, 0.0], (count, 1))
    given = Conditions(
        labels=np.array(labels) if labels else None,
        covariates=np.zeros((count, columns), dtype=np.float32) if columns else None,
        wind=wind,
        weather=constant_series(wind, np.ones(count)),
    )
    try:
        empty = np.zeros((count, surrogate.inputs.size))
        predicted = np.asarray(surrogate.predict_rows(empty, given))
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, ArithmeticError) as error:
        raise PlumecastError(f"its arrays do not fit together ({error})") from None
    if predicted.shape != (count, surrogate.outputs.size):
        told = f"it predicts {predicted.shape[1:]} values of {surrogate.outputs.size}"
        raise PlumecastError(told)
    if not np.isfinite(predicted).all():
        raise PlumecastError("it predicts values that are NaN or infinite for an empty fire")
