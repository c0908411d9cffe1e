"""plumecast: from a wildfire to its smoke with closed-form operators, in seconds."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from plumecast._version import __version__
from plumecast.errors import PlumecastError

if TYPE_CHECKING:
    from plumecast.baselines import fit_baseline
    from plumecast.drawing import draw_fires
    from plumecast.encode import Basis, fit_basis, projection_error
    from plumecast.ensemble import ensemble_statistics
    from plumecast.evaluation import evaluate
    from plumecast.fit import fit_surrogate
    from plumecast.generation import simulate
    from plumecast.quantity.footprint import (
        choose_decision_threshold,
        relative_error,
        score_footprints,
        smoke_threshold,
        snapshot_relative_errors,
    )
    from plumecast.quantity.optical_depth import (
        log_smoke,
        mean_log_smoke,
        operator_mean_log_smoke,
        reduced_mean_log_smoke,
        with_log_smoke,
    )
    from plumecast.scale import cluster
    from plumecast.snapshot_store import (
        append_fire,
        export_snapshots,
        open_snapshots,
        stored_fires,
    )
    from plumecast.snapshots import (
        apply_smoke_floor,
        drop_small_fires,
        final_snapshots,
        select_drought,
        validate_snapshots,
    )
    from plumecast.source.rasters import iter_arrival_times, read_arrival_times
    from plumecast.source.wrf import read_wrf, read_wrf_fires
    from plumecast.split import Split, split_by_fire
    from plumecast.surrogate import Surrogate, load_surrogate
    from plumecast.tune import tune_surrogate

_HOME = {
    "Basis": "encode",
    "Split": "split",
    "Surrogate": "surrogate",
    "append_fire": "snapshot_store",
    "apply_smoke_floor": "snapshots",
    "choose_decision_threshold": "quantity.footprint",
    "cluster": "scale",
    "draw_fires": "drawing",
    "drop_small_fires": "snapshots",
    "ensemble_statistics": "ensemble",
    "evaluate": "evaluation",
    "export_snapshots": "snapshot_store",
    "final_snapshots": "snapshots",
    "fit_baseline": "baselines",
    "fit_basis": "encode",
    "fit_surrogate": "fit",
    "iter_arrival_times": "source.rasters",
    "load_surrogate": "surrogate",
    "log_smoke": "quantity.optical_depth",
    "mean_log_smoke": "quantity.optical_depth",
    "open_snapshots": "snapshot_store",
    "operator_mean_log_smoke": "quantity.optical_depth",
    "projection_error": "encode",
    "read_arrival_times": "source.rasters",
    "read_wrf": "source.wrf",
    "read_wrf_fires": "source.wrf",
    "reduced_mean_log_smoke": "quantity.optical_depth",
    "relative_error": "quantity.footprint",
    "score_footprints": "quantity.footprint",
    "select_drought": "snapshots",
    "simulate": "generation",
    "smoke_threshold": "quantity.footprint",
    "snapshot_relative_errors": "quantity.footprint",
    "split_by_fire": "split",
    "stored_fires": "snapshot_store",
    "tune_surrogate": "tune",
    "validate_snapshots": "snapshots",
    "with_log_smoke": "quantity.optical_depth",
}
"""Where each public name lives: loaded on first use, so that `import plumecast` stays light.
`__all__` repeats the names for type checkers; a test keeps them equal."""

__all__ = [
    "Basis",
    "PlumecastError",
    "Split",
    "Surrogate",
    "__version__",
    "append_fire",
    "apply_smoke_floor",
    "choose_decision_threshold",
    "cluster",
    "draw_fires",
    "drop_small_fires",
    "ensemble_statistics",
    "evaluate",
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
    "projection_error",
    "read_arrival_times",
    "read_wrf",
    "read_wrf_fires",
    "reduced_mean_log_smoke",
    "relative_error",
    "score_footprints",
    "select_drought",
    "simulate",
    "smoke_threshold",
    "snapshot_relative_errors",
    "split_by_fire",
    "stored_fires",
    "tune_surrogate",
    "validate_snapshots",
    "with_log_smoke",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'plumecast' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"plumecast.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
