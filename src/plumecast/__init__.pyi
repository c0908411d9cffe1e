"""The public names and their homes: the only list of both, read by `__init__.py` too."""

from . import data as data
from . import impact as impact
from . import operators as operators
from . import paper as paper
from . import scores as scores
from . import sources as sources
from . import surrogate as surrogate
from . import weather as weather
from . import workflows as workflows
from .app.maps.draw import draw_map as draw_map
from .base.errors import PlumecastError as PlumecastError
from .compute.cluster import cluster as cluster
from .compute.resources import Resources as Resources
from .data.split import SplitRecipe as SplitRecipe
from .data.split import split_by_fire as split_by_fire
from .data.store import export_snapshots as export_snapshots
from .data.store import open_snapshots as open_snapshots
from .impact.compare import compare_scenarios as compare_scenarios
from .impact.optics import optical_depth as optical_depth
from .impact.solar_loss import solar_loss as solar_loss
from .scores.reading import Reading as Reading
from .sources.places import read_places as read_places
from .sources.rasters.arrival_times import read_arrival_times as read_arrival_times
from .sources.wrf.fires import read_wrf as read_wrf
from .surrogate.fit import fit_surrogate as fit_surrogate
from .surrogate.load import load_surrogate as load_surrogate
from .surrogate.surrogate import Surrogate as Surrogate
from .weather.read import read_weather as read_weather
from .workflows.design.design import design_runs as design_runs
from .workflows.ensemble import ensemble_statistics as ensemble_statistics
from .workflows.ensemble import evaluate_points as evaluate_points
from .workflows.evaluate import evaluate as evaluate
from .workflows.fires.draw_fires import draw_fires as draw_fires
from .workflows.predict import predict_store as predict_store
from .workflows.simulate import simulate as simulate
from .workflows.statistics.request import Statistics as Statistics
from .workflows.train import train_surrogate as train_surrogate
from .workflows.tune.cross_validate import cross_validate as cross_validate
from .workflows.tune.tune import tune_surrogate as tune_surrogate

__version__: str
