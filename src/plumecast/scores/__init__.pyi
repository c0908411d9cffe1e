"""The public names of `plumecast.scores` and their homes."""

from .air_quality import air_quality_category as air_quality_category
from .air_quality import air_quality_index as air_quality_index
from .air_quality import day_mean as day_mean
from .footprint import choose_decision_threshold as choose_decision_threshold
from .footprint import relative_error as relative_error
from .footprint import score_footprints as score_footprints
from .footprint import smoke_threshold as smoke_threshold
from .footprint import snapshot_relative_errors as snapshot_relative_errors
from .optical_depth import log_smoke as log_smoke
from .optical_depth import mean_log_smoke as mean_log_smoke
from .optical_depth import operator_mean_log_smoke as operator_mean_log_smoke
from .optical_depth import reduced_mean_log_smoke as reduced_mean_log_smoke
from .optical_depth import with_log_smoke as with_log_smoke
from .quantities import as_quantity as as_quantity
from .quantities import smoke_between as smoke_between
