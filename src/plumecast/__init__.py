"""plumecast: from a wildfire to its smoke with closed-form operators, in seconds."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from plumecast.base.errors import PlumecastError
from plumecast.base.version import __version__

if TYPE_CHECKING:
    from plumecast.app.maps.draw import draw_map
    from plumecast.compute.cluster import cluster
    from plumecast.compute.resources import Resources
    from plumecast.data.schema import (
        apply_smoke_floor,
        drop_small_fires,
        final_snapshots,
        select_drought,
        validate_snapshots,
    )
    from plumecast.data.split import Split, SplitRecipe, split_by_fire
    from plumecast.data.store import append_fire, export_snapshots, open_snapshots, stored_fires
    from plumecast.impact.compare import compare_scenarios
    from plumecast.impact.optics import optical_depth
    from plumecast.impact.solar_loss import solar_loss
    from plumecast.operators.family import Operator
    from plumecast.operators.pca import Basis, fit_basis, projection_error
    from plumecast.scores.air_quality import air_quality_category, air_quality_index, day_mean
    from plumecast.scores.footprint import (
        choose_decision_threshold,
        relative_error,
        score_footprints,
        smoke_threshold,
        snapshot_relative_errors,
    )
    from plumecast.scores.optical_depth import (
        log_smoke,
        mean_log_smoke,
        operator_mean_log_smoke,
        reduced_mean_log_smoke,
        with_log_smoke,
    )
    from plumecast.scores.quantities import as_quantity, smoke_between
    from plumecast.scores.reading import Reading
    from plumecast.sources.places import read_places
    from plumecast.sources.rasters import RasterOptions, iter_arrival_times, read_arrival_times
    from plumecast.sources.wrf import WrfOptions, read_wrf, read_wrf_fires
    from plumecast.surrogate.baselines import fit_baseline
    from plumecast.surrogate.fit import fit_surrogate, wrap_operator
    from plumecast.surrogate.load import load_surrogate
    from plumecast.surrogate.surrogate import Surrogate
    from plumecast.weather.read import constant_weather, read_weather
    from plumecast.weather.snapshots import with_weather, with_winds
    from plumecast.workflows.design.design import Design, design_runs
    from plumecast.workflows.ensemble import ensemble_statistics, evaluate_points
    from plumecast.workflows.evaluate import evaluate
    from plumecast.workflows.fires.conditions import with_fuels
    from plumecast.workflows.fires.draw_fires import draw_fires
    from plumecast.workflows.fires.hours import at_hours
    from plumecast.workflows.simulate import Ground, simulate
    from plumecast.workflows.statistics.request import Statistics
    from plumecast.workflows.train import train_surrogate
    from plumecast.workflows.tune.cross_validate import CrossValidation, cross_validate
    from plumecast.workflows.tune.tune import tune_surrogate
    from plumecast.workflows.wrf_inputs import write_wrf_inputs

_HOME = {
    "Basis": "operators.pca",
    "CrossValidation": "workflows.tune.cross_validate",
    "Design": "workflows.design.design",
    "Ground": "workflows.simulate",
    "Operator": "operators.family",
    "RasterOptions": "sources.rasters",
    "Reading": "scores.reading",
    "Resources": "compute.resources",
    "Split": "data.split",
    "SplitRecipe": "data.split",
    "Statistics": "workflows.statistics.request",
    "Surrogate": "surrogate.surrogate",
    "WrfOptions": "sources.wrf",
    "air_quality_category": "scores.air_quality",
    "air_quality_index": "scores.air_quality",
    "append_fire": "data.store",
    "apply_smoke_floor": "data.schema",
    "as_quantity": "scores.quantities",
    "at_hours": "workflows.fires.hours",
    "choose_decision_threshold": "scores.footprint",
    "cluster": "compute.cluster",
    "compare_scenarios": "impact.compare",
    "constant_weather": "weather.read",
    "cross_validate": "workflows.tune.cross_validate",
    "day_mean": "scores.air_quality",
    "design_runs": "workflows.design.design",
    "draw_fires": "workflows.fires.draw_fires",
    "draw_map": "app.maps.draw",
    "drop_small_fires": "data.schema",
    "ensemble_statistics": "workflows.ensemble",
    "evaluate": "workflows.evaluate",
    "evaluate_points": "workflows.ensemble",
    "export_snapshots": "data.store",
    "final_snapshots": "data.schema",
    "fit_baseline": "surrogate.baselines",
    "fit_basis": "operators.pca",
    "fit_surrogate": "surrogate.fit",
    "iter_arrival_times": "sources.rasters",
    "load_surrogate": "surrogate.load",
    "log_smoke": "scores.optical_depth",
    "mean_log_smoke": "scores.optical_depth",
    "open_snapshots": "data.store",
    "operator_mean_log_smoke": "scores.optical_depth",
    "optical_depth": "impact.optics",
    "projection_error": "operators.pca",
    "read_arrival_times": "sources.rasters",
    "read_places": "sources.places",
    "read_weather": "weather.read",
    "read_wrf": "sources.wrf",
    "read_wrf_fires": "sources.wrf",
    "reduced_mean_log_smoke": "scores.optical_depth",
    "relative_error": "scores.footprint",
    "score_footprints": "scores.footprint",
    "select_drought": "data.schema",
    "simulate": "workflows.simulate",
    "smoke_between": "scores.quantities",
    "smoke_threshold": "scores.footprint",
    "snapshot_relative_errors": "scores.footprint",
    "solar_loss": "impact.solar_loss",
    "split_by_fire": "data.split",
    "stored_fires": "data.store",
    "train_surrogate": "workflows.train",
    "tune_surrogate": "workflows.tune.tune",
    "validate_snapshots": "data.schema",
    "with_fuels": "workflows.fires.conditions",
    "with_log_smoke": "scores.optical_depth",
    "with_weather": "weather.snapshots",
    "with_winds": "weather.snapshots",
    "wrap_operator": "surrogate.fit",
    "write_wrf_inputs": "workflows.wrf_inputs",
}
"""The module of each public name, imported on first use so that `import plumecast` is fast.
`__all__` repeats the names for type checkers; a test keeps the two equal."""

__all__ = [
    "Basis",
    "CrossValidation",
    "Design",
    "Ground",
    "Operator",
    "PlumecastError",
    "RasterOptions",
    "Reading",
    "Resources",
    "Split",
    "SplitRecipe",
    "Statistics",
    "Surrogate",
    "WrfOptions",
    "__version__",
    "air_quality_category",
    "air_quality_index",
    "append_fire",
    "apply_smoke_floor",
    "as_quantity",
    "at_hours",
    "choose_decision_threshold",
    "cluster",
    "compare_scenarios",
    "constant_weather",
    "cross_validate",
    "day_mean",
    "design_runs",
    "draw_fires",
    "draw_map",
    "drop_small_fires",
    "ensemble_statistics",
    "evaluate",
    "evaluate_points",
    "export_snapshots",
    "final_snapshots",
    "fit_baseline",
    "fit_basis",
    "fit_surrogate",
    "iter_arrival_times",
    "load_surrogate",
    "log_smoke",
    "mean_log_smoke",
    "open_snapshots",
    "operator_mean_log_smoke",
    "optical_depth",
    "projection_error",
    "read_arrival_times",
    "read_places",
    "read_weather",
    "read_wrf",
    "read_wrf_fires",
    "reduced_mean_log_smoke",
    "relative_error",
    "score_footprints",
    "select_drought",
    "simulate",
    "smoke_between",
    "smoke_threshold",
    "snapshot_relative_errors",
    "solar_loss",
    "split_by_fire",
    "stored_fires",
    "train_surrogate",
    "tune_surrogate",
    "validate_snapshots",
    "with_fuels",
    "with_log_smoke",
    "with_weather",
    "with_winds",
    "wrap_operator",
    "write_wrf_inputs",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'plumecast' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"plumecast.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
