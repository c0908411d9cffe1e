"""The public names of `plumecast.workflows` and their homes."""

from .statistics.at_places import smoke_at_places as smoke_at_places
from .design.design import Design as Design
from .fires.conditions import with_fuels as with_fuels
from .fires.hours import at_hours as at_hours
from .fires.sources import Overrides as Overrides
from .simulate import Ground as Ground
from .tune.candidates import SearchSpace as SearchSpace
from .tune.cross_validate import CrossValidation as CrossValidation
from .tune.tune import SearchLimits as SearchLimits
from .wrf_inputs import write_wrf_inputs as write_wrf_inputs
