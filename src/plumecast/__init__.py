"""plumecast: from a wildfire to its smoke with closed-form operators, in seconds.

The public names and their homes are in `__init__.pyi`, and in those of the groups, such as
`plumecast.scores`. They are imported on first use, so that `import plumecast` is fast.
"""

from __future__ import annotations

import importlib
from typing import Any

import lazy_loader

from plumecast.base.version import __version__ as __version__

_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]

_GROUPED = {
    "data": (
        "Split",
        "append_fire",
        "apply_smoke_floor",
        "drop_small_fires",
        "final_snapshots",
        "select_drought",
        "stored_fires",
        "validate_snapshots",
    ),
    "operators": ("Basis", "Operator", "fit_basis", "projection_error"),
    "scores": (
        "air_quality_category",
        "air_quality_index",
        "as_quantity",
        "choose_decision_threshold",
        "day_mean",
        "log_smoke",
        "mean_log_smoke",
        "operator_mean_log_smoke",
        "reduced_mean_log_smoke",
        "relative_error",
        "score_footprints",
        "smoke_between",
        "smoke_threshold",
        "snapshot_relative_errors",
        "with_log_smoke",
    ),
    "sources": ("iter_arrival_times", "read_wrf_fires"),
    "surrogate": ("fit_baseline", "wrap_operator"),
    "weather": ("constant_weather", "with_weather", "with_winds"),
    "workflows": ("CrossValidation", "Design", "at_hours", "with_fuels", "write_wrf_inputs"),
}
"""Names of version 0.2 that are in a group now; with a warning, they work for one more version."""


def __getattr__(name: str) -> Any:
    for group, names in _GROUPED.items():
        if name in names:
            from plumecast.base.deprecated import deprecate

            deprecate(f"plumecast.{name}", f"plumecast.{group}.{name}")
            return getattr(importlib.import_module(f"plumecast.{group}"), name)
    return _public(name)
